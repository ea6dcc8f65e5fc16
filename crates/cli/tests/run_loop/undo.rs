//! Taking back, and taking back the taking back.

use crate::world::{HONEST, ONE, Settings, World, always};

#[test]
fn an_undone_commit_leaves_the_tree_as_it_was_before_the_story() {
    let world = World::new(ONE, HONEST);
    let base = world.head();
    world.run(0);
    let done = world.head();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.head(), base);
    assert_eq!(world.plan(), ONE);
    assert!(!world.has("a"));
    world.assert_clean();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.head(), done);
    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"));
    world.assert_clean();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.head(), base);
}

#[test]
fn an_undone_rollback_brings_the_attempt_back_file_for_file() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::with(
        ONE,
        &always("{ create = \"x\", text = \"work\" }, { delete = \"README.md\" }, { run = \"git add x\" }"),
        &settings,
    );
    world.run(4);
    world.assert_clean();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.git(&["status", "--porcelain"]), " D README.md\nA  x");
    assert_eq!(world.sandbox.read("x"), "work");
    world.verdone(&["undo"]).assert_code(0);
    world.assert_clean();
}

#[test]
fn undo_is_refused_when_the_branch_has_moved_on() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "newer"]);
    let newer = world.head();
    let output = world.verdone(&["undo"]);
    output.assert_code(4);
    assert!(output.stderr.contains("git revert"), "{}", output.stderr);
    assert_eq!(world.head(), newer);
}

#[test]
fn what_the_user_did_since_is_kept_by_an_undo() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.sandbox.write("a", "edited since");
    world.verdone(&["undo"]).assert_code(0);
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.sandbox.read("a"), "edited since");
}

#[test]
fn what_the_user_changed_since_and_no_story_touched_stays_in_the_tree() {
    let world = World::new(ONE, HONEST);
    world.sandbox.write("tracked", "before\n");
    world.git(&["add", "tracked"]);
    world.git(&["commit", "--quiet", "-m", "tracked"]);
    world.run(0);
    world.sandbox.write("tracked", "mine\n");
    world.sandbox.write("new", "mine too\n");
    let output = world.verdone(&["undo"]);
    output.assert_code(0);
    assert!(!world.has("a"), "{}", output.stdout);
    assert_eq!((world.sandbox.read("tracked"), world.sandbox.read("new")), ("mine\n".to_owned(), "mine too\n".to_owned()));
    assert_eq!(world.git(&["status", "--porcelain"]), " M tracked\n?? new");
}

#[test]
fn there_is_nothing_to_undo_before_the_first_run() {
    let world = World::new(ONE, HONEST);
    world.verdone(&["undo"]).assert_code(2);
}
