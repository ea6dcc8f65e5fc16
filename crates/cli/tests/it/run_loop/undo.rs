//! Undoing the last story: removing it from the run's branch, or reverting it with a commit.

use verdone_testkit::Checkout;

use crate::run_loop::land::{branch_of, commit, world};
use crate::run_loop::world::{HONEST, ONE, Settings, TWO, World, always};

/// Undoes a story and checks the message.
#[track_caller]
fn undo(world: &World, said: &str) {
    let output = world.verdone(&["undo"]);
    output.assert_code(0);
    assert!(output.stdout.contains(said), "{}", output.stdout);
}

/// Asserts a refusal with this exit code and this text, and that nothing changed.
#[track_caller]
fn assert_refused(world: &World, code: i32, words: &str) {
    let (before, branches) =
        (Checkout::snapshot(&world.sandbox), world.sandbox.run("git", ["for-each-ref", "refs/heads"]).stdout);
    let output = world.verdone(&["undo"]);
    output.assert_code(code);
    assert!(output.stderr.contains(words), "{}", output.transcript());
    before.assert_untouched(&world.sandbox);
    assert_eq!(world.sandbox.run("git", ["for-each-ref", "refs/heads"]).stdout, branches);
}

fn subjects_of(world: &World, branch: &str) -> Vec<String> {
    world.git(&["log", "--format=%s", branch]).lines().map(str::to_owned).collect()
}

#[test]
fn a_story_that_has_not_landed_is_taken_off_the_runs_branch() {
    let world = world(TWO, HONEST, "ask");
    world.run(0);
    let (branch, before) = (branch_of(&world), Checkout::snapshot(&world.sandbox));
    undo(&world, "US-002 (removed from the run's branch). US-002 is open again.");
    assert_eq!(subjects_of(&world, &branch), ["feat(US-001): Write a", "initial"]);
    undo(&world, "US-001 (removed from the run's branch). US-001 is open again.");
    assert_eq!(subjects_of(&world, &branch), ["initial"]);
    before.assert_untouched(&world.sandbox);
    assert_refused(&world, 2, "there is nothing to undo");

    world.run(0);
    assert_eq!(subjects_of(&world, &branch_of(&world)), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
}

#[test]
fn after_an_undo_the_next_run_does_the_story_again_on_the_same_branch() {
    let world = world(TWO, HONEST, "ask");
    world.run(0);
    let branch = branch_of(&world);
    undo(&world, "US-002 is open again");
    world.run(0);
    assert_eq!((branch_of(&world), world.all("committed").len()), (branch.clone(), 1));
    assert_eq!(subjects_of(&world, &branch), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    world.verdone(&["land"]).assert_code(0);
    world.verdone(&["audit"]).assert_code(0);
}

#[test]
fn landed_stories_are_reverted_one_by_one() {
    let world = World::new(TWO, HONEST);
    world.run(0);
    undo(&world, "US-002 (reverted by ");
    assert_eq!(world.subjects()[0], "revert: US-002");
    assert!(world.has("a") && !world.has("b"));
    assert_eq!(world.plan(), TWO.replacen("[ ]", "[x]", 1));
    world.assert_clean();
    undo(&world, "US-001 (reverted by ");
    let all = ["revert: US-001", "revert: US-002", "feat(US-002): Write b", "feat(US-001): Write a", "initial"];
    assert_eq!(world.subjects(), all, "nothing that landed is rewritten");
    assert_eq!((world.has("a"), world.plan()), (false, TWO.to_owned()));
    world.assert_clean();
    assert_refused(&world, 2, "there is nothing to undo");

    world.run(0);
    assert_eq!(world.subjects()[..2], ["feat(US-002): Write b", "feat(US-001): Write a"]);
    assert!(world.has("a") && world.has("b"));
}

#[test]
fn a_landed_story_is_reverted_where_it_landed_whichever_branch_is_checked_out() {
    let world = World::new(ONE, HONEST);
    world.git(&["branch", "other"]);
    world.run(0);
    world.git(&["switch", "--quiet", "other"]);
    let here = world.head();
    undo(&world, "US-001 (reverted by ");
    assert_eq!(subjects_of(&world, "main"), ["revert: US-001", "feat(US-001): Write a", "initial"]);
    assert_eq!(world.head(), here);
    world.assert_clean();
}

#[test]
fn a_story_in_a_plan_of_the_users_own_is_open_again() {
    for landing in ["ask", "auto"] {
        let world = world("# Nothing yet\n", HONEST, landing);
        world.sandbox.write("PLAN.md", ONE);
        world.run(0);
        assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"));
        undo(&world, "US-001 is open again");
        assert_eq!(world.plan(), ONE, "{landing}");
        assert!(!world.has("a"));
        assert_eq!(world.git(&["status", "--porcelain"]), " M PLAN.md", "{landing}");
    }
}

#[test]
fn without_a_committed_story_there_is_nothing_to_undo() {
    let world =
        World::with(ONE, &always("{ create = \"x\" }"), &Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() });
    assert_refused(&world, 2, "there is nothing to undo");
    world.run(4);
    assert_refused(&world, 2, "there is nothing to undo: no story was committed, or all were already undone");
}

#[test]
fn a_run_that_did_nothing_does_not_hide_the_one_before_it() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.run(0);
    assert!(world.all("committed").is_empty());
    undo(&world, "US-001 (reverted by ");
    assert_refused(&world, 2, "there is nothing to undo");
}

