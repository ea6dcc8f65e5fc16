//! Notifications about session loops.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::hooks::stop_gate::{arm, stop, world};
use crate::hooks::world::World;
use crate::notify::world::{RECORD, heard, wait_until};

const PLAN: &str = "- [ ] US-001: One\n  - Verification: `test -f one`\n";

/// The command is a file of the project's home, because these worlds have the machine's PATH.
fn project(notify: &str, stop: &str) -> World {
    let world =
        world(&format!("[stop]\n{stop}\n[notify]\ncommand = [\"/bin/sh\", \"../speak\"]\n{notify}\n"), &[("PLAN.md", PLAN)]);
    let script = world.root.join("speak");
    fs::write(&script, RECORD).unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    world
}

#[test]
fn a_loop_at_its_limit_notifies_and_does_not_wait_for_it() {
    let world = project("", "max_blocks = 1\nsame_limit = 0");
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("`test -f one` failed");
    stop(&world).let_go("REACHED_LIMIT");
    wait_until("no notification", || !heard(&world.root).is_empty());
    let heard = heard(&world.root);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!((heard[0].kind.as_str(), heard[0].exit_code.as_str()), ("finish", "3"));
    assert!(heard[0].text.starts_with("Verdone, project: the session loop ended (max_iterations): "), "{}", heard[0].text);
    assert_eq!(heard[0].json["plan"], "PLAN.md");
}

#[test]
fn a_loop_that_is_complete_notifies_once() {
    let world = project("", "");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).let_go("COMPLETE");
    wait_until("no notification", || !heard(&world.root).is_empty());
    let heard = heard(&world.root);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].text, "Verdone, project: the session loop is complete; 1 story done");
}

#[test]
fn a_delivery_that_fails_is_written_down_and_doctor_reports_it() {
    let world = project("", "max_blocks = 1\nsame_limit = 0");
    fs::write(world.root.join("speak"), "echo no loudspeaker; exit 3\n").unwrap();
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("`test -f one` failed");
    stop(&world).let_go("REACHED_LIMIT");
    let warning = "notification not sent (command): exit code 3: no loudspeaker";
    let at = world.work.display().to_string();
    let doctor = || String::from_utf8(world.command(&["-C", &at, "doctor"]).output().unwrap().stdout).unwrap();
    wait_until("doctor says nothing", || doctor().contains(warning));
}
