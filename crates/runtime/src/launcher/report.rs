//! The file in which a launcher reports why it could not start a program.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitStatus;

use tempfile::NamedTempFile;

use super::plan::Inside;
use super::{EXIT_FAILED, Failure};

const LONGEST_LINE: usize = 16 * 1024;

/// Must live as long as the started process.
#[derive(Debug)]
pub(crate) struct LaunchReport(NamedTempFile);

impl LaunchReport {
    /// A report for one launch, and the command line for it.
    pub(crate) fn begin(inside: &Inside, argv: &[OsString], cwd: &Path) -> io::Result<(Self, Vec<OsString>)> {
        let file = tempfile::Builder::new().prefix("verdone-launch-").tempfile()?;
        let line = inside.command_line(argv, cwd, file.path());
        Ok((Self(file), line))
    }

    /// Why the program was never started; `None` if it was, however it ended.
    pub(crate) fn failure(&self, status: ExitStatus) -> Option<Failure> {
        self.failure_of(status.code()?)
    }

    pub(crate) fn failure_of(&self, exit_code: i32) -> Option<Failure> {
        if exit_code != i32::from(EXIT_FAILED) {
            return None;
        }
        // The launcher has removed the name.
        let mut line = vec![0; LONGEST_LINE];
        let length = self.0.as_file().read_at(&mut line, 0).ok()?;
        Failure::parse(&String::from_utf8_lossy(&line[..length]))
    }
}
