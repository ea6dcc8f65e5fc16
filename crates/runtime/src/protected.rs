//! The judge's own files: `.verdone/` without its runs, sessions and cache, and what tells git how to see and commit files (its settings, attributes,
//! ignore rules and hooks), and the settings of the agent's client in the project. They are held in memory from the start of a run; what a turn or a check did to them is kept aside,
//! told, and put back before anything is committed.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use verdone_core::id::digest;

use crate::atomic::draft_in;
use crate::fault::{self, Point};
use crate::project::GitDirs;
use crate::regular::read_regular;

/// A larger file is none of ours; config, prompts and scripts are small.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Where a run keeps its copies, and where while they are not complete.
const SAVED: &str = "protected";
const DRAFT: &str = "protected-draft";
/// What tells, beside a copy, of which directory it is.
const PLACE: &str = "place";
/// Longer than any path.
const LARGEST_PLACE: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// A pipe or the like. To open it might wait for ever.
    Special,
}

/// What is held of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// `.verdone/`
    Home,
    /// The git directory that all work trees share, and that of this one.
    GitSettings,
    WorkTreeSettings,
    /// `.fresher/`: its scripts and settings count like ours.
    Fresher,
    /// `.claude/`: its settings and hooks, which could switch guards off, in the user's own sessions too.
    Client,
}

/// One directory as it was when the run began.
#[derive(Debug)]
pub struct Protected {
    dir: PathBuf,
    scope: Scope,
    files: BTreeMap<PathBuf, Held>,
}

impl Protected {
    pub fn snapshot(project_root: &Path) -> io::Result<Self> {
        Self::of(project_root.join(".verdone"), Scope::Home)
    }

    /// Settings, attributes, ignore rules and hooks in a git directory.
    pub fn git_settings(git_dir: &Path) -> io::Result<Self> {
        Self::of(git_dir.to_owned(), Scope::GitSettings)
    }

    /// The same of each git directory that there is.
    pub fn all_git_settings(common_dir: &Path, git_dir: &Path) -> io::Result<Vec<Self>> {
        let mut all = vec![Self::git_settings(common_dir)?];
        if git_dir != common_dir {
            all.push(Self::of(git_dir.to_owned(), Scope::WorkTreeSettings)?);
        }
        Ok(all)
    }

    /// Scripts and settings of a project that was set up for fresher.
    pub fn scripts_of_fresher(project_root: &Path) -> io::Result<Self> {
        Self::of(project_root.join(".fresher"), Scope::Fresher)
    }

    /// Settings of the agent's client in a project. A link of the user's leads to files that are none of the project's.
    pub fn client_settings(project_root: &Path) -> io::Result<Option<Self>> {
        let dir = project_root.join(".claude");
        if fs::symlink_metadata(&dir).is_ok_and(|meta| !meta.is_dir()) {
            return Ok(None);
        }
        Self::of(dir, Scope::Client).map(Some)
    }

    fn of(dir: PathBuf, scope: Scope) -> io::Result<Self> {
        let files = read_all(&dir, scope)?;
        Ok(Self { dir, scope, files })
    }

    /// The text of a file as it was.
    pub fn text(&self, path: &str) -> Option<String> {
        match self.files.get(Path::new(path))? {
            Held::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            Held::Link(_) | Held::Special => None,
        }
    }

    /// Everything but settings and samples, each as a digest under its name as seen from `common_dir`.
    pub(crate) fn rules_and_hooks(&self, common_dir: &Path) -> Vec<(String, String)> {
        let folder = Path::new(self.scope.name()).join(self.dir.strip_prefix(common_dir).unwrap_or(Path::new("")));
        let is_one = |path: &Path| {
            !path.starts_with("config")
                && !path.starts_with("config.worktree")
                && path.extension().is_none_or(|end| end != "sample")
        };
        let files = self.files.iter().filter(|(path, _)| is_one(path));
        files.map(|(path, held)| (folder.join(path).display().to_string(), digest(format!("{held:?}").as_bytes()))).collect()
    }

