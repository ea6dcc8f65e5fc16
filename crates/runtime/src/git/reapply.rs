//! Applies or reverts a commit's change on top of another commit, without a work tree.
//!
//! `git merge-tree --merge-base` needs git 2.40. Instead, we create commits whose common parent is the base, which works since
//! git 2.38. These commits are the same each time, and git collects them later.

use std::time::SystemTime;

use verdone_core::base::id::Oid;

use super::chain::{IDENTITY_MAIL, IDENTITY_NAME};
use super::error::GitError;
use super::path::RepoPath;
use super::{Git, is_object_id};

/// The tree without files. Git knows it even without an object.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    Clean { tree: Oid },
    Conflict { paths: Vec<RepoPath> },
}

impl Git {
    /// The tree of `onto` with the change of `commit`, as `git cherry-pick` would make it.
    pub fn merge_onto(&self, commit: &Oid, onto: &Oid) -> Result<Merged, GitError> {
        let Some(base) = self.parent_of(commit, onto)? else {
            // A first commit is a change of the empty tree.
            let base = self.stand_in(empty_tree(commit), None)?;
            let theirs = self.stand_in(&format!("{commit}^{{tree}}"), Some(&base))?;
            let ours = self.stand_in(&format!("{onto}^{{tree}}"), Some(&base))?;
            return self.merge(&ours, &theirs);
        };
        let ours = self.stand_in(&format!("{onto}^{{tree}}"), Some(&base))?;
        self.merge(&ours, commit)
    }

    /// The tree of `onto` without the change of `commit`, as `git revert` would make it. `paths` keep the content of `onto`: a
    /// log stays, even if the work is reverted.
    pub fn revert_except(&self, paths: &[RepoPath], commit: &Oid, onto: &Oid) -> Result<Merged, GitError> {
        let mut before = match self.parent_of(commit, onto)? {
            Some(parent) => format!("{parent}^{{tree}}"),
            None => empty_tree(commit).to_owned(),
        };
        let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let texts = paths.iter().zip(self.files_at(commit, &names)?);
        let unchanged: Vec<_> = texts.filter_map(|(path, text)| Some((path.clone(), Some(("100644", text?))))).collect();
        if !unchanged.is_empty()
            && let Some(tree) = self.resolve(&before)?
        {
            before = self.replace_in_tree(&tree, &unchanged)?.to_string();
        }
        let theirs = self.stand_in(&before, Some(commit))?;
        let ours = self.stand_in(&format!("{onto}^{{tree}}"), Some(commit))?;
        self.merge(&ours, &theirs)
    }

    fn parent_of(&self, commit: &Oid, onto: &Oid) -> Result<Option<Oid>, GitError> {
        if let Some(id) = [commit, onto].into_iter().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "merge-tree", detail: format!("{id} is not an object id") });
        }
        self.resolve(&format!("{commit}^"))
    }

    fn stand_in(&self, tree: &str, parent: Option<&Oid>) -> Result<Oid, GitError> {
        let parent: Vec<&str> = parent.iter().flat_map(|parent| ["-p", parent.as_str()]).collect();
        let mut call = self.plumbing("commit-tree").args(parent).args(["-m", "base of a merge", tree]);
        for who in ["AUTHOR", "COMMITTER"] {
            call = call.env(&format!("GIT_{who}_NAME"), IDENTITY_NAME).env(&format!("GIT_{who}_EMAIL"), IDENTITY_MAIL);
            call = call.env(&format!("GIT_{who}_DATE"), "@0 +0000");
        }
        call.line().map(Oid)
    }

    fn merge(&self, ours: &Oid, theirs: &Oid) -> Result<Merged, GitError> {
        let since = SystemTime::now();
        let options = ["--write-tree", "-z", "--name-only", "--no-messages", ours.as_str(), theirs.as_str()];
        let answer = self.durable("merge-tree").args(options).answer()?;
        let mut fields = answer.stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        match (answer.status.code(), fields.next()) {
            (Some(0), Some(tree)) => {
                self.sync_object_folders(since)?;
                Ok(Merged::Clean { tree: Oid(String::from_utf8_lossy(tree).trim_end().to_owned()) })
            }
            (Some(1), Some(_)) => Ok(Merged::Conflict { paths: fields.map(RepoPath::new).collect() }),
            _ => Err(answer.failure("merge-tree (git 2.38 or newer is needed)")),
        }
    }
}

pub(super) fn empty_tree(like: &Oid) -> &'static str {
    if like.as_str().len() == EMPTY_SHA256.len() { EMPTY_SHA256 } else { EMPTY_SHA1 }
}
