//! Locates a project: the git work tree around a folder, and its `.verdone/`.

pub mod approval;
pub mod client_plugin;
pub mod client_settings;
pub mod config_file;
pub(crate) mod home_gitignore;
pub mod init;
pub mod lessons;
pub mod one_story_plan;
pub mod plan_file;
pub mod ralph_state;
pub mod template;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::base::plain_file::read_linked;

/// Enough for a path and a line end.
const LARGEST_LINK: u64 = 64 * 1024;

/// The name of Verdone's folder.
pub const HOME: &str = ".verdone";
/// The folder of a project that uses fresher.
pub const FRESHER: &str = ".fresher";

/// A project and its paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder with `.verdone/`, else with `.fresher/`, else where the command was started. Checks run here.
    pub root: PathBuf,
    /// The top of the git work tree.
    pub git_top: PathBuf,
    /// Where the command was started: relative paths on the command line start here.
    pub start: PathBuf,
    /// `.verdone/config.toml`, which may not exist.
    pub config_path: PathBuf,
    /// The folder that contains `.ralph/`, if there is one between the start and the top.
    pub ralph_root: Option<PathBuf>,
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("{} is not inside a git repository", .dir.display())]
    NotARepository { dir: PathBuf },
    #[error("{} is a bare git repository: there is no work tree", .dir.display())]
    Bare { dir: PathBuf },
    #[error("cannot open the folder {}", .dir.display())]
    Folder { dir: PathBuf, source: std::io::Error },
}

impl Project {
    /// Finds the project around a folder. Searches upward for `.verdone/`, up to the top of the work tree.
    pub fn find(start: &Path, git_top: &Path) -> Result<Self, ProjectError> {
        Ok(Self::find_from(canonical(start)?, canonical(git_top)?))
    }

    /// The project around a folder, even outside a repository.
    pub(crate) fn around(start: &Path) -> Result<Self, ProjectError> {
        let start = canonical(start)?;
        let git_top = git_top_of(&start).unwrap_or_else(|_| start.clone());
        Ok(Self::find_from(start, git_top))
    }

    fn find_from(start: PathBuf, git_top: PathBuf) -> Self {
        let nearest = |name: &str| levels(&start, &git_top).find(|dir| dir.join(name).is_dir()).map(Path::to_path_buf);
        let root = nearest(HOME).or_else(|| nearest(FRESHER)).unwrap_or_else(|| start.clone());
        let ralph_root = nearest(".ralph");
        let config_path = root.join(HOME).join("config.toml");
        Self { root, git_top, start, config_path, ralph_root }
    }

    /// The config file's path as the user would type it: relative to where the command was started, if it is below.
    pub fn config_name(&self) -> String {
        self.name_of(&self.config_path)
    }

    /// A path as the user would type it.
    pub fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.start).unwrap_or(path).display().to_string()
    }

    /// A path from the command line or a variable, as written in the settings: relative to the root if possible.
    pub fn path_from_root(&self, path: &str) -> String {
        if self.start == self.root || Path::new(path).is_absolute() {
            return path.to_owned();
        }
        let joined = self.start.join(path);
        joined.strip_prefix(&self.root).unwrap_or(&joined).display().to_string()
    }
}

/// The top of the git work tree around a folder. Reads the file system without starting a process.
pub fn find_git_top(start: &Path) -> Result<PathBuf, ProjectError> {
    git_top_of(&canonical(start)?)
}

fn git_top_of(start: &Path) -> Result<PathBuf, ProjectError> {
    for dir in start.ancestors() {
        let git = dir.join(".git");
        if git.join("HEAD").is_file() || is_git_file(&git) {
            return Ok(dir.to_path_buf());
        }
        if dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir() {
            return Err(ProjectError::Bare { dir: dir.to_path_buf() });
        }
    }
    Err(ProjectError::NotARepository { dir: start.to_path_buf() })
}

/// In linked worktrees and submodules, `.git` is a file that names the real directory.
fn is_git_file(path: &Path) -> bool {
    read_linked(path, LARGEST_LINK).is_ok_and(|text| text.starts_with(b"gitdir:"))
}

/// The git directories of a work tree, determined from the file system: git's settings, which an agent may have changed, are not consulted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitDirs {
    /// The directory of this work tree.
    pub(crate) own: PathBuf,
    /// The directory shared by all work trees.
    pub(crate) common: PathBuf,
}

