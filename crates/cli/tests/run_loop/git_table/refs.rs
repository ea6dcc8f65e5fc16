//! Other branches, tags and the stash are reported and never touched; what was kept and is gone is said to be gone.

use super::SHORT;
use crate::world::{HONEST, ONE, World, always};

fn with_refs(script: &str) -> World {
    let world = World::with(ONE, script, &SHORT);
    world.git(&["branch", "mine"]);
    world.git(&["tag", "v1"]);
    for text in ["older", "newer"] {
        world.sandbox.write("README.md", text);
        world.git(&["stash", "--quiet"]);
    }
    world
}

#[test]
fn what_an_agent_does_to_other_refs_is_told_and_left_so() {
    let steps = "{ create = \"a\" }, { run = 'git stash drop --quiet stash@{1}; git branch --quiet -D mine; git branch made; git tag -d v1' }";
    let world = with_refs(&always(steps));
    let (dropped, head) = (world.git(&["rev-parse", "stash@{1}"]), world.head());
    let output = world.run(0);
    let told = [
        format!("Left as it is: branch mine was deleted; it was at {head}"),
        format!("Left as it is: branch made was made at {}", &head[..10]),
        format!("Left as it is: tag v1 was deleted; it was at {head}"),
        format!("Left as it is: a stash entry is gone; to have it back: git stash store {dropped}"),
    ];
    for line in &told {
        assert!(output.stdout.contains(line), "{line}\n{}", output.stdout);
    }
    assert_eq!(world.last("verified")["refs_moved"].as_array().unwrap().len(), 4);
    let report = world.verdone(&["report"]).stdout;
    assert!(report.contains(&dropped), "{report}");
    assert_eq!(world.git(&["branch", "--format=%(refname:short)"]), "made\nmain", "nothing was put back");

    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    world.git(&["stash", "store", &dropped]);
    assert_eq!(world.git(&["show", "stash@{0}:README.md"]), "older");
}

#[test]
fn what_a_crashed_turn_did_to_other_refs_is_told_at_its_rollback() {
    let world = with_refs(&always("{ run = 'git branch --quiet -D mine' }, { crash = 3 }"));
    let output = world.verdone(&["run"]);
    assert!(output.stdout.contains("branch mine was deleted; it was at"), "{}", output.transcript());
}

#[test]
fn the_users_stash_and_branches_are_the_same_after_a_run_and_its_undo() {
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }"), 4)] {
        let world = with_refs(&script);
        let mine = || {
            world.git(&["for-each-ref", "refs/heads/mine", "refs/tags", "refs/stash"])
                + &world.git(&["stash", "list", "--format=%H %gd %s"])
        };
        let before = mine();
        let output = world.run(code);
        assert!(!output.stdout.contains("Left as it is"), "{}", output.stdout);
        assert_eq!(mine(), before);
        world.verdone(&["undo"]).assert_code(0);
        assert_eq!(mine(), before);
    }
}

#[test]
fn an_undo_of_what_was_pruned_and_collected_says_so_and_changes_nothing() {
    for (script, code, hint) in [(HONEST.to_owned(), 0, "git revert"), (always("{ create = \"x\" }"), 4, "verdone checkpoints")] {
        let world = World::with(ONE, &script, &SHORT);
        world.run(code);
        world.verdone(&["prune", "--keep", "0"]).assert_code(0);
        world.git(&["reflog", "expire", "--expire=now", "--all"]);
        world.git(&["gc", "--quiet", "--prune=now"]);
        let head = world.head();
        let output = world.verdone(&["undo"]);
        output.assert_code(4);
        assert!(output.stderr.contains("cannot be undone any more: what was there before is not kept"), "{}", output.stderr);
        assert!(output.stderr.contains("verdone prune let go of it") && output.stderr.contains(hint), "{}", output.stderr);
        assert_eq!(world.head(), head);
        world.assert_clean();
    }
}

#[test]
fn settings_that_an_agent_replaces_by_a_link_or_a_file_come_back() {
    for (replace, told) in [
        ("mv .verdone ../tmp/moved; ln -s ../tmp/moved .verdone", ".verdone"),
        ("mv .verdone hidden; ln -s hidden .verdone", ".verdone"),
        ("rm -r .verdone; mkdir ../tmp/empty; ln -s ../tmp/empty .verdone", ".verdone"),
        ("rm -r .verdone; echo a file > .verdone", ".verdone"),
        ("mv .verdone/runs ../tmp/runs; ln -s ../../tmp/runs .verdone/runs", ".verdone/runs"),
    ] {
        let world = World::with(ONE, &always(&format!("{{ create = \"a\" }}, {{ run = '{replace}' }}")), &SHORT);
        let settings = world.sandbox.read(".verdone/config.toml");
        let output = world.run(0);
        assert!(output.stdout.contains(&format!("Put back, not the agent's to write: {told}")), "{replace}: {}", output.stdout);
        for dir in [".verdone", ".verdone/runs"] {
            assert!(std::fs::symlink_metadata(world.sandbox.path(dir)).unwrap().is_dir(), "{replace}");
        }
        assert_eq!(world.sandbox.read(".verdone/config.toml"), settings, "{replace}");
        assert_eq!(world.events().last().unwrap()["event"], "run_stopped", "{replace}");
        assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na", "{replace}");
        world.assert_clean();
    }
}
