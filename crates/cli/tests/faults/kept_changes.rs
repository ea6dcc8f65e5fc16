//! The user's own changes when `run --allow-dirty`, its recovery or `undo` is killed or fails: in the end they are in the tree as
//! they were, byte for byte and staged as they were, or nowhere in it, and the one command that brings them back is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use verdone_testkit::{Output, Sandbox};

use crate::crash_matrix::{Moment, THREADS, moments};
use crate::world::{PATIENCE, VERDONE, in_parallel};

const PLAN: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n";
const CONFIG: &str = "[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n\
                      [limits]\ngrace = \"200ms\"\nsnapshot_file_bytes = 100000\n";
const SCRIPT: &str = "[[turn]]\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n";
/// What is the story's, and none of the user's.
const OF_THE_STORY: [&str; 2] = ["a", "PLAN.md"];

/// A repository in which everything is changed that can be.
struct Dirty {
    sandbox: Sandbox,
}

/// What git says, what the index holds, and every file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    status: Vec<String>,
    index: Vec<String>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Dirty {
    fn new() -> Self {
        static FIRST: LazyLock<Dirty> = LazyLock::new(Dirty::make);
        FIRST.copy()
    }

    /// After a complete run.
    fn after_a_run() -> Self {
        static FIRST: LazyLock<Dirty> = LazyLock::new(|| {
            let world = Dirty::new();
            world.run().assert_code(0);
            world
        });
        FIRST.copy()
    }

    fn make() -> Self {
        let sandbox = Sandbox::new().deadline(PATIENCE);
        sandbox.write("PLAN.md", PLAN);
        sandbox.write(".verdone/config.toml", CONFIG);
        sandbox.write(".verdone/script.toml", SCRIPT);
        for name in ["edited", "staged", "partly", "deleted", "removed"] {
            sandbox.write(name, format!("{name}\n1\n2\n"));
        }
        sandbox.repo();
        sandbox.write("edited", b"mine \xff\0\r\n");
        sandbox.write("staged", "mine\n");
        sandbox.write("partly", "mine\n");
        sandbox.write("added", "mine\n");
        sandbox.git(["add", "staged", "partly", "added"]);
        sandbox.write("partly", "mine\nand more\n");
        fs::remove_file(sandbox.path("deleted")).unwrap();
        sandbox.git(["rm", "--quiet", "removed"]);
        sandbox.write("loose", "untracked\n");
        Self { sandbox }
    }

    fn copy(&self) -> Self {
        let sandbox = Sandbox::new().deadline(PATIENCE);
        let copied = Command::new("cp").arg("-a").arg(self.sandbox.path(".")).arg(sandbox.work()).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy the project");
        Self { sandbox }
    }

    fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(VERDONE, arguments)
    }

    fn run(&self) -> Output {
        self.verdone(&["run", "--allow-dirty"])
    }

    fn with_fault(&self, fault: &str, arguments: &[&str]) -> Output {
        self.sandbox.run("env", [&[format!("VERDONE_FAULT={fault}").as_str(), VERDONE], arguments].concat())
    }

    fn traced(&self, arguments: &[&str]) -> Vec<Moment> {
        self.with_fault("trace=../tmp/trace", arguments).assert_code(0);
        moments(&self.sandbox.read("../tmp/trace"))
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.sandbox.git(arguments)
    }

    /// Everything that is there.
    fn seen(&self) -> Seen {
        let lines = |arguments: &[&str]| self.git(arguments).split('\0').map(str::to_owned).collect();
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(self.sandbox.work()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                files.insert(PathBuf::from(entry.file_name()), fs::read(entry.path()).unwrap());
            }
        }
        let status = lines(&["status", "--porcelain=v2", "-z", "--untracked-files=all"]);
        Seen { status, index: lines(&["ls-files", "-s", "-z"]), files }
    }

    /// The same without what is the story's.
    fn mine(&self) -> Seen {
        let mut seen = self.seen();
        let theirs = |line: &String| OF_THE_STORY.iter().any(|name| line.ends_with(&format!("\t{name}")));
        seen.index.retain(|line| !theirs(line));
        seen.files.retain(|path, _| !OF_THE_STORY.iter().any(|name| path == Path::new(name)));
        seen
    }

    /// The journal of the latest run.
    fn journal(&self) -> PathBuf {
        let entries = fs::read_dir(self.sandbox.path(".verdone/runs")).unwrap();
        let newest = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).max();
        newest.expect("there was a run").join("journal.jsonl")
    }

    fn last(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.journal()).unwrap();
        let mut events = text.lines().rev().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name} in the journal"))
    }
}

