//! The single-threaded entry point that builds a view, or enters one, and executes a program there.

use std::ffi::OsString;
use std::path::Path;

use super::plan::Inside;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "launch";

pub(super) fn command_line(_inside: &Inside, argv: &[OsString], _cwd: &Path, _failure: &Path) -> Vec<OsString> {
    argv.to_vec()
}
