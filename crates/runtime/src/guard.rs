//! Judges the tool calls of agents by policy, for runs and for sessions that Verdone did not start, and records them.

mod after_tool;
mod attempt;
mod client_guard;
mod facts;
mod fault;
mod judge_event;
mod ralph_logs;
mod run_dirs;
mod session_log;
mod story;
mod transcript;
mod watch;

pub(crate) use after_tool::Concurrency;
pub use attempt::{TurnOf, turn_tests};
pub use client_guard::{Guard, Judgement, Pending};
pub use facts::{CallContext, facts};
pub(crate) use fault::Fault;
pub(crate) use judge_event::{Answered, EventJudge, GateAnswer, SessionGate, is_after};
pub(crate) use run_dirs::{FileSettings, HookProject};
pub use run_dirs::{PolicyInForce, SESSIONS, policy_of};
pub(crate) use session_log::{FAULTS, append_fault, append_in, make_sessions};
pub use story::StoryFile;
pub(crate) use story::write_briefing;

/// Set for a read-only client, with the purpose. Its hooks allow only reading.
pub(crate) const LOOKING: &str = "VERDONE_LOOKING";
