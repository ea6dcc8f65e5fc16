//! Questions that a user answers with yes or no.

use std::io::{self, BufRead as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use verdone_runtime::process::signal::Signals;

use crate::terminal::{printable, say};

/// How long a signal may go unnoticed while a question waits.
const TICK: Duration = Duration::from_millis(100);

/// Asks on the terminal. Everything but a clear yes means no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    say(&printable(&format!("{question} [y/N] ")));
    read_answer()
}

/// The same while signals are caught: one of them means no. Otherwise Ctrl-C would have no effect.
pub(crate) fn confirm_unless_stopped(question: &str, signals: &Signals) -> io::Result<bool> {
    say(&printable(&format!("{question} [y/N] ")));
    while signals.requested().is_none() {
        if has_input()? {
            return read_answer();
        }
    }
    say("\n");
    Ok(false)
}

fn has_input() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
    match poll(&mut waiting, Some(&tick)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn read_answer() -> io::Result<bool> {
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        say("\n");
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
