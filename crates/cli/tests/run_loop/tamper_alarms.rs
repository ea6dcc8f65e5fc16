//! Agents that touch what judges them: tests, gates and their settings. Each is refused, asked about or reported, as the settings say.

use serde_json::Value;

use crate::world::{ONE, Settings, World, text};

const TESTS: &str = "def test_one():\n    assert f(1) == 1\n\ndef test_two():\n    assert f(2) == 2\n";
const FEWER: &str = "def test_one():\n    assert f(1) == 1\n";

/// A repository with tests and a gate that is a script.
fn world(plan: &str, script: &str, tables: &str) -> World {
    let gate = "[[gate]]\nname = \"house\"\ncommand = \"scripts/check\"\n";
    let tables = format!("{gate}{tables}");
    let world = World::folder(script, &Settings { top: "", limits: "attempts = 3\nturns = 2", tables: &tables });
    world.sandbox.write("PLAN.md", plan);
    world.sandbox.write("tests/test_f.py", TESTS);
    world.sandbox.write_script("scripts/check", "#!/bin/sh\nset -e\ntest -d tests\n");
    world.sandbox.repo();
    world
}

fn create(path: &str, content: &str) -> String {
    format!("{{ create = \"{path}\", text = '''\n{content}''' }}")
}

fn turns(steps: &[&str]) -> String {
    let turn = |(number, steps): (usize, &&str)| format!("[[turn]]\nturn = {}\nsteps = [{steps}]\n", number + 1);
    steps.iter().enumerate().map(turn).collect()
}

/// Kind and severity of the alarms of an event.
fn alarms(event: &Value) -> Vec<(String, String)> {
    let list = event["alarms"].as_array().cloned().unwrap_or_default();
    list.iter().map(|alarm| (text(&alarm["kind"]), text(&alarm["severity"]))).collect()
}

fn has(event: &Value, kind: &str, severity: &str) -> bool {
    alarms(event).contains(&(kind.to_owned(), severity.to_owned()))
}

#[test]
fn a_deleted_test_is_refused_and_may_be_brought_back_in_the_next_turn() {
    let script =
        turns(&[&format!("{{ create = \"a\" }}, {}", create("tests/test_f.py", FEWER)), &create("tests/test_f.py", TESTS)]);
    let world = world(ONE, &script, "");
    let output = world.run(0);
    let seen = world.all("verified");
    assert_eq!((text(&seen[0]["outcome"]), text(&seen[1]["outcome"])), ("refused".to_owned(), "passed".to_owned()));
    assert!(has(&seen[0], "test_deleted", "high"), "{:?}", alarms(&seen[0]));
    assert_eq!(alarms(&seen[1]), []);
    assert!(output.stdout.contains("Test deleted: test_two (tests/test_f.py:4)"), "{}", output.stdout);
    assert!(world.prompt(2).contains("- test deleted: test_two (tests/test_f.py:4)"), "{}", world.prompt(2));
    assert_eq!(world.sandbox.read("tests/test_f.py"), TESTS);
    assert!(world.plan().contains("[x]"));
    world.assert_clean();
}

#[test]
fn a_changed_gate_script_waits_for_a_human_and_the_attempt_is_kept() {
    let edit = "{ create = \"a\" }, { edit = \"scripts/check\", find = \"test -d tests\", replace = \"test -d .\" }";
    let world = world(ONE, &turns(&[edit]), "");
    world.run(4);
    assert_eq!(world.finish(), "blocked");
    let seen = world.all("verified");
    assert_eq!((seen.len(), text(&seen[0]["outcome"])), (1, "refused".to_owned()), "no second turn, no second attempt");
    assert!(has(&seen[0], "gate_changed", "medium"), "{:?}", alarms(&seen[0]));
    assert_eq!(text(&world.last("attempt_rejected")["rejection"]), "needs_human");
    assert!(text(&world.last("story_failed")["reason"]).contains("a human has to look at this: changed what a gate runs"));
    assert!(world.git(&["show", &format!("{}:scripts/check", world.kept())]).contains("test -d ."));
    assert!(world.sandbox.read("scripts/check").contains("test -d tests"));
    let show = world.verdone(&["show", "US-001"]);
    assert!(show.stdout.contains("medium alarm: changed what a gate runs"), "{}", show.stdout);
    assert!(!world.plan().contains("[x]"));
    world.assert_clean();
}

#[test]
fn a_gate_that_cannot_fail_any_more_is_refused_though_it_is_green() {
    let edit =
        "{ create = \"a\" }, { edit = \"scripts/check\", find = \"test -d tests\", replace = \"test -d nothing || true\" }";
    let world = world(ONE, &turns(&[edit, "{ say = \"done\" }"]), "");
    world.run(4);
    let seen = world.all("verified");
    assert!(has(&seen[0], "gate_defused", "high"), "{:?}", alarms(&seen[0]));
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn what_a_scope_names_and_what_settings_only_report_is_committed_with_its_alarms() {
    let script = turns(&[&format!("{{ create = \"a\" }}, {}", create("tests/test_f.py", FEWER))]);
    let scoped = ONE.replace("  - Verification", "  - Scope: `a`, `tests/`\n  - Verification");
    let expected = world(&scoped, &script, "");
    expected.run(0);
    let seen = expected.last("verified");
    assert!(has(&seen, "test_deleted", "low") && seen["alarms"][0]["expected"] == true, "{seen}");

    let reported = world(ONE, &script, "[tamper]\nhigh = \"report\"\n");
    reported.run(0);
    assert!(has(&reported.last("verified"), "test_deleted", "high"));
    let report = reported.verdone(&["report"]);
    assert!(
        report.stdout.contains("test deleted: test\\_two") || report.stdout.contains("test deleted: test_two"),
        "{}",
        report.stdout
    );
}

#[test]
fn a_test_that_moved_is_silent_and_a_plan_that_was_put_back_is_noted() {
    let moved = format!(
        "{{ create = \"a\" }}, {{ run = \"sed -i 's/Write the file/Skip the file/' PLAN.md\" }}, {{ delete = \"tests/test_f.py\" }}, {}",
        create("tests/unit/test_g.py", TESTS)
    );
    let world = world(ONE, &turns(&[&moved]), "");
    world.run(0);
    assert_eq!(alarms(&world.last("verified")), [("plan_edited".to_owned(), "low".to_owned())]);
}

#[test]
fn a_test_file_blown_up_beyond_reading_waits_for_a_human() {
    let blow = "{ create = \"a\" }, { run = \"head -c 1100000 /dev/zero | tr '\\\\0' '#' >> tests/test_f.py\" }";
    let world = world(ONE, &turns(&[blow]), "");
    world.run(4);
    assert!(has(&world.last("verified"), "unread", "medium"), "{:?}", alarms(&world.last("verified")));
}
