//! Where the commits are at the end of a run, and how well it was sealed.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_core::base::finish::Finish;
use verdone_core::journal::event::{Event, Seal, SealLevel};
use verdone_core::journal::view::RunView;
use verdone_core::verify::Proof;
use verdone_report::{Extra, Plain, Style, Verbosity, markdown, status, summary};

use crate::fixture::{Journal, oid};

/// Two commits and the end of the run, then these events.
fn run(finish: Finish, after: impl IntoIterator<Item = Event>) -> Journal {
    let mut j = Journal::new();
    j.start(2).select("A", "One", 1, (1, 2, 2)).committed('1', Proof::Verified);
    j.select("B", "Two", 1, (2, 2, 1)).committed('2', Proof::Verified);
    j.event(0, Event::RunStopping { finish, reason: "why".to_owned() });
    j.event(0, Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms: 1 });
    for event in after {
        j.event(1, event);
    }
    j
}

fn landed(from: char, to: char) -> Event {
    Event::Landed { branch: "main".to_owned(), from: oid(from), to: oid(to), left: 0 }
}

fn refused() -> Event {
    Event::LandingRefused { reason: "main has moved on".to_owned() }
}

fn wide() -> Style {
    Style { width: 200, ..Style::default() }
}

/// The summary's rows about commits and what to type.
fn end(view: &RunView) -> Vec<String> {
    let text = summary(view, &wide());
    let wanted = |line: &&str| line.contains("landed") || line.contains(" on verdone/") || line.starts_with("Next: ");
    text.lines().filter(wanted).map(str::to_owned).collect()
}

#[test]
fn the_summary_says_where_the_commits_are_and_what_to_type() {
    let open = "2 commits on verdone/5f3a, not landed on main yet (verdone land)";
    let land = "Next: verdone land";
    let all = "All commits have landed on main (2222222222)";
    for (after, expected) in [
        (vec![], vec![open, land]),
        (vec![refused()], vec![open, "Not landed: main has moved on", land]),
        (vec![landed('0', '2')], vec![all, "Next: verdone report"]),
        (vec![refused(), landed('0', '2')], vec![all, "Next: verdone report"]),
    ] {
        assert_eq!(end(&run(Finish::Complete, after.clone()).view()), expected, "{after:?}");
    }
    let timeout = "Next: verdone run PLAN.md";
    assert_eq!(end(&run(Finish::Timeout, []).view()), [open, timeout]);
}

#[test]
fn only_what_was_not_landed_is_counted() {
    let mut j = Journal::new();
    j.start(2).select("A", "One", 1, (1, 2, 2)).committed('1', Proof::Verified);
    j.event(0, Event::LandingStarted { to: oid('1') }).event(0, landed('0', '1'));
    j.select("B", "Two", 1, (2, 2, 1)).committed('2', Proof::Verified);
    j.event(0, Event::LandingStarted { to: oid('2') }).event(0, refused());
    assert_eq!(end(&j.view()), ["1 commit on verdone/5f3a, not landed on main yet", "Not landed: main has moved on"]);
}

#[test]
fn status_and_report_say_the_same_as_the_summary() {
    let view = run(Finish::Complete, [refused()]).view();
    let extra = Extra { claimed: Vec::new(), open: Vec::new(), run_dir: None, zone: TimeZone::UTC };
    for page in [status(&view, Timestamp::UNIX_EPOCH, &wide()), markdown(&view, &extra).replace('\\', "")] {
        for part in ["2 commits on verdone/5f3a, not landed on main yet", "Not landed: main has moved on", "verdone land"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}

#[test]
fn a_run_of_the_first_edition_has_nothing_to_land() {
    let mut view = run(Finish::Complete, []).view();
    (view.target, view.seal, view.branch) = (None, None, Some("main".to_owned()));
    let text = summary(&view, &wide());
    assert!(text.contains("\n2 commits on main\n") && text.ends_with("Next: verdone report\n"), "{text}");
}

#[test]
fn a_landing_counts_its_commits_where_the_run_made_all_of_them() {
    let after = [landed('0', '2'), landed('1', '2'), landed('9', '2'), refused()];
    let journal = run(Finish::Complete, after);
    let mut out = Vec::new();
    let mut plain = Plain::new(&mut out, Style::default(), Verbosity::Normal);
    for step in &journal.steps {
        step.show(&mut plain);
    }
    drop(plain);
    let text = String::from_utf8(out).unwrap();
    for line in [
        "✓ Landed 2 commits on main\n",
        "✓ Landed 1 commit on main\n",
        "✓ Landed on main: git log 9999999999..2222222222\n",
        "! Not landed: main has moved on\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_seal_is_named_only_where_something_is_missing() {
    use SealLevel::{Landlock, Unsealed, View};
    let namespaces = "user namespaces are not available";
    for (level, missing, container, expected) in [
        (View, None, false, None),
        (View, None, true, None),
        (
            View,
            Some("no overlay file system"),
            false,
            Some("Not fully sealed: no overlay file system (verdone doctor explains why)"),
        ),
        (
            Landlock,
            Some(namespaces),
            false,
            Some("Sealed by Landlock only: user namespaces are not available (verdone doctor explains why)"),
        ),
        (Unsealed, Some(namespaces), false, Some("Unsealed: user namespaces are not available (verdone doctor explains why)")),
        (Unsealed, None, true, Some("Unsealed, inside a container (verdone doctor explains why)")),
    ] {
        let missing = missing.map(str::to_owned).into_iter().collect();
        let mut j = Journal::sealed(Seal { missing, container, ..Seal::new(level) });
        j.start(1);
        let text = summary(&j.view(), &wide());
        let found = text.lines().find(|line| line.contains("ealed"));
        assert_eq!(found, expected, "{text}");
        let page = status(&j.view(), Timestamp::UNIX_EPOCH, &wide());
        assert_eq!(page.lines().find_map(|line| line.strip_prefix("Seal     ")), expected, "{page}");
    }
}

#[test]
fn a_list_of_hosts_is_named_wherever_the_seal_is() {
    let hosts = vec!["api.example.com".to_owned(), "*.example.org:443".to_owned()];
    let seal = Seal { agent_hosts: hosts, check_hosts: vec!["localhost:5432".to_owned()], ..Seal::new(SealLevel::View) };
    let mut j = Journal::sealed(seal);
    j.start(1);
    let expected = "The agent reaches only api.example.com, *.example.org:443; checks reach only localhost:5432";
    let page = status(&j.view(), Timestamp::UNIX_EPOCH, &wide());
    assert_eq!(page.lines().find_map(|line| line.strip_prefix("Network  ")), Some(expected), "{page}");
    let mut open = Journal::new();
    open.start(1);
    assert!(!status(&open.view(), Timestamp::UNIX_EPOCH, &wide()).contains("Network"));
}
