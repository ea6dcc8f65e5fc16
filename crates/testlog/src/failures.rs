//! The list of failures that readers build: ordered, without duplicates, bounded.

use std::collections::{HashMap, HashSet};

use super::TestFailure;

/// If more tests than this fail, they fail for the same reason; the counts still give the total.
const MOST: usize = 200;
const LONGEST_NAME: usize = 300;
const LONGEST_MESSAGE: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Failures {
    list: Vec<TestFailure>,
    /// By name and file: tests in two files may share a name.
    known: HashMap<(String, String), usize>,
}

impl Failures {
    /// Adds a failure, or completes one that is already listed.
    pub(super) fn add(&mut self, name: &str, file: Option<&str>, line: Option<u32>, message: &str) {
        let name = cut(name.trim(), LONGEST_NAME);
        if name.is_empty() {
            return;
        }
        let key = (name.clone(), file.unwrap_or_default().to_owned());
        let at = match self.known.get(&key) {
            Some(&at) => at,
            None if self.list.len() >= MOST => return,
            None => {
                self.known.insert(key, self.list.len());
                self.list.push(TestFailure { name, ..TestFailure::default() });
                self.list.len() - 1
            }
        };
        let known = &mut self.list[at];
        if known.file.is_none() {
            known.file = file.map(|file| cut(file.trim(), LONGEST_NAME)).filter(|file| !file.is_empty());
        }
        known.line = known.line.or(line);
        if known.message.is_empty() {
            known.message = cut(message.trim(), LONGEST_MESSAGE);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Keeps only the first `most` failures.
    pub(super) fn truncate(&mut self, most: usize) {
        self.list.truncate(most);
        self.known.retain(|_, at| *at < most);
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut TestFailure> {
        self.list.last_mut()
    }

    /// Removes failures that are only the group of others: `TestTable` beside `TestTable/empty`.
    pub(super) fn without_groups(self, separator: char) -> Self {
        let groups: HashSet<&str> = self
            .list
            .iter()
            .flat_map(|failure| failure.name.match_indices(separator).map(|(at, _)| &failure.name[..at]))
            .collect();
        let keep: Vec<bool> = self.list.iter().map(|failure| !groups.contains(failure.name.as_str())).collect();
        let list = self.list.into_iter().zip(keep).filter_map(|(failure, keep)| keep.then_some(failure)).collect();
        Self { list, known: HashMap::new() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TestFailure> {
        self.list.iter()
    }

    pub(super) fn into_list(self) -> Vec<TestFailure> {
        self.list
    }
}

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Fills in the missing fields of a failure.
pub(super) fn describe(failure: &mut TestFailure, place: Option<(&str, u32)>, message: Option<&str>) {
    if let (None, Some((file, line))) = (failure.line, place) {
        failure.file = Some(cut(file, LONGEST_NAME));
        failure.line = Some(line);
    }
    if let (true, Some(message)) = (failure.message.is_empty(), message) {
        failure.message = cut(message.trim(), LONGEST_MESSAGE);
    }
}
