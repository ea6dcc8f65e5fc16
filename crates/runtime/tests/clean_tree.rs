//! Clean trees of real repositories. One at a time, because setup commands end every descendant that is left.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use verdone_core::check::{CheckOutcome, CommandSpec};
use verdone_core::id::Oid;
use verdone_runtime::clean_tree::{CleanError, CleanSettings, CleanTree, remove_leftovers};
use verdone_runtime::git::Git;
use verdone_runtime::signal::Signals;

struct World {
    home: tempfile::TempDir,
    top: PathBuf,
    git: Git,
    _one: MutexGuard<'static, ()>,
}

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let text = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    vec![
        ("HOME".into(), home.into()),
        ("XDG_CACHE_HOME".into(), home.join("cache").into()),
        ("XDG_CONFIG_HOME".into(), home.join("config").into()),
        text("GIT_CONFIG_NOSYSTEM", "1"),
        text("GIT_AUTHOR_NAME", "Ada"),
        text("GIT_AUTHOR_EMAIL", "ada@example.com"),
        text("GIT_COMMITTER_NAME", "Ada"),
        text("GIT_COMMITTER_EMAIL", "ada@example.com"),
    ]
}

impl World {
    fn new(options: &[&str]) -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("work");
        fs::create_dir(&top).unwrap();
        run_git(home.path(), &top, &[&["init", "-q", "-b", "main"], options].concat());
        let git = Git::open_with(&top, &environment(home.path())).unwrap();
        let world = Self { home, top, git, _one: one };
        world.write(".gitignore", "made/\nnode_modules/\n*.log\n");
        world.write("a.txt", "one\n");
        world.write("dir/b.txt", "two\n");
        world.write("Cargo.lock", "v1\n");
        world
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        run_git(self.home.path(), &self.top, args)
    }

    fn commit(&self) -> Oid {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "x"]);
        self.tree()
    }

    fn tree(&self) -> Oid {
        Oid(self.git(&["rev-parse", "HEAD^{tree}"]))
    }

    fn make(&self, tree: &Oid, settings: &CleanSettings) -> Result<CleanTree, CleanError> {
        CleanTree::make(&self.git, tree, &self.top, settings, &Signals::none())
    }

    /// What is in the folder of clean trees.
    fn entries(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.home.path().join("cache/verdone/clean")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn inside(&self, tree: &CleanTree, args: &[&str]) -> String {
        run_git(self.home.path(), tree.root(), args)
    }
}

fn run_git(home: &Path, dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(dir).args(args).envs(environment(home)).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn setup(commands: &[&str]) -> CleanSettings {
    let setup = commands.iter().map(|command| CommandSpec::Shell((*command).to_owned())).collect();
    CleanSettings { setup, ..CleanSettings::default() }
}

fn read(tree: &CleanTree, name: &str) -> Option<String> {
    fs::read_to_string(tree.root().join(name)).ok()
}

#[test]
fn a_clean_tree_has_the_files_of_its_tree_and_no_other_and_git_works_in_it() {
    for options in [&[][..], &["--object-format=sha256", "--ref-format=reftable"]] {
        let world = World::new(options);
        let first = world.commit();
        world.git(&["tag", "-m", "v1", "v1"]);
        world.write("a.txt", "changed\n");
        world.write("made/x", "ignored");
        world.write("loose.txt", "untracked");
        let branches = world.git(&["for-each-ref"]);
        let tree = world.make(&first, &CleanSettings::default()).unwrap();
        assert_eq!(read(&tree, "a.txt").unwrap(), "one\n");
        assert!(!tree.root().starts_with(&world.top));
        let mut names: Vec<String> =
            fs::read_dir(tree.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [".git", ".gitignore", "Cargo.lock", "a.txt", "dir"]);
        assert_eq!(world.inside(&tree, &["describe"]), "v1");
        assert_eq!(world.inside(&tree, &["status", "--porcelain"]), "");
        assert_eq!(world.inside(&tree, &["ls-files"]), ".gitignore\nCargo.lock\na.txt\ndir/b.txt");
        assert_eq!(world.inside(&tree, &["rev-parse", "--show-toplevel"]), tree.top().to_str().unwrap());
        assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1, "git lists no other work tree");
        drop(tree);
        assert_eq!(world.entries(), Vec::<String>::new());
        assert_eq!(world.git(&["for-each-ref"]), branches);
        assert_eq!(world.git(&["status", "--porcelain"]), " M a.txt\n?? loose.txt", "the checkout is as it was");
    }
}

