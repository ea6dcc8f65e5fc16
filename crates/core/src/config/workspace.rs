//! `[workspace]`: the private file tree of a run, and where it is stored.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnose::{Finding, Step};

/// The private file tree in which agents work and checks run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceSettings {
    /// How folders that git ignores are shown, by path relative to the project: `node_modules = "copy"`. A mode also applies to everything
    /// below the folder. Other ignored folders are shown as "cache" if they are named like a well-known build folder (`target`,
    /// `__pycache__`, …), otherwise as "overlay".
    pub folders: BTreeMap<String, FolderMode>,
    /// The largest ignored file to copy into the workspace, in bytes. Folders are copied only if their mode says so.
    pub copy_file_bytes: u64,
    /// The maximum total size of all copied ignored files, in bytes.
    pub copy_total_bytes: u64,
    /// Where agents and checks see the project.
    pub path: WorkspacePath,
    /// The folder for workspaces, outside of the project. Default: `$XDG_STATE_HOME/verdone`, or `~/.local/state/verdone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What agents and checks can do with your home folder. The agent's own transcripts are kept in both cases.
    pub home: HomeMode,
    /// Files and folders outside of the project to which agents and checks have real write access, for example a shared cache. Absolute
    /// paths, or below `~/`.
    pub writable: Vec<String>,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            folders: BTreeMap::new(),
            copy_file_bytes: 1024 * 1024,
            copy_total_bytes: 16 * 1024 * 1024,
            path: WorkspacePath::default(),
            state: None,
            home: HomeMode::default(),
            writable: Vec::new(),
        }
    }
}

impl WorkspaceSettings {
    /// The mode of a folder, by path relative to the project: that of the longest entry that names the folder or one of its parents, or
    /// else the mode suggested by its name.
    pub fn mode_of(&self, folder: &Path) -> FolderMode {
        let named = self.folders.iter().filter(|(name, _)| folder.starts_with(clean(name)));
        let longest = named.max_by_key(|(name, _)| clean(name).components().count());
        longest.map_or_else(|| FolderMode::suggested_by(folder), |(_, mode)| *mode)
    }
}

/// A path in `folders`, without `./`.
fn clean(name: &str) -> &Path {
    Path::new(name.trim_start_matches("./"))
}

/// Folders that tools recreate offline from the sources alone. Not `dist` or `build`: other commands may need their content.
const BUILD_FOLDERS: [&str; 11] = [
    "target",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".gradle",
    ".stack-work",
    ".zig-cache",
    "zig-cache",
    ".parcel-cache",
    ".turbo",
];

/// How an ignored folder of the checkout is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FolderMode {
    /// Copy-on-write: writes stay in the workspace. The folder itself cannot be removed or renamed there.
    #[default]
    Overlay,
    /// Like "overlay", for build output: what the checks of a committed story built is kept. Checks that start cold do not see it.
    Cache,
    /// A copy: slower to start, but an ordinary folder, unaffected by your own changes.
    Copy,
    /// Your folder, read-only.
    ReadOnly,
    /// Not shown.
    None,
}

impl FolderMode {
    /// The mode of a folder without a setting.
    pub fn suggested_by(folder: &Path) -> Self {
        let is_build_folder = folder.file_name().is_some_and(|name| BUILD_FOLDERS.iter().any(|known| name == *known));
        if is_build_folder { Self::Cache } else { Self::Overlay }
    }
}

/// Where agents and checks see the project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspacePath {
    /// At the path of your checkout, so that absolute paths in caches and virtual environments keep working.
    #[default]
    Same,
    /// At a separate path below the state folder. Required if a program outside of the workspace, such as a container engine, must find
    /// the files.
    Own,
}

/// What processes in a workspace can do with the home folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HomeMode {
    /// Writes work, but stay in the workspace.
    #[default]
    CopyOnWrite,
    /// Only reading is possible.
    ReadOnly,
}

/// The first fault in settings of the right types.
pub(super) fn unusable(settings: &WorkspaceSettings) -> Option<Finding> {
    let key = |text: &str| Step::Key(text.to_owned());
    let fault = |path: Vec<Step>, on_key: bool, message: String, hint: Option<&str>| {
        let path = std::iter::once(key("workspace")).chain(path).collect();
        Some(Finding { path, on_key, message, hint: hint.map(str::to_owned) })
    };
    for name in settings.folders.keys() {
        if let Some(why) = not_below_the_project(name) {
            return fault(vec![key("folders"), key(name)], true, format!("`{name}` {why}"), None);
        }
    }
    if let Some(state) = &settings.state
        && let Some(why) = not_a_place(state)
    {
        return fault(vec![key("state")], false, format!("the folder for workspaces {why}"), None);
    }
    for (n, path) in settings.writable.iter().enumerate() {
        let at = vec![key("writable"), Step::Index(n)];
        if let Some(why) = not_a_place(path) {
            let hint = "writes inside the project always stay in the workspace";
            return fault(at, false, format!("a writable path {why}"), Some(hint));
        }
        if is_everything(path) {
            let hint = "list single folders, for example a cache";
            return fault(at, false, format!("`{path}` is too broad to be writable"), Some(hint));
        }
    }
    None
}

