//! A workspace as the loop creates it: files, index and private repository in another folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::base::id::Oid;
use verdone_runtime::git::{
    Alternates, AttemptTree, Filters, Git, GitError, PathSet, PrivateRepository, ReadBack, file_clock_after, latest_file_time,
};

use crate::git_module::repo::{Repo, environment, run_git};

pub(crate) const BRANCH: &str = "verdone/run-1";

/// `tree` is the project as an agent sees it, with a private repository; `own` is Verdone's git folder.
pub(crate) struct Workspace {
    dir: tempfile::TempDir,
    home: PathBuf,
    excluded: PathSet,
    pub(crate) largest_file: u64,
    opened: std::time::SystemTime,
}

impl Workspace {
    pub(crate) fn new(repo: &Repo) -> Self {
        let tree = Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
        Self::at(&repo.git, repo.home(), Some(&repo.head()), &tree)
    }

    pub(crate) fn at(git: &Git, home: &Path, head: Option<&Oid>, tree: &Oid) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let excluded = [".verdone/runs"].into_iter().collect();
        let mut new = Self { dir, home: home.to_owned(), excluded, largest_file: 1_000_000, opened: latest_file_time() };
        fs::create_dir(new.tree()).unwrap();
        fs::create_dir(new.objects()).unwrap();
        git.lay_out_files(tree, &new.tree(), &new.index(), &Filters::None).unwrap();
        git.copy_times(&new.tree(), &new.index()).unwrap();
        for at in [new.tree().join(".git"), new.own()] {
            let index = new.index();
            let private = PrivateRepository { at: &at, branch: BRANCH, head, objects: Alternates::Direct, index: Some(&index) };
            git.make_private_repository(&private).unwrap();
        }
        new.opened = file_clock_after(latest_file_time());
        new
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn own(&self) -> PathBuf {
        self.dir.path().join("own")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.path().join("objects")
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.tree().join(name.as_ref())
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git as the agent would.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        run_git(&self.home, &self.tree(), args)
    }

    pub(crate) fn try_read(&self, git: &Git) -> Result<AttemptTree, GitError> {
        let (folder, git_dir, index, objects) = (self.tree(), self.own(), self.index(), self.objects());
        let known = git.object_folders().unwrap();
        git.read_tree_of(&ReadBack {
            folder: &folder,
            seen_at: &folder,
            git_dir: &git_dir,
            index: &index,
            scratch: &self.home,
            objects: &objects,
            known_objects: &known,
            filters: &Filters::None,
            excluded: &self.excluded,
            ignored: &PathSet::default(),
            largest_file: self.largest_file,
            opened: self.opened,
        })
    }

    pub(crate) fn read(&self, git: &Git) -> AttemptTree {
        self.try_read(git).unwrap()
    }

    /// The tree without obstacles, as an object of the real repository.
    pub(crate) fn imported(&self, repo: &Repo) -> Oid {
        let read = self.read(&repo.git);
        assert_eq!(read.obstacles, []);
        read.tree
    }
}

/// The tree that `git add -A` and `git write-tree` create from a folder.
pub(crate) fn tree_by_git(repo: &Repo, folder: &Path) -> Oid {
    let index = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(folder).args(args).envs(environment(repo.home()));
        command.env("GIT_DIR", repo.git.git_dir()).env("GIT_WORK_TREE", folder).env("GIT_INDEX_FILE", index.path().join("i"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "-A"]);
    Oid(git(&["write-tree"]))
}
