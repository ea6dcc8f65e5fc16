//! A private copy of the git folder without its objects. An agent, a check or Verdone itself uses it as `.git` in a workspace.
//!
//! Changes to it never reach the real repository, whose objects are an alternate. Settings, ignore rules, hooks, branches, tags
//! and remote branches are copied. Verdone's own refs, stashes, logs, other work trees, locks and secrets in the settings are
//! not. Repositories of submodules are copied in the same way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use verdone_core::base::id::Oid;

use super::command::Call;
use super::error::GitError;
use super::index_stat::copy_index_file;
use super::private_settings::private_settings;
use super::{Git, is_object_id};
use crate::base::plain_file::{read_linked, read_regular};

/// Where the launcher binds the real objects, in the private git folder.
pub const BOUND_OBJECTS: &str = "base-objects";

/// The refs that are copied.
const COPIED: [&str; 4] = ["refs/heads", "refs/tags", "refs/remotes", "refs/replace"];
/// The refs to delete from a copy of the reftables.
const DROPPED: [&str; 3] = ["refs/verdone", "refs/notes/verdone", "refs/stash"];
/// What git itself writes into a repository with reftables.
const TABLE_HEAD: &str = "ref: refs/heads/.invalid\n";
const TABLE_REFS: &str = "this repository uses the reftable format\n";
/// Git may merge a table into another while it is being copied.
const TRIES: u32 = 5;
/// Git follows alternates of alternates to this depth.
const DEEPEST: usize = 5;
const LARGEST_REF: u64 = 64 * 1024;
const LARGEST_LIST: u64 = 512 * 1024 * 1024;
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// How a private repository reaches the real objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternates {
    /// At [`BOUND_OBJECTS`], which a view mounts read-only.
    Bound,
    /// At their own path, if there is no view.
    Direct,
}

/// A new private repository.
#[derive(Debug, Clone, Copy)]
pub struct PrivateRepository<'a> {
    /// The new git folder.
    pub at: &'a Path,
    /// HEAD's branch and commit.
    pub branch: &'a str,
    pub head: Option<&'a Oid>,
    pub objects: Alternates,
    /// The index of the checked out files, so that `git status` finds them clean at once.
    pub index: Option<&'a Path>,
}

/// HEAD of a private repository.
#[derive(Debug, Clone, Copy)]
pub(super) enum Head<'a> {
    /// On this branch, at this commit.
    Branch(&'a str, Option<&'a Oid>),
    AsItIs,
}

