//! Resets a folder that an agent has written to, without checking out every file again.
//!
//! First, everything that the agent could have touched is moved away. This looks only at names, types and times: it runs no git,
//! follows no link and opens no file. What remains are files that Verdone itself checked out and that have not been written
//! since. Then git writes what is missing or differs between the commits, as in any of Verdone's own folders.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fchmod, flistxattr, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use verdone_core::base::id::Oid;

use super::Git;
use super::command::Call;
use super::error::GitError;
use super::filter::Filters;
use super::index::IndexFile;
use super::index_entries::{self, IndexEntry};
use super::index_stat::{IndexStat, look_newer_than_files};
use super::touched::is_untouched;
use super::workspace_files::PLAIN_INDEX;
use crate::base::open_folder::open_folder;

/// The clock for file times ticks at least a hundred times a second.
const TICK: Duration = Duration::from_millis(10);
/// How many entries to process between two looks at the clock.
const STRIDE: usize = 512;
const GITLINK_MODE: &[u8] = b"160000";
const NO_MODE: &[u8] = b"000000";

/// A folder to be reset to exactly the files of a commit.
#[derive(Debug, Clone, Copy)]
pub struct ResetFiles<'a> {
    pub folder: &'a Path,
    /// The index from when the folder was checked out. The agent's processes could not write to it since.
    pub index: &'a Path,
    /// A new folder on the same file system, for what is moved away.
    pub trash: &'a Path,
    /// When the agent became able to write, by the clock for file times.
    pub opened: SystemTime,
    /// The commit that was checked out, and the wanted one.
    pub from: &'a Oid,
    pub to: &'a Oid,
    /// How long scanning the folder may take.
    pub patience: Duration,
    pub filters: &'a Filters,
}

impl Git {
    /// After an error the folder is unusable. No process that could write into the folder may still be running.
    pub fn reset_files(&self, job: &ResetFiles<'_>) -> Result<(), GitError> {
        let differing = self.differing(job)?;
        let mut missing = move_away(job)?;
        let since = SystemTime::now();
        let changed: HashSet<&[u8]> = differing.iter().map(|change| &change.path[..]).collect();
        missing.retain(|path| !changed.contains(&path[..]));
        remove_files(job, &differing).map_err(GitError::io(job.folder))?;
        look_newer_than_files(job.index)?;
        let write = |change: &&Differing| change.entry.is_some();
        let wanted = missing.iter().chain(differing.iter().filter(write).map(|change| &change.path));
        let list: Vec<u8> = wanted.flat_map(|path| path.iter().copied().chain([0])).collect();
        if !differing.is_empty() {
            let options = ["-z", "--add", "--replace", "--index-info"];
            self.on_files(job, "update-index").args(options).stdin(index_info(&differing, job.to.as_str().len())).run()?;
        }
        if !list.is_empty() {
            let call = self.on_files(job, "checkout-index").args(["-f", "-u", "-z", "--stdin"]).stdin(list);
            job.filters.apply(call)?.run()?;
        }
        // Best effort: without it, only a build takes longer.
        let _ = self.copy_times_since(job.folder, job.index, since.checked_sub(TICK).unwrap_or(UNIX_EPOCH));
        Ok(())
    }

    fn on_files(&self, job: &ResetFiles<'_>, subcommand: &str) -> Call {
        Call::plumbing_with(job.folder, &PLAIN_INDEX, subcommand, self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", self.git_dir.clone())
            .env("GIT_WORK_TREE", job.folder)
            .env("GIT_INDEX_FILE", job.index)
    }

    /// The differences between the commits. An error if only a full checkout is correct: attributes decide how other files are
    /// written, and submodules are folders.
    fn differing(&self, job: &ResetFiles<'_>) -> Result<Vec<Differing>, GitError> {
        if job.from == job.to {
            return Ok(Vec::new());
        }
        let unexpected = |detail: String| GitError::Unexpected { what: "diff-tree", detail };
        if let Some(id) = [job.from, job.to].into_iter().find(|id| !super::is_object_id(id)) {
            return Err(unexpected(format!("{id} is not an object id")));
        }
        let options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", job.from.as_str(), job.to.as_str()];
        let listed = self.plumbing("diff-tree").args(options).run()?;
        let mut fields = listed.split(|byte| *byte == 0);
        let mut found = Vec::new();
        while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
            let words: Vec<&[u8]> = field.strip_prefix(b":").unwrap_or(field).split(|byte| *byte == b' ').collect();
            let (&[before, mode, _, id, _], Some(path)) = (&words[..], fields.next()) else {
                return Err(unexpected(String::from_utf8_lossy(field).into_owned()));
            };
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            if name == b".gitattributes" || [before, mode].contains(&GITLINK_MODE) {
                return Err(unexpected(format!("{} differs", String::from_utf8_lossy(path))));
            }
            let entry = (mode != NO_MODE).then(|| [mode, b" ", id].concat());
            found.push(Differing { path: path.to_vec(), entry });
        }
        Ok(found)
    }
}

