//! Finds out what this system allows by trying it, because sysctls and version numbers are not reliable. Everything runs in child
//! processes on empty folders and takes a few milliseconds.

mod remedy;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::{Deserialize, Serialize};

use super::remove::remove_tree;
use super::view::{self, View, ViewError};
use crate::launcher::LaunchReport;
use crate::launcher::{self, ARGUMENT, Failure, LOOK, OWN_PROC, Step};
use crate::launcher::{Mount, Network, ViewPlan};
use crate::process;

/// What this system can do for a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ability {
    /// Private namespaces and mounts.
    pub view: Part,
    /// Copy-on-write folders below the state folder.
    pub overlay: Part,
    /// A `/proc` that shows only the processes of the view.
    pub own_proc: Part,
    /// A network namespace, which disconnects the view.
    pub own_network: Part,
    /// The version of Landlock, if the kernel has it.
    pub landlock: Option<u32>,
    /// Evidence that we run in a container.
    pub container: Option<String>,
}

/// One part of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Works,
    Refused(Refusal),
    /// A part that it depends on was refused.
    NotTried,
}

/// What the system refused, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The step that failed; `None` if the launcher itself did not answer.
    pub failure: Option<Failure>,
    /// A readable explanation.
    pub reason: String,
    pub remedy: Option<String>,
}

/// How well a workspace can be isolated, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    View,
    ViewWithoutOwnProc,
    CloneWithLandlock,
    UnsealedClone,
}

impl Ability {
    pub fn level(&self) -> Level {
        match (&self.view, &self.own_proc, self.landlock) {
            (Part::Works, Part::Works, _) => Level::View,
            (Part::Works, Part::Refused(_) | Part::NotTried, _) => Level::ViewWithoutOwnProc,
            (Part::Refused(_) | Part::NotTried, _, Some(_)) => Level::CloneWithLandlock,
            (Part::Refused(_) | Part::NotTried, _, None) => Level::UnsealedClone,
        }
    }
}

impl Part {
    pub fn works(&self) -> bool {
        *self == Self::Works
    }
}

/// Tries everything that a view needs, with folders below `state_folder`.
pub fn probe(state_folder: &Path) -> Ability {
    let container = remedy::container();
    let refused = |error: &ViewError| Part::Refused(remedy::explain(error, container.as_deref()));
    let mut ability = Ability {
        view: Part::NotTried,
        overlay: Part::Works,
        own_proc: Part::NotTried,
        own_network: Part::Works,
        landlock: launcher::landlock_version(),
        container: container.clone(),
    };
    // A refused part is left out of the next try. Two parts can be left out.
    for _ in 0..3 {
        let error = match try_view(state_folder, ability.overlay.works(), ability.own_network.works()) {
            Ok(own_proc) => {
                ability.view = Part::Works;
                let missing = || Part::Refused(remedy::no_own_proc(container.as_deref()));
                ability.own_proc = if own_proc { Part::Works } else { missing() };
                return ability;
            }
            Err(error) => error,
        };
        let part = match &error {
            ViewError::Refused(Failure { step: Step::Overlay, .. }) if ability.overlay.works() => &mut ability.overlay,
            ViewError::Refused(Failure { step: Step::Network, .. }) if ability.own_network.works() => &mut ability.own_network,
            _ => {
                ability.view = refused(&error);
                (ability.overlay, ability.own_network) = (Part::NotTried, Part::NotTried);
                return ability;
            }
        };
        *part = refused(&error);
    }
    ability
}

/// Builds a view and runs a program in it. Returns whether it has its own `/proc`.
fn try_view(state_folder: &Path, overlay: bool, own_network: bool) -> Result<bool, ViewError> {
    let failed = |source: io::Error| ViewError::Files { path: state_folder.to_owned(), source };
    fs::create_dir_all(state_folder).map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("probe-").tempdir_in(state_folder).map_err(failed)?;
    let path = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "at", "tree", "hidden"] {
        fs::create_dir(path(name)).map_err(failed)?;
    }
    let mut mounts = vec![
        Mount::Scratch { at: "/tmp".into() },
        Mount::Bind { from: path("tree"), at: path("at"), write: true },
        Mount::Mask { at: path("hidden") },
    ];
    // If our own binary is below /tmp, which the view hides, it could not run inside.
    let program = launcher::program();
    if program.starts_with("/tmp") {
        mounts.push(Mount::Bind { from: program.clone(), at: program, write: false });
    }
    if overlay {
        let lower = vec![path("lower")];
        mounts.push(Mount::Overlay { lower, upper: path("upper"), work: path("work"), at: path("at").join("cached") });
    }
    let network = if own_network { Network::Off } else { Network::Open };
    let result = View::open(&ViewPlan { mounts, network }, folder.path()).and_then(|view| inspect_view(&view));
    // The kernel leaves a folder without any permissions in there.
    let _ = remove_tree(&path("work"));
    result.map_err(|error| without_path_below(error, folder.path()))
}

/// Drops the path of the probe's own folder, which is gone by the time anyone reads the error.
fn without_path_below(error: ViewError, folder: &Path) -> ViewError {
    match error {
        ViewError::Refused(Failure { step, path: Some(path), errno }) if Path::new(&path).starts_with(folder) => {
            ViewError::Refused(Failure { step, path: None, errno })
        }
        other => other,
    }
}

fn inspect_view(view: &View) -> Result<bool, ViewError> {
    let program = launcher::program();
    let failed = |source: io::Error| ViewError::Start { program: program.clone(), source };
    let argv: [OsString; 3] = [program.clone().into(), ARGUMENT.into(), LOOK.into()];
    let (report, line) = LaunchReport::begin(&view.inside(), &argv, Path::new("/")).map_err(failed)?;
    let (launcher, arguments) = line.split_first().ok_or(ViewError::Ended)?;
    let mut command = Command::new(launcher);
    // A library that the user preloads may need files that this bare view lacks.
    command
        .args(arguments)
        .env_clear()
        .envs(view::kept_variables())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Output { status, stdout, .. } = process::start_spared(&mut command)
        .and_then(|child| {
            let id = child.id();
            let output = child.wait_with_output();
            process::forget_spared(id);
            output
        })
        .map_err(failed)?;
    match report.failure(status) {
        Some(failure) => Err(ViewError::Refused(failure)),
        None if status.success() => Ok(String::from_utf8_lossy(&stdout).trim() == OWN_PROC),
        None => Err(ViewError::Ended),
    }
}
