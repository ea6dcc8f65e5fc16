//! Others beside the run: work trees of the repository in which the user goes on working with git, an update of the program.

use crate::signals::wait_for_file;
use crate::world::{ONE, PATIENCE, TWO, VERDONE, World};

const WAITS: &str = "[[turn]]\nsteps = [{ say = \"at work\" }, { run = \"until test -f ../tmp/end; do sleep 0.02; done\" }, { create = \"a\" }]\n";
/// Holds the locks of its refs until it may go on.
const SLOW: &str = "case \"$PWD\" in */other) test \"$1\" = prepared || exit 0; : > ../tmp/held; until test -f ../tmp/go; do sleep 0.02; done;; esac";

#[test]
fn a_slow_commit_in_another_work_tree_is_not_disturbed() {
    let world = World::new(ONE, WAITS);
    world.git(&["worktree", "add", "--quiet", "-b", "other", "../other"]);
    world.hook("reference-transaction", SLOW);
    let run = world.start();
    run.wait_for("at work", PATIENCE);
    let commit = world.sandbox.spawn("git", ["-C", "../other", "commit", "--quiet", "--allow-empty", "-m", "mine"]);
    wait_for_file(&world, "../tmp/held");
    // As `git config` and `git pack-refs` hold them.
    let shared = [".git/packed-refs.lock", ".git/config.lock"];
    for lock in shared {
        world.sandbox.write(lock, "held by the one over there");
    }
    world.sandbox.write("../tmp/end", "");
    // Whether it can commit while the settings are locked is not asked here.
    run.wait(PATIENCE);
    for lock in shared {
        assert!(world.has(lock), "{lock} was taken from its holder");
        std::fs::remove_file(world.sandbox.path(lock)).unwrap();
    }
    assert!(world.has(".git/refs/heads/other.lock"), "it is still in its hook");
    world.sandbox.write("../tmp/go", "");
    commit.wait(PATIENCE).assert_code(0);
    assert_eq!(world.git(&["log", "-1", "--format=%s", "other"]), "mine");
}

#[test]
fn a_run_whose_program_is_replaced_meanwhile_goes_on() {
    let update = "{ run = 'cp ../tmp/verdone ../tmp/new && mv ../tmp/new ../tmp/verdone' }";
    let script = format!(
        "[[turn]]\nstory = \"US-001\"\nsteps = [{update}, {{ create = \"a\" }}]\n[[turn]]\nstory = \"US-002\"\nsteps = [{{ create = \"b\" }}]\n"
    );
    let world = World::new(TWO, &script);
    let program = world.sandbox.path("../tmp/verdone");
    std::fs::copy(VERDONE, &program).unwrap();
    world.sandbox.verdone(&program, ["run"]).assert_code(0);
    assert_eq!(world.subjects().len(), 3, "{:?}", world.subjects());
}