impl GitDirs {
    /// `None` if it has no layout that we know.
    pub(crate) fn new(git_top: &Path) -> Option<Self> {
        let git = git_top.join(".git");
        let own = if git.is_dir() {
            fs::canonicalize(git).ok()?
        } else {
            let text = read_linked(&git, LARGEST_LINK).ok()?;
            named_in(git_top, text.strip_prefix(b"gitdir:")?)?
        };
        let common = match read_linked(&own.join("commondir"), LARGEST_LINK) {
            Ok(text) => named_in(&own, &text)?,
            Err(_) => own.clone(),
        };
        Some(Self { own, common })
    }
}

fn named_in(dir: &Path, text: &[u8]) -> Option<PathBuf> {
    fs::canonicalize(dir.join(OsStr::from_bytes(text.trim_ascii()))).ok()
}

fn levels<'p>(start: &'p Path, top: &'p Path) -> impl Iterator<Item = &'p Path> {
    // A start outside the top (callers should not pass one) is checked alone.
    let inside = start.starts_with(top);
    start
        .ancestors()
        .enumerate()
        .take_while(move |(n, dir)| if inside { dir.starts_with(top) } else { *n == 0 })
        .map(|(_, dir)| dir)
}

fn canonical(dir: &Path) -> Result<PathBuf, ProjectError> {
    let refused = |source| ProjectError::Folder { dir: dir.to_path_buf(), source };
    let path = fs::canonicalize(dir).map_err(refused)?;
    fs::read_dir(&path).map_err(refused)?;
    Ok(path)
}

/// Formats a path for people.
pub fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        for dir in dirs {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        (temp, root)
    }

    #[test]
    fn the_root_is_the_nearest_home_but_not_beyond_the_top() {
        let (_temp, root) = tree(&["top/a/b", "top/a/.verdone", ".verdone", "other"]);
        for (start, top, expected) in [
            ("top/a/b", "top", "top/a"),
            ("top/a", "top", "top/a"),
            ("top", "top", "top"),
            ("top/a/b", "top/a/b", "top/a/b"),
            ("other", "top", "other"),
        ] {
            let project = Project::find(&root.join(start), &root.join(top)).unwrap();
            assert_eq!(project.root, root.join(expected), "{start} below {top}");
            assert_eq!(project.config_path, root.join(expected).join(".verdone/config.toml"));
        }
    }

    #[test]
    fn paths_from_a_subfolder_are_spelled_from_the_root() {
        let (_temp, root) = tree(&["a/b", ".verdone"]);
        let project = Project::find(&root.join("a/b"), &root).unwrap();
        assert_eq!(project.path_from_root("plan.md"), "a/b/plan.md");
        assert_eq!(project.path_from_root("/x/plan.md"), "/x/plan.md");
        let project = Project::find(&root, &root).unwrap();
        assert_eq!(project.path_from_root("plan.md"), "plan.md");
        assert_eq!(project.config_name(), ".verdone/config.toml");
    }

    #[test]
    fn the_work_tree_is_found_also_through_a_git_file() {
        let (_temp, root) = tree(&["repo/.git", "repo/sub/deep", "linked", "empty/.git", "bare/objects", "bare/refs"]);
        fs::write(root.join("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("linked/.git"), "gitdir: ../repo/.git/worktrees/linked\n").unwrap();
        fs::write(root.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(find_git_top(&root.join("repo/sub/deep")).unwrap(), root.join("repo"));
        assert_eq!(find_git_top(&root.join("linked")).unwrap(), root.join("linked"));
        assert!(matches!(find_git_top(&root.join("bare")), Err(ProjectError::Bare { .. })));
        assert!(matches!(find_git_top(&root.join("missing")), Err(ProjectError::Folder { .. })));
        let dirs = GitDirs::new(&root.join("repo")).unwrap();
        assert_eq!((dirs.own, dirs.common), (root.join("repo/.git"), root.join("repo/.git")));
        assert_eq!(GitDirs::new(&root.join("linked")), None, "what it names is not there");
        fs::create_dir_all(root.join("repo/.git/worktrees/linked")).unwrap();
        fs::write(root.join("repo/.git/worktrees/linked/commondir"), "../..\n").unwrap();
        let dirs = GitDirs::new(&root.join("linked")).unwrap();
        assert_eq!((dirs.own, dirs.common), (root.join("repo/.git/worktrees/linked"), root.join("repo/.git")));
        // The temporary folder may itself be inside a repository, but an empty `.git` never counts as one.
        assert_ne!(find_git_top(&root.join("empty")).ok(), Some(root.join("empty")));
    }
}
