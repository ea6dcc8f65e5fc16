//! A switch for tests that makes one step fail, as if the kernel refused it. It can only make a launch fail or report a part as
//! missing, so setting it gives no advantage.

use std::io;

/// Names the step that fails: `unshare`, `idmap`, `mount`, `overlay`, `proc` or `network`.
pub const VARIABLE: &str = "VERDONE_LAUNCH_FAIL";

/// Returns an error if this step is switched off.
pub(super) fn inject(step: &str, errno: i32) -> io::Result<()> {
    let chosen = std::env::var_os(VARIABLE).is_some_and(|value| value == step);
    if chosen { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
}
