use super::*;
use verdone_testlog::{TestCounts, TestOutcome};

fn line(event: &str, record: &Record) -> String {
    let mut value = serde_json::to_value(record).unwrap();
    value["at"] = "2026-11-15T08:00:00Z".into();
    value["event"] = event.into();
    value.to_string()
}

fn decided(tool: &str, verdict: PolicyVerdict, rule: Option<&str>, needs_human: bool) -> Record {
    Record::Decided {
        tool: tool.to_owned(),
        id: None,
        verdict,
        rule: rule.map(str::to_owned),
        place: None,
        about: Some(format!("about {tool}")),
        reason: "because".to_owned(),
        needs_human,
    }
}

fn ran(tool: &str, failed: bool, files: &[&str]) -> Record {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    Record::Ran { tool: tool.to_owned(), id: None, failed, interrupted: false, duration_ms: 10, files }
}

fn tests(state: TestState) -> Record {
    let (counts, failures) = (TestCounts::default(), Vec::new());
    Record::Tests { outcome: TestOutcome { framework: None, state, counts, failures, reason: None, hidden: false } }
}

fn tally(lines: impl IntoIterator<Item = String>) -> SessionTally {
    let mut tally = SessionTally::default();
    lines.into_iter().for_each(|line| tally.add_line(&line));
    tally
}

#[test]
fn every_record_of_a_session_is_added_up() {
    let spent = Spent { micro_usd: 4_800, input_tokens: 600, output_tokens: 120, at_least: false };
    let seen = tally([
        line("SessionStart", &Record::Started { source: "startup".to_owned() }),
        line("UserPromptSubmit", &Record::Prompt { refused_by: None, text: "Do it".to_owned() }),
        line("UserPromptSubmit", &Record::Prompt { refused_by: Some("mine".to_owned()), text: String::new() }),
        line("PreToolUse", &decided("Bash", PolicyVerdict::Allow, None, false)),
        line("PreToolUse", &decided("Bash", PolicyVerdict::Deny, Some("push"), false)),
        line("PreToolUse", &decided("Web", PolicyVerdict::Deny, None, true)),
        line("PostToolUse", &ran("Bash", false, &["/p/a"])),
        line("PostToolUseFailure", &ran("Bash", true, &["/p/b"])),
        line("PostToolUseFailure", &ran("Edit", true, &["/p/c"])),
        line("PostToolUse", &ran("Edit", false, &["/p/a"])),
        line("PostToolUse", &tests(TestState::Passed)),
        line("PostToolUse", &tests(TestState::Failed)),
        line("PostToolUse", &tests(TestState::Broken)),
        line("PostToolUse", &tests(TestState::NothingRan)),
        line("ConfigChange", &Record::Settings { source: "x".to_owned(), file: None, refused: true }),
        line("StopFailure", &Record::TurnFailed { error: "server_error".to_owned() }),
        line("SubagentStart", &Record::Seen),
        line("Stop", &Record::Failed(Failed { cause: "x".to_owned(), denied: false })),
        line("SessionEnd", &Record::Spent(Spent { micro_usd: 1, ..spent })),
        line("SessionEnd", &Record::Spent(spent)),
        line("SessionEnd", &Record::Ended { reason: "other".to_owned() }),
    ]);
    assert_eq!((seen.prompts, seen.prompts_refused, seen.subagents), (2, 1, 1));
    assert_eq!((seen.calls, seen.failed, seen.denied, seen.needs_human, seen.tool_ms), (4, 2, 2, 1, 40));
    assert_eq!(seen.tools["Bash"], ToolTally { calls: 2, failed: 1, denied: 1, ms: 20 });
    assert_eq!(seen.denials["push"], DenialTally { count: 1, needs_human: 0, about: Some("about Bash".to_owned()) });
    assert_eq!(seen.denials["(no rule)"].needs_human, 1);
    assert_eq!(seen.files.iter().map(String::as_str).collect::<Vec<_>>(), ["/p/a", "/p/b"], "a failed edit wrote nothing");
    assert_eq!(seen.tests, TestTally { passed: 1, failed: 1, broken: 1, nothing_ran: 1 });
    assert_eq!((seen.settings_changed, seen.settings_refused, seen.turns_failed), (1, 1, 1));
    assert_eq!(seen.spent, Some(spent), "the books go on, so the last entry is the sum");
    assert_eq!((seen.ended.as_deref(), seen.unread), (Some("other"), 0));
    assert_eq!(seen.first, "2026-11-15T08:00:00Z".parse().ok());
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_change_nothing_else() {
    let good = line("PostToolUse", &ran("Read", false, &[]));
    let cut = good[..good.len() / 2].to_owned();
    let unknown = r#"{"at":"2026-11-15T08:00:00Z","record":"from_the_future","x":1}"#;
    let wrong = r#"{"at":5,"record":"seen"}"#;
    let odd_time = r#"{"at":"yesterday","record":"seen","more":[1,{}]}"#;
    let lines = [good.clone(), cut, String::new(), unknown.to_owned(), wrong.to_owned(), odd_time.to_owned(), "[]".to_owned()];
    let seen = tally(lines);
    assert_eq!((seen.calls, seen.unread), (1, 5));
    assert_eq!(seen, SessionTally { unread: 5, ..tally([good]) });
}

#[test]
fn a_resumed_session_has_not_ended() {
    let ended = line("SessionEnd", &Record::Ended { reason: "other".to_owned() });
    let resumed = line("SessionStart", &Record::Started { source: "resume".to_owned() });
    assert_eq!(tally([ended.clone(), resumed.clone()]).ended, None);
    assert_eq!(tally([resumed, ended]).ended.as_deref(), Some("other"));
}

#[test]
fn what_is_listed_is_bounded_and_the_rest_is_counted() {
    let seen = tally((0..3_000).flat_map(|n| {
        let (name, file) = (format!("tool{n}"), format!("/p/{n}"));
        [
            line("PostToolUse", &ran(&name, false, &[&file])),
            line("PreToolUse", &decided("Bash", PolicyVerdict::Deny, Some(&name), false)),
        ]
    }));
    assert_eq!((seen.calls, seen.denied), (3_000, 3_000));
    assert_eq!((seen.files.len(), seen.unlisted_writes), (MOST_FILES, 2_000));
    assert!(seen.tools.len() <= MOST_NAMES + 1 && seen.denials.len() <= MOST_NAMES + 1);
    assert_eq!(seen.tools.values().map(|tool| tool.calls).sum::<u64>(), 3_000);
    assert_eq!(seen.denials.values().map(|rule| rule.count).sum::<u64>(), 3_000);
}

#[test]
fn faults_are_counted_with_their_causes() {
    let mut seen = FaultTally::default();
    for n in 0..30 {
        let cause = format!("cause {n}");
        seen.add_line(&line("PreToolUse", &Record::Failed(Failed { cause, denied: n % 2 == 0 })));
    }
    seen.add_line("{\"at\":");
    assert_eq!((seen.failures, seen.denied, seen.causes.len()), (31, 15, MOST_CAUSES));
    assert_eq!((seen.cause.as_str(), seen.last), ("its record cannot be read", "2026-11-15T08:00:00Z".parse().ok()));
}
