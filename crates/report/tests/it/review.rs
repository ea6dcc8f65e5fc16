//! Work that needs a person: what to look at, why, and what to type.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use verdone_core::base::finish::Finish;
use verdone_core::base::id::StoryId;
use verdone_core::check::{CheckOutcome, CheckRun, CommandSpec};
use verdone_core::journal::event::Event;
use verdone_core::verify::{Doubt, Failure, Note, Outcome, Proof, Reason, Surface, Tree, TreeIds, Verified, VerifyReport};
use verdone_report::{Extra, Plain, Style, Verbosity, log_line, markdown, results, status, story, summary, verification};

use crate::fixture::{Journal, oid};

const WHY: [&str; 2] = ["`test` passes only with the changed tests/a.py: without it, it failed", ".envrc will run outside"];

fn wide() -> Style {
    Style { width: 200, ..Style::default() }
}

/// One story that waits for a person, and one built on it.
fn stacked() -> Journal {
    let mut j = Journal::new();
    j.start(2).select("A", "One", 1, (1, 2, 2)).committed_as('1', Proof::AgentTested, Outcome::NeedsReview);
    j.review_needed('1', Proof::AgentTested, &WHY);
    j.select("B", "Two", 1, (2, 2, 1)).committed('2', Proof::Verified);
    j
}

fn end(j: &mut Journal, finish: Finish) {
    j.event(0, Event::RunStopping { finish, reason: "1 story is left for you to review".to_owned() });
    j.event(0, Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms: 1 });
}

fn accepted(story: &str, by: &str) -> Event {
    Event::Accepted {
        story: StoryId::from(story),
        commit: oid('3'),
        tree: oid('7'),
        base: None,
        proof: Proof::Untested,
        by: by.to_owned(),
        reasons: WHY.map(str::to_owned).into(),
        evidence: "sha256:e".to_owned(),
    }
}

fn lines(j: &Journal) -> String {
    let mut out = Vec::new();
    let mut plain = Plain::new(&mut out, wide(), Verbosity::Normal);
    j.steps.iter().for_each(|step| step.show(&mut plain));
    drop(plain);
    String::from_utf8(out).unwrap()
}

fn log(j: &Journal) -> String {
    j.recorded().map(|recorded| log_line(recorded, &TimeZone::UTC, &Style::default()) + "\n").collect()
}

