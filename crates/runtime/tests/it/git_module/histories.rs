//! Generated histories, compared with a reference model: whatever the user and a run do in any order, landing either moves exactly the
//! committed files or changes nothing, and a workspace that is reset has exactly the files of its tree.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use verdone_core::base::id::Oid;
use verdone_runtime::git::{Filters, Landing, ResetFiles};

use crate::git_module::landing::leftovers;
use crate::git_module::repo::{Repo, WorkTree, environment, files_and_folders};

const RUN: &str = "refs/heads/verdone/run";

/// Folders and files with conflicting names, odd names, and names that `.gitignore` hides.
const NAMES: [&[u8]; 12] = [
    b"a.txt",
    b"dir",
    b"dir/b.txt",
    b"dir/deep",
    b"dir/deep/er/x",
    b"run.sh",
    b"new",
    b"-dash",
    b" sp ace ",
    b"not-utf8-\xff\xfe",
    b"kept.log",
    b"target/out",
];
/// Few, so that user and run often write the same content.
const CONTENTS: [&[u8]; 4] = [b"one\n", b"two\n", b"", b"a\0b\r\n"];
const TARGETS: [&[u8]; 2] = [b"a.txt", b"nowhere"];

#[derive(Debug, Clone, Copy)]
enum Node {
    File { content: usize, executable: bool },
    Link(usize),
}

#[derive(Debug, Clone)]
enum Op {
    /// The user, in the checkout.
    Put(usize, Node),
    Remove(usize),
    Stage(usize),
    Unstage(usize),
    Commit,
    /// The run, on its branch: what it adds and removes.
    Story(Vec<(usize, Option<Node>)>),
    /// A new run from the user's commit.
    Begin,
    /// One more story, so that there is something to land. The bits say which of its files are already in the checkout, as after a killed
    /// landing.
    Land(Vec<(usize, Option<Node>)>, u8),
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        6 => (0..CONTENTS.len(), any::<bool>()).prop_map(|(content, executable)| Node::File { content, executable }),
        1 => (0..TARGETS.len()).prop_map(Node::Link),
    ]
}

fn story() -> impl Strategy<Value = Vec<(usize, Option<Node>)>> {
    prop::collection::vec((0..NAMES.len(), prop::option::weighted(0.7, node())), 1..5)
}

fn op() -> impl Strategy<Value = Op> {
    let name = 0..NAMES.len();
    prop_oneof![
        4 => (name.clone(), node()).prop_map(|(name, node)| Op::Put(name, node)),
        2 => name.clone().prop_map(Op::Remove),
        2 => name.clone().prop_map(Op::Stage),
        1 => name.prop_map(Op::Unstage),
        1 => Just(Op::Commit),
        1 => story().prop_map(Op::Story),
        1 => Just(Op::Begin),
        4 => (story(), prop_oneof![2 => Just(0), 1 => any::<u8>()]).prop_map(|(changes, there)| Op::Land(changes, there)),
    ]
}

/// The mode and blob of each path.
type Files = BTreeMap<Vec<u8>, (String, String)>;

struct World {
    repo: Repo,
    /// The blob of every content that is written.
    blobs: HashMap<&'static [u8], String>,
}

/// Everything that landing may change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RepoState {
    head: Oid,
    tree: Files,
    index: Files,
    work: Files,
}

