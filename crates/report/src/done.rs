//! How a session stands: one line per condition, each followed by what to do about it.

use verdone_core::done::{ConditionOutcome, DoneReport, DoneState, JudgedCondition};

use crate::width::clean;

/// The page of `verdone done`.
pub fn done_page(report: &DoneReport, session: &str, story: Option<&str>, complexity: u8) -> String {
    let open = report.open().len();
    let first = match (report.standing(), open) {
        (DoneState::Done, _) => "Done: every required condition is met".to_owned(),
        (DoneState::Unknown | DoneState::Open, 1) => "Not done: 1 condition is not met".to_owned(),
        (DoneState::Unknown | DoneState::Open, open) => format!("Not done: {open} conditions are not met"),
    };
    let story = story.map(|story| format!("story {}, ", clean(story))).unwrap_or_default();
    let mut out = format!("{first} (session {}, {story}complexity {complexity}).\n\n", clean(session));
    let (required, others): (Vec<&JudgedCondition>, Vec<&JudgedCondition>) =
        report.conditions.iter().partition(|judged| judged.required);
    out.extend(required.into_iter().map(lines));
    if !others.is_empty() {
        out.push_str("\nNot required:\n");
        out.extend(others.into_iter().map(lines));
    }
    out
}

fn lines(judged: &JudgedCondition) -> String {
    let (why, todo) = match &judged.outcome {
        ConditionOutcome::Held { by } => (by, None),
        ConditionOutcome::NotNeeded { why } | ConditionOutcome::Unknown { why } => (why, None),
        ConditionOutcome::Missing { why, todo } => (why, Some(todo).filter(|_| judged.required)),
    };
    let prover = judged.prover.to_string();
    let mut out =
        format!("{:<10}  {:<24} by {:<17} {}\n", judged.outcome.describe(), clean(&judged.name), clean(&prover), clean(why));
    out.extend(todo.map(|todo| format!("{:<10}  to do: {}\n", "", clean(todo))));
    out
}
