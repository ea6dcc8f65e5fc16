//! When work is done: named conditions, each with a prover, judged from facts.
//!
//! Pure: the facts (git, gates, plan, claims, other tools' files) come in as data, and a report of ordered outcomes goes out.
//! Nothing that an agent writes can stand in for proof by a gate, git, the plan or CI. If something cannot be determined, it is
//! *unknown*, which never counts as met.

mod answer;
mod condition;
mod facts;
mod judge;
mod question;
mod record;
mod report;
mod settings;
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

/// The highest complexity of a task, and the complexity assumed if it is unknown: careful by default.
pub const MOST_COMPLEX: u8 = 10;
pub const UNKNOWN_COMPLEXITY: u8 = 7;
/// The condition that every task on the agent's own list is finished.
pub const TASKS_CLOSED: &str = "tasks_closed";
/// From this complexity on, a task needs an adversarial review.
pub const ADVERSARIAL_FROM: u8 = 7;

/// Reads a complexity as written in a plan or by a person: a number from 1 to 10, or a word.
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