/// Why a name cannot be a folder below the project.
fn not_below_the_project(name: &str) -> Option<&'static str> {
    let mut parts = Path::new(name).components().filter(|part| *part != Component::CurDir);
    if name.contains('\0') {
        return Some("cannot be a path");
    }
    match parts.next() {
        None => return Some("is the project itself"),
        Some(Component::Normal(first)) if [".git", ".verdone"].iter().any(|ours| first == *ours) => {
            return Some("cannot be configured: Verdone manages it");
        }
        Some(Component::Normal(_)) if parts.all(|part| matches!(part, Component::Normal(_))) => return None,
        Some(Component::Normal(_) | Component::ParentDir | Component::CurDir) => {}
        Some(Component::RootDir | Component::Prefix(_)) => return Some("must be relative to the project"),
    }
    Some("points outside the project")
}

/// Why a text cannot be a path outside of the project.
pub(super) fn not_a_place(text: &str) -> Option<&'static str> {
    let absolute = text.starts_with('/') || text == "~" || text.starts_with("~/");
    if !absolute || text.contains('\0') {
        return Some("must be absolute or start with `~/`");
    }
    let detour = Path::new(text).components().any(|part| part == Component::ParentDir);
    detour.then_some("cannot contain `..`")
}

pub(super) fn is_everything(path: &str) -> bool {
    matches!(path.trim_end_matches('/'), "" | "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_of_one_file;

    #[test]
    fn every_setting_is_read() {
        let text = "[workspace]\ncopy_file_bytes = 1\ncopy_total_bytes = 2\npath = \"own\"\nstate = \"~/big/verdone\"\n\
                    home = \"read-only\"\nwritable = [\"~/.cache/sccache\"]\n\
                    [workspace.folders]\nnode_modules = \"copy\"\n\"web/dist\" = \"none\"\nvendor = \"read-only\"\nbuild = \"cache\"\n";
        let found = config_of_one_file("c.toml", text).unwrap().workspace;
        let folders = [
            ("build", FolderMode::Cache),
            ("node_modules", FolderMode::Copy),
            ("vendor", FolderMode::ReadOnly),
            ("web/dist", FolderMode::None),
        ];
        let expected = WorkspaceSettings {
            folders: folders.map(|(name, mode)| (name.to_owned(), mode)).into(),
            copy_file_bytes: 1,
            copy_total_bytes: 2,
            path: WorkspacePath::Own,
            state: Some("~/big/verdone".to_owned()),
            home: HomeMode::ReadOnly,
            writable: vec!["~/.cache/sccache".to_owned()],
        };
        assert_eq!(found, expected);
        let none = config_of_one_file("c.toml", "").unwrap().workspace;
        assert_eq!((none.copy_file_bytes, none.copy_total_bytes), (1 << 20, 16 << 20));
    }

    #[test]
    fn the_longest_name_says_how_a_folder_is_shown() {
        let text = "[workspace.folders]\nweb = \"none\"\n\"./web/node_modules/\" = \"copy\"\n";
        let settings = config_of_one_file("c.toml", text).unwrap().workspace;
        for (folder, mode) in [
            ("web", FolderMode::None),
            ("web/dist", FolderMode::None),
            ("web/node_modules", FolderMode::Copy),
            ("web/node_modules/x", FolderMode::Copy),
            ("website", FolderMode::Overlay),
            ("web/target", FolderMode::None),
            ("target", FolderMode::Cache),
            ("crates/a/target", FolderMode::Cache),
            ("a/__pycache__", FolderMode::Cache),
            ("target/debug", FolderMode::Overlay),
            ("dist", FolderMode::Overlay),
        ] {
            assert_eq!(settings.mode_of(Path::new(folder)), mode, "{folder}");
        }
    }

    #[test]
    fn settings_that_cannot_work_are_faults_of_their_line() {
        for (keys, said, hint) in [
            ("[workspace.folders]\n\"../x\" = \"copy\"", "c.toml:2:1: `../x` points outside the project", ""),
            ("[workspace.folders]\n\"a/../../x\" = \"copy\"", "c.toml:2:1: `a/../../x` points outside the project", ""),
            ("[workspace.folders]\n\"/x\" = \"copy\"", "c.toml:2:1: `/x` must be relative to the project", ""),
            ("[workspace.folders]\n\".\" = \"copy\"", "c.toml:2:1: `.` is the project itself", ""),
            ("[workspace.folders]\n\".git\" = \"copy\"", "c.toml:2:1: `.git` cannot be configured", ""),
            ("[workspace.folders]\ntarget = \"overlai\"", "c.toml:2:10: `workspace.folders.target` cannot be", "overlay"),
            ("[workspace]\nstate = \"state\"", "c.toml:2:9: the folder for workspaces must be absolute", ""),
            ("[workspace]\nstate = \"/a/../b\"", "c.toml:2:9: the folder for workspaces cannot contain `..`", ""),
            ("[workspace]\nwritable = [\"~/x\", \"dist\"]", "c.toml:2:20: a writable path must be absolute", "always stay"),
            ("[workspace]\nwritable = [\"~/\"]", "c.toml:2:13: `~/` is too broad to be writable", "single folders"),
            ("[workspace]\nwritable = [\"/\"]", "c.toml:2:13: `/` is too broad to be writable", "single folders"),
            ("[workspace]\npaht = \"own\"", "c.toml:2:1: unknown key `paht` in `workspace`", "`path`"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("{keys}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}\n{keys}");
            assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{:?}\n{keys}", problem.hint);
        }
    }
}
