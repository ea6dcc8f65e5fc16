//! One lesson and its line of Markdown. A line is recognised only if it is exactly what Verdone would write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use crate::base::id::digest;
use crate::base::sanitise::sanitise_line;

const LONGEST_CHECK: usize = 80;
const LONGEST_FILE: usize = 120;
const LONGEST_ERROR: usize = 160;
/// The most bytes of an agent that a lesson repeats.
pub const LONGEST_NOTE: usize = LONGEST_ERROR;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lesson {
    pub kind: Kind,
    /// The name of the check or condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The file, relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The first line of the check's first error, or what an agent noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Lesson {
    pub fn new(kind: Kind) -> Self {
        Self { kind, check: None, file: None, error: None }
    }

    #[must_use]
    pub fn with_check(self, check: &str) -> Self {
        Self { check: quotable(check, LONGEST_CHECK), ..self }
    }

    #[must_use]
    pub fn with_file(self, file: &str) -> Self {
        Self { file: quotable(file, LONGEST_FILE), ..self }
    }

    #[must_use]
    pub fn with_error(self, error: &str) -> Self {
        Self { error: quotable(error, LONGEST_ERROR), ..self }
    }

    /// What an agent wants later sessions to know. Always quoted, so that it cannot pass for the user's words.
    pub fn of_agent(text: &str) -> Option<Self> {
        Some(Self::new(Kind::AgentNote).with_error(text)).filter(|note| note.error.is_some())
    }

    /// Whether it is about this check. Long or strange names are compared as they are written.
    pub fn is_about_check(&self, name: &str) -> bool {
        self.check.is_some() && self.check == quotable(name, LONGEST_CHECK)
    }

    /// Its line, without the line break.
    pub fn line(&self) -> String {
        let check = self.check.as_ref().map(|check| format!(": `{check}`")).unwrap_or_default();
        let file = self.file.as_ref().map(|file| format!(" in `{file}`")).unwrap_or_default();
        let error = self.error.as_ref().map(|error| format!(" (\"{error}\")")).unwrap_or_default();
        format!("- {}{check}{file}{error}", self.kind.line_start())
    }

    /// The lesson in a line, if it is one.
    pub fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix("- ")?;
        Kind::ALL.into_iter().find_map(|kind| {
            let rest = text.strip_prefix(kind.line_start())?;
            let (check, rest) = part(rest, ": `", "`");
            let (file, rest) = part(rest, " in `", "`");
            let (error, _) = part(rest, " (\"", "\")");
            let found = Self::new(kind).with_check(check).with_file(file).with_error(error);
            (found.line() == line).then_some(found)
        })
    }

    /// The same for lessons that differ only in numbers, letter case or spaces of the error. In a note, numbers matter.
    pub fn id(&self) -> String {
        let normalise = if self.kind == Kind::AgentNote { str::to_lowercase } else { normalise };
        let error = self.error.as_deref().map(normalise).unwrap_or_default();
        let parts =
            [self.kind.line_start(), self.check.as_deref().unwrap_or_default(), self.file.as_deref().unwrap_or_default(), &error];
        let digest = digest(parts.join("\0").as_bytes());
        let hex = digest.rsplit(':').next().unwrap_or(&digest);
        hex[..hex.len().min(12)].to_owned()
    }
}

/// What stands between the marks at the beginning of a text, and the rest.
fn part<'t>(text: &'t str, begin: &str, end: &str) -> (&'t str, &'t str) {
    text.strip_prefix(begin).and_then(|inner| inner.split_once(end)).unwrap_or(("", text))
}

/// One line without control characters, backticks and quotation marks, so that it cannot leave its quotes. `None` if nothing is left.
fn quotable(text: &str, longest: usize) -> Option<String> {
    let line = sanitise_line(text).replace(['`', '"'], "'");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= longest {
        return Some(line).filter(|line| !line.is_empty());
    }
    let end = line.floor_char_boundary(longest - '…'.len_utf8());
    Some(format!("{}…", line[..end].trim_end()))
}

fn normalise(error: &str) -> String {
    let mut out = String::new();
    for sign in error.to_lowercase().chars() {
        let sign = if sign.is_ascii_digit() { '#' } else { sign };
        if sign != '#' || !out.ends_with('#') {
            out.push(sign);
        }
    }
    out
}
