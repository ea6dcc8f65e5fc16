//! Stories that pass, that are fixed, and that never pass.

use crate::run_loop::world::{HONEST, ONE, Settings, TWO, World, always, text};

#[test]
fn a_verified_story_is_one_commit_with_its_evidence() {
    let world = World::new(ONE, HONEST);
    let base = world.head();
    world.run(0);

    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert_eq!(world.git(&["rev-parse", "HEAD^"]), base);
    assert_eq!(world.trailer("HEAD", "Verdone-Story"), "US-001");
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    assert_eq!(world.trailer("HEAD", "Verdone-Run"), text(&world.events()[0]["run"]));

    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    world.sandbox.write("../tmp/note", format!("{}\n", world.git(&["cat-file", "blob", &blob])));
    let digest = world.sandbox.run("sha256sum", ["../tmp/note"]).stdout;
    let digest = digest.split_whitespace().next().unwrap();
    assert_eq!(world.trailer("HEAD", "Verdone-Evidence"), format!("sha256:{digest}"));
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(text(&note["base"]), base);
    assert_eq!((text(&note["red"]), text(&note["after"][0]["outcome"])), ("red".to_owned(), "passed".to_owned()));

    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"), "one byte and nothing else");
    assert_eq!(world.git(&["show", "HEAD:PLAN.md"]), world.plan().trim_end());
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na");
    world.assert_clean();
    assert_eq!(world.finish(), "complete");
}

#[test]
fn what_failed_goes_into_the_next_prompt_and_is_repaired() {
    let plan = ONE.replace("test -f a", "grep -q right a || { echo the-check-said-this; exit 1; }");
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\", text = \"wrong\" }]\n\
                  [[turn]]\nsteps = [{ create = \"a\", text = \"right\" }]\n";
    let world = World::new(&plan, script);
    world.run(0);
    assert!(!world.prompt(1).contains("the-check-said-this\n"), "{}", world.prompt(1));
    assert!(world.prompt(2).contains("\nthe-check-said-this"), "{}", world.prompt(2));
    assert_eq!(world.subjects().len(), 2);
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    world.assert_clean();
}

#[test]
fn a_story_that_never_passes_is_kept_retried_last_and_then_blocked() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"wrong\", text = \"the work\" }, { edit = \"README.md\", find = \"A project\", replace = \"Changed\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\" }]\n";
    let settings = Settings { limits: "attempts = 2\nturns = 1", ..Settings::default() };
    let world = World::with(TWO, script, &settings);
    world.run(4);

    let order: Vec<String> = world
        .all("story_selected")
        .iter()
        .map(|event| format!("{} {}", text(&event["place"]["story"]), event["place"]["attempt"]))
        .collect();
    assert_eq!(order, ["US-001 1", "US-002 1", "US-001 2"], "the failed one comes back after the others");
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "initial"]);
    let kept = world.kept();
    assert_eq!(world.git(&["show", &format!("{kept}:wrong")]), "the work");
    assert_eq!(world.git(&["show", &format!("{kept}:README.md")]), "# Changed");
    let run = text(&world.events()[0]["run"]);
    for attempt in [1, 2] {
        world.git(&["rev-parse", "--verify", &format!("refs/verdone/attempts/{run}/US-001-{attempt}")]);
    }
    assert!(!world.has("wrong"));
    assert_eq!(world.sandbox.read("README.md"), "# A project\n");
    assert_eq!(world.plan().matches("[x]").count(), 1);
    world.assert_clean();
    assert_eq!(world.finish(), "blocked");
    assert_eq!(text(&world.last("story_failed")["story"]), "US-001");
}

#[test]
fn what_waits_for_a_failed_story_is_not_worked_on() {
    let plan = TWO.replace("  - Verification: `test -f b`", "  - Depends on: US-001\n  - Verification: `test -f b`");
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::with(&plan, &always("{ create = \"b\" }"), &settings);
    world.run(4);
    assert_eq!(world.all("story_selected").len(), 1);
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.finish(), "blocked");
    assert!(!world.has("b"));
}

#[test]
fn the_lesson_of_a_failed_attempt_is_told_to_the_next_one() {
    let plan = ONE.replace("test -f a", "test -f a || { echo no-a-there; exit 1; }");
    let script = "[[turn]]\nattempt = 1\nsteps = [{ create = \"x\" }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let settings = Settings { limits: "turns = 1", ..Settings::default() };
    let world = World::with(&plan, script, &settings);
    world.run(0);
    assert!(world.prompt(2).contains("\nno-a-there"), "{}", world.prompt(2));
    assert_eq!(world.tree_files("HEAD").iter().filter(|file| *file == "x").count(), 0);
}

#[test]
fn one_story_alone_can_be_worked_on() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-002"], 0);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "initial"]);
    let unknown = world.run_with(&["--story", "US-009"], 2);
    assert!(unknown.stderr.contains("US-001, US-002"), "{}", unknown.stderr);
}

#[test]
fn a_story_that_the_user_adds_during_a_run_is_worked_on_too() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ say = \"at work\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\" }]\n\
                  [[turn]]\nsteps = [{ create = \"b\" }]\n";
    let world = World::new(ONE, script);
    let run = world.start_with(&["--check", "true"]);
    run.wait_for("at work", crate::run_loop::world::PATIENCE);
    world.by_user(|| world.sandbox.write("PLAN.md", format!("{ONE}\n### US-002: Write b\n\n- [ ] Write the file b\n")));
    world.sandbox.write("../tmp/go", "");
    run.wait(crate::run_loop::world::PATIENCE).assert_code(0);
    let subjects: Vec<String> = world.all("committed").iter().map(|event| text(&event["place"]["story"])).collect();
    assert_eq!(subjects, ["US-001", "US-002"]);
    assert_eq!(text(&world.last("committed")["proof"]), "untested", "its own check was not there when the run began");
    assert_eq!(world.plan().matches("[x]").count(), 2, "both are ticked in the user's edited plan: {}", world.plan());
}

#[test]
fn a_fully_ticked_plan_is_checked_and_its_boxes_are_called_claims() {
    let done = ONE.replace("[ ]", "[x]");
    let world = World::new(&done, HONEST);
    let output = world.run(4);
    assert!(output.stdout.contains("test -f a"), "{}", output.stdout);
    world.run_with(&["--red-baseline"], 4);

    world.sandbox.write("a", "");
    world.git(&["add", "a"]);
    world.git(&["commit", "--quiet", "-m", "a"]);
    let output = world.run(0);
    assert!(output.stdout.contains("claimed"), "{}", output.stdout);
    assert_eq!(world.all("turn_started").len(), 0);
    assert_eq!(world.subjects(), ["a", "initial"]);
}
