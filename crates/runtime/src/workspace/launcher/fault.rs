//! A switch for tests: makes one step fail as a kernel that refuses it would. It can only make a launch fail or say that a part is
//! missing, so setting it gains nobody anything.

use std::io;

/// Names the step to fail: `unshare`, `idmap`, `mount`, `overlay`, `proc` or `network`.
pub const VARIABLE: &str = "VERDONE_LAUNCH_FAIL";

/// The error of a step that is switched off.
pub(super) fn inject(step: &str, errno: i32) -> io::Result<()> {
    let chosen = std::env::var_os(VARIABLE).is_some_and(|value| value == step);
    if chosen { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
}