impl Git {
    /// Makes a private repository. For most repositories, this starts no process.
    pub fn make_private_repository(&self, new: &PrivateRepository<'_>) -> Result<(), GitError> {
        if let Some(id) = new.head.filter(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "rev-parse", detail: format!("{id} is not an object id") });
        }
        self.make_private(new.at, Head::Branch(new.branch, new.head), new.objects, new.index)?;
        // Without an index there are no files, and so no submodules.
        if new.index.is_some() {
            self.copy_modules(new.at, new.objects);
        }
        Ok(())
    }

    pub(super) fn make_private(
        &self,
        at: &Path,
        head: Head<'_>,
        objects: Alternates,
        index: Option<&Path>,
    ) -> Result<(), GitError> {
        for folder in ["info", "objects/info", "objects/pack", "refs"] {
            fs::create_dir_all(at.join(folder)).map_err(GitError::io(at))?;
        }
        if objects == Alternates::Bound {
            fs::create_dir_all(at.join(BOUND_OBJECTS)).map_err(GitError::io(at))?;
        }
        write(&at.join("objects/info/alternates"), &self.alternates_file(objects)?)?;
        write(&at.join("config"), &private_settings(self)?)?;
        copy_files(&self.common_dir.join("info"), &at.join("info"), |_| true)?;
        if self.git_dir != self.common_dir {
            copy_files(&self.git_dir.join("info"), &at.join("info"), |_| true)?;
        }
        hide_runs(&at.join("info/exclude"))?;
        copy_files(&self.common_dir.join("hooks"), &at.join("hooks"), |name| !name.as_bytes().ends_with(b".sample"))?;
        if let Some(shallow) = read_if_there(&self.common_dir.join("shallow"), LARGEST_LIST)? {
            write(&at.join("shallow"), &shallow)?;
        }
        if self.common_dir.join("reftable").exists() {
            self.copy_tables(at, head)?;
        } else {
            self.copy_refs(at, head)?;
        }
        index.map_or(Ok(()), |index| copy_index_file(index, &at.join("index")))
    }

    /// All object folders of this repository: its own first, then the alternates.
    pub fn object_folders(&self) -> Result<Vec<PathBuf>, GitError> {
        let own = self.common_dir.join("objects");
        let mut found = vec![fs::canonicalize(&own).unwrap_or(own)];
        let (mut from, mut depth) = (0, 0);
        while from < found.len() && depth <= DEEPEST {
            let to = found.len();
            for at in from..to {
                let folder = found[at].clone();
                let listed = read_if_there(&folder.join("info/alternates"), LARGEST_FILE)?.unwrap_or_default();
                for line in listed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
                    let path = folder.join(unquote(line));
                    let path = fs::canonicalize(&path).unwrap_or_else(|_| normal(&path));
                    if !found.contains(&path) {
                        found.push(path);
                    }
                }
            }
            (from, depth) = (to, depth + 1);
        }
        Ok(found)
    }

    fn alternates_file(&self, objects: Alternates) -> Result<Vec<u8>, GitError> {
        let mut folders = self.object_folders()?;
        if objects == Alternates::Bound {
            folders[0] = Path::new("..").join(BOUND_OBJECTS);
        }
        let mut text = Vec::new();
        for folder in folders {
            text.extend(quote(folder.as_os_str().as_bytes(), b"\n"));
            text.push(b'\n');
        }
        Ok(text)
    }

    /// Writes all refs into one file, and HEAD's branch into its own.
    fn copy_refs(&self, at: &Path, head: Head<'_>) -> Result<(), GitError> {
        let mut refs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let packed = read_if_there(&self.common_dir.join("packed-refs"), LARGEST_LIST)?.unwrap_or_default();
        let mut last: Option<Vec<u8>> = None;
        for line in packed.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#")) {
            if line.starts_with(b"^") {
                // The object that the preceding tag points to.
                if let Some(value) = last.as_ref().and_then(|name| refs.get_mut(name)) {
                    value.push(b'\n');
                    value.extend_from_slice(line);
                }
                continue;
            }
            last = None;
            let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
            let (id, name) = (&line[..space], &line[space + 1..]);
            if is_copied(name) {
                refs.insert(name.to_vec(), [id, b" ", name].concat());
                last = Some(name.to_vec());
            }
        }
        for root in COPIED {
            self.copy_loose(root.as_bytes(), at, &mut refs)?;
        }
        if let Head::Branch(branch, _) = head {
            refs.remove(format!("refs/heads/{branch}").as_bytes());
        }
        let mut text = b"# pack-refs with: sorted \n".to_vec();
        for value in refs.values() {
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        write(&at.join("packed-refs"), &text)?;
        fs::create_dir_all(at.join("refs/heads")).map_err(GitError::io(at))?;
        let Head::Branch(branch, id) = head else {
            let own = self.git_dir.join("HEAD");
            return write(&at.join("HEAD"), &read_regular(&own, LARGEST_REF).map_err(GitError::io(&own))?);
        };
        write(&at.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())?;
        if let Some(id) = id {
            let path = at.join("refs/heads").join(branch);
            fs::create_dir_all(path.parent().unwrap_or(at)).map_err(GitError::io(&path))?;
            write(&path, format!("{id}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Copies loose refs. Symbolic refs stay separate files.
    fn copy_loose(&self, root: &[u8], at: &Path, refs: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), GitError> {
        let mut open = vec![root.to_vec()];
        while let Some(below) = open.pop() {
            let folder = self.common_dir.join(OsStr::from_bytes(&below));
            let Some(entries) = list(&folder)? else { continue };
            for entry in entries {
                let name = [below.as_slice(), b"/", entry.file_name().as_bytes()].concat();
                let kind = entry.file_type().map_err(GitError::io(&folder))?;
                if kind.is_dir() {
                    open.push(name);
                    continue;
                }
                if !kind.is_file() || name.ends_with(b".lock") {
                    continue;
                }
                // Git may be replacing or packing it right now.
                let text = read_regular(&entry.path(), LARGEST_REF).unwrap_or_default();
                if text.starts_with(b"ref: ") {
                    let path = at.join(OsStr::from_bytes(&name));
                    fs::create_dir_all(path.parent().unwrap_or(at)).map_err(GitError::io(&path))?;
                    write(&path, &text)?;
                    continue;
                }
                let id = Oid::from(String::from_utf8_lossy(&text).trim_end());
                if is_object_id(&id) {
                    refs.insert(name.clone(), [id.as_str().as_bytes(), b" ", &name].concat());
                }
            }
        }
        Ok(())
    }

    /// Copies all tables, which include HEAD. Git then deletes Verdone's refs from the copy and sets HEAD.
    fn copy_tables(&self, at: &Path, head: Head<'_>) -> Result<(), GitError> {
        write(&at.join("HEAD"), TABLE_HEAD.as_bytes())?;
        write(&at.join("refs/heads"), TABLE_REFS.as_bytes())?;
        let (from, to) = (self.common_dir.join("reftable"), at.join("reftable"));
        for last in (0..TRIES).rev() {
            let _ = fs::remove_dir_all(&to);
            match copy_files(&from, &to, |name| !name.as_bytes().ends_with(b".lock")) {
                Err(GitError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && last > 0 => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let call = |subcommand: &str| {
            let call = Call::plumbing(at, subcommand, self.deadline).envs(&self.environment).env("GIT_DIR", at);
            call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.alternates_variable())
        };
        let listed = call("for-each-ref").args(["--format=delete %(refname)"]).args(DROPPED).line()?;
        let mut commands = if listed.is_empty() { String::new() } else { format!("{listed}\n") };
        if let Head::Branch(branch, id) = head {
            call("symbolic-ref").args(["HEAD", &format!("refs/heads/{branch}")]).run()?;
            commands.push_str(&match id {
                Some(id) => format!("update refs/heads/{branch} {id}\n"),
                None => format!("delete refs/heads/{branch}\n"),
            });
        }
        call("update-ref").args(["--no-deref", "--stdin"]).stdin(commands.into_bytes()).run()?;
        Ok(())
    }

    /// The real objects, for git processes with another object folder.
    pub(super) fn alternates_variable(&self) -> OsString {
        joined(&[self.common_dir.join("objects")])
    }
}

/// Joins folders for `GIT_ALTERNATE_OBJECT_DIRECTORIES`.
pub(super) fn joined(folders: &[PathBuf]) -> OsString {
    let quoted: Vec<Vec<u8>> = folders.iter().map(|folder| quote(folder.as_os_str().as_bytes(), b":")).collect();
    OsString::from_vec(quoted.join(&b':'))
}

fn is_copied(name: &[u8]) -> bool {
    COPIED.iter().any(|root| name.strip_prefix(root.as_bytes()).is_some_and(|rest| rest.starts_with(b"/")))
}

/// Quotes a path in C style, as git does, if it begins like a quote or a comment or contains the separator.
fn quote(path: &[u8], separator: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"\"") && !path.starts_with(b"#") && !path.iter().any(|byte| separator.contains(byte)) {
        return path.to_vec();
    }
    let mut out = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// The reverse of `quote`. Understands all that git writes: octal and single-letter escapes.
fn unquote(line: &[u8]) -> PathBuf {
    let Some(inner) = line.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return PathBuf::from(OsStr::from_bytes(line));
    };
    let mut out = Vec::new();
    let mut rest = inner;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let octal =
            tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|text| u8::from_str_radix(text, 8).ok());
        if let Some(byte) = octal {
            out.push(byte);
            rest = &tail[3..];
        } else if let Some((letter, tail)) = tail.split_first() {
            out.push(match letter {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                other => *other,
            });
            rest = tail;
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Removes `.` and `..`, for a folder that does not exist.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// Copies the files and links of a folder recursively.
pub(super) fn copy_files(from: &Path, to: &Path, is_wanted: fn(&OsStr) -> bool) -> Result<(), GitError> {
    let Some(entries) = list(from)? else { return Ok(()) };
    fs::create_dir_all(to).map_err(GitError::io(to))?;
    for entry in entries {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(GitError::io(&path))?;
        if kind.is_dir() {
            copy_files(&path, &target, is_wanted)?;
        } else if kind.is_symlink() && is_wanted(&entry.file_name()) {
            let link = fs::read_link(&path).map_err(GitError::io(&path))?;
            let _ = fs::remove_file(&target);
            symlink(link, &target).map_err(GitError::io(&target))?;
        } else if kind.is_file() && is_wanted(&entry.file_name()) {
            fs::copy(&path, &target).map_err(GitError::io(&path))?;
        }
    }
    Ok(())
}

pub(super) fn list(folder: &Path) -> Result<Option<Vec<fs::DirEntry>>, GitError> {
    match fs::read_dir(folder).and_then(Iterator::collect) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(GitError::Io { path: folder.to_owned(), source }),
    }
}

fn read_if_there(path: &Path, most: u64) -> Result<Option<Vec<u8>>, GitError> {
    match read_linked(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(GitError::Io { path: path.to_owned(), source }),
    }
}

/// Hides prompts and other files that a run writes for the agent from the list of untracked files.
fn hide_runs(exclude: &Path) -> Result<(), GitError> {
    let mut rules = read_if_there(exclude, LARGEST_FILE)?.unwrap_or_default();
    rules.extend(b"\n**/.verdone/runs/\n");
    write(exclude, &rules)
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    fs::write(path, bytes).map_err(GitError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_read_as_it_was() {
        for path in ["/plain", "\"quote", "#comment", "/new\nline", "/back\\slash\n\"x"] {
            assert_eq!(unquote(&quote(path.as_bytes(), b"\n")), Path::new(path));
        }
        assert_eq!(unquote(br#""/a\303\251\tb""#), Path::new("/aé\tb"));
    }

    #[test]
    fn a_separator_in_a_path_is_quoted() {
        assert_eq!(joined(&["/a".into(), "/b:c".into()]), OsString::from("/a:\"/b:c\""));
    }
}
