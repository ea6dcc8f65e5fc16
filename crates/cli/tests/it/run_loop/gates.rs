//! Gates in a run: in parallel, advisory, flaky, only if they apply, only on the files of the commit, and only once for the same tree.

use serde_json::Value;

use crate::run_loop::world::{HONEST, ONE, Settings, TWO, World, text};

fn world(plan: &str, script: &str, tables: &str) -> World {
    World::with(plan, script, &Settings { limits: "attempts = 1\nturns = 2", tables, ..Settings::default() })
}

/// The checks of the last verification, in order.
fn verified(world: &World) -> Vec<String> {
    runs(world).iter().map(|run| text(&run["name"])).collect()
}

fn runs(world: &World) -> Vec<Value> {
    world.last("verified")["report"]["runs"]["attempt"].as_array().unwrap().clone()
}

fn lines_of(world: &World, file: &str) -> usize {
    std::fs::read_to_string(world.sandbox.root().join(file)).map_or(0, |text| text.lines().count())
}

#[test]
fn gates_of_a_stage_run_beside_each_other_and_stages_of_ones_own_come_last() {
    let meets = |mine: &str, other: &str| format!("touch ../tmp/{mine}; while ! test -e ../tmp/{other}; do sleep 0.02; done");
    let tables = format!(
        "[gates]\nparallel = 2\n[[gate]]\nname = \"smoke\"\nstage = \"zeta\"\ncommand = \"true\"\n\
         [[gate]]\nname = \"load\"\nstage = \"alpha\"\ncommand = \"true\"\n\
         [[gate]]\nname = \"one\"\nstage = \"quality\"\ncommand = \"{}\"\n[[gate]]\nname = \"two\"\nstage = \"quality\"\ncommand = \"{}\"\n",
        meets("one", "two"),
        meets("two", "one")
    );
    let world = world(ONE, HONEST, &tables);
    world.run(0);
    assert_eq!(verified(&world), ["test -f a", "one", "two", "smoke", "load"]);
}

#[test]
fn an_advisory_gate_that_fails_is_told_and_stops_nothing() {
    let tables = "[[gate]]\nname = \"style\"\nblocking = false\ncommand = \"echo ugly; exit 3\"\n\
                  [[gate]]\nname = \"late\"\nstage = \"security\"\ncommand = \"true\"\n";
    // The first turn does not do what the story asks for, so that there is feedback.
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"b\" }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = world(ONE, script, tables);
    let output = world.run(0);
    assert!(output.stdout.contains("style failed with exit code 3 (advisory)"), "{}", output.stdout);
    assert_eq!(verified(&world), ["test -f a", "style", "late"]);
    assert!(!world.prompt(2).contains("ugly") && !world.prompt(1).contains("exit 3"), "{}", world.prompt(2));
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    let note: Value = serde_json::from_str(&world.git(&["notes", "--ref=verdone", "show", "HEAD"])).unwrap();
    assert_eq!(note["after"][1]["advisory"], true);
    let only_advisory = World::with(
        "- [ ] US-001: Write a\n",
        HONEST,
        &Settings { tables: "[[gate]]\nname = \"style\"\nblocking = false\ncommand = \"true\"\n", ..Settings::default() },
    );
    let refused = only_advisory.run(2);
    assert!(refused.stderr.contains("no check for"), "what is advisory checks nothing: {}", refused.stderr);
}

#[test]
fn a_gate_that_passes_when_tried_again_is_reported_as_flaky_everywhere() {
    let every_second = "if test -e ../tmp/tried; then rm ../tmp/tried; else touch ../tmp/tried; exit 1; fi";
    let world = world(ONE, HONEST, &format!("[[gate]]\nname = \"e2e\"\nretries = 1\ncommand = \"{every_second}\"\n"));
    let output = world.run(0);
    assert!(output.stdout.contains("e2e passed after a failure on the same tree (flaky)"), "{}", output.stdout);
    assert!(output.stdout.contains("\nFlaky checks (failed and passed on the same tree): e2e\n"), "{}", output.stdout);
    assert_eq!(runs(&world)[1]["flaky"], true);
    let note: Value = serde_json::from_str(&world.git(&["notes", "--ref=verdone", "show", "HEAD"])).unwrap();
    assert_eq!(note["after"][1]["flaky"], true);
    assert!(world.verdone(&["report"]).stdout.contains("Flaky checks (failed and passed on the same tree): e2e"));
}

