//! Folders of hidden checks. They are outside of the repository and visible only to their own check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::check::Gate;

use super::error::WorkspaceError;
use super::paths::expand;

/// The variable that tells a check where its folder is.
pub const HIDDEN_VARIABLE: &str = "VERDONE_HIDDEN";

/// Places that must not overlap with a hidden folder.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) home: Option<&'a Path>,
    /// The top of the work tree, and the repository's folder.
    pub(super) top: &'a Path,
    pub(super) repository: &'a Path,
    pub(super) state: &'a Path,
    /// Folders that agents can really write to, as spelled in the settings.
    pub(super) writable: &'a [String],
}

/// All hidden folders, as spelled in the settings, with their real paths.
#[derive(Debug, Default)]
pub(super) struct HiddenFolders {
    by_name: BTreeMap<PathBuf, PathBuf>,
    /// These folders and others that nobody may see.
    all: Vec<PathBuf>,
}

impl HiddenFolders {
    /// Refuses a folder that could not be hidden. `more` is hidden from every process.
    pub(super) fn find(gates: &[Gate], more: Vec<PathBuf>, around: &Surroundings<'_>) -> Result<Self, WorkspaceError> {
        let mut by_name = BTreeMap::new();
        for (gate, folder) in gates.iter().filter_map(|gate| Some((&gate.name, gate.hidden.as_ref()?))) {
            let refused = |why: &'static str| WorkspaceError::Hidden { gate: gate.clone(), folder: folder.clone(), why };
            let real = expand(&folder.to_string_lossy(), around.home, around.top).ok_or_else(|| refused("HOME is not set"))?;
            let real = fs::canonicalize(&real).map_err(|_| refused("it does not exist"))?;
            around.accept(&real).map_err(refused)?;
            by_name.insert(folder.clone(), real);
        }
        let mut all: Vec<PathBuf> = by_name.values().cloned().chain(more).collect();
        all.sort();
        all.dedup();
        Ok(Self { by_name, all })
    }

    pub(super) fn all(&self) -> &[PathBuf] {
        &self.all
    }

    /// The real path of a folder from the settings.
    pub(super) fn real(&self, folder: &Path) -> Result<&Path, WorkspaceError> {
        let unknown = || WorkspaceError::Hidden {
            gate: String::new(),
            folder: folder.to_owned(),
            why: "no gate used it when the workspaces were opened",
        };
        self.by_name.get(folder).map(PathBuf::as_path).ok_or_else(unknown)
    }
}

impl Surroundings<'_> {
    fn accept(&self, folder: &Path) -> Result<(), &'static str> {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !folder.is_dir() {
            return Err("it is not a folder");
        }
        if [self.top, self.repository].into_iter().any(|ours| folder.starts_with(real(ours))) {
            return Err("it is inside the repository, where the agent could read it");
        }
        let important = [Some(self.top), Some(self.repository), Some(self.state), self.home].into_iter().flatten();
        if important.into_iter().any(|path| real(path).starts_with(folder)) {
            return Err("it contains the project, the home folder or Verdone's state folder");
        }
        if folder.starts_with(real(self.state)) {
            return Err("it is inside Verdone's state folder");
        }
        // An agent could move a parent folder and find this one under another name.
        let writable = self.writable.iter().filter_map(|text| expand(text, self.home, self.top));
        if writable.into_iter().any(|path| folder.starts_with(real(&path))) {
            return Err("it is inside a folder of `workspace.writable`");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::check::{CommandSpec, Stage};

    fn gate(name: &str, hidden: &Path) -> Gate {
        let command = CommandSpec::Shell("true".to_owned());
        Gate { hidden: Some(hidden.to_owned()), ..Gate::new(name, Stage::Correctness, command) }
    }

    #[test]
    fn a_folder_that_could_not_be_hidden_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for folder in ["home/project/tests", "home/state/x", "home/hidden/deep", "home/shared/hidden", "git/objects"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("home/file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("home/project/tests"), root.join("home/link")).unwrap();
        let (home, top, repository, state) = ("home", "home/project", "git", "home/state");
        let [home, top, repository, state] = [home, top, repository, state].map(|name| root.join(name));
        let writable = ["~/shared".to_owned()];
        let around = Surroundings { home: Some(&home), top: &top, repository: &repository, state: &state, writable: &writable };
        for (folder, why) in [
            ("~/project/tests", "it is inside the repository"),
            ("~/project", "it is inside the repository"),
            ("~/link", "it is inside the repository"),
            (root.join("git/objects").to_str().unwrap(), "it is inside the repository"),
            ("~/absent", "it does not exist"),
            ("~/file", "it is not a folder"),
            (root.to_str().unwrap(), "it contains the project"),
            ("~", "it contains the project"),
            ("~/state/x", "it is inside Verdone's state folder"),
            ("~/shared/hidden", "it is inside a folder of `workspace.writable`"),
        ] {
            let refused = HiddenFolders::find(&[gate("g", Path::new(folder))], Vec::new(), &around).unwrap_err().to_string();
            let said = format!("the hidden folder of gate \"g\", {folder}, cannot be used: {why}");
            assert!(refused.starts_with(&said), "{refused}");
        }
        let gates = [gate("a", Path::new("~/hidden/deep")), gate("b", &root.join("home/hidden"))];
        let found = HiddenFolders::find(&gates, vec![root.join("srv")], &around).unwrap();
        assert_eq!(found.all(), [root.join("home/hidden"), root.join("home/hidden/deep"), root.join("srv")]);
        assert_eq!(found.real(Path::new("~/hidden/deep")).unwrap(), root.join("home/hidden/deep"));
        assert!(found.real(Path::new("~/other")).is_err());
    }
}
