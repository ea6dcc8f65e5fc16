//! Claude Code's hook protocol. Input is parsed leniently, output is strict.
//!
//! If the client cannot validate an answer, it lets the call through. Answers are therefore built only here, from types that have no
//! invalid value. Policy decides what a call may do. [`respond`] combines its verdict, the session's memory and the test outcomes
//! into one answer. Hook processes started by the client and the callbacks of a run share it.

mod after;
mod after_tool;
mod answer;
mod briefing;
mod failure;
mod git_state;
mod input;
mod record;
mod respond;
mod session_fold;
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
pub use record::{Failed, Record};
pub use respond::{Response, Situation, Streak, Target, TestRuns, respond, target};
pub use session_fold::SessionFold;
pub use stop_record::StopRecord;
pub use tally::{DenialTally, FaultTally, SessionTally, Spent, TestTally, ToolTally};
pub use transcript::spent_in;
pub use value_end::ValueEnd;
pub use watch::{ChangedFiles, FileLook, Watch, looks_after};
