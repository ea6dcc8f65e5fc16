//! Paths as git names them: bytes, relative to the top level, `/` between components.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A path relative to the top level. May contain any byte except NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Keeps the bytes, but drops a trailing `/` (git's mark of a directory).
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.strip_suffix(b"/").unwrap_or(bytes).to_vec())
    }

    /// Parses the displayed form of a path.
    pub fn from_shown(text: &str) -> Option<Self> {
        decode(text).map(Self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// False for a path that could leave the work tree or enter the git directory.
    pub fn is_safe(&self) -> bool {
        !self.0.is_empty()
            && self.0.split(|byte| *byte == b'/').all(|part| {
                !part.is_empty() && part != b"." && part != b".." && !part.eq_ignore_ascii_case(b".git") && !part.contains(&0)
            })
    }

    /// The parent directories, outermost first, without the top level.
    pub(super) fn parents(&self) -> impl DoubleEndedIterator<Item = Self> + '_ {
        let slashes: Vec<usize> = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).collect();
        slashes.into_iter().map(|at| Self(self.0[..at].to_vec()))
    }
}

/// Valid because paths are ordered by their bytes.
impl Borrow<[u8]> for RepoPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text).map(Self).ok_or_else(|| de::Error::custom("broken %XX in a path"))
    }
}

/// Paths and everything below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSet(BTreeSet<RepoPath>);

impl PathSet {
    pub fn contains(&self, path: &RepoPath) -> bool {
        self.covers(path.as_bytes())
    }

    /// Like [`Self::contains`], but without allocating: this runs for every file of a tree.
    pub(super) fn covers(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        !self.0.is_empty() && slashes.chain([path.len()]).any(|end| self.0.contains(&path[..end]))
    }

    pub fn iter(&self) -> impl Iterator<Item = &RepoPath> {
        self.0.iter()
    }
}

impl Extend<RepoPath> for PathSet {
    fn extend<I: IntoIterator<Item = RepoPath>>(&mut self, paths: I) {
        self.0.extend(paths);
    }
}

impl FromIterator<RepoPath> for PathSet {
    fn from_iter<I: IntoIterator<Item = RepoPath>>(paths: I) -> Self {
        Self(paths.into_iter().collect())
    }
}

impl<'a> FromIterator<&'a str> for PathSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(paths: I) -> Self {
        paths.into_iter().map(RepoPath::from).collect()
    }
}

/// Encodes `%`, control characters and invalid UTF-8 as `%XX`: readable, on one line and reversible.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '%' || letter.is_control() {
                letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escaped(&mut out, byte));
            } else {
                out.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| push_escaped(&mut out, *byte));
    }
    out
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    Some(out)
}

fn push_escaped(out: &mut String, byte: u8) {
    use fmt::Write as _;
    let _ = write!(out, "%{byte:02X}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_path_survives_its_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = encode(&bytes);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(decode(&text), Some(bytes));
        }
    }

    #[test]
    fn a_set_covers_what_is_below_its_paths_and_nothing_beside_them() {
        let set: PathSet = [".verdone", "docs/progress.md"].into_iter().collect();
        for inside in [".verdone", ".verdone/runs/1/journal.jsonl", "docs/progress.md"] {
            assert!(set.contains(&inside.into()), "{inside}");
        }
        for outside in [".verdone2", "docs", "docs/progress.md2", "x/.verdone"] {
            assert!(!set.contains(&outside.into()), "{outside}");
        }
    }

    #[test]
    fn paths_that_lead_out_are_not_safe() {
        for bad in ["", "../x", "a/../../x", "/etc/passwd", ".git/config", "a/.GIT/hooks/x", "a//b", "."] {
            assert!(!RepoPath::from(bad).is_safe(), "{bad}");
        }
        for good in ["a", "-rf", "a b/c\n", ".gitignore", "a/..b"] {
            assert!(RepoPath::from(good).is_safe(), "{good}");
        }
    }
}
