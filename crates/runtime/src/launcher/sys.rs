//! System calls without a safe wrapper. Everything else in the launcher is safe code.
#![expect(unsafe_code, reason = "fork, namespaces, signal dispositions and mount attributes have no safe interface")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_ulong};

pub(super) const NEW_USER: c_int = libc::CLONE_NEWUSER;
pub(super) const NEW_MOUNT: c_int = libc::CLONE_NEWNS;
pub(super) const NEW_IPC: c_int = libc::CLONE_NEWIPC;
pub(super) const NEW_NET: c_int = libc::CLONE_NEWNET;
pub(super) const NEW_PID: c_int = libc::CLONE_NEWPID;

pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// The version argument of `landlock_create_ruleset`.
const LANDLOCK_VERSION: c_ulong = 1;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves this process, which must be single-threaded, into new namespaces.
pub(super) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers, and file descriptors (CLONE_FILES) are not unshared.
    check(unsafe { libc::unshare(namespaces) }.into()).map(drop)
}

/// Moves this process into the namespaces of the process behind the pidfd.
pub(super) fn join(pidfd: BorrowedFd<'_>, namespaces: c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for the duration of the call, which takes no pointers.
    check(unsafe { libc::setns(pidfd.as_raw_fd(), namespaces) }.into()).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forked {
    Parent(rustix::process::Pid),
    Child,
}

/// Forks. The launcher is single-threaded, so the child may do everything that the parent could.
pub(super) fn fork() -> io::Result<Forked> {
    // SAFETY: only one thread exists, so no lock can be held by a thread that is missing in the child.
    let pid = check(unsafe { libc::fork() }.into())?;
    let pid = c_int::try_from(pid).map_err(io::Error::other)?;
    Ok(rustix::process::Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent))
}

/// Ends this process without running exit handlers, which belong to the parent.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Sets attributes on the mount behind the descriptor and on every mount below it.
pub(super) fn set_mount_attributes(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a C string, and the given size is that of the structure behind the pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    check(result).map(drop)
}

/// Makes exec close every descriptor from `first` on.
pub(super) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: marking descriptors leaves them open, so no owner in this process loses one.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Empties the bounding set, so that no later exec can gain a capability.
pub(super) fn drop_bounding_set() -> io::Result<()> {
    for capability in 0..64 as c_ulong {
        // SAFETY: the call takes numbers only.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }.into()) {
            Ok(_) => {}
            // The kernel does not know this capability, nor any with a higher number.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives this process and its children an empty session keyring instead of the user's.
pub(super) fn leave_session_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: c_ulong = 1;
    // SAFETY: with a null name the call makes a new keyring and reads nothing.
    match check(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) }) {
        // If keyrings are missing or forbidden by a container, the program cannot use them either.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES)) => Ok(()),
        other => other.map(drop),
    }
}

/// Detaches this process and its children from the controlling terminal. They stay in their session and group.
pub(super) fn leave_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for the duration of the call, which takes no pointers.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) }.into()).map(drop)
}

/// The architectures whose programs run here, as the kernel numbers them, and the number of `ioctl` on each.
#[cfg(target_arch = "x86_64")]
const IOCTL: [(u32, u32); 3] = [(0xc000_003e, 16), (0xc000_003e, 0x4000_0202), (0x4000_0003, 54)];
#[cfg(target_arch = "aarch64")]
const IOCTL: [(u32, u32); 2] = [(0xc000_00b7, 29), (0x4000_0028, 54)];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const IOCTL: [(u32, u32); 0] = [];

/// Blocks the two requests with which a program can insert characters into its terminal's input.
pub(super) fn refuse_typing() -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // Offsets of the call's number, the architecture and the lower half of the second argument.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const REQUEST: u32 = 24;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut program = Vec::new();
    for (architecture, ioctl) in IOCTL {
        program.extend([
            step(LOAD, ARCHITECTURE, 0, 0),
            step(JUMP_IF, architecture, 0, 6),
            step(LOAD, NUMBER, 0, 0),
            step(JUMP_IF, ioctl, 0, 4),
            step(LOAD, REQUEST, 0, 0),
            step(JUMP_IF, libc::TIOCSTI as u32, 1, 0),
            step(JUMP_IF, libc::TIOCLINUX as u32, 0, 1),
            step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        ]);
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: the structure and the program that it points to live until the call returns; the kernel copies both.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW, &raw const filter)
    };
    check(result).map(drop)
}

pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid, and with a null action the call only fills it in.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

pub(super) fn ignore_signal(signal: i32) {
    // SAFETY: ignoring a signal installs no handler. Signals that cannot be ignored are refused, which changes nothing.
    unsafe {
        libc::signal(signal, libc::SIG_IGN);
    }
}

pub(super) fn reset_signal(signal: i32) {
    // SAFETY: the default disposition installs no handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
    }
}

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn remember(_: c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Only records that the signal arrived. A program that is executed later does not inherit the handler.
pub(super) fn remember_signal(signal: i32) {
    // SAFETY: the handler stores to an atomic, which is safe at any moment.
    unsafe {
        libc::signal(signal, remember as *const () as libc::sighandler_t);
    }
}

/// Whether a signal arrived that [`remember_signal`] was set up for.
pub(super) fn was_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Ends this process by a signal that has its default disposition.
pub(super) fn raise(signal: i32) {
    // SAFETY: no handler is installed, so none runs.
    unsafe {
        libc::raise(signal);
    }
}

/// Brings up the loopback interface of a new network namespace.
pub(super) fn bring_loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero ifreq is valid; the name and its terminator fit, and both calls get a pointer to the live structure.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = from.cast_signed();
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request).into())?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request).into()).map(drop)
    }
}

/// The Landlock version of the kernel; `None` if it is missing or disabled.
pub(super) fn landlock_version() -> Option<u32> {
    // SAFETY: with a null pointer, size zero and this flag, the call only returns its version.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, LANDLOCK_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}
