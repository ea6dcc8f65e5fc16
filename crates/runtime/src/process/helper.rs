//! Small processes of our own that belong to no command: no sweep ends them, their owners do.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::standstill;

static HELPERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn helpers() -> MutexGuard<'static, Vec<u32>> {
    HELPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts one. Its owner waits for it and then calls [`forget_helper`].
pub(crate) fn start_helper(command: &mut Command) -> io::Result<Child> {
    let _gate = standstill::gate();
    // Held until the process is known, so that no sweep can see it before.
    let mut known = helpers();
    let child = command.spawn()?;
    known.push(child.id());
    Ok(child)
}

/// Its process id may belong to somebody else from now on.
pub(crate) fn forget_helper(pid: u32) {
    helpers().retain(|known| *known != pid);
}

pub(super) fn is_helper(pid: u32) -> bool {
    helpers().contains(&pid)
}
