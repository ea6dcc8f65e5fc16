//! Signals to the process group also reach the launcher. They are meant for the program, so the launcher ignores those that would
//! end it.

use super::sys;

/// All signal numbers on Linux; real-time signals begin at 32.
const ALL: std::ops::RangeInclusive<i32> = 1..=64;

/// Not ignored: a stop must stop the whole group (that is how a program that wants the terminal is noticed), the launcher waits
/// for its children, and its own crashes must end it.
const KEPT: [i32; 14] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// The signals that are ignored now but were not before.
#[derive(Debug)]
pub(super) struct Ignored(Vec<i32>);

impl Ignored {
    pub(super) fn begin() -> Self {
        let signals: Vec<i32> = ALL.filter(|signal| !KEPT.contains(signal) && !sys::is_ignored(*signal)).collect();
        for signal in &signals {
            sys::ignore_signal(*signal);
        }
        Self(signals)
    }

    /// Restores what the program would have inherited without the launcher.
    pub(super) fn end(&self) {
        for signal in &self.0 {
            sys::reset_signal(*signal);
        }
    }
}
