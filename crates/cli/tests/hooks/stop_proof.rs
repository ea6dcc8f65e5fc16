//! What a loop's stories are worth: checks that are other checks by now, and marks that are taken back or stay.

use serde_json::{Value, json};

use crate::stop_gate::{Said, arm, stop, verdone, world};
use crate::world::World;

/// Whether a file says `good`.
fn check(name: &str) -> String {
    format!("import sys\nsys.exit(open('{name}').read() != 'good\\n')\n")
}

/// Whether there is such a file.
fn weak(name: &str) -> String {
    format!("open('{name}')\n")
}

fn plan(checks: &[&str]) -> String {
    let story = |(at, check): (usize, &&str)| format!("- [ ] US-00{n}: Do it\n  - Verification: `{check}`\n", n = at + 1);
    checks.iter().enumerate().map(story).collect()
}

fn verdicts(world: &World) -> Vec<Value> {
    let status: Value = serde_json::from_slice(&verdone(world, &["loop", "status", "--json"]).stdout).unwrap();
    let marked = status["loops"][0]["marked"].as_array().unwrap().clone();
    marked.into_iter().map(|marked| json!([marked["story"], marked["verdict"]])).collect()
}

#[test]
fn a_check_proves_a_story_only_as_it_was_before_anybody_worked_on_it() {
    let names = ["a", "b", "c", "d"];
    let files: Vec<(String, String)> = names.iter().map(|name| (format!("{name}.py"), check(name))).collect();
    let plan = plan(&["python3 a.py", "python3 b.py", "python3 c.py", "python3 d.py"]);
    let mut given: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    given.push(("PLAN.md", &plan));
    let world = world("", &given);
    arm(&world, &["--plan", "PLAN.md"]);
    // The check of a story that comes later is made weaker, too.
    world.write("a", "good\n");
    world.write("c.py", &weak("c"));
    stop(&world).blocked("story US-001 is verified");
    world.write("b", "bad\n");
    world.write("b.py", &weak("b"));
    let reason = stop(&world).blocked("story US-002 is unproven");
    let doubt = |n: u32, name: &str| {
        format!(
            "US-00{n} is unproven at best: {name}.py changed, which its own check runs; with it as it was, python3 {name}.py failed"
        )
    };
    assert!(reason.contains(&doubt(2, "b")), "{reason}");
    world.write("c", "bad\n");
    let reason = stop(&world).blocked("story US-003 is unproven");
    assert!(reason.contains(&doubt(3, "c")), "{reason}");
    // One that asks for more is the same check and more. The first story is broken, and its check is made not to see it.
    world.write("d", "good\n");
    world.write("d.py", &format!("open('d')\n{}", check("d")));
    world.write("a", "bad\n");
    world.write("a.py", &weak("a"));
    let Said::Told(told) = stop(&world) else { panic!("not let go") };
    assert!(told.contains("COMPLETE: all 4 stories of the loop passed, 3 of them unproven"), "{told}");
    assert!(told.contains("story US-001 is unproven: broken, or its check was: a.py changed since it was proven"), "{told}");
    let worth = |n: u32, verdict: &str| json!([format!("US-00{n}"), verdict]);
    let all = [worth(1, "unproven"), worth(2, "unproven"), worth(3, "unproven"), worth(4, "verified")];
    assert_eq!(verdicts(&world), all);
}

#[test]
fn a_story_that_was_unproven_is_not_verified_by_being_broken_and_mended() {
    let world = world("", &[("PLAN.md", &plan(&["test ! -f broken", "test -f two"]))]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("story US-001 is unproven");
    world.write("two", "2\n");
    world.write("broken", "");
    stop(&world).blocked("Story US-001 was verified before, and later work broke it");
    stop(&world).blocked("The check `test ! -f broken` failed");
    std::fs::remove_file(world.work.join("broken")).unwrap();
    stop(&world).let_go("COMPLETE: all 2 stories of the loop passed, 1 of them unproven");
}

#[test]
fn a_check_that_passed_before_anybody_worked_proves_nothing_by_failing_in_between() {
    let checks = plan(&["test ! -f broken", "test ! -f other", "test -f three"]);
    let world = world("", &[("PLAN.md", &checks)]);
    let broken = |name: &str| {
        world.write(name, "");
        stop(&world).blocked(&format!("The check `test ! -f {name}` failed"));
        std::fs::remove_file(world.work.join(name)).unwrap();
    };
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    broken("broken");
    stop(&world).blocked("story US-001 is unproven");
    broken("other");
    stop(&world).blocked("story US-002 is unproven");
    // Nor does it where the agent opened the story again.
    world.write("PLAN.md", &checks);
    world.write("three", "3\n");
    world.write("broken", "");
    stop(&world).blocked("story US-003 is verified");
    std::fs::remove_file(world.work.join("broken")).unwrap();
    stop(&world).blocked("story US-001 is unproven");
    stop(&world).let_go("COMPLETE: all 3 stories of the loop passed, 2 of them unproven");
}

#[test]
fn a_last_look_that_can_tell_nothing_holds_and_takes_no_mark_back() {
    let config = "[stop]\nverify_deadline = \"3s\"\n[limits]\ngrace = \"10ms\"\n";
    let first = "case \"$(cat mood)\" in odd) exit 127;; slow) sleep 600;; esac; test -f one";
    let world = world(config, &[("PLAN.md", &plan(&[first, "test -f two"])), ("mood", "")]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    stop(&world).blocked("story US-001 is verified");
    world.write("two", "2\n");
    // Both stories together have as long as one by one.
    for (mood, said) in [("odd", "exit code 127"), ("slow", "The verification did not end within 6s.")] {
        world.write("mood", mood);
        let reason = stop(&world).blocked(said);
        assert!(!reason.contains("took its mark back"), "{reason}");
        assert_eq!(world.read("PLAN.md").matches("[x]").count(), 2, "{reason}");
    }
    world.write("mood", "fine");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop were verified");
}
