//! Generated histories against a reference model: whatever user, agent and Verdone do in whatever order, a restore brings back
//! work tree, index and branch byte for byte, leaves ignored files and nested repositories alone, and loses nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use verdone_core::event::Checkpoint;
use verdone_core::id::Oid;
use verdone_runtime::git::{Git, GitError, PathSet, RestoreRules};
use verdone_testkit::processes_with_env;

use crate::model::{Head, Model, Node, Path, Staged, is_below};
use crate::repo::{Repo, environment};

#[derive(Debug, Clone)]
enum Op {
    Write {
        name: usize,
        ends: u8,
    },
    Remove(usize),
    Link(usize),
    Chmod(usize, u32),
    EmptyDirectory(usize),
    Rename(usize, usize),
    Stage(usize),
    Announce(usize),
    Unstage(usize),
    Commit,
    Amend,
    Branch(u8),
    Detach,
    MoveTo(usize),
    Rules(usize),
    Nest(usize),
    Checkpoint,
    RollBack(usize),
    /// Back to where the last rollback came from.
    Undo,
    /// A rollback that is killed after so many microseconds, and done again.
    Crash(usize, u64),
    Prune,
}

const NAMES: [&[u8]; 20] = [
    b"a.txt",
    b"dir",
    b"dir/b.txt",
    b"dir/deep",
    b"dir/deep/er/and/deeper/x",
    b"run.sh",
    b"new",
    b"odd\n\"name'",
    b"-dash",
    b" sp ace ",
    b"not-utf8-\xff\xfe",
    b"\xc3\xa9-nfc",
    b"e\xcc\x81-nfd",
    b"*glob?[x]",
    b"lines.crlf",
    b"dir/lines.crlf",
    b"kept.log",
    b"cache/object",
    b"cache/other",
    b".env",
];
/// Which of them the rules below are about, and those that get into each other's way.
const HOT: [usize; 7] = [0, 1, 2, 6, 14, 17, 19];
const RULES: [&str; 5] = ["*.log\ncache/\n.env\n", "", "*.log\nnew\n", "cache/\n.env\ndir/\n", "*.txt\n"];
/// Not where a rule hides them: then they are ignored like everything there.
const NESTS: [&[u8]; 2] = [b"nest", b"-dash/nest"];
const TARGETS: [&str; 3] = ["a.txt", "nowhere", "dir"];
/// Longer than a restore of such a small repository takes on a busy machine.
const LONGEST_RESTORE_US: u64 = 120_000;

fn op() -> impl Strategy<Value = Op> {
    // Some names come again and again, so that histories are about something.
    let name = || prop_oneof![2 => prop::sample::select(&HOT[..]), 1 => 0..NAMES.len()];
    let modes = prop_oneof![Just(0o644_u32), Just(0o755), Just(0o600)];
    prop_oneof![
        14 => (name(), 0..3_u8).prop_map(|(name, ends)| Op::Write { name, ends }),
        4 => name().prop_map(Op::Remove),
        2 => name().prop_map(Op::Link),
        2 => (name(), modes).prop_map(|(name, mode)| Op::Chmod(name, mode)),
        1 => name().prop_map(Op::EmptyDirectory),
        3 => (name(), name()).prop_map(|(from, to)| Op::Rename(from, to)),
        7 => name().prop_map(Op::Stage),
        2 => name().prop_map(Op::Announce),
        2 => name().prop_map(Op::Unstage),
        3 => Just(Op::Commit),
        1 => Just(Op::Amend),
        1 => any::<u8>().prop_map(Op::Branch),
        1 => Just(Op::Detach),
        1 => (0..8_usize).prop_map(Op::MoveTo),
        3 => (0..RULES.len()).prop_map(Op::Rules),
        1 => (0..NESTS.len()).prop_map(Op::Nest),
        6 => Just(Op::Checkpoint),
        6 => (0..8_usize).prop_map(Op::RollBack),
        2 => Just(Op::Undo),
        2 => (0..8_usize, 0..LONGEST_RESTORE_US).prop_map(|(to, after)| Op::Crash(to, after)),
        1 => Just(Op::Prune),
    ]
}

/// A real repository beside its model.
struct World {
    repo: Repo,
    model: Model,
    kept: Vec<Kept>,
    /// Which of them the last rollback came from.
    undo: Option<usize>,
    commits: Vec<String>,
    /// So that no two files have the same content.
    written: u32,
    blobs: HashMap<String, Vec<u8>>,
}

