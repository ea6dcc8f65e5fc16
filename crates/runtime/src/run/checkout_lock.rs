//! The lock that allows only one run at a time in a checkout.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use verdone_core::journal::update::Reporter;

use super::{RunError, recover};
use crate::base::finding::Finding;
use crate::git::Git;
use crate::preflight;
use crate::process::signal::Signals;
use crate::project::{GitDirs, Project};
use crate::store::RunLock;

/// Held from before recovery to the end of the run.
#[derive(Debug)]
pub struct CheckoutLock {
    pub(super) lock: RunLock,
}

impl CheckoutLock {
    /// Takes the lock and cleans up after a dead run.
    pub fn acquire(project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Self, RunError> {
        if let Some(finding) = preflight::nested() {
            return Err(RunError::Refused(finding));
        }
        refuse_pipes(&project.git_top)?;
        let lock = match GitDirs::new(&project.git_top) {
            Some(dirs) => RunLock::acquire(&dirs.own)?,
            None => RunLock::acquire(Git::open(&project.root)?.git_dir())?,
        };
        recover::recover(project, signals, reporter)?;
        Ok(Self { lock })
    }
}

/// Git would block forever if one of these files were a pipe.
fn refuse_pipes(top: &Path) -> Result<(), RunError> {
    let is_pipe = |name: &&&str| fs::symlink_metadata(top.join(name)).is_ok_and(|meta| meta.file_type().is_fifo());
    let Some(name) = [".gitignore", ".gitattributes"].iter().find(is_pipe) else { return Ok(()) };
    Err(RunError::Refused(Finding::bad("work tree", format!("{name} is a pipe, not a file"), ["remove it"])))
}
