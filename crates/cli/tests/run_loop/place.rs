//! On which branch a run works: the one of `--branch`, the plan's, or the current one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use verdone_testkit::Signal;

use crate::world::{HONEST, ONE, PATIENCE, Settings, TWO, VERDONE, World};

/// Names that git does not take, or takes for something else.
const HOSTILE: [&str; 12] = ["-x", "--force", "../x", "a..b", "@{", "@{-1}", "@", "a b", "", "x.lock", "a\nb", "\u{1b}[2J"];

fn branch(world: &World) -> String {
    world.git(&["symbolic-ref", "--short", "HEAD"])
}

/// Where HEAD is and every ref and change.
fn state(world: &World) -> (String, String, String) {
    (
        world.sandbox.run("git", ["rev-parse", "--symbolic-full-name", "HEAD"]).stdout,
        world.git(&["for-each-ref"]),
        world.git(&["status", "--porcelain", "--ignored"]),
    )
}

#[track_caller]
fn assert_refused(world: &World, arguments: &[&str], words: &[&str]) {
    let before = state(world);
    let output = world.run_with(arguments, 2);
    for word in words {
        assert!(output.stderr.contains(word), "{word:?} is not in\n{}", output.transcript());
    }
    assert_eq!(state(world), before, "nothing may change: {}", output.transcript());
}

fn with_plan_json(branch_name: &str) -> World {
    let world = World::folder(HONEST, &Settings::default());
    let stories = r#"[{"id": "US-001", "title": "Write a", "passes": false}]"#;
    let name = serde_json::Value::from(branch_name);
    world.sandbox.write("prd.json", format!("{{\"branchName\": {name}, \"userStories\": {stories}}}\n"));
    world.sandbox.repo();
    world
}

#[test]
fn a_branch_is_made_at_head_and_the_run_stays_on_it() {
    let world = World::new(ONE, HONEST);
    let base = world.head();
    let output = world.run_with(&["--branch", "fix/login"], 0);
    assert_eq!(branch(&world), "fix/login");
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert_eq!(world.git(&["rev-parse", "main"]), base, "main is where it was");
    let told = format!("on branch fix/login now, asked for by --branch: made it at {}; back with: git switch main", &base[..10]);
    assert!(output.stdout.contains(&told), "{}", output.stdout);
    assert!(!output.stdout.contains("default branch"), "{}", output.stdout);
    assert_eq!(world.sandbox.run("git", ["config", "--get-regexp", "^branch"]).stdout, "", "nothing is tracked");

    let again = world.run_with(&["--branch", "fix/login"], 0);
    assert!(!again.stdout.contains("asked for by"), "already there: {}", again.stdout);
}

#[test]
fn an_existing_branch_is_continued_with_the_plan_and_settings_on_it() {
    let world = World::new(ONE, HONEST);
    world.git(&["switch", "--quiet", "--create", "side"]);
    world.sandbox.write("PLAN.md", TWO);
    let config = world.sandbox.read(".verdone/config.toml");
    world.sandbox.write(".verdone/config.toml", config + "[[gate]]\nname = \"told\"\ncommand = \"echo on-the-side\"\n");
    world.git(&["commit", "--quiet", "--all", "-m", "two stories"]);
    world.git(&["switch", "--quiet", "main"]);
    let output = world.run_with(&["--branch", "side"], 0);
    assert!(output.stdout.contains("it exists and is continued"), "{}", output.stdout);
    assert_eq!(branch(&world), "side");
    assert_eq!(world.subjects().len(), 4, "{:?}", world.subjects());
    assert_eq!(world.plan(), TWO.replace("[ ]", "[x]"));
    assert!(output.stdout.contains("told passed"), "{}", output.stdout);
}

#[test]
fn tracked_changes_are_refused_before_anything_is_switched() {
    let world = World::new(ONE, HONEST);
    world.git(&["branch", "side"]);
    world.sandbox.write("README.md", "changed\n");
    assert_refused(&world, &["--branch", "new"], &["uncommitted changes", "README.md"]);
    assert_refused(&world, &["--branch", "side"], &["uncommitted changes", "README.md"]);
    assert_eq!(world.sandbox.read("README.md"), "changed\n");
}

