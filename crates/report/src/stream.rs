//! The wire types of `--json`: journal lines, unchanged, and transient lines that are shown but not stored.

use jiff::Timestamp;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use verdone_core::journal::event::{Recorded, SCHEMA_VERSION};
use verdone_core::journal::update::{Speaker, Stream};
use verdone_core::journal::view::RunView;

/// One line of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamLine {
    /// An event, exactly as in the journal. Only these have a `seq`.
    Recorded(Box<Recorded>),
    /// Shown once, not part of the run's history.
    Transient(TransientLine),
}

/// A line that is not in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransientLine {
    /// Format version of this line.
    pub v: u32,
    /// When it was written.
    #[schemars(with = "String")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: Transient,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Transient {
    /// One line of output, redacted.
    Output {
        speaker: SpeakerKind,
        /// The name of the check or script; absent for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        stream: StreamName,
        line: String,
    },
    /// Something the user should read.
    Notice { text: String },
}

/// Whose output it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerKind {
    Agent,
    Check,
    /// A lifecycle script.
    Script,
}

/// Which stream of the process it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    Stdout,
    Stderr,
}

/// The JSON Schema of every line of `--json` and of the journal.
pub fn stream_schema() -> serde_json::Value {
    titled(schema_for!(StreamLine).to_value(), "Verdone event stream: one line")
}

/// The JSON Schema of `verdone status --json`, which prints the view unchanged.
pub fn status_schema() -> serde_json::Value {
    titled(schema_for!(RunView).to_value(), "Verdone status")
}

fn titled(mut schema: serde_json::Value, title: &str) -> serde_json::Value {
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), title.into());
    }
    schema
}

impl TransientLine {
    pub(crate) fn output(at: Timestamp, speaker: Speaker<'_>, stream: Stream, line: &str) -> Self {
        let (speaker, name) = match speaker {
            Speaker::Agent => (SpeakerKind::Agent, None),
            Speaker::Check(name) => (SpeakerKind::Check, Some(name.to_owned())),
            Speaker::Script(name) => (SpeakerKind::Script, Some(name.to_owned())),
        };
        let stream = match stream {
            Stream::Stdout => StreamName::Stdout,
            Stream::Stderr => StreamName::Stderr,
        };
        Self { v: SCHEMA_VERSION, at, event: Transient::Output { speaker, name, stream, line: line.to_owned() } }
    }

    pub(crate) fn notice(at: Timestamp, text: &str) -> Self {
        Self { v: SCHEMA_VERSION, at, event: Transient::Notice { text: text.to_owned() } }
    }
}