    /// Copies everything into the run's directory, for the case that this process dies: all of it, or nothing that counts.
    pub fn save<'p>(all: impl IntoIterator<Item = &'p Self>, run_dir: &Path) -> io::Result<()> {
        let draft = run_dir.join(DRAFT);
        for protected in all {
            let dir = draft.join(protected.scope.saved_as());
            fs::create_dir_all(dir.join("files"))?;
            fs::write(dir.join(PLACE), protected.dir.as_os_str().as_encoded_bytes())?;
            protected.files.iter().try_for_each(|(path, held)| write(&dir.join("files").join(path), held))?;
        }
        fs::rename(draft, run_dir.join(SAVED))
    }

    /// Removes copies that were never complete.
    pub(crate) fn sweep(run_dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(run_dir.join(DRAFT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether a run saved its copies and has not ended in order since.
    pub fn is_saved(run_dir: &Path) -> bool {
        is_directory(&run_dir.join(SAVED))
    }

    /// A run that ended needs them no more: its settings are the user's again. Where they cannot be removed, its journal says so too.
    pub fn forget(run_dir: &Path) {
        if fs::rename(run_dir.join(SAVED), run_dir.join(DRAFT)).is_ok() {
            let _ = fs::remove_dir_all(run_dir.join(DRAFT));
        }
    }

    /// What a run saved; nothing where it died before that. An agent can write there: where each belongs is found out anew, and
    /// what was saved of another directory than that is none of this project's.
    pub(crate) fn saved(project_root: &Path, git_top: &Path, dirs: Option<&GitDirs>, run_dir: &Path) -> io::Result<Vec<Self>> {
        let mut places = vec![(Scope::Home, project_root.join(".verdone")), (Scope::Fresher, project_root.join(".fresher"))];
        places.push((Scope::Client, project_root.join(".claude")));
        if let Some(dirs) = dirs {
            places.push((Scope::GitSettings, dirs.common.clone()));
            places.extend((dirs.own != dirs.common).then(|| (Scope::WorkTreeSettings, dirs.own.clone())));
        }
        let mut found = Vec::new();
        for (scope, dir) in places {
            let saved = run_dir.join(SAVED).join(scope.saved_as());
            let is_its = || {
                let place = read_regular(&saved.join(PLACE), LARGEST_PLACE);
                dir.starts_with(git_top) || place.is_ok_and(|place| place == dir.as_os_str().as_encoded_bytes())
            };
            if is_directory(&saved) && is_directory(&saved.join("files")) && is_its() {
                found.push(Self { files: read_all(&saved.join("files"), scope)?, dir, scope });
            }
        }
        Ok(found)
    }

    /// Undoes every change since the snapshot; the changed versions go into `aside`. Answers with what was changed.
    pub fn put_back(&self, aside: &Path) -> io::Result<Vec<String>> {
        let mut changed = Vec::new();
        if self.scope == Scope::Client && fs::symlink_metadata(&self.dir).is_ok_and(|meta| !meta.is_dir()) {
            // What such a link leads to must not be touched.
            fs::create_dir_all(aside)?;
            fs::rename(&self.dir, aside.join("in-its-place"))?;
            changed.push(PathBuf::new());
        }
        let now = read_all(&self.dir, self.scope)?;
        for (path, found) in &now {
            if !self.scope.is_same(path, self.files.get(path), found) {
                keep(aside, path, found)?;
                changed.push(path.clone());
            }
        }
        changed.extend(self.files.keys().filter(|path| !now.contains_key(*path)).cloned());
        for path in changed.iter().filter(|path| now.contains_key(*path)) {
            fault::point(Point::ProtectedRemove)?;
            fs::remove_file(self.dir.join(path))?;
        }
        for path in &changed {
            if let Some(held) = self.files.get(path) {
                make_room(&self.dir.join(path), &aside.join(path))?;
                write(&self.dir.join(path), held)?;
            }
        }
        let name = self.scope.name();
        let below = |path: &PathBuf| Path::new(name).join(path).display().to_string();
        let shown = |path: &PathBuf| if path.as_os_str().is_empty() { name.to_owned() } else { below(path) };
        Ok(changed.iter().map(shown).collect())
    }
}

impl Scope {
    fn saved_as(self) -> &'static str {
        match self {
            Self::Home => "verdone",
            Self::GitSettings => "git",
            Self::WorkTreeSettings => "git-of-the-work-tree",
            Self::Fresher => "fresher",
            Self::Client => "claude",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Home => ".verdone",
            Self::GitSettings | Self::WorkTreeSettings => ".git",
            Self::Fresher => ".fresher",
            Self::Client => ".claude",
        }
    }

    fn holds(self, path: &Path) -> bool {
        let below = |dir: &str| path.strip_prefix(dir).ok();
        match self {
            Self::Home => !["runs", "sessions", "cache"].iter().any(|name| path == Path::new(name)),
            Self::Fresher => below("hooks").is_some() || ["config.toml", "config.sh"].iter().any(|name| path == Path::new(name)),
            Self::Client => {
                let name = path.to_string_lossy();
                below("hooks").is_some() || (name.starts_with("settings") && name.ends_with(".json") && !name.contains('/'))
            }
            Self::GitSettings | Self::WorkTreeSettings => {
                let info = ["", "attributes", "exclude", "grafts", "sparse-checkout"];
                ["config", "config.worktree"].iter().any(|name| path == Path::new(name))
                    || below("hooks").is_some()
                    || below("info").is_some_and(|rest| info.iter().any(|name| rest == Path::new(name)))
            }
        }
    }

    /// Branches and remotes come and go with the user's own commands, and change nothing about what is committed.
    fn is_same(self, path: &Path, held: Option<&Held>, found: &Held) -> bool {
        match (self, held, found) {
            (Self::GitSettings | Self::WorkTreeSettings, Some(Held::File { bytes: old, .. }), Held::File { bytes: new, .. })
                if path == Path::new("config") =>
            {
                settings_that_count(old) == settings_that_count(new)
            }
            (Self::Home | Self::GitSettings | Self::WorkTreeSettings | Self::Fresher | Self::Client, held, found) => {
                held == Some(found)
            }
        }
    }
}

/// The lines of a git config without its plain `branch` and `remote` sections. Whatever looks unusual stays in.
fn settings_that_count(config: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(config);
    let mut in_passing = false;
    let counts = |line: &&str| {
        let header = line.trim();
        if header.starts_with('[') {
            let name = header.trim_start_matches('[').split(['"', ' ', ']', '.']).next().unwrap_or_default();
            in_passing = ["branch", "remote"].contains(&name) && header.ends_with(']') && header.matches('[').count() == 1;
            return !in_passing;
        }
        !in_passing || line.contains('[') || line.ends_with('\\')
    };
    text.lines().filter(counts).map(str::to_owned).collect()
}

/// Keeps a file of a turn under its own name.
fn keep(aside: &Path, path: &Path, found: &Held) -> io::Result<()> {
    fault::point(Point::ProtectedKeep)?;
    let target = aside.join(path);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    match found {
        Held::File { bytes, .. } => fs::write(target, bytes),
        Held::Link(to) => fs::write(target, to.as_os_str().as_encoded_bytes()),
        Held::Special => Ok(()),
    }
}

/// A directory in a file's place, with files that are none of ours.
fn make_room(target: &Path, aside: &Path) -> io::Result<()> {
    if !is_directory(target) || fs::remove_dir(target).is_ok() {
        return Ok(());
    }
    if let Some(parent) = aside.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(target, aside)
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn write(target: &Path, held: &Held) -> io::Result<()> {
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fault::point(Point::ProtectedWrite)?;
    fs::create_dir_all(parent)?;
    // A directory put in a file's place is empty by now: its files were none of ours.
    if fs::symlink_metadata(target).is_ok_and(|meta| meta.is_dir()) {
        fs::remove_dir(target)?;
    }
    let (bytes, mode) = match held {
        Held::File { bytes, mode } => (bytes, *mode),
        Held::Link(to) => return std::os::unix::fs::symlink(to, target),
        Held::Special => return Ok(()),
    };
    let mut file = draft_in(parent)?;
    io::Write::write_all(&mut file, bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    fault::point(Point::ProtectedRename)?;
    file.persist(target)?;
    Ok(())
}

/// Every file below that is held. Links are read as what they are, never followed.
fn read_all(dir: &Path, scope: Scope) -> io::Result<BTreeMap<PathBuf, Held>> {
    let mut files = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let entries = match fs::read_dir(dir.join(&below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() && error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if !scope.holds(&path) {
                continue;
            }
            let meta = fs::symlink_metadata(entry.path())?;
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_symlink() {
                files.insert(path, Held::Link(fs::read_link(entry.path())?));
            } else if !meta.is_file() {
                files.insert(path, Held::Special);
            } else if meta.len() <= LARGEST {
                files.insert(path, Held::File { bytes: read_regular(&entry.path(), LARGEST)?, mode: meta.permissions().mode() });
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_deleted_and_added_files_are_put_back_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(".verdone");
        fs::create_dir_all(home.join("hooks")).unwrap();
        fs::create_dir_all(home.join("runs/r1")).unwrap();
        fs::write(home.join("config.toml"), "a").unwrap();
        fs::write(home.join("hooks/started"), "b").unwrap();
        let protected = Protected::snapshot(dir.path()).unwrap();

        fs::write(home.join("config.toml"), "weakened").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.join("link")).unwrap();
        fs::remove_file(home.join("hooks/started")).unwrap();
        fs::write(home.join("new"), "n").unwrap();
        fs::write(home.join("runs/r1/journal.jsonl"), "ours").unwrap();
        fs::create_dir(home.join("sessions")).unwrap();
        fs::write(home.join("sessions/faults.jsonl"), "a hook's").unwrap();
        let aside = dir.path().join("aside");
        let mut changed = protected.put_back(&aside).unwrap();
        changed.sort();

        assert_eq!(changed, [".verdone/config.toml", ".verdone/hooks/started", ".verdone/link", ".verdone/new"]);
        assert_eq!(fs::read_to_string(home.join("config.toml")).unwrap(), "a");
        assert_eq!(fs::read_to_string(home.join("hooks/started")).unwrap(), "b");
        assert!(!home.join("new").exists());
        assert!(fs::symlink_metadata(home.join("link")).is_err());
        assert_eq!(fs::read_to_string(aside.join("config.toml")).unwrap(), "weakened");
        assert!(home.join("runs/r1/journal.jsonl").exists());
        assert!(home.join("sessions/faults.jsonl").exists());
        assert_eq!(protected.put_back(&aside).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn gits_settings_and_hooks_are_put_back_but_branches_and_remotes_are_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        fs::create_dir_all(dir.path().join("hooks")).unwrap();
        fs::create_dir_all(dir.path().join("info")).unwrap();
        fs::write(&config, "[core]\n\tbare = false\n").unwrap();
        let protected = Protected::git_settings(dir.path()).unwrap();
        let aside = dir.path().join("aside");

        for harmless in ["[branch \"x\"]\n\tmerge = refs/heads/x\n", "[remote \"o\"]\n\turl = y\n"] {
            fs::write(&config, format!("[core]\n\tbare = false\n{harmless}")).unwrap();
            assert_eq!(protected.put_back(&aside).unwrap(), Vec::<String>::new(), "{harmless}");
        }
        for weakened in [
            "[core]\n\tbare = false\n\thooksPath = /dev/null\n",
            "[core]\n\tbare = false\n[branch \"x\"] [core] hooksPath = /dev/null\n",
            "[core]\n\tbare = false\n[branch \"x\"]\n\tmerge = y [core]\n",
            "[core]\n\tbare = false\n[filter \"f\"]\n\tclean = true\n",
            "[core]\n\tbare = false\n[include]\n\tpath = z\n",
        ] {
            fs::write(&config, weakened).unwrap();
            assert_eq!(protected.put_back(&aside).unwrap(), [".git/config"], "{weakened}");
        }
        fs::write(dir.path().join("hooks/pre-commit"), "exit 0").unwrap();
        fs::write(dir.path().join("info/attributes"), "* filter=f").unwrap();
        fs::write(dir.path().join("index"), "not ours").unwrap();
        let mut changed = protected.put_back(&aside).unwrap();
        changed.sort();
        assert_eq!(changed, [".git/hooks/pre-commit", ".git/info/attributes"]);
        assert!(dir.path().join("index").exists() && !dir.path().join("hooks/pre-commit").exists());
    }

    #[test]
    fn a_pipe_is_never_opened_and_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".verdone")).unwrap();
        let protected = Protected::snapshot(dir.path()).unwrap();
        let pipe = dir.path().join(".verdone/guardrails.md");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(protected.put_back(&dir.path().join("aside")).unwrap(), [".verdone/guardrails.md"]);
        assert!(fs::symlink_metadata(&pipe).is_err());
    }

    #[test]
    fn settings_of_the_client_are_put_back_and_its_other_files_are_the_agents() {
        let dir = tempfile::tempdir().unwrap();
        let client = dir.path().join(".claude");
        fs::create_dir_all(&client).unwrap();
        fs::write(client.join("settings.json"), "{}").unwrap();
        let protected = Protected::client_settings(dir.path()).unwrap().unwrap();
        fs::write(client.join("settings.json"), "{\"disableAllHooks\":true}").unwrap();
        fs::write(client.join("settings.local.json"), "{\"disableAllHooks\":true}").unwrap();
        fs::create_dir_all(client.join("agents")).unwrap();
        fs::write(client.join("agents/reviewer.md"), "Review.").unwrap();
        let changed = protected.put_back(&dir.path().join("aside")).unwrap();
        assert_eq!(changed, [".claude/settings.json", ".claude/settings.local.json"]);
        assert_eq!(fs::read(client.join("settings.json")).unwrap(), b"{}");
        assert!(!client.join("settings.local.json").exists() && client.join("agents/reviewer.md").exists());
        assert!(dir.path().join("aside/settings.local.json").exists());
    }

    #[test]
    fn what_a_link_in_place_of_the_clients_folder_leads_to_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let (root, users) = (dir.path().join("project"), dir.path().join("users"));
        fs::create_dir_all(root.join(".claude")).unwrap();
        fs::create_dir_all(&users).unwrap();
        fs::write(root.join(".claude/settings.json"), "ours").unwrap();
        fs::write(users.join("settings.json"), "theirs").unwrap();
        let protected = Protected::client_settings(&root).unwrap().unwrap();
        fs::remove_dir_all(root.join(".claude")).unwrap();
        std::os::unix::fs::symlink(&users, root.join(".claude")).unwrap();
        assert_eq!(protected.put_back(&dir.path().join("aside")).unwrap(), [".claude", ".claude/settings.json"]);
        assert_eq!(fs::read(users.join("settings.json")).unwrap(), b"theirs");
        assert_eq!(fs::read(root.join(".claude/settings.json")).unwrap(), b"ours");

        // A link of the user's own is left as it is.
        std::os::unix::fs::symlink(&users, users.join(".claude")).unwrap();
        assert!(Protected::client_settings(&users).unwrap().is_none());
    }
}