/// The moment after the turn, as `POINT:N`.
fn end_of_the_turn() -> String {
    let world = Dirty::new();
    world.traced(&["run", "--allow-dirty"]);
    let trace = world.sandbox.read("../tmp/trace");
    let (before, _) = trace.split_once("# Turn\n").unwrap();
    format!("step-done:{}", before.matches("step-done\n").count() + 1)
}

/// One of each point.
fn one_of_each(moments: impl IntoIterator<Item = Moment>) -> Vec<Moment> {
    let mut points = BTreeSet::new();
    moments.into_iter().filter(|moment| points.insert(moment.point.clone())).collect()
}

#[test]
fn killed_while_the_changes_leave_or_come_back_the_next_run_brings_them_through() {
    let before = Dirty::new().mine();
    let all = Dirty::new().traced(&["run", "--allow-dirty"]);
    let of = |effect: &str| one_of_each(all.iter().filter(|moment| moment.effect == effect).cloned());
    let cases: Vec<Moment> = ["KeepChanges", "SetAside", "PutBack"].into_iter().flat_map(of).collect();
    assert!(cases.len() > 20, "{cases:?}");
    in_parallel(&cases, THREADS, |moment| {
        let world = Dirty::new();
        world.with_fault(&format!("kill@{}:{}", moment.point, moment.nth), &["run", "--allow-dirty"]).assert_code(-9);
        let output = world.run();
        output.assert_code(0);
        assert_eq!(world.mine(), before, "{}", output.transcript());
        assert_eq!(world.sandbox.read("a"), "one\n");
        assert_eq!(world.git(&["log", "--format=%s"]), "feat(US-001): Write a\ninitial", "{}", output.transcript());
    });
}

#[test]
fn an_undo_that_is_killed_is_taken_back_by_the_next_command() {
    let first = Dirty::after_a_run();
    let (before, mine) = (first.seen(), first.mine());
    let all = first.traced(&["undo"]);
    let after = first.seen();
    assert_ne!(before, after);
    assert_eq!(first.mine(), mine);
    let interrupted = AtomicUsize::new(0);
    let cases: Vec<(usize, Moment)> = one_of_each(all).into_iter().enumerate().collect();
    in_parallel(&cases, THREADS, |(number, moment)| {
        let world = Dirty::after_a_run();
        world.with_fault(&format!("kill@{}:{}", moment.point, moment.nth), &["undo"]).assert_code(-9);
        let by_undo = number % 4 != 0;
        let output = if by_undo { world.verdone(&["undo"]) } else { world.run() };
        output.assert_code(0);
        assert_eq!(world.mine(), mine, "{}", output.transcript());
        let told = output.stdout.to_lowercase().contains("an undo was interrupted; the work tree is as it was before it");
        interrupted.fetch_add(usize::from(told), Ordering::Relaxed);
        if by_undo && told {
            assert_eq!(world.seen(), before, "{}", output.transcript());
        } else if by_undo {
            assert!([&before, &after].contains(&&world.seen()), "{}", output.transcript());
        }
        // Whatever came of it, another one works.
        if by_undo {
            world.verdone(&["undo"]).assert_code(0);
            assert_eq!(world.mine(), mine);
        }
    });
    let interrupted = interrupted.into_inner();
    assert!(interrupted >= 8, "only {interrupted} of {} were in the middle", cases.len());
}

