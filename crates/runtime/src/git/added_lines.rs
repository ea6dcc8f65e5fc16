//! Lines added since a commit. Tracked files are diffed; all lines of untracked files count.

use std::path::Path;

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::path::RepoPath;
use super::{Git, is_object_id};
use crate::base::plain_file::read_regular;

/// Skip larger files: they were not written by hand.
const LARGEST: u64 = 1024 * 1024;

/// A file and its added lines, numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedLines {
    pub path: String,
    pub lines: Vec<(u32, String)>,
}

impl Git {
    /// Lines of the work tree that this commit does not contain; all lines if there is no commit yet.
    pub fn added_lines(&self, since: Option<&Oid>) -> Result<Vec<AddedLines>, GitError> {
        let mut added = Vec::new();
        if let Some(since) = since.filter(|id| is_object_id(id)) {
            let options =
                ["-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/"];
            let output = self.plumbing("diff").args(options).args([since.as_str(), "--"]).run()?;
            added = parse(&String::from_utf8_lossy(&output));
        }
        for entry in self.status()?.entries.iter().filter(|entry| entry.is_untracked()) {
            added.extend(whole(self.top(), &entry.path));
        }
        Ok(added)
    }
}

fn whole(top: &Path, path: &RepoPath) -> Option<AddedLines> {
    let bytes = read_regular(&top.join(path.as_path()), LARGEST).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
    Some(AddedLines { path: path.to_string(), lines })
}

/// Parses a diff without context lines.
fn parse(diff: &str) -> Vec<AddedLines> {
    let mut found: Vec<AddedLines> = Vec::new();
    // Inside a hunk every line belongs to it, whatever it looks like.
    let (mut old, mut new, mut at) = (0_u32, 0_u32, 0_u32);
    for line in diff.lines() {
        if old > 0 || new > 0 {
            match line.as_bytes().first() {
                Some(b'+') => {
                    if let Some(file) = found.last_mut() {
                        file.lines.push((at, line[1..].to_owned()));
                    }
                    at += 1;
                    new = new.saturating_sub(1);
                }
                Some(b'-') => old = old.saturating_sub(1),
                _ => {}
            }
            continue;
        }
        if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.strip_prefix("b/").unwrap_or(path).trim_end_matches('\t');
            found.push(AddedLines { path: path.to_owned(), lines: Vec::new() });
        } else if let Some((removed, added)) = line.strip_prefix("@@ -").and_then(hunk) {
            (old, (at, new)) = (removed, added);
        }
    }
    found.retain(|file| !file.lines.is_empty());
    found
}

/// Parses `7,2 +8,3 @@`: the number of removed lines, the first added line and the number of added lines.
fn hunk(rest: &str) -> Option<(u32, (u32, u32))> {
    let mut parts = rest.split(' ');
    let (removed, added) = (parts.next()?, parts.next()?.strip_prefix('+')?);
    let count = |part: &str| part.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    let start = added.split(',').next()?.parse().ok()?;
    Some((count(removed)?, (start, count(added)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_are_numbered_and_a_line_that_looks_like_a_header_is_one_of_them() {
        let diff = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@ fn x\n-one\n--- two\n+1\n+++ b/fake\n+@@ -1 +1 @@\n@@ -9,0 +11 @@\n+last\n\
                    diff --git a/b b/b\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
        let found = parse(diff);
        let lines = |at: &[(u32, &str)]| at.iter().map(|(n, text)| (*n, (*text).to_owned())).collect::<Vec<_>>();
        let expected = lines(&[(1, "1"), (2, "++ b/fake"), (3, "@@ -1 +1 @@"), (11, "last")]);
        assert_eq!(found, [AddedLines { path: "a.rs".to_owned(), lines: expected }]);
    }
}