#[test]
fn what_is_refused_anyway_is_refused_before_a_branch_is_made() {
    let world = World::new(ONE, HONEST);
    assert_refused(&world, &["--branch", "new", "--agent-command", "no-such-agent"], &["no-such-agent"]);
    assert_refused(&world, &["--branch", "new", "--story", "US-9"], &["US-9"]);
    world.git(&["switch", "--quiet", "--create", "side"]);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "side"]);
    world.git(&["switch", "--quiet", "main"]);
    world.git(&["merge", "--quiet", "--no-ff", "--no-commit", "side"]);
    assert_refused(&world, &["--branch", "new"], &["merge is in progress"]);
}

#[test]
fn hostile_names_are_refused_and_change_nothing() {
    let world = World::new(ONE, HONEST);
    let long = "x".repeat(300);
    for name in HOSTILE.into_iter().chain([long.as_str()]) {
        for more in [&[][..], &["--dry-run"], &["--worktree"]] {
            let named = format!("--branch={name}");
            assert_refused(&world, &[&[named.as_str()], more].concat(), &["cannot be the name of a branch"]);
        }
    }
    let output = world.sandbox.verdone(VERDONE, [OsStr::new("run"), OsStr::new("--branch"), OsStr::from_bytes(b"a\xff")]);
    output.assert_code(2);
    assert!(!world.sandbox.root().join("work-worktrees").exists());
}

#[test]
fn a_hostile_name_in_the_plan_is_refused_too() {
    for name in HOSTILE.into_iter().filter(|name| !name.is_empty()) {
        let world = with_plan_json(name);
        assert_refused(&world, &["--check", "true"], &["cannot be the name of a branch", "branchName"]);
    }
}

#[test]
fn without_a_commit_the_first_one_is_made_on_the_branch() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet", "--initial-branch=main"]);
    world.run_with(&["--branch", "first"], 0);
    assert_eq!(branch(&world), "first");
    assert_eq!(world.subjects(), ["feat(US-001): Write a"]);
    assert_eq!(world.git(&["branch", "--list", "main"]), "");
}

#[test]
fn a_branch_of_another_worktree_is_refused_and_told_where_it_is() {
    let world = World::new(ONE, HONEST);
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../other"]);
    let there = world.sandbox.root().join("other").display().to_string();
    assert_refused(&world, &["--branch", "side"], &["checked out in", &there]);
    assert_refused(&world, &["--worktree", "--branch", "side"], &["checked out in", &there]);
    assert_refused(&world, &["--worktree", "--branch", "main"], &["checked out in", "--branch NAME"]);
    std::fs::remove_dir_all(&there).unwrap();
    assert_refused(&world, &["--branch", "side"], &["checked out in", "git worktree prune"]);
    world.git(&["worktree", "prune"]);
    world.run_with(&["--branch", "side"], 0);
}

#[test]
fn files_in_the_way_are_named_and_kept_also_ignored_ones() {
    for ignored in [false, true] {
        let world = World::new(ONE, HONEST);
        world.git(&["switch", "--quiet", "--create", "side"]);
        world.sandbox.write("mine.txt", "theirs");
        world.git(&["add", "--force", "mine.txt"]);
        world.git(&["commit", "--quiet", "-m", "mine.txt"]);
        world.git(&["switch", "--quiet", "main"]);
        world.sandbox.write("mine.txt", "my own");
        if ignored {
            world.sandbox.write(".git/info/exclude", "mine.txt\n");
        }
        assert_refused(&world, &["--branch", "side"], &["mine.txt", "nothing was changed"]);
        assert_eq!(world.sandbox.read("mine.txt"), "my own");
    }
}

#[test]
fn a_detached_head_needs_a_branch_and_takes_it() {
    let world = World::new(ONE, HONEST);
    world.git(&["checkout", "--quiet", "--detach"]);
    assert_refused(&world, &[], &["detached", "verdone run --branch NAME"]);
    world.run_with(&["--branch", "found"], 0);
    assert_eq!(branch(&world), "found");
}

#[test]
fn the_plans_own_branch_is_used_and_told() {
    let world = with_plan_json("ralph/feature");
    let output = world.run_with(&["--check", "true"], 0);
    assert_eq!(branch(&world), "ralph/feature");
    assert!(output.stdout.contains("on branch ralph/feature now, asked for by the plan's branchName"), "{}", output.stdout);
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1");

    let world = with_plan_json("ralph/feature");
    world.git(&["checkout", "--quiet", "--detach"]);
    world.run_with(&["--check", "true", "--branch", "mine"], 0);
    assert_eq!(branch(&world), "mine", "the argument comes first");
}

