//! Scripts while an agent writes a plan.

use crate::lifecycle::world::{ONE, PATIENCE, SCRIPTS, Setting, VERDONE, World, always};
use verdone_testkit::Signal;

/// Notes its name and the variables that say what it is about.
const TELL: &str = "echo \"$(basename \"$0\") $VERDONE_MODE $FRESHER_MODE i=$VERDONE_ITERATION exit=$VERDONE_LAST_EXIT_CODE \
                    finish=$VERDONE_FINISH_TYPE total=$FRESHER_TOTAL_ITERATIONS\" >> ../tmp/told";

fn world(agent: &str, scripts: &[(&str, &str)]) -> World {
    let world = World::new(&Setting { agent, ..Setting::default() }, scripts);
    world.sandbox.git(["rm", "--quiet", "PLAN.md"]);
    world.sandbox.git(["commit", "--quiet", "-m", "no plan"]);
    world
}

fn planner(more: &str) -> String {
    always(&format!("{{ say = '''{ONE}''' }}{more}"))
}

#[test]
fn all_scripts_run_at_their_moments_with_the_mode_planning() {
    let told = "started planning planning i= exit= finish= total=\n\
                next_iteration planning planning i=1 exit=0 finish= total=\n\
                post_iteration planning planning i=1 exit=0 finish= total=\n\
                finished planning planning i=1 exit= finish=complete total=1\n";
    for command in [&["plan", "new", "make an a"][..], &["run", "--mode", "planning", "request.md"]] {
        let world = world(&planner(""), &SCRIPTS.map(|name| (name, TELL)));
        world.sandbox.write("request.md", "make an a");
        world.sandbox.verdone(VERDONE, command).assert_code(0);
        assert_eq!(world.noted("told"), told, "{command:?}");
        assert!(world.sandbox.read("PLAN.md").contains("US-001"));
    }
}

#[test]
fn a_script_sees_the_plan_that_was_written_and_its_output_is_shown_and_kept() {
    let scripts = [
        ("started", "test -f PLAN.md || echo no plan yet; echo \"$VERDONE_PLAN_FILE\""),
        ("post_iteration", "grep -c US-001 PLAN.md"),
    ];
    let world = world(&planner(""), &scripts);
    let output = world.sandbox.verdone(VERDONE, ["plan", "new", "make an a"]);
    output.assert_code(0);
    let plan = world.sandbox.path("PLAN.md").display().to_string();
    for line in ["started: no plan yet", &format!("started: {plan}"), "post_iteration: 1"] {
        assert!(output.stdout.contains(line), "no {line:?} in {}", output.transcript());
    }
}

#[test]
fn a_script_can_end_or_skip_the_planning() {
    for (script, code, finish, writes) in [
        ("started", 2, "hook_abort total=0", false),
        ("next_iteration", 1, "no_changes total=1", false),
        ("next_iteration", 2, "hook_abort total=1", false),
        ("post_iteration", 2, "hook_abort total=1", true),
    ] {
        let world = world(&planner(""), &[(script, &format!("exit {code}")), ("finished", TELL)]);
        let output = world.sandbox.verdone(VERDONE, ["plan", "new", "make an a"]);
        output.assert_code(4);
        assert!(output.stderr.contains(&format!("the script {script}")), "{}", output.transcript());
        assert!(world.noted("told").contains(&format!("finish={finish}\n")), "{script}: {}", world.noted("told"));
        assert_eq!(world.sandbox.path("PLAN.md").exists(), writes, "{script} {code}");
    }
    let world = world(&planner(""), &[("started", "exit 3"), ("post_iteration", "exit 1")]);
    let output = world.sandbox.verdone(VERDONE, ["plan", "new", "make an a"]);
    output.assert_code(0);
    for text in ["script started: exited with code 3", "script post_iteration: exited with code 1"] {
        assert!(output.stdout.contains(text), "no {text:?} in {}", output.transcript());
    }
}

#[test]
fn a_planning_that_fails_tells_its_scripts_how() {
    for (agent, code, told) in [
        (planner(", { crash = 7 }"), 1, ["exit=7 finish=", "finish=error total=1"]),
        (always("{ say = \"I would rather not.\" }"), 4, ["exit=0 finish=", "finish=blocked total=1"]),
    ] {
        let world = world(&agent, &[("post_iteration", TELL), ("finished", TELL)]);
        world.sandbox.verdone(VERDONE, ["plan", "new", "make an a"]).assert_code(code);
        let lines = world.noted("told");
        assert!(told.iter().all(|part| lines.contains(part)), "{told:?} in {lines}");
    }
}

#[test]
fn a_planning_that_is_stopped_runs_only_the_last_script() {
    let world = world(&always("{ say = \"begun\" }, { hang = true }"), &SCRIPTS.map(|name| (name, TELL)));
    let planning = world.sandbox.spawn(VERDONE, ["plan", "new", "make an a"]);
    planning.wait_for("begun", PATIENCE);
    planning.signal(Signal::INT);
    planning.wait(PATIENCE).assert_code(130);
    let told = world.noted("told");
    assert!(told.ends_with("finished planning planning i=1 exit= finish=manual total=1\n"), "{told}");
    assert!(!told.contains("post_iteration"), "{told}");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn switched_off_scripts_do_not_run() {
    let setting = Setting { agent: &planner(""), tables: "[hooks]\nenabled = false\n", ..Setting::default() };
    let world = World::new(&setting, &SCRIPTS.map(|name| (name, TELL)));
    world.sandbox.verdone(VERDONE, ["plan", "new", "make an a", "--output", "other.md"]).assert_code(0);
    assert_eq!(world.noted("told"), "");
}
