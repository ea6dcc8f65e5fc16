//! The path of this program.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The path of this program when first called. If an update replaces the file during a run, the system would only report the old one as
/// deleted; this path finds the new one.
pub fn own_program() -> io::Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let found = std::env::current_exe()?;
    Ok(FOUND.get_or_init(|| found).clone())
}