#[test]
fn the_plan_is_read_again_on_its_branch() {
    let world = with_plan_json("feature");
    world.git(&["switch", "--quiet", "--create", "feature"]);
    world.sandbox.write("prd.json", world.sandbox.read("prd.json").replace("Write a", "Write the a"));
    world.git(&["commit", "--quiet", "--all", "-m", "better words"]);
    world.git(&["switch", "--quiet", "main"]);
    world.run_with(&["--check", "true"], 0);
    assert_eq!(world.subjects()[0], "feat(US-001): Write the a");
    assert_eq!(branch(&world), "feature");
}

#[test]
fn commits_to_a_default_branch_are_warned_about_with_the_ways_out() {
    let warning = |branch: &str| format!("commits go to the default branch {branch}; --branch NAME or --worktree keeps");
    for (name, setting) in [
        ("develop", &["config", "init.defaultBranch", "develop"][..]),
        ("stable", &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/stable"]),
    ] {
        let world = World::new(ONE, HONEST);
        world.git(&["switch", "--quiet", "--create", name]);
        world.git(setting);
        let output = world.run(0);
        assert!(output.stdout.contains(&warning(name)), "{}", output.stdout);
    }
    let world = World::new(ONE, HONEST);
    assert!(world.run(0).stdout.contains(&warning("main")));
    let world = World::new(ONE, HONEST);
    world.git(&["switch", "--quiet", "--create", "work"]);
    assert!(!world.run(0).stdout.contains("default branch"));
}

#[test]
fn a_dry_run_shows_branch_and_place_and_changes_nothing() {
    let world = World::new(ONE, HONEST);
    world.git(&["branch", "there"]);
    let before = state(&world);
    for (arguments, words) in [
        (&["--branch", "new"][..], "new (would be made at HEAD), by --branch"),
        (&["--branch", "there"], "there (exists; the plan on it counts), by --branch"),
        (&["--worktree"], "verdone/PLAN (would be made at HEAD), by the plan's name"),
        (&["--worktree"], "/work-worktrees/verdone-plan-"),
    ] {
        let output = world.run_with(&[&["--dry-run"], arguments].concat(), 0);
        assert!(output.stdout.contains(words), "{}", output.stdout);
    }
    let json = world.run_with(&["--dry-run", "--json", "--worktree", "--branch", "new"], 0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["branch"], "new");
    assert!(json["worktree"].as_str().unwrap().ends_with("/work-worktrees/new"), "{json}");
    assert_eq!(state(&world), before);
    assert!(!world.sandbox.root().join("work-worktrees").exists());
}

#[test]
fn the_users_checkout_hook_runs_and_its_failure_stops_nothing() {
    let world = World::new(ONE, HONEST);
    world.hook("post-checkout", "echo hooked >> ../tmp/hooked; sleep 30 & exit 1");
    world.run_with(&["--branch", "new"], 0);
    assert_eq!(branch(&world), "new");
    assert_eq!(world.sandbox.read("../tmp/hooked"), "hooked\n");
}

#[test]
fn a_dead_run_is_put_in_order_before_the_branch_is_switched() {
    let world = World::new(ONE, crate::signals::HANGS_ONCE);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    assert!(world.has("half"));
    let output = world.run_with(&["--branch", "new"], 0);
    let (order, switched) = (output.stdout.find("did not end properly"), output.stdout.find("on branch new now"));
    assert!(order.unwrap() < switched.unwrap(), "{}", output.stdout);
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1");
    assert_eq!(world.git(&["log", "--format=%s"]), "feat(US-001): Write a\ninitial");
}

#[test]
fn planning_takes_neither() {
    let world = World::new(ONE, HONEST);
    for argument in ["--worktree", "--branch=x"] {
        assert_refused(&world, &["--mode", "planning", "PLAN.md", argument], &["for building"]);
    }
}

#[test]
fn an_agents_plan_that_nobody_approved_cannot_choose_a_branch() {
    for exists in [false, true] {
        let world = with_plan_json("asked");
        world.sandbox.write(".verdone/approvals.json", r#"{"prd.json": {"written_by": "scripted"}}"#);
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "-m", "an agent's plan"]);
        if exists {
            world.git(&["branch", "asked"]);
        }
        assert_refused(&world, &[], &["verdone plan approve"]);
        assert_refused(&world, &["--worktree", "--check", "true"], &["verdone plan approve"]);
        world.verdone(&["plan", "approve", "prd.json", "--yes"]).assert_code(0);
        world.run_with(&["--check", "true"], 0);
        assert_eq!(branch(&world), "asked");
    }
}
