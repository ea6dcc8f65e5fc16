//! An invalid setting and its location.

use std::fmt;
use std::ops::Range;

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigProblem {
    /// The file, variable or flag.
    pub place: String,
    /// Line and column (in characters), from 1, for files.
    pub position: Option<(u32, u32)>,
    /// The text of that line, for files.
    pub source_line: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl ConfigProblem {
    /// A problem in a variable, a flag or a whole file.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), position: None, source_line: None, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the position of a byte range in a file's text.
    #[must_use]
    pub fn at(mut self, text: &str, range: &Range<usize>) -> Self {
        let start = (0..=range.start.min(text.len())).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        self.position = Some((line as u32, column as u32));
        self.source_line = text[line_start..].lines().next().map(|line| line.trim_start_matches('\u{feff}').to_owned());
        self
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a = 1\né = \"ü\" # x\n";
        for (byte, position) in [(0, (1, 1)), (6, (2, 1)), (9, (2, 3)), (text.len(), (3, 1)), (9_999, (3, 1))] {
            assert_eq!(ConfigProblem::new("f", "m").at(text, &(byte..byte)).position, Some(position), "byte {byte}");
        }
    }
}
