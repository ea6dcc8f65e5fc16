//! The agent's hook protocol, as Claude Code speaks it: what comes in is read tolerantly, what goes out is strict.
//!
//! An answer that the client cannot validate opens the gate, so answers are built only here, from types that have no invalid
//! value. What a call may do is decided by policy; [`respond`] puts its verdict, the session's memory and what tests showed into one
//! answer, the same behind a process that the client starts and behind a callback of a run.

mod after;
mod after_tool;
mod answer;
mod briefing;
mod failure;
mod git_state;
mod input;
mod recall;
mod record;
mod respond;
pub mod settings;
mod stop_record;
mod tally;
mod transcript;
mod value_end;
mod watch;

pub use after_tool::{AfterCommand, AfterTool, CommandEnd, CommandExit, FILE_WORD, MOST_TIME, Tell};
pub use answer::{Answer, Permission};
pub use briefing::Briefing;
pub use failure::{Cause, Role, event_in, fail};
pub use git_state::{GitState, Head, Operation};
pub use input::{Common, HookEvent, HookInput, InputError, StartSource, ToolCall};
pub use recall::SessionFold;
pub use record::{Failed, Record};
pub use respond::{Response, Situation, Streak, Target, TestRuns, respond, target};
pub use stop_record::StopRecord;
pub use tally::{DenialTally, FaultTally, SessionTally, Spent, TestTally, ToolTally};
pub use transcript::spent_in;
pub use value_end::ValueEnd;
pub use watch::{Looked, Seen, Watch, looks_after};
