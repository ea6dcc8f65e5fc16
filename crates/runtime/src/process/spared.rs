//! Small processes of our own that a sweep spares: they belong to no command, and their owners end them.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::standstill;

static SPARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn spared() -> MutexGuard<'static, Vec<u32>> {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts one. Its owner waits for it and then calls [`forget_spared`].
pub(crate) fn start_spared(command: &mut Command) -> io::Result<Child> {
    let _gate = standstill::gate();
    // Held until the process is known, so that no sweep can see it before.
    let mut known = spared();
    let child = command.spawn()?;
    known.push(child.id());
    Ok(child)
}

/// Its process id may belong to somebody else from now on.
pub(crate) fn forget_spared(pid: u32) {
    spared().retain(|known| *known != pid);
}

pub(super) fn is_spared(pid: u32) -> bool {
    spared().contains(&pid)
}