#[test]
fn a_repository_without_a_commit_and_a_project_below_the_top_work_too() {
    let world = World::new(&[]);
    world.git(&["add", "-A"]);
    let tree = Oid(world.git(&["write-tree"]));
    let root = world.top.join("dir");
    let clean = CleanTree::make(&world.git, &tree, &root, &CleanSettings::default(), &Signals::none()).unwrap();
    assert_eq!(clean.root(), clean.top().join("dir"));
    assert_eq!(read(&clean, "b.txt").unwrap(), "two\n");
    assert_eq!(world.inside(&clean, &["ls-files"]), "b.txt");
}

#[test]
fn a_sparse_checkout_and_filters_are_respected_and_submodules_are_named() {
    let world = World::new(&[]);
    world.write(".gitattributes", "*.up filter=up\n");
    world.write("shout.up", "QUIET\n");
    world.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    world.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    let commit = Oid({
        world.commit();
        world.git(&["rev-parse", "HEAD"])
    });
    world.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    world.git(&["commit", "-qm", "sub"]);
    world.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/dir/"]);
    let tree = world.make(&world.tree(), &CleanSettings::default()).unwrap();
    assert_eq!(read(&tree, "shout.up").unwrap(), "QUIET\n");
    assert_eq!(read(&tree, "dir/b.txt"), None);
    assert_eq!(tree.submodules(), ["sub"]);
    assert_eq!(world.inside(&tree, &["status", "--porcelain"]), "");
}

#[test]
fn setup_runs_once_for_each_state_of_the_lock_files() {
    let world = World::new(&[]);
    let count = world.home.path().join("count");
    let command = format!("echo x >> {}; mkdir -p made; cat Cargo.lock > made/out; echo odd > a.txt", count.display());
    let runs = || fs::read_to_string(&count).unwrap_or_default().lines().count();
    let settings = setup(&[&command]);
    let first = world.commit();
    let tree = world.make(&first, &settings).unwrap();
    assert_eq!((read(&tree, "made/out"), read(&tree, "a.txt")), (Some("v1\n".to_owned()), Some("one\n".to_owned())));
    let place = tree.root().to_owned();
    fs::write(tree.root().join("left-by-a-check"), "").unwrap();
    fs::write(tree.root().join("made/new"), "").unwrap();
    fs::write(tree.root().join("dir/b.txt"), "changed by a check").unwrap();
    drop(tree);
    world.write("a.txt", "other\n");
    fs::remove_file(world.top.join("dir/b.txt")).unwrap();
    let second = world.commit();
    let tree = world.make(&second, &settings).unwrap();
    assert_eq!(tree.root(), place, "what setup made may know its own path");
    assert_eq!((runs(), read(&tree, "a.txt"), read(&tree, "made/out")), (1, Some("other\n".to_owned()), Some("v1\n".to_owned())));
    for gone in ["left-by-a-check", "made/new", "dir/b.txt", "dir"] {
        assert!(!tree.root().join(gone).exists(), "{gone}");
    }
    let beside = world.make(&second, &settings).unwrap();
    assert_ne!(beside.root(), tree.root(), "two at the same time do not share a folder");
    assert_eq!(runs(), 2);
    drop((tree, beside));
    world.write("Cargo.lock", "v2\n");
    let third = world.commit();
    assert_eq!(read(&world.make(&third, &settings).unwrap(), "made/out").unwrap(), "v2\n");
    assert_eq!(runs(), 3);
}

#[test]
fn what_a_check_did_to_the_work_of_setup_makes_setup_run_again() {
    let world = World::new(&[]);
    let settings = setup(&["mkdir -p made; echo true > made/tool"]);
    let tree = world.commit();
    let clean = world.make(&tree, &settings).unwrap();
    fs::write(clean.root().join("made/tool"), "lies").unwrap();
    drop(clean);
    assert_eq!(read(&world.make(&tree, &settings).unwrap(), "made/tool").unwrap(), "true\n");
}

