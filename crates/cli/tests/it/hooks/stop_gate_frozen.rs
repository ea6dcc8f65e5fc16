//! A loop with an agent that tampers with what judges it: earlier stories, settings, the loop's own files, marks and tests.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::hooks::stop_gate::{Said, arm, kept, stop, stop_with, verdone, world};
use crate::hooks::world::{Mode, World};

const PLAN: &str =
    "- [ ] US-001: One\n  - Verification: `grep -q one one`\n- [ ] US-002: Two\n  - Verification: `grep -q two two`\n";
const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";

fn status(world: &World) -> Value {
    serde_json::from_slice(&verdone(world, &["loop", "status", "--json"]).stdout).unwrap()
}

fn causes(world: &World) -> Vec<String> {
    world.records("stop").iter().map(|record| record["cause"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_story_that_later_work_broke_is_opened_again_before_the_loop_is_complete() {
    let world = world("", &[("PLAN.md", PLAN)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "one\n");
    stop(&world).blocked("story US-001 is done (verified)");
    world.write("one", "broken\n");
    world.write("two", "two\n");
    let reason = stop(&world).blocked("story US-001 was verified before, but later work broke it; Verdone reopened it.");
    assert!(reason.contains("The check `grep -q one one` failed") && reason.contains("NEXT STORY (US-001)"), "{reason}");
    assert_eq!(world.read("PLAN.md"), PLAN.replace("[ ] US-002", "[x] US-002"));
    assert_eq!(status(&world)["loops"][0]["reopened"], json!(["US-001"]));
    world.write("one", "one again\n");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop are done (2 verified)");
    assert_eq!(causes(&world), ["next_story", "check_failed", "complete"]);
}

#[test]
fn what_was_built_before_proves_nothing_when_the_loop_is_complete() {
    let plan = PLAN.replace("grep -q one one", "grep -q one one && { test ! -e two || test ! -e target/built; }");
    let world = world("", &[("PLAN.md", &plan), (".gitignore", "target/\n")]);
    world.write("target/built", "by the user\n");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "one\n");
    stop(&world).blocked("story US-001 is done (verified)");
    world.write("two", "two\n");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop are done (2 verified)");
}

#[test]
fn a_story_that_is_broken_a_second_time_ends_the_loop() {
    let three = format!("{PLAN}- [ ] US-003: Three\n  - Verification: `grep -q three three`\n");
    let world = world("", &[("PLAN.md", &three)]);
    arm(&world, &["--plan", "PLAN.md"]);
    for (name, text) in [("one", "one"), ("two", "two"), ("three", "three")] {
        world.write(name, text);
        if name == "three" {
            world.write("one", "broken\n");
            world.write("two", "broken\n");
        }
        stop(&world).blocked("US-00");
    }
    // Both were reopened. While one is fixed, the other stays broken; then the first is broken again.
    world.write("one", "one\n");
    stop(&world).blocked("NEXT STORY (US-002)");
    world.write("two", "two\n");
    world.write("one", "broken\n");
    stop(&world).let_go("US-001 was fixed once and is broken again");
    assert_eq!(status(&world)["loops"][0]["status"], "stalled");
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn settings_that_are_changed_broken_or_deleted_judge_nothing_in_a_loop_that_began_before() {
    let world = world(GATE, &[]);
    arm(&world, &["Fix it"]);
    world.write("done.txt", "broken\n");
    let told = "have changed, so the loop uses the settings from its start. Only the user can reload them: `verdone loop stop`";
    for text in ["[stop]\nmode = \"off\"\n", "", "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n"] {
        world.write(".verdone/config.toml", text);
        world.write("more.txt", text);
        let reason = stop(&world).blocked("The check `tests` failed with exit code 3 (`sh check.sh`)");
        assert!(reason.contains(told), "{reason}");
    }
    world.write(".verdone/config.toml", "nonsense = 1\n");
    world.write("more.txt", "x");
    let reason = stop(&world).blocked("The check `tests` failed");
    assert!(reason.contains("the settings cannot be read"), "{reason}");
    fs::remove_dir_all(world.work.join(".verdone")).unwrap();
    world.write("done.txt", "1\n");
    let Said::Told(text) = stop(&world) else { panic!("not let go") };
    assert!(text.contains("COMPLETE: every gate is green") && text.contains("`gate`") && text.contains("have changed"), "{text}");
    let log = String::from_utf8(verdone(&world, &["log", "--stops"]).stdout).unwrap();
    assert!(log.contains("    note: the settings that judge this loop"), "{log}");
}

#[test]
fn a_loop_has_nothing_in_the_project_that_could_be_deleted_or_edited_and_only_the_user_ends_it() {
    let world = world(GATE, &[]);
    arm(&world, &["Fix it"]);
    world.write("done.txt", "broken\n");
    // Neither the session's folder nor the public journal is the source of truth.
    let _ = fs::remove_dir_all(world.work.join(".verdone/sessions"));
    let run = status(&world)["loops"][0]["run"].as_str().unwrap().to_owned();
    let journal = format!(".verdone/runs/{run}/journal.jsonl");
    let honest = world.read(&journal);
    let forged = honest.lines().next().unwrap().replace("run_started", "run_stopped");
    world.write(&journal, &format!("{honest}{forged}\n"));
    assert_eq!(status(&world)["loops"][0]["status"], "active");
    stop(&world).blocked("The check `tests` failed");
    let now = world.read(&journal);
    assert!(now.starts_with(&honest) && !now.contains("run_stopped") && now.lines().count() > honest.lines().count(), "{now}");
    // A file of a loop that was never started has no effect.
    world.write(".verdone/sessions/s2/loop.json", &fs::read_to_string(kept(&world, "loop.json")).unwrap());
    assert_eq!(stop_with(&world, "s2", &json!({})), Said::Nothing);
    // A forged loop file has no effect, and does not let the session stop.
    let held = kept(&world, "loop.json");
    fs::write(&held, "{}").unwrap();
    stop(&world).blocked("was not written by Verdone: the user can end the loop with `verdone loop stop --session s1`");
    assert_eq!(status(&world)["loops"][0]["status"], "unreadable");
    verdone(&world, &["loop", "stop"]);
    assert!(!held.exists());
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn a_loop_of_an_earlier_version_has_to_be_started_again_and_says_so() {
    let world = world(GATE, &[]);
    arm(&world, &["Fix it"]);
    let project = kept(&world, "loop.json").parent().unwrap().parent().unwrap().to_owned();
    verdone(&world, &["loop", "stop"]);
    fs::write(project.join("s1.json"), "mark\n{\"version\":1,\"status\":\"active\"}").unwrap();
    world.write(".verdone/sessions/s1/loop.json", "{\"version\":1,\"status\":\"active\"}");
    stop(&world).let_go("a loop in this session was started by an earlier version of Verdone and cannot continue");
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn a_loop_is_stopped_told_and_pruned_in_a_project_without_its_folder() {
    let mut world = world(GATE, &[("sub/.verdone/config.toml", GATE)]);
    let sub = world.work.join("sub/deep");
    fs::create_dir(&sub).unwrap();
    world.set("CLAUDE_PROJECT_DIR", sub.to_str().unwrap());
    let at = |dir: &std::path::Path, arguments: &[&str]| {
        let output = world.command(&[&["-C", dir.to_str().unwrap()], arguments].concat()).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let start = |dir: &std::path::Path| at(dir, &["loop", "start", "--session", "s1", "Fix it"]);
    assert!(start(&sub).contains("A loop holds the session s1"));
    fs::remove_dir_all(world.work.join("sub/.verdone")).unwrap();
    // The parent folder is another project.
    stop(&world).blocked("No file was changed");
    fs::remove_dir_all(world.work.join("sub/.verdone")).unwrap();
    assert!(at(&sub, &["doctor"]).contains("although its .verdone/ no longer exists"));
    assert_eq!(at(&sub, &["loop", "stop"]), "The loop is stopped.\n");
    assert!(stop(&world) == Said::Nothing && !world.work.join("sub/.verdone").exists());
    // A loop that was never stopped, with a session that has been silent for long.
    start(&world.work);
    let copies = fs::read_dir(world.root.join(".local/state/verdone/loops")).unwrap();
    let copy = copies.map(|folder| folder.unwrap().path().join("s1/loop.json")).find(|copy| copy.is_file()).unwrap();
    let days = std::time::Duration::from_hours(24 * 15);
    fs::File::open(&copy).unwrap().set_modified(std::time::SystemTime::now() - days).unwrap();
    let told = "1 loop of sessions silent for 14 days, or of projects that no longer exist";
    assert!(at(&world.work, &["doctor"]).contains(told));
    assert!(at(&world.work, &["prune", "--keep", "5"]).contains(&format!("Deleted {told}.")) && !copy.exists());
}

#[test]
fn a_loop_whose_copy_cannot_be_written_is_not_started() {
    let world = world(GATE, &[]);
    let loops = world.root.join(".local/state/verdone/loops");
    fs::create_dir_all(loops.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("nowhere", &loops).unwrap();
    for more in [&["--session", "s1"][..], &[]] {
        let at = world.work.display().to_string();
        let output = world.command(&[&["-C", &at, "loop", "start", "Fix it"], more].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(&loops.display().to_string()), "{said}");
    }
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn without_installed_hooks_a_loop_promises_nothing() {
    let world = world(GATE, &[]);
    fs::remove_file(world.root.join(".claude/settings.json")).unwrap();
    for more in [&["--session", "s1"][..], &[]] {
        let at = world.work.display().to_string();
        let output = world.command(&[&["-C", &at, "loop", "start", "Fix it"], more].concat()).output().unwrap();
        let (said, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(4), "{said}{error}");
        assert!(said.contains("A loop is ready for") && !said.contains("hold"), "{said}");
        assert!(error.contains("nothing keeps the session from stopping\nhint: verdone install\n"), "{error}");
    }
}

#[test]
fn a_loop_that_waits_for_a_session_needs_no_file_in_the_project_and_is_taken_once() {
    let world = world(GATE, &[]);
    verdone(&world, &["loop", "start", "Fix it"]);
    fs::remove_dir_all(world.work.join(".verdone")).unwrap();
    let start = |session: &str| {
        let input = json!({ "session_id": session, "cwd": world.work, "hook_event_name": "SessionStart", "source": "startup" });
        world.ask(Mode::Session, &input).is_some()
    };
    assert_eq!([start("s1"), start("s2")], [true, false]);
    stop(&world).blocked("No file was changed");
    assert_eq!(stop_with(&world, "s2", &json!({})), Said::Nothing);
    world.write(".verdone/config.toml", GATE);
    verdone(&world, &["loop", "start", "More", "--session", "s3"]);
    assert_eq!(status(&world)["loops"].as_array().unwrap().len(), 2);
}

#[test]
fn marks_and_stories_of_the_agents_are_taken_back_and_in_with_no_other_byte_changed() {
    let before = "- [x] US-000: Old\n\n### US-001: One\n- [x] half\n- [ ] rest\n- Verification: `grep -q one one`\n\n### US-002: Two\n- [/] a\n- [x] b\n- Verification: `grep -q two two`\n";
    let world = world("", &[("PLAN.md", before)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("PLAN.md", &before.replace("[/]", "[x]"));
    let reason = stop(&world).blocked("THE STORY (US-001)");
    assert!(reason.contains("story US-002 was marked as done without verification; Verdone removed the mark"), "{reason}");
    assert_eq!(world.read("PLAN.md"), before);
    // The command of a story that was added later does not run until the user accepts the plan with it.
    let more = format!("{before}\n### US-003: Three\n- [x] c\n- Verification: `grep -q three three`\n");
    world.write("PLAN.md", &more.replace("grep -q three three", "true"));
    let reason = stop(&world).blocked("story US-003 was marked as done");
    assert!(reason.contains("story US-003 was not open when the loop started, so its own commands run only after the user approves them with `verdone plan approve PLAN.md`"), "{reason}");
    for (name, part) in [("one", "NEXT STORY (US-002)"), ("two", "NEXT STORY (US-003)")] {
        world.write(name, name);
        stop(&world).blocked(part);
    }
    stop(&world).blocked("Story US-003 cannot be verified: it was not open when the loop started, there is no gate");
    assert!(String::from_utf8(verdone(&world, &["loop", "status"]).stdout).unwrap().contains("  unaccepted US-003\n"));
    world.write("PLAN.md", &world.read("PLAN.md").replace("`true`", "`grep -q three three`"));
    verdone(&world, &["plan", "approve", "--yes"]);
    world.write("PLAN.md", &world.read("PLAN.md").replace("grep -q three three", "true"));
    stop(&world).blocked("Story US-003 cannot be verified");
    world.write("PLAN.md", &world.read("PLAN.md").replace("`true`", "`grep -q three three`"));
    // A forged approval does not count.
    let approved = world.read(".verdone/approvals.json");
    let mut forged: Value = serde_json::from_str(&approved).unwrap();
    assert!(forged["PLAN.md"].as_object_mut().unwrap().remove("mark").is_some());
    world.write(".verdone/approvals.json", &forged.to_string());
    world.write("notes", "another tree");
    stop(&world).blocked("Story US-003 cannot be verified");
    world.write(".verdone/approvals.json", &approved);
    stop(&world).blocked("The check `grep -q three three` failed");
    world.write("three", "three");
    stop(&world).let_go("COMPLETE: all 3 stories of the loop are done (3 verified)");
}

#[test]
fn an_agent_may_raise_the_complexity_of_a_story_and_never_lower_it() {
    let done = "[done]\nrequire = [\"page_seen\"]\n\
                [[done.condition]]\nname = \"page_seen\"\nprover = \"claim\"\nmin_complexity = 6\n";
    // A story without a complexity counts as complex, and later edits do not change that.
    for (began, edited, held) in [("9", "1", true), ("9", "", true), ("", "1", true), ("3", "8", true), ("3", "1", false)] {
        let plan = |complexity: &str| {
            let line = if complexity.is_empty() { String::new() } else { format!("- Complexity: {complexity}\n") };
            format!("### US-001: One\n- [ ] a\n{line}- Verification: `grep -q one one`\n")
        };
        let world = world(done, &[("PLAN.md", &plan(began))]);
        arm(&world, &["--plan", "PLAN.md"]);
        world.write("PLAN.md", &plan(edited));
        world.write("one", "one\n");
        if held {
            stop(&world).blocked("page_seen");
        } else {
            stop(&world).let_go("COMPLETE");
        }
    }
}

#[test]
fn a_story_that_came_later_is_judged_by_the_gates_and_brings_no_command() {
    let plan = "- [ ] US-001: One\n  - Verification: `grep -q one one`\n";
    let world = world(GATE, &[("PLAN.md", plan)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("PLAN.md", &format!("{plan}- [ ] US-002: Two\n  - Scope: check.sh\n  - Verification: `false`\n"));
    world.write("one", "one\n");
    stop(&world).blocked("NEXT STORY (US-002)");
    // It does not excuse anything either.
    world.write("check.sh", "true\n");
    world.write("done.txt", "broken\n");
    stop(&world).blocked("passes only with the changed check.sh");
    world.git(&["checkout", "--quiet", "check.sh"]);
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop are done (1 verified, 1 untested)");
}

#[test]
fn a_gate_without_a_folder_of_its_own_holds_three_times_and_lets_go() {
    let world = world(GATE, &[]);
    arm(&world, &["Fix it"]);
    fs::remove_dir_all(world.work.join(".verdone")).unwrap();
    world.write(".verdone", "");
    for n in 1..=3 {
        stop(&world).blocked(&format!("fault {n} of at most 3"));
    }
    stop(&world).let_go("UNVERIFIED");
}

#[test]
fn checks_are_seen_red_before_a_story_is_worked_on() {
    let world = world("", &[("PLAN.md", PLAN)]);
    let said = verdone(&world, &["loop", "start", "--session", "s1", "--plan", "PLAN.md"]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("The checks of US-001 fail now: when they pass, it is verified."), "{said}");
    // Both at once: the check of the second was never red when its turn came.
    world.write("one", "one\n");
    world.write("two", "two\n");
    stop(&world).blocked("story US-001 is done (verified)");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop are done (1 verified, 1 untested)");
    let again = PLAN.replace("US-001", "US-011").replace("US-002", "US-012").replace("grep -q two two", "grep -q 2 two");
    world.write("PLAN.md", &again);
    let said = verdone(&world, &["loop", "start", "--session", "s1", "--plan", "PLAN.md"]);
    assert!(String::from_utf8(said.stdout).unwrap().contains("The checks of US-011 already pass: alone they prove nothing."));
}

#[track_caller]
fn refused(world: &World, arguments: &[&str]) -> String {
    let at = world.work.display().to_string();
    let output: Output = world.command(&[&["-C", &at], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_empty_session_or_task_is_a_usage_error_with_a_hint() {
    let world = world(GATE, &[]);
    for (arguments, part) in [
        (&["loop", "start", "--session", "", "Fix it"][..], "--session is empty"),
        (&["loop", "start", " "], "TASK is empty"),
        (&["loop", "stop", "--session", " "], "--session is empty"),
    ] {
        let said = refused(&world, arguments);
        assert!(said.contains(part) && said.contains("hint"), "{said}");
    }
    // An unusable plan gives the same exit code.
    arm(&world, &["Fix it"]);
    stop(&world);
    world.write("PLAN.md", "- [ ] US-001: One\n- [ ] US-001: The same\n");
    for arguments in [&["loop", "start", "--plan", "PLAN.md"][..], &["done", "--session", "s1", "--story", "US-001"]] {
        assert!(refused(&world, arguments).contains("PLAN.md"), "{arguments:?}");
    }
}

#[test]
fn a_project_whose_path_has_a_line_end_is_held_like_any_other() {
    let mut world = world(GATE, &[]);
    let odd = world.root.join("odd\nname");
    fs::rename(&world.work, &odd).unwrap();
    world.work = odd;
    arm(&world, &["Fix it"]);
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    fs::remove_dir_all(world.work.join(".verdone/sessions")).unwrap();
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE");
}
