//! Finds every simple command that a shell command line would run, wherever it hides.
//!
//! The line is parsed, never matched as text, and never run. Lists, pipes, substitutions, functions, wrappers (`env`, `sudo`,
//! `xargs`, `find -exec`, ...) and scripts given as text (`bash -c`, `eval`, here-documents) are followed as far as their words are
//! known. Unknown text becomes a wildcard in its word, so that a rule can answer *maybe*. Parts that could not be parsed are listed
//! beside the commands; the caller decides how to treat them.

mod ansi;
mod brace;
mod closing;
mod commands_in_settings;
mod declare;
mod fragment;
mod git;
mod lexer;
mod output;
mod redirect;
mod scope;
mod simple;
mod substitution;
mod tree;
mod unwrap;
mod walk;
mod word;
mod wrapped;
mod wrapper;

use std::collections::BTreeMap;
use std::ops::Range;

pub use commands_in_settings::is_command_setting;
pub use fragment::ANY as COMPUTED;
pub use git::{GitCall, git_call};
pub use word::{Origin, Piece, Word};

/// The longest command line that is parsed. Linux rejects a longer argument, so a client cannot pass one to `bash -c` either.
pub const MAX_SOURCE: usize = 128 * 1024;

/// Variables whose values are known before the line runs, such as `HOME` and `PWD`.
pub type Variables = BTreeMap<String, String>;

/// All commands of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Simple>,
    pub unknown: Vec<Unknown>,
}

/// One simple command: a program and its arguments. A wrapper and the wrapped command are two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// The program first. Quotes and escapes are removed; empty for a bare redirection or assignment.
    pub words: Vec<Word>,
    /// Variables set only for this command, or by it.
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// The position in the line. For a command inside a script given as text, the position where that script is started.
    pub range: Range<usize>,
    /// The source text, shortened.
    pub text: String,
    pub directory: Directory,
    /// False if this is a guess: an unknown word was left out, or the part has a syntax error.
    pub certain: bool,
    /// The kind of text that a shell, `eval` or `source` runs.
    pub runs: Runs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
}

/// The directory of a command, as far as the preceding `cd`s are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// Relative to the starting directory, or absolute; not normalised. Empty for the starting directory itself.
    Known(String),
    Unknown,
}

/// The kind of text that a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It runs no text.
    Nothing,
    /// Text that was parsed; its commands are in the script too.
    Known,
    /// Text with parts that are only computed when the line runs.
    Computed,
    /// Text that comes from the network.
    Downloaded,
}

/// A part of the line that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub range: Range<usize>,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The command word is only computed when the line runs.
    Program,
    /// The text given to a shell or `eval` is only computed when the line runs.
    Text,
    Syntax,
    TooLong,
    TooDeep,
    TooMany,
}

impl Why {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Program => "the program's name is computed when the command runs",
            Self::Text => "a shell is given text that is computed when the command runs",
            Self::Syntax => "part of the command could not be parsed",
            Self::TooLong => "the command is too long to be read",
            Self::TooDeep => "the command is nested too deeply to be read",
            Self::TooMany => "the command has too many parts to be read",
        }
    }

    /// Whether whole parts of the line were skipped, so that nothing is known about them.
    pub fn is_unread(self) -> bool {
        match self {
            Self::TooLong | Self::TooDeep | Self::TooMany => true,
            Self::Program | Self::Text | Self::Syntax => false,
        }
    }
}

/// Parses a command line. Never fails: unparsable parts are in `unknown`.
pub fn parse(source: &str, variables: &Variables) -> Script {
    walk::script(source, variables)
}

#[cfg(test)]
mod tests;
