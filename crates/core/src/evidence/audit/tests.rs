mod bookkeeping;
mod missing;
mod rewritten;

use proptest::prelude::*;

use super::*;
use crate::base::verdict::Red;
use crate::check::{CheckOrigin, CheckOutcome};
use crate::evidence::tests::{changed_test, evidence, noted};
use crate::journal::event::{Event, Place};
use crate::verify::{Outcome, ProvenCriterion};

/// A linear history: one foreign commit, then one commit per story, each with its note.
struct Line {
    history: History,
    last: Option<String>,
}

fn id(number: usize) -> Oid {
    Oid(format!("{number:040x}"))
}

fn tree(number: usize) -> Oid {
    Oid(format!("{:040x}", 1_000 + number))
}

impl Line {
    fn with_stories(stories: usize) -> Self {
        let first = CommitFacts {
            id: id(0),
            tree: tree(0),
            parents: Vec::new(),
            subject: "initial".to_owned(),
            trailers: Trailers::default(),
        };
        let mut line = Self { history: History { commits: vec![first], ..History::default() }, last: None };
        (1..=stories).for_each(|number| line.story(number, |_| {}, false));
        line
    }

    /// Adds a story; `change` edits its evidence before the commit and note are made.
    fn story(&mut self, number: usize, change: impl FnOnce(&mut Evidence), rewritten_by_a_hook: bool) {
        let mut found = evidence(&format!("US-{number}"), "Title");
        found.tree = tree(number);
        found.base = Some(id(number - 1));
        found.previous = self.last.take();
        change(&mut found);
        let message = found.commit_message("{id}", None);
        if rewritten_by_a_hook {
            let second = Evidence { tree: tree(500 + number), ..found.clone() };
            found = second.in_place_of(&found);
        }
        let commit = CommitFacts {
            id: id(number),
            tree: found.tree.clone(),
            parents: vec![id(number - 1)],
            subject: message.lines().next().unwrap_or_default().to_owned(),
            trailers: Trailers::read(&message),
        };
        self.history.commits.insert(0, commit);
        self.history.notes.insert(id(number), GitNote::Bytes(found.to_note().into_bytes()));
        self.last = Some(found.digest());
    }

    /// Adds a journal that records every commit in its current form.
    fn with_journal(mut self) -> Self {
        let run = RunId::from("r1");
        self.history.journals.runs.insert(run.clone(), true);
        self.history.journals.add_event(&run, started("PLAN.md"));
        for commit in self.history.commits.iter().rev() {
            let Some(note) = self.history.notes.get(&commit.id) else { continue };
            let event = committed(&commit.id, &note.evidence().unwrap(), Some(note.digest()));
            self.history.journals.add_event(&run, event);
        }
        self.history.branches.insert("main".to_owned());
        self
    }

    /// Removes the newest commits, as `git reset` does.
    fn reset_to(&mut self, number: usize) {
        let at = self.history.commits.iter().position(|commit| commit.id == id(number)).unwrap();
        for gone in self.history.commits.drain(..at) {
            self.history.apart.parents.insert(gone.id, gone.parents);
        }
    }

    fn missing(&self) -> Vec<String> {
        audit(&self.history).missing.iter().map(|gone| gone.story.0.clone()).collect()
    }

    fn commit(&mut self, number: usize) -> &mut CommitFacts {
        self.history.commits.iter_mut().find(|commit| commit.id == id(number)).unwrap()
    }

    fn edit_note(&mut self, number: usize, edit: impl FnOnce(String) -> String) {
        let Some(GitNote::Bytes(bytes)) = self.history.notes.get(&id(number)) else { panic!("no note") };
        let edited = edit(String::from_utf8(bytes.clone()).unwrap());
        self.history.notes.insert(id(number), GitNote::Bytes(edited.into_bytes()));
    }

    /// Story and kind of every problem.
    fn problems(&self) -> Vec<(String, String)> {
        let found = audit(&self.history);
        assert_eq!(found.holds, found.missing.is_empty() && found.stories.iter().all(|story| story.problems.is_empty()));
        let told = |story: &Audited| {
            let name = story.name().to_owned();
            story.problems.iter().map(move |problem| (name.clone(), problem.kind.clone())).collect::<Vec<_>>()
        };
        found.stories.iter().flat_map(told).collect()
    }

