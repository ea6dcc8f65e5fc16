//! `verdone plan new`: the agent writes a plan, the user accepts its commands.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use verdone_testkit::Signal;

use crate::run_loop::world::{ONE, Settings, VERDONE, World, always, text};

fn world(said: &str, more: &str) -> World {
    let world = World::folder(&always(&format!("{{ say = '''{said}''' }}{more}")), &Settings::default());
    world.sandbox.repo();
    world
}

#[test]
fn a_plan_is_made_from_text_a_file_and_standard_input() {
    let world = world(ONE, "");
    world.verdone(&["plan", "new", "make an a", "--output", "one.md"]).assert_code(0);
    world.sandbox.write("request.md", "make an a, says the file");
    world.verdone(&["plan", "new", "request.md", "--output", "two.md"]).assert_code(0);
    let mut command = world.sandbox.command(VERDONE);
    let mut child =
        command.args(["plan", "new", "-", "--output", "three.md"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"make an a, says the pipe").unwrap();
    assert!(child.wait().unwrap().success());
    for name in ["one.md", "two.md", "three.md"] {
        assert!(world.sandbox.read(name).contains("### US-001: Write a"), "{name}");
    }
    let prompts: Vec<String> = world
        .everything_kept()
        .into_iter()
        .filter(|(path, _)| path.ends_with("turns/1-prompt.md"))
        .map(|(_, bytes)| String::from_utf8(bytes).unwrap())
        .collect();
    for request in ["make an a", "says the file", "says the pipe"] {
        assert!(prompts.iter().any(|prompt| prompt.contains(request)), "{request}");
    }
    world.verdone(&["plan", "new", "again", "--output", "one.md"]).assert_code(2);
}

#[test]
fn an_answer_that_is_no_plan_is_kept_and_needs_a_human() {
    let world = world("I would rather not.", "");
    let output = world.verdone(&["plan", "new", "make an a"]);
    output.assert_code(4);
    assert!(!world.has("PLAN.md"));
    assert!(
        world
            .everything_kept()
            .iter()
            .any(|(path, bytes)| path.ends_with("plan-answer.md") && bytes.starts_with(b"I would rather"))
    );
    assert!(output.stderr.contains("plan-answer.md"), "{}", output.stderr);
}

#[test]
fn an_agents_plan_runs_only_after_it_was_approved_and_again_after_an_edit() {
    let world = world(ONE, "");
    world.verdone(&["plan", "new", "make an a"]).assert_code(0);
    world.sandbox.write(".verdone/script.toml", always("{ create = \"a\" }"));
    let refused = world.run(2);
    assert!(refused.stderr.contains("verdone plan approve PLAN.md"), "{}", refused.stderr);
    world.verdone(&["plan", "approve", "PLAN.md", "--yes"]).assert_code(0);
    world.sandbox.write("PLAN.md", world.plan().replace("test -f a", "touch owned; test -f a"));
    world.run(2);
    assert!(!world.has("owned"));
    world.verdone(&["plan", "approve", "PLAN.md", "--yes"]).assert_code(0);
    world.run(0);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    assert_eq!(text(&world.last("run_stopped")["finish"]), "complete");
}

#[test]
fn what_the_agent_changes_while_planning_does_not_reach_the_checkout() {
    for crash in ["", ", { crash = 1 }"] {
        let world = world(
            ONE,
            &format!(
                ", {{ create = \"x\" }}, {{ edit = \"README.md\", find = \"A\", replace = \"The\" }}, {{ append = \".verdone/config.toml\", text = \"# mine\" }}{crash}"
            ),
        );
        let settings = world.sandbox.read(".verdone/config.toml");
        let output = world.verdone(&["plan", "new", "make an a"]);
        output.assert_code(i32::from(!crash.is_empty()));
        assert!(!world.has("x"), "{crash}");
        assert_eq!(world.sandbox.read("README.md"), "# A project\n", "{crash}");
        assert_eq!(world.sandbox.read(".verdone/config.toml"), settings, "{crash}");
        assert_eq!(world.has("PLAN.md"), crash.is_empty());
        world.git(&["diff", "--exit-code", "HEAD"]);
    }
}

#[test]
fn planning_that_is_stopped_ends_by_the_signals_code_and_writes_no_plan() {
    let world = world(ONE, "");
    let patience = Duration::from_mins(1);
    let new = ["plan", "new", "make an a", "--agent", "command", "--agent-command", "echo begun; sleep 600"];
    let planning = world.sandbox.spawn(VERDONE, new);
    planning.wait_for("begun", patience);
    planning.signal(Signal::INT);
    let output = planning.wait(patience);
    output.assert_code(130);
    assert!(output.stderr.contains("no plan was written") && !world.has("PLAN.md"), "{}", output.transcript());
    world.sandbox.assert_no_survivors(patience);
}

#[test]
fn a_fresher_project_in_planning_mode_gets_its_plan_from_its_specifications() {
    for (variable, config) in [(Some("FRESHER_MODE"), ""), (Some("VERDONE_MODE"), ""), (None, "[fresher]\nmode = \"planning\"\n")]
    {
        let mut world = world(ONE, "");
        world.sandbox.write(".fresher/config.toml", config);
        world.sandbox.write(".fresher/PROMPT.planning.md", "Plan in small steps.\n");
        world.sandbox.write("specs/one.md", "The first specification.\n");
        world.sandbox.write("specs/deep/two.md", "The second specification.\n");
        world.sandbox.write("specs/notes.txt", "Not a specification.\n");
        if let Some(name) = variable {
            world.sandbox.set(name, "planning");
        }
        // Planning writes the plan into the checkout, unlike a run.
        world.sandbox.verdone(VERDONE, ["run"]).assert_code(0);
        assert!(world.sandbox.read("IMPLEMENTATION_PLAN.md").contains("### US-001: Write a"), "{variable:?}");
        let kept = world.everything_kept();
        let (_, prompt) = kept.iter().find(|(path, _)| path.ends_with("turns/1-prompt.md")).unwrap();
        let prompt = String::from_utf8_lossy(prompt);
        for part in ["# one.md\n\nThe first specification.", "# deep/two.md", "The second", "Plan in small steps."] {
            assert!(prompt.contains(part), "no {part:?} in {prompt}");
        }
        assert!(!prompt.contains("Not a specification"), "{prompt}");
    }
}

#[test]
fn the_flag_and_only_a_known_mode_decide() {
    let mut world = world(ONE, "");
    world.sandbox.write(".fresher/config.toml", "[fresher]\nmode = \"planning\"\n");
    let output = world.verdone(&["run", "--mode", "building", "nothing.md"]);
    output.assert_code(2);
    assert!(output.stderr.contains("nothing.md"), "{}", output.stderr);
    world.sandbox.set("VERDONE_MODE", "dreaming");
    let output = world.verdone(&["run"]);
    output.assert_code(2);
    assert!(output.stderr.contains("VERDONE_MODE: \"dreaming\" is not a mode"), "{}", output.stderr);
}
