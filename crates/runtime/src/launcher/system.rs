//! The system around a view: everything that the plan's mounts do not cover.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen};

use super::failure::{Failure, Step};
use super::mounts::{attach_one, clone};
use super::{fault, sys};

/// The devices that a program needs besides terminals. Root's view shows no other device, because root could write to the
/// machine's disks without any capability.
pub(super) const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Makes everything that is mounted now read-only. Detached mounts are not affected.
pub(super) fn make_read_only(as_root: bool) -> io::Result<()> {
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let devices = if as_root { sys::NO_DEVICES } else { 0 };
    sys::set_mount_attributes(root.as_fd(), sys::READ_ONLY | sys::NO_SETUID | devices)
}

/// Gives the view its own terminals. With the user's terminals, it could type into the user's shells.
pub(super) fn attach_terminals() -> io::Result<()> {
    let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "ptmxmode", "0666")?;
    fsconfig_set_string(context.as_fd(), "mode", "0620")?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    attach_one(&mount, Path::new("/dev/pts")).map_err(|failure| failure.system_error())?;
    let (multiplexer, _) = clone(Path::new("/dev/pts/ptmx"))?;
    attach_one(&multiplexer, Path::new("/dev/ptmx")).map_err(|failure| failure.system_error())
}

/// Mounts a `/proc` for the pid namespace whose first process this is. Returns false if the system's own is partly masked, as in
/// containers: the kernel then refuses a fresh one.
pub(super) fn mount_proc(as_root: bool) -> Result<bool, Failure> {
    let proc = Path::new("/proc");
    let failed = |error: io::Error| Failure::at(Step::Proc, proc, &error);
    let fresh = || -> io::Result<OwnedFd> {
        fault::inject("proc", libc::EPERM)?;
        let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    };
    let mount = match fresh() {
        Ok(mount) => mount,
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    attach_one(&mount, proc)?;
    if as_root {
        seal_proc().map_err(failed)?;
    }
    Ok(true)
}

/// Makes the kernel's settings read-only. Root owns them and may write them without any capability: `core_pattern` names a
/// program that runs outside of every namespace, `sysrq-trigger` restarts the machine. Only the folders of processes stay
/// writable.
fn seal_proc() -> io::Result<()> {
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if process || entry.file_type()?.is_symlink() {
            continue;
        }
        let path = entry.path();
        let metadata = entry.metadata()?;
        if metadata.is_dir() || metadata.permissions().mode() & 0o222 != 0 {
            let (mount, _) = clone(&path)?;
            sys::set_mount_attributes(mount.as_fd(), sys::READ_ONLY)?;
            attach_one(&mount, &path).map_err(|failure| failure.system_error())?;
        }
    }
    Ok(())
}
