//! Everything proven is checked once more before a run is complete.

use verdone_testkit::Signal;

use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{HONEST, PATIENCE, Settings, TWO, World, text};

/// The second story breaks the first one, and the first is fixed when it is reopened.
const BREAKING: &str = "[[turn]]\nstory = \"US-001\"\nattempt = 1\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                        [[turn]]\nstory = \"US-001\"\nattempt = 2\nsteps = [{ create = \"a\", text = \"again\\n\" }]\n\
                        [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }, { delete = \"a\" }]\n";

#[test]
fn a_story_that_later_work_broke_is_opened_again_and_mended() {
    let world = World::new(TWO, BREAKING);
    let output = world.run(0);
    let broken = world.all("regressed");
    assert_eq!(broken.len(), 1);
    assert_eq!((text(&broken[0]["story"]), broken[0]["again"].as_bool()), ("US-001".to_owned(), Some(false)));
    assert!(output.stdout.contains("US-001 was done and fails now; reopened"), "{}", output.stdout);
    assert!(world.prompt(3).contains("This story was done, but later work broke it."), "{}", world.prompt(3));
    assert_eq!(
        world.subjects(),
        ["feat(US-001): Write a", "chore: reopen a broken story", "feat(US-002): Write b", "feat(US-001): Write a", "initial"]
    );
    assert!(world.git(&["show", "HEAD^:PLAN.md"]).contains("- [ ] Write the file a"));
    assert!(
        world.plan().contains("- [x] Write the file a") && world.plan().contains("- [x] Write the file b"),
        "{}",
        world.plan()
    );
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    assert_eq!(world.finish(), "complete");
    let looks = world.all("regression_checked");
    assert_eq!(looks.len(), 2, "the mended tree was looked at as well");
    assert_eq!(looks[1]["held"], 2);
    world.assert_clean();
}

/// The first story changes a test unnecessarily, and the second one breaks what that test was for.
#[test]
fn tests_that_an_earlier_story_made_weaker_count_at_the_end_as_they_were() {
    let script = "[[turn]]\nstory = \"US-001\"\nattempt = 1\nsteps = [{ create = \"a\" }, { create = \"tests/value.sh\", text = \"true\\n\" }]\n\
                  [[turn]]\nstory = \"US-001\"\nattempt = 2\nsteps = [{ create = \"value\", text = \"good again\\n\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\" }, { create = \"value\", text = \"bad\\n\" }]\n";
    let gate = "[[gate]]\nname = \"tests\"\ncommand = \"sh tests/value.sh\"\n";
    for (scope, reopened) in [("", 1), ("  - Scope: `tests/`, `a`\n", 0)] {
        let settings = Settings { tables: gate, ..Settings::default() };
        let world = World::folder(script, &settings);
        world.sandbox.write("PLAN.md", TWO.replacen("`test -f a`\n", &format!("`test -f a`\n{scope}"), 1));
        world.sandbox.write("tests/value.sh", "grep -q good value\n");
        world.sandbox.write("value", "good\n");
        world.sandbox.repo();
        let output = world.run(0);
        assert_eq!(world.all("regressed").len(), reopened, "{}", output.stdout);
        if reopened == 1 {
            assert!(world.prompt(3).contains("tests with the tests from before the run"), "{}", world.prompt(3));
            assert_eq!(world.git(&["show", "HEAD:value"]), "good again");
        }
    }
}

/// The first story adds a file that the check of the second one loads.
#[test]
fn a_check_that_needs_a_test_from_an_earlier_story_does_not_verify() {
    let helper = "{ create = \"tests/lib.sh\", text = \"true\\n\" }";
    let script = format!(
        "[[turn]]\nstory = \"US-001\"\nsteps = [{{ create = \"a\" }}, {helper}]\n\
         [[turn]]\nstory = \"US-002\"\nsteps = [{{ create = \"b\" }}]\n"
    );
    let plan = TWO.replace("`test -f b`", "`. ./tests/lib.sh && test -f b`");
    for (is_there, proof) in [(false, "agent-tested"), (true, "verified")] {
        let world = World::folder(&script, &Settings::default());
        world.sandbox.write("PLAN.md", &plan);
        if is_there {
            world.sandbox.write("tests/lib.sh", "true\n");
        }
        world.sandbox.repo();
        let output = world.run(0);
        assert_eq!(world.trailer("HEAD", "Verdone-Proof"), proof, "{}", output.stdout);
    }
}

#[test]
fn a_story_that_breaks_twice_stalls_the_run() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }, { run = \"rm -f b\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }, { run = \"rm -f a\" }]\n";
    let world = World::new(TWO, script);
    let output = world.run(4);
    assert_eq!(world.finish(), "stalled", "{}", output.stdout);
    let again: Vec<bool> = world.all("regressed").iter().map(|event| event["again"].as_bool().unwrap()).collect();
    assert_eq!(again, [false, false, true], "{}", output.stdout);
    assert!(text(&world.last("run_stopping")["reason"]).contains("US-001 was fixed once and is broken again"));
    assert!(world.plan().contains("- [ ] Write the file a"), "the plan does not call it done: {}", world.plan());
    world.assert_clean();
}

#[test]
fn what_does_not_fit_into_the_time_is_listed_and_breaks_nothing() {
    let plan = TWO.replace("`test -f a`", "`test -f a && { test ! -f b || sleep 600; }`");
    let settings = Settings { tables: "[regression]\ntime = \"300ms\"\n", ..Settings::default() };
    let world = World::with(&plan, HONEST, &settings);
    let output = world.run(0);
    let look = world.last("regression_checked");
    assert_eq!(look["not_checked"][0], "US-001", "{look}");
    assert!(output.stdout.contains("Not checked again (no time left, or the tests could not run): US-001"), "{}", output.stdout);
    assert_eq!(world.all("regressed").len(), 0);
}

