//! Why the launcher failed, as data: the step, the path and the system error.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The exit code of a launcher that could not start the program.
pub const EXIT: u8 = 125;

/// One step of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Reading the plan or the arguments.
    Plan,
    /// Creating namespaces.
    Unshare,
    /// Mapping the user and group ids.
    IdMap,
    /// The first mount: detaching the view's mounts from the system's.
    Mount,
    Bind,
    Overlay,
    Scratch,
    Mask,
    /// Making the rest of the system read-only.
    ReadOnly,
    /// Creating a missing mount point.
    MountPoint,
    /// Attaching a finished mount at its target.
    Attach,
    Network,
    /// Joining the namespaces of a holder.
    Enter,
    /// A fresh `/proc`.
    Proc,
    /// Changing to the working folder.
    WorkingFolder,
    /// Giving up privileges and inherited descriptors.
    Privileges,
    Landlock,
    /// Starting one of the launcher's own processes, not the program.
    Fork,
    /// The program itself: missing, not executable, or not a program.
    Exec,
    /// The process that requested the launch is gone.
    Parent,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    pub path: Option<String>,
    pub errno: i32,
}

impl Failure {
    pub fn at(step: Step, path: &Path, error: &io::Error) -> Self {
        Self { path: Some(path.display().to_string()), ..Self::new(step, error) }
    }

    pub fn new(step: Step, error: &io::Error) -> Self {
        Self { step, path: None, errno: error.raw_os_error().unwrap_or(0) }
    }

    /// Parses what `Failure::write` wrote. Returns `None` if nothing was written.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }

    /// Writes one line of JSON. If that fails, there is nobody to report it to; the exit code still shows that the launch failed.
    pub(super) fn write(&self, mut to: &File) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = to.write_all(&line);
        }
    }

    pub fn system_error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.step)?;
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        if self.errno == 0 { Ok(()) } else { write!(f, ": {}", self.system_error()) }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "cannot read the view's plan",
            Self::Unshare => "cannot create namespaces",
            Self::IdMap => "cannot map user ids",
            Self::Mount => "cannot mount anything in the new namespace",
            Self::Bind => "cannot bind",
            Self::Overlay => "cannot mount copy-on-write folder",
            Self::Scratch => "cannot mount a folder in memory at",
            Self::Mask => "cannot hide",
            Self::ReadOnly => "cannot make the system read-only",
            Self::MountPoint => "cannot create the mount point",
            Self::Attach => "cannot mount at",
            Self::Network => "cannot create a network namespace",
            Self::Enter => "cannot enter the view",
            Self::Proc => "cannot mount",
            Self::WorkingFolder => "cannot change to the folder",
            Self::Privileges => "cannot give up privileges",
            Self::Landlock => "cannot confine with Landlock",
            Self::Fork => "cannot start a process",
            Self::Exec => "cannot execute",
            Self::Parent => "the process that started the launcher has exited",
        })
    }
}
