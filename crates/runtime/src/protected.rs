//! The judge's own files: `.verdone/` without its runs. They are held in memory from the start of a run; what a turn did to them
//! is kept aside, told, and put back before anything is verified.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A larger file is none of ours; config, prompts and scripts are small.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Where a run keeps its copies.
const SAVED: &str = "protected";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

/// `.verdone/` as it was when the run began.
#[derive(Debug)]
pub struct Protected {
    dir: PathBuf,
    files: BTreeMap<PathBuf, Held>,
}

impl Protected {
    pub fn snapshot(project_root: &Path) -> io::Result<Self> {
        let dir = project_root.join(".verdone");
        let files = read_all(&dir)?;
        Ok(Self { dir, files })
    }

    /// Copies everything into the run's directory, for the case that this process dies.
    pub fn save(&self, run_dir: &Path) -> io::Result<()> {
        let dir = run_dir.join(SAVED);
        fs::create_dir_all(&dir)?;
        self.files.iter().try_for_each(|(path, held)| write(&dir.join(path), held))
    }

    /// What a run saved; nothing where it died before that.
    pub fn saved(project_root: &Path, run_dir: &Path) -> io::Result<Option<Self>> {
        let dir = run_dir.join(SAVED);
        if !dir.is_dir() {
            return Ok(None);
        }
        Ok(Some(Self { dir: project_root.join(".verdone"), files: read_all(&dir)? }))
    }

    /// Undoes every change since the snapshot; the changed versions go into `aside`. Answers with what was changed.
    pub fn put_back(&self, aside: &Path) -> io::Result<Vec<String>> {
        let now = read_all(&self.dir)?;
        let mut changed = Vec::new();
        for (path, found) in &now {
            if self.files.get(path) != Some(found) {
                keep(aside, path, found)?;
                changed.push(path.clone());
            }
        }
        changed.extend(self.files.keys().filter(|path| !now.contains_key(*path)).cloned());
        for path in changed.iter().filter(|path| now.contains_key(*path)) {
            fs::remove_file(self.dir.join(path))?;
        }
        for path in &changed {
            if let Some(held) = self.files.get(path) {
                write(&self.dir.join(path), held)?;
            }
        }
        Ok(changed.iter().map(|path| Path::new(".verdone").join(path).display().to_string()).collect())
    }
}

/// Keeps a file of a turn under its own name.
fn keep(aside: &Path, path: &Path, found: &Held) -> io::Result<()> {
    let target = aside.join(path);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    match found {
        Held::File { bytes, .. } => fs::write(target, bytes),
        Held::Link(to) => fs::write(target, to.as_os_str().as_encoded_bytes()),
    }
}

fn write(target: &Path, held: &Held) -> io::Result<()> {
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(parent)?;
    // A directory put in a file's place is empty by now: its files were none of ours.
    if fs::symlink_metadata(target).is_ok_and(|meta| meta.is_dir()) {
        fs::remove_dir(target)?;
    }
    let (bytes, mode) = match held {
        Held::File { bytes, mode } => (bytes, *mode),
        Held::Link(to) => return std::os::unix::fs::symlink(to, target),
    };
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    io::Write::write_all(&mut file, bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

/// Every regular file below, but for the runs. Links are read as what they are, never followed.
fn read_all(dir: &Path) -> io::Result<BTreeMap<PathBuf, Held>> {
    let mut files = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let entries = match fs::read_dir(dir.join(&below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() && error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let meta = fs::symlink_metadata(entry.path())?;
            if path == Path::new("runs") {
                continue;
            }
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_symlink() {
                files.insert(path, Held::Link(fs::read_link(entry.path())?));
            } else if meta.is_file() && meta.len() <= LARGEST {
                files.insert(path, Held::File { bytes: fs::read(entry.path())?, mode: meta.permissions().mode() });
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_deleted_and_added_files_are_put_back_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(".verdone");
        fs::create_dir_all(home.join("hooks")).unwrap();
        fs::create_dir_all(home.join("runs/r1")).unwrap();
        fs::write(home.join("config.toml"), "a").unwrap();
        fs::write(home.join("hooks/started"), "b").unwrap();
        let protected = Protected::snapshot(dir.path()).unwrap();

        fs::write(home.join("config.toml"), "weakened").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.join("link")).unwrap();
        fs::remove_file(home.join("hooks/started")).unwrap();
        fs::write(home.join("new"), "n").unwrap();
        fs::write(home.join("runs/r1/journal.jsonl"), "ours").unwrap();
        let aside = dir.path().join("aside");
        let mut changed = protected.put_back(&aside).unwrap();
        changed.sort();

        assert_eq!(changed, [".verdone/config.toml", ".verdone/hooks/started", ".verdone/link", ".verdone/new"]);
        assert_eq!(fs::read_to_string(home.join("config.toml")).unwrap(), "a");
        assert_eq!(fs::read_to_string(home.join("hooks/started")).unwrap(), "b");
        assert!(!home.join("new").exists());
        assert!(fs::symlink_metadata(home.join("link")).is_err());
        assert_eq!(fs::read_to_string(aside.join("config.toml")).unwrap(), "weakened");
        assert!(home.join("runs/r1/journal.jsonl").exists());
        assert_eq!(protected.put_back(&aside).unwrap(), Vec::<String>::new());
    }
}
