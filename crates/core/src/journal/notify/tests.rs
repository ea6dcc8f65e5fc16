use jiff::tz::TimeZone;

use super::*;
use crate::base::id::{Oid, StoryId};
use crate::base::redact::Redactor;
use crate::check::CheckOutcome;
use crate::check::tests::ran;
use crate::config::config_of_one_file;
use crate::journal::event::Place;
use crate::verify::{Outcome, Proof};

fn place(story: &str) -> Place {
    Place { story: StoryId::from(story), attempt: 1, turn: 1 }
}

fn started(session: Option<&str>) -> Event {
    let event = serde_json::json!({
        "event": "run_started", "run": "r1", "version": "0", "plan": "PLAN.md", "format": "f", "agent": "a", "mode": "building",
        "stories": 3, "open": 3, "branch": null, "head": null, "frozen": "", "max_iterations": 0, "unchecked": false, "session": session,
    });
    serde_json::from_value(event).unwrap()
}

fn selected(story: &str) -> Event {
    Event::StorySelected { iteration: 1, place: place(story), title: format!("Title of {story}"), number: 1, of: 3, open: 3 }
}

fn committed(story: &str) -> Event {
    let (commit, tree, base) = (Oid::from("c"), Oid::from("t"), None);
    let (proof, outcome, criteria) = (Proof::Verified, Outcome::Done, Vec::new());
    Event::Committed { place: place(story), commit, tree, proof, outcome, base, files: 1, criteria, evidence: None, noted: true }
}

fn needs_review(story: &str) -> Event {
    let reasons = vec!["the tests changed".to_owned(), "and more".to_owned()];
    Event::ReviewNeeded { place: place(story), work: Oid::from("w"), base: None, proof: Proof::Untested, reasons }
}

fn ended(finish: Finish) -> [Event; 2] {
    let reason = "20 iterations are used up".to_owned();
    [Event::RunStopping { finish, reason }, Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms: 1 }]
}

fn regressed(story: &str) -> Event {
    let runs = vec![ran("make test", CheckOutcome::Failed { code: 1 })];
    Event::Regressed { story: StoryId::from(story), runs, again: false }
}

fn waits(why: WaitCause, ahead: bool) -> Event {
    let until = "2026-01-31T12:30:00Z".parse().unwrap();
    Event::WaitStarted { place: place("A"), why, reason: String::new(), until, ahead }
}

fn observed(events: impl IntoIterator<Item = Event>) -> Vec<Notification> {
    let mut announcer = Announcer::new("my-app", TimeZone::UTC);
    events.into_iter().filter_map(|event| announcer.observe(&event)).map(|(_, notification)| notification).collect()
}

#[test]
fn each_kind_says_what_happened_in_one_line() {
    let rejected = Event::AttemptRejected { place: place("A"), rejection: Rejection::UsageLimit, reason: "used up".to_owned() };
    let question = Request::Question {
        story: StoryId::from("A"),
        reason: String::new(),
        question: "Which port?".to_owned(),
        carried: false,
    };
    for (events, kind, text) in [
        (
            vec![selected("A"), Event::Asked { request: question }],
            "question",
            "A (Title of A) waits for your answer: Which port?",
        ),
        (vec![selected("A"), needs_review("A")], "needs-review", "A (Title of A) needs a review: the tests changed"),
        (vec![needs_review("A")], "needs-review", "A needs a review: the tests changed"),
        (vec![waits(WaitCause::UsageLimit, false)], "usage-limit", "usage limit reached; the run waits until 2026-01-31 12:30"),
        (vec![waits(WaitCause::UsageLimit, true)], "usage-limit", "a usage limit is near; the run waits until 2026-01-31 12:30"),
        (vec![rejected], "usage-limit", "usage limit reached, and the run does not wait: used up"),
        (vec![selected("A"), regressed("A")], "regression", "A (Title of A) was done and fails now: make test"),
    ] {
        let found = observed(events);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind.as_str(), found[0].text.as_str()), (kind, format!("Verdone, my-app: {text}").as_str()));
        assert_eq!(found[0].story.as_deref(), Some("A"));
    }
}

#[test]
fn the_end_counts_what_was_done_and_says_why() {
    let work = |finish| [vec![started(None), committed("A"), committed("B")], ended(finish).to_vec()].concat();
    let last = |events: Vec<Event>| observed(events).pop().unwrap();
    let complete = last(work(Finish::Complete));
    assert_eq!(complete.text, "Verdone, my-app: the run is complete; 2 stories done");
    assert_eq!((complete.run.as_deref(), complete.plan.as_deref()), (Some("r1"), Some("PLAN.md")));
    assert_eq!((complete.finish_type.as_deref(), complete.exit_code), (Some("complete"), Some(0)));
    let limit = last(work(Finish::MaxIterations));
    assert_eq!(limit.kind, "finish");
    assert_eq!(limit.text, "Verdone, my-app: the run ended (max_iterations): 20 iterations are used up; 2 stories done");
    let rest = [regressed("A"), needs_review("B"), Event::StoryFailed { story: StoryId::from("C"), reason: String::new() }];
    let begun = [started(Some("s1")), committed("A"), committed("B")];
    let blocked = last(begun.into_iter().chain(rest).chain(ended(Finish::Blocked)).collect());
    assert_eq!(blocked.kind, "blocked");
    let expected = "Verdone, my-app: the session loop ended (blocked): 20 iterations are used up; 0 stories done, 1 needs a review, 1 failed";
    assert_eq!(blocked.text, expected);
}