    fn remarks(&self) -> Vec<String> {
        audit(&self.history).stories.iter().flat_map(|story| story.remarks.iter().map(|told| told.kind.clone())).collect()
    }
}

fn started(plan: &str) -> Event {
    Event::RunStarted {
        run: RunId::from("r1"),
        version: String::new(),
        plan: plan.to_owned(),
        format: String::new(),
        agent: String::new(),
        mode: String::new(),
        stories: 1,
        open: 1,
        branch: Some("main".to_owned()),
        head: None,
        target: None,
        seal: None,
        frozen: String::new(),
        max_iterations: 0,
        unchecked: false,
        gates: None,
        reviews: BTreeMap::new(),
        session: None,
        evidence: None,
    }
}

fn committed(commit: &Oid, found: &Evidence, evidence: Option<String>) -> Event {
    Event::Committed {
        place: Place { story: found.story.clone(), attempt: 1, turn: 1 },
        commit: commit.clone(),
        tree: found.tree.clone(),
        proof: found.proof,
        outcome: found.outcome,
        base: found.base.clone(),
        files: 1,
        criteria: Vec::new(),
        evidence,
        noted: true,
    }
}

fn undone(story: &str, tip: usize) -> Event {
    Event::Undone { what: String::new(), story: Some(StoryId::from(story)), tip: Some(id(tip)) }
}

fn regressed(story: &str) -> Event {
    Event::Regressed { story: StoryId::from(story), runs: Vec::new(), again: false }
}

fn told(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(story, kind)| ((*story).to_owned(), (*kind).to_owned())).collect()
}

#[test]
fn an_honest_history_holds_with_and_without_its_journal() {
    for line in [Line::with_stories(3), Line::with_stories(3).with_journal()] {
        let found = audit(&line.history);
        assert!(found.holds, "{found:#?}");
        let names: Vec<&str> = found.stories.iter().map(Audited::name).collect();
        assert_eq!(names, ["US-1", "US-2", "US-3"], "oldest first");
        assert_eq!((found.others, found.notes), (0, 3), "what came before the first story is nobody's business");
        assert_eq!(line.remarks(), Vec::<String>::new());
    }
}

#[test]
fn each_kind_of_damage_has_its_own_name() {
    type Damage = fn(&mut Line);
    let table: [(Damage, &[(&str, &str)]); 12] = [
        (|line| line.edit_note(2, |note| note.replace("\"turns\": 1", "\"turns\": 7")), &[("US-2", "note_edited")]),
        (|line| drop(line.history.notes.remove(&id(2))), &[("US-2", "note_missing")]),
        (
            |line| {
                let note = line.history.notes.remove(&id(2)).unwrap();
                line.history.notes.insert(id(0), note);
            },
            &[("initial", "note_of_another"), ("US-2", "note_moved")],
        ),
        (
            |line| {
                let (one, two) = (line.history.notes[&id(1)].clone(), line.history.notes[&id(2)].clone());
                line.history.notes.insert(id(1), two);
                line.history.notes.insert(id(2), one);
            },
            &[("US-1", "note_of_another"), ("US-2", "note_of_another")],
        ),
        (|line| line.commit(2).tree = tree(99), &[("US-2", "tree_differs")]),
        (
            |line| {
                let note = line.history.notes.remove(&id(3)).unwrap();
                line.history.notes.insert(id(77), note);
                line.commit(3).tree = tree(99);
            },
            &[("US-3", "commit_rewritten")],
        ),
        // The second story is removed from the history, which git allows.
        (
            |line| {
                line.history.commits.retain(|commit| commit.id != id(2));
                line.commit(3).parents = vec![id(1)];
            },
            &[("US-3", "commit_rebased"), ("US-3", "chain_lost")],
        ),
        (
            |line| {
                line.commit(2).trailers.proof = Some("unproven".to_owned());
            },
            &[("US-2", "message_differs")],
        ),
        (|line| line.commit(2).trailers.evidence.push("sha256:other".to_owned()), &[("US-2", "names_several")]),
        (|line| line.commit(2).trailers = Trailers::default(), &[("US-2", "names_none")]),
        (
            |line| {
                let trailers = line.commit(1).trailers.clone();
                line.commit(3).trailers = trailers;
                let note = line.history.notes[&id(1)].clone();
                line.history.notes.insert(id(3), note);
            },
            &[("US-1", "commit_copied"), ("US-1", "tree_differs")],
        ),
        (
            |line| {
                line.history.notes.insert(id(2), GitNote::TooLarge(5_000_000));
            },
            &[("US-2", "note_edited"), ("US-2", "note_unreadable")],
        ),
    ];
    for (number, (damage, expected)) in table.into_iter().enumerate() {
        let mut line = Line::with_stories(3);
        damage(&mut line);
        assert_eq!(line.problems(), told(expected), "{number}");
    }
}