#[test]
fn an_undo_that_fails_leaves_everything_as_it_was() {
    let first = Dirty::after_a_run();
    let before = first.seen();
    let all = first.traced(&["undo"]);
    let can_fail = |moment: &Moment| moment.point.starts_with("restore-") && moment.point != "restore-done";
    let cases: Vec<Moment> = one_of_each(all.into_iter().filter(can_fail));
    assert!(cases.len() > 3, "{cases:?}");
    in_parallel(&cases, THREADS, |moment| {
        let world = Dirty::after_a_run();
        let output = world.with_fault(&format!("fail=EIO@{}:{}", moment.point, moment.nth), &["undo"]);
        output.assert_code(1);
        assert_eq!(world.seen(), before, "{}", output.transcript());
        world.last("undo_taken_back");
        world.verdone(&["undo"]).assert_code(0);
        world.verdone(&["undo"]).assert_code(0);
        assert_eq!(world.seen(), before);
    });
}

#[test]
fn an_interrupted_undo_is_not_taken_back_over_newer_commits_and_never_pruned() {
    let world = Dirty::after_a_run();
    world.with_fault("kill@restore-done:1", &["undo"]).assert_code(-9);
    let pruned = world.verdone(&["prune", "--keep", "0"]);
    pruned.assert_code(0);
    let before = world.last("undo_started")["before"]["id"].as_str().unwrap().to_owned();
    assert!(world.git(&["rev-list", "--glob=refs/verdone/*"]).contains(&before), "{}", pruned.transcript());
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "newer"]);
    let newer = world.git(&["rev-parse", "HEAD"]);
    let undo = world.verdone(&["undo"]);
    undo.assert_code(4);
    assert!(undo.stderr.contains("an undo was interrupted, and the branch has moved since"), "{}", undo.stderr);
    assert!(undo.stderr.contains(&before[..7]), "{}", undo.stderr);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), newer);
    world.git(&["reset", "--quiet", "--soft", "HEAD^"]);
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.seen(), Dirty::after_a_run().seen());
}

#[test]
fn changes_do_not_come_onto_an_attempt_that_was_left_even_if_the_recovery_is_killed() {
    let world = Dirty::new();
    world.with_fault(&format!("kill@{}", end_of_the_turn()), &["run", "--allow-dirty"]).assert_code(-9);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "the user's"]);
    world.with_fault("kill@recover-settled:1", &["run", "--allow-dirty"]).assert_code(-9);
    world.last("attempt_left");
    let output = world.verdone(&["run"]);
    assert!(output.stdout.contains("were not put back (the branch has moved since"), "{}", output.transcript());
    assert_eq!(world.sandbox.read("edited"), "edited\n1\n2\n", "{}", output.transcript());
}

#[test]
fn a_large_file_is_not_moved_away_for_the_changes_to_come_back() {
    let world = Dirty::new();
    world.sandbox.write_script(".verdone/hooks/finished", "#!/bin/sh\nhead -c 100001 /dev/zero > large\n");
    let output = world.run();
    output.assert_code(0);
    assert_eq!(fs::metadata(world.sandbox.path("large")).unwrap().len(), 100_001);
    assert!(output.stdout.contains("Your changes were not put back: "), "{}", output.transcript());
    assert!(output.stdout.contains("too large to snapshot: large"), "{}", output.transcript());
    let command = world.last("changes_kept")["command"].as_str().unwrap().to_owned();
    world.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(world.sandbox.read("partly"), "mine\nand more\n");
}

#[test]
fn changes_that_a_damaged_journal_forgot_are_found_under_the_runs_ref() {
    let moment = end_of_the_turn();
    for mended_before in [false, true] {
        let world = Dirty::new();
        world.with_fault(&format!("kill@{moment}"), &["run", "--allow-dirty"]).assert_code(-9);
        let path = world.journal();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"changes_set_aside\"", "\"changes_set_")).unwrap();
        if mended_before {
            world.with_fault("kill@recover-begin:1", &["run"]).assert_code(-9);
        }
        let output = world.verdone(&["run"]);
        assert!(output.stdout.contains("get them with: git stash apply --index "), "{}", output.transcript());
        let pruned = world.verdone(&["prune", "--keep", "0"]);
        assert!(pruned.stdout.contains("keeps uncommitted changes of yours"), "{}", pruned.transcript());
        let (_, command) = output.stdout.split_once("git stash apply --index ").unwrap();
        world.git(&["stash", "apply", "--quiet", "--index", command.split_whitespace().next().unwrap()]);
        assert_eq!(world.mine(), Dirty::new().mine(), "{}", output.transcript());
    }
}
