//! Everything Verdone shows: the live line, plain lines, JSON lines, summaries and reports.
//!
//! This crate only displays. It makes no decisions, reads no journal and does not query the terminal: width, colour and clock are
//! arguments. All text from a plan, an agent or a repository is sanitised before it is written.

mod audit;
mod diff;
mod done;
mod event_lines;
mod guard;
mod guardrails;
mod json;
mod landing;
mod live;
mod log;
mod markdown;
mod markdown_to_terminal;
mod notification;
mod pending;
mod plain;
mod questions;
mod reference;
mod result_text;
mod runs;
mod session;
mod sink;
mod status;
mod stop;
mod story;
mod stream;
mod style;
mod summary;
mod terminal;
mod verification;
mod width;
mod wording;

pub use audit::{audit, audit_markdown, audit_schema};
pub use diff::diff;
pub use done::done_page;
pub use guardrails::{Guardrails, LessonHistory, ListedLesson, guardrails};
pub use json::{Json, escape_json};
pub use log::log_line;
pub use markdown::{Extra, ListedStory, markdown};
pub use markdown_to_terminal::markdown_to_terminal;
pub use notification::{TerminalKind, notification_sequence};
pub use plain::{Plain, Verbosity};
pub use questions::questions;
pub use reference::events_reference;
pub use result_text::results;
pub use runs::{ListedRun, runs, stories};
pub use session::{FaultsOf, SessionOf, Sessions, fault_line, session, session_lines, sessions, sessions_schema};
pub use status::status;
pub use stop::{StopOf, Stops, stop_line, stop_summary, stops_schema};
pub use story::story;
pub use stream::{SpeakerKind, StreamLine, StreamName, Transient, TransientLine, status_schema, stream_schema};
pub use style::{ColorChoice, Style, Tone, decide_color};
pub use summary::summary;
pub use terminal::Terminal;
pub use verification::{github_commands, github_summary, junit, verification, verification_json, verification_schema};
pub use width::fold_lines;
pub use wording::{cost, duration, plural};
