//! Where a run may start, and where it works.

use verdone_testkit::Signal;

use super::{add_commit, assert_refused};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, VERDONE, World, text};

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
fn an_operation_in_progress_blocks_no_run_and_landing_waits_for_its_end() {
    for (operation, commands) in [
        ("a merge", &[&["merge", "side"][..]][..]),
        ("a cherry-pick", &[&["cherry-pick", "side"]]),
        ("a revert", &[&["revert", "--no-edit", "HEAD~1"]]),
        ("a bisect", &[&["bisect", "start"]]),
        ("an am", &[&["format-patch", "--quiet", "-1", "-o", "../tmp", "side"], &["am", "../tmp/0001-README.md.patch"]]),
    ] {
        let world = World::new(ONE, HONEST);
        make_side(&world);
        for command in commands {
            drop(world.sandbox.run("git", *command));
        }
        let before = (world.head(), world.git(&["status", "--porcelain"]));
        let output = world.run(0);
        let said = format!("cannot land: {operation} is in progress");
        assert!(output.stdout.contains(&format!("Not landed: {said}")), "{}", output.stdout);
        assert_eq!((world.head(), world.git(&["status", "--porcelain"])), before, "{operation}");

        let name = operation.split(' ').next_back().unwrap();
        let hint = if name == "bisect" { "git bisect reset".to_owned() } else { format!("git {name} --abort") };
        let refused = world.verdone(&["land"]);
        refused.assert_code(4);
        assert!(refused.stderr.contains(&said) && refused.stderr.contains(&hint), "{}", refused.stderr);
        let out: Vec<&str> = hint.strip_prefix("git ").unwrap().split(' ').collect();
        world.git(&out);
        world.verdone(&["land"]).assert_code(0);
        assert_eq!(world.subjects()[0], "feat(US-001): Write a", "{operation}");
    }
}

#[test]
fn a_rebase_in_progress_blocks_no_run_and_is_named_by_landing() {
    let world = World::new(ONE, HONEST);
    make_side(&world);
    drop(world.sandbox.run("git", ["rebase", "side"]));
    let before = (world.head(), world.git(&["rev-parse", "main"]), world.git(&["status", "--porcelain"]));
    world.run(0);
    assert_eq!((world.head(), world.git(&["rev-parse", "main"]), world.git(&["status", "--porcelain"])), before);
    let refused = world.verdone(&["land"]);
    refused.assert_code(4);
    assert!(refused.stderr.contains("a rebase is in progress"), "{}", refused.stderr);
    assert!(refused.stderr.contains("git rebase --abort"), "{}", refused.stderr);
}

/// Creates a branch whose commit conflicts with main.
fn make_side(world: &World) {
    world.git(&["branch", "side"]);
    add_commit(world, "README.md", "ours\n");
    add_commit(world, "README.md", "ours again\n");
    world.git(&["switch", "--quiet", "side"]);
    add_commit(world, "README.md", "theirs\n");
    world.git(&["switch", "--quiet", "main"]);
}

#[test]
fn linked_work_trees_run_side_by_side_with_refs_and_notes_of_their_own() {
    let script = "[[turn]]\nsteps = [{ run = \"test ! -f ../tmp/hang || { rm ../tmp/hang; echo in-the-turn; sleep 60; }\" }, { create = \"a\" }]\n";
    let world = World::new(ONE, script);
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    world.sandbox.write("../tmp/hang", "");
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);

    let second = world.sandbox.verdone(VERDONE, ["run"]);
    second.assert_code(1);
    assert!(second.stderr.contains("another run is active in this work tree"), "{}", second.stderr);
    world.by_user(|| world.sandbox.verdone(VERDONE, ["-C", "../side", "run"])).assert_code(0);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);

    let refs = world.git(&["for-each-ref", "--format=%(refname)", "refs/heads/verdone"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
    assert!(world.git(&["notes", "--ref=verdone", "show", "side"]).contains("\"proof\": \"verified\""));
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
    let world = World::folder("", &Settings::default());
    std::fs::remove_dir_all(world.sandbox.path(".verdone")).unwrap();
    world.sandbox.write("sub/PLAN.md", "# Plan\n\n- [ ] US-001: Write a\n");
    world.sandbox.repo();
    let agent = "mkdir -p src; touch src/a; echo top > ../top.md";
    let output = world.verdone(&["-C", "sub", "run", "--agent-command", agent, "--check", "test -f src/a", "--red-baseline"]);
    output.assert_code(0);
    world.verdone(&["-C", "sub", "land"]).assert_code(0);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "sub/PLAN.md\nsub/src/a\ntop.md");
}
