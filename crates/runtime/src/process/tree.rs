//! The processes below us. We adopt any process that leaves its group or loses its parent (as a subreaper) and find it by walking `/proc`.
//! Signals are sent through pidfds, so that a recycled pid is never hit.

use std::time::Duration;

use crate::process::signal::Signals;

#[cfg(target_os = "linux")]
pub(super) use linux::{all, below, descendants, end_leftovers, end_marked, is_zombie, send};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{all, below, descendants, end_leftovers, end_marked, is_zombie};

pub(super) const CAN_WALK: bool = cfg!(target_os = "linux");

/// A process. The start time distinguishes it from a later one with the same pid.
#[derive(Debug, Clone, Copy, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    /// In clock ticks since boot.
    pub(super) start: u64,
    pub(super) zombie: bool,
    pub(super) stopped: bool,
}

/// Only pid and start time identify a process; everything else can change.
impl PartialEq for Process {
    fn eq(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }
}

/// Processes that a sweep must not end.
#[derive(Debug, Default)]
pub(super) struct Spared {
    /// Only these processes themselves.
    pub(super) alone: Vec<u32>,
    /// These and all their descendants, which existed before.
    pub(super) families: Vec<Process>,
}

/// Child process whose orphans we must not adopt.
#[cfg(target_os = "linux")]
static LETS_LOOSE: std::sync::Mutex<Option<rustix::process::Pid>> = std::sync::Mutex::new(None);

/// Makes us the parent of orphaned descendants, instead of init. Repeated calls cost nothing.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let child = LETS_LOOSE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(child) = child {
            // Its own waiter reaps it. If it is already reaped, this fails and there is nothing to wait for.
            let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        // Only kernels before 3.4 refuse this; there, the process group is still ended.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// Reverts [`adopt_orphans`], for a process that should be independent.
pub fn stop_adopting_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(None);
    }
}

