//! When work is done: named conditions, each with a prover, judged from facts.
//!
//! Pure: what was seen (git, gates, plan, claims, other tools' files) comes in as data, and a report of ordered outcomes goes out.
//! Nothing that an agent wrote proves what a gate, git, the plan or CI has to prove; what cannot be told is *unknown*, and that
//! never counts as held.

mod answer;
mod condition;
pub mod debris;
mod facts;
mod judge;
mod question;
mod record;
mod report;
mod settings;
pub mod source;
mod who;

pub use answer::{Answer, answer_schema, judge_answer, only_answer};
pub use condition::{Condition, Prover};
pub use facts::{Approval, CiFact, Claim, Facts, GateFact, GitFact, JudgeFact, Lessons, Memory, PlanFact, StateFile};
pub use judge::{Complexity, Prospect, Source, best_case, complexity, judge, stated_complexity};
pub use question::open_questions;
pub use record::JudgeRecord;
pub use report::{DoneReport, Judged, Outcome, Standing};
pub use settings::{CiSettings, DoneSettings, JudgeAgent, JudgeSettings, OwnCondition, Profile, RalphState};
pub use who::Judge;

/// The largest complexity of a task, and what an unknown one counts as: care is the default.
pub const MOST_COMPLEX: u8 = 10;
pub const UNKNOWN_COMPLEXITY: u8 = 7;
/// The condition that every task of the agent's own list is finished.
pub const TASKS_CLOSED: &str = "tasks_closed";
/// From here on a task needs somebody who tries to refute it.
pub const ADVERSARIAL_FROM: u8 = 7;

/// A complexity as a plan or a person writes it: a number from 1 to 10, or a word.
pub fn read_complexity(text: &str) -> Option<u8> {
    let first = text.trim().split([' ', '\t', '(', '/', ',', ';']).next().unwrap_or_default();
    let first = first.trim_matches(['*', '_', '`', '.', ':']);
    match first.to_ascii_lowercase().as_str() {
        "trivial" => Some(1),
        "low" | "small" | "simple" => Some(3),
        "medium" | "moderate" => Some(5),
        "high" | "large" | "complex" => Some(8),
        digits => digits.parse().ok().filter(|number| (1..=MOST_COMPLEX).contains(number)),
    }
}

#[cfg(test)]
mod tests;