#[derive(Clone)]
struct Kept {
    checkpoint: Checkpoint,
    model: Model,
    index: Option<Vec<u8>>,
}

impl World {
    fn new(born: bool) -> Self {
        let repo = Repo::unborn(&["--template="]);
        repo.write(".gitattributes", "*.crlf text eol=crlf\n");
        let head = Head::Branch("main".to_owned());
        let (files, index, branches, trees) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let model = Model { files, index, head, branches, trees, nested: BTreeSet::new() };
        let mut world =
            Self { repo, model, kept: Vec::new(), undo: None, commits: Vec::new(), written: 0, blobs: HashMap::new() };
        let bytes = b"*.crlf text eol=crlf\n".to_vec();
        world.model.put(b".gitattributes", Node::File { bytes, mode: 0o644 });
        world.take(&Op::Rules(0));
        if born {
            for name in [0, 2, 5, 14] {
                world.take(&Op::Write { name, ends: 0 });
            }
            world.repo.git(&["add", "-A"]);
            let staged: Vec<_> = world.model.files.iter().map(|(path, node)| (path.clone(), node.staged(path))).collect();
            world.model.index.extend(staged);
            world.take(&Op::Commit);
        }
        world
    }

    /// Steps that do not apply (removing what is not there, staging nothing) are skipped: a history is whatever is left.
    fn take(&mut self, op: &Op) {
        match op {
            Op::Write { name, ends } => {
                self.written += 1;
                let text = format!("{}\nand more\n\0", self.written);
                let text = match ends {
                    0 => text,
                    1 => text.replace('\n', "\r\n"),
                    _ => text.replacen('\n', "\r\n", 1),
                };
                self.clear(NAMES[*name]);
                fs::write(self.place(NAMES[*name]), &text).unwrap();
                self.model.put(NAMES[*name], Node::File { bytes: text.into_bytes(), mode: 0o644 });
            }
            Op::Remove(name) => {
                if self.model.files.remove(NAMES[*name]).is_some() {
                    fs::remove_file(self.place(NAMES[*name])).unwrap();
                }
            }
            Op::Link(name) => {
                let target = TARGETS[*name % TARGETS.len()];
                self.clear(NAMES[*name]);
                symlink(target, self.place(NAMES[*name])).unwrap();
                self.model.put(NAMES[*name], Node::Link(target.into()));
            }
            Op::Chmod(name, wanted) => {
                if let Some(Node::File { mode, .. }) = self.model.files.get_mut(NAMES[*name]) {
                    *mode = *wanted;
                    fs::set_permissions(self.place(NAMES[*name]), fs::Permissions::from_mode(*wanted)).unwrap();
                }
            }
            // Git does not know them and the model does not either: they only stand in the way.
            Op::EmptyDirectory(name) => drop(fs::create_dir_all(self.place(NAMES[*name]))),
            Op::Rename(from, to) => self.rename(NAMES[*from], NAMES[*to]),
            Op::Stage(name) => self.stage(NAMES[*name]),
            Op::Announce(name) => {
                let name = NAMES[*name];
                let new = !self.model.index.keys().any(|path| path == name || is_below(path, name) || is_below(name, path));
                if let Some(node) = self.model.files.get(name).filter(|_| new && !self.model.ignores(name)) {
                    let mode = node.staged(name).mode;
                    self.git(&["--literal-pathspecs", "add", "-f", "-N", "--"], Some(name));
                    self.model.stage(name, Staged { mode, blob: Vec::new(), intent: true });
                }
            }
            Op::Unstage(name) => {
                if self.model.index.remove(NAMES[*name]).is_some() {
                    self.git(&["update-index", "--force-remove", "--"], Some(NAMES[*name]));
                }
            }
            Op::Commit => self.commit(&["commit", "-q", "--allow-empty", "-m", "step"]),
            Op::Amend if self.model.commit().is_some() => {
                self.commit(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
            }
            Op::Branch(number) if self.model.commit().is_some() => {
                let name = format!("b{}", number % 3);
                self.git(&["checkout", "-q", "-B", &name], None);
                let commit = self.model.commit().unwrap().clone();
                self.model.branches.insert(name.clone(), commit);
                self.model.head = Head::Branch(name);
            }
            Op::Detach if self.model.commit().is_some() => {
                self.git(&["checkout", "-q", "--detach"], None);
                self.model.head = Head::Detached(self.model.commit().unwrap().clone());
            }
            Op::MoveTo(number) => {
                if let Some(commit) = pick(&self.commits, *number).cloned() {
                    self.git(&["update-ref", "HEAD", &commit], None);
                    self.model.set_commit(commit);
                }
            }
            Op::Rules(number) => {
                fs::write(self.repo.path(".gitignore"), RULES[*number]).unwrap();
                self.model.put(b".gitignore", Node::File { bytes: RULES[*number].into(), mode: 0o644 });
            }
            Op::Nest(number) => self.nest(NESTS[*number]),
            Op::Checkpoint => drop(self.checkpoint()),
            Op::RollBack(number) => {
                let _ = pick(&self.kept, *number).cloned().is_some_and(|to| self.roll_back(&to, None));
            }
            Op::Undo => {
                let to = self.undo.and_then(|number| self.kept.get(number)).cloned();
                let _ = to.is_some_and(|to| self.roll_back(&to, None));
            }
            Op::Crash(number, after) => {
                let after = Duration::from_micros(*after);
                let _ = pick(&self.kept, *number).cloned().is_some_and(|to| self.roll_back(&to, Some(after)));
            }
            Op::Prune => self.prune(),
            Op::Amend | Op::Branch(_) | Op::Detach => {}
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        if from == to || is_below(from, to) || is_below(to, from) {
            return;
        }
        if let Some(node) = self.model.files.remove(from) {
            self.clear(to);
            fs::rename(self.place(from), self.place(to)).unwrap();
            self.model.put(to, node);
        }
    }

    fn stage(&mut self, name: &[u8]) {
        if let Some(node) = self.model.files.get(name).filter(|_| !self.model.ignores(name)) {
            let staged = node.staged(name);
            self.git(&["--literal-pathspecs", "add", "-f", "--"], Some(name));
            self.model.stage(name, staged);
        } else if !self.model.files.contains_key(name) && self.model.index.remove(name).is_some() {
            self.git(&["update-index", "--force-remove", "--"], Some(name));
        }
    }

    fn commit(&mut self, args: &[&str]) {
        self.git(args, None);
        let commit = self.repo.head().0;
        self.commits.push(commit.clone());
        self.model.record(commit);
    }

    fn nest(&mut self, path: &[u8]) {
        let in_the_way = |other: &Path| other == path || is_below(other, path) || is_below(path, other);
        if !self.model.files.keys().any(in_the_way) && !self.model.index.keys().any(in_the_way) {
            self.written += 1;
            self.git(&["init", "-q", "--template=", "--"], Some(path));
            fs::write(self.place(path).join("inner"), self.written.to_string()).unwrap();
            self.model.nested.insert(path.to_vec());
        }
    }

    fn checkpoint(&mut self) -> usize {
        self.check(&BTreeSet::new());
        let index = self.repo.index();
        let checkpoint = self.repo.checkpoint();
        assert_eq!(self.repo.index(), index, "a checkpoint does not touch the index");
        self.check(&BTreeSet::new());
        self.kept.push(Kept { checkpoint, model: self.model.clone(), index });
        self.kept.len() - 1
    }

    fn roll_back(&mut self, to: &Kept, killed_after: Option<Duration>) -> bool {
        self.undo = Some(self.checkpoint());
        let unsaved = self.unsaved();
        if let Some(after) = killed_after {
            restore_in_a_process_that_is_killed(&self.repo, &to.checkpoint, after);
            self.repo.git.remove_leftovers().unwrap();
        }
        self.repo.restore(&to.checkpoint);
        let (model, either) = self.model.restored(&to.model);
        self.model = model;
        self.check(&either);
        assert_eq!(self.repo.index(), to.index, "the raw index");
        let (tree, aside) = (contents(&self.repo.path("")), contents(&self.repo.home().join("aside")));
        for bytes in unsaved {
            assert!(tree.contains(&bytes) || aside.contains(&bytes), "lost: {:?}", String::from_utf8_lossy(&bytes));
        }
        true
    }

    /// What no checkpoint keeps: ignored files and nested repositories.
    fn unsaved(&self) -> Vec<Vec<u8>> {
        let ignored = self.model.files.iter().filter(|(path, _)| self.model.ignores(path));
        let ignored = ignored.filter_map(|(_, node)| match node {
            Node::File { bytes, .. } => Some(bytes.clone()),
            Node::Link(_) => None,
        });
        let nested = self.model.nested.iter().map(|path| fs::read(self.place(path).join("inner")).unwrap());
        ignored.chain(nested).collect()
    }

    /// What was kept is gone, and asking for it changes nothing.
    fn prune(&mut self) {
        self.repo.git.forget_run(&self.repo.run).unwrap();
        self.git(&["gc", "-q", "--prune=now"], None);
        if let Some(gone) = self.kept.pop() {
            let rules = RestoreRules { skip: PathSet::default(), aside: self.repo.home().join("aside") };
            let error = self.repo.git.restore(&gone.checkpoint, &rules).unwrap_err();
            assert!(matches!(error, GitError::NotACheckpoint { .. }), "{error}");
        }
        self.kept.clear();
        self.undo = None;
        self.commits = self.model.branches.values().cloned().collect();
        self.check(&BTreeSet::new());
    }

    /// Everything real is what the model says. Paths in `either` may be there or not.
    fn check(&mut self, either: &BTreeSet<Path>) {
        let (mut files, mut nested) = (BTreeMap::new(), BTreeSet::new());
        read_tree(&self.repo.path(""), &mut Vec::new(), &mut files, &mut nested);
        for path in either {
            match files.get(path) {
                Some(node) => self.model.files.insert(path.clone(), node.clone()),
                None => self.model.files.remove(path),
            };
        }
        assert_eq!(differences(&files, &self.model.files), "", "the work tree");
        assert_eq!(nested, self.model.nested, "the repositories inside");
        assert_eq!(differences(&self.read_index(), &self.model.index), "", "the index");
        let head = fs::read_to_string(self.repo.git.git_dir().join("HEAD")).unwrap();
        let expected = match &self.model.head {
            Head::Branch(name) => format!("ref: refs/heads/{name}\n"),
            Head::Detached(commit) => format!("{commit}\n"),
        };
        assert_eq!(head, expected, "HEAD");
        let refs = self.repo.git(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"]);
        let refs: BTreeMap<String, String> =
            refs.lines().filter_map(|line| line.split_once(' ')).map(|(name, id)| (name.to_owned(), id.to_owned())).collect();
        assert_eq!(refs, self.model.branches, "the branches");
    }

    fn read_index(&mut self) -> BTreeMap<Path, Staged> {
        let entries = self.repo.index().map_or_else(Vec::new, |bytes| parse_index(&bytes));
        let ids: BTreeSet<&String> = entries.iter().map(|(_, entry)| &entry.id).collect();
        let unknown: Vec<String> = ids.into_iter().filter(|id| !self.blobs.contains_key(*id)).cloned().collect();
        for id in unknown {
            let blob = self.repo.git_raw(&["cat-file", "blob", &id]);
            self.blobs.insert(id, blob);
        }
        let staged = |entry: Entry| Staged { mode: entry.mode, blob: self.blobs[&entry.id].clone(), intent: entry.intent };
        entries.into_iter().map(|(path, entry)| (path, staged(entry))).collect()
    }

    fn place(&self, path: &[u8]) -> std::path::PathBuf {
        self.repo.path(OsStr::from_bytes(path))
    }

    /// Makes room for a file: its parents are directories and nothing is in its place.
    fn clear(&self, path: &[u8]) {
        let place = self.place(path);
        for parent in place.ancestors().skip(1).take_while(|parent| *parent != self.repo.path("")) {
            if fs::symlink_metadata(parent).is_ok_and(|meta| !meta.is_dir()) {
                fs::remove_file(parent).unwrap();
            }
        }
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&place).unwrap(),
            Ok(_) => fs::remove_file(&place).unwrap(),
            Err(_) => {}
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
    }

    fn git(&self, args: &[&str], path: Option<&[u8]>) {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain(path.map(OsStr::from_bytes)).collect();
        self.repo.git_os(&args);
    }
}

fn pick<T>(all: &[T], number: usize) -> Option<&T> {
    all.get(number % all.len().max(1))
}

/// What is there against what the model says, for people.
fn differences<T: std::fmt::Debug + PartialEq>(real: &BTreeMap<Path, T>, model: &BTreeMap<Path, T>) -> String {
    let paths: BTreeSet<&Path> = real.keys().chain(model.keys()).filter(|path| real.get(*path) != model.get(*path)).collect();
    let line = |path: &Path| format!("{}: {:?} and not {:?}\n", String::from_utf8_lossy(path), real.get(path), model.get(path));
    paths.into_iter().map(line).collect()
}

fn read_tree(dir: &std::path::Path, below: &mut Path, files: &mut BTreeMap<Path, Node>, nested: &mut BTreeSet<Path>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let mut path = below.clone();
        path.extend_from_slice(entry.file_name().as_bytes());
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        if path == b".git" {
        } else if meta.is_symlink() {
            files.insert(path, Node::Link(fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec()));
        } else if meta.is_dir() && entry.path().join(".git").exists() {
            nested.insert(path);
        } else if meta.is_dir() {
            path.push(b'/');
            read_tree(&entry.path(), &mut path, files, nested);
        } else {
            let mode = meta.permissions().mode() & 0o7777;
            files.insert(path, Node::File { bytes: fs::read(entry.path()).unwrap(), mode });
        }
    }
}

/// The contents of all files below, wherever they are.
fn contents(dir: &std::path::Path) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        if meta.is_dir() {
            found.extend(contents(&entry.path()));
        } else if meta.is_file() {
            found.insert(fs::read(entry.path()).unwrap());
        }
    }
    found
}

