//! Where a run may begin, and where it works.

use verdone_testkit::Signal;

use super::{SHORT, add_commit, assert_refused};
use crate::world::{HONEST, ONE, PATIENCE, Settings, VERDONE, World, always, text};

#[test]
fn no_repository_and_a_bare_one_say_what_to_do() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    assert_refused(&world.verdone(&["run"]), "is not inside a git repository", "hint: git init");
    world.git(&["init", "--quiet", "--bare", "bare.git"]);
    assert_refused(
        &world.verdone(&["-C", "bare.git", "run"]),
        "is a bare git repository: there is no work tree",
        "work in a clone: git clone REPOSITORY DIR",
    );
}

#[test]
fn the_default_branch_is_a_warning_and_another_one_is_not() {
    let world = World::new(ONE, HONEST);
    let output = world.run(0);
    assert!(output.stdout.contains("commits go to the default branch main"), "{}", output.stdout);
    let world = World::new(ONE, HONEST);
    world.git(&["switch", "--quiet", "--create", "work"]);
    let output = world.run(0);
    assert!(!output.stdout.contains("default branch"), "{}", output.stdout);
}

#[test]
fn each_operation_in_progress_is_refused_by_its_name_with_the_way_out() {
    for (operation, commands) in [
        ("a merge", &[&["merge", "side"][..]][..]),
        ("a rebase", &[&["rebase", "side"]]),
        ("a cherry-pick", &[&["cherry-pick", "side"]]),
        ("a revert", &[&["revert", "--no-edit", "HEAD~1"]]),
        ("a bisect", &[&["bisect", "start"]]),
        ("an am", &[&["format-patch", "--quiet", "-1", "-o", "../tmp", "side"], &["am", "../tmp/0001-README.md.patch"]]),
    ] {
        let world = World::new(ONE, HONEST);
        world.git(&["branch", "side"]);
        add_commit(&world, "README.md", "ours\n");
        add_commit(&world, "README.md", "ours again\n");
        world.git(&["switch", "--quiet", "side"]);
        add_commit(&world, "README.md", "theirs\n");
        world.git(&["switch", "--quiet", "main"]);
        for command in commands {
            drop(world.sandbox.run("git", *command));
        }
        let name = operation.split(' ').next_back().unwrap();
        let hint = if name == "bisect" { "git bisect reset".to_owned() } else { format!("git {name} --abort") };
        assert_refused(&world.verdone(&["run"]), &format!("{operation} is in progress"), &hint);
        let out: Vec<&str> = hint.strip_prefix("git ").unwrap().split(' ').collect();
        world.git(&out);
        world.run(0);
    }
}

#[test]
fn linked_work_trees_run_side_by_side_with_refs_and_notes_of_their_own() {
    let script = "[[turn]]\nsteps = [{ run = \"test ! -f ../tmp/hang || { rm ../tmp/hang; echo in-the-turn; sleep 60; }\" }, { create = \"a\" }]\n";
    let world = World::new(ONE, script);
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    world.sandbox.write("../tmp/hang", "");
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);

    let second = world.verdone(&["run"]);
    second.assert_code(1);
    assert!(second.stderr.contains("another run works in this work tree"), "{}", second.stderr);
    world.verdone(&["-C", "../side", "run"]).assert_code(0);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);

    let refs = world.git(&["for-each-ref", "--format=%(refname)", "refs/verdone"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
    assert!(world.git(&["notes", "--ref=verdone", "show", "side"]).contains("\"verdict\": \"verified\""));
    world.run(0);
    for branch in ["main", "side"] {
        let blob = world.git(&["notes", "--ref=verdone", "list", branch]);
        let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
        assert_eq!(text(&note["tree"]), world.git(&["rev-parse", &format!("{branch}^{{tree}}")]), "{branch}");
    }
    world.assert_clean();
}

#[test]
fn without_settings_checks_run_where_the_run_was_started_and_the_whole_tree_is_committed() {
    let world = World { sandbox: verdone_testkit::Sandbox::new() };
    world.sandbox.write("sub/PLAN.md", "# Plan\n\n- [ ] US-001: Write a\n");
    world.sandbox.repo();
    let output = world.sandbox.verdone(
        VERDONE,
        ["-C", "sub", "run", "--agent-command", "touch a; echo top > ../top", "--check", "test -f a", "--red-baseline"],
    );
    output.assert_code(0);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "sub/PLAN.md\nsub/a\ntop");
}

#[test]
fn before_the_first_commit_a_story_is_the_root_and_its_undo_returns_to_nothing() {
    let world = World::folder(HONEST, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet"]);
    world.run(0);
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "1");
    world.verdone(&["undo"]).assert_code(0);
    assert_ne!(world.sandbox.run("git", ["rev-parse", "--verify", "--quiet", "HEAD"]).code, 0, "unborn again");
    assert!(!world.has("a"));
    world.sandbox.write(".verdone/script.toml", always("{ create = \"x\" }"));
    world.run(4);
    assert_ne!(world.sandbox.run("git", ["rev-parse", "--verify", "--quiet", "HEAD"]).code, 0, "and after a rollback");
}
