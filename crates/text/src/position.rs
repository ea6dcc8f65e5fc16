//! Converts byte offsets to lines and columns, and collects faults with their positions.

use serde::{Deserialize, Serialize};

/// The line starts of a text.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        Self { text, starts }
    }

    /// Counted from 1.
    pub fn line(&self, at: usize) -> u32 {
        self.starts.partition_point(|start| *start <= at) as u32
    }

    /// Line and column, both from 1. The column counts characters, without a byte order mark.
    pub fn place(&self, at: usize) -> (u32, u32) {
        let line = self.line(at);
        let start = self.starts[line as usize - 1];
        let before = self.text.get(start..at).unwrap_or_default();
        let before = if start == 0 { before.trim_start_matches('\u{feff}') } else { before };
        (line, before.chars().count() as u32 + 1)
    }

    /// The faults in file order. A long list is truncated, because computing a column takes time proportional to the line's length.
    pub fn problems(&self, mut faults: Vec<Fault>) -> Vec<Problem> {
        const SHOWN: usize = 100;
        faults.sort_by_key(|fault| fault.at);
        let more = faults.len().saturating_sub(SHOWN);
        let mut problems: Vec<Problem> = faults.iter().take(SHOWN).map(|fault| self.problem(fault)).collect();
        if more > 0 {
            let first = self.problem(&Fault::new(faults[SHOWN].at, format!("and {more} more after this")));
            problems.push(first);
        }
        problems
    }

    pub fn problem(&self, fault: &Fault) -> Problem {
        let (line, column) = self.place(fault.at);
        Problem { line, column, message: fault.message.clone(), hint: fault.hint.clone() }
    }
}

/// Something wrong at a byte offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Text from a file for use in a message: short and on one line.
pub fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST + 1).collect();
    match flat.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("`{}…`", &flat[..cut]),
        None => format!("`{flat}`"),
    }
}

/// Something wrong or odd in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Counted from 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    pub message: String,
    pub hint: Option<String>,
}
