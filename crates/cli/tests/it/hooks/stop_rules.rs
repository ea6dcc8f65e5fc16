//! Loops follow the rules of runs: scope, conditions of gates, the minimum proof, tests and checks that the work changed, and reviews.

use std::process::Output;

use serde_json::{Value, json};

use crate::hooks::stop_gate::{Said, arm, kept, name_the_author, stop, verdone, world};
use crate::hooks::world::World;

const ONE: &str = "- [ ] US-001: One\n  - Verification: `test -f one`\n";

fn status(world: &World) -> Value {
    let all: Value = serde_json::from_slice(&verdone(world, &["loop", "status", "--json"]).stdout).unwrap();
    all["loops"][0].clone()
}

fn proof(world: &World, story: &str) -> Value {
    status(world)["results"][story]["proof"].clone()
}

#[test]
fn an_enforced_scope_holds_in_a_loop() {
    let plan = "- [ ] US-001: One\n  - Scope: `one`\n  - Verification: `test -f one`\n";
    let world = world("[policy]\nscope = \"enforced\"\n", &[("PLAN.md", plan)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    world.write("README.md", "Changed.\n");
    stop(&world).blocked("Files outside the story's scope were changed: README.md");
    assert_eq!(world.records("stop")[0]["cause"], "out_of_scope");
    world.git(&["checkout", "--quiet", "README.md"]);
    stop(&world).let_go("COMPLETE: the one story of the loop is done (verified)");
}

#[test]
fn a_gate_runs_in_a_loop_only_when_it_is_due() {
    let gate = "[[gate]]\nname = \"docs\"\ncommand = \"false\"\nwhen = { paths = [\"docs/**\"] }\n";
    let plan = format!("{ONE}- [ ] US-002: Two\n  - Verification: `test -f two`\n");
    let world = world(gate, &[("PLAN.md", &plan)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("NEXT STORY (US-002)");
    world.write("two", "2\n");
    world.write("docs/a.md", "# A\n");
    stop(&world).blocked("The check `docs` failed with exit code 1");
}

#[test]
fn the_least_proof_is_asked_for_once_and_then_a_person_is() {
    let gate = "[done]\nminimum = \"verified\"\n[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
    let world = world(gate, &[("PLAN.md", "- [ ] US-001: One\n- [ ] US-002: Two\n  - Proof: untested\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("The story is untested, but at least verified is required");
    assert_eq!(world.records("stop")[0]["cause"], "doubt");
    let reason = stop(&world).blocked("Story US-001 needs a review by the user");
    assert!(reason.contains("NEXT STORY (US-002)"), "{reason}");
    assert!(!world.read("PLAN.md").contains("[x]"));
    assert_eq!(status(&world)["review"], json!(["US-001"]));
    // A story may require less than the settings.
    world.write("two", "2\n");
    stop(&world).let_go("1 for you to review: US-001 (`verdone review`)");
    assert_eq!((proof(&world, "US-002"), status(&world)["status"].clone()), (json!("untested"), json!("blocked")));
}

#[test]
fn a_judges_refutation_is_one_turn_of_feedback_and_then_a_person_is_asked() {
    let judge = "echo '{\"refuted\":true,\"reasons\":[\"one is empty\"],\"checked\":[]}'";
    let config = format!("[done]\nrequire = [\"adversarial_passed\"]\n[done.judge]\nenabled = true\ncommand = '''{judge}'''\n");
    let world = world(&config, &[("PLAN.md", ONE)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "");
    stop(&world).blocked("The judge refuted the work: one is empty");
    assert_eq!(world.records("stop")[0]["cause"], "doubt");
    world.write("one", "1\n");
    stop(&world).let_go("1 for you to review: US-001 (`verdone review`)");
    assert!(!world.read("PLAN.md").contains("[x]"));
    assert_eq!(status(&world)["status"], "blocked");
}

#[test]
fn a_loop_is_not_done_before_ci_has_answered_about_a_commit_of_the_work() {
    const ASKS: &str = "[done]\nrequire = [\"ci_ok\"]\n[[done.condition]]\nname = \"ci_ok\"\nprover = \"ci\"\n\
                        [done.ci]\ncommand = \"true\"\n";
    let begin = |commit: bool| {
        let mut world = world(&format!("[stop]\ncommit = {commit}\n{ASKS}"), &[("PLAN.md", ONE)]);
        name_the_author(&mut world);
        arm(&world, &["--plan", "PLAN.md"]);
        world
    };
    let ask = |world: &World| run(world, &["done", "--ask", "--session", "s1"]);
    for (commit, early) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = begin(commit);
        // An answer about the commit before the work says nothing about the work.
        if early {
            ask(&world);
        }
        world.write("one", "1\n");
        stop(&world).let_go("1 for you to review: US-001");
        assert!(!world.read("PLAN.md").contains("[x]"));
    }
    let world = begin(false);
    world.write("one", "1\n");
    world.git(&["add", "one"]);
    world.git(&["-c", "user.name=dev", "-c", "user.email=dev@example.org", "commit", "--quiet", "-m", "one"]);
    ask(&world);
    stop(&world).let_go("COMPLETE: the one story of the loop is done (verified)");
}

#[test]
fn a_loop_whose_conditions_nobody_can_evaluate_does_not_start() {
    let own =
        |prover: &str| format!("[done]\nrequire = [\"mine\"]\n[[done.condition]]\nname = \"mine\"\nprover = \"{prover}\"\n");
    let nobody = "[agent]\nname = \"command\"\n[done.judge]\nenabled = true\n";
    let gate = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
    let no_command = "a loop cannot meet [done] here: mine: CI cannot be asked: set `command` in [done.ci]";
    for (config, about, expected) in [
        (own("ci"), "--plan=PLAN.md", format!("{no_command} (story US-001)\n")),
        (own("ci") + gate, "Do it", format!("{no_command}\n")),
        (own("ci") + "[done.ci]\ncommand = \"./not-there\"\n", "--plan=PLAN.md", "./not-there: no such program".to_owned()),
        (own("judge"), "--plan=PLAN.md", "mine: the judge is disabled: set `enabled = true` in [done.judge]".to_owned()),
        (own("judge") + nobody, "--plan=PLAN.md", "cannot judge here: set `agent` or `command` in [done.judge]".to_owned()),
    ] {
        let world = world(&config, &[("PLAN.md", ONE)]);
        let refused = run(&world, &["loop", "start", "--session", "s1", about]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains(&expected), "no {expected:?} in {said}");
        assert_eq!(stop(&world), Said::Nothing, "no loop holds the session");
    }
    // A condition that a person can still meet is no reason to refuse.
    let world = world("[done]\nrequire = [\"plan_approved\"]\n", &[("PLAN.md", ONE)]);
    arm(&world, &["--plan", "PLAN.md"]);
}

/// Runs the command, whatever its exit code.
fn run(world: &World, arguments: &[&str]) -> Output {
    let at = world.work.display().to_string();
    world.command(&[&["-C", &at], arguments].concat()).output().unwrap()
}

#[test]
fn a_worker_that_has_answered_and_still_cleans_up_is_not_waited_for_in_vain() {
    let gate = "[done]\nminimum = \"verified\"\n[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
    let world = world(gate, &[("PLAN.md", "- [ ] US-001: One\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("The story is untested, but at least verified is required");
    let busy = std::fs::File::open(kept(&world, "working.lock")).unwrap();
    busy.lock().unwrap();
    let said = std::thread::scope(|scope| {
        let again = scope.spawn(|| stop(&world));
        // If the hook checks the lock only after this, it starts a worker immediately, and the answer is the same.
        std::thread::sleep(std::time::Duration::from_millis(500));
        busy.unlock().unwrap();
        again.join().unwrap()
    });
    let Said::Told(told) = said else { panic!("held: {said:?}") };
    assert!(told.contains("for you to review: US-001"), "{told}");
}

#[test]
fn a_check_that_the_work_rewrote_proves_neither_its_story_nor_an_earlier_one() {
    let plan = "- [ ] US-001: One\n  - Verification: `sh one.sh`\n- [ ] US-002: Two\n  - Verification: `test -f two`\n";
    let world = world("", &[("PLAN.md", plan), ("one.sh", "grep -q good one\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "bad\n");
    world.write("one.sh", "test -f one\n");
    stop(&world).blocked("`sh one.sh` passes only with the changed one.sh");
    world.git(&["checkout", "--quiet", "one.sh"]);
    world.write("one", "good\n");
    stop(&world).blocked("story US-001 is done (verified)");
    // The story is broken, and its check is changed to hide that.
    world.write("one", "bad\n");
    world.write("one.sh", "test -f one\n");
    world.write("two", "2\n");
    let reason = stop(&world).blocked("passes only with the changed one.sh");
    assert!(reason.contains("US-001: sh one.sh"), "{reason}");
    let Said::Told(told) = stop(&world) else { panic!("not let go") };
    assert!(told.contains("for you to review: US-002"), "{told}");
}

#[test]
fn tests_that_the_agent_took_away_are_missed_without_a_plan_too() {
    let gate = "[[gate]]\nname = \"tests\"\ncommand = \"sh tests/run.sh\"\n";
    let world = world(gate, &[("tests/run.sh", "grep -q good one.txt\n"), ("one.txt", "good\n")]);
    arm(&world, &["Change it"]);
    world.write("one.txt", "bad\n");
    world.write("tests/run.sh", "true\n");
    stop(&world).blocked("passes only with the changed tests/run.sh");
    world.git(&["checkout", "--quiet", "tests/run.sh"]);
    stop(&world).blocked("The check `tests` failed");
    world.write("one.txt", "good enough\n");
    stop(&world).let_go("COMPLETE: every gate is green");
}

#[test]
fn a_check_that_passed_before_the_work_proves_nothing_by_failing_in_between() {
    let world = world("", &[("PLAN.md", "- [ ] US-001: One\n  - Verification: `test ! -f broken`\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    world.write("broken", "");
    stop(&world).blocked("The check `test ! -f broken` failed");
    std::fs::remove_file(world.work.join("broken")).unwrap();
    stop(&world).let_go("COMPLETE: the one story of the loop is done (untested)");
}

#[test]
fn settings_that_are_gone_name_what_took_their_place() {
    for (text, instead) in [("own_check = \"agent-test\"\n", "[done]: minimum"), ("[tamper]\nhigh = \"refuse\"\n", "[protect]")] {
        let world = World::with_repository(&[(".verdone/config.toml", text)]);
        let output = world.command(&["-C", &world.path("."), "loop", "start", "--session", "s1", "Do it"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("is no longer a setting") && said.contains(instead), "{said}");
    }
}
