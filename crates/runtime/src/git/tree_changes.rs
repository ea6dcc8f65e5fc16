//! Differences between two trees, file by file, with modes, ids and renames.

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath, is_object_id};

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) mode: u32,
    pub(crate) id: Oid,
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) path: RepoPath,
    /// The former path according to git's rename detection, if it was another.
    pub(crate) renamed_from: Option<RepoPath>,
    pub(crate) old: Option<Side>,
    pub(crate) new: Option<Side>,
}

impl Git {
    pub(crate) fn tree_changes(&self, base: &Oid, tip: &Oid) -> Result<Vec<TreeChange>, GitError> {
        if let Some(id) = [base, tip].into_iter().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "diff-tree", detail: format!("{id} is not an object id") });
        }
        let options = ["-r", "-z", "-M", "--raw", "--no-abbrev", base.as_str(), tip.as_str()];
        Ok(read(&self.plumbing("diff-tree").args(options).run()?))
    }
}

/// Parses `:100644 100755 <id> <id> M`, NUL, the path, NUL. For a rename, the old path comes before the new one.
fn read(output: &[u8]) -> Vec<TreeChange> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let (Some(head), Some(first)) = (fields.next(), fields.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, status] = words[..] else { continue };
        let (renamed_from, path) = if status.starts_with(['R', 'C']) {
            (Some(RepoPath::new(first)), RepoPath::new(fields.next().unwrap_or_default()))
        } else {
            (None, RepoPath::new(first))
        };
        changes.push(TreeChange { path, renamed_from, old: side(old_mode, old), new: side(new_mode, new) });
    }
    changes
}

/// Returns `None` for a missing file, for which git writes mode 0.
fn side(mode: &str, id: &str) -> Option<Side> {
    let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode != 0)?;
    Some(Side { mode, id: Oid::from(id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_read() {
        let (a, b, none) = ("a".repeat(40), "b".repeat(40), "0".repeat(40));
        let text = format!(
            ":100644 100755 {a} {b} M\0one\0:000000 100644 {none} {b} A\0two\0:120000 000000 {a} {none} D\0three\0\
             :100644 100644 {a} {b} R090\0old\0new\0:100644 100644 {a} {a} M\0last\0"
        );
        let found = read(text.as_bytes());
        let names: Vec<String> = found.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(names, ["one", "two", "three", "new", "last"]);
        assert_eq!(found[0].new, Some(Side { mode: 0o100_755, id: Oid(b.clone()) }));
        assert_eq!((found[1].old.clone(), found[2].new.clone()), (None, None));
        assert_eq!(found[2].old.as_ref().map(|side| side.mode), Some(0o120_000));
        assert_eq!(found[3].renamed_from, Some(RepoPath::from("old")));
    }
}
