//! Small helper processes of ours that a sweep spares: they belong to no command, and their owners end them.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::job_control;

static SPARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn spared() -> MutexGuard<'static, Vec<u32>> {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts one. Its owner must wait for it and then call [`forget_spared`].
pub(crate) fn start_spared(command: &mut Command) -> io::Result<Child> {
    let _gate = job_control::gate();
    // Locked until the process is registered, so that no sweep sees it before.
    let mut known = spared();
    let child = command.spawn()?;
    known.push(child.id());
    Ok(child)
}

/// From now on, the process id may be reused.
pub(crate) fn forget_spared(pid: u32) {
    spared().retain(|known| *known != pid);
}

pub(super) fn is_spared(pid: u32) -> bool {
    spared().contains(&pid)
}
