//! The state of git: the checked-out branch and an unfinished operation, if any. The caller reads it from git's files.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    pub head: Head,
    /// An unfinished operation, such as a rebase.
    #[serde(default)]
    pub operation: Option<Operation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// Without `refs/heads/`.
    Branch(String),
    Detached,
    /// The files do not say, for example with the reftable format.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Merge,
    Rebase,
    Am,
    CherryPick,
    Revert,
    Bisect,
}

/// A state that a command should not have left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) way_back: String,
}

impl GitState {
    /// Parses the first line of the `HEAD` file: `ref: refs/heads/main`, or a commit.
    pub fn head_of(text: &str) -> Head {
        let line = text.lines().next().unwrap_or_default().trim();
        match line.strip_prefix("ref:").map(str::trim) {
            // With the reftable format, the file exists only for old versions of git.
            Some("refs/heads/.invalid") => Head::Unknown,
            Some(name) => name.strip_prefix("refs/heads/").map_or(Head::Unknown, |branch| Head::Branch(branch.to_owned())),
            None if line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit()) => Head::Detached,
            None => Head::Unknown,
        }
    }

    /// What is wrong, compared with the state at `start`, or with `branch` if HEAD must be on it.
    pub(super) fn troubles(&self, start: Option<&Self>, branch: Option<&str>) -> Vec<Trouble> {
        let expected = branch.or(match start.map(|start| &start.head) {
            Some(Head::Branch(name)) => Some(name.as_str()),
            Some(Head::Detached | Head::Unknown) | None => None,
        });
        let back = |name: &str| format!("`git switch {name}`");
        // Rebase and bisect detach HEAD themselves; ending them restores it.
        let head = match (&self.head, expected) {
            (Head::Branch(now), Some(expected)) if now != expected => {
                Some((format!("the branch is now `{now}`, and was `{expected}`"), back(expected)))
            }
            (Head::Detached, Some(expected)) if !self.operation.is_some_and(Operation::detaches) => {
                Some((format!("HEAD is detached, and was on the branch `{expected}`"), back(expected)))
            }
            (Head::Branch(_) | Head::Detached | Head::Unknown, _) => None,
        };
        let begun = self.operation.filter(|operation| start.and_then(|start| start.operation) != Some(*operation));
        let operation =
            begun.map(|operation| (format!("a {} is in progress", operation.describe()), operation.way_back().to_owned()));
        operation.into_iter().chain(head).map(|(what, way_back)| Trouble { what, way_back }).collect()
    }
}

impl Operation {
    fn detaches(self) -> bool {
        match self {
            Self::Rebase | Self::Am | Self::Bisect => true,
            Self::Merge | Self::CherryPick | Self::Revert => false,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "`git am`",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }

    fn way_back(self) -> &'static str {
        match self {
            Self::Merge => "`git merge --abort`",
            Self::Rebase => "`git rebase --abort`",
            Self::Am => "`git am --abort`",
            Self::CherryPick => "`git cherry-pick --abort`",
            Self::Revert => "`git revert --abort`",
            Self::Bisect => "`git bisect reset`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(head: Head, operation: Option<Operation>) -> GitState {
        GitState { head, operation }
    }

    fn branch(name: &str) -> Head {
        Head::Branch(name.to_owned())
    }

    #[test]
    fn head_is_read_from_its_file() {
        for (text, expected) in [
            ("ref: refs/heads/main\n", branch("main")),
            ("ref: refs/heads/feature/x\n", branch("feature/x")),
            ("ref: refs/heads/.invalid\n", Head::Unknown),
            ("ref: refs/remotes/x\n", Head::Unknown),
            ("1111111111111111111111111111111111111111\n", Head::Detached),
            ("", Head::Unknown),
            ("nonsense", Head::Unknown),
        ] {
            assert_eq!(GitState::head_of(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_switch_a_detached_head_and_a_merge_are_trouble_and_what_was_there_before_is_not() {
        let start = on(branch("main"), None);
        let said = |now: &GitState, start: &GitState| -> Vec<String> {
            now.troubles(Some(start), None).into_iter().map(|trouble| format!("{}: {}", trouble.what, trouble.way_back)).collect()
        };
        assert_eq!(said(&start, &start), [""; 0]);
        assert_eq!(said(&on(branch("x"), None), &start), ["the branch is now `x`, and was `main`: `git switch main`"]);
        assert_eq!(
            said(&on(Head::Detached, None), &start),
            ["HEAD is detached, and was on the branch `main`: `git switch main`"]
        );
        assert_eq!(said(&on(branch("main"), Some(Operation::Merge)), &start), ["a merge is in progress: `git merge --abort`"]);
        assert_eq!(said(&on(Head::Detached, Some(Operation::Rebase)), &start), ["a rebase is in progress: `git rebase --abort`"]);
        assert_eq!(said(&on(Head::Unknown, None), &start), [""; 0]);
        let merging = on(Head::Detached, Some(Operation::Merge));
        assert_eq!(said(&merging, &merging), [""; 0]);
        assert_eq!(start.troubles(None, None), []);
        assert_eq!(start.troubles(None, Some("verdone/x")).len(), 1, "the run knows the branch");
    }
}
