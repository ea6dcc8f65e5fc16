//! How git sees the files, beside the files: what the repository's own settings, rules and hooks are, which files are hidden from it,
//! and how repositories inside stand. Reads alone; a few processes, so it is not for a hook that answers from what is known.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use verdone_core::id::digest;
use verdone_core::tamper::GitSight;

use super::Git;
use super::error::GitError;
use super::files::{self, Stat};
use super::path::{PathSet, RepoPath};
use super::status::Kind;
use crate::known_files::KnownFiles;
use crate::project::GitDirs;
use crate::regular::read_regular;

/// The times of larger files stand for them.
const LARGEST: u64 = 64 * 1024 * 1024;
/// What in a git directory decides which files git sees, and what it runs.
const RULES: [&str; 5] = ["hooks", "info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout"];
/// What `ls-files --stage` says of a submodule.
const SUBMODULE: &[u8] = b"160000 ";

/// Ignore rules, attributes and hooks of a git directory, each as a digest under its name. Links are not followed.
fn rules_and_hooks(dir: &Path, name: &Path, sight: &mut GitSight) -> io::Result<()> {
    let mut left: Vec<PathBuf> = RULES.iter().map(PathBuf::from).collect();
    while let Some(below) = left.pop() {
        let path = dir.join(&below);
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(below.join(entry?.file_name()));
            }
            continue;
        }
        if below.extension().is_some_and(|end| end == "sample") {
            continue;
        }
        let content = if meta.is_symlink() {
            format!("link {}", fs::read_link(&path)?.display()).into_bytes()
        } else if meta.is_file() && meta.len() <= LARGEST {
            let mut bytes = format!("{:o} ", meta.permissions().mode()).into_bytes();
            bytes.extend(read_regular(&path, LARGEST)?);
            bytes
        } else {
            b"not a file".to_vec()
        };
        sight.files.insert(name.join(&below).display().to_string(), digest(&content));
    }
    Ok(())
}

impl Git {
    /// Hidden files and repositories that are `but` ours are left out.
    pub(crate) fn sight(&self, but: &PathSet) -> Result<GitSight, GitError> {
        let mut sight = GitSight::default();
        for file in [self.common_dir.join("config"), self.git_dir.join("config.worktree")] {
            self.add_settings(&mut sight, &file)?;
        }
        let own = (self.git_dir != self.common_dir).then_some(&self.git_dir);
        for dir in std::iter::once(&self.common_dir).chain(own) {
            let name = Path::new(".git").join(dir.strip_prefix(&self.common_dir).unwrap_or(Path::new("")));
            rules_and_hooks(dir, &name, &mut sight).map_err(GitError::io(dir))?;
        }
        self.add_hidden(&mut sight, but)?;
        self.add_inside(&mut sight, but)?;
        Ok(sight)
    }

    /// With those of files that it includes: git follows them wherever they lead.
    fn add_settings(&self, sight: &mut GitSight, file: &Path) -> Result<(), GitError> {
        if !file.is_file() {
            return Ok(());
        }
        let listed =
            self.plumbing("config").args([OsStr::new("--file"), file.as_os_str()]).args(["--includes", "--list", "-z"]).run()?;
        for setting in listed.split(|byte| *byte == 0).filter(|setting| !setting.is_empty()) {
            let text = String::from_utf8_lossy(setting);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            sight.add_setting(key, value);
        }
        Ok(())
    }

    fn add_hidden(&self, sight: &mut GitSight, but: &PathSet) -> Result<(), GitError> {
        let mut absent = Vec::new();
        for path in self.hidden()?.into_iter().filter(|path| !but.contains(path)) {
            if let Some(meta) = files::stat(&self.top, &path).map_err(GitError::io(path.as_path()))? {
                sight.hidden.insert(path.to_string(), self.held(&path, &meta));
            } else {
                absent.extend_from_slice(path.as_bytes());
                absent.push(0);
            }
        }
        sight.absent = if absent.is_empty() { String::new() } else { digest(&absent) };
        Ok(())
    }

    fn held(&self, path: &RepoPath, meta: &fs::Metadata) -> String {
        let place = self.top.join(path.as_path());
        let bytes = match meta {
            meta if meta.is_symlink() => fs::read_link(&place).map(|to| to.as_os_str().as_bytes().to_vec()),
            _ => read_regular(&place, LARGEST),
        };
        bytes.map_or_else(|_| format!("{:?}", Stat::of(meta)), |bytes| digest(&bytes))
    }

    fn add_inside(&self, sight: &mut GitSight, but: &PathSet) -> Result<(), GitError> {
        let listed = self.plumbing("ls-files").args(["--stage", "-z"]).run()?;
        for record in listed.split(|byte| *byte == 0).filter(|record| record.starts_with(SUBMODULE)) {
            let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
            let (id, path) = (String::from_utf8_lossy(&record[..tab]), RepoPath::new(&record[tab + 1..]));
            // Git itself may be told inside not to look.
            let inner = self.inner(&path).map(|inner| inner.sight(&PathSet::default()).map_err(|error| error.to_string()));
            sight.inside.insert(path.to_string(), format!("{id} {inner:?}"));
        }
        for entry in self.status()?.entries.into_iter().filter(|entry| !but.contains(&entry.path)) {
            let is_ours = || self.inner(&entry.path).is_some_and(|inner| inner.common_dir == self.common_dir);
            // Other work trees of this repository come and go.
            if matches!(entry.kind, Kind::Submodule { .. } | Kind::Nested) && !is_ours() {
                let look = |inner: Self| match inner.look(&mut KnownFiles::default(), &PathSet::default(), &|_| true) {
                    Ok((_, looked)) => format!("{looked:?}"),
                    Err(error) => error.to_string(),
                };
                let state = format!("{:?} {:?}", entry.kind, self.inner(&entry.path).map(look));
                sight.inside.entry(entry.path.to_string()).or_default().push_str(&state);
            }
        }
        for state in sight.inside.values_mut() {
            *state = digest(state.as_bytes());
        }
        Ok(())
    }

    /// The repository that lies there.
    fn inner(&self, path: &RepoPath) -> Option<Self> {
        let place: PathBuf = self.top.join(path.as_path());
        GitDirs::of(&place).map(|dirs| Self::found(&place, dirs, self.deadline))
    }
}
