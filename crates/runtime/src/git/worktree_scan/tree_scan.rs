//! The files found in a work tree, and their digests.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Dir, FileType, readlinkat};
use rustix::io::Errno;
use verdone_core::base::id::digest;

use super::WorkTreeState;
use super::folders::{bare, below, folder_of, folders_in, is_folder, open_folder, stat_in};
use crate::base::digest_cache::{Bytes, KnownFiles, Stamp};
use crate::git::files;
use crate::git::path::{PathSet, RepoPath};
use crate::git::status::Status;
use crate::project::HOME;

pub(super) struct TreeScan<'s> {
    top: &'s Path,
    known: &'s mut KnownFiles,
    index: Vec<u8>,
    files: Vec<(RepoPath, What)>,
    content: Option<String>,
    /// Whether a folder's link count reveals its number of subfolders. Not every file system does that.
    links_count_folders: bool,
    /// Folders without tracked files.
    strange: BTreeSet<RepoPath>,
    /// Folders with an untracked file somewhere below them.
    with_untracked: BTreeSet<RepoPath>,
    /// Entries that are neither files nor tracked folders.
    pub(super) others: Vec<String>,
    whole: bool,
}

/// What exists at a path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    File {
        may_run: u32,
        bytes: Bytes,
    },
    /// An unreadable file, with its times.
    Closed(Stamp),
    Link(Vec<u8>),
    Other(String),
}

impl<'s> TreeScan<'s> {
    pub(super) fn new(top: &'s Path, known: &'s mut KnownFiles, index: Vec<u8>) -> Self {
        let (strange, with_untracked) = (BTreeSet::new(), BTreeSet::new());
        Self {
            top,
            known,
            index,
            files: Vec::new(),
            content: None,
            links_count_folders: false,
            strange,
            with_untracked,
            others: Vec::new(),
            whole: true,
        }
    }

