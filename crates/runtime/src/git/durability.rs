//! Makes objects and refs survive a power cut. Git syncs the files that it writes, if configured to. This module syncs their
//! folders.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Git;
use super::command::Call;
use super::error::GitError;

pub(super) const DURABLE: [&str; 4] = ["-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"];

/// File times come from a coarser clock than `SystemTime::now`.
const TICK: Duration = Duration::from_secs(1);

impl Git {
    /// A call whose objects, refs and index are on disk when it returns.
    pub(super) fn durable(&self, subcommand: &str) -> Call {
        Call::plumbing_with(&self.top, &DURABLE, subcommand, self.deadline).envs(&self.environment)
    }

    /// Syncs the object folders that were written to since then: at most 257, usually a handful.
    pub(super) fn sync_object_folders(&self, since: SystemTime) -> Result<(), GitError> {
        let since = since.checked_sub(TICK).unwrap_or(since);
        let objects = self.common_dir.join("objects");
        let entries = fs::read_dir(&objects).map_err(GitError::io(&objects))?;
        let is_object_folder = |path: &Path| {
            let name = path.file_name().map(std::ffi::OsStr::as_encoded_bytes).unwrap_or_default();
            name == b"pack" || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit))
        };
        let mut folders = vec![objects.clone()];
        folders.extend(entries.flatten().map(|entry| entry.path()).filter(|path| is_object_folder(path)));
        for folder in folders {
            if fs::metadata(&folder).and_then(|meta| meta.modified()).is_ok_and(|at| at >= since) {
                sync_folder(&folder).map_err(GitError::io(&folder))?;
            }
        }
        Ok(())
    }

    /// Syncs the folders that contain a ref and its log.
    pub(super) fn sync_ref_folders(&self, name: &str) -> Result<(), GitError> {
        let tables = self.common_dir.join("reftable");
        if tables.exists() {
            return sync_folder(&tables).map_err(GitError::io(&tables));
        }
        for root in [self.common_dir.clone(), self.common_dir.join("logs")] {
            let mut folder: PathBuf = root.join(name);
            while folder.pop() && folder.starts_with(&root) && folder != root {
                match sync_folder(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(GitError::Io { path: folder, source: error });
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
