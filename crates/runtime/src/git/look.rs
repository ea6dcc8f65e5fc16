//! All that a check which runs in place can see of a work tree, as far as git does not ignore it: the bytes of every file as they lie
//! there, whatever git's filters make of them; HEAD, branch and index; and folders without a file. Reads alone, nothing is written.
//!
//! A tree of git is less: files that differ in their line ends alone can be the same in it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use verdone_core::id::digest;

use super::Git;
use super::error::GitError;
use super::files;
use super::index::IndexFile;
use super::index_entries::entries;
use super::path::{PathSet, RepoPath};
use super::status::{Kind, Status};
use crate::known_files::{Bytes, KnownFiles, Stamp};
use crate::project::HOME;

/// A folder with more folders in it is not looked through for whether it is empty.
const MOST_FOLDERS: usize = 10_000;

/// A work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Digest of all files, tracked or not: the same before and after a commit.
    pub(crate) content: String,
    /// Digest of the rest: HEAD, branch, index, empty folders, other repositories inside.
    pub(crate) around: String,
    /// Whether everything could be read.
    pub(crate) whole: bool,
}

impl Git {
    /// One `git status`, and meanwhile a look at every file that git tracks. `but` and untracked files that are not `wanted` are left out.
    pub(crate) fn look(
        &self,
        known: &mut KnownFiles,
        but: &PathSet,
        wanted: &dyn Fn(&RepoPath) -> bool,
    ) -> Result<(Status, Looked), GitError> {
        let learning = &mut *known;
        let (status, seen) = std::thread::scope(|scope| {
            let files = scope.spawn(move || -> Result<Seen<'_>, GitError> {
                learning.load();
                let tracked = self.tracked(but)?;
                let mut seen = Seen::of(&self.top, learning, tracked.listing);
                seen.tracked(tracked.paths);
                seen.content();
                Ok(seen)
            });
            (self.status(), files.join())
        });
        let (status, mut seen) = (status?, seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        for entry in status.entries.iter().filter(|entry| !but.contains(&entry.path)) {
            match &entry.kind {
                Kind::Untracked if wanted(&entry.path) => seen.untracked(&entry.path),
                Kind::Submodule { .. } | Kind::Nested => seen.others.push(format!("{} {:?}", entry.path, entry.kind)),
                Kind::Untracked | Kind::Tracked { .. } | Kind::Unmerged { .. } | Kind::Ignored => {}
            }
        }
        seen.empty_folders(but);
        let looked = seen.looked(&status);
        known.keep();
        Ok((status, looked))
    }

    fn tracked(&self, but: &PathSet) -> Result<Tracked, GitError> {
        let Some(index) = IndexFile::read(&self.index_path())? else { return Ok(Tracked::default()) };
        let mut tracked = Tracked::default();
        let kept = |path: &[u8]| !but.covers(path);
        if let Some(entries) = entries(&index.bytes) {
            for entry in entries.iter().filter(|entry| kept(entry.path)) {
                tracked.add(entry.path);
                for part in [&entry.mode.to_be_bytes()[..], &entry.marks.to_be_bytes(), &entry.extended.to_be_bytes(), entry.id] {
                    tracked.listing.extend_from_slice(part);
                }
            }
            return Ok(tracked);
        }
        let listed = self.plumbing("ls-files").args(["--stage", "-v", "-z"]).run()?;
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
            if kept(&record[tab + 1..]) {
                tracked.add(&record[tab + 1..]);
                tracked.listing.extend_from_slice(&record[..tab]);
            }
        }
        Ok(tracked)
    }
}

/// What the index lists.
#[derive(Default)]
struct Tracked {
    paths: Vec<RepoPath>,
    listing: Vec<u8>,
}

impl Tracked {
    fn add(&mut self, path: &[u8]) {
        self.listing.push(0);
        self.listing.extend_from_slice(path);
        self.listing.push(0);
        // A conflict has several entries.
        if self.paths.last().is_none_or(|last| last.as_bytes() != path) {
            self.paths.push(RepoPath::new(path));
        }
    }
}

struct Seen<'s> {
    top: &'s Path,
    known: &'s mut KnownFiles,
    index: Vec<u8>,
    files: Vec<(RepoPath, What)>,
    content: Option<String>,
    /// How many names a folder has tells how many folders are in it. Not every file system does that.
    links_count_folders: bool,
    /// Folders in which nothing is tracked.
    strange: BTreeSet<RepoPath>,
    /// Folders with an untracked file somewhere below.
    with_untracked: BTreeSet<RepoPath>,
    /// What lies inside and is neither file nor tracked folder.
    others: Vec<String>,
    whole: bool,
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    File {
        may_run: u32,
        bytes: Bytes,
    },
    /// Its times, because it may not be read.
    Closed(Stamp),
    Link(Vec<u8>),
    Other(String),
}

