//! Commits of the Stop gate's loops (`[stop] commit = true`): what they contain, what they leave out, and when there is none.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::hooks::stop_gate::{Said, arm, kept, name_the_author, stop, verdone, wait_for_finding, world};
use crate::hooks::world::World;

const COMMIT: &str = "[stop]\ncommit = true\n";
const PLAN: &str = "- [ ] US-001: One\n  - Verification: `test -f one`\n- [ ] US-002: Two\n  - Verification: `test -f two`\n";

fn committing(plan: &str) -> World {
    let mut world = world(COMMIT, &[("PLAN.md", plan)]);
    name_the_author(&mut world);
    world
}

#[track_caller]
fn git(world: &World, arguments: &[&str]) -> String {
    world.said_by_git(arguments)
}

fn commits(world: &World) -> usize {
    git(world, &["rev-list", "--count", "HEAD"]).trim().parse().unwrap()
}

fn last_commit(world: &World) -> Value {
    world.records("stop").last().unwrap()["notes"][0].clone()
}

#[test]
fn a_commit_of_a_loop_is_of_the_kind_that_the_plan_states() {
    let world = committing("- [ ] US-001: One\n  - Verification: `test -f one`\n  - Kind: docs\n");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).let_go("COMPLETE");
    assert_eq!(git(&world, &["log", "-1", "--format=%s"]), "docs(US-001): One\n");
}

#[test]
fn a_commit_takes_no_earlier_change_of_the_users_along_and_an_audit_holds() {
    let world = committing(PLAN);
    world.write("README.md", "The user's own.\n");
    fs::remove_file(world.work.join("src/a.rs")).unwrap();
    // Processes that the commit starts have this variable, by which they are found and ended together with the worker.
    let hook = world.write(".git/hooks/pre-commit", "#!/bin/sh\ntest -n \"$VERDONE_VERIFY\"\n");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("test -f one");
    world.write("one", "1\n");
    // The agent stages everything, but that does not make it the agent's work.
    git(&world, &["add", "-A"]);
    let reason = stop(&world).blocked("story US-001 is done (verified)");
    assert!(!reason.contains("not committed"), "{reason}");
    assert_eq!(git(&world, &["show", "--format=%s", "--name-only", "HEAD"]), "feat(US-001): One\n\nPLAN.md\none\n");
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE: all 2 stories");
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\ntwo\n");
    assert_eq!(git(&world, &["status", "--porcelain"]), " M README.md\n D src/a.rs\n", "the user's own, as it was");
    let audit: Value = serde_json::from_slice(&verdone(&world, &["audit", "--json"]).stdout).unwrap();
    let stories = audit["stories"].as_array().unwrap();
    let verdicts: Vec<&str> = stories.iter().map(|story| story["proof"].as_str().unwrap()).collect();
    assert_eq!((audit["holds"].as_bool(), &verdicts[..]), (Some(true), &["verified", "verified"][..]), "{audit}");
    assert!(stories.iter().all(|story| story["remarks"].as_array().unwrap().iter().all(|remark| remark["kind"] != "new_chain")));
    let note: Value = serde_json::from_str(&git(&world, &["notes", "--ref=verdone", "show", "HEAD~1"])).unwrap();
    assert_eq!((note["session"].as_str(), note["before"][0]["name"].as_str()), (Some("s1"), Some("test -f one")), "{note}");
}

#[test]
fn what_cannot_be_told_apart_is_not_committed_and_the_story_is_marked_all_the_same() {
    let world = committing(PLAN);
    world.write("README.md", "The user's own.\n");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("README.md", "The user's own.\nThe agent's.\n");
    world.write("one", "1\n");
    let told =
        "story US-001 was not committed: README.md already had uncommitted changes when the loop started, and changed again";
    stop(&world).blocked(told);
    assert!(last_commit(&world).as_str().unwrap().starts_with(told));
    assert_eq!((commits(&world), world.read("PLAN.md").matches("[x]").count()), (1, 1));
    assert!(git(&world, &["status", "--porcelain"]).contains("?? one"), "nothing is lost");
    // The user resolves it, and the work that was held back is committed with the next story.
    git(&world, &["-c", "user.name=dev", "-c", "user.email=d@e", "commit", "--quiet", "-m", "mine", "README.md"]);
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE");
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\none\ntwo\n");
    verdone(&world, &["audit"]);
}

#[test]
fn work_that_needs_the_users_own_changes_is_not_committed_without_them() {
    let world = committing("- [ ] US-001: One\n  - Verification: `grep -q mine README.md && test -f one`\n");
    world.write("README.md", "mine\n");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).let_go(
        "COMPLETE: the one story of the loop is done (verified). Note: story US-001 was not committed: without the files you had changed \
         before the loop started, it does not pass: `grep -q mine README.md && test -f one` failed with exit code 1",
    );
    assert_eq!(commits(&world), 1);
}

#[test]
fn nothing_is_committed_while_git_is_about_something_else() {
    let detached: &dyn Fn(&World) = &|world| drop(git(world, &["checkout", "--quiet", "--detach"]));
    let merging: &dyn Fn(&World) = &|world| {
        let head = git(world, &["rev-parse", "HEAD"]);
        fs::write(world.work.join(".git/MERGE_HEAD"), head).unwrap();
    };
    let staged: &dyn Fn(&World) = &|world| {
        world.write("README.md", "staged\n");
        git(world, &["add", "README.md"]);
    };
    let table = [
        (detached, "was not committed: the loop was started on a detached HEAD"),
        (merging, "was not committed: a merge is in progress"),
        (staged, "was not committed: you had staged changes when the loop started: README.md"),
    ];
    for (prepare, told) in table {
        let world = committing(PLAN);
        prepare(&world);
        let index = git(&world, &["ls-files", "--stage"]);
        arm(&world, &["--plan", "PLAN.md"]);
        world.write("one", "1\n");
        let reason = stop(&world).blocked(told);
        assert!(reason.contains("NEXT STORY (US-002)"), "the loop goes on: {reason}");
        assert_eq!((commits(&world), world.read("PLAN.md").matches("[x]").count()), (1, 1), "{told}");
        assert_eq!(git(&world, &["ls-files", "--stage"]), index, "{told}");
    }
}