#[test]
fn shared_paths_are_links_into_the_checkout_and_never_hide_a_tracked_one() {
    let world = World::new(&[]);
    world.write("node_modules/lib.js", "lib");
    let tree = world.commit();
    let share =
        |paths: &[&str]| CleanSettings { share: paths.iter().map(|p| (*p).to_owned()).collect(), ..CleanSettings::default() };
    let clean = world.make(&tree, &share(&["./node_modules", "not-there"])).unwrap();
    assert_eq!(read(&clean, "node_modules/lib.js").unwrap(), "lib");
    assert!(!clean.root().join("not-there").exists());
    drop(clean);
    assert_eq!(fs::read_to_string(world.top.join("node_modules/lib.js")).unwrap(), "lib", "removing a link removes no file");
    for (path, said) in [("dir", "is part of the tree"), ("../x", "leads out"), ("/tmp", "is not relative")] {
        let error = world.make(&tree, &share(&[path])).unwrap_err();
        assert!(error.to_string().contains(said), "{path}: {error}");
        assert!(matches!(error.outcome(), CheckOutcome::Unknown { .. }));
    }
    assert_eq!(world.entries(), Vec::<String>::new());
}

#[test]
fn a_setup_that_fails_makes_nothing_known_and_is_tried_again() {
    let world = World::new(&[]);
    let tree = world.commit();
    let marker = world.home.path().join("ready");
    let settings = setup(&[&format!("echo no network >&2; test -e {}", marker.display())]);
    let error = world.make(&tree, &settings).unwrap_err();
    assert!(error.to_string().contains("failed with exit code 1\nno network"), "{error}");
    assert!(matches!(error.outcome(), CheckOutcome::Unknown { .. }) && error.hint().is_some());
    fs::write(marker, "").unwrap();
    world.make(&tree, &settings).unwrap();
}

#[test]
fn what_a_dead_process_left_is_removed_and_what_is_in_use_is_not() {
    let world = World::new(&[]);
    let tree = world.commit();
    let held = world.make(&tree, &CleanSettings::default()).unwrap();
    let dead = world.home.path().join("cache/verdone/clean/1-2-3");
    fs::create_dir_all(dead.join("tree/locked")).unwrap();
    fs::write(dead.join("tree/locked/x"), "").unwrap();
    symlink(&world.top, dead.join("tree/link")).unwrap();
    fs::write(dead.with_extension("lock"), "").unwrap();
    remove_leftovers(&world.git);
    assert!(!dead.exists() && !dead.with_extension("lock").exists());
    assert!(held.root().join("a.txt").exists() && world.top.join("a.txt").exists());
    drop(held);
    assert_eq!(world.entries(), Vec::<String>::new());
}

#[test]
fn a_checkout_around_the_cache_gets_its_clean_trees_elsewhere_or_none() {
    let world = World::new(&[]);
    let tree = world.commit();
    let mut inside = environment(world.home.path());
    inside.push(("XDG_CACHE_HOME".into(), world.top.join("cache").into()));
    inside.push(("TMPDIR".into(), world.home.path().join("tmp").into()));
    let git = Git::open_with(&world.top, &inside).unwrap();
    let clean = CleanTree::make(&git, &tree, &world.top, &CleanSettings::default(), &Signals::none()).unwrap();
    assert!(clean.root().starts_with(fs::canonicalize(world.home.path().join("tmp")).unwrap()), "{}", clean.root().display());
    inside.push(("TMPDIR".into(), world.top.join("tmp").into()));
    let git = Git::open_with(&world.top, &inside).unwrap();
    let refused = CleanTree::make(&git, &tree, &world.top, &CleanSettings::default(), &Signals::none()).unwrap_err();
    assert!(matches!(refused, CleanError::NoPlace { .. }), "{refused}");
    let linked = world.home.path().join("linked");
    symlink(&world.top, &linked).unwrap();
    inside.push(("XDG_CACHE_HOME".into(), linked.join("cache").into()));
    let git = Git::open_with(&world.top, &inside).unwrap();
    assert!(CleanTree::make(&git, &tree, &world.top, &CleanSettings::default(), &Signals::none()).is_err(), "through a link");
}
