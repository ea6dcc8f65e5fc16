//! Executes a program in a view: joins the namespaces of its holder and adds a pid namespace for this program alone.
//!
//! There are three processes. The outer one stays in the caller's pid namespace and exits exactly as the program does. The first
//! process of the new pid namespace reaps orphans; when it ends, the kernel kills everything in the namespace. The third becomes
//! the program. All are in one process group, so the caller's signals reach the program. Each dies with the one before it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, getuid, pidfd_open, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, wait, waitpid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

use super::failure::{Failure, Step};
use super::signals::Ignored;
use super::sys::{self, Forked};
use super::target::{Target, give_up_inheritance};
use super::{confine, failure, system};

pub(super) fn run(holder: Pid, target: &Target) -> ExitCode {
    let ignored = Ignored::begin();
    match start(holder, target, &ignored) {
        Ok(outer) => outer.finish(),
        Err(failure) => target.report(&failure).into(),
    }
}

/// The process in the caller's pid namespace, while the program runs.
#[derive(Debug)]
struct Outer {
    first: Pid,
    status: UnixStream,
}

fn start(holder: Pid, target: &Target, ignored: &Ignored) -> Result<Outer, Failure> {
    let as_root = getuid().is_root();
    join(holder).map_err(|error| Failure::new(Step::Enter, &error))?;
    target.die_with_parent()?;
    sys::unshare(sys::NEW_MOUNT | sys::NEW_PID).map_err(|error| Failure::new(Step::Unshare, &error))?;
    let failed = |error: io::Error| Failure::new(Step::Fork, &error);
    let (status, report) = UnixStream::pair().map_err(failed)?;
    match sys::fork().map_err(failed)? {
        Forked::Parent(first) => Ok(Outer { first, status }),
        Forked::Child => {
            drop(status);
            be_first(target, &report, as_root, ignored)
        }
    }
}

fn join(holder: Pid) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    let process = pidfd_open(holder, PidfdFlags::empty())?;
    sys::join(process.as_fd(), sys::NEW_USER | sys::NEW_MOUNT | sys::NEW_IPC)?;
    match sys::join(process.as_fd(), sys::NEW_NET) {
        // The kernel refuses to join the system's network, which an open view shares. But we are already in it.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) && same_network(holder) => Ok(()),
        other => other,
    }
}

fn same_network(holder: Pid) -> bool {
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let ours = network("self");
    ours.is_some() && ours == network(&holder.to_string())
}

impl Outer {
    /// Waits until all processes of the pid namespace are gone, then exits as the program did.
    fn finish(mut self) -> ExitCode {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = close_streams();
        let mut ended = [0; 4];
        let ended = self.status.read_exact(&mut ended).map(|()| i32::from_ne_bytes(ended));
        while let Err(rustix::io::Errno::INTR) = waitpid(Some(self.first), WaitOptions::empty()) {}
        match ended {
            Ok(status) => u8::try_from(status).map_or_else(|_| die_by(-status), ExitCode::from),
            // The first process was killed from outside, along with everything else.
            Err(_) => die_by(libc::SIGKILL),
        }
    }
}

fn die_by(signal: i32) -> ExitCode {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    sys::reset_signal(signal);
    sys::raise(signal);
    // Not reached: the signal that ended the program also ends this process.
    ExitCode::from(failure::EXIT)
}

/// Closes our copies of the program's pipes, so that they close when the program closes them.
fn close_streams() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// The first process of the pid namespace.
fn be_first(target: &Target, report: &UnixStream, as_root: bool, ignored: &Ignored) -> ! {
    ASKS_TO_END.iter().copied().for_each(sys::remember_signal);
    let program =
        prepare(target, report, as_root).and_then(|()| match sys::fork().map_err(|error| Failure::new(Step::Fork, &error))? {
            Forked::Parent(program) => Ok(program),
            Forked::Child => {
                ignored.end();
                sys::exit_now(target.report(&target.execute()).into());
            }
        });
    let status = match program {
        Ok(program) => reap_until_end_of(program),
        Err(failure) => target.report(&failure).into(),
    };
    let mut report = report;
    let _ = report.write_all(&status.to_ne_bytes());
    sys::exit_now(0);
}

fn prepare(target: &Target, report: &UnixStream, as_root: bool) -> Result<(), Failure> {
    die_with_outer(report)?;
    system::mount_proc(as_root)?;
    target.enter_folder()?;
    give_up_inheritance()?;
    drop_capabilities().map_err(|error| Failure::new(Step::Privileges, &error))?;
    confine::leave_nameless_sockets()
}

/// The outer process has no pid in this namespace. Its end of the socket pair shows whether it was still alive when the signal
/// was set.
fn die_with_outer(report: &UnixStream) -> Result<(), Failure> {
    let failed = |error: rustix::io::Errno| Failure::new(Step::Parent, &error.into());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    let mut ends = [PollFd::new(report, PollFlags::IN)];
    poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_err(failed)?;
    if ends[0].revents().is_empty() { Ok(()) } else { Err(failed(rustix::io::Errno::SRCH)) }
}

fn drop_capabilities() -> io::Result<()> {
    sys::drop_bounding_set()?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// The signals that ask a process group to end.
const ASKS_TO_END: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Returns the exit code of the program, or its signal as a negative number. If the group was asked to end, waits for the other
/// processes too: a shell exits at once, but the program that it waits for may still be writing. The caller that asked kills the
/// rest after the grace period.
fn reap_until_end_of(program: Pid) -> i32 {
    // The program must not trace this process, or it could make it report another status.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = close_streams();
    let mut program_ended = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                let ended = status.exit_status().unwrap_or_else(|| -status.terminating_signal().unwrap_or(libc::SIGKILL));
                if !sys::was_asked() {
                    return ended;
                }
                program_ended = Some(ended);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return program_ended.unwrap_or(-libc::SIGKILL),
        }
    }
}

/// Whether `/proc` shows this process under its own pid, as only the `/proc` of its pid namespace does.
pub(super) fn has_own_proc() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&getpid().to_string()))
}
