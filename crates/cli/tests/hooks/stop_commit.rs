//! Commits of the Stop gate's loops (`[stop] commit = true`): what goes into them, what does not, and when there is none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use crate::stop_gate::{Said, arm, name_the_author, stop, verdone, world};
use crate::world::World;

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
fn a_commit_takes_no_earlier_change_of_the_users_along_and_an_audit_holds() {
    let world = committing(PLAN);
    world.write("README.md", "The user's own.\n");
    fs::remove_file(world.work.join("src/a.rs")).unwrap();
    // What the commit starts is ended with its worker, by a mark that it has.
    let hook = world.write(".git/hooks/pre-commit", "#!/bin/sh\ntest -n \"$VERDONE_VERIFY\"\n");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("test -f one");
    world.write("one", "1\n");
    // An agent stages everything; that makes nothing of it the agent's.
    git(&world, &["add", "-A"]);
    let reason = stop(&world).blocked("story US-001 is verified");
    assert!(!reason.contains("not committed"), "{reason}");
    assert_eq!(git(&world, &["show", "--format=%s", "--name-only", "HEAD"]), "feat(US-001): One\n\nPLAN.md\none\n");
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE: all 2 stories");
    assert_eq!(git(&world, &["show", "--format=", "--name-only", "HEAD"]), "PLAN.md\ntwo\n");
    assert_eq!(git(&world, &["status", "--porcelain"]), " M README.md\n D src/a.rs\n", "the user's own, as it was");
    let audit: Value = serde_json::from_slice(&verdone(&world, &["audit", "--json"]).stdout).unwrap();
    let stories = audit["stories"].as_array().unwrap();
    let verdicts: Vec<&str> = stories.iter().map(|story| story["verdict"].as_str().unwrap()).collect();
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
        "about story US-001: it was not committed: README.md had changes of yours when the loop began, and was changed again";
    stop(&world).blocked(told);
    assert!(last_commit(&world).as_str().unwrap().starts_with(told));
    assert_eq!((commits(&world), world.read("PLAN.md").matches("[x]").count()), (1, 1));
    assert!(git(&world, &["status", "--porcelain"]).contains("?? one"), "nothing is lost");
    // The user settles it, and what was held back goes with the next story.
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
        "COMPLETE: the one story of the loop was verified. Note: about story US-001: it \
         was not committed: without README.md, which had changes of yours when the loop began, `grep -q mine README.md && test -f one` \
         failed with exit code 1",
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
        (detached, "it was not committed: the loop was started on a detached HEAD"),
        (merging, "it was not committed: a merge was begun and is not finished"),
        (staged, "it was not committed: you had staged changes when the loop began: README.md"),
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
    let world = committing(PLAN);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    // The loop's file, and Verdone's own copy of it.
    let copy = |from: &str, to: &str| {
        let done = Command::new("cp").args(["-a", "-T", from, to]).current_dir(&world.root).status().unwrap();
        assert!(done.success(), "{from} {to}");
    };
    let session = "project/.verdone/sessions/s1";
    copy(session, "kept-session");
    copy(".local/state", "kept-state");
    stop(&world).blocked("NEXT STORY (US-002)");
    let note = git(&world, &["notes", "--ref=verdone", "show", "HEAD"]);
    // As it would be after a kill between the commit and all that follows it.
    git(&world, &["-c", "user.name=dev", "-c", "user.email=d@e", "notes", "--ref=verdone", "remove", "HEAD"]);
    let evidence = world.read(".verdone/sessions/s1/evidence.json");
    for (dir, kept) in [(session, "kept-session"), (".local/state", "kept-state")] {
        fs::remove_dir_all(world.root.join(dir)).unwrap();
        copy(kept, dir);
    }
    world.write(".verdone/sessions/s1/evidence.json", &evidence);
    stop(&world).blocked("NEXT STORY (US-002)");
    assert_eq!((commits(&world), git(&world, &["notes", "--ref=verdone", "show", "HEAD"])), (2, note));
    verdone(&world, &["audit"]);
    // The same words without Verdone's seal are nobody's evidence.
    git(&world, &["-c", "user.name=dev", "-c", "user.email=d@e", "notes", "--ref=verdone", "remove", "HEAD"]);
    world.write(".verdone/sessions/s1/evidence.json", evidence.split_once('\n').unwrap().1);
    world.write("other", "");
    stop(&world).blocked("test -f two");
    assert_eq!(git(&world, &["notes", "--ref=verdone", "list"]), "");
}

#[test]
fn where_everything_has_to_be_committed_a_story_without_a_commit_is_not_done() {
    let config = format!("{COMMIT}[done]\nprofile = \"orchestrator\"\nrequire = [\"implementation_complete\"]\n");
    let table = [
        ("The user's own.\n", None),
        ("The user's own.\nThe agent's.\n", Some("implementation_complete: changes are in no commit: README.md; one.")),
    ];
    for (readme, held) in table {
        let mut world = world(&config, &[("PLAN.md", "- [ ] US-001: One\n  - Verification: `test -f one`\n")]);
        name_the_author(&mut world);
        world.write("README.md", "The user's own.\n");
        arm(&world, &["--plan", "PLAN.md"]);
        world.write("README.md", readme);
        world.write("one", "1\n");
        match held {
            // What was the user's before is not the loop's to commit.
            None => stop(&world).let_go("COMPLETE"),
            Some(held) => {
                let reason = stop(&world).blocked(held);
                assert!(reason.contains("The story was not committed: README.md had changes of yours"), "{reason}");
                assert!(!world.read("PLAN.md").contains("[x]"), "{reason}");
            }
        }
        assert_eq!(commits(&world), if held.is_some() { 1 } else { 2 });
    }
}

#[test]
fn what_a_human_should_look_at_first_is_in_no_commit_and_counts_as_that() {
    let gate = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
    let why = "a human has to look at this: ";
    for (done, held) in [("", false), ("[done]\nrequire = [\"implementation_complete\"]\nprofile = \"orchestrator\"\n", true)] {
        let mut world = world(&format!("{COMMIT}{done}{gate}"), &[("PLAN.md", PLAN)]);
        name_the_author(&mut world);
        arm(&world, &["--plan", "PLAN.md"]);
        world.write("one", "1\n");
        world.write("check.sh", &world.read("check.sh").replace("broken", "bad"));
        let reason = stop(&world).blocked(why);
        assert_eq!((commits(&world), world.read("PLAN.md").contains("[x]")), (1, !held), "{reason}");
        let told = if held { "The story was not committed: " } else { "about story US-001: it was not committed: " };
        assert!(reason.contains(&format!("{told}{why}")), "{reason}");
        assert_eq!(reason.contains("implementation_complete: changes are in no commit: check.sh; one."), held, "{reason}");
    }
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
    let session = world.work.join(".verdone/sessions/s1");
    let written = |name: &str| fs::metadata(session.join(name)).and_then(|meta| meta.modified()).ok();
    let answered = || ["verdict.json", "committed.json"].into_iter().any(|name| written(name) > written("request.json"));
    let mut waits = 0;
    let last = loop {
        let said = stop(&world);
        let Said::Block(reason) = said else { break said };
        assert!(reason.contains("still verifying") && waits < 10, "{waits}: {reason}");
        waits += 1;
        // No answer comes while somebody waits for it.
        while !answered() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
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
        stop(&world).let_go("COMPLETE: the one story of the loop was verified");
        assert_eq!(commits(&world), 2);
        git(&world, &["reset", "--quiet", "HEAD~1"]);
        fs::remove_file(world.work.join("one")).unwrap();
        world.write("PLAN.md", &plan);
    }
}
