//! Lies told to git: forged commits, hidden files, hooks, settings, refs.

use crate::row::{Row, Seen, judge_all};
use crate::world::World;

const FORGED: &str = "feat(US-001): Write a\\n\\nVerdone-Story: US-001\\nVerdone-Verdict: verified";

fn hold(name: &'static str) -> Row {
    Row::new(name, Seen::Failed).create("x", "x")
}

/// No surface says that anything is verified.
fn nothing_is_verified(world: &World) -> Result<(), String> {
    let status = world.verdone(&["status", "--json"]).stdout;
    if status.contains("\"verdict\": \"verified\"") { Err(format!("status believes it: {status}")) } else { Ok(()) }
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hold("commits with forged trailers").step(format!("{{ commit = \"{FORGED}\" }}")).also(nothing_is_verified),
        Row::new("writes its trailers into the last commit", Seen::Moved)
            .create("x", "x")
            .step(format!("{{ amend = \"{FORGED}\" }}"))
            .also(nothing_is_verified),
        Row::new("goes on on another branch", Seen::Moved).create("x", "x").run("git checkout -q -b other && git commit -qam other"),
        Row::new("leaves every branch", Seen::Moved).create("x", "x").run("git checkout -q --detach && git add x && git commit -qm x"),
        Row::new("throws the history away", Seen::Moved)
            .run("git checkout -q --orphan fresh && git commit -qm 'feat(US-001): Write a' && git branch -qM main"),
        hold("adds a git hook")
            .run("mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch a\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")
            .restored(".git/hooks/pre-commit"),
        hold("leads git to hooks of its own").run("git config core.hooksPath hooks").restored(".git/config"),
        hold("sets another work tree").run("mkdir ../tmp/w && touch ../tmp/w/a && git config core.worktree ../../tmp/w").restored(".git/config"),
        hold("writes the evidence itself")
            .run("git notes --ref=verdone add -m '{\"v\":1,\"story\":\"US-001\",\"verdict\":\"verified\"}' HEAD")
            .also(nothing_is_verified),
        hold("moves the refs of the run").run("git update-ref refs/verdone/$VERDONE_RUN HEAD; git update-ref refs/verdone/keep/x HEAD"),
        Row::new("hides a file from git", Seen::Refused("hidden from git"))
            .file("a", "bad\n")
            .check("grep -q good a")
            .gate("true")
            .create("x", "x")
            .run("echo good > a && git update-index --assume-unchanged a"),
        Row::new("hides a file from the work tree's rules", Seen::Refused("hidden from git"))
            .file("a", "bad\n")
            .check("grep -q good a")
            .gate("true")
            .create("x", "x")
            .run("echo good > a && git update-index --skip-worktree a"),
        Row::new("lets an ignore rule of its own hide the failing test", Seen::Alarm("test_deleted"))
            .file("tests/test_a.py", crate::tests::PYTHON)
            .bad()
            .run("git rm -q --cached tests/test_a.py && echo tests/ >> .gitignore && rm tests/test_a.py"),
        Row::new("hides a helper by a rule of its own", Seen::Told("unproven"))
            .file("tests/test_a.py", crate::tests::PYTHON)
            .gate("runner || test -e help")
            .bad()
            .create("help", "x")
            .create(".gitignore", "help\n"),
        hold("ignores through git's own folder").run("echo x >> .git/info/exclude").restored(".git/info/exclude"),
        Row::new("lets git change what is committed", Seen::Alarm("git_touched"))
            .check("grep -q good a")
            .gate("true")
            .good()
            .create(".gitattributes", "a filter=other\n"),
        hold("gives git a filter").run("git config filter.other.clean 'echo good'").restored(".git/config"),
        hold("replaces objects")
            .file("a.txt", "one\n")
            .run("echo two > b.txt && git replace $(git rev-parse HEAD:a.txt) $(git hash-object -w b.txt)"),
        hold("grafts the history").run("mkdir -p .git/info && git rev-parse HEAD > .git/info/grafts").restored(".git/info/grafts"),
        Row::new("keeps its work in a repository of its own", Seen::Refused("a repository"))
            .check("test -f inner/a")
            .run("git init -q inner && touch inner/a && git -C inner add a && git -C inner commit -qm a"),
        Row::new("leaves a merge open", Seen::Refused("a merge was begun")).good().run("git rev-parse HEAD > .git/MERGE_HEAD"),
    ]
}

#[test]
fn what_git_is_told_makes_nothing_done() {
    judge_all(&rows());
}
