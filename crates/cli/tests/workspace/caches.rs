//! Build output of checks: kept for work based on a commit, never trusted for another tree. With real make and real cargo.

use std::fs::{self, FileTimes};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use verdone_core::base::id::Oid;
use verdone_core::config::{Config, FolderMode};
use verdone_runtime::git::{Git, RepoPath};
use verdone_runtime::process::Exit;
use verdone_runtime::workspace::{CheckNeeds, CheckPlace, KeptCache, Start, Workspaces};

use crate::repository::{commit_all, open_with, run_git, said, write};
use crate::world::{World, alone, as_everybody};

const COLD: CheckNeeds<'_> = CheckNeeds { start: Start::Cold, hidden: None };
const WARM: CheckNeeds<'_> = CheckNeeds { start: Start::Warm, hidden: None };

/// A project, and the workspaces for checks on its trees.
struct Project<'w> {
    world: &'w World,
    git: Git,
    spaces: Workspaces,
    base: Oid,
}

impl<'w> Project<'w> {
    fn new(world: &'w World, files: &[(&str, &str)], config: Config) -> Self {
        Self::built(world, files, config, |_| {})
    }

    /// `build` is what the user built in the checkout before the run.
    fn built(world: &'w World, files: &[(&str, &str)], config: Config, build: impl FnOnce(&Path)) -> Self {
        let top = world.path("project");
        fs::remove_file(top.join("file")).unwrap();
        run_git(&top, &["init", "-q", "-b", "main"]);
        for (name, text) in files {
            write(&top.join(name), text);
        }
        let base = commit_all(&top, "base");
        build(&top);
        let git = Git::open(&top).unwrap();
        let spaces = open_with(world, &git, "run", config);
        Self { world, git, spaces, base }
    }

    /// The tree of a commit with some files changed.
    fn with(&self, commit: &Oid, changes: &[(&str, &str)]) -> Oid {
        let changes: Vec<_> = changes
            .iter()
            .map(|(path, text)| (RepoPath::new(path.as_bytes()), Some(("100644", text.as_bytes().to_vec()))))
            .collect();
        self.git.replace_in_tree(&self.git.tree_of(commit).unwrap(), &changes).unwrap()
    }

    fn commit(&self, tree: &Oid, parent: &Oid) -> Oid {
        let top = self.world.path("project");
        let identity = ["-c", "user.name=dev", "-c", "user.email=d@e"];
        let make = ["commit-tree", tree.as_str(), "-p", parent.as_str(), "-m", "story"];
        Oid(run_git(&top, &[&identity[..], &make].concat()))
    }

    fn place(&mut self, tree: &Oid, head: &Oid, needs: CheckNeeds<'_>) -> CheckPlace {
        self.spaces.checks_on(&self.git, tree, head, needs).unwrap()
    }

    /// The output of a check on a tree, and whether it passes.
    fn check(&mut self, tree: &Oid, head: &Oid, needs: CheckNeeds<'_>, script: &str) -> (String, bool) {
        let place = self.place(tree, head, needs);
        run(&place, script)
    }

    /// The same for a story that is committed: its build output is kept for the next ones.
    #[track_caller]
    fn story(&mut self, tree: &Oid, head: &Oid, script: &str) -> (String, Oid) {
        let place = self.place(tree, head, WARM);
        let (text, passed) = run(&place, script);
        assert!(passed, "{text}");
        let kept = place.keep(&self.git);
        let commit = self.commit(tree, head);
        self.adopt(kept, &commit);
        (text, commit)
    }

    fn adopt(&mut self, kept: Option<KeptCache>, commit: &Oid) {
        self.spaces.adopt_cache(kept.expect("something was built"), commit);
    }
}

fn run(place: &CheckPlace, script: &str) -> (String, bool) {
    let (text, exit) = said(place.inside.clone(), &place.cwd, place.env.clone(), script);
    (text, exit == Exit::Code(0))
}

/// Copies each source into the build folder, and says so; the check compares one with what a test expects.
const MAKEFILE: &str = "check: build/stays build/value build/test\n\t@cmp build/value build/test\n\
                        build/%: src/%\n\t@mkdir -p build && cp $< $@ && echo built $*\n";
const MAKE: [(&str, &str); 5] =
    [("Makefile", MAKEFILE), ("src/stays", "same"), ("src/value", "1"), ("src/test", "1"), (".gitignore", "build/\n")];

fn build_is_cache() -> Config {
    let mut config = Config::default();
    config.workspace.folders.insert("build".to_owned(), FolderMode::Cache);
    config
}

