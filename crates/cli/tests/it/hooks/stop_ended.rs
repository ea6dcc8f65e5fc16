//! A loop whose start or verification is stopped leaves no process behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::hooks::stop_gate::{arm, is_running, kept, name_the_author, stop, verdone, world};

fn pid_in(path: &Path) -> Option<Pid> {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw)
}

#[track_caller]
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A zombie process has an empty command line.
fn is_gone(pid: Pid) -> bool {
    fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).map_or(true, |words| words.is_empty())
}

#[test]
fn a_start_that_is_ended_leaves_no_check_and_no_file_behind() {
    let config = "[limits]\ngrace = \"100ms\"\n";
    let plan = "- [ ] US-001: One\n  - Verification: `sleep 61842; :`\n";
    let world = world(config, &[("PLAN.md", plan)]);
    let at = world.work.display().to_string();
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let start = ["-C", &at, "loop", "start", "--session", "s1", "--plan", "PLAN.md"];
        let mut command = world.command(&start).spawn().unwrap();
        wait_for("the check never began", || is_running("61842").then_some(()));
        kill_process(Pid::from_child(&command), signal).unwrap();
        assert_eq!(command.wait().unwrap().code(), code);
        wait_for("the end of the check", || (!is_running("61842")).then_some(()));
        assert!(!world.work.join(".verdone/sessions").exists(), "{signal:?}");
        let held = String::from_utf8(verdone(&world, &["loop", "status"]).stdout).unwrap();
        assert!(held.starts_with("There is no loop."), "{held}");
    }
}

#[test]
fn a_loop_that_the_user_ends_commits_and_marks_nothing_any_more() {
    let plan = "- [ ] US-001: One\n  - Verification: `sleep 2; test -f one`\n";
    let mut world = world("[stop]\ncommit = true\nwait = \"50ms\"\n", &[("PLAN.md", plan)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("still verifying");
    let lock = kept(&world, "working.lock");
    let worker = wait_for("nothing verifies", || pid_in(&lock));
    verdone(&world, &["loop", "stop"]);
    wait_for("the verification goes on", || is_gone(worker).then_some(()));
    assert_eq!(world.read("PLAN.md"), plan);
    assert_eq!(world.said_by_git(&["rev-list", "--count", "HEAD"]), "1\n");
}

#[test]
fn what_a_git_hook_rewrites_is_verified_again_and_committed() {
    let plan = "- [ ] US-001: One\n  - Verification: `test -f one`\n";
    let mut world = world("[stop]\ncommit = true\n", &[("PLAN.md", plan)]);
    name_the_author(&mut world);
    let hook = world.write(".git/hooks/pre-commit", "#!/bin/sh\necho more >> one && git add one\n");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).let_go("COMPLETE: the one story of the loop is done (verified)");
    assert_eq!(world.said_by_git(&["show", "HEAD:one"]), "1\nmore\n");
    assert_eq!(world.said_by_git(&["status", "--porcelain"]), "");
    verdone(&world, &["audit"]);
}

#[test]
fn a_commit_that_a_hook_broke_is_taken_back_with_what_it_staged() {
    let plan = "- [ ] US-001: One\n  - Verification: `grep -qx 1 one`\n";
    let mut world = world("[stop]\ncommit = true\n", &[("PLAN.md", plan)]);
    name_the_author(&mut world);
    let hook = world.write(".git/hooks/pre-commit", "#!/bin/sh\necho 2 > one && git add one\n");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("a git hook changed files, and the result does not pass");
    assert_eq!(world.said_by_git(&["status", "--porcelain"]), "?? one\n");
    assert_eq!(world.read("PLAN.md"), plan);
}