#[test]
fn the_journal_is_asked_where_it_is_here() {
    let mut line = Line::with_stories(2).with_journal();
    line.edit_note(2, |note| note.replace("\"turns\": 1", "\"turns\": 7"));
    assert_eq!(line.problems(), told(&[("US-2", "note_edited"), ("US-2", "journal_differs")]));

    let mut line = Line::with_stories(2).with_journal();
    line.history.journals.commits.remove(&id(2));
    assert_eq!(line.problems(), told(&[("US-2", "not_in_journal")]));
    line.history.journals.runs.insert(RunId::from("r1"), false);
    assert_eq!(line.problems(), told(&[]), "a journal with a hole knows less");
    assert_eq!(line.remarks(), ["journal_damaged"]);

    let mut line = Line::with_stories(1).with_journal();
    line.commit(1).trailers = Trailers::default();
    assert_eq!(line.problems(), told(&[]), "the journal names what the message does not");
    assert_eq!(line.remarks(), ["no_trailers"]);
}

#[test]
fn a_forged_proof_does_not_hold_even_where_every_digest_does() {
    let mut line = Line::with_stories(0);
    line.story(1, |found| found.red = Red::Green, false);
    let gate = CheckOrigin::Gate(crate::check::Stage::Quality);
    line.story(2, move |found| found.after.push(noted("lint", gate, CheckOutcome::Failed { code: 1 })), false);
    assert_eq!(line.problems(), told(&[("US-1", "proof_overclaimed"), ("US-2", "proof_overclaimed")]));
}

#[test]
fn an_agents_own_commit_with_forged_trailers_falls_alone() {
    let mut line = Line::with_stories(1);
    let forged = CommitFacts {
        id: id(50),
        tree: tree(50),
        parents: vec![id(1)],
        subject: "done".to_owned(),
        trailers: Trailers::read("Verdone-Story: US-9\nVerdone-Evidence: sha256:beef\n"),
    };
    line.story(2, |_| {}, false);
    line.history.commits.insert(1, forged);
    line.commit(2).parents = vec![id(50)];
    assert_eq!(line.problems(), told(&[("US-9", "note_missing")]));
}

#[test]
fn merged_branches_each_have_their_chain() {
    // Two lines from the same story, merged, and a story on top that follows one of them.
    let mut left = Line::with_stories(2);
    let follows_left = left.last.clone();
    let mut right = Line::with_stories(1);
    right.story(3, |found| found.base = Some(id(1)), false);
    right.commit(3).parents = vec![id(1)];
    left.history.commits.insert(0, right.commit(3).clone());
    left.history.notes.insert(id(3), right.history.notes[&id(3)].clone());
    let merge = CommitFacts {
        id: id(4),
        tree: tree(4),
        parents: vec![id(2), id(3)],
        subject: "merge".to_owned(),
        trailers: Trailers::default(),
    };
    left.history.commits.insert(0, merge);
    left.last = follows_left;
    left.story(5, |_| {}, false);
    assert_eq!(left.problems(), told(&[]));
    assert_eq!(audit(&left.history).others, 1);
}

