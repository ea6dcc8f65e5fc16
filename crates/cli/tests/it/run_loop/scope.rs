//! A story's scope, and what a run tells the hooks of its agent.

use serde_json::Value;

use crate::run_loop::world::{ONE, Settings, VERDONE, World, text};

const ENFORCED: &str = "[policy]\nscope = \"enforced\"\n";

fn scoped() -> String {
    ONE.replace("  - Verification", "  - Scope: `a`, `src/`\n  - Verification")
}

#[test]
fn an_attempt_that_changes_files_outside_an_enforced_scope_is_not_committed_and_told_which() {
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\" }, { create = \"src/x\" }, { create = \"stray.txt\" }, { append = \"README.md\", text = \"more\" }]\n\
                  [[turn]]\nsteps = [{ delete = \"stray.txt\" }, { run = \"git checkout --quiet README.md\" }]\n";
    let world = World::with(&scoped(), script, &Settings { tables: ENFORCED, ..Settings::default() });
    let output = world.run(0);
    let seen = world.all("verified");
    let outcomes: Vec<String> = seen.iter().map(|event| text(&event["report"]["outcome"])).collect();
    assert_eq!(outcomes, ["failed", "done"]);
    assert_eq!(seen[0]["report"]["reasons"][0]["files"], serde_json::json!(["README.md", "stray.txt"]), "{}", seen[0]);
    assert!(world.prompt(2).contains("Undo the changes to README.md, stray.txt"), "{}", world.prompt(2));
    assert!(output.stdout.contains("stray.txt"), "{}", output.stdout);
    let mut files = world.git(&["show", "--format=", "--name-only", "HEAD"]).lines().map(str::to_owned).collect::<Vec<_>>();
    files.sort();
    assert_eq!(files, ["PLAN.md", "a", "src/x"], "the plan's tick is nobody's change");
    world.assert_clean();
}

#[test]
fn an_advisory_scope_and_a_story_without_one_hold_nothing_back() {
    let script = "[[turn]]\nsteps = [{ create = \"a\" }, { create = \"stray.txt\" }]\n";
    World::new(&scoped(), script).run(0);
    World::with(ONE, script, &Settings { tables: ENFORCED, ..Settings::default() }).run(0);
}

#[test]
fn the_hooks_of_a_turn_are_told_its_story_and_its_plan_wherever_that_is() {
    let event = |event: &str, rest: &str, into: &str| {
        let input =
            format!("{{\\\"session_id\\\":\\\"s\\\",\\\"cwd\\\":\\\"/\\\",\\\"hook_event_name\\\":\\\"{event}\\\"{rest}}}");
        format!("{{ run = \"echo '{input}' | env CLAUDE_PROJECT_DIR=$PWD {VERDONE} hook --run > {into}\" }}")
    };
    let change = ",\\\"tool_name\\\":\\\"Bash\\\",\\\"tool_input\\\":{\\\"command\\\":\\\"sed -i s/x/y/ '$PWD'/work/odd\\\"}";
    let script = format!(
        "[[turn]]\nsteps = [{}, {}]\n",
        event("SessionStart", ",\\\"source\\\":\\\"compact\\\"", "a"),
        event("PreToolUse", change, "denied")
    );
    let world = World::folder(&script, &Settings::default());
    world.sandbox.write("work/odd", ONE.replace("  - Verification", "  - Scope: `a`\n  - Verification"));
    world.sandbox.repo();
    world.run_with(&["work/odd"], 0);
    let briefing: Value = serde_json::from_str(&world.git(&["show", "HEAD:a"])).unwrap();
    let briefing = text(&briefing["hookSpecificOutput"]["additionalContext"]);
    for part in ["US-001: Write a", "- `test -f a`", "Its scope: `a`"] {
        assert!(briefing.contains(part), "{part}: {briefing}");
    }
    assert!(world.git(&["show", "HEAD:denied"]).contains("`plan-status`"), "{}", world.git(&["show", "HEAD:denied"]));
    let run = text(&world.events()[0]["run"]);
    let told: Value = serde_json::from_str(&world.sandbox.read(format!(".verdone/runs/{run}/turns/story.json"))).unwrap();
    assert_eq!((text(&told["story"]), text(&told["branch"])), ("US-001".to_owned(), format!("verdone/{run}")));
    assert!(text(&told["plan"]).ends_with("/work/odd"), "{told}");
    assert_eq!(told["exempt"], serde_json::json!(["work/odd"]));
}
