//! File digests, cached in `.verdone/cache/files` under metadata that shows whether a file changed. Scanning a whole work tree then means
//! comparing file times instead of reading the bytes.
//!
//! The change time cannot be set back, so equal times mean equal bytes. The exception is a file changed a moment ago, which may change
//! again within the same clock tick; such files are not cached. An agent can write to the folder, so the list carries a seal. Without a
//! place for the secret, nothing is cached.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::base::atomic::replace_for_readers;
use crate::base::cache_folder::cache_folder;
use crate::base::plain_file::{open_regular, read_regular};
use crate::base::seal::Seal;

/// The purpose of the seal. Change it whenever the format changes.
const PURPOSE: &str = "known files 2";
const LARGEST_LIST: u64 = 256 * 1024 * 1024;
/// Longer than one tick of the clock that file times come from.
const YOUNG: Duration = Duration::from_millis(500);
/// For file systems that store times in steps of two seconds, without fractions.
const YOUNG_IN_STEPS: Duration = Duration::from_secs(3);
/// Larger files are not read; their times stand in for the content.
const LARGEST: u64 = 1024 * 1024 * 1024;
const STAMP: usize = 40;

/// The digest of a file's content.
pub(crate) type Bytes = [u8; 32];

/// Device, inode, size and both times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(pub(crate) [u8; STAMP]);

impl Stamp {
    pub(crate) fn from_metadata(meta: &fs::Metadata) -> Self {
        let time = |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        Self::new(
            [meta.dev(), meta.ino(), meta.size()],
            [time(meta.mtime(), meta.mtime_nsec()), time(meta.ctime(), meta.ctime_nsec())],
        )
    }

    /// Times in nanoseconds.
    pub(crate) fn new([dev, ino, size]: [u64; 3], [modified, changed]: [i64; 2]) -> Self {
        let mut bytes = [0; STAMP];
        let parts = [dev, ino, size, modified.cast_unsigned(), changed.cast_unsigned()];
        for (slot, part) in bytes.chunks_exact_mut(8).zip(parts) {
            slot.copy_from_slice(&part.to_be_bytes());
        }
        Self(bytes)
    }

    fn number(&self, at: usize) -> u64 {
        self.0[8 * at..].iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn size(&self) -> u64 {
        self.number(2)
    }

    /// Whether it was last changed neither just now nor in the future.
    fn is_old(&self, now: i64) -> bool {
        let is_old = |time: i64| {
            let age = if time % 1_000_000_000 == 0 { YOUNG_IN_STEPS } else { YOUNG };
            time < now.saturating_sub(i64::try_from(age.as_nanos()).unwrap_or(i64::MAX))
        };
        is_old(self.number(3).cast_signed()) && is_old(self.number(4).cast_signed())
    }
}

/// The cached digests of one work tree.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// The project root and its git top.
    place: Option<(PathBuf, PathBuf)>,
    list: Option<(PathBuf, Seal)>,
    kept: Kept,
    learnt: BTreeMap<Vec<u8>, (Stamp, Bytes)>,
}

/// The list as read. Names are ranges in the text.
#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    /// Sorted by name.
    files: Vec<Known>,
    /// Where to search next: files are requested in about the same order.
    next: usize,
}

#[derive(Debug)]
struct Known {
    name: Range<usize>,
    stamp: Stamp,
    bytes: Bytes,
    /// Whether the file still exists; others are dropped.
    seen: bool,
}

impl Kept {
    /// `None` if the text is not a valid list.
    fn read(text: Vec<u8>, begin: usize) -> Option<Self> {
        let mut files: Vec<Known> = Vec::with_capacity(text.len() / 96);
        let mut at = begin;
        while at < text.len() {
            let (length, rest) = text[at..].split_first_chunk::<4>()?;
            let name = at + 4..(at + 4).checked_add(u32::from_be_bytes(*length) as usize)?;
            let rest = rest.get(name.len()..)?;
            let (stamp, rest) = rest.split_first_chunk::<STAMP>()?;
            let (bytes, _) = rest.split_first_chunk::<32>()?;
            if files.last().is_some_and(|last| text[last.name.clone()] >= text[name.clone()]) {
                return None;
            }
            at = name.end + STAMP + bytes.len();
            files.push(Known { name, stamp: Stamp(*stamp), bytes: *bytes, seen: false });
        }
        Some(Self { text, files, next: 0 })
    }

