//! Folders without permissions.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fchmod, fstat, openat};
use rustix::io::Errno;

/// Opens a folder that may have no permissions at all, and adds those needed to remove it.
pub(crate) fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(parent, name, readable, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let place =
                openat(parent, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            // An `O_PATH` descriptor cannot change the mode, but its path below /proc can, and the agent cannot put a symlink
            // there.
            rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)?;
            openat(parent, name, readable, Mode::empty())?
        }
        opened => opened?,
    };
    if fstat(&folder)?.st_mode & 0o700 != 0o700 {
        fchmod(&folder, Mode::RWXU)?;
    }
    Ok(folder)
}
