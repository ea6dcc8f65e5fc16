//! What a shell command line would run: every simple command in it, wherever it hides.
//!
//! The line is parsed, never matched as text, and never run. Lists, pipes, substitutions, functions, wrappers (`env`, `sudo`,
//! `xargs`, `find -exec`, ...) and scripts given as text (`bash -c`, `eval`, here-documents) are followed as far as their words are
//! known. What is not known stays a wildcard in its word, so that a rule can say *maybe*. What could not be read at all is listed
//! beside the commands: the caller decides what an unknown means.

mod ansi;
mod bit;
mod brace;
mod carried;
mod closing;
mod declare;
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

pub(crate) use bit::ANY as COMPUTED;
pub use carried::is_command_setting;
pub use git::{GitCall, git_call};
pub use word::{Origin, Piece, Word};

/// Longest command line that is read. Linux refuses a longer argument, so a client cannot pass one to `bash -c` either.
pub const MAX_SOURCE: usize = 128 * 1024;

/// Values of variables that are known before the line runs, such as `HOME` and `PWD`.
pub type Variables = BTreeMap<String, String>;

/// Everything that a command line would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Simple>,
    pub unknown: Vec<Unknown>,
}

/// One simple command: a program and its arguments. A wrapper and what it wraps are two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// The program first. Quotes and escapes are gone; empty for a bare redirection or assignment.
    pub words: Vec<Word>,
    /// Variables set for this command alone, or by it.
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// Where it stands in the line; for a command inside a script given as text, where that script is started.
    pub range: Range<usize>,
    /// As written, shortened.
    pub text: String,
    pub directory: Directory,
    /// False where the reading is a guess: a computed word left out, or a part with a syntax error.
    pub certain: bool,
    /// What a shell, `eval` or `source` was given to run.
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

/// Where a command would run, as far as the `cd`s before it are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// Relative to where the line starts, or absolute; not normalised. Empty is the start itself.
    Known(String),
    Unknown,
}

/// What a command that runs other text was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It runs no text.
    Nothing,
    /// Text that was read; its commands are in the script too.
    Known,
    /// Text with parts that are computed when the line runs.
    Computed,
    /// Text that comes from the network.
    Downloaded,
}

/// A part of the line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub range: Range<usize>,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The command word is computed.
    Program,
    /// A shell or `eval` gets computed text.
    Text,
    Syntax,
    TooLong,
    TooDeep,
    TooMany,
}

impl Why {
    pub fn words(self) -> &'static str {
        match self {
            Self::Program => "the program's name is computed when the command runs",
            Self::Text => "a shell is given text that is computed when the command runs",
            Self::Syntax => "part of the command could not be parsed",
            Self::TooLong => "the command is too long to be read",
            Self::TooDeep => "the command is nested too deeply to be read",
            Self::TooMany => "the command has too many parts to be read",
        }
    }

    /// Whether whole parts of the line were left out, so that nothing can be said about them.
    pub fn is_unread(self) -> bool {
        match self {
            Self::TooLong | Self::TooDeep | Self::TooMany => true,
            Self::Program | Self::Text | Self::Syntax => false,
        }
    }
}

/// Reads a command line. Never fails: what cannot be read is in `unknown`.
pub fn parse(source: &str, variables: &Variables) -> Script {
    walk::script(source, variables)
}

#[cfg(test)]
mod tests;