    fn find(&mut self, name: &[u8]) -> Option<&mut Known> {
        let named = |known: &Known| self.text[known.name.clone()].cmp(name);
        let at = match self.files.get(self.next) {
            Some(known) if named(known).is_eq() => self.next,
            Some(_) | None => self.files.binary_search_by(named).ok()?,
        };
        self.next = at + 1;
        self.files.get_mut(at)
    }

    /// Entries that are still valid.
    fn seen(&self) -> impl Iterator<Item = (&[u8], (Stamp, Bytes))> {
        self.files.iter().filter(|known| known.seen).map(|known| (&self.text[known.name.clone()], (known.stamp, known.bytes)))
    }
}

impl KnownFiles {
    /// The cache of the project at `root`.
    pub(crate) fn open(root: &Path, git_top: &Path) -> Self {
        Self { place: Some((root.to_owned(), git_top.to_owned())), ..Self::default() }
    }

    /// Reads the list once. Not done on construction, so that callers can do it in parallel with other work.
    pub(crate) fn load(&mut self) {
        let Some((root, git_top)) = self.place.take() else { return };
        self.list = Seal::from_environment(&root, &git_top).map(|seal| (root, seal));
        let kept = self.list.as_ref().and_then(|(root, seal)| read(root, seal));
        self.kept = kept.unwrap_or_default();
    }

    /// The digest of the file with this name below `top`.
    pub(crate) fn digest(&mut self, top: &Path, name: &[u8], stamp: Stamp) -> io::Result<Bytes> {
        if let Some(known) = self.kept.find(name).filter(|known| known.stamp == stamp) {
            known.seen = true;
            return Ok(known.bytes);
        }
        if stamp.size() > LARGEST {
            return Ok(Sha256::new().chain_update("large").chain_update(stamp.0).finalize().into());
        }
        let mut file = open_regular(&top.join(OsStr::from_bytes(name)), OpenOptions::new().read(true))?;
        let begun = Stamp::from_metadata(&file.metadata()?);
        let bytes = digest_of(&mut file)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        if begun == stamp && Stamp::from_metadata(&file.metadata()?) == stamp && stamp.is_old(now) {
            self.learnt.insert(name.to_vec(), (stamp, bytes));
        }
        Ok(bytes)
    }

    /// Saves new digests. If that fails, they are computed again next time.
    pub(crate) fn keep(&mut self) {
        let Some((root, seal)) = self.list.as_ref().filter(|_| !self.learnt.is_empty()) else { return };
        let learnt = self.learnt.iter().map(|(name, known)| (name.as_slice(), *known));
        let all: BTreeMap<&[u8], (Stamp, Bytes)> = self.kept.seen().chain(learnt).collect();
        let mut body = Vec::with_capacity(all.len() * 128);
        for (name, (stamp, bytes)) in all {
            let Ok(length) = u32::try_from(name.len()) else { continue };
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(name);
            body.extend_from_slice(&stamp.0);
            body.extend_from_slice(&bytes);
        }
        let _ = cache_folder(root).and_then(|_| replace_for_readers(&path(root), &seal.put_on(PURPOSE, &body)));
    }
}

fn digest_of(file: &mut fs::File) -> io::Result<Bytes> {
    let (mut sum, mut part) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(sum.finalize().into()),
            length => sum.update(&part[..length]),
        }
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(".verdone/cache/files")
}