#[test]
fn a_gate_runs_for_the_paths_and_the_complexity_that_it_names() {
    let tables = "[[gate]]\nname = \"a-only\"\nwhen = { paths = [\"a\"] }\ncommand = \"true\"\n\
                  [[gate]]\nname = \"hard\"\nwhen = { complexity_at_least = 8 }\ncommand = \"true\"\n";
    let plan = TWO.replace("  - Verification: `test -f b`", "  - Verification: `test -f b`\n  - Complexity: high");
    let world = world(&plan, HONEST, tables);
    world.run(0);
    let names = |runs: &Value| -> Vec<String> { runs.as_array().unwrap().iter().map(|run| text(&run["name"])).collect() };
    let seen: Vec<Vec<String>> = world.all("verified").iter().map(|event| names(&event["report"]["runs"]["attempt"])).collect();
    assert_eq!(seen, [["test -f a", "a-only"], ["test -f b", "hard"]]);
    assert_eq!(names(&world.last("baseline_checked")["runs"]), ["a-only", "hard"]);
}

#[test]
fn a_gate_that_ran_no_tests_lets_no_story_pass() {
    let empty =
        "running 0 tests\\n\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\\n";
    let tables = "[[gate]]\nname = \"tests\"\ncommand = \"cargo test\"\n";
    let world = world(ONE, HONEST, tables);
    world.sandbox.add_script("cargo", &format!("#!/bin/sh\nprintf '{empty}'\n"));
    let output = world.run_with(&["--red-baseline"], 4);
    assert!(output.stdout.contains("tests no tests were run"), "{}", output.stdout);
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn after_a_red_baseline_the_next_command_shows_what_fails() {
    let world = world(ONE, HONEST, "[[gate]]\nname = \"broken\"\ncommand = \"echo it broke; false\"\n");
    let output = world.run(4);
    assert!(output.stdout.contains("Next: verdone verify"), "{}", output.stdout);
    assert!(world.verdone(&["verify"]).stdout.contains("it broke"));
}

#[test]
fn a_gate_is_not_helped_by_a_file_that_git_ignores() {
    let gate = "[[gate]]\nname = \"build\"\ncommand = \"test ! -e a || test -e h\"\n";
    let script = "[[turn]]\nsteps = [{ create = \"a\" }, { create = \"h\" }]\n";
    for (ignored, code) in [("h\n", 4), ("", 0)] {
        let world = World::folder(script, &Settings { limits: "attempts = 1\nturns = 1", tables: gate, ..Settings::default() });
        world.sandbox.write("PLAN.md", ONE);
        world.sandbox.write(".gitignore", ignored);
        world.sandbox.repo();
        world.run(code);
    }
}

#[test]
fn a_green_of_the_same_run_tree_and_gate_is_not_asked_for_again() {
    let tables = "[[gate]]\nname = \"slow\"\ncommand = \"echo ran >> ../tmp/asked\"\n";
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\" }]\n[[turn]]\nsteps = [{ say = \"It is done.\" }]\n";
    let world = world(ONE, script, tables);
    world.hook("pre-commit", "if test -e ../tmp/refused; then exit 0; fi; touch ../tmp/refused; echo not yet; exit 1");
    world.run(0);
    assert_eq!(world.all("verified").len(), 2);
    assert_eq!(lines_of(&world, "tmp/asked"), 2, "once on the start tree, once on the story's");
    let seen = runs(&world);
    assert!(seen[0]["cached"].is_null(), "the story's own check is always run");
    assert_eq!(seen[1]["cached"], true);
}

#[test]
fn a_result_is_filed_under_its_own_check_when_checks_are_not_in_the_order_of_stages() {
    let third = "\n### US-003: Write c\n\n- [ ] Write the file c\n  - Verification: `test -f c`\n";
    let changing =
        "[[turn]]\nstory = \"US-003\"\nsteps = [{ create = \"c\" }, { create = \"own.sh\", text = \"test -f a # c\\n\" }]\n";
    let gates = "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n\
                 [[gate]]\nname = \"lint\"\nstage = \"quality\"\nwhen = { paths = [\"c\"] }\ncommand = \"test ! -f b || test -f c\"\n";
    let settings = Settings { limits: "attempts = 1\nturns = 2", tables: gates, ..Settings::default() };
    let world = World::folder(&format!("{HONEST}{changing}"), &settings);
    world.sandbox.write("PLAN.md", format!("{}{third}", TWO.replace("`test -f a`", "`sh own.sh`")));
    world.sandbox.write("own.sh", "test -f a\n");
    world.sandbox.repo();
    world.run(0);
    // The third story changes a script, so the checks of earlier stories run again. They belong to an earlier stage than the last gate, but
    // are listed after it. On the base, all of them run together.
    let report = world.last("verified")["report"].clone();
    let base = report["runs"]["base"].as_array().unwrap();
    let failed: Vec<String> = base.iter().filter(|run| run["outcome"] != "passed").map(|run| text(&run["name"])).collect();
    assert_eq!(failed, ["test -f c", "lint"], "{report}");
}

#[test]
fn a_test_report_is_found_in_a_folder_that_the_checkout_has_too() {
    let report = "<testsuite tests=\"1\"><testcase classname=\"c\" name=\"t\"/></testsuite>\n";
    let patterns = ["target/reports/junit.xml", "build/reports/*.xml", "*/reports/junit.xml", "sub/target/reports/junit.xml"];
    for pattern in patterns {
        let folder = pattern.strip_suffix("/junit.xml").or(pattern.strip_suffix("/*.xml")).unwrap().replace('*', "target");
        let gate = format!(
            "[[gate]]\nname = \"tests\"\njunit = \"{pattern}\"\ncommand = \"mkdir -p {folder} && cp report.xml {folder}/junit.xml\"\n"
        );
        let settings = Settings { limits: "attempts = 1\nturns = 2", tables: &gate, ..Settings::default() };
        let world = World::folder(HONEST, &settings);
        for (path, text) in [("PLAN.md", ONE), (".gitignore", "target/\nbuild/\n"), ("report.xml", report), ("sub/file", "")] {
            world.sandbox.write(path, text);
        }
        world.sandbox.repo();
        for built in ["target", "build", "sub/target"] {
            world.sandbox.write(format!("{built}/reports/junit.xml"), "an old one\n");
        }
        world.run(0);
        assert_eq!(runs(&world)[1]["tests"]["ran"], 1, "{pattern}: {}", runs(&world)[1]);
    }
}

#[test]
fn no_prompt_says_more_about_a_hidden_gate_than_its_name_and_that_it_did_not_pass() {
    // Red before the work and after the first turn, no answer after the second, green after the third.
    let exam = "test -f b && exit 0\necho SECRET-OUTPUT\ntest -f c && exec no-such-examiner\nexit 77\n";
    let gate = "[[gate]]\nname = \"exam\"\ncommand = \"sh $VERDONE_HIDDEN/questions.sh\"\nhidden = \"~/hidden\"\n";
    let turns = [(1, "a"), (2, "c"), (3, "b")];
    let turn = |(turn, file)| format!("[[turn]]\nturn = {turn}\nsteps = [{{ create = \"{file}\" }}]\n");
    let script = turns.map(turn).concat();
    let settings = Settings { limits: "attempts = 1\nturns = 3", tables: gate, ..Settings::default() };
    let world = World::folder(&script, &settings);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write("../home/hidden/questions.sh", exam);
    world.sandbox.repo();
    world.run_with(&["--red-baseline"], 0);
    let outcomes: Vec<String> =
        world.all("verified").iter().map(|event| event["report"]["runs"]["attempt"][1]["outcome"].to_string()).collect();
    assert!(outcomes[0].contains("77") && outcomes[1].contains("127"), "{outcomes:?}");
    for turn in 1..=3 {
        let prompt = world.prompt(turn);
        for told in ["SECRET-OUTPUT", "questions.sh", "77", "127", "exit code", "examiner"] {
            assert!(!prompt.contains(told), "{told} in the prompt of turn {turn}:\n{prompt}");
        }
        assert!(prompt.contains("### `exam` did not pass"), "{prompt}");
    }
}