impl<'s> Seen<'s> {
    fn of(top: &'s Path, known: &'s mut KnownFiles, index: Vec<u8>) -> Self {
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

    /// Folder by folder: that is a third of the cost of going down to each file.
    fn tracked(&mut self, paths: Vec<RepoPath>) {
        self.files.reserve(paths.len());
        let mut folders: BTreeMap<RepoPath, Vec<RepoPath>> = BTreeMap::from([(RepoPath::new(b""), Vec::new())]);
        let mut rest = paths.into_iter().filter(RepoPath::is_safe).peekable();
        // Files of one folder mostly come together.
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
        // One that is none, a link for instance, has nothing below it.
        let mut real: HashSet<RepoPath> = HashSet::new();
        for (folder, inside) in folders {
            if !folder.as_bytes().is_empty() && !real.contains(folder_of(&folder)) {
                continue;
            }
            match self.folder(&folder, inside, &known) {
                Ok(()) => {
                    real.insert(folder);
                }
                // Another may have come in its place, and the count be the same.
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
                // A submodule, or a folder in the place of a file.
                FileType::Directory => {}
                other => self.add(path, What::Other(format!("{other:?}"))),
            }
        }
        let links = open.metadata().map_or(0, |meta| meta.nlink());
        if self.links_count_folders && Some(links) == known.get(folder).map(|folders| 2 + folders) {
            return Ok(());
        }
        let found = self.strangers(folder, open.into(), known)?;
        // The top comes first.
        if folder.as_bytes().is_empty() {
            self.links_count_folders = found > 0 && links == 2 + found;
        }
        Ok(())
    }

    /// Folders in this one in which nothing is tracked. Counts all of its folders.
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

    fn untracked(&mut self, path: &RepoPath) {
        self.with_untracked.extend(path.parents());
        match files::stat(self.top, path) {
            Ok(Some(meta)) if meta.is_file() => self.file(path.clone(), Stamp::of(&meta), meta.mode()),
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

    /// The digest of all files so far: it stays, unless others come.
    fn content(&mut self) -> String {
        if let Some(content) = &self.content {
            return content.clone();
        }
        self.files.sort_unstable();
        self.files.dedup();
        let mut bytes = Vec::with_capacity(self.files.len() * 96);
        for (path, what) in &self.files {
            // No path holds a NUL, so nothing can be taken for another file.
            bytes.extend_from_slice(path.as_bytes());
            bytes.push(0);
            what.write(&mut bytes);
        }
        self.content.insert(digest(&bytes)).clone()
    }

    /// Folders with no file in them, and none below. One with ignored files is ignored.
    fn empty_folders(&mut self, but: &PathSet) {
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

    fn looked(mut self, status: &Status) -> Looked {
        self.others.sort();
        let around = (&status.head, &status.branch, digest(&self.index), &self.others);
        Looked { around: digest(format!("{around:?}").as_bytes()), content: self.content(), whole: self.whole }
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

fn open_folder(place: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, place, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// What an entry of an open folder is, its times and its mode.
#[cfg(target_os = "linux")]
fn stat_in(open: &fs::File, _: &Path, name: &[u8]) -> rustix::io::Result<(FileType, Stamp, u32)> {
    let stat = rustix::fs::statat(open, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    let time = |seconds: i64, nanoseconds: u64| seconds.saturating_mul(1_000_000_000).saturating_add_unsigned(nanoseconds);
    let stamp = Stamp::new(
        [stat.st_dev, stat.st_ino, stat.st_size.unsigned_abs()],
        [time(stat.st_mtime, stat.st_mtime_nsec), time(stat.st_ctime, stat.st_ctime_nsec)],
    );
    Ok((FileType::from_raw_mode(stat.st_mode), stamp, stat.st_mode))
}

/// Numbers have other types on other systems: the library knows them, for a whole path.
#[cfg(not(target_os = "linux"))]
fn stat_in(_: &fs::File, place: &Path, name: &[u8]) -> rustix::io::Result<(FileType, Stamp, u32)> {
    let meta = fs::symlink_metadata(place.join(std::ffi::OsStr::from_bytes(name)))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let kind = match meta.file_type() {
        kind if kind.is_file() => FileType::RegularFile,
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_dir() => FileType::Directory,
        _ => FileType::Unknown,
    };
    Ok((kind, Stamp::of(&meta), meta.mode()))
}

fn folder_of(path: &RepoPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &bytes[..at])
}

fn below(folder: &RepoPath, name: &[u8]) -> RepoPath {
    if folder.as_bytes().is_empty() { RepoPath::new(name) } else { RepoPath::new(&[folder.as_bytes(), b"/", name].concat()) }
}

/// Not every file system says what an entry is.
fn is_folder(place: &Path, kind: FileType) -> bool {
    kind == FileType::Directory || fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir())
}

#[derive(Default)]
struct Listed {
    folders: Vec<Vec<u8>>,
    files: bool,
}

fn folders_in(place: &Path) -> io::Result<Listed> {
    let mut listed = Listed::default();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
            listed.folders.push(entry.file_name().as_bytes().to_vec());
        } else {
            listed.files = true;
        }
    }
    Ok(listed)
}

/// The folder and those in it, if there is nothing else.
fn bare(place: &Path, folder: &RepoPath) -> Option<Vec<RepoPath>> {
    let (mut all, mut next) = (Vec::new(), vec![(place.to_owned(), folder.clone())]);
    while let Some((place, folder)) = next.pop() {
        let listed = folders_in(&place).ok().filter(|listed| !listed.files)?;
        for name in &listed.folders {
            next.push((place.join(std::ffi::OsStr::from_bytes(name)), below(&folder, name)));
        }
        all.push(folder);
        if all.len() > MOST_FOLDERS {
            return None;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let world = Self { dir: tempfile::tempdir().unwrap() };
            world.git(&["init", "--quiet"]);
            for (name, text) in [
                (".gitattributes", "*.txt text=auto\n"),
                (".gitignore", "*.log\n"),
                ("src/a.txt", "one\n"),
                ("src/b", "b"),
                ("src/deep/c", "c"),
            ] {
                world.write(name, text);
            }
            symlink("a.txt", world.at("src/link")).unwrap();
            world.git(&["add", "--all"]);
            world.commit();
            world
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
            fs::write(self.at(name), text).unwrap();
        }

        fn git(&self, arguments: &[&str]) {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(self.dir.path());
            assert!(command.status().unwrap().success(), "{arguments:?}");
        }

        fn commit(&self) {
            self.git(&["commit", "--quiet", "--allow-empty", "--message", "c"]);
        }

        fn look(&self) -> Looked {
            let git = Git::open(self.dir.path()).unwrap();
            git.look(&mut KnownFiles::default(), &["own"].into_iter().collect(), &|path| path.as_bytes() != b"unwanted")
                .unwrap()
                .1
        }
    }

    #[test]
    fn everything_that_can_be_seen_counts_and_nothing_else() {
        let world = World::new();
        let mut last = world.look();
        assert!(last.whole);
        let mut step = |what: &str, content: bool, around: bool, change: &dyn Fn()| {
            change();
            let now = world.look();
            assert_eq!((now.content != last.content, now.around != last.around), (content, around), "{what}");
            assert!(now.whole, "{what}");
            last = now;
        };
        step("nothing", false, false, &|| ());
        step("line ends that git makes equal", true, false, &|| world.write("src/a.txt", "one\r\n"));
        step("a mode", true, false, &|| fs::set_permissions(world.at("src/b"), fs::Permissions::from_mode(0o755)).unwrap());
        step("where a link leads", true, false, &|| {
            fs::remove_file(world.at("src/link")).unwrap();
            symlink("b", world.at("src/link")).unwrap();
        });
        step("an empty folder", false, true, &|| fs::create_dir_all(world.at("empty/inner")).unwrap());
        step("a folder in it", false, true, &|| fs::create_dir(world.at("empty/other")).unwrap());
        step("one in a tracked folder", false, true, &|| fs::create_dir(world.at("src/empty")).unwrap());
        step("its name", false, true, &|| fs::rename(world.at("src/empty"), world.at("src/other")).unwrap());
        step("it is gone", false, true, &|| fs::remove_dir(world.at("src/other")).unwrap());
        step("one instead of a tracked folder", true, true, &|| {
            fs::remove_dir_all(world.at("src/deep")).unwrap();
            fs::create_dir(world.at("src/empty")).unwrap();
        });
        step("its name there", false, true, &|| fs::rename(world.at("src/empty"), world.at("src/other")).unwrap());
        step("a new file", true, false, &|| world.write("new/file", "x"));
        step("an empty folder beside it", false, true, &|| fs::create_dir(world.at("new/empty")).unwrap());
        step("an ignored file in a folder of its own", false, false, &|| world.write("logs/a.log", "x"));
        step("what is ours or not wanted", false, false, &|| {
            world.write("own/file", "x");
            world.write("unwanted", "x");
        });
        step("the index", false, true, &|| world.git(&["add", "new/file"]));
        step("HEAD", false, true, &|| world.commit());
        step("the branch", false, true, &|| world.git(&["checkout", "--quiet", "-b", "other"]));
        step("a mark that hides a file from git", false, true, &|| world.git(&["update-index", "--assume-unchanged", "src/b"]));
        step("a hidden file", true, false, &|| world.write("src/b", "hidden"));
        step("an index of another format", false, true, &|| world.git(&["update-index", "--index-version", "4"]));
        step("a file of it", true, false, &|| world.write("src/a.txt", "two"));
        step("a folder that is a link", true, true, &|| {
            fs::rename(world.at("new"), world.at("logs/new")).unwrap();
            symlink("logs/new", world.at("new")).unwrap();
        });
    }
}
