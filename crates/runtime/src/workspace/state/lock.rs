//! The lock of one workspace. It is a kernel lock; the text in its file names the owner.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::Owner;
use crate::base::plain_file::{open_regular, read_regular};

/// A path and a few names.
const LARGEST: u64 = 64 * 1024;

/// Takes the lock and creates its file if needed. Returns `None` if another process holds it.
pub(super) fn hold(lock: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open_regular(lock, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The previous holder may have removed the file since we opened it. Then this lock protects nothing.
        let held = file.metadata()?;
        match fs::symlink_metadata(lock) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether the lock is held. If unknown, assumes that it is.
pub(super) fn is_held(lock: &Path) -> bool {
    match open_regular(lock, OpenOptions::new().read(true)) {
        // A shared lock does not block others from checking at the same time.
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

pub(super) fn write_owner(mut file: &File, owner: &Owner) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(owner)?)
}

/// The current or last owner; the default if the file does not name one.
pub(super) fn owner(lock: &Path) -> Owner {
    read_regular(lock, LARGEST).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
