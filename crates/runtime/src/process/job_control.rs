//! Stops all descendants together with this process, and continues them: Ctrl-Z and `fg` for processes in other process groups.
//!
//! Git processes are not stopped. They finish quickly, and a stopped one would keep the user's repository locked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tree::Process;

#[cfg(target_os = "linux")]
pub(crate) use linux::{go_on, stop_descendants, stop_self, would_be_lost};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{go_on, stop_descendants, stop_self, would_be_lost};

/// Locked while a process is being started and during a standstill, so that no new process is missed.
static GATE: Mutex<()> = Mutex::new(());

pub(super) fn gate() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that we stopped. While this exists, no other process is started.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    processes: Vec<Process>,
    _gate: Option<MutexGuard<'static, ()>>,
}

#[cfg(not(target_os = "linux"))]
mod other {
    use rustix::process::{Signal, getpid, kill_process};

    use super::Stopped;

    pub(crate) fn would_be_lost() -> bool {
        false
    }

    pub(crate) fn stop_descendants() -> Stopped {
        Stopped::default()
    }

    pub(crate) fn stop_self() {
        let _ = kill_process(getpid(), Signal::STOP);
    }

    pub(crate) fn go_on(_: &Stopped) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Signal, getpid, kill_process};

    use super::Stopped;
    use crate::process::tree::{self, Process, Spared};

    /// A process may start another one before it is stopped itself, so search again, but only this often.
    const ROUNDS: u32 = 20;

    /// Whether no shell with job control owns our group, so that nothing could continue us. The kernel does not stop such a group either.
    pub(crate) fn would_be_lost() -> bool {
        let all = tree::all();
        let Some(me) = all.iter().find(|process| process.pid == std::process::id()) else { return true };
        let parent_of = |member: &Process| all.iter().find(|process| process.pid == member.parent);
        let held = |parent: &Process| parent.session == me.session && parent.group != me.group;
        !all.iter().filter(|process| process.group == me.group).filter_map(parent_of).any(held)
    }

    /// Stops them all. Processes that were already stopped stay stopped later.
    pub(crate) fn stop_descendants() -> Stopped {
        let gate = super::gate();
        let mut stopped: Vec<Process> = Vec::new();
        for _ in 0..ROUNDS {
            let running = running();
            let fresh: Vec<Process> = running.into_iter().filter(|process| !stopped.contains(process)).collect();
            if fresh.is_empty() {
                break;
            }
            for process in &fresh {
                tree::send(process, Signal::STOP);
            }
            stopped.extend(fresh);
        }
        Stopped { processes: stopped, _gate: Some(gate) }
    }

    fn running() -> Vec<Process> {
        let (me, all) = (std::process::id(), tree::all());
        let is_git = |process: &&Process| {
            process.parent == me && std::fs::read(format!("/proc/{}/comm", process.pid)).is_ok_and(|name| name == b"git\n")
        };
        let spared = Spared { alone: Vec::new(), families: all.iter().filter(is_git).copied().collect() };
        tree::below(me, &all, &spared).into_iter().filter(|process| !process.zombie && !process.stopped).collect()
    }

    /// May return before we are stopped or after we were continued; the two cannot be told apart.
    pub(crate) fn stop_self() {
        let _ = kill_process(getpid(), Signal::STOP);
    }

    pub(crate) fn go_on(stopped: &Stopped) {
        for process in &stopped.processes {
            tree::send(process, Signal::CONT);
        }
    }
}