#[test]
fn whoever_stops_a_run_and_whoever_waits_for_the_service_is_not_disturbed() {
    assert_eq!(observed(ended(Finish::Manual)), []);
    assert_eq!(observed([waits(WaitCause::ServiceError, false), selected("A"), committed("A")]), []);
}

/// A failed turn, and the wait after it that ends at this second.
fn fails(until: i64) -> [Event; 2] {
    let until = jiff::Timestamp::from_second(until).unwrap();
    let (why, reason) = (WaitCause::ServiceError, "529 Overloaded".to_owned());
    let outcome = serde_json::json!({ "api_error": { "reason": "529 Overloaded", "retryable": true } });
    [turn_ended(&outcome), Event::WaitStarted { place: place("A"), why, reason, until, ahead: false }]
}

fn turn_ended(outcome: &serde_json::Value) -> Event {
    let event = serde_json::json!({ "event": "turn_ended", "place": place("A"), "outcome": outcome, "duration_ms": 1, "usage": {},
        "prompt": null, "output": null, "leftovers": 0 });
    serde_json::from_value(event).unwrap()
}

#[test]
fn an_outage_that_lasts_is_told_once_and_a_new_one_again() {
    let short = [2, 6, 14, 30, 60].map(fails).concat();
    assert_eq!(observed(short.clone()), [], "services are overloaded for a minute every day");
    let long = [short, [130, 300, 500, 20_000].map(fails).concat()].concat();
    let told = observed(long.clone());
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].kind.as_str(), told[0].title.as_str()), ("outage", "Verdone: service outage"));
    let text = "Verdone, my-app: the agent's service has been failing for minutes; the run keeps trying: 529 Overloaded";
    assert_eq!((told[0].text.as_str(), told[0].story.as_deref()), (text, Some("A")));
    let works = vec![turn_ended(&serde_json::json!("ended"))];
    let again = [30_000, 30_200].map(fails).concat();
    assert_eq!(observed([long, works, again].concat()).len(), 2);
}

#[test]
fn every_end_is_a_finish_and_the_other_kinds_are_chosen_one_by_one() {
    let settings = |on: &[NotifyKind]| NotifySettings { on: on.to_vec(), ..NotifySettings::default() };
    assert!(NotifyKind::ALL.iter().all(|kind| NotifySettings::default().wants(*kind)));
    let finish = settings(&[NotifyKind::Finish]);
    let wanted: Vec<&str> = NotifyKind::ALL.into_iter().filter(|kind| finish.wants(*kind)).map(NotifyKind::name).collect();
    assert_eq!(wanted, ["finish", "blocked"]);
    assert!(!settings(&[NotifyKind::Blocked]).wants(NotifyKind::Finish));
}

#[test]
fn secrets_and_control_characters_do_not_leave_and_a_long_reason_is_cut() {
    let redactor = Redactor::new([("API_TOKEN".to_owned(), "correct-horse-battery-staple".to_owned())]);
    let sentence = format!("a\u{1b}[31m\nb correct-horse-battery-staple {}", "ü".repeat(1_000));
    let notification = Notification::new(NotifyKind::Question, "my-app", &sentence).cleaned(&redactor);
    let text = &notification.text;
    assert!(text.contains("[redacted:API_TOKEN]") && text.ends_with('…') && text.len() < 700, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(notification.variables().contains(&("VERDONE_NOTIFY_TEXT", text.clone())));
}

#[test]
fn the_config_names_channels_and_kinds_and_refuses_what_cannot_work() {
    let text = "[notify]\non = [\"finish\", \"question\"]\ndesktop = \"terminal\"\ncommand = [\"espeak\"]\ntimeout = \"3s\"\n\
                [notify.webhook]\nurl = \"https://example.com/xyzzy\"\nretries = 0\n";
    let settings = config_of_one_file("c.toml", text).unwrap().notify;
    assert_eq!(settings.on, [NotifyKind::Finish, NotifyKind::Question]);
    assert!(settings.has_channel() && !NotifySettings::default().has_channel());
    assert!(!format!("{settings:?}").contains("xyzzy"));
    for (text, place, words) in [
        ("[notify]\non = [\"finnish\"]\n", "c.toml:2:7", "finnish"),
        ("[notify]\ndesktop = \"dbus\"\n", "c.toml:2:11", "`notify.desktop` cannot be \"dbus\""),
        ("[notify]\ncommand = []\n", "c.toml:2:11", "the command is empty"),
        ("[notify]\ntimeout = \"off\"\n", "c.toml:2:11", "needs a timeout"),
        ("[notify.webhook]\nurl = \"ftp://x/xyzzy\"\n", "c.toml:2:7", "begins with https:// or http://"),
        ("[notify.webhook]\nurl_variable = \"A B\"\n", "c.toml:2:16", "not the name of a variable"),
        ("[notify.webhook]\nurl = \"https://x/xyzzy\"\nurl_variable = \"A\"\n", "c.toml:3:16", "has an address already"),
        ("[notify.webhook]\nretries = 11\n", "c.toml:2:11", "at most 10"),
    ] {
        let problem = config_of_one_file("c.toml", text).unwrap_err().to_string();
        assert!(problem.starts_with(place) && problem.contains(words), "{text}: {problem}");
        assert!(!problem.contains("xyzzy"), "{problem}");
    }
}
