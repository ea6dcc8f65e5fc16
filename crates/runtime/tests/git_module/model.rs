//! What a repository is, in the smallest words: maps of paths. It knows nothing of git's commands or of how checkpoints are kept;
//! it says what a restore has to bring back.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Path = Vec<u8>;

/// What stands in the work tree at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File { bytes: Vec<u8>, mode: u32 },
    Link(Vec<u8>),
}

/// An entry of the index, or of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Staged {
    pub(crate) mode: u32,
    pub(crate) blob: Vec<u8>,
    /// Announced with `git add -N`, without content.
    pub(crate) intent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    Branch(String),
    Detached(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) files: BTreeMap<Path, Node>,
    pub(crate) index: BTreeMap<Path, Staged>,
    pub(crate) head: Head,
    /// Branches and the commits that they point to.
    pub(crate) branches: BTreeMap<String, String>,
    /// What each commit holds.
    pub(crate) trees: BTreeMap<String, BTreeMap<Path, Staged>>,
    /// Directories that are repositories of their own.
    pub(crate) nested: BTreeSet<Path>,
}

impl Node {
    /// How it would be staged. Names that end in `.crlf` are text whose line ends are git's.
    pub(crate) fn staged(&self, path: &[u8]) -> Staged {
        match self {
            Self::File { bytes, mode } => {
                let mode = if mode & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
                let blob = if is_text(path) { without_cr(bytes) } else { bytes.clone() };
                Staged { mode, blob, intent: false }
            }
            Self::Link(target) => Staged { mode: 0o120_000, blob: target.clone(), intent: false },
        }
    }
}

impl Staged {
    /// How git writes it into a work tree.
    fn checked_out(&self, path: &[u8]) -> Node {
        match self.mode {
            0o120_000 => Node::Link(self.blob.clone()),
            mode => {
                let bytes = if is_text(path) { with_cr(&self.blob) } else { self.blob.clone() };
                Node::File { bytes, mode: mode & 0o777 }
            }
        }
    }
}

impl Model {
    pub(crate) fn commit(&self) -> Option<&String> {
        match &self.head {
            Head::Branch(branch) => self.branches.get(branch),
            Head::Detached(commit) => Some(commit),
        }
    }

    /// The index becomes a commit. What was only announced does not.
    pub(crate) fn record(&mut self, commit: String) {
        let tree = self.index.iter().filter(|(_, staged)| !staged.intent);
        self.trees.insert(commit.clone(), tree.map(|(path, staged)| (path.clone(), staged.clone())).collect());
        self.set_commit(commit);
    }

    /// The content that a file has in HEAD, in the index and, for git's eyes, in the work tree.
    fn clean(&self, path: &[u8]) -> Option<&Staged> {
        let committed = self.committed(path)?;
        let node = self.files.get(path)?;
        (self.index.get(path) == Some(committed) && *committed == node.staged(path)).then_some(committed)
    }

    pub(crate) fn set_commit(&mut self, commit: String) {
        match &mut self.head {
            Head::Branch(branch) => drop(self.branches.insert(branch.clone(), commit)),
            Head::Detached(at) => *at = commit,
        }
    }

    /// Puts a node at a path, whatever stands in its way.
    pub(crate) fn put(&mut self, path: &[u8], node: Node) {
        self.files.retain(|other, _| !is_below(path, other) && !is_below(other, path));
        self.nested.retain(|other| !is_below(other, path) && other != path);
        self.files.insert(path.to_vec(), node);
    }

    pub(crate) fn stage(&mut self, path: &[u8], staged: Staged) {
        self.index.retain(|other, _| !is_below(path, other) && !is_below(other, path));
        self.index.insert(path.to_vec(), staged);
    }

    /// Neither in HEAD nor in the index, and a rule of `.gitignore` hides it.
    pub(crate) fn ignores(&self, path: &[u8]) -> bool {
        !self.index.contains_key(path) && self.committed(path).is_none() && hides(&self.rules(), path)
    }

    fn committed(&self, path: &[u8]) -> Option<&Staged> {
        self.trees.get(self.commit()?)?.get(path)
    }

    fn rules(&self) -> Vec<Path> {
        match self.files.get(b".gitignore".as_slice()) {
            Some(Node::File { bytes, .. }) => bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(),
            Some(Node::Link(_)) | None => Vec::new(),
        }
    }

    /// What a restore has to make of this. Paths of the second set may stay or go: ignored by the rules of the one state, seen by
    /// those of the other, and not there at the checkpoint.
    pub(crate) fn restored(&self, to: &Self) -> (Self, BTreeSet<Path>) {
        let mut branches = self.branches.clone();
        if let Head::Branch(branch) = &to.head {
            match to.branches.get(branch) {
                Some(commit) => branches.insert(branch.clone(), commit.clone()),
                None => branches.remove(branch),
            };
        }
        let mut files = BTreeMap::new();
        for (path, node) in to.files.iter().filter(|(path, _)| !to.ignores(path)) {
            let node = match (to.clean(path), self.files.get(path)) {
                (None, _) => node.clone(),
                // Git calls it unchanged: line ends and bits that git does not look at stay as they are.
                (Some(staged), Some(now)) if now.staged(path) == *staged => now.clone(),
                (Some(staged), _) => staged.checked_out(path),
            };
            files.insert(path.clone(), node);
        }
        let in_the_way = |path: &Path| files.keys().any(|other| is_below(other, path) || is_below(path, other));
        let mut either = BTreeSet::new();
        let mut stay = Vec::new();
        for (path, node) in &self.files {
            if files.contains_key(path) || in_the_way(path) || !to.ignores(path) {
                continue;
            }
            let was_there = to.files.contains_key(path);
            if was_there || hides(&self.rules(), path) {
                stay.push((path.clone(), node.clone()));
            } else {
                either.insert(path.clone());
            }
        }
        let nested = self.nested.iter().filter(|path| to.nested.contains(*path) && !in_the_way(path)).cloned().collect();
        files.extend(stay);
        let trees = self.trees.clone();
        (Self { files, index: to.index.clone(), head: to.head.clone(), branches, trees, nested }, either)
    }
}

fn hides(rules: &[Path], path: &[u8]) -> bool {
    rules.iter().filter(|rule| !rule.is_empty()).any(|rule| match (rule.strip_prefix(b"*"), rule.strip_suffix(b"/")) {
        (Some(suffix), _) => path.ends_with(suffix),
        (None, Some(directory)) => is_below(path, directory),
        (None, None) => path == rule,
    })
}

pub(crate) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

fn is_text(path: &[u8]) -> bool {
    path.ends_with(b".crlf")
}

fn without_cr(bytes: &[u8]) -> Vec<u8> {
    let keep = |at: &usize| bytes[*at] != b'\r' || bytes.get(at + 1) != Some(&b'\n');
    (0..bytes.len()).filter(keep).map(|at| bytes[at]).collect()
}

fn with_cr(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| if *byte == b'\n' { vec![b'\r', b'\n'] } else { vec![*byte] }).collect()
}