impl World {
    fn new() -> Self {
        let repo = Repo::unborn(&[]);
        repo.write(".gitignore", "*.log\ntarget/\n");
        repo.write("a.txt", CONTENTS[0]);
        repo.write("dir/b.txt", CONTENTS[1]);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "start"]);
        repo.git(&["update-ref", RUN, "HEAD"]);
        let mut world = Self { repo, blobs: HashMap::new() };
        for bytes in CONTENTS.into_iter().chain(TARGETS).chain([b"*.log\ntarget/\n".as_slice()]) {
            let id = world.try_git(&["hash-object", "-w", "--stdin"], bytes).unwrap();
            world.blobs.insert(bytes, id);
        }
        world
    }

    /// Git's output, unless it refused.
    fn try_git(&self, args: &[&str], stdin: &[u8]) -> Option<String> {
        let mut command = Command::new("git");
        command.current_dir(self.repo.path("")).args(args).envs(environment(self.repo.home()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Steps that do not apply are skipped; the rest is the history.
    fn apply(&self, op: &Op) {
        let repo = &self.repo;
        let staged = |args: &[&str], name: usize| {
            let mut stdin = NAMES[name].to_vec();
            stdin.push(0);
            self.try_git(&[args, &["-z", "--stdin"]].concat(), &stdin)
        };
        match op {
            Op::Put(name, node) => put(&repo.path(named(*name)), *node),
            Op::Remove(name) => remove(&repo.path(named(*name))),
            Op::Stage(name) => {
                staged(&["update-index", "--add", "--remove"], *name);
            }
            Op::Unstage(name) => {
                staged(&["update-index", "--force-remove"], *name);
            }
            Op::Commit => {
                self.try_git(&["commit", "-qm", "by the user"], b"");
            }
            Op::Story(changes) => self.commit_story(changes),
            Op::Begin => {
                repo.git(&["update-ref", RUN, "HEAD"]);
            }
            Op::Land(changes, there) => {
                self.commit_story(changes);
                for (_, (name, node)) in changes.iter().enumerate().filter(|(at, _)| there & (1 << at) != 0) {
                    self.apply(&node.map_or(Op::Remove(*name), |node| Op::Put(*name, node)));
                }
                self.land();
            }
        }
    }

    /// Commits on the run's branch without a worktree.
    fn commit_story(&self, changes: &[(usize, Option<Node>)]) {
        let mut stream =
            format!("commit {RUN}\ncommitter A <a@example.org> 1700000000 +0000\ndata 5\nstory\nfrom {RUN}^0\n").into_bytes();
        for (name, node) in changes {
            let Some(node) = node else {
                stream.extend([b"D ", NAMES[*name], b"\n"].concat());
                continue;
            };
            let (mode, bytes) = staged(*node);
            stream.extend(format!("M {mode} {} ", self.blobs[bytes]).into_bytes());
            stream.extend([NAMES[*name], b"\n"].concat());
        }
        self.try_git(&["fast-import", "--quiet"], &stream).unwrap();
    }

    fn files_of(&self, args: &[&str]) -> Files {
        let listed = self.repo.git_raw(args);
        let mut files = Files::new();
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let tab = record.iter().position(|byte| *byte == b'\t').unwrap();
            let facts = String::from_utf8(record[..tab].to_vec()).unwrap();
            let words: Vec<&str> = facts.split(' ').collect();
            // `<mode> blob <id>` in a tree, `<mode> <id> <stage>` in the index.
            let id = if words[1] == "blob" { words[2] } else { words[1] };
            files.insert(record[tab + 1..].to_vec(), (words[0].to_owned(), id.to_owned()));
        }
        files
    }

    fn tree(&self, commit: &str) -> Files {
        self.files_of(&["ls-tree", "-r", "-z", commit])
    }

    fn seen(&self) -> RepoState {
        let work = self.as_git_sees(&self.repo.work_tree());
        RepoState { head: self.repo.head(), tree: self.tree("HEAD"), index: self.files_of(&["ls-files", "-s", "-z"]), work }
    }

    fn as_git_sees(&self, files: &WorkTree) -> Files {
        let entry = |(path, (mode, bytes)): (&OsString, &(u32, Vec<u8>))| {
            let mode = match mode {
                0o120_000 => "120000",
                mode if mode & 0o100 != 0 => "100755",
                _ => "100644",
            };
            (path.as_bytes().to_vec(), (mode.to_owned(), self.blobs[bytes.as_slice()].clone()))
        };
        files.iter().map(entry).collect()
    }

    fn land(&self) {
        let new = Oid(self.repo.git(&["rev-parse", RUN]));
        let (before, target) = (self.seen(), self.tree(RUN));
        let by_git = self.merged_by_git(&new);
        let landing = self.repo.git.land_files(Some("main"), &new).unwrap();
        let after = self.seen();
        assert_eq!(leftovers(&self.repo), [""; 0]);
        let changed: BTreeSet<&Vec<u8>> =
            before.tree.keys().chain(target.keys()).filter(|path| before.tree.get(*path) != target.get(*path)).collect();
        match landing {
            Landing::Refused(refusal) => {
                assert_eq!(after, before, "{refusal}: nothing is changed");
                assert_eq!(by_git, None, "git would have landed it: {refusal}");
            }
            Landing::Landed { from } if after.head == before.head => {
                assert_eq!((after, from), (before.clone(), Some(before.head)), "it was landed before");
            }
            Landing::Landed { .. } => {
                let moved = |files: &Files| {
                    let mut files = files.clone();
                    files.retain(|path, _| !changed.contains(path));
                    files.extend(
                        target.iter().filter(|(path, _)| changed.contains(path)).map(|(path, file)| (path.clone(), file.clone())),
                    );
                    files
                };
                let expected =
                    RepoState { head: new, tree: target.clone(), index: moved(&before.index), work: moved(&before.work) };
                assert_eq!(after, expected, "exactly the committed files move");
                for (side, files) in [("work tree", &before.work), ("index", &before.index)] {
                    for path in &changed {
                        let had = files.get(*path);
                        let is_known = had.is_none() || had == before.tree.get(*path) || had == target.get(*path);
                        assert!(is_known, "lost in the {side}: {}", path.escape_ascii());
                    }
                }
                let was_there = |path: &&Vec<u8>| before.work.get(*path) == target.get(*path);
                match by_git {
                    Some(by_git) => assert_eq!(after, by_git),
                    // Git refuses even if a file already has its new content; landing does not.
                    None => assert!(changed.iter().any(was_there), "git would have refused it"),
                }
            }
        }
    }

    /// The result of `git merge --ff-only` in a copy of this repository, unless it refuses.
    fn merged_by_git(&self, new: &Oid) -> Option<RepoState> {
        let copy = tempfile::tempdir().unwrap();
        let status = Command::new("cp").arg("-a").arg(self.repo.path(".")).arg(copy.path()).status().unwrap();
        assert!(status.success());
        let there = |args: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(copy.path()).args(args).envs(environment(self.repo.home())).output().unwrap()
        };
        let fixed = ["merge", "-q", "--ff-only", "--no-autostash", "--no-overwrite-ignore", new.as_str()];
        if !there(&fixed).status.success() {
            return None;
        }
        let merged = Self { repo: Repo::existing(copy), blobs: self.blobs.clone() };
        Some(merged.seen())
    }
}

