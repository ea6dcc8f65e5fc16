//! An agent's next workspace is the same whether its files are written from scratch or reused from the last one, whatever was done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, setxattr};
use verdone_core::base::id::Oid;
use verdone_runtime::git::{Git, PathSet};
use verdone_runtime::workspace::{Place, Workspaces};

use crate::repository::{commit_all, open, run_git, shell, write};
use crate::world::{World, as_everybody};

const BRANCH: &str = "verdone/run-1";
/// A file that is never touched: it stays in place when the folder is reused.
const UNTOUCHED: &str = "deep/a/b/untouched";
/// The number of additional project files.
const MANY: usize = 120;

/// A repository with two commits, and the workspaces of a run in it.
struct Run<'w> {
    world: &'w World,
    git: Git,
    spaces: Workspaces,
    commits: [Oid; 2],
}

impl<'w> Run<'w> {
    fn new(world: &'w World) -> Self {
        let top = world.path("project");
        fs::remove_file(top.join("file")).unwrap();
        run_git(&top, &["init", "-q", "-b", "main"]);
        for (name, text) in [
            ("README", "one\n"),
            ("src/a.rs", "same\n"),
            ("src/b.rs", "same\n"),
            ("src/deeper/c.rs", "c\n"),
            ("src/goes", "goes\n"),
            ("becomes-folder", "x\n"),
            ("becomes-file/x", "x\n"),
            (".gitignore", "cache/\n*.log\n"),
            ("sub/.gitattributes", "*.txt text\n"),
            (UNTOUCHED, "still here\n"),
        ] {
            write(&top.join(name), text);
        }
        write(&top.join(OsStr::from_bytes(b"od\xffd/n\name")), "odd\n");
        for n in 0..MANY {
            write(&top.join(format!("many/{}/{n}", n % 7)), "many\n");
        }
        fs::set_permissions(top.join("src/b.rs"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        symlink("src/a.rs", top.join("link")).unwrap();
        symlink("nowhere", top.join("src/dangling")).unwrap();
        let first = commit_all(&top, "first");
        for n in 0..20 {
            write(&top.join(format!("many/{}/{n}", n % 7)), "changed\n");
        }
        fs::remove_file(top.join("src/goes")).unwrap();
        fs::remove_file(top.join("becomes-folder")).unwrap();
        write(&top.join("becomes-folder/x"), "x\n");
        fs::remove_dir_all(top.join("becomes-file")).unwrap();
        write(&top.join("becomes-file"), "x\n");
        let second = commit_all(&top, "second");
        write(&top.join("cache/object"), "built\n");
        write(&top.join("debug.log"), "log\n");
        let git = Git::open(&top).unwrap();
        let spaces = open(world, &git, "run");
        Self { world, git, spaces, commits: [first, second] }
    }

    fn reset(&mut self, commit: &Oid) -> Place {
        self.spaces.reset_agent(&self.git, commit, BRANCH, &[]).unwrap();
        self.spaces.agent().unwrap()
    }

    /// The content of a folder written from scratch.
    fn fresh(&self, commit: &Oid) -> BTreeMap<PathBuf, FileState> {
        let mut spaces = open(self.world, &self.git, "fresh");
        spaces.reset_agent(&self.git, commit, BRANCH, &[]).unwrap();
        listed(&spaces.agent().unwrap().tree)
    }

    /// Asserts that reading back the work of an agent that did nothing gives the commit's tree.
    #[track_caller]
    fn assert_reads_back(&mut self, commit: &Oid) {
        let read = self.spaces.read_attempt(&self.git, &PathSet::default(), 0).unwrap();
        assert_eq!((read.tree, read.obstacle), (self.git.tree_of(commit).unwrap(), None));
    }
}

#[track_caller]
fn agent_does(place: &Place, script: &str) {
    shell(place.inside.clone(), &place.cwd, script);
}

/// Type and permissions, number of hard links, modification time if it is a file, and content.
type FileState = (u32, u64, Option<(i64, i64)>, Vec<u8>);

/// Everything in a folder except git's index and logs, which depend on the time. Does not follow links.
fn listed(top: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut all = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let below = path.strip_prefix(top).unwrap().to_owned();
        if below == Path::new(".git/index") {
            continue;
        }
        let (mut names, mut time, mut bytes) = (1, None, Vec::new());
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if meta.is_symlink() {
            bytes = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
        } else {
            names = meta.nlink();
            // Files that differ from the checkout get the time of writing.
            time = Some((meta.mtime(), meta.mtime_nsec())).filter(|_| below.starts_with("src") && !below.ends_with("goes"));
            bytes = fs::read(&path).unwrap();
        }
        all.insert(below, (meta.mode(), names, time, bytes));
    }
    all
}

/// The paths that differ between the two.
fn differences(one: &BTreeMap<PathBuf, FileState>, other: &BTreeMap<PathBuf, FileState>) -> BTreeSet<PathBuf> {
    one.keys().chain(other.keys()).filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

fn inode(place: &Place) -> u64 {
    fs::symlink_metadata(place.tree.join(UNTOUCHED)).unwrap().ino()
}

/// What an agent did, and whether its folder can be reused. On a slow machine, examining 20,000 files takes too long.
const DEEDS: [(&str, &str, Option<bool>); 18] = [
    ("nothing", "true", Some(true)),
    (
        "ordinary work",
        "echo more >> README; rm src/goes; mkdir new; echo x > new/file; chmod +x src/a.rs; mv src/b.rs src/moved",
        Some(true),
    ),
    ("everything deleted but one file", "rm -rf src many sub link README becomes-* od* .gitignore", Some(true)),
    // A file system may reuse the inode number of a deleted file.
    ("everything deleted", "rm -rf ./* .gitignore 2>/dev/null; true", None),
    ("folders without rights", "chmod 500 src/deeper; chmod 0 src; chmod 000 many/*; chmod 700 sub", Some(true)),
    ("new folders without rights", "mkdir -p n/o/p; touch n/o/p/q; chmod 0 n/o/p n/o n", Some(true)),
    ("the top without rights", "chmod 0111 .", Some(true)),
    (
        "pipes",
        "rm README .gitignore; mkfifo README .gitignore src/.gitattributes sub/.gitignore pipe; rm src/a.rs; mkfifo src/a.rs",
        Some(true),
    ),
    ("20,000 files", "mkdir f; cd f; seq 20000 | xargs touch; cd ../src; seq 20000 | xargs touch", None),
    (
        "names of any bytes",
        r#"touch "$(printf 'a\377b')" "$(printf 'src/\001\n')" "$(printf 'od\377d/\303\050')" ./-rf "src/a b" 'src/*'"#,
        Some(true),
    ),
    (
        "links instead of folders",
        "mv src elsewhere; ln -s elsewhere src; rm -rf many; ln -s /etc many; rm -rf sub; ln -s .. sub",
        Some(true),
    ),
    ("links instead of files", "ln -sf /etc/passwd README; ln -sf ../README src/a.rs; ln -sfn /nowhere link", Some(true)),
    (
        "files and folders swapped",
        "rm becomes-folder; mkdir becomes-folder; touch becomes-folder/x; rm -r src; touch src; rm README; mkdir README",
        Some(true),
    ),
    ("a second name", "rm src/b.rs; ln src/a.rs src/b.rs; ln README another; mkdir k; ln sub/.gitattributes k/kept", Some(true)),
    (
        "a change that looks like none",
        "touch -r README t; printf 'two\\n' > README; touch -r t README; touch -r src/a.rs t; printf 'SAME\\n' > src/a.rs; touch -r t src/a.rs; rm t",
        Some(true),
    ),
    (
        "repositories that start programs",
        "evil='touch \"@MARK@\"; cat'; git config core.fsmonitor \"$evil\"; git config filter.e.smudge \"$evil\"; \
         git config filter.e.clean \"$evil\"; printf '#!/bin/sh\\n%s\\n' \"$evil\" > .git/hooks/post-index-change; \
         chmod +x .git/hooks/post-index-change; cp .git/hooks/post-index-change .git/hooks/post-checkout; \
         printf '* filter=e\\n' > .gitattributes; printf '* filter=e\\n' > src/.gitattributes; rm src/a.rs; \
         cd src; git init -q; git config core.fsmonitor \"$evil\"; cd deeper; git init -q; git config core.fsmonitor \"$evil\"",
        Some(true),
    ),
    ("no repository", "rm -rf .git 2>/dev/null; rm -f .git/HEAD .git/config .git/index; true", Some(true)),
    (
        "deep folders",
        "for n in $(seq 150); do mkdir dddddddddddddddddddd && cd dddddddddddddddddddd || exit 1; done; touch f",
        Some(true),
    ),
];

#[test]
fn a_workspace_is_the_same_whatever_the_last_attempt_left() {
    as_everybody(|world| {
        let mut run = Run::new(world);
        let [first, second] = run.commits.clone();
        // Out of reach from inside the view.
        let mark = world.path("secret/ran");
        let expected = [run.fresh(&first), run.fresh(&second)];
        let ways = [(&first, &second, &expected[1]), (&second, &first, &expected[0]), (&first, &first, &expected[0])];
        for (number, (what, script, again)) in DEEDS.into_iter().enumerate() {
            // Ordinary work is tested in every direction, the other cases take turns.
            for (_, (from, to, expected)) in ways.into_iter().enumerate().filter(|(way, _)| number < 2 || number % 3 == *way) {
                let place = run.reset(from);
                let before = inode(&place);
                agent_does(&place, &script.replace("@MARK@", &mark.to_string_lossy()));
                run.spaces.drop_agent();
                let place = run.reset(to);
                let found = listed(&place.tree);
                assert_eq!(differences(&found, expected), BTreeSet::new(), "{what}");
                let used_again = inode(&place) == before;
                assert_eq!(used_again, again.unwrap_or(used_again), "{what}: whether the folder was used again");
                agent_does(&place, "test -z \"$(git status --porcelain)\"; test \"$(cat cache/object)\" = built");
                run.assert_reads_back(to);
                run.spaces.drop_agent();
            }
        }
        assert!(!mark.exists(), "a program of the agent's ran outside");
        assert!(run_git(&world.path("project"), &["status", "--porcelain"]).is_empty(), "the checkout is untouched");
    });
}

#[test]
fn attributes_of_files_and_folders_do_not_stay() {
    as_everybody(|world| {
        let mut run = Run::new(world);
        let [first, _] = run.commits.clone();
        let place = run.reset(&first);
        let mark = |name: &str| setxattr(place.tree.join(name), "user.mark", b"x", XattrFlags::empty());
        if mark("src") == Err(rustix::io::Errno::OPNOTSUPP) {
            return;
        }
        mark("README").unwrap();
        run.spaces.drop_agent();
        let place = run.reset(&first);
        let has = |name: &str| rustix::fs::getxattr(place.tree.join(name), "user.mark", &mut [0_u8; 8][..]).is_ok();
        assert!(!has("src") && !has("README"));
        assert!(!has("src/a.rs"));
    });
}

#[test]
fn a_folder_that_the_agent_only_worked_in_is_used_again_after_a_commit() {
    as_everybody(|world| {
        let mut run = Run::new(world);
        let [first, second] = run.commits.clone();
        let place = run.reset(&first);
        let before = inode(&place);
        agent_does(&place, "echo more >> README; echo x > src/new");
        run.spaces.read_attempt(&run.git, &PathSet::default(), 0).unwrap();
        run.spaces.drop_agent();
        let place = run.reset(&second);
        assert_eq!(inode(&place), before);
        assert_eq!(differences(&listed(&place.tree), &run.fresh(&second)), BTreeSet::new());
        run.assert_reads_back(&second);
    });
}

#[test]
fn attributes_that_say_how_files_are_written_count_for_all_of_them() {
    as_everybody(|world| {
        let mut run = Run::new(world);
        let [first, second] = run.commits.clone();
        let top = world.path("project");
        write(&top.join(".gitattributes"), "*.rs text eol=crlf\n");
        let third = commit_all(&top, "third");
        for (from, to, ends) in [(&second, &third, "same\r\n"), (&third, &first, "same\n"), (&third, &third, "same\r\n")] {
            let place = run.reset(from);
            agent_does(&place, "rm .gitattributes src/a.rs; printf '*.rs -text\\n' > src/.gitattributes");
            run.spaces.drop_agent();
            let place = run.reset(to);
            assert_eq!(fs::read_to_string(place.tree.join("src/a.rs")).unwrap(), ends);
            // Files whose line endings differ from the checkout get the time of writing.
            let timeless = |all: BTreeMap<PathBuf, FileState>| {
                all.into_iter().map(|(path, seen)| (path, (seen.0, seen.1, None, seen.3))).collect()
            };
            assert_eq!(differences(&timeless(listed(&place.tree)), &timeless(run.fresh(to))), BTreeSet::new());
            run.spaces.drop_agent();
        }
    });
}

#[test]
fn a_script_sees_a_file_that_is_in_no_commit_only_while_it_is_given() {
    as_everybody(|world| {
        let mut run = Run::new(world);
        let files = ["loose", "README"].map(|name| world.path("project").join(name));
        for file in &files {
            write(file, "mine\n");
        }
        for (copies, seen) in [(&files[..], "mine mine"), (&files[1..], "mine"), (&[], "one")] {
            let place = run.spaces.script_place(&run.git, &run.commits[1], copies).unwrap().unwrap();
            shell(place.inside.clone(), &place.cwd, &format!("test \"$(echo $(cat loose README 2>/dev/null))\" = '{seen}'"));
        }
    });
}
