//! The error type of the command line: its kind determines the exit code, its hints name the next command to type.

mod runtime;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;

use verdone_core::base::finish::StopSignal;
use verdone_core::config::ConfigProblem;
use verdone_runtime::project::ProjectError;
use verdone_runtime::project::config_file::SettingsError;
use verdone_runtime::project::init::InitError;

use crate::terminal::{Paint, Style, printable, printable_line};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A failure that the arguments and settings did not cause.
    Error,
    /// The arguments, settings, plan or repository cannot be used.
    Usage,
    /// A person has to look at it.
    Human,
    /// A cost or usage limit is reached.
    Limit,
    /// A signal stopped the command.
    Stopped(StopSignal),
}

impl Kind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Error => 1,
            Self::Usage => 2,
            Self::Human => 4,
            Self::Limit => 3,
            Self::Stopped(signal) => signal.exit_code(),
        }
    }
}

/// A position in a file, shown with its line.
#[derive(Debug)]
struct Place {
    line: u32,
    column: u32,
    text: String,
}

#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    message: String,
    place: Option<Place>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    hints: Vec<String>,
    /// The reader of our output went away, so print nothing.
    silent: bool,
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, source: None, hints: Vec::new(), silent: false }
    }

    /// Arguments or settings that cannot be used.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::new(Kind::Error, message)
    }

    /// An error with its chain of causes.
    pub(crate) fn caused(kind: Kind, error: impl StdError + Send + Sync + 'static) -> Self {
        let message = error.to_string();
        // The top of the chain is the message; the errors below explain it.
        Self { source: Some(Box::new(error)), ..Self::new(kind, message) }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds hints about problems with the machine.
    #[must_use]
    fn advice(self, source: &io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => self.hint("free some space, then: verdone run"),
            io::ErrorKind::FileTooLarge => self.hint("raise the file size limit (ulimit -f), then: verdone run"),
            io::ErrorKind::ReadOnlyFilesystem => {
                self.hint("the file system is mounted read-only; make it writable, then: verdone run")
            }
            io::ErrorKind::PermissionDenied => self.hint("make it writable for the user who runs verdone"),
            _ => self,
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        if self.silent { 0 } else { self.kind.exit_code() }
    }

    /// The message with its causes, and the hints, for a list of findings.
    pub(crate) fn into_words(self) -> (String, Vec<String>) {
        let mut message = self.message;
        let mut cause = self.source.as_deref().and_then(|error| error.source());
        while let Some(error) = cause {
            let _ = write!(message, ": {error}");
            cause = error.source();
        }
        (message, self.hints)
    }

    /// The text for standard error.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let mut out = String::new();
        if self.silent {
            return out;
        }
        let _ = writeln!(out, "{} {}", paint.style(Style::Error, "error:"), printable(&self.message));
        if let Some(place) = &self.place {
            let (text, before) = excerpt(&place.text, place.column);
            let margin = " ".repeat(place.line.to_string().len() + 1);
            let _ = writeln!(out, "{margin} |\n {} | {text}", place.line);
            let _ = writeln!(out, "{margin} | {}{}", " ".repeat(before), paint.style(Style::Error, "^"));
        }
        let mut cause = self.source.as_deref().and_then(|error| error.source());
        while let Some(error) = cause {
            let _ = writeln!(out, "{} {}", paint.style(Style::Dim, "caused by:"), printable(&error.to_string()));
            cause = error.source();
        }
        for hint in &self.hints {
            let _ = writeln!(out, "{} {}", paint.style(Style::Hint, "hint:"), printable_line(hint));
        }
        out
    }
}

/// The part of a line around a column that fits a narrow terminal, and the column's offset in it.
fn excerpt(line: &str, column: u32) -> (String, usize) {
    const WIDTH: usize = 70;
    let at = (column as usize).saturating_sub(1);
    let from = if at < WIDTH { 0 } else { at - WIDTH / 2 };
    let text: String = line.chars().skip(from).take(WIDTH).map(|c| if c == '\t' { ' ' } else { c }).collect();
    (printable(text.trim_end()), at - from)
}

impl From<ConfigProblem> for CliError {
    fn from(problem: ConfigProblem) -> Self {
        let mut error = Self::new(Kind::Usage, problem.to_string());
        if let (Some((line, column)), Some(text)) = (problem.position, problem.source_line) {
            error.place = Some(Place { line, column, text });
        }
        error.hints.extend(problem.hint);
        error
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Problem(problem) => problem.into(),
            SettingsError::Unreadable { .. } => Self::caused(Kind::Usage, error),
        }
    }
}

impl From<ProjectError> for CliError {
    fn from(error: ProjectError) -> Self {
        let hint = match &error {
            ProjectError::NotARepository { .. } => Some("git init"),
            ProjectError::Bare { .. } => Some("work in a clone: git clone REPOSITORY DIR"),
            ProjectError::Folder { .. } => None,
        };
        let mut error = Self::caused(Kind::Usage, error);
        error.hints.extend(hint.map(str::to_owned));
        error
    }
}

impl From<InitError> for CliError {
    fn from(error: InitError) -> Self {
        match &error {
            InitError::Exists { .. } => {
                Self::caused(Kind::Usage, error).hint("verdone init --force rewrites it and keeps a copy")
            }
            InitError::Look { .. } | InitError::Write { .. } => Self::caused(Kind::Error, error),
        }
    }
}

/// Errors while writing to standard output.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::error(format!("cannot write the output: {error}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { colour: false };

    #[test]
    fn kinds_have_the_documented_exit_codes() {
        for (kind, code) in [(Kind::Error, 1), (Kind::Usage, 2), (Kind::Human, 4)] {
            assert_eq!(CliError::new(kind, "x").exit_code(), code, "{kind:?}");
        }
    }

    #[test]
    fn a_place_is_shown_with_its_line_and_a_caret() {
        let problem =
            ConfigProblem::new("c.toml", "unknown key `turn`").at("[limits]\n\tturn = 3\n", &(10..14)).with_hint("did you mean?");
        let shown = CliError::from(problem).render(PLAIN);
        assert_eq!(shown, "error: c.toml:2:2: unknown key `turn`\n   |\n 2 |  turn = 3\n   |  ^\nhint: did you mean?\n");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line = format!("{}HERE{}", "x".repeat(500), "y".repeat(500));
        let (text, before) = excerpt(&line, 501);
        assert!(text.chars().count() <= 70);
        assert_eq!(&text[before..before + 4], "HERE");
    }

    #[test]
    fn hostile_text_cannot_steer_the_terminal() {
        let shown = CliError::error("a\x1b[2Jb\u{202e}c").hint("\x07").render(PLAIN);
        assert!(!shown.contains(['\x1b', '\u{202e}', '\x07']), "{shown:?}");
    }

    #[test]
    fn causes_are_listed_below_the_message() {
        let source = io::Error::other("disk on fire");
        let error = CliError::from(SettingsError::Unreadable { place: "c.toml".to_owned(), source });
        assert_eq!(error.render(PLAIN), "error: cannot read c.toml\ncaused by: disk on fire\n");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let error = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((error.exit_code(), error.render(PLAIN)), (0, String::new()));
    }
}