fn staged(node: Node) -> (&'static str, &'static [u8]) {
    match node {
        Node::File { content, executable } => (if executable { "100755" } else { "100644" }, CONTENTS[content]),
        Node::Link(target) => ("120000", TARGETS[target]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn landing_moves_exactly_the_committed_files_or_changes_nothing(ops in prop::collection::vec(op(), 4..24)) {
        let world = World::new();
        for op in &ops {
            world.apply(op);
        }
    }

    #[test]
    fn a_workspace_that_is_reset_has_exactly_the_files_of_its_tree(
        rounds in prop::collection::vec((story(), prop::collection::vec(agent_op(), 0..6)), 1..5),
    ) {
        let world = World::new();
        let before = world.seen();
        let mut spaces = Spaces::new(&world);
        spaces.lay_out("used");
        for (number, (story, agent)) in rounds.iter().enumerate() {
            world.commit_story(story);
            spaces.lay_out(&format!("new-{number}"));
            spaces.update("new-0");
            let opened = spaces.moment();
            for op in agent {
                spaces.disturb("used", op);
            }
            spaces.reset("used", opened);
        }
        // Back over all stories at once.
        world.apply(&Op::Begin);
        spaces.update("new-0");
        assert_eq!(world.seen(), before, "the user's checkout is not touched");
    }
}

/// What an agent does in its workspace.
fn agent_op() -> impl Strategy<Value = Op> {
    let name = 0..NAMES.len();
    prop_oneof![(name.clone(), node()).prop_map(|(name, node)| Op::Put(name, node)), name.prop_map(Op::Remove)]
}

/// Folders with the tree of the run's branch.
struct Spaces<'a> {
    world: &'a World,
    dir: tempfile::TempDir,
    trash: u32,
}

impl<'a> Spaces<'a> {
    fn new(world: &'a World) -> Self {
        Self { world, dir: tempfile::tempdir().unwrap(), trash: 0 }
    }

    fn at(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.dir.path().join(name), self.dir.path().join(format!("{name}.index")))
    }

    fn tree(&self) -> Oid {
        Oid(self.world.repo.git(&["rev-parse", &format!("{RUN}^{{tree}}")]))
    }

    fn lay_out(&self, name: &str) {
        let (folder, index) = self.at(name);
        fs::create_dir(&folder).unwrap();
        self.world.repo.git.lay_out_files(&self.tree(), &folder, &index, &Filters::None).unwrap();
        self.assert_exact(name);
    }

    fn update(&self, name: &str) {
        let (folder, index) = self.at(name);
        self.world.repo.git.update_files(&self.tree(), &folder, &index, &Filters::None).unwrap();
        self.assert_exact(name);
    }

    fn reset(&mut self, name: &str, opened: SystemTime) {
        let (folder, index) = self.at(name);
        self.trash += 1;
        let trash = self.dir.path().join(format!("trash-{}", self.trash));
        fs::create_dir(&trash).unwrap();
        let (to, patience) = (self.tree(), Duration::from_mins(1));
        let from = Oid(fs::read_to_string(index.with_extension("tree")).unwrap());
        let job = ResetFiles {
            folder: &folder,
            index: &index,
            trash: &trash,
            opened,
            from: &from,
            to: &to,
            patience,
            filters: &Filters::None,
        };
        self.world.repo.git.reset_files(&job).unwrap();
        self.assert_exact(name);
    }

    /// Records which tree is there, for the next reset.
    fn assert_exact(&self, name: &str) {
        fs::write(self.at(name).1.with_extension("tree"), self.tree().as_str()).unwrap();
        let (files, folders) = files_and_folders(&self.at(name).0);
        assert_eq!(self.world.as_git_sees(&files), self.world.tree(RUN), "{name}");
        let parents = files.keys().flat_map(|path| Path::new(path).ancestors().skip(1)).map(|path| path.as_os_str().to_owned());
        let needed: BTreeSet<OsString> = parents.filter(|path| !path.is_empty()).collect();
        assert_eq!(folders, needed, "{name}: no folder is left behind");
    }

    fn disturb(&self, name: &str, op: &Op) {
        match op {
            Op::Put(path, node) => put(&self.at(name).0.join(named(*path)), *node),
            Op::Remove(path) => remove(&self.at(name).0.join(named(*path))),
            Op::Stage(_) | Op::Unstage(_) | Op::Commit | Op::Story(_) | Op::Begin | Op::Land(..) => {}
        }
    }

    /// A moment that the file system dates later than everything so far.
    fn moment(&self) -> SystemTime {
        let clock = self.dir.path().join("clock");
        let now = || {
            fs::write(&clock, "").unwrap();
            fs::metadata(&clock).unwrap().modified().unwrap()
        };
        let begin = now();
        std::iter::repeat_with(now).find(|now| *now > begin).unwrap()
    }
}

fn named(name: usize) -> &'static OsStr {
    OsStr::from_bytes(NAMES[name])
}

/// Does nothing if something else is in the way.
fn put(place: &Path, node: Node) {
    let _ = fs::remove_file(place);
    if fs::create_dir_all(place.parent().unwrap()).is_err() {
        return;
    }
    match node {
        Node::File { content, executable } => {
            if fs::write(place, CONTENTS[content]).is_ok() {
                let mode = if executable { 0o755 } else { 0o644 };
                fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Node::Link(target) => {
            let _ = symlink(OsStr::from_bytes(TARGETS[target]), place);
        }
    }
}

fn remove(place: &Path) {
    let _ = fs::remove_file(place).or_else(|_| fs::remove_dir_all(place));
}
