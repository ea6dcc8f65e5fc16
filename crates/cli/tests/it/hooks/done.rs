//! A session becoming *done*: the page names what is missing and what helps, and doing that is enough.

use serde_json::{Value, json};

use crate::hooks::stop_gate::{WORK, arm, name_the_author, stop, verdone};
use crate::hooks::world::{Mode, World};

const GATES: &str = "[[gate]]\nname = \"tests\"\ncommand = \"test ! -f broken\"\n\
                     [[gate]]\nname = \"lint\"\nstage = \"quality\"\ncommand = \"true\"\n";
const PLAN: &str = "- [ ] US-001: One\n  - Complexity: 3\n  - Verification: `test -f one`\n\
                    - [ ] US-002: Two\n  - Complexity: 3\n  - Verification: `test -f two`\n";

fn project(profile: &str) -> World {
    let config = format!("[done]\nprofile = \"{profile}\"\n{GATES}{WORK}");
    let mut world = World::with_repository(&[(".verdone/config.toml", &config), ("PLAN.md", PLAN)]);
    name_the_author(&mut world);
    world
}

#[track_caller]
fn done(world: &World, more: &[&str], code: i32) -> String {
    let output = world.command(&[&["-C", &world.path("."), "done"], more].concat()).output().unwrap();
    let (said, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{said}{err}");
    said + &err
}

/// All our commands in backticks that belong to required conditions.
fn commands(page: &str) -> Vec<String> {
    let asked = page.split("\nNot required:").next().unwrap();
    let quoted = asked.split('`').skip(1).step_by(2).filter(|text| text.starts_with("verdone "));
    let mut found: Vec<String> = quoted.map(str::to_owned).collect();
    found.dedup();
    found
}

#[track_caller]
fn type_in(world: &World, command: &str) {
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    verdone(world, &words);
}

fn commit(world: &World) {
    world.git(&["add", "."]);
    world.git(&["-c", "user.name=dev", "-c", "user.email=dev@example.org", "commit", "--quiet", "-m", "work"]);
}

#[test]
fn a_session_is_done_after_its_change_and_the_commands_that_the_page_names() {
    let world = project("loop");
    world.begin(Mode::Session);
    assert!(done(&world, &[], 1).contains("nothing was changed"));
    world.write("one", "1\n");
    // The gates alone do not cover the story's own checks: the page says so, and names the command.
    verdone(&world, &["verify"]);
    let page = done(&world, &[], 1);
    assert_eq!(commands(&page), ["verdone verify US-001"], "{page}");
    world.write("broken", "");
    let red = world.command(&["-C", &world.path("."), "verify", "US-001"]).output().unwrap();
    assert_eq!(red.status.code(), Some(1));
    let page = done(&world, &[], 1);
    assert!(
        page.contains("1 check is red: tests") && page.contains("Fix what fails, then run `verdone verify US-001`"),
        "{page}"
    );
    std::fs::remove_file(world.work.join("broken")).unwrap();
    for command in commands(&done(&world, &[], 1)) {
        type_in(&world, &command);
    }
    let page = done(&world, &[], 0);
    assert!(page.contains("Done: every required condition is met (session s1, story US-001, complexity 3)."), "{page}");
    // A commit still counts as a change; what was verified before it may have to be verified again.
    commit(&world);
    verdone(&world, &["verify", "US-001"]);
    assert!(done(&world, &[], 0).contains("1 file was changed\n"));
}

#[test]
fn all_nine_conditions_can_be_met_one_after_the_other() {
    let world = project("orchestrator");
    world.begin(Mode::Session);
    world.write("one", "1\n");
    let page = done(&world, &[], 1);
    assert!(page.contains("some changes are not committed: one"), "{page}");
    commit(&world);
    let page = done(&world, &[], 1);
    let named = commands(&page);
    let claim = "verdone claim --session s1 retrospective_done --note WHAT";
    assert_eq!(named, ["verdone plan approve", "verdone verify US-001", claim], "{page}");
    type_in(&world, "verdone plan approve --yes");
    named[1..].iter().for_each(|command| type_in(&world, command));
    assert!(done(&world, &[], 0).contains("the agent says so (a claim, not proof): WHAT"));
    let json: Value = serde_json::from_str(&done(&world, &["--json"], 0)).unwrap();
    assert_eq!((&json["standing"], &json["story"], &json["profile"]), (&json!("done"), &json!("US-001"), &json!("orchestrator")));
    let page = done(&world, &["--story", "US-002"], 1);
    assert!(page.contains("story US-002") && commands(&page) == ["verdone verify US-002"], "{page}");
}

#[test]
fn the_work_of_a_loop_is_what_changed_since_it_began_and_its_story_the_one_that_is_asked_about() {
    let world = project("loop");
    world.begin(Mode::Session);
    world.write("README.md", "Changed before the loop.\n");
    arm(&world, &["--plan", "PLAN.md"]);
    assert!(done(&world, &[], 1).contains("nothing was changed"), "what was there before is no work");
    world.write("one", "1\n");
    stop(&world).blocked("NEXT STORY (US-002)");
    assert!(done(&world, &[], 1).contains("story US-002"));
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE");
    let page = done(&world, &[], 0);
    assert!(page.contains("story US-002") && page.contains("test -f two; tests"), "{page}");
}

#[test]
fn a_session_or_a_story_that_does_not_exist_is_no_answer() {
    let world = project("loop");
    assert!(done(&world, &["--session", "nope"], 2).contains("no sessions are recorded yet: verdone install turns on recording"));
    world.begin(Mode::Session);
    let said = done(&world, &["--session", "nope"], 2);
    assert!(said.contains("no session \"nope\" was recorded here\nhint: known, newest first: s1"), "{said}");
    let said = done(&world, &["--story", "US-009"], 2);
    assert!(said.contains("PLAN.md has no story \"US-009\"\nhint: its stories: US-001, US-002"), "{said}");
    // The start of a session that only made a claim is unknown.
    verdone(&world, &["claim", "retrospective_done", "--note", "x", "--session", "s2"]);
    assert!(done(&world, &["--session", "s2"], 1).contains("its commits are unknown"));
}