    /// Goes folder by folder, which costs a third of looking up each file by its whole path.
    pub(super) fn tracked(&mut self, paths: Vec<RepoPath>) {
        self.files.reserve(paths.len());
        let mut folders: BTreeMap<RepoPath, Vec<RepoPath>> = BTreeMap::from([(RepoPath::new(b""), Vec::new())]);
        let mut rest = paths.into_iter().filter(RepoPath::is_safe).peekable();
        // Files of one folder usually come together.
        while let Some(first) = rest.next() {
            let folder = RepoPath::new(folder_of(&first));
            for parent in folder.parents() {
                folders.entry(parent).or_default();
            }
            let inside = folders.entry(folder.clone()).or_default();
            inside.push(first);
            inside.extend(std::iter::from_fn(|| rest.next_if(|path| folder_of(path) == folder.as_bytes())));
        }
        let mut known: HashMap<RepoPath, u64> = folders.keys().map(|folder| (folder.clone(), 0)).collect();
        for folder in folders.keys().filter(|folder| !folder.as_bytes().is_empty()) {
            if let Some(folders_inside) = known.get_mut(folder_of(folder)) {
                *folders_inside += 1;
            }
        }
        // Skip everything below a path that is not a real folder, a link for example.
        let mut real: HashSet<RepoPath> = HashSet::new();
        for (folder, inside) in folders {
            if !folder.as_bytes().is_empty() && !real.contains(folder_of(&folder)) {
                continue;
            }
            match self.folder(&folder, inside, &known) {
                Ok(()) => {
                    real.insert(folder);
                }
                // Another folder may have taken its place, so that the count is the same.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    let above = RepoPath::new(folder_of(&folder));
                    let open = open_folder(&self.top.join(above.as_path()));
                    self.whole &= open.and_then(|open| self.strangers(&above, open, &known)).is_ok();
                }
                Err(_) => self.whole = false,
            }
        }
    }

    fn folder(&mut self, folder: &RepoPath, inside: Vec<RepoPath>, known: &HashMap<RepoPath, u64>) -> rustix::io::Result<()> {
        let place = self.top.join(folder.as_path());
        let open = fs::File::from(open_folder(&place)?);
        let begin = if folder.as_bytes().is_empty() { 0 } else { folder.as_bytes().len() + 1 };
        for path in inside {
            let name = &path.as_bytes()[begin..];
            let (kind, stamp, mode) = match stat_in(&open, &place, name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(_) => {
                    self.whole = false;
                    continue;
                }
            };
            match kind {
                FileType::RegularFile => self.file(path, stamp, mode),
                FileType::Symlink => match readlinkat(&open, name, Vec::new()) {
                    Ok(target) => self.add(path, What::Link(target.into_bytes())),
                    Err(_) => self.whole = false,
                },
                // A submodule, or a folder in place of a file.
                FileType::Directory => {}
                other => self.add(path, What::Other(format!("{other:?}"))),
            }
        }
        let links = open.metadata().map_or(0, |meta| meta.nlink());
        if self.links_count_folders && Some(links) == known.get(folder).map(|folders| 2 + folders) {
            return Ok(());
        }
        let found = self.strangers(folder, open.into(), known)?;
        // The top folder comes first.
        if folder.as_bytes().is_empty() {
            self.links_count_folders = found > 0 && links == 2 + found;
        }
        Ok(())
    }

    /// Finds subfolders without tracked files. Returns the number of all subfolders.
    fn strangers(&mut self, folder: &RepoPath, open: OwnedFd, known: &HashMap<RepoPath, u64>) -> rustix::io::Result<u64> {
        let mut found = 0;
        for entry in Dir::new(open)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name().to_bytes(), entry.file_type());
            if matches!(name, b"." | b"..") || !matches!(kind, FileType::Directory | FileType::Unknown) {
                continue;
            }
            found += 1;
            let path = below(folder, name);
            if name != b".git" && !known.contains_key(&path) && is_folder(&self.top.join(path.as_path()), kind) {
                self.strange.insert(path);
            }
        }
        Ok(found)
    }

    pub(super) fn untracked(&mut self, path: &RepoPath) {
        self.with_untracked.extend(path.parents());
        match files::stat(self.top, path) {
            Ok(Some(meta)) if meta.is_file() => self.file(path.clone(), Stamp::from_metadata(&meta), meta.mode()),
            Ok(Some(meta)) if meta.is_symlink() => match fs::read_link(self.top.join(path.as_path())) {
                Ok(target) => self.add(path.clone(), What::Link(target.into_os_string().into_encoded_bytes())),
                Err(_) => self.whole = false,
            },
            Ok(Some(_)) => self.add(path.clone(), What::Other(String::new())),
            Ok(None) => {}
            Err(_) => self.whole = false,
        }
    }

    fn file(&mut self, path: RepoPath, stamp: Stamp, mode: u32) {
        match self.known.digest(self.top, path.as_bytes(), stamp) {
            Ok(bytes) => self.add(path, What::File { may_run: mode & 0o111, bytes }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => {
                self.add(path, What::Closed(stamp));
                self.whole = false;
            }
        }
    }

    fn add(&mut self, path: RepoPath, what: What) {
        self.files.push((path, what));
        self.content = None;
    }

    /// The digest of all files so far, cached until more files are added.
    pub(super) fn content(&mut self) -> String {
        if let Some(content) = &self.content {
            return content.clone();
        }
        self.files.sort_unstable();
        self.files.dedup();
        let mut bytes = Vec::with_capacity(self.files.len() * 96);
        for (path, what) in &self.files {
            // Paths contain no NUL, so entries cannot be mistaken for each other.
            bytes.extend_from_slice(path.as_bytes());
            bytes.push(0);
            what.write(&mut bytes);
        }
        self.content.insert(digest(&bytes)).clone()
    }

    /// Folders that contain no files at any depth. A folder with ignored files is left out.
    pub(super) fn empty_folders(&mut self, but: &PathSet) {
        let mut strange: Vec<RepoPath> = std::mem::take(&mut self.strange).into_iter().collect();
        while let Some(folder) = strange.pop() {
            if but.contains(&folder) || folder.as_bytes() == HOME.as_bytes() {
                continue;
            }
            let place = self.top.join(folder.as_path());
            if self.with_untracked.contains(&folder) {
                strange.extend(folders_in(&place).unwrap_or_default().folders.iter().map(|name| below(&folder, name)));
            } else if let Some(all) = bare(&place, &folder) {
                self.others.extend(all.iter().map(|folder| format!("{folder}/")));
            }
        }
    }

    pub(super) fn looked(mut self, status: &Status) -> WorkTreeState {
        self.others.sort();
        let around = (&status.head, &status.branch, digest(&self.index), &self.others);
        WorkTreeState { around: digest(format!("{around:?}").as_bytes()), content: self.content(), whole: self.whole }
    }
}

impl What {
    fn write(&self, to: &mut Vec<u8>) {
        let mut put = |kind: u8, what: &[u8]| {
            to.push(kind);
            to.extend_from_slice(&(what.len() as u64).to_be_bytes());
            to.extend_from_slice(what);
        };
        match self {
            Self::File { may_run, bytes } => {
                put(b'm', &may_run.to_be_bytes());
                put(b'f', bytes);
            }
            Self::Closed(stamp) => put(b'c', &stamp.0),
            Self::Link(target) => put(b'l', target),
            Self::Other(kind) => put(b'o', kind.as_bytes()),
        }
    }
}
