//! The mounts of a view. Each is first built detached, while the whole system is still visible, and attached once everything else
//! is read-only.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::failure::{Failure, Step};
use super::system::DEVICES;
use super::{fault, sys};
use crate::launcher::plan::{Mount, ViewPlan};

/// A mount that is not attached yet, and its target.
#[derive(Debug)]
pub(super) struct Detached {
    at: PathBuf,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Folder(OwnedFd),
    File(OwnedFd),
    /// Built when it is attached, because earlier mounts determine whether there is something to hide, and what.
    Mask,
}

/// Builds every mount of the plan, from paths outside of the view.
pub(super) fn build(plan: &ViewPlan, as_root: bool) -> Result<Vec<Detached>, Failure> {
    let devices = DEVICES.iter().map(Path::new).filter(|path| as_root && path.exists());
    devices.map(device).chain(plan.mounts.iter().map(detached)).collect()
}

/// A device or folder of devices at its own path, with its current permissions.
fn device(path: &Path) -> Result<Detached, Failure> {
    let (mount, folder) = clone(path).map_err(|error| Failure::at(Step::Bind, path, &error))?;
    let source = if folder { Source::Folder(mount) } else { Source::File(mount) };
    Ok(Detached { at: path.to_owned(), source })
}

fn detached(mount: &Mount) -> Result<Detached, Failure> {
    match mount {
        Mount::Bind { from, at, write } => {
            let failed = |error: io::Error| Failure::at(Step::Bind, from, &error);
            let (mount, folder) = clone(from).map_err(failed)?;
            let attributes = sys::NO_SETUID | if *write { 0 } else { sys::READ_ONLY };
            sys::set_mount_attributes(mount.as_fd(), attributes).map_err(failed)?;
            Ok(Detached { at: at.clone(), source: if folder { Source::Folder(mount) } else { Source::File(mount) } })
        }
        Mount::Overlay { lower, upper, work, at } => {
            let mount = overlay(lower, upper, work)?;
            Ok(Detached { at: at.clone(), source: Source::Folder(mount) })
        }
        Mount::Scratch { at } => {
            let mount = memory("1777", MountAttrFlags::empty()).map_err(|error| Failure::at(Step::Scratch, at, &error))?;
            Ok(Detached { at: at.clone(), source: Source::Folder(mount) })
        }
        Mount::Mask { at } => Ok(Detached { at: at.clone(), source: Source::Mask }),
    }
}

/// A detached copy of the mounts at and below `from`, and whether it is a folder.
pub(super) fn clone(from: &Path) -> io::Result<(OwnedFd, bool)> {
    let folder = fs::metadata(from)?.is_dir();
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok((open_tree(CWD, from, flags)?, folder))
}

/// An unprivileged overlay needs `userxattr` to hide folders. `volatile` skips syncs, which take seconds: what is written is
/// either read back before the machine goes down, or discarded.
fn overlay(lower: &[PathBuf], upper: &Path, work: &Path) -> Result<OwnedFd, Failure> {
    let failed = |error: io::Error| Failure::at(Step::Overlay, upper, &error);
    fault::inject("overlay", libc::EINVAL).map_err(failed)?;
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(|error| failed(error.into()))?;
    // Pass descriptors instead of names, so that no character needs escaping and the length is not limited.
    let open = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| Failure::at(Step::Overlay, path, &error.into()))
    };
    let layers = lower.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let (upper, work) = (open(upper)?, open(work)?);
    let name = |layer: &OwnedFd| {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", layer.as_raw_fd())
    };
    let lower = layers.iter().map(name).collect::<Vec<_>>().join(":");
    let mount = || -> rustix::io::Result<OwnedFd> {
        fsconfig_set_string(context.as_fd(), "lowerdir", lower.as_str())?;
        fsconfig_set_string(context.as_fd(), "upperdir", name(&upper).as_str())?;
        fsconfig_set_string(context.as_fd(), "workdir", name(&work).as_str())?;
        fsconfig_set_flag(context.as_fd(), "userxattr")?;
        fsconfig_set_flag(context.as_fd(), "volatile")?;
        fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    mount().map_err(|error| failed(error.into()))
}

/// An empty folder in memory.
fn memory(mode: &str, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", mode)?;
    fsconfig_create(context.as_fd())?;
    let attributes = attributes | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Attaches the mounts in order. `empty` is mounted over hidden files.
pub(super) fn attach(mounts: Vec<Detached>, empty: &File) -> Result<(), Failure> {
    for Detached { at, source } in mounts {
        match source {
            Source::Folder(mount) => {
                create_mount_point(&at, true)?;
                attach_one(&mount, &at)?;
            }
            Source::File(mount) => {
                create_mount_point(&at, false)?;
                attach_one(&mount, &at)?;
            }
            Source::Mask => mask(&at, empty)?,
        }
    }
    Ok(())
}

pub(super) fn attach_one(mount: &OwnedFd, at: &Path) -> Result<(), Failure> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    move_mount(mount, "", CWD, at, flags).map_err(|error| Failure::at(Step::Attach, at, &error.into()))
}

fn create_mount_point(at: &Path, folder: bool) -> Result<(), Failure> {
    let create = || match at.metadata() {
        Ok(_) => Ok(()),
        Err(_) if folder => fs::create_dir_all(at),
        Err(_) => {
            fs::create_dir_all(at.parent().unwrap_or(Path::new("/")))?;
            File::create_new(at).map(drop)
        }
    };
    create().map_err(|error| Failure::at(Step::MountPoint, at, &error))
}

fn mask(at: &Path, empty: &File) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::at(Step::Mask, at, &error);
    let folder = match at.metadata() {
        Ok(metadata) => metadata.is_dir(),
        // Nothing to hide. If this process may not look at the path, no process of the view can.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mount = if folder {
        memory("0555", MountAttrFlags::MOUNT_ATTR_RDONLY).map_err(failed)?
    } else {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(empty, "", flags).map_err(|error| failed(error.into()))?;
        sys::set_mount_attributes(mount.as_fd(), sys::READ_ONLY | sys::NO_SETUID | sys::NO_DEVICES).map_err(failed)?;
        mount
    };
    attach_one(&mount, at)
}
