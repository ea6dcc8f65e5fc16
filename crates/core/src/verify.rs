//! The only judge of work: decides which trees are checked, how well a story is proven, and its outcome.
//!
//! A [`VerifyJob`] describes what to judge. [`next_step`] says what to run next, [`Observed`] collects the results, and
//! [`judge`] turns both into a [`VerifyReport`]. Nothing here runs a command: every surface (runs, session loops, `verdone verify`,
//! `audit --rerun`, `accept`) executes the same steps and calls the same function.
//!
//! It relies on mechanism, not on patterns: the work has to pass with the tests and configuration from before it, and tests that it
//! adds have to fail without it. What cannot be determined is *unknown*, never *done*.

mod changes;
mod counts;
mod criteria;
mod facts;
mod feedback;
mod job;
mod judge;
mod observed;
mod on_demand;
mod outcome;
mod proof_tree;
mod reason;
mod report;
mod steps;

pub use crate::base::proof::{Proof, UnknownProof};
pub use changes::changes_of;
pub use counts::{CheckState, CountChange, CountFall, TestNames};
pub use criteria::ProvenCriterion;
pub use facts::{OwnCheckBefore, command_names};
pub use feedback::{Feedback, FeedbackCheck};
pub use job::{
    AutorunChange, Baseline, ChangeKind, FeedbackTurn, JobGate, JobStory, OtherCheck, PlannedCheck, ProtectedChange,
    ProtectedKind, Surface, Tree, VerifyJob,
};
pub use judge::judge;
pub use observed::{BuiltTree, CheckResult, Observed, ResultId, SeenCondition};
pub use on_demand::{CommitRange, Verified};
pub use outcome::{Outcome, StoryResult};
pub use reason::{Doubt, Failure, Note, Reason};
pub use report::{TreeIds, VerifyReport};
pub use steps::{Step, next_step, red_check};

#[cfg(test)]
mod tests;