/// Prevents adopting the processes that this child starts: [`adopt_orphans`] waits until the child is gone, so it must exit soon.
pub fn let_orphans_go_of(child: &std::process::Child) {
    #[cfg(target_os = "linux")]
    {
        *LETS_LOOSE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(rustix::process::Pid::from_child(child));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = child;
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::{Duration, Process, Signals, Spared};

    pub(in super::super) fn descendants() -> Vec<Process> {
        Vec::new()
    }

    pub(in super::super) fn all() -> Vec<Process> {
        Vec::new()
    }

    pub(in super::super) fn below(_: u32, _: &[Process], _: &Spared) -> Vec<Process> {
        Vec::new()
    }

    pub(in super::super) fn end_leftovers(_: &Spared, _: Duration, _: &Signals) -> u32 {
        0
    }

    pub(in super::super) fn end_marked(_: &str, _: &str, _: Duration, _: &Signals) -> u32 {
        0
    }

    pub(in super::super) fn is_zombie(_: u32) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitid, waitpid,
    };

    use super::{Duration, Process, Signals, Spared};
    use crate::base::active_clock::Stopwatch;
    use crate::process::helpers_spared::is_spared;
    use crate::process::signal::Stop;

    /// A sweep gives up after this time: something forks faster than we kill, or hangs in the kernel.
    const LONGEST: Duration = Duration::from_secs(5);
    /// How many processes are handled at a time, to stay far below the limit of open files.
    const BATCH: usize = 128;

    pub(in super::super) fn descendants() -> Vec<Process> {
        if has_no_children() { Vec::new() } else { below(std::process::id(), &all(), &Spared::default()) }
    }

    /// Ends all descendants except the spared ones. Returns how many there were.
    pub(in super::super) fn end_leftovers(spared: &Spared, grace: Duration, signals: &Signals) -> u32 {
        let me = std::process::id();
        sweep(&|| if has_no_children() { Vec::new() } else { below(me, &all(), spared) }, grace, signals)
    }

    /// Ends every process with this variable in its environment, except this process and its ancestors.
    pub(in super::super) fn end_marked(name: &str, value: &str, grace: Duration, signals: &Signals) -> u32 {
        let mark = format!("{name}={value}").into_bytes();
        sweep(&|| marked(&mark, &all()), grace, signals)
    }

    /// Processes with the mark, plus those that belong to them without it: their descendants and their groups.
    fn marked(mark: &[u8], all: &[Process]) -> Vec<Process> {
        let mut above = HashSet::from([std::process::id()]);
        while let Some(parent) = all.iter().find(|p| above.contains(&p.pid) && !above.contains(&p.parent)).map(|p| p.parent) {
            above.insert(parent);
        }
        let has_mark = |process: &&Process| {
            let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == mark)
        };
        let marked: Vec<&Process> = all.iter().filter(|process| !above.contains(&process.pid)).filter(has_mark).collect();
        // Skip groups and families that also contain one of our ancestors.
        let ours: HashSet<u32> = all.iter().filter(|p| above.contains(&p.pid)).map(|p| p.group).collect();
        let groups: HashSet<u32> = marked.iter().map(|p| p.group).filter(|group| !ours.contains(group)).collect();
        let mut family: HashSet<u32> = marked.iter().map(|p| p.pid).collect();
        family.extend(all.iter().filter(|p| groups.contains(&p.group) && !above.contains(&p.pid)).map(|p| p.pid));
        let roots: Vec<u32> = family.iter().copied().collect();
        family.extend(roots.iter().flat_map(|root| below(*root, all, &Spared::default())).map(|p| p.pid));
        all.iter().filter(|p| family.contains(&p.pid) && !above.contains(&p.pid)).copied().collect()
    }

    /// TERM, grace, KILL, until `find` returns nothing.
    fn sweep(find: &dyn Fn() -> Vec<Process>, grace: Duration, signals: &Signals) -> u32 {
        let me = std::process::id();
        let insisted = || matches!(signals.stop(), Some(Stop::Insisted(_)));
        let begin = Stopwatch::start();
        let mut ended: HashSet<(u32, u64)> = HashSet::new();
        while begin.elapsed() < grace + LONGEST {
            let (dead, alive): (Vec<Process>, Vec<Process>) = find().into_iter().partition(|process| process.zombie);
            for process in dead.iter().filter(|process| process.parent == me) {
                let _ = waitpid(pid(process), WaitOptions::NOHANG);
            }
            if alive.is_empty() {
                // Zombies of other parents disappear with those parents. Ours have now been reaped, so look again.
                if dead.iter().all(|process| process.parent != me) {
                    break;
                }
                continue;
            }
            let in_grace = begin.elapsed() < grace && !insisted();
            let mut waiting: Vec<OwnedFd> = Vec::new();
            for process in alive.iter().take(BATCH) {
                let first_time = ended.insert((process.pid, process.start));
                let signal = if in_grace { first_time.then_some(Signal::TERM) } else { Some(Signal::KILL) };
                waiting.extend(signal.map_or_else(|| look_at(process), |signal| end(process, signal)));
            }
            wait_for_one(&waiting, Duration::from_millis(50));
        }
        u32::try_from(ended.len()).unwrap_or(u32::MAX)
    }

    /// Also sends CONT, because a stopped process receives the signal only after it is continued. Returns a pidfd to wait on, if available.
    fn end(process: &Process, signal: Signal) -> Option<OwnedFd> {
        send(process, signal);
        send(process, Signal::CONT)
    }

    /// Sends a signal to exactly this process.
    pub(in super::super) fn send(process: &Process, signal: Signal) -> Option<OwnedFd> {
        let pid = pid(process)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => {
                let fd = still(process, fd)?;
                let _ = pidfd_send_signal(&fd, signal);
                Some(fd)
            }
            Err(Errno::NOSYS | Errno::PERM) => {
                without_pidfd(process, pid, signal);
                None
            }
            Err(_) => None,
        }
    }

    /// Fallback if the kernel provides no pidfd, as in some sandboxes. The pid may have been reused by now.
    fn without_pidfd(process: &Process, pid: Pid, signal: Signal) {
        if is_still(process) {
            let _ = kill_process(pid, signal);
        }
    }

    fn look_at(process: &Process) -> Option<OwnedFd> {
        still(process, pidfd_open(pid(process)?, PidfdFlags::empty()).ok()?)
    }

    /// A pidfd refers to the process that has the pid when it is opened, so check the identity again.
    fn still(process: &Process, fd: OwnedFd) -> Option<OwnedFd> {
        is_still(process).then_some(fd)
    }

    fn is_still(process: &Process) -> bool {
        read(process.pid).is_some_and(|now| now == *process)
    }

    /// Waits until one of them exits: then the tree has changed and must be searched again.
    fn wait_for_one(processes: &[OwnedFd], patience: Duration) {
        let mut fds: Vec<PollFd<'_>> = processes.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Exact, and only one system call; walking `/proc` takes some milliseconds.
    fn has_no_children() -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::All, options).is_err_and(|error| error == Errno::CHILD)
    }

    pub(in super::super) fn below(root: u32, all: &[Process], spared: &Spared) -> Vec<Process> {
        let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
        for process in all {
            children.entry(process.parent).or_default().push(process);
        }
        let family = |p: &Process| spared.families.contains(p);
        let mut found = Vec::new();
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for process in children.remove(&parent).unwrap_or_default() {
                if family(process) || is_spared(process.pid) {
                    continue;
                }
                parents.push(process.pid);
                if !spared.alone.contains(&process.pid) {
                    found.push(*process);
                }
            }
        }
        found
    }

    pub(in super::super) fn all() -> Vec<Process> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(read).collect()
    }

    /// Whether the process has ended, but its parent has not collected it yet.
    pub(in super::super) fn is_zombie(pid: u32) -> bool {
        read(pid).is_some_and(|process| process.zombie)
    }

    fn read(pid: u32) -> Option<Process> {
        parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may contain anything, including parentheses, blanks and
    /// invalid UTF-8, so fields are counted from the last one.
    fn parse(pid: u32, text: &[u8]) -> Option<Process> {
        let end = text.iter().rposition(|&b| b == b')')?;
        let mut fields = std::str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let state = fields.next()?;
        let (zombie, stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let start = fields.nth(15)?.parse().ok()?;
        Some(Process { pid, parent, group, session, start, zombie, stopped })
    }

    fn pid(process: &Process) -> Option<Pid> {
        Pid::from_raw(i32::try_from(process.pid).ok()?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_hostile_process_name_does_not_shift_the_fields() {
            let text = b"42 (a) R 1 (\xff) Z 7 42 42 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0 18446744073709551615";
            let read = parse(42, text).unwrap();
            assert_eq!((read.pid, read.parent, read.group, read.session, read.start), (42, 7, 42, 42, 98765));
            assert!(read.zombie && !read.stopped);
        }

        #[test]
        fn our_own_entry_is_read() {
            let me = read(std::process::id()).unwrap();
            assert!(me.parent > 0 && me.start > 0 && !me.zombie);
        }

        #[test]
        fn a_stranger_with_a_recycled_pid_is_never_hit() {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let process = read(child.id()).unwrap();
            let earlier = Process { start: process.start - 1, ..process };
            assert!(send(&earlier, Signal::KILL).is_none() && look_at(&earlier).is_none());
            without_pidfd(&earlier, pid(&earlier).unwrap(), Signal::KILL);
            assert!(child.try_wait().unwrap().is_none(), "it was meant for somebody else");
            assert!(send(&process, Signal::KILL).is_some());
            child.wait().unwrap();
        }

        #[test]
        fn who_is_meant_is_hit_also_without_a_pidfd() {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let process = read(child.id()).unwrap();
            without_pidfd(&process, pid(&process).unwrap(), Signal::KILL);
            assert!(!child.wait().unwrap().success());
        }

        #[test]
        fn a_spared_family_is_left_out_and_a_spared_process_only_itself() {
            let process = |pid, parent| {
                let (group, session) = (pid, 1);
                Process { pid, parent, group, session, start: u64::from(pid), zombie: false, stopped: false }
            };
            let all = [process(2, 1), process(3, 2), process(4, 1), process(5, 4), process(6, 9)];
            let spared = Spared { alone: vec![4], families: vec![process(2, 1)] };
            assert_eq!(below(1, &all, &spared), [process(5, 4)]);
            assert_eq!(below(1, &all, &Spared::default()).len(), 4);
        }
    }
}
