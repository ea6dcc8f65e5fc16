//! Stories without checks of their own: the tests that proved them are looked at once more before a run is called complete.

use crate::world::{Settings, World, text};

const PLAN: &str =
    "# Plan\n\n### US-001: Greet\n\n- [ ] The program greets\n\n### US-002: Part\n\n- [ ] The program says goodbye\n";
const GREETS: &str = "[[turn]]\nstory = \"US-001\"\nattempt = 1\nsteps = [{ create = \"greet\", text = \"hello\" }, \
                      { create = \"tests/greet.bats\", text = \"grep -q hello greet\" }]\n";

fn world(script: &str) -> World {
    let tables = "[[gate]]\nname = \"unit\"\ncommand = \"true\"\n[clean]\ntest = [\"sh\", \"{files}\"]\n";
    let settings = Settings { top: "own_check = \"agent-test\"", limits: "", tables };
    World::with(PLAN, &format!("{GREETS}{script}"), &settings)
}

#[test]
fn a_story_whose_tests_later_work_broke_is_opened_again_and_mended() {
    let world = world(
        "[[turn]]\nstory = \"US-001\"\nattempt = 2\nsteps = [{ create = \"greet\", text = \"hello, goodbye\" }]\n\
         [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"greet\", text = \"goodbye\" }, \
         { create = \"tests/part.bats\", text = \"grep -q goodbye greet\" }]\n",
    );
    let output = world.run(0);
    let broken = world.all("regressed");
    assert_eq!(broken.len(), 1, "{}", output.stdout);
    let told = (text(&broken[0]["story"]), text(&broken[0]["runs"][0]["origin"]));
    assert_eq!(told, ("US-001".to_owned(), "agent_test".to_owned()));
    assert_eq!(world.last("regression_checked")["held"], 2, "{}", output.stdout);
    assert_eq!(world.sandbox.read("greet"), "hello, goodbye");
    world.verdone(&["audit", "--rerun"]).assert_code(0);
    world.assert_clean();
}

#[test]
fn tests_that_are_gone_say_nothing_about_the_story_and_that_is_told() {
    let world = world(
        "[[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"part\", text = \"goodbye\" }, \
         { run = \"mv tests/greet.bats tests/hello.bats\" }]\n",
    );
    let output = world.run(0);
    assert_eq!(world.all("regressed").len(), 0, "{}", output.stdout);
    assert_eq!(world.last("regression_checked")["not_checked"][0], "US-001");
    let told = format!("{}{}", output.stdout, output.stderr);
    assert!(told.contains("not checked again: tests/greet.bats: the tests that proved a story are gone"), "{told}");
}