/// Runs the test with and without a build folder in the checkout.
fn with_make(test: impl Fn(&mut Project<'_>)) {
    let _alone = alone();
    test(&mut Project::new(&World::new(), &MAKE, build_is_cache()));
    let world = World::new();
    let build = |top: &Path| assert!(Command::new("make").current_dir(top).output().unwrap().status.success());
    test(&mut Project::built(&world, &MAKE, build_is_cache(), build));
}

#[test]
fn what_a_story_built_is_not_built_again_for_the_next_one() {
    with_make(|project| {
        let base = project.base.clone();
        let one = project.with(&base, &[("src/value", "2"), ("src/test", "2")]);
        let (text, first) = project.story(&one, &base, "make check");
        assert!(text.contains("built value"), "{text}");
        assert_eq!(project.check(&one, &first, WARM, "make check"), (String::new(), true), "nothing is left to build");
        let two = project.with(&first, &[("src/value", "3"), ("src/test", "3")]);
        let (text, second) = project.story(&two, &first, "make check");
        assert_eq!(text, "built value\nbuilt test\n");
        // A story that builds nothing keeps the existing build output.
        let three = project.with(&second, &[("README", "new")]);
        let (text, third) = project.story(&three, &second, "make check");
        assert_eq!(text, "");
        assert_eq!(project.check(&three, &third, WARM, "make check && cat build/value"), ("3\n".to_owned(), true));
        // A commit that it was not built for does not get it.
        let (text, passed) = project.check(&one, &base, WARM, "make check");
        assert!(passed && text.contains("built value"), "{text}");
    });
}

#[test]
fn a_test_that_is_restored_is_built_again() {
    with_make(|project| {
        let base = project.base.clone();
        let one = project.with(&base, &[("src/value", "2"), ("src/test", "2")]);
        let (_, first) = project.story(&one, &base, "make check");
        // The test from before the first story, as in the user's checkout, where it has an old modification time.
        let restored = project.with(&first, &[("src/test", "1")]);
        for other in [false, true] {
            // While another workspace uses the files, new ones are written.
            let shown = other.then(|| project.place(&one, &first, WARM));
            let (text, passed) = project.check(&restored, &first, WARM, "make check");
            assert!(!passed && text.contains("built test"), "{text}");
            drop(shown);
            assert_eq!(project.check(&one, &first, WARM, "make check"), (String::new(), true));
        }
    });
}

#[test]
fn the_pristine_tree_starts_from_the_cache_of_the_base_and_not_of_the_attempt() {
    with_make(|project| {
        let base = project.base.clone();
        let one = project.with(&base, &[("src/stays", "changed")]);
        let (_, base) = project.story(&one, &base, "make check");
        let attempt = project.with(&base, &[("src/value", "2"), ("src/test", "2")]);
        let pristine = project.with(&base, &[("src/value", "2")]);
        let proof = project.with(&base, &[("src/test", "2")]);
        let place = project.place(&attempt, &base, WARM);
        assert_eq!(run(&place, "make check"), ("built value\nbuilt test\n".to_owned(), true));
        let kept = place.keep(&project.git);
        for (tree, built) in [(&pristine, "built value"), (&proof, "built test")] {
            let (text, passed) = project.check(tree, &base, WARM, "make check");
            assert!(!passed && text.lines().any(|line| line == built) && text.matches("built ").count() == 1, "{text}");
        }
        let commit = project.commit(&attempt, &base);
        project.adopt(kept, &commit);
        assert_eq!(project.check(&attempt, &commit, WARM, "make check"), (String::new(), true));
    });
}

#[test]
fn what_checks_wrote_is_dropped_unless_their_story_is_committed() {
    with_make(|project| {
        let base = project.base.clone();
        let one = project.with(&base, &[("src/value", "2"), ("src/test", "2")]);
        let (_, first) = project.story(&one, &base, "make check && touch build/mark");
        // A failing attempt, and one whose cache is not kept.
        project.check(&one, &first, WARM, "touch build/rejected; rm build/mark");
        let place = project.place(&one, &first, WARM);
        run(&place, "touch build/rejected; rm build/mark");
        drop(place.keep(&project.git));
        let (text, passed) = project.check(&one, &first, WARM, "ls build");
        assert_eq!((text.as_str(), passed), ("mark\nstays\ntest\nvalue\n", true));
        // Only build folders are kept.
        let two = project.with(&first, &[("README", "x")]);
        let (_, second) =
            project.story(&two, &first, "rm build/mark; echo x > README; touch loose ~/loose; mkdir dist; touch dist/x");
        let (text, _) = project.check(&two, &second, WARM, "ls build ~/loose dist loose README 2>/dev/null; cat README");
        assert_eq!(text, "README\n\nbuild:\nstays\ntest\nvalue\nx\n");
        // The folder may be removed and created again.
        let three = project.with(&second, &[("README", "y")]);
        let (_, third) =
            project.story(&three, &second, "rm -rf build/*; rmdir build 2>/dev/null; mkdir -p build; touch build/only");
        assert_eq!(project.check(&three, &third, WARM, "ls build").0, "only\n");
        assert!(!project.world.path("project/build/mark").exists());
    });
}

#[test]
fn checks_that_start_cold_have_dependencies_and_no_build_output() {
    as_everybody(|world| {
        let ignored = (".gitignore", "build/\nnode_modules/\n__pycache__/\n.env\n");
        let files = [("a/code", "x"), ignored];
        let fill = |top: &Path| {
            for name in ["build/old", "node_modules/lib/x", "node_modules/.cache/x", "a/__pycache__/x.pyc", ".env"] {
                write(&top.join(name), "user's");
            }
        };
        let mut project = Project::built(world, &files, build_is_cache(), fill);
        let base = project.base.clone();
        let tree = project.with(&base, &[("README", "x")]);
        let list = "find build node_modules a .env -type f | sort | tr '\\n' ' '";
        let (text, first) = project.story(&tree, &base, &format!("touch build/new a/__pycache__/y.pyc; {list}"));
        let warm =
            ".env a/__pycache__/x.pyc a/__pycache__/y.pyc a/code build/new build/old node_modules/.cache/x node_modules/lib/x \n";
        assert_eq!(text, warm);
        assert_eq!(project.check(&tree, &first, WARM, list).0, warm);
        let (text, _) = project.check(&tree, &first, COLD, &format!("( {list} ) 2>/dev/null"));
        assert_eq!(text, ".env a/code node_modules/lib/x \n");
        // Nothing from it is kept, and what was kept before is still there.
        let place = project.place(&tree, &first, COLD);
        run(&place, "mkdir build; touch build/cold");
        assert!(place.keep(&project.git).is_none());
        assert_eq!(project.check(&tree, &first, WARM, list).0, warm);
    });
}

#[test]
fn committed_files_are_never_covered_by_what_was_built() {
    as_everybody(|world| {
        let mut project = Project::new(world, &MAKE, build_is_cache());
        let base = project.base.clone();
        let tree = project.with(&base, &[("README", "x")]);
        let (_, first) = project.story(&tree, &base, "mkdir build; echo built > build/value");
        let committed = project.with(&first, &[("build/value", "committed\n")]);
        assert_eq!(project.check(&committed, &first, WARM, "cat build/value; ls build").0, "committed\nvalue\n");
        assert_eq!(project.check(&tree, &first, WARM, "cat build/value").0, "built\n");
        // A folder that no rule ignores is not kept, whatever its name.
        let shown = project.with(&first, &[(".gitignore", "other/\n")]);
        let (_, second) = project.story(&shown, &first, "mkdir -p target; touch target/x; git status --porcelain");
        assert_eq!(project.check(&shown, &second, WARM, "ls").0, "Makefile\nREADME\nbuild\nsrc\n");
    });
}

#[test]
fn files_are_written_as_the_attributes_of_their_own_tree_say() {
    as_everybody(|world| {
        let mut project = Project::new(world, &[("a.txt", "x\n")], Config::default());
        let base = project.base.clone();
        let plain = project.git.tree_of(&base).unwrap();
        let converted = project.with(&base, &[(".gitattributes", "*.txt text eol=crlf\n")]);
        for (tree, bytes) in [(&plain, "x\\n\n"), (&converted, "x\\r\\n\n"), (&plain, "x\\n\n")] {
            assert_eq!(project.check(tree, &base, WARM, "od -An -c a.txt | tr -d ' '").0, bytes);
        }
    });
}

#[test]
fn a_file_that_the_user_edits_and_builds_during_the_run_does_not_hide_the_file_of_the_tree() {
    let _alone = alone();
    let world = World::new();
    let make = |top: &Path| assert!(Command::new("make").arg("build/stays").current_dir(top).output().unwrap().status.success());
    let mut project = Project::built(&world, &MAKE, build_is_cache(), make);
    let top = world.path("project");
    let base = project.base.clone();
    let tree = project.with(&base, &[("README", "x")]);
    let show = "make -s check; cat build/stays";
    assert_eq!(project.check(&tree, &base, WARM, show).0, "built value\nbuilt test\nsame\n");
    write(&top.join("src/stays"), "edited");
    make(&top);
    assert_eq!(fs::read_to_string(top.join("build/stays")).unwrap(), "edited");
    assert_eq!(project.check(&tree, &base, WARM, show).0, "built stays\nbuilt value\nbuilt test\nsame\n");
    // The same on top of a story's build output, for which the user's own build was valid.
    write(&top.join("src/stays"), "same");
    // Older than the index.
    let long_ago = SystemTime::now() - Duration::from_mins(1);
    fs::File::open(top.join("src/stays")).unwrap().set_times(FileTimes::new().set_modified(long_ago)).unwrap();
    fs::remove_file(top.join("build/stays")).unwrap();
    make(&top);
    run_git(&top, &["update-index", "--refresh"]);
    let (text, first) = project.story(&tree, &base, show);
    assert_eq!(text, "built value\nbuilt test\nsame\n");
    write(&top.join("src/stays"), "edited again");
    make(&top);
    assert_eq!(project.check(&tree, &first, WARM, show).0, "built stays\nsame\n");
}

const CARGO: [(&str, &str); 8] = [
    ("Cargo.toml", "[workspace]\nmembers = [\"stays\", \"value\"]\nresolver = \"3\"\n"),
    (
        "Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"stays\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"value\"\nversion = \"0.1.0\"\n\
         dependencies = [\n \"stays\",\n]\n",
    ),
    (".gitignore", "target/\n"),
    ("stays/Cargo.toml", "[package]\nname = \"stays\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    ("stays/src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n"),
    (
        "value/Cargo.toml",
        "[package]\nname = \"value\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nstays = { path = \"../stays\" }\n",
    ),
    ("value/src/lib.rs", "pub fn value() -> u32 {\n    stays::one()\n}\n"),
    ("value/tests/value.rs", "#[test]\nfn value() {\n    assert_eq!(value::value(), 1);\n}\n"),
];

#[test]
fn cargo_builds_what_changed_and_nothing_else() {
    let _alone = alone();
    let cargo = format!("env -u CARGO_TARGET_DIR '{}' test --offline --tests", env!("CARGO"));
    let build = |top: &Path| {
        assert!(
            Command::new(env!("CARGO"))
                .args(["test", "--offline"])
                .env_remove("CARGO_TARGET_DIR")
                .current_dir(top)
                .output()
                .unwrap()
                .status
                .success()
        );
    };
    let value = |plus: u32| format!("pub fn value() -> u32 {{\n    stays::one() + {plus}\n}}\n");
    let asserting = |expected: u32| format!("#[test]\nfn value() {{\n    assert_eq!(value::value(), {expected});\n}}\n");
    for (name, build) in [("without a target folder", None), ("with one of the user's", Some(build))] {
        let world = World::with_plain_path();
        let mut project = Project::built(&world, &CARGO, Config::default(), |top| build.iter().for_each(|build| build(top)));
        let base = project.base.clone();
        let one = project.with(&base, &[("value/src/lib.rs", &value(1)), ("value/tests/value.rs", &asserting(2))]);
        let (text, first) = project.story(&one, &base, &cargo);
        assert_eq!(text.contains("Compiling stays"), build.is_none(), "{name}: {text}");
        assert!(text.contains("Compiling value"), "{name}: {text}");
        let (text, passed) = project.check(&one, &first, WARM, &cargo);
        assert!(passed && !text.contains("Compiling"), "{name}: {text}");
        let two = project.with(&first, &[("value/src/lib.rs", &value(2)), ("value/tests/value.rs", &asserting(3))]);
        let place = project.place(&two, &first, WARM);
        let (text, passed) = run(&place, &cargo);
        assert!(passed && text.contains("Compiling value") && !text.contains("Compiling stays"), "{name}: {text}");
        let kept = place.keep(&project.git);
        // Pristine: the work with the test of the base. Restored: the test from before the first story, without work.
        let pristine = project.with(&first, &[("value/src/lib.rs", &value(2))]);
        let restored = project.with(&first, &[("value/tests/value.rs", &asserting(1))]);
        for (what, tree) in [("pristine", &pristine), ("restored", &restored)] {
            let (text, passed) = project.check(tree, &first, WARM, &cargo);
            assert!(!passed && text.contains("Compiling value") && !text.contains("Compiling stays"), "{name}, {what}: {text}");
            assert!(text.contains("assertion `left == right` failed"), "{name}, {what}: {text}");
        }
        let second = project.commit(&two, &first);
        project.adopt(kept, &second);
        let three = project.with(&second, &[("README", "docs")]);
        let (text, passed) = project.check(&three, &second, WARM, &cargo);
        assert!(passed && !text.contains("Compiling"), "{name}: {text}");
        let (text, passed) = project.check(&three, &second, COLD, &cargo);
        assert!(passed && text.contains("Compiling stays") && text.contains("Compiling value"), "{name}: {text}");
    }
}
