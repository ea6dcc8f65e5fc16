//! Opens workspaces: creates their folder and finds out how they can be sealed and what they show.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use verdone_core::config::Config;
use verdone_core::journal::event::{Seal, SealLevel};

use super::{Open, WorkspaceRequest, Workspaces};
use crate::git::{Git, IgnoredEntry};
use crate::project::Project;
use crate::workspace::error::WorkspaceError;
use crate::workspace::hidden::{HiddenFolders, Surroundings};
use crate::workspace::probe::{Ability, Level, probe};
use crate::workspace::seal::{missing, missing_seal, refusal, unlistable};
use crate::workspace::state::{Owner, StateFolder};
use crate::workspace::view_contents::{System, run_folders};

impl Workspaces {
    /// Workspaces for checks outside of a run, opened on first use. Any number of them can exist at the same time. Whatever a
    /// killed process leaves is removed by the next one.
    pub fn for_checks(project: &Project, config: &Config, git: &Git, purpose: &str) -> Result<Self, WorkspaceError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{purpose}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let objects = git.object_folders()?;
        let new = Self::new(&WorkspaceRequest { project, config, run: &name, run_dir: Path::new(""), objects });
        Ok(Self { run_dir: None, ..new })
    }

    pub(super) fn open_if_needed(&mut self, git: &Git) -> Result<(), WorkspaceError> {
        if self.open.is_none() {
            self.open(git)?;
        }
        Ok(())
    }

    /// Creates the folder of the workspaces and finds out how they can be sealed.
    pub fn open(&mut self, git: &Git) -> Result<PathBuf, WorkspaceError> {
        // Every launch reports its failure there. Without it, the probe would find no view.
        let temp = std::env::temp_dir();
        tempfile::tempfile_in(&temp).map_err(|source| WorkspaceError::Temp { path: temp, source })?;
        let state = StateFolder::from_environment(self.workspace.state.as_deref(), &self.project.git_top)?;
        let _ = state.sweep();
        let run = self.run_dir.as_ref().map(|_| self.name.clone());
        let owner = Owner { pid: std::process::id(), project: self.project.root.clone(), run };
        let held = state.create(&self.name, &owner)?;
        let ability = probe(held.path());
        if self.seal.required && !missing_seal(&ability, &self.seal).is_empty() {
            let (reason, remedy) = refusal(&ability);
            return Err(WorkspaceError::Required { reason, remedy });
        }
        if let Some((setting, reason, remedy)) = unlistable(&ability, &self.seal) {
            return Err(WorkspaceError::HostList { setting, reason, remedy });
        }
        let filters = git.filters()?;
        if !ability.view.works() {
            for name in &filters {
                if git.uses_filter(name)? {
                    let (reason, remedy) = refusal(&ability);
                    return Err(WorkspaceError::Filter { name: name.clone(), reason, remedy });
                }
            }
        }
        let system = System::read();
        let hidden = self.hidden_folders(git, &ability, &system, state.path())?;
        let mut ignored = git.ignored_entries()?;
        let submodules = self.submodules(git)?;
        if !submodules.is_empty() {
            let names: Vec<String> = submodules.iter().map(|entry| entry.path.display().to_string()).collect();
            let text = "submodules appear as they are in your checkout; changes in them are not committed";
            self.notes.push(format!("{text}: {}", names.join(", ")));
        }
        ignored.extend(submodules);
        let folder = held.path().to_owned();
        self.open = Some(Open {
            agent: None,
            spare: None,
            layer: None,
            cache: None,
            script_layer: None,
            ability,
            ignored,
            modules: git.modules(),
            filters,
            hidden,
            system,
            number: 0,
            held,
        });
        Ok(folder)
    }

    /// Submodules whose files are in the user's checkout.
    fn submodules(&self, git: &Git) -> Result<Vec<IgnoredEntry>, WorkspaceError> {
        let top = &self.project.git_top;
        if !top.join(".gitmodules").exists() {
            return Ok(Vec::new());
        }
        let Some(head) = git.status()?.head else { return Ok(Vec::new()) };
        let has_files = |path: &PathBuf| fs::read_dir(top.join(path)).is_ok_and(|mut entries| entries.next().is_some());
        let found = git.submodules_of(&head)?.into_iter().filter(has_files);
        Ok(found.map(|path| IgnoredEntry { path, is_folder: true }).collect())
    }

    fn hidden_folders(
        &self,
        git: &Git,
        ability: &Ability,
        system: &System,
        state: &Path,
    ) -> Result<HiddenFolders, WorkspaceError> {
        if let Some(gate) = self.gates.iter().find(|gate| gate.hidden.is_some() && !ability.view.works()) {
            let (reason, remedy) = refusal(ability);
            return Err(WorkspaceError::HiddenNeedsView { gate: gate.name.clone(), reason, remedy });
        }
        let around = Surroundings {
            home: system.home.as_deref(),
            top: &self.project.git_top,
            repository: git.common_dir(),
            state,
            writable: &self.workspace.writable,
        };
        // Runs in other checkouts have the same hidden checks.
        let below = self.below_top();
        let runs = git.other_checkouts().into_iter().flat_map(|checkout| run_folders(&checkout.join(&below)));
        HiddenFolders::find(&self.gates, runs.collect(), &around)
    }

    /// How agents and checks are confined.
    pub fn seal(&self) -> Seal {
        let Some(open) = &self.open else { return Seal::new(SealLevel::Unsealed) };
        let level = match open.ability.level() {
            Level::View | Level::ViewWithoutOwnProc => SealLevel::View,
            Level::CloneWithLandlock => SealLevel::Landlock,
            Level::UnsealedClone => SealLevel::Unsealed,
        };
        let [agent_hosts, check_hosts] = self.seal.networks().map(|(_, access)| access.entries().to_vec());
        let missing = missing(&open.ability, &self.seal);
        Seal { level, missing, container: open.ability.container.is_some(), agent_hosts, check_hosts }
    }
}
