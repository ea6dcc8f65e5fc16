//! The settings and plans of a commit, written to a temporary folder: read like those of
//! a checkout, but never from the work that is judged.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;
use verdone_core::base::id::Oid;

use super::VerifyError;
use super::settings::Settings;
use crate::git::{Git, TreeFile};
use crate::project::plan_file::{Candidate, FindError, LARGEST_PLAN, is_usual_plan};
use crate::project::{FRESHER, HOME, Project};

/// Folders that contain settings and plans.
const FOLDERS: [&str; 5] = [HOME, FRESHER, ".ralph", "ralph-loops", ".agents"];

pub(super) struct CommitSettings {
    _folder: TempDir,
    top: PathBuf,
    git_top: PathBuf,
    /// The project as found in the temporary folder.
    found: Project,
}

impl CommitSettings {
    /// `start` is the folder in the checkout where the command was started.
    pub(super) fn read(git: &Git, commit: &Oid, start: &Project) -> Result<Self, VerifyError> {
        let io = |source| VerifyError::Io { doing: "reading the settings of a commit".to_owned(), source };
        let folder = tempfile::Builder::new().prefix("verdone-settings-").tempdir().map_err(io)?;
        let top = fs::canonicalize(folder.path()).map_err(io)?;
        let below = start.start.strip_prefix(&start.git_top).unwrap_or(Path::new(""));
        // Stops the search for plans in parent folders.
        fs::create_dir_all(top.join(".git")).map_err(io)?;
        fs::create_dir_all(top.join(below)).map_err(io)?;
        let files = git.files_of(commit)?;
        write(git, &top, files.iter().filter(|file| is_about_settings(file)))?;
        let found = Project::find(&top.join(below), &top)?;
        Ok(Self { _folder: folder, git_top: start.git_top.clone(), top, found })
    }

    /// The plans of another commit, for known settings.
    pub(super) fn plans(git: &Git, commit: &Oid, start: &Project, settings: &Settings) -> Result<Self, VerifyError> {
        let laid_out = Self::read(git, commit, start)?;
        laid_out.add_named_plan(git, commit, settings)?;
        Ok(laid_out)
    }

    pub(super) fn settings(&self, git: &Git, commit: &Oid) -> Result<Settings, VerifyError> {
        let settings = Settings::load(&self.found, &self.project().root)?;
        self.add_named_plan(git, commit, &settings)?;
        Ok(settings)
    }

    pub(super) fn found(&self) -> &Project {
        &self.found
    }

    /// The corresponding project in the checkout.
    pub(super) fn project(&self) -> Project {
        let root = self.in_checkout(&self.found.root);
        Project {
            config_path: root.join(HOME).join("config.toml"),
            start: self.in_checkout(&self.found.start),
            git_top: self.git_top.clone(),
            ralph_root: self.found.ralph_root.as_deref().map(|root| self.in_checkout(root)),
            root,
        }
    }

    /// The corresponding path in the checkout.
    pub(super) fn in_checkout(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.top).map_or_else(|_| path.to_owned(), |below| self.git_top.join(below))
    }

    /// Rewrites paths in an error to be relative to the repository.
    pub(super) fn relative(&self, error: VerifyError) -> VerifyError {
        let below = |path: PathBuf| path.strip_prefix(&self.top).map(Path::to_owned).unwrap_or(path);
        match error {
            VerifyError::Find(FindError::Missing { path, similar }) => {
                FindError::Missing { path: below(path), similar: similar.map(below) }.into()
            }
            VerifyError::Find(FindError::EmptyFolder { path }) => FindError::EmptyFolder { path: below(path) }.into(),
            VerifyError::Find(FindError::Several { candidates }) => {
                let candidates = candidates.into_iter();
                let candidates = candidates.map(|plan| Candidate { path: below(plan.path), ..plan }).collect();
                FindError::Several { candidates }.into()
            }
            VerifyError::Find(FindError::Nothing { folders }) => {
                FindError::Nothing { folders: folders.into_iter().map(below).collect() }.into()
            }
            error => error,
        }
    }

    /// The settings may give a plan any name.
    fn add_named_plan(&self, git: &Git, commit: &Oid, settings: &Settings) -> Result<(), VerifyError> {
        let Some(path) = settings.named_plan().and_then(|plan| self.below_top(&self.found.root.join(plan))) else {
            return Ok(());
        };
        let files = git.entries_at(commit, &[path])?;
        write(git, &self.top, files.iter())
    }

    /// A path without `..`, if it is below the top.
    fn below_top(&self, path: &Path) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.strip_prefix(&self.top).ok()?.components() {
            match part {
                Component::Normal(name) => parts.push(name.to_str()?),
                Component::ParentDir => drop(parts.pop()?),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(parts.join("/"))
    }
}

fn is_about_settings(file: &TreeFile) -> bool {
    let path = file.path.as_path();
    let is_folder = |part: Component<'_>| FOLDERS.iter().any(|name| part.as_os_str() == *name);
    path.components().any(is_folder) || is_usual_plan(path)
}

/// Writes regular files only. The target of a link is not part of the commit.
fn write<'f>(git: &Git, top: &Path, files: impl Iterator<Item = &'f TreeFile>) -> Result<(), VerifyError> {
    let io = |source| VerifyError::Io { doing: "reading the settings of a commit".to_owned(), source };
    let files: Vec<&TreeFile> = files.filter(|file| file.is_plain() && file.path.is_safe()).collect();
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    let sizes = git.sizes(&ids)?;
    let small: Vec<&TreeFile> =
        files.into_iter().zip(sizes).filter(|(_, size)| *size <= LARGEST_PLAN).map(|(file, _)| file).collect();
    let ids: Vec<String> = small.iter().map(|file| file.id.to_string()).collect();
    for (file, content) in small.iter().zip(git.contents(&ids)?) {
        let path = top.join(file.path.as_path());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        fs::write(&path, content.unwrap_or_default()).map_err(io)?;
    }
    Ok(())
}
