//! Where a script runs: it sees the run's last commit at the project's own path, and cannot change it.

use std::fs;
use std::path::Path;

use crate::lifecycle::world::{Setting, VERDONE, World};

/// Records what it sees, and tries to change it.
const LOOK: &str = "cat a >> ../tmp/seen 2>/dev/null; git log -1 --format=%s >> ../tmp/seen; cat ~/.ssh/id >> ../tmp/seen\n\
                    { echo mine > a; } 2>> ../tmp/refused; { echo mine > new; } 2>> ../tmp/refused\n\
                    echo x > \"$TMPDIR/x\" && echo \"$TMPDIR\" > ../tmp/temp\n\
                    echo kept > \"$VERDONE_LOG_DIR/mine.txt\"; pwd > ../tmp/where";

fn world(scripts: &[(&str, &str)]) -> World {
    let world = World::new(&Setting::default(), scripts);
    let config = world.sandbox.read(".verdone/config.toml");
    world.sandbox.write(".verdone/config.toml", config.replace("land = \"auto\"", "land = \"off\""));
    fs::create_dir(world.sandbox.home().join(".ssh")).unwrap();
    fs::write(world.sandbox.home().join(".ssh/id"), "key\n").unwrap();
    world
}

#[test]
fn a_script_sees_the_runs_last_commit_and_cannot_write_it() {
    let world = world(&[("started", LOOK), ("post_iteration", LOOK)]);
    world.run(0);
    assert_eq!(world.noted("seen"), "initial\nkey\none\nfeat(US-001): Write a\nkey\n");
    assert_eq!(world.noted("refused").matches("Read-only file system").count(), 4, "{}", world.noted("refused"));
    assert_eq!(world.noted("where"), format!("{}\n", world.sandbox.work().display()));
    assert_eq!(world.kept("mine.txt"), "kept\n");
    let temp = world.noted("temp");
    assert!(!temp.is_empty() && !Path::new(temp.trim()).exists(), "its temporary folder is gone: {temp}");
    assert!(!world.sandbox.path("a").exists() && !world.sandbox.path("new").exists());
    assert!(world.sandbox.survivors().is_empty());
}

#[test]
fn a_script_can_push_the_runs_commits() {
    let world = world(&[("finished", "git push --quiet origin HEAD:refs/heads/mirror")]);
    let remote = world.sandbox.root().join("tmp/remote.git");
    world.sandbox.git(["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    world.sandbox.git(["remote", "add", "origin", remote.to_str().unwrap()]);
    world.run(0);
    assert_eq!(
        world.script_events("finished")[0]["exit"],
        serde_json::json!({ "code": 0 }),
        "{}",
        world.kept("scripts/1-finished.txt")
    );
    let pushed = world.sandbox.git(["-C", remote.to_str().unwrap(), "log", "--format=%s", "mirror"]);
    assert_eq!(pushed, "feat(US-001): Write a\ninitial");
}

#[test]
fn a_script_that_is_in_no_commit_runs_as_the_user_has_it() {
    let committed = "echo committed >> ../tmp/ran; .fresher/hooks/custom/tool";
    let world = World::new(&Setting::default(), &[(".fresher/hooks/started", committed)]);
    world.sandbox.write_script(".fresher/hooks/started", "#!/bin/sh\necho edited >> ../tmp/ran; .fresher/hooks/custom/tool\n");
    world.sandbox.write_script(".fresher/hooks/custom/tool", "#!/bin/sh\necho tool >> ../tmp/ran\n");
    world.run(0);
    assert_eq!(world.noted("ran"), "edited\ntool\n");
}

#[test]
fn a_plan_that_is_in_no_commit_can_be_read() {
    let world = World::new(&Setting::default(), &[("started", "cat \"$VERDONE_PLAN_FILE\" > ../tmp/plan")]);
    world.sandbox.git(["rm", "--quiet", "--cached", "PLAN.md"]);
    world.sandbox.git(["commit", "--quiet", "--message", "the plan is mine"]);
    let plan = world.sandbox.read("PLAN.md");
    world.run(0);
    assert_eq!(world.noted("plan"), plan);
}

#[test]
fn a_script_in_the_background_needs_no_first_line() {
    let setting = Setting { tables: "[hooks.started]\nbackground = true", ..Setting::default() };
    let world = World::new(&setting, &[("finished", "until test -e ../tmp/ran; do sleep 0.05; done")]);
    world.sandbox.write_script(".verdone/hooks/started", "echo ran > ../tmp/ran\n");
    world.run(0);
    assert_eq!(world.noted("ran"), "ran\n");
}

#[test]
fn a_script_in_the_background_keeps_the_files_that_it_started_with() {
    let look = "until test -e ../tmp/post; do sleep 0.05; done; ls > ../tmp/seen; git log -1 --format=%s >> ../tmp/seen; : > ../tmp/looked";
    let wait = "ls > ../tmp/post; until test -e ../tmp/looked; do sleep 0.05; done";
    let setting = Setting { tables: "[hooks.started]\nbackground = true", ..Setting::default() };
    let world = World::new(&setting, &[("started", look), ("post_iteration", wait)]);
    world.run(0);
    assert_eq!(world.noted("post"), "PLAN.md\nREADME.md\na\n");
    assert_eq!(world.noted("seen"), "PLAN.md\nREADME.md\ninitial\n");
}

#[test]
fn without_views_a_script_runs_in_the_checkout() {
    let mut world = world(&[("post_iteration", "ls a >> ../tmp/seen 2>&1; pwd > ../tmp/where")]);
    world.sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
    world.run(0);
    assert!(world.noted("seen").contains("No such file"), "nothing is landed: {}", world.noted("seen"));
    assert_eq!(world.noted("where"), format!("{}\n", world.sandbox.work().display()));
    let log = world.sandbox.verdone(VERDONE, ["status"]);
    log.assert_code(0);
}