#[test]
fn what_later_work_needs_is_not_reverted() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    commit(&world, "a", "changed later\n");
    assert_refused(&world, 4, "US-001 cannot be reverted on top of later commits: a would conflict");
}

#[test]
fn a_file_in_the_way_of_a_revert_is_named() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.sandbox.write("a", "being edited\n");
    assert_refused(&world, 4, "cannot undo US-001: uncommitted changes would be overwritten: a");
    assert!(!world.verdone(&["undo"]).stderr.contains("land"));
    assert_eq!(world.sandbox.read("a"), "being edited\n");
}

#[test]
fn a_branch_that_the_user_moved_is_left_alone() {
    let world = world(ONE, HONEST, "ask");
    world.run(0);
    let branch = branch_of(&world);
    world.git(&["switch", "--quiet", &branch]);
    for name in ["one", "two"] {
        commit(&world, name, "");
    }
    assert_refused(&world, 4, "has moved on since the run committed US-001");
}

#[test]
fn after_prune_a_landed_story_can_still_be_reverted() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.verdone(&["prune", "--keep", "0"]).assert_code(0);
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    undo(&world, "US-001 is open again");
    assert_eq!((world.has("a"), world.plan()), (false, ONE.to_owned()));
}

#[test]
fn a_commit_of_the_users_on_top_of_the_story_is_never_taken_off() {
    let world = world(ONE, HONEST, "ask");
    world.run(0);
    let branch = branch_of(&world);
    world.git(&["switch", "--quiet", &branch]);
    commit(&world, "mine", "");
    world.git(&["switch", "--quiet", "main"]);
    assert_refused(&world, 4, "has moved on since the run committed US-001");
    // Nor a commit that only looks like a record of progress.
    let run = branch.trim_start_matches("verdone/").to_owned();
    world.git(&["switch", "--quiet", &branch]);
    world.git(&["commit", "--quiet", "--amend", "-m", "chore: record progress", "-m", &format!("Verdone-Run: {run}")]);
    world.git(&["switch", "--quiet", "main"]);
    assert_refused(&world, 4, "has moved on since the run committed US-001");
}

#[test]
fn a_branch_that_a_work_tree_is_on_is_not_moved() {
    let world = world(ONE, HONEST, "ask");
    world.run(0);
    world.git(&["worktree", "add", "--quiet", "../there", &branch_of(&world)]);
    assert_refused(&world, 4, "/there");
    world.git(&["worktree", "remove", "../there"]);
    world.git(&["switch", "--quiet", &branch_of(&world)]);
    assert_refused(&world, 4, "is checked out in");
    world.git(&["switch", "--quiet", "main"]);
    undo(&world, "US-001 is open again");
}

#[test]
fn a_commit_that_records_progress_is_taken_off_with_its_story() {
    let world = world(ONE, HONEST, "ask");
    world.sandbox.write(".ralph/PRD-1/plan.md", ONE);
    world.sandbox.write(".ralph/PRD-1/progress.md", "# Progress Log\n");
    world.git(&["add", ".ralph"]);
    world.git(&["commit", "--quiet", "-m", "plan"]);
    world.run_with(&["--prd", "1"], 0);
    let branch = branch_of(&world);
    assert_eq!(subjects_of(&world, &branch), ["chore: record progress", "feat(US-001): Write a", "plan", "initial"]);
    undo(&world, "US-001 (removed from the run's branch)");
    assert_eq!(subjects_of(&world, &branch), ["plan", "initial"]);
}

#[test]
fn a_landed_story_is_reverted_on_its_branch_and_the_checkout_of_another_is_left_alone() {
    let world = World::new(ONE, HONEST);
    world.run(0);
    world.sandbox.git(["checkout", "--quiet", "--detach"]);
    let before = world.git(&["rev-parse", "HEAD"]);
    let output = world.verdone(&["undo"]);
    output.assert_code(0);
    assert!(output.stdout.contains(" on main)"), "{}", output.stdout);
    assert_eq!((world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])), (before, String::new()));
    world.sandbox.git(["switch", "--quiet", "main"]);
    assert!(world.plan().contains("[ ]") && !world.has("a"));
}
