//! What a view shows, as data: made by the workspace, executed by the launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// What the processes of a view can see and write to. Paths without a mount show the system, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewPlan {
    /// In order: a later mount covers an earlier one. Missing mount points are created inside earlier mounts.
    pub mounts: Vec<Mount>,
    pub network: Network,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mount {
    /// A file or folder at another path (or at its own).
    Bind { from: PathBuf, at: PathBuf, write: bool },
    /// Copy-on-write: the first `lower` covers the next, and writes go to `upper`. `work` is a fresh empty folder beside it.
    Overlay { lower: Vec<PathBuf>, upper: PathBuf, work: PathBuf, at: PathBuf },
    /// An empty writable folder in memory.
    Scratch { at: PathBuf },
    /// A folder becomes an empty read-only folder, and a file an empty file. A missing path stays missing.
    Mask { at: PathBuf },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    #[default]
    Open,
    /// Only a private loopback interface.
    Off,
    /// The same, but the launcher listens on these ports of it and hands the sockets to whoever opened the view. They are the only
    /// way out.
    ListenOn(Vec<u16>),
}

/// How a process enters a workspace. Cheap to clone; valid as long as the workspace's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// Join the namespaces that this process keeps open.
    View { holder: u32 },
    /// Without namespaces: Landlock lets the process write only where this file (a `ViewPlan`) allows it.
    Landlock { plan: PathBuf },
}

impl Inside {
    /// Confinement by Landlock. Writes the file, which must exist as long as processes are started with it.
    pub fn landlock(plan: &ViewPlan, file: &Path) -> io::Result<Self> {
        fs::write(file, serde_json::to_vec(plan)?)?;
        Ok(Self::Landlock { plan: file.to_owned() })
    }

    /// Whether a pid namespace ends all descendants of a process along with it.
    pub fn ends_all(&self) -> bool {
        match self {
            Self::View { .. } => true,
            Self::Landlock { .. } => false,
        }
    }

    /// The command line that starts `argv` inside, in the folder `cwd` as seen there. If the program cannot be started, the
    /// launcher writes the reason to the file `failure` and exits with 125.
    pub fn command_line(&self, argv: &[OsString], cwd: &Path, failure: &Path) -> Vec<OsString> {
        super::command_line(self, argv, cwd, failure)
    }
}
