//! Repositories of submodules. Git stores them in `modules/NAME` of the git folder, and nested ones in `modules/` of the
//! submodule's git folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::private_repository::{Alternates, Head, list};
use super::{Git, GitDirs};

/// The repository of a submodule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Below the git folder: `modules/NAME`.
    pub below: PathBuf,
    /// Its git folder.
    pub git_dir: PathBuf,
}

impl Module {
    pub fn objects(&self) -> PathBuf {
        self.git_dir.join("objects")
    }
}

impl Git {
    /// The repositories of submodules, checked out or not. Starts no process.
    pub fn modules(&self) -> Vec<Module> {
        let top = fs::canonicalize(&self.git_dir).unwrap_or_else(|_| self.git_dir.clone());
        let mut found = Vec::new();
        let mut left = vec![PathBuf::from("modules")];
        while let Some(below) = left.pop() {
            for entry in list(&top.join(&below)).ok().flatten().unwrap_or_default() {
                let (below, git_dir) = (below.join(entry.file_name()), entry.path());
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if is_repository(&git_dir) {
                    left.push(below.join("modules"));
                    found.push(Module { below, git_dir });
                } else {
                    // Names may contain slashes.
                    left.push(below);
                }
            }
        }
        found
    }

    /// Copies the repositories of submodules into a private repository. Leaves out those that cannot be copied.
    pub(super) fn copy_modules(&self, at: &Path, objects: Alternates) {
        for module in self.modules() {
            let place = at.join(&module.below);
            let own = self.of_module(&module.git_dir);
            let copied = own.make_private(&place, Head::AsItIs, objects, Some(&module.git_dir.join("index")));
            if copied.is_err() {
                let _ = fs::remove_dir_all(&place);
            }
        }
    }

    /// Git for the repository of a submodule, wherever its files are.
    fn of_module(&self, git_dir: &Path) -> Self {
        let dirs = GitDirs { own: git_dir.to_owned(), common: git_dir.to_owned() };
        let mut git = Self::found(git_dir, dirs, self.deadline);
        git.environment.clone_from(&self.environment);
        git.environment.push(("GIT_DIR".into(), git_dir.into()));
        git
    }
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").exists() && folder.join("objects").is_dir()
}