#[test]
fn a_commit_that_waits_is_named_as_such_and_holds_up_the_landing() {
    let mut j = stacked();
    end(&mut j, Finish::Blocked);
    let text = lines(&j);
    for line in [
        "\n  ! Committed 1111111111 · agent-tested, needs review · 2 files\n",
        "\n! Needs review: A: `test` passes only with the changed tests/a.py: without it, it failed (and 1 more)\n",
        "\n  · git show 1111111111, then verdone accept A or verdone reject A\n",
        "\n1 verified, 1 needs review; 2 of 2 stories done in the plan\n",
        "\n2 commits on verdone/5f3a, not landed on main yet (waiting for verdone accept A)\n",
        "\nNext: verdone show A\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let page = story(&j.view(), &StoryId::from("A"), &wide()).unwrap();
    for line in [
        "\n  needs review, agent-tested · 1 attempt",
        "\n  Needs review, because:\n  ! `test` passes only with the changed tests/a.py: without it, it failed\n  ! .envrc will run outside\n",
        "\n  To review it:\n    git show 1111111111 · shows the work\n    verdone accept A · checks it again and accepts it\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    let extra = Extra { claimed: Vec::new(), open: Vec::new(), run_dir: None, zone: TimeZone::UTC };
    let report = markdown(&j.view(), &extra);
    for line in
        ["## Needs review (1)", "git show 1111111111`, which later stories build on", "`verdone accept A` or `verdone reject A`"]
    {
        assert!(report.contains(line), "{line}\n{report}");
    }
}

#[test]
fn several_that_wait_are_listed_and_the_command_names_none_of_them() {
    let mut j = Journal::new();
    j.start(7);
    for (at, id) in ["A", "B", "C", "D", "E", "F", "G"].into_iter().enumerate() {
        j.select(id, "T", 1, (at + 1, 7, 7)).set_aside('c', Proof::Untested, &["why"]);
    }
    end(&mut j, Finish::Blocked);
    let text = summary(&j.view(), &wide());
    assert!(text.contains("\n7 need review; 0 of 7 stories done in the plan\nNeeds review: A: why\n"), "{text}");
    assert!(text.contains("\nNeeds review: E: why\nand 2 more to review\n"), "{text}");
    assert!(text.contains("\nNext: verdone review\n"), "{text}");
    assert_eq!(results(&j.view()), "7 need review");
}

#[test]
fn what_a_person_said_is_shown_with_their_name() {
    let mut j = stacked();
    end(&mut j, Finish::Blocked);
    j.event(9, accepted("A", "Jo <jo@example.com>"));
    assert!(lines(&j).contains("\n✓ Accepted A as 3333333333 · untested · by Jo <jo@example.com>\n"));
    assert!(log(&j).contains("✓ Accepted A as 3333333333, untested, by Jo <jo@example.com>: `test` passes only"));
    let page = story(&j.view(), &StoryId::from("A"), &wide()).unwrap();
    assert!(page.contains("\n  accepted, untested · 1 attempt"), "{page}");
    assert!(page.contains("\n  Accepted by Jo <jo@example.com>, who was shown:\n  ! `test`"), "{page}");
    assert!(!page.contains("To review it"), "{page}");
    let text = summary(&j.view(), &wide());
    assert!(text.contains("\n1 verified, 1 accepted; 2 of 2 stories done in the plan\n"), "{text}");
    assert!(text.contains("not landed on main yet (verdone land)"), "{text}");
    let text = status(&j.view(), Timestamp::UNIX_EPOCH, &wide());
    assert!(text.contains("1 story is left for you to review; since then, A was accepted\n"), "{text}");
    assert!(text.contains("Next     verdone land\n"), "{text}");

    let mut j = stacked();
    end(&mut j, Finish::Blocked);
    j.event(9, Event::Refused { story: StoryId::from("A"), by: "Jo".to_owned() });
    let text = status(&j.view(), Timestamp::UNIX_EPOCH, &wide());
    assert!(text.contains("since then, A was rejected\n") && text.contains("Next     verdone run PLAN.md\n"), "{text}");
    assert!(lines(&j).contains("\n✗ A was rejected by Jo\n") && log(&j).contains("✗ A was rejected by Jo\n"));
    let page = story(&j.view(), &StoryId::from("A"), &wide()).unwrap();
    assert!(page.contains("\n  failed · 1 attempt") && page.contains("\n  Failed: rejected by Jo\n"), "{page}");
}

fn ran(name: &str, outcome: CheckOutcome) -> CheckRun {
    let check =
        verdone_core::check::Check::own(CommandSpec::Shell(name.to_owned()), verdone_core::base::span::Span::from_secs(1));
    CheckRun { outcome, ..CheckRun::pending(&check) }
}

#[test]
fn a_verification_by_itself_has_its_result_its_reasons_and_each_tree() {
    let trees = TreeIds { base: Some(oid('6')), pristine: Some(oid('8')), ..TreeIds::of_attempt(oid('7')) };
    let empty = VerifyReport::empty(Surface::Verify, None, trees);
    let runs = [
        (Tree::Base, vec![ran("own", CheckOutcome::Failed { code: 1 })]),
        (Tree::Attempt, vec![ran("own", CheckOutcome::Passed)]),
    ];
    let reasons = vec![Reason::Doubt(Doubt::AutorunChanged { files: vec![".envrc".to_owned()] }), Reason::Note(Note::NoTests)];
    let needs =
        VerifyReport { outcome: Outcome::NeedsReview, proof: Some(Proof::Verified), reasons, runs: runs.into(), ..empty.clone() };
    let page = |report: VerifyReport, not_run: &[&str]| {
        let not_run = not_run.iter().map(ToString::to_string).collect();
        let (notes, took_ms) = (Vec::new(), BTreeMap::from([(Tree::Base, 1_300)]));
        verification(&Verified { report, range: None, seal: None, notes, took_ms, not_run }, &wide())
    };
    assert_eq!(
        page(needs, &[]).lines().collect::<Vec<_>>(),
        [
            "! Needs review, verified",
            "  ! The story's scope does not name .envrc, which will run outside the workspace",
            "  · The attempt added or changed no test",
            "· Before the work · 1.3s",
            "  · own failed with exit code 1 · 0s",
            "· With the work · cached",
            "  ✓ own passed · 0s",
        ]
    );
    let failed = VerifyReport { reasons: vec![Reason::Failure(Failure::NothingChanged)], ..empty };
    assert_eq!(
        page(failed, &["lint", "e2e"]),
        "✗ Failed\n  ✗ No file was changed\n  · Not run, because an earlier stage failed: lint, e2e\n"
    );
}

proptest! {
    #[test]
    fn hostile_reasons_and_names_steer_nothing(reason in any::<String>(), by in any::<String>(), id in any::<String>()) {
        let mut j = Journal::new();
        j.start(1).select(&id, "T", 1, (1, 1, 1)).set_aside('c', Proof::Untested, &[&reason]);
        end(&mut j, Finish::Blocked);
        let waiting = j.view();
        j.event(1, accepted(&id, &by));
        let style = Style { width: 80, ..Style::default() };
        for view in [waiting, j.view()] {
            let shown = story(&view, &StoryId(id.clone()), &style).unwrap();
            for page in [summary(&view, &style), status(&view, Timestamp::UNIX_EPOCH, &style), shown] {
                prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{:?}", page);
            }
        }
        prop_assert!(!lines(&j).chars().any(|c| c.is_control() && c != '\n'));
        prop_assert!(!log(&j).chars().any(|c| c.is_control() && c != '\n'));
    }
}
