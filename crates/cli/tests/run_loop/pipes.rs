//! Pipes, links to pipes and folders that an agent puts where we read files: nothing is waited for.

use crate::world::{ONE, Settings, World, always};

/// What comes into a file's place.
const KINDS: [&str; 3] = ["mkfifo \"$1\"", "mkfifo \"$1-pipe\"; ln -s \"$PWD/$1-pipe\" \"$1\"", "mkdir \"$1\""];
/// Read by us, and nothing that git could not do without.
const OURS: [&str; 15] = [
    ".git/logs/refs/stash",
    ".git/worktrees/x/HEAD",
    ".git/worktrees/x/gitdir",
    ".git/worktrees/x/verdone.json",
    ".git/refs/heads/other",
    ".git/refs/tags/other",
    ".git/verdone-notes.lock",
    ".git/verdone.lock",
    ".git/verdone-last-run",
    ".git/info/exclude",
    ".git/config",
    ".verdone/config.toml",
    ".verdone/guardrails.md",
    ".verdone/prompts/building.md",
    ".verdone/approvals.json",
];
/// Without these a repository is none, or is in the middle of something.
const GITS: [&str; 4] = [".git/packed-refs", ".git/HEAD", ".git/index", ".git/sequencer/todo"];

fn world(kind: &str, paths: &[&str]) -> World {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::folder(&always("{ create = \"a\" }, { run = 'sh .verdone/put.sh || exit 0' }"), &settings);
    let put = format!("put() {{ mkdir -p \"${{1%/*}}\"; rm -rf \"$1\"; {kind}; }}\n");
    let puts: Vec<String> = paths.iter().map(|path| format!("put {path}\n")).collect();
    world.sandbox.write(".verdone/put.sh", put + &puts.concat());
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.repo();
    world
}

#[test]
fn whatever_is_put_where_we_read_the_run_ends_and_so_does_the_next() {
    for kind in KINDS {
        let world = world(kind, &OURS);
        world.run(0);
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "{kind}");
        assert_eq!(world.last("run_stopped")["exit_code"], 0, "{kind}");
        world.verdone(&["status"]).assert_code(0);
        world.verdone(&["stop"]);
        world.verdone(&["run"]);
    }
}

#[test]
fn whatever_is_put_where_git_reads_the_run_ends_and_so_does_the_next() {
    for kind in KINDS {
        for path in GITS {
            let world = world(kind, &[path]);
            let output = world.verdone(&["run"]);
            assert!((0..=4).contains(&output.code), "{path} {kind}: {}", output.transcript());
            let again = world.verdone(&["run"]);
            assert!((0..=4).contains(&again.code), "{path} {kind}: {}", again.transcript());
        }
    }
}
