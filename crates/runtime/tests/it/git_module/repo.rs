//! A temporary repository, isolated from the machine's git config.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use verdone_core::base::id::{Oid, RunId};
use verdone_core::journal::event::Checkpoint;
use verdone_runtime::git::{Candidate, CandidateRules, CheckpointRequest, Commit, CommitError, Git, PathSet};

pub(crate) struct Repo {
    home: tempfile::TempDir,
    top: PathBuf,
    pub(crate) git: Git,
    pub(crate) run: RunId,
}

/// Path to mode and content, or to a link's target.
pub(crate) type WorkTree = BTreeMap<OsString, (u32, Vec<u8>)>;

impl Repo {
    /// One commit with `a.txt`, `dir/b.txt`, `run.sh` (executable), `link` and `.gitignore` (`*.log`, `target/`).
    pub(crate) fn new() -> Self {
        let repo = Self::unborn(&[]);
        repo.write("a.txt", "one\n");
        repo.write("dir/b.txt", "two\n");
        repo.write("run.sh", "#!/bin/sh\n");
        repo.chmod("run.sh", 0o755);
        symlink("a.txt", repo.path("link")).unwrap();
        repo.write(".gitignore", "*.log\ntarget/\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "start"]);
        repo
    }

    pub(crate) fn unborn(options: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("work");
        fs::create_dir(&top).unwrap();
        let init = [&["init", "-q", "-b", "main"], options].concat();
        run_git(home.path(), &top, &init);
        Self::at(home, top)
    }

    fn at(home: tempfile::TempDir, top: PathBuf) -> Self {
        let git = Git::open_with(&top, &environment(home.path())).unwrap();
        Self { home, top, git, run: RunId::from("20261115-020338-5f3a") }
    }

    /// The repository with this folder as its top level.
    pub(crate) fn existing(top: tempfile::TempDir) -> Self {
        let path = top.path().to_owned();
        Self::at(top, path)
    }

    /// The same repository in a linked worktree on a new branch.
    pub(crate) fn linked(self) -> Self {
        let top = self.home.path().join("linked");
        self.git(&["worktree", "add", "-q", "-b", "side", top.to_str().unwrap()]);
        Self::at(self.home, top)
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.top.join(name.as_ref())
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        run_git(self.home.path(), &self.top, args)
    }

    /// Like [`Self::git`], for arguments that are not UTF-8, and with the output unchanged.
    pub(crate) fn git_os(&self, args: &[&OsStr]) -> Vec<u8> {
        let output = Command::new("git").current_dir(&self.top).args(args).envs(environment(self.home.path())).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub(crate) fn git_raw(&self, args: &[&str]) -> Vec<u8> {
        self.git_os(&args.iter().map(OsStr::new).collect::<Vec<_>>())
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.git.common_dir().join("hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn head(&self) -> Oid {
        Oid(self.git(&["rev-parse", "HEAD"]))
    }

    pub(crate) fn index(&self) -> Option<Vec<u8>> {
        fs::read(self.git.git_dir().join("index")).ok()
    }

    /// Every file and link outside `.git`, without empty directories.
    pub(crate) fn work_tree(&self) -> WorkTree {
        files_and_folders(&self.top).0
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.checkpoint_by(&self.git, "before US-001", 1_000_000)
    }

    pub(crate) fn checkpoint_by(&self, git: &Git, label: &str, largest_file: u64) -> Checkpoint {
        let skip = PathSet::default();
        git.checkpoint(&CheckpointRequest { chain: &self.run, label, skip: &skip, largest_file }).unwrap()
    }

    pub(crate) fn candidate(&self, since: &Checkpoint) -> Candidate {
        self.git.candidate(since, &CandidateRules::default()).unwrap()
    }

    pub(crate) fn commit(&self, candidate: &Candidate) -> Result<Commit, CommitError> {
        self.git.commit_unless(candidate, "feat(US-001): title\n\nVerdone-Run: x\n", Duration::from_mins(1), &|| false)
    }

    pub(crate) fn files_of(&self, tree: &Oid) -> Vec<String> {
        let out = self.git(&["ls-tree", "-r", "--name-only", tree.as_str()]);
        out.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn odd_names() -> Vec<OsString> {
    let names: [&[u8]; 8] =
        [b"new\nline", b"quo\"te'", b"not-utf8-\xff\xfe", b"-rf", b" lead and trail ", b"tab\there", b"\\back", b"*glob?[x]"];
    names.iter().map(|name| OsString::from_vec(name.to_vec())).collect()
}

/// All files, links and folders below a folder, except `.git`.
pub(crate) fn files_and_folders(top: &Path) -> (WorkTree, BTreeSet<OsString>) {
    let mut found = (WorkTree::new(), BTreeSet::new());
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().as_os_str().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if name == ".git" {
                continue;
            }
            if meta.is_symlink() {
                found.0.insert(name, (0o120_000, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
            } else if meta.is_dir() {
                found.1.insert(name);
                open.push(path);
            } else {
                found.0.insert(name, (meta.permissions().mode() & 0o7777, fs::read(&path).unwrap()));
            }
        }
    }
    found
}

pub(crate) fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let fixed = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.org"),
        ("GIT_CEILING_DIRECTORIES", ""),
    ];
    let mut all: Vec<(OsString, OsString)> = fixed.map(|(name, value)| (name.into(), value.into())).into();
    all.push(("HOME".into(), home.into()));
    all.push(("XDG_CONFIG_HOME".into(), home.join(".config").into()));
    all
}

pub(crate) fn run_git(home: &Path, dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(dir).args(args).envs(environment(home)).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
