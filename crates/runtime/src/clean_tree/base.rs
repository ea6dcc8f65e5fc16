//! What setup commands made in a tree that is kept: remembered file by file, so that the next use finds it as they left it, or
//! knows that it does not. A check that wrote into it must not help the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::folder::{Taken, remove_all};
use crate::atomic::write_atomically;
use crate::git::TreeFile;
use crate::regular::read_regular;

/// The list of what setup made.
const LIST: &str = "made";
const LARGEST_LIST: u64 = 1 << 30;
/// Git's link in the top folder.
const GIT: &str = ".git";

/// Each path, relative to the top, with what tells that it was not touched. Folders have no such thing.
pub(super) type Made = BTreeMap<PathBuf, String>;

/// What setup made, where all of it is as it was.
pub(super) fn unchanged(taken: &Taken) -> Option<Made> {
    let made = read(&read_regular(&taken.dir().join(LIST), LARGEST_LIST).ok()?)?;
    let top = taken.tree();
    let same = |path: &Path, seen: &str| fs::symlink_metadata(top.join(path)).is_ok_and(|meta| state(&meta) == seen);
    made.iter().all(|(path, seen)| same(path, seen)).then_some(made)
}

/// Writes down everything that belongs neither to the tree nor to the links.
pub(super) fn remember(taken: &Taken, tracked: &[TreeFile], links: &[PathBuf]) -> io::Result<Made> {
    let mut theirs: BTreeSet<&Path> = links.iter().map(PathBuf::as_path).collect();
    theirs.extend([Path::new(GIT)]);
    theirs.extend(tracked.iter().map(|file| file.path.as_path()));
    let around: BTreeSet<&Path> = theirs.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let mut made = Made::new();
    walk(&taken.tree(), Path::new(""), &mut |path, meta| {
        if !theirs.contains(path) && !around.contains(path) {
            made.insert(path.to_owned(), state(meta));
        }
    })?;
    write_atomically(&taken.dir().join(LIST), &write(&made))?;
    Ok(made)
}

/// Removes everything else.
pub(super) fn wipe(taken: &Taken, made: &Made) -> io::Result<()> {
    let around: BTreeSet<&Path> = made.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    clear(&taken.tree(), Path::new(""), &|path| made.contains_key(path), &|path| around.contains(path))?;
    remove_all(&taken.own())
}

fn clear(top: &Path, dir: &Path, made: &dyn Fn(&Path) -> bool, around: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(top.join(dir))? {
        let entry = entry?;
        let (path, place) = (dir.join(entry.file_name()), entry.path());
        let is_dir = entry.file_type()?.is_dir();
        if is_dir && (made(&path) || around(&path)) {
            clear(top, &path, made, around)?;
        } else if is_dir {
            remove_all(&place)?;
        } else if !made(&path) {
            fs::remove_file(&place)?;
        }
    }
    Ok(())
}

fn walk(top: &Path, dir: &Path, on: &mut dyn FnMut(&Path, &Metadata)) -> io::Result<()> {
    for entry in fs::read_dir(top.join(dir))? {
        let entry = entry?;
        let (path, meta) = (dir.join(entry.file_name()), entry.metadata()?);
        on(&path, &meta);
        if meta.is_dir() {
            walk(top, &path, on)?;
        }
    }
    Ok(())
}

/// The time of the last change of anything about a file cannot be set back by those who write to it.
fn state(meta: &Metadata) -> String {
    if meta.is_dir() {
        return format!("folder {:o}", meta.permissions().mode());
    }
    let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    format!("{:o} {} {} {changed}", meta.mode(), meta.ino(), meta.size())
}

fn write(made: &Made) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, state) in made {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(state.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn read(bytes: &[u8]) -> Option<Made> {
    let mut fields = bytes.split(|byte| *byte == 0);
    let mut made = Made::new();
    while let (Some(path), Some(state)) = (fields.next(), fields.next()) {
        made.insert(PathBuf::from(OsStr::from_bytes(path)), String::from_utf8(state.to_vec()).ok()?);
    }
    Some(made)
}
