//! What a view shows, as data: made by the workspace, carried out by the launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::launcher;

/// What the processes of a view can see and write. Whatever no mount covers is the system as it is, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewPlan {
    /// In this order: a later one covers an earlier one. Missing mount points are created inside earlier mounts.
    pub mounts: Vec<Mount>,
    pub network: Network,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mount {
    /// A file or folder seen at another place (or at its own).
    Bind { from: PathBuf, at: PathBuf, write: bool },
    /// Copy-on-write: the first `lower` covers the next; what is written goes to `upper`. `work` is a fresh empty folder beside it.
    Overlay { lower: Vec<PathBuf>, upper: PathBuf, work: PathBuf, at: PathBuf },
    /// An empty writable folder in memory.
    Scratch { at: PathBuf },
    /// A folder becomes an empty read-only one, a file an empty one. An absent path stays absent.
    Mask { at: PathBuf },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    #[default]
    Open,
    /// Only a loopback of its own.
    Off,
}

/// How a process gets into a workspace. Cheap to clone; valid while the workspace's view lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// Into the namespaces that this process holds open.
    View { holder: u32 },
    /// No namespaces: the process is confined by Landlock to what this file (a `ViewPlan`) lets it write.
    Landlock { plan: PathBuf },
}

impl Inside {
    /// Confinement by Landlock. The file is written here and must stay as long as something is started with it.
    pub fn landlock(plan: &ViewPlan, file: &Path) -> io::Result<Self> {
        fs::write(file, serde_json::to_vec(plan)?)?;
        Ok(Self::Landlock { plan: file.to_owned() })
    }

    /// Whether everything that a process starts ends with it, by a pid namespace.
    pub fn ends_all(&self) -> bool {
        match self {
            Self::View { .. } => true,
            Self::Landlock { .. } => false,
        }
    }

    /// The command line that starts `argv` inside, in the folder `cwd` as seen there. If the program cannot be started, the launcher
    /// writes the reason into the file `failure` and exits with 125.
    pub fn command_line(&self, argv: &[OsString], cwd: &Path, failure: &Path) -> Vec<OsString> {
        launcher::command_line(self, argv, cwd, failure)
    }
}
