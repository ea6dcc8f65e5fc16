//! When work is done: named conditions, each with a prover, judged from facts.
//!
//! Pure: the facts (git, gates, plan, claims, other tools' files) come in as data, and a report of ordered outcomes goes out.
//! Nothing that an agent writes can stand in for proof by a gate, git, the plan or CI. If something cannot be determined, it is
//! *unknown*, which never counts as met.

mod answer;
mod condition;
pub mod debris;
mod facts;
mod judge;
mod judge_choice;
mod question;
mod record;
mod report;
mod settings;
pub mod source;

pub use answer::{Answer, answer_schema, judge_answer, only_answer};
pub use condition::{Condition, Phase, Prover};
pub use facts::{Approval, CiFact, Claim, Facts, GateFact, GitFact, JudgeFact, Lessons, LessonsConsulted, PlanFact, StateFile};
pub use judge::{Complexity, KnownBeforeWork, Source, best_case, complexity, judge, stated_complexity};
pub use judge_choice::JudgeChoice;
pub use question::open_questions;
pub use record::JudgeRecord;
pub use report::{ConditionOutcome, DoneReport, DoneState, JudgedCondition};
pub use settings::{CiSettings, DoneSettings, JudgeAgent, JudgeSettings, OwnCondition, Profile, RalphState};

pub const UNKNOWN_COMPLEXITY: u8 = 7;
/// The condition that every task on the agent's own list is finished.
pub const TASKS_CLOSED: &str = "tasks_closed";
/// From this complexity on, a task needs an adversarial review.
pub const ADVERSARIAL_FROM: u8 = 7;

#[cfg(test)]
mod tests;