#[test]
fn a_worker_that_was_killed_after_the_commit_is_made_up_for_and_commits_nothing_twice() {
    made_up_for(false);
}

#[test]
fn the_same_for_a_commit_without_the_users_own_changes() {
    made_up_for(true);
}

fn made_up_for(user_has_changes: bool) {
    let plan = PLAN.replace("test -f one", "sleep 0.5; test -f one");
    let mut world = world(&format!("{COMMIT}wait = \"50ms\"\n"), &[("PLAN.md", &plan)]);
    name_the_author(&mut world);
    if user_has_changes {
        world.write("README.md", "The user's own.\n");
    }
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("still verifying");
    let lock = kept(&world, "working.lock");
    let worker = loop {
        let pid = fs::read_to_string(&lock).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
        match pid {
            Some(pid) => break pid,
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    kill_process(worker, Signal::KILL).unwrap();
    // The same request once more, by a worker that dies right after the commit.
    let mut again = world.command(&["stop-verify", world.work.to_str().unwrap(), "s1"]);
    let killed = again.env("VERDONE_FAULT", "kill@commit-done:1").output().unwrap();
    assert_eq!((killed.status.code(), commits(&world)), (None, 2), "{killed:?}");
    assert_eq!(git(&world, &["notes", "--ref=verdone", "list"]), "");
    let before = fs::read(kept(&world, "finding.json")).unwrap();
    stop(&world).blocked("still verifying");
    wait_for_finding(&world, &before);
    stop(&world).blocked("NEXT STORY (US-002)");
    assert_eq!(commits(&world), 2);
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\none\n");
    if user_has_changes {
        return;
    }
    let note: Value = serde_json::from_str(&git(&world, &["notes", "--ref=verdone", "show", "HEAD"])).unwrap();
    assert_eq!(note["story"], "US-001");
    verdone(&world, &["audit"]);
}

#[test]
fn a_commit_of_the_agents_that_calls_itself_ours_does_not_stand_for_what_was_verified() {
    let world = committing(PLAN);
    arm(&world, &["--plan", "PLAN.md"]);
    let runs = fs::read_dir(world.work.join(".verdone/runs")).unwrap();
    let run = runs.map(|entry| entry.unwrap()).find(|entry| entry.file_type().unwrap().is_dir()).unwrap().file_name();
    world.write("a", "something else\n");
    git(&world, &["add", "a"]);
    let message = format!("feat(US-001): One\n\nVerdone-Story: US-001\nVerdone-Run: {}\n", run.to_str().unwrap());
    git(&world, &["-c", "user.name=dev", "-c", "user.email=d@e", "commit", "--quiet", "-m", &message]);
    world.write("one", "1\n");
    stop(&world).blocked("story US-001 is done (verified)");
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\none\n", "what was verified is committed");
    assert_eq!(commits(&world), 3);
}

#[test]
fn work_that_needs_a_review_is_in_no_commit_and_neither_is_what_lies_beside_it() {
    let gate = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
    let mut world = world(&format!("{COMMIT}{gate}"), &[("PLAN.md", PLAN)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    world.write("done.txt", "broken\n");
    world.write("check.sh", "true\n");
    stop(&world).blocked("passes only with the changed check.sh");
    let reason = stop(&world).blocked("Story US-001 needs a review by the user");
    assert!(reason.contains("NEXT STORY (US-002)"), "{reason}");
    world.write("two", "2\n");
    stop(&world).let_go("1 for you to review: US-001 (`verdone review`)");
    assert_eq!((commits(&world), world.read("PLAN.md").matches("[x]").count()), (1, 1));
}

#[test]
fn conditions_and_a_commit_come_to_an_end_where_the_checks_take_longer_than_anybody_waits() {
    let config = format!("{COMMIT}wait = \"50ms\"\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n");
    let plan = "- [ ] US-001: One\n  - Verification: `sleep 0.4 && test -f one`\n";
    let mut world = world(&config, &[("PLAN.md", plan)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    verdone(&world, &["claim", "seen", "--note", "I looked", "--session", "s1"]);
    world.write("one", "1\n");
    let mut waits = 0;
    let last = loop {
        let before = fs::read(kept(&world, "finding.json")).unwrap();
        let said = stop(&world);
        let Said::Block(reason) = said else { break said };
        assert!(reason.contains("still verifying") && waits < 10, "{waits}: {reason}");
        waits += 1;
        // Wait for a new finding before stopping again.
        wait_for_finding(&world, &before);
    };
    last.let_go("COMPLETE: the one story");
    assert!(waits > 0, "it was waited for");
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\none\n");
}

#[test]
fn a_commit_that_the_user_took_back_is_made_again_for_the_same_work() {
    let world = committing("- [ ] US-001: One\n  - Verification: `test -f one`\n");
    let plan = world.read("PLAN.md");
    for _ in 0..2 {
        arm(&world, &["--plan", "PLAN.md"]);
        world.write("one", "1\n");
        stop(&world).let_go("COMPLETE: the one story of the loop is done (verified)");
        assert_eq!(commits(&world), 2);
        git(&world, &["reset", "--quiet", "HEAD~1"]);
        fs::remove_file(world.work.join("one")).unwrap();
        world.write("PLAN.md", &plan);
    }
}
