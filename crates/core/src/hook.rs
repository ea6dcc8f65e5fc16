//! The agent's hook protocol, as Claude Code speaks it: what comes in is read tolerantly, what goes out is strict.
//!
//! An answer that the client cannot validate opens the gate, so answers are built only here, from types that have no invalid
//! value. Nothing here decides; policy does.

mod answer;
mod input;
pub mod settings;
mod value_end;

pub use answer::{Answer, Permission};
pub use input::{Common, HookEvent, HookInput, InputError, StartSource, ToolCall};
pub use value_end::ValueEnd;
