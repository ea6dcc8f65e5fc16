//! Claude Code as data: how it is started, the lines that go both ways over its pipes, and what a turn of it came to.
//!
//! Pure: the runtime spawns, reads and writes. What comes in is read tolerantly, because a client is updated more often than we are;
//! what goes out is strict, because one bad line ends the client.

mod context;
mod guard;
mod launch;
mod outcome;
mod reset;
mod session;
mod settings;
mod usage;
mod uuid;
mod wire_in;
mod wire_out;

pub use context::{ContextLimits, ContextUse, NextSession, Standing, next_session};
pub use guard::{Guard, Liveness, Nonce};
pub use launch::{
    BYPASS_WARNING, CommandLine, Hooks, Launch, OLDEST_CLIENT, SCRUBBED, Start, Version, callback_events, command_line, version,
};
pub use outcome::{Ended, Facts, map};
pub use reset::reset_in;
pub use session::{Allowance, ClientExit, Session, Task, TurnEnd};
pub use settings::{ClaudeAgent, ClaudePermission, HookWay, SessionMode};
pub use usage::{Tokens, TurnUsage};
pub use uuid::Uuid;
pub use wire_in::{
    ApiRetry, Assistant, BackgroundTask, Block, ClientLine, Compaction, ContextAnswer, ControlAnswer, Denial, HookCallback, Init,
    InitializeAnswer, LINE_BYTES, Message, ModelUsage, RateLimit, ResultLine, State, ToolResult, Usage, UserLine, Window, parse,
};
pub use wire_out::{Line, ToClient};