/// A path that differs between the commits.
struct Differing {
    path: Vec<u8>,
    /// Mode and id in the wanted commit; `None` if it does not have the file.
    entry: Option<Vec<u8>>,
}

/// Removals come first, because a folder may become a file.
fn index_info(differing: &[Differing], id_length: usize) -> Vec<u8> {
    let (gone, there): (Vec<&Differing>, Vec<&Differing>) = differing.iter().partition(|change| change.entry.is_none());
    let line = |change: &Differing| {
        let entry = change.entry.clone().unwrap_or_else(|| [b"0 ", &b"0".repeat(id_length)[..]].concat());
        [&entry[..], b"\t", &change.path, b"\0"].concat()
    };
    gone.into_iter().chain(there).flat_map(line).collect()
}

/// Removes files that the wanted commit does not have, and folders that become empty.
fn remove_files(job: &ResetFiles<'_>, differing: &[Differing]) -> io::Result<()> {
    let folder = openat(CWD, job.folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    for Differing { path, .. } in differing.iter().filter(|change| change.entry.is_none()) {
        match unlinkat(&folder, &path[..], AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut above = &path[..];
        while let Some(slash) = above.iter().rposition(|byte| *byte == b'/') {
            above = &above[..slash];
            match unlinkat(&folder, above, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Moves away everything but untouched files. Returns the paths of index entries that have no such file.
fn move_away(job: &ResetFiles<'_>) -> Result<Vec<Vec<u8>>, GitError> {
    let unexpected = |detail: &str| GitError::Unexpected { what: "read-tree", detail: detail.to_owned() };
    let index = IndexFile::read(job.index)?.ok_or_else(|| unexpected("the index is missing"))?;
    let entries = index_entries::entries(&index.bytes).ok_or_else(|| unexpected("the index cannot be parsed"))?;
    if entries.iter().any(IndexEntry::is_hidden) {
        return Err(unexpected("a sparse checkout must be rebuilt"));
    }
    let walk = || -> io::Result<Vec<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let trash = openat(CWD, job.trash, flags, Mode::empty())?;
        let like = FolderLook::new(trash.as_fd())?;
        let folder = match openat(CWD, job.folder, flags, Mode::empty()) {
            Err(Errno::ACCESS) => reopen(job.folder)?,
            opened => opened?,
        };
        if FolderLook::new(folder.as_fd())?.mode != like.mode {
            fchmod(&folder, Mode::from_raw_mode(like.mode))?;
        }
        if FolderLook::new(folder.as_fd())? != like {
            return Err(io::Error::other("the folder itself has changed"));
        }
        let opened = job.opened.duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = Instant::now() + job.patience;
        let kept = vec![false; entries.len()];
        let mut sweep = Sweep { bytes: &index.bytes, entries: &entries, kept, trash, like, opened, until, moved: 0, seen: 0 };
        sweep.folder(folder.as_fd(), 0..entries.len(), 0)?;
        let missing = entries.iter().zip(&sweep.kept).filter(|(_, kept)| !**kept);
        Ok(missing.map(|(entry, _)| entry.path.to_vec()).collect())
    };
    walk().map_err(GitError::io(job.folder))
}

fn reopen(folder: &Path) -> io::Result<OwnedFd> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = fs::File::open(parent)?;
    Ok(open_folder(parent.as_fd(), &CString::new(name.as_encoded_bytes())?)?)
}

/// The properties of a freshly created folder. A folder that differs was changed.
#[derive(Debug, PartialEq, Eq)]
struct FolderLook {
    mode: u32,
    device: u64,
    /// Names of the extended attributes, including default ACLs.
    attributes: Vec<u8>,
}

impl FolderLook {
    fn new(folder: BorrowedFd<'_>) -> io::Result<Self> {
        let stat = fstat(folder)?;
        let mut attributes = vec![0; 1024];
        let length = match flistxattr(folder, &mut attributes[..]) {
            Ok(length) => length,
            Err(Errno::OPNOTSUPP) => 0,
            Err(error) => return Err(error.into()),
        };
        attributes.truncate(length);
        Ok(Self { mode: stat.st_mode & 0o7777, device: stat.st_dev, attributes })
    }
}

/// What the index has at a name.
enum Known {
    /// Position in the entries.
    File(usize),
    Folder(Range<usize>),
}

struct Sweep<'e> {
    bytes: &'e [u8],
    entries: &'e [IndexEntry<'e>],
    /// Which entries have untouched files.
    kept: Vec<bool>,
    trash: OwnedFd,
    like: FolderLook,
    /// The agent made no changes before this moment, counted from 1970.
    opened: Duration,
    until: Instant,
    moved: u64,
    seen: usize,
}

impl<'e> Sweep<'e> {
    /// `range` are the index entries below this folder, and `skip` is the length of its path with the slash.
    fn folder(&mut self, folder: BorrowedFd<'_>, range: Range<usize>, skip: usize) -> io::Result<()> {
        let known = self.known(range, skip);
        // Collect the names first, so that moving entries does not disturb the iteration.
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
                self.check_time()?;
            }
        }
        for name in names {
            match known.get(name.to_bytes()) {
                Some(Known::File(number)) if self.is_untouched(folder, &name, *number)? => self.kept[*number] = true,
                Some(Known::Folder(range)) => match self.enter(folder, &name)? {
                    Some(below) => self.folder(below.as_fd(), range.clone(), skip + name.to_bytes().len() + 1)?,
                    None => self.discard(folder, &name)?,
                },
                Some(Known::File(_)) | None => self.discard(folder, &name)?,
            }
        }
        Ok(())
    }

    /// Entries are sorted by their whole paths, so those of a folder are adjacent.
    fn known(&self, range: Range<usize>, skip: usize) -> HashMap<&'e [u8], Known> {
        let entries = self.entries;
        let mut known = HashMap::new();
        let mut at = range.start;
        while at < range.end {
            let entry = &entries[at];
            let rest = &entry.path[skip..];
            let Some(slash) = rest.iter().position(|byte| *byte == b'/') else {
                known.insert(rest, Known::File(at));
                at += 1;
                continue;
            };
            let prefix = &entry.path[..=skip + slash];
            let length = entries[at..range.end].iter().take_while(|entry| entry.path.starts_with(prefix)).count();
            known.insert(&rest[..slash], Known::Folder(at..at + length));
            at += length;
        }
        known
    }

    /// Submodules never count as untouched: git creates their empty folders.
    fn is_untouched(&mut self, folder: BorrowedFd<'_>, name: &CStr, number: usize) -> io::Result<bool> {
        self.check_time()?;
        let entry = &self.entries[number];
        if entry.is_submodule() {
            return Ok(false);
        }
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            stat => Ok(is_untouched(&stat?, &IndexStat::read(self.bytes, entry.at), self.opened)),
        }
    }

    /// Opens a folder that looks freshly created; `None` for anything else.
    fn enter(&self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(parent, name, flags, Mode::empty()) {
            Ok(folder) => Ok(if FolderLook::new(folder.as_fd())? == self.like { Some(folder) } else { None }),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NOENT | Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn discard(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.check_time()?;
        self.moved += 1;
        let place = self.moved.to_string();
        match renameat(folder, name, &self.trash, place.as_str()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Moving a folder to another parent requires write access to it.
            Err(Errno::ACCESS | Errno::PERM) => {
                drop(open_folder(folder, name)?);
                Ok(renameat(folder, name, &self.trash, place.as_str())?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check_time(&mut self) -> io::Result<()> {
        self.seen += 1;
        if self.seen.is_multiple_of(STRIDE) && Instant::now() >= self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}
