//! What hooks record for the conditions of a session: lessons that were given or read, and the client's own tasks.

use serde_json::{Value, json};

use crate::hooks::world::{Mode, Verdict, World};

fn session() -> World {
    let mut world = World::in_run(&json!({}));
    world.variables.retain(|(name, _)| name != "VERDONE_RUN");
    world.set("LC_ALL", "C");
    world
}

fn condition(world: &World, name: &str) -> Value {
    let child = world.command(&["-C", &world.path("."), "done", "--session", "s1", "--json"]).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    json["conditions"].as_array().unwrap().iter().find(|condition| condition["name"] == name).unwrap().clone()
}

fn done(world: &World, event: &str, tool: &str, input: &Value) {
    let mut event = world.event(event, tool, input);
    event["tool_response"] = json!({});
    world.ask(Mode::Session, &event);
}

#[test]
fn memory_counts_as_searched_when_lessons_were_given_or_looked_at() {
    let world = session();
    world.begin(Mode::Session);
    assert_eq!(condition(&world, "memory_search")["outcome"], "not_needed", "there is nothing to be remembered");
    world.write(".verdone/guardrails.md", "- tests first\n");
    assert_eq!(condition(&world, "memory_search")["outcome"], "missing", "the lessons came later");
    done(&world, "PostToolUse", "Bash", &json!({ "command": "verdone log" }));
    let searched = condition(&world, "memory_search");
    assert_eq!((&searched["outcome"], &searched["by"]), (&json!("held"), &json!("`verdone log` was run")));

    let world = session();
    world.write(".verdone/guardrails.md", "- tests first\n");
    world.write(".verdone/sessions/s1/claims.jsonl", "");
    assert_eq!(condition(&world, "memory_search")["outcome"], "unknown", "no hook has seen this session");
    world.begin(Mode::Session);
    let given = condition(&world, "memory_search");
    assert_eq!(
        (&given["outcome"], &given["by"]),
        (&json!("held"), &json!("the lessons were given to the session when it began"))
    );
    assert_eq!(condition(&world, "retrospective_done")["outcome"], "missing");
    world.write(".verdone/guardrails.md", "- tests first\n- small steps\n");
    assert_eq!(condition(&world, "retrospective_done")["outcome"], "held");
    world.write(".verdone/guardrails.md", "- other words\n");
    assert_eq!(condition(&world, "retrospective_done")["outcome"], "missing", "a lesson that is exchanged is no new one");
}

#[test]
fn the_clients_own_tasks_count_until_they_are_finished() {
    let world = session();
    let task = |event: &str, id: &str| json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": event, "task_id": id, "task_subject": format!("do {id}") });
    for id in ["A", "B"] {
        world.ask(Mode::Session, &task("TaskCreated", id));
    }
    assert_eq!(condition(&world, "tasks_closed")["why"], "2 tasks are not finished: do A; do B");
    world.ask(Mode::Session, &task("TaskCompleted", "A"));
    done(&world, "PostToolUse", "TaskUpdate", &json!({ "taskId": "B", "status": "deleted" }));
    assert_eq!(condition(&world, "tasks_closed")["outcome"], "not_needed");
    done(&world, "PostToolUse", "TaskUpdate", &json!({ "taskId": "A", "status": "in_progress" }));
    assert_eq!(condition(&world, "tasks_closed")["outcome"], "missing", "it is worked on again");
}

#[test]
fn an_agent_may_claim_and_ask_and_never_approves_a_plan() {
    let world = World::new();
    for (mode, fine) in [(Mode::Run, Verdict::Allow), (Mode::Session, Verdict::Silent)] {
        for command in ["verdone claim retrospective_done --note 'tests first'", "verdone done --json"] {
            assert_eq!(world.judge(mode, "Bash", &json!({ "command": command })), fine, "{command}");
        }
        world.judge(mode, "Bash", &json!({ "command": "verdone plan approve --yes" })).denied_by("plan-approval");
        world.judge(mode, "Bash", &json!({ "command": "verdone accept US-001" })).denied_by("story-review");
    }
}