struct Entry {
    mode: u32,
    id: String,
    intent: bool,
}

/// The entries of an index of version 2 or 3.
fn parse_index(bytes: &[u8]) -> Vec<(Path, Entry)> {
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let flags = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap());
    assert!(bytes.starts_with(b"DIRC") && (2..=3).contains(&number(4)));
    let mut at = 12;
    (0..number(8))
        .map(|_| {
            let id = verdone_core::id::hex(&bytes[at + 40..at + 60]);
            let extended = flags(at + 60) & 0x4000 != 0;
            let name_at = at + if extended { 64 } else { 62 };
            let length = bytes[name_at..].iter().position(|byte| *byte == 0).unwrap();
            let intent = extended && flags(at + 62) & 0x2000 != 0;
            let entry = Entry { mode: number(at + 24), id, intent };
            let name = bytes[name_at..name_at + length].to_vec();
            at += (name_at - at + length + 8) & !7;
            (name, entry)
        })
        .collect()
}

const CHILD_TOP: &str = "GIT_MODULE_RESTORE_TOP";
const CHILD_HOME: &str = "GIT_MODULE_RESTORE_HOME";
const CHILD_TO: &str = "GIT_MODULE_RESTORE_TO";

/// This test binary again, with nothing to do but one restore.
fn restore_in_a_process(repo: &Repo, to: &Checkpoint) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "history::a_restore_can_be_done_by_another_process"]);
    command.env(CHILD_TOP, repo.path("")).env(CHILD_HOME, repo.home()).env(CHILD_TO, to.id.as_str());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn restore_in_a_process_that_is_killed(repo: &Repo, to: &Checkpoint, after: Duration) {
    let mut child = restore_in_a_process(repo, to);
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    // Git processes that it had started end by themselves: nobody feeds them any more.
    let mut marker = OsString::from(format!("{CHILD_TOP}="));
    marker.push(repo.path(""));
    while !processes_with_env(marker.to_str().unwrap()).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_restore_can_be_done_by_another_process() {
    if let Some(top) = std::env::var_os(CHILD_TOP) {
        let home = std::path::PathBuf::from(std::env::var_os(CHILD_HOME).unwrap());
        let git = Git::open_with(top.as_ref(), &environment(&home)).unwrap();
        let to = git.read_checkpoint(&Oid(std::env::var(CHILD_TO).unwrap())).unwrap();
        git.restore(&to, &RestoreRules { skip: PathSet::default(), aside: home.join("aside") }).unwrap();
        return;
    }
    let repo = Repo::new();
    let checkpoint = repo.checkpoint();
    repo.write("a.txt", "agent");
    repo.write("new", "agent");
    repo.checkpoint();
    assert!(restore_in_a_process(&repo, &checkpoint).wait().unwrap().success());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

fn play(born: bool, ops: &[Op]) {
    let mut world = World::new(born);
    for op in ops {
        world.take(op);
    }
    world.take(&Op::RollBack(0));
    world.take(&Op::Undo);
}

/// A failure shows the seed, and the variable of that name plays it again.
#[expect(clippy::print_stderr, reason = "shown only when the test fails")]
fn config() -> ProptestConfig {
    let given = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    eprintln!("PROPTEST_RNG_SEED={seed}");
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { cases: 40, max_shrink_iters: 150, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_comes_back_as_the_model_says(born in prop::bool::weighted(0.8), ops in prop::collection::vec(op(), 1..40)) {
        play(born, &ops);
    }
}
