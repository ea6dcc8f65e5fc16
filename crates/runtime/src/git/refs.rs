//! Branches, tags and the stash: what a run does not touch, and how it sees that somebody did.
//!
//! Read from git's own files, because that costs no process; git is asked only where it keeps them in another format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use verdone_core::id::{Oid, RunId};

use super::chain::one_line;
use super::error::GitError;
use super::path::encode;
use super::{Git, is_object_id};
use crate::regular::{read_linked, read_regular};

const STASH: &str = "refs/stash";
/// A ref is one line; the name in it may be long.
const LARGEST_REF: u64 = 64 * 1024;
/// Millions of refs.
const LARGEST_LIST: u64 = 512 * 1024 * 1024;
const WATCHED: [&str; 2] = ["refs/heads", "refs/tags"];

/// Where branches, tags and stash entries point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refs {
    names: BTreeMap<String, Oid>,
    /// Newest last.
    stash: Vec<Oid>,
    /// Branches that other work trees are on. They move with what is done there.
    elsewhere: BTreeSet<String>,
}

/// What happened to refs since they were looked at before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefsMoved {
    /// One sentence each.
    pub told: Vec<String>,
    /// Commits that nothing may hold any more: former ends of branches, dropped stash entries.
    pub lost: Vec<Oid>,
}

impl Refs {
    /// What is different now. The run's own branch is left out: its history is judged apart.
    pub fn moved(&self, now: &Self, own_branch: Option<&str>) -> RefsMoved {
        let own = own_branch.map(|branch| format!("refs/heads/{branch}"));
        let mut found = RefsMoved::default();
        let mut names: Vec<&String> = self.names.keys().chain(now.names.keys()).collect();
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| Some(*name) != own.as_ref()) {
            let (what, is_branch) = shown(name);
            match (self.names.get(name), now.names.get(name)) {
                (Some(_), Some(_)) if self.elsewhere.contains(name) || now.elsewhere.contains(name) => {}
                (Some(old), Some(new)) if old != new => {
                    found.told.push(format!("{what} was moved from {old} to {new}"));
                    found.lost.extend(is_branch.then(|| old.clone()));
                }
                (Some(old), None) => {
                    found.told.push(format!("{what} was deleted; it was at {old}"));
                    found.lost.extend(is_branch.then(|| old.clone()));
                }
                (None, Some(new)) => found.told.push(format!("{what} was made at {}", new.short())),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        for dropped in self.stash.iter().filter(|entry| !now.stash.contains(entry)) {
            found.told.push(format!("a stash entry is gone; to have it back: git stash store {dropped}"));
            found.lost.push(dropped.clone());
        }
        let made = now.stash.iter().filter(|entry| !self.stash.contains(entry));
        found.told.extend(made.map(|entry| format!("a stash entry was made: {}", entry.short())));
        found
    }
}

impl Git {
    /// Branches, tags and stash entries as they are.
    pub fn refs(&self) -> Result<Refs, GitError> {
        if self.common_dir.join("reftable").exists() {
            return self.refs_as_git_lists_them();
        }
        let elsewhere = self.branches_elsewhere();
        let mut names = BTreeMap::new();
        let packed = read_if_there(&self.common_dir.join("packed-refs"))?;
        names.extend(packed.lines().filter_map(read_line).filter(|(name, _)| WATCHED.iter().any(|root| is_below(name, root))));
        for root in WATCHED {
            read_loose(&self.common_dir.join(root), root, &mut names).map_err(GitError::io(&self.common_dir.join(root)))?;
        }
        let log = read_if_there(&self.common_dir.join("logs").join(STASH))?;
        let stash = log.lines().filter_map(|line| line.split(' ').nth(1)).map(Oid::from).filter(is_object_id).collect();
        Ok(Refs { names, stash, elsewhere })
    }

    /// Keeps commits that would otherwise be collected, as part of the run's chain.
    pub fn keep_commits(&self, run: &RunId, commits: &[Oid], label: &str) -> Result<(), GitError> {
        let commits: Vec<&str> = commits.iter().filter(|id| is_object_id(id)).map(Oid::as_str).collect();
        if commits.is_empty() {
            return Ok(());
        }
        let subject = format!("kept: {}", one_line(label));
        self.append(run, |stream, previous| {
            let kept = stream.commit(&subject, Some(previous), &commits, &[])?;
            stream.ask(&kept)
        })?;
        Ok(())
    }

    fn refs_as_git_lists_them(&self) -> Result<Refs, GitError> {
        let listed =
            self.plumbing("for-each-ref").args(["--format=%(objectname) %(refname)"]).args(WATCHED).args([STASH]).line()?;
        let mut names: BTreeMap<String, Oid> = listed.lines().filter_map(read_line).collect();
        let mut stash = Vec::new();
        if names.remove(STASH).is_some() {
            let entries = self.plumbing("log").args(["-g", "--format=%H", STASH, "--"]).line()?;
            stash = entries.lines().map(Oid::from).collect();
            stash.reverse();
        }
        Ok(Refs { names, stash, elsewhere: BTreeSet::new() })
    }

    fn branches_elsewhere(&self) -> BTreeSet<String> {
        let linked = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = linked.chain([self.common_dir.clone()]).filter(|git_dir| *git_dir != self.git_dir);
        let branch = |git_dir: PathBuf| {
            let head = read_regular(&git_dir.join("HEAD"), LARGEST_REF).ok()?;
            String::from_utf8_lossy(&head).trim_end().strip_prefix("ref: ").map(str::to_owned)
        };
        others.filter_map(branch).collect()
    }
}

fn shown(name: &str) -> (String, bool) {
    match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(branch), _) => (format!("branch {branch}"), true),
        (None, Some(tag)) => (format!("tag {tag}"), false),
        (None, None) => (name.to_owned(), false),
    }
}

fn is_below(name: &str, root: &str) -> bool {
    name.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// A line of `packed-refs`; headers and what tags stand for are none. A name is spelled the same wherever it is read.
fn read_line(line: &str) -> Option<(String, Oid)> {
    let (id, name) = line.split_once(' ')?;
    let id = Oid::from(id);
    is_object_id(&id).then(|| (encode(name.as_bytes()), id))
}

/// Every ref that is a file of its own; it counts more than a packed one of the same name.
fn read_loose(dir: &Path, below: &str, names: &mut BTreeMap<String, Oid>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = format!("{below}/{}", encode(entry.file_name().as_encoded_bytes()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read_loose(&entry.path(), &name, names)?;
        } else if kind.is_file() && !name.ends_with(".lock") {
            // Git may replace or pack it at this moment.
            let text = read_regular(&entry.path(), LARGEST_REF).unwrap_or_default();
            let id = Oid::from(String::from_utf8_lossy(&text).trim_end());
            if is_object_id(&id) {
                names.insert(name, id);
            }
        }
    }
    Ok(())
}

fn read_if_there(path: &Path) -> Result<String, GitError> {
    match read_linked(path, LARGEST_LIST) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        // What is no file has nothing in it either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => Ok(String::new()),
        Err(source) => Err(GitError::Io { path: path.to_owned(), source }),
    }
}