#[test]
fn a_history_that_is_cut_off_is_said_and_no_accusation() {
    let mut line = Line::with_stories(3);
    line.history.commits.truncate(2);
    line.history.shallow = true;
    assert_eq!(line.problems(), told(&[]));
    assert_eq!(line.remarks(), ["history_cut_off"]);
    line.history.shallow = false;
    assert_eq!(line.problems(), told(&[("US-2", "commit_rebased"), ("US-2", "chain_lost")]));
}

#[test]
fn a_range_audits_its_own_commits_and_knows_the_others() {
    let mut line = Line::with_stories(3);
    line.history.range = Some(BTreeSet::from([id(0), id(3)]));
    let found = audit(&line.history);
    assert_eq!((found.stories.len(), found.others, found.holds), (1, 1, true));
}

#[test]
fn changed_tests_and_criteria_that_nothing_proved_are_named_and_hold() {
    let mut line = Line::with_stories(0);
    let change = |found: &mut Evidence| {
        let text = |text: &str| text.to_owned();
        found.protected = vec![changed_test()];
        let criterion = |name: &str, prover: Option<&str>| ProvenCriterion { text: text(name), prover: prover.map(text) };
        found.proof = Proof::Untested;
        found.criteria = vec![criterion("proven", Some("test")), criterion("only said", None)];
    };
    line.story(1, change, false);
    assert_eq!(line.problems(), told(&[]));
    let found = audit(&line.history);
    let texts: Vec<&str> = found.stories[0].remarks.iter().map(|remark| remark.text.as_str()).collect();
    let expected = ["changed tests or configuration: tests/a.rs", "nothing proved 1 of its 2 acceptance criteria: only said"];
    assert_eq!(texts, expected);
}

#[test]
fn a_trailer_of_an_older_version_is_read_as_the_word_of_today() {
    let mut line = Line::with_stories(0);
    line.story(1, |found| found.proof = Proof::Untested, false);
    for (word, expected) in
        [("unproven", &[][..]), ("verified", &[("US-1", "message_differs")]), ("odd", &[("US-1", "message_differs")])]
    {
        line.commit(1).trailers.proof = Some(word.to_owned());
        assert_eq!(line.problems(), told(expected), "{word}");
    }
}

#[test]
fn a_story_that_a_person_accepted_is_known_by_its_journal() {
    let run = RunId::from("r1");
    let mut line = Line::with_stories(1).with_journal();
    let take = |found: &mut Evidence| (found.outcome, found.proof) = (Outcome::Accepted, Proof::Untested);
    line.story(2, take, false);
    assert_eq!(line.problems(), told(&[("US-2", "not_in_journal")]));
    let found = line.history.notes[&id(2)].evidence().unwrap();
    let accepted = Event::Accepted {
        story: found.story.clone(),
        commit: id(2),
        tree: found.tree.clone(),
        base: found.base.clone(),
        proof: found.proof,
        by: "Jo".to_owned(),
        reasons: Vec::new(),
        evidence: found.digest(),
    };
    assert!(Journals::wants(b"accepted") && Journals::wants(b"refused"));
    line.history.journals.add_event(&run, accepted);
    assert_eq!((line.problems(), line.missing()), (told(&[]), Vec::new()));
    line.reset_to(1);
    assert_eq!(line.missing(), ["US-2"]);
    line.history.journals.add_event(&run, Event::Refused { story: found.story.clone(), by: "Jo".to_owned() });
    assert_eq!(line.missing(), Vec::<String>::new(), "a person took it back");
}

#[test]
fn what_runs_again_and_fails_does_not_hold() {
    let mut found = audit(&Line::with_stories(2).history);
    let run = |outcome| Rerun {
        name: "test".to_owned(),
        command: "make test".to_owned(),
        outcome,
        text: "failed with exit code 2".to_owned(),
        duration_ms: 5,
    };
    found.rerun(&id(1), vec![run(RerunOutcome::Flaky)], None);
    assert!(found.holds && found.stories[0].remarks[0].kind == "flaky_now");
    found.rerun(&id(2), vec![run(RerunOutcome::NotAllowed), run(RerunOutcome::Failed)], None);
    assert!(!found.holds);
    assert_eq!(found.stories[1].problems[0].text, "run again, test failed with exit code 2");
}