fn read(root: &Path, seal: &Seal) -> Option<Kept> {
    let text = read_regular(&path(root), LARGEST_LIST).ok()?;
    let begin = text.len() - seal.checked(PURPOSE, &text)?.len();
    Kept::read(text, begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        root: PathBuf,
        state: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = fs::canonicalize(dir.path()).unwrap();
            let (root, state) = (base.join("project"), base.join("state"));
            fs::create_dir(&root).unwrap();
            Self { _dir: dir, root, state }
        }

        fn seal(&self) -> Seal {
            Seal::open(&self.root, &self.root, &self.state).unwrap()
        }

        fn open(&self) -> KnownFiles {
            let kept = read(&self.root, &self.seal()).unwrap_or_default();
            KnownFiles { list: Some((self.root.clone(), self.seal())), kept, ..KnownFiles::default() }
        }

        /// A file whose times look old enough to the list.
        fn old(&self) -> Stamp {
            fs::write(self.root.join("a"), "one").unwrap();
            fs::write(self.root.join("b"), "one").unwrap();
            Stamp::new([1, 2, 3], [1_000_000_000; 2])
        }
    }

    #[test]
    fn a_file_that_was_not_touched_is_not_read_again_and_a_forged_list_is_none() {
        let world = World::new();
        let stamp = world.old();
        let mut known = world.open();
        known.learnt.insert(b"gone".to_vec(), (stamp, [7; 32]));
        known.keep();
        let mut known = world.open();
        known.learnt.insert(b"a".to_vec(), (stamp, [7; 32]));
        known.keep();
        assert_eq!(world.open().kept.files.len(), 1, "what was not seen again is forgotten");
        let digest = |name: &[u8], stamp| world.open().digest(&world.root, name, stamp).unwrap();
        assert_eq!(digest(b"a", stamp), [7; 32]);
        let real = Bytes::from(Sha256::digest("one"));
        let other = Stamp::new([1, 2, 3], [1_000_000_000, 1_000_000_001]);
        assert_eq!(digest(b"a", other), real);
        assert_eq!(digest(b"b", stamp), real);
        let mut forged = fs::read(path(&world.root)).unwrap();
        let end = forged.len() - 1;
        forged[end] = 8;
        fs::write(path(&world.root), &forged).unwrap();
        assert_eq!(digest(b"a", stamp), real);
    }

    #[test]
    fn a_list_is_found_in_whatever_order_and_one_out_of_order_is_none() {
        let world = World::new();
        let stamp = world.old();
        let mut known = world.open();
        let names: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![b'x', n.wrapping_mul(7)]).collect();
        known.learnt.extend(names.iter().map(|name| (name.clone(), (stamp, [name[1]; 32]))));
        known.keep();
        let mut known = world.open();
        for name in names.iter().chain(names.iter().rev()) {
            assert_eq!(known.kept.find(name).map(|known| known.bytes), Some([name[1]; 32]));
            assert!(known.kept.find(b"y").is_none());
        }
        let entry = |name: &[u8]| [&1_u32.to_be_bytes()[..], name, &stamp.0, &[7; 32]].concat();
        let files = |text: Vec<u8>| Kept::read(text, 0).map(|kept| kept.files.len());
        assert_eq!(files([entry(b"a"), entry(b"b")].concat()), Some(2));
        assert_eq!(files([entry(b"b"), entry(b"a")].concat()), None);
        assert_eq!(files(entry(b"a")[..50].to_vec()), None);
    }

    #[test]
    fn a_file_of_this_moment_is_not_kept() {
        let world = World::new();
        let file = world.root.join("a");
        fs::write(&file, "one").unwrap();
        let mut known = world.open();
        known.digest(&world.root, b"a", Stamp::from_metadata(&fs::symlink_metadata(&file).unwrap())).unwrap();
        assert!(known.learnt.is_empty());
        let now = 1_000_000_000_000;
        let old = |times| Stamp::new([0; 3], times).is_old(now);
        assert!(!old([now; 2]) && !old([0, now + 9]) && !old([now - 1; 2]));
        assert!(old([now - 600_000_001; 2]) && old([now - 4_000_000_000; 2]));
        assert!(!old([now - 2_000_000_000; 2]), "whole seconds alone may be steps");
    }
}
