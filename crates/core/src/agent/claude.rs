//! Claude Code as data: how to start it, the lines on its pipes, and the outcome of its turns.
//!
//! Pure: the runtime spawns, reads and writes. Input is parsed leniently, because clients are updated more often than Verdone. Output
//! is strict, because one bad line ends the client.

mod context;
mod guard;
mod launch;
mod outcome;
mod repeats;
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
    BYPASS_WARNING, CommandLine, Hooks, Launch, OLDEST_CLIENT, SCRUBBED, Start, TESTED_CLIENT, Version, callback_events,
    command_line, version,
};
pub use outcome::{Ended, Facts, map};
pub use reset::reset_in;
pub use session::{Allowance, ClientExit, Session, Task, TurnEnd};
pub use settings::{ClaudeAgent, ClaudePermission, HookWay, SessionMode, Strength};
pub use usage::{Tokens, TurnUsage};
pub use uuid::Uuid;
pub use wire_in::{
    ApiRetry, Assistant, BackgroundTask, Block, ClientLine, Compaction, ContextAnswer, ControlAnswer, Denial, HookCallback, Init,
    InitializeAnswer, LINE_BYTES, Message, ModelUsage, RateLimit, ResultLine, State, ToolResult, Usage, UserLine, Window, parse,
};
pub use wire_out::{Line, ToClient};