#[test]
fn a_proof_that_is_weaker_now_does_not_hold() {
    let run = |outcome| Rerun { name: String::new(), command: String::new(), outcome, text: String::new(), duration_ms: 0 };
    let now = |outcome, proof| Rejudged { outcome, proof, why: "the reason".to_owned() };
    let kinds = |outcome: RerunOutcome, now: &Rejudged| {
        let mut found = audit(&Line::with_stories(1).history);
        assert_eq!(found.stories[0].proof, Some(Proof::Verified));
        found.rerun(&id(1), vec![run(outcome)], Some(now));
        found.stories[0].problems.iter().map(|problem| problem.kind.clone()).collect::<Vec<_>>()
    };
    let verified = now(Outcome::Done, Some(Proof::Verified));
    assert!(kinds(RerunOutcome::Passed, &verified).is_empty() && kinds(RerunOutcome::Flaky, &verified).is_empty());
    for weaker in [
        now(Outcome::Done, Some(Proof::AgentTested)),
        now(Outcome::NeedsReview, Some(Proof::Verified)),
        now(Outcome::Failed, None),
    ] {
        assert_eq!(kinds(RerunOutcome::Passed, &weaker), ["weaker_now"], "{weaker:?}");
    }
    let unknown = now(Outcome::Done, Some(Proof::Untested));
    assert!(kinds(RerunOutcome::NotAllowed, &unknown).is_empty(), "without its own check nothing can be compared");
}

#[test]
fn a_commit_of_a_session_is_judged_by_the_same_rules() {
    let mut line = Line::with_stories(1).with_journal();
    line.story(2, |found| (found.run, found.session) = (RunId::from("loop-1"), Some("s1".to_owned())), false);
    line.commit(2).trailers.session = Some("s1".to_owned());
    assert_eq!(line.problems(), told(&[]), "no run's journal has to know it");
    let found = audit(&line.history);
    assert_eq!((found.stories[1].session.as_deref(), found.stories[1].journal), (Some("s1"), false));
    line.commit(2).trailers.session = Some("s2".to_owned());
    line.commit(2).tree = tree(99);
    assert_eq!(line.problems(), told(&[("US-2", "tree_differs"), ("US-2", "message_differs")]));
    line.commit(1).trailers.session = Some("s1".to_owned());
    assert_eq!(line.problems()[0], ("US-1".to_owned(), "message_differs".to_owned()), "a run's evidence is no session's");

    let mut line = Line::with_stories(1).with_journal();
    line.story(2, |found| found.session = Some("s1".to_owned()), false);
    assert_eq!(line.problems(), told(&[("US-2", "not_in_journal")]), "a run that has a journal is asked, whatever the note says");
}

#[test]
fn what_was_interrupted_does_not_hold() {
    let mut found = audit(&Line::with_stories(2).history);
    let run = |outcome| Rerun {
        name: "test".to_owned(),
        command: "make test".to_owned(),
        outcome,
        text: String::new(),
        duration_ms: 0,
    };
    found.rerun(&id(1), vec![run(RerunOutcome::Passed)], None);
    assert!(found.holds && !found.interrupted);
    found.rerun(&id(2), vec![run(RerunOutcome::Interrupted)], None);
    assert!(!found.holds && found.interrupted && found.stories.iter().all(Audited::holds));
    assert_eq!(found.stories[1].remarks[0].text, "not run again, because the audit was interrupted: test");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_single_byte_edit_of_a_note_is_detected(story in 1_usize..=3, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut line = Line::with_stories(3);
        let Some(GitNote::Bytes(bytes)) = line.history.notes.get_mut(&id(story)) else { panic!("no note") };
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let found = audit(&line.history);
        prop_assert!(!found.stories[story - 1].holds());
    }

    #[test]
    fn no_note_and_no_message_makes_it_panic(note in prop::collection::vec(any::<u8>(), 0..200), message in ".{0,200}") {
        let mut line = Line::with_stories(2);
        line.history.notes.insert(id(1), GitNote::Bytes(note));
        line.commit(2).trailers = Trailers::read(&message);
        let _ = audit(&line.history);
    }
}
