//! The last run id allocated in a repository. Its work trees share refs, so no two of them may choose the same id.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::{Timestamp, ToSpan as _};
use verdone_core::base::id::RunId;

use crate::base::plain_file::open_regular;

/// The lock is held only while a folder is created.
const PATIENCE: Duration = Duration::from_secs(10);

/// Locks the allocation until the new id is stored; other work trees wait that long.
#[derive(Debug)]
pub(super) struct RunIdAllocator {
    file: File,
}

impl RunIdAllocator {
    pub(super) fn allocate(common_dir: &Path) -> io::Result<Self> {
        let path = common_dir.join("verdone-last-run");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let file = open_regular(&path, &mut options)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// `None` if it is not one of our ids, or far in the future.
    pub(super) fn last(&mut self, now: Timestamp) -> Option<RunId> {
        let mut text = String::new();
        (&self.file).take(64).read_to_string(&mut text).ok()?;
        let tomorrow = now.checked_add(24.hours()).ok()?.strftime("%Y%m%d-%H%M%S").to_string();
        (is_id(text.trim()) && text < tomorrow).then(|| RunId::from(text.trim()))
    }

    pub(super) fn remember(&mut self, id: &RunId) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(id.as_str().as_bytes())
    }
}

pub(super) fn is_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts[..], [date, time, number] if digits(date, 8) && digits(time, 6)
        && number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
