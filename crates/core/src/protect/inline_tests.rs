//! Tests in the same file as the code they test: Rust's `#[cfg(test)]` items and `#[test]` functions.
//!
//! Such a file is split into test items and the rest. A graft gives one version of a file the test items of another: each replaces
//! the item of the same name, and new ones go to the end of their module or block.

mod items;
mod lexer;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use items::{File, Item, Key};

/// Source text that cannot be split into items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not UTF-8")]
    NotText,
    #[error("a string or a comment is not closed")]
    NotClosed,
    #[error("brackets do not match")]
    Brackets,
    #[error("nested too deeply")]
    TooDeep,
    #[error("an item without an end")]
    NoEnd,
    #[error("the module or block of a test is gone")]
    NoPlace,
}

/// The test items of one version of a Rust file.
#[derive(Debug)]
pub struct InlineTests<'a> {
    text: &'a str,
    file: File,
}

impl<'a> InlineTests<'a> {
    pub fn read(source: &'a [u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(source).map_err(|_| Unreadable::NotText)?;
        Ok(Self { text, file: items::read(text)? })
    }

    /// Stands for a missing file.
    pub fn none() -> InlineTests<'static> {
        let ends = BTreeMap::from([(Arc::from(""), 0)]);
        InlineTests { text: "", file: File { ends, ..File::default() } }
    }

    pub(super) fn read_side(source: Option<&'a [u8]>) -> Result<Self, Unreadable> {
        source.map_or_else(|| Ok(InlineTests::none()), Self::read)
    }

    pub fn is_empty(&self) -> bool {
        !self.file.only_tests && self.file.tests.is_empty()
    }

    /// Whether the whole file is compiled only for tests: `#![cfg(test)]`.
    pub fn is_whole_file(&self) -> bool {
        self.file.only_tests
    }

    /// Whether both versions have the same test items, byte for byte.
    pub fn same_as(&self, other: &InlineTests<'_>) -> bool {
        let items = |of: &InlineTests<'_>| -> BTreeMap<Key, String> {
            of.file.tests.iter().map(|item| (item.key.clone(), of.text[item.range.clone()].to_owned())).collect()
        };
        self.file.only_tests == other.file.only_tests && items(self) == items(other)
    }

    /// This file with the test items of another version.
    pub fn with_tests_of(&self, other: &InlineTests<'_>) -> Result<String, Unreadable> {
        self.graft(other, false)
    }

    /// The same, plus the other version's new `mod name;` lines. Without them, the tests in new files would not be compiled.
    pub fn with_tests_and_modules_of(&self, other: &InlineTests<'_>) -> Result<String, Unreadable> {
        self.graft(other, true)
    }

    fn graft(&self, donor: &InlineTests<'_>, modules: bool) -> Result<String, Unreadable> {
        let own: BTreeSet<&Key> = self.file.tests.iter().map(|item| &item.key).collect();
        let replacements: BTreeMap<&Key, &Item> = donor.file.tests.iter().map(|item| (&item.key, item)).collect();
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for item in &self.file.tests {
            match replacements.get(&item.key) {
                Some(new) => edits.push((item.range.clone(), donor.text[new.range.clone()].to_owned())),
                None => edits.push((self.with_line(&item.range), String::new())),
            }
        }
        let new_tests = donor.file.tests.iter().filter(|item| !own.contains(&item.key));
        let new_modules = donor.file.modules.iter().filter(|item| modules && !self.file.declared.contains(&item.key));
        let mut added: BTreeMap<usize, String> = BTreeMap::new();
        for item in new_tests.chain(new_modules) {
            let end = *self.file.ends.get(&item.key.container).ok_or(Unreadable::NoPlace)?;
            let text = added.entry(end).or_default();
            text.push_str(if item.key.container.is_empty() { "\n" } else { "" });
            text.push_str(&donor.text[item.range.clone()]);
            text.push('\n');
        }
        for (end, text) in added {
            let line_is_open = end > 0 && self.text.as_bytes()[end - 1] != b'\n' && end == self.text.len();
            edits.push((end..end, if line_is_open { format!("\n{text}") } else { text }));
        }
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (range, text) in edits {
            out.push_str(&self.text[at..range.start]);
            out.push_str(&text);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        Ok(out)
    }

    /// The range plus the rest of its line, if that is blank.
    fn with_line(&self, range: &Range<usize>) -> Range<usize> {
        let rest = &self.text[range.end..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        if rest[blanks..].starts_with('\n') { range.start..range.end + blanks + 1 } else { range.clone() }
    }
}

/// Whether a Rust file has test code. If the file cannot be read, guesses from its text.
pub fn has_inline_tests(source: &[u8]) -> bool {
    match InlineTests::read(source) {
        Ok(tests) => !tests.is_empty(),
        Err(_) => looks_like_tests(source),
    }
}

fn looks_like_tests(source: &[u8]) -> bool {
    source.windows(2).any(|two| two == b"#[" || two == b"#!") && source.windows(4).any(|four| four == b"test")
}

#[cfg(test)]
mod tests;