#[test]
fn what_an_interrupt_came_before_is_not_checked_and_does_not_count_as_held() {
    let hangs = "`test -f a && { test ! -f c || { : > ../tmp/reached; sleep 60; }; }`";
    let third = "\n### US-003: Write c\n\n- [ ] Write the file c\n  - Verification: `test -f c`\n";
    let script = format!("{HONEST}[[turn]]\nstory = \"US-003\"\nsteps = [{{ create = \"c\" }}]\n");
    let world = World::new(&format!("{}{third}", TWO.replace("`test -f a`", hangs)), &script);
    let run = world.start();
    wait_for_file(&world, "../tmp/reached");
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    let look = world.last("regression_checked");
    assert_eq!(look["not_checked"], serde_json::json!(["US-001", "US-002"]), "{look}");
    assert_eq!(look["held"], 1, "only the last story was green on this very tree: {look}");
    assert_eq!(world.all("regressed").len(), 0);
}

#[test]
fn switched_off_nothing_is_looked_at_again() {
    let settings = Settings { tables: "[regression]\nat_end = false\n", ..Settings::default() };
    let world = World::with(TWO, BREAKING, &settings);
    world.run(0);
    assert_eq!(world.all("regression_started").len(), 0);
}

#[test]
fn a_command_that_was_green_on_the_very_tree_is_not_run_again_and_traces_of_checks_are_removed() {
    let plan = TWO.replace("`test -f a`", "`test -f a && { test ! -f b || echo trace >> README.md; }`");
    let world = World::with(&plan, HONEST, &Settings::default());
    world.sandbox.write("README.md", "text\n");
    world.git(&["add", "README.md"]);
    world.git(&["commit", "-qm", "readme"]);
    world.run(0);
    let look = world.last("regression_checked");
    assert_eq!((look["runs"].as_array().unwrap().len(), &look["held"]), (1, &2.into()), "{look}");
    assert_eq!(world.sandbox.read("README.md"), "text\n");
    world.assert_clean();
}

#[test]
fn stories_of_earlier_runs_are_looked_at_too() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    assert_eq!(world.all("regressed").len(), 0);
    world.sandbox.write(".verdone/script.toml", BREAKING);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "another script"]);
    world.run(0);
    assert_eq!(text(&world.last("regressed")["story"]), "US-001");
    assert_eq!(world.finish(), "complete");
}

/// The second story breaks the first one, and makes its check pass.
const DEFUSING: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                        [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }, { create = \"a\", text = \"bad\\n\" }, \
                        { create = \"own.sh\", text = \"test -f a\\n\" }]\n";

fn defused(plan: &str) -> World {
    let world = World::folder(DEFUSING, &Settings::default());
    world.sandbox.write("PLAN.md", plan);
    world.sandbox.write("own.sh", "grep -q one a\n");
    world.sandbox.repo();
    world
}

#[test]
fn a_story_that_defuses_the_check_of_an_earlier_one_needs_a_review() {
    let world = defused(&TWO.replace("`test -f a`", "`sh own.sh`"));
    let output = world.run(4);
    assert_eq!(text(&world.all("committed")[0]["proof"]), "verified", "{}", output.stdout);
    let review = world.last("review_needed");
    assert_eq!(review["place"]["story"], "US-002");
    let why = review["reasons"].to_string();
    assert!(why.contains("US-001: sh own.sh") && why.contains("own.sh"), "{why}");
    assert_eq!(world.git(&["show", "HEAD:own.sh"]), "grep -q one a", "nothing of it has landed");
}

#[test]
fn a_check_that_the_later_storys_scope_names_is_meant_to_change() {
    let plan = TWO
        .replace("`test -f a`", "`sh own.sh`")
        .replace("- [ ] Write the file b\n", "- [ ] Write the file b\n  - Scope: `a`, `b`, `own.sh`\n");
    let world = defused(&plan);
    let output = world.run(0);
    let proofs: Vec<String> = world.all("committed").iter().map(|event| text(&event["proof"])).collect();
    assert_eq!(proofs[0], "verified", "{}", output.stdout);
    assert_ne!(proofs[1], "verified", "it may change what judges it, so its check proves less");
    assert!(world.all("review_needed").is_empty(), "{}", output.stdout);
}

#[test]
fn a_story_that_changes_the_check_of_a_later_one_needs_a_review() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }, { create = \"own.sh\", text = \"test -f b\\n\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"bad\\n\" }]\n";
    let settings = Settings { limits: "attempts = 1", ..Settings::default() };
    let world = World::folder(script, &settings);
    let config = world.sandbox.read(".verdone/config.toml").replace("[run]\n", "[run]\non_review = \"continue\"\n");
    world.sandbox.write(".verdone/config.toml", config);
    world.sandbox.write("PLAN.md", TWO.replace("`test -f b`", "`sh own.sh`"));
    world.sandbox.write("own.sh", "grep -q two b\n");
    world.sandbox.repo();
    world.run(4);
    let review = world.last("review_needed");
    assert_eq!(review["place"]["story"], "US-001");
    assert!(review["reasons"].to_string().contains("the checks of US-002 use own.sh"), "{review}");
    assert!(world.all("committed").is_empty(), "with the check as it was written, US-002 does not pass");
}
