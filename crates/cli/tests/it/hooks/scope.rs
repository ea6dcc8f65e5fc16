//! What a hook of a run knows about its story: the briefing, the scope, the plan.

use std::fs;

use serde_json::{Value, json};

use crate::hooks::world::{Mode, RUN, Verdict, World};

const RULE: &str = "story-scope";

fn story(scope: &[&str]) -> Value {
    json!({
        "story": "US-007", "title": "Say hello", "text": "Print hello to the screen.", "checks": ["make hello"], "scope": scope,
        "branch": "main", "plan": "/nowhere/todo.md", "exempt": ["progress.txt"],
    })
}

fn world(scope: &[&str], setting: &str) -> World {
    let world = World::in_run(&story(scope));
    world.write(".verdone/config.toml", &format!("[policy]\nscope = \"{setting}\"\noff = [\"read-before-edit\"]\n"));
    world
}

fn write(world: &World, name: &str) -> Value {
    json!({ "file_path": world.path(name), "content": "x" })
}

fn wrote(world: &World, name: &str) -> Value {
    let mut event = world.event("PostToolUse", "Write", &write(world, name));
    event["tool_response"] = json!({});
    event
}

fn told(said: Option<Value>) -> String {
    said.map(|said| said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn a_session_of_a_run_is_told_its_story_by_the_prompt_and_again_after_a_compaction() {
    let world = world(&["src", "docs/*.md"], "advisory");
    world.write(".verdone/guardrails.md", "- Mind the gap.\n");
    let compacted = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "SessionStart", "source": "compact" });
    let said = told(world.ask(Mode::Run, &compacted));
    for part in [
        "Verdone checks every tool call",
        "US-007: Say hello\nPrint hello to the screen.",
        "- `make hello`",
        "Its scope: `src`, `docs/*.md`",
        "Mind the gap",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for source in ["startup", "clear", "resume"] {
        let mut begun = compacted.clone();
        begun["source"] = source.into();
        let said = told(world.ask(Mode::Run, &begun));
        assert!(said.contains("Verdone checks every tool call") && !said.contains("US-007"), "{source}: {said}");
    }
    // The rules apply even before a run has announced its story.
    fs::remove_file(world.work.join(format!(".verdone/runs/{RUN}/turns/story.json"))).unwrap();
    let said = told(world.ask(Mode::Run, &compacted));
    assert!(said.contains("Verdone checks every tool call") && !said.contains("US-007"), "{said}");
}

#[test]
fn an_enforced_scope_denies_writes_outside_it_by_any_tool() {
    let world = world(&["src", "docs/*.md"], "enforced");
    let bash = |command: &str| world.judge(Mode::Run, "Bash", &json!({ "command": command }));
    for name in ["README.md", "srcx/a.rs", "docs/sub/a.md", "src/../README.md"] {
        let verdict = world.judge(Mode::Run, "Write", &write(&world, name));
        verdict.denied_by(RULE);
        let Verdict::Deny(reason) = verdict else { unreachable!("it was denied") };
        assert!(reason.contains("which is `src`, `docs/*.md`") && reason.contains("Instead: keep to"), "{reason}");
    }
    bash("echo x > README.md").denied_by(RULE);
    bash("cd docs && mkdir -p sub && touch sub/a.md").denied_by(RULE);
    bash("sed -i s/a/b/ README.md").denied_by(RULE);
    for name in ["src/a.rs", "src/new/b.rs", "docs/new.md", "progress.txt", ".verdone/guardrails.md"] {
        assert_eq!(world.judge(Mode::Run, "Write", &write(&world, name)), Verdict::Allow, "{name}");
    }
    for command in ["cat README.md", "echo x > src/a.rs", "make > /tmp/log", "cp README.md src/b.md"] {
        assert_eq!(bash(command), Verdict::Allow, "{command}");
    }
}

#[test]
fn an_advisory_scope_denies_nothing_and_is_told_once_for_each_file() {
    let world = world(&["src"], "advisory");
    world.begin(Mode::Run);
    assert_eq!(world.judge(Mode::Run, "Write", &write(&world, "README.md")), Verdict::Allow);
    let said = told(world.ask(Mode::Run, &wrote(&world, "README.md")));
    assert!(said.starts_with("Changed outside the story's scope, which is `src`: `README.md`."), "{said}");
    assert_eq!(world.ask(Mode::Run, &wrote(&world, "README.md")), None, "told once");
    assert_eq!(world.ask(Mode::Run, &wrote(&world, "src/b.rs")), None);
    assert!(told(world.ask(Mode::Run, &wrote(&world, "other.md"))).contains("`other.md`"));
    let records = world.records("outside");
    assert_eq!((records.len(), &records[0]["files"], &records[0]["blocked"]), (2, &json!(["README.md"]), &json!(false)));
}

#[test]
fn what_a_command_changed_outside_the_scope_is_found_by_looking() {
    for (setting, blocks) in [("advisory", false), ("enforced", true)] {
        let world = world(&["src"], setting);
        world.write("notes.txt", "the user's, in no commit\n");
        world.begin(Mode::Run);
        assert_eq!(world.ask(Mode::Run, &world.ran("make")), None, "what was there before is not the agent's");
        world.write("src/a.rs", "fn b() {}\n");
        world.write("README.md", "changed\n");
        world.write("gen/x.txt", "made\n");
        let said = world.ask(Mode::Run, &world.ran("make")).unwrap();
        let text = if blocks { &said["reason"] } else { &said["hookSpecificOutput"]["additionalContext"] };
        let text = text.as_str().unwrap_or_else(|| panic!("{said}"));
        assert!(text.contains("`README.md`, `gen/x.txt`") && !text.contains("src/a.rs") && !text.contains("notes"), "{text}");
        assert_eq!(text.contains("is not committed"), blocks, "{text}");
        assert_eq!(world.ask(Mode::Run, &world.ran("make")), None, "told once");
        world.write("notes.txt", "written over by the agent\n");
        assert!(world.ask(Mode::Run, &world.ran("make")).unwrap().to_string().contains("`notes.txt`"));
        // If a change is undone and made again, it is reported again.
        world.git(&["checkout", "--quiet", "README.md"]);
        assert_eq!(world.ask(Mode::Run, &world.ran("make")), None);
        world.write("README.md", "changed again\n");
        assert!(world.ask(Mode::Run, &world.ran("make")).unwrap().to_string().contains("`README.md`"));
        assert_eq!(world.records("outside").len(), 3);
        // In the next turn, the same files are not reported again.
        let prompt = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "UserPromptSubmit", "prompt": "go on" });
        world.ask(Mode::Run, &prompt);
        assert_eq!(world.ask(Mode::Run, &world.ran("make")), None);
    }
}

#[test]
fn without_a_scope_or_with_the_setting_off_nothing_is_looked_for() {
    for world in [world(&[], "enforced"), world(&["src"], "off")] {
        world.begin(Mode::Run);
        world.write("README.md", "changed\n");
        assert_eq!(world.judge(Mode::Run, "Write", &write(&world, "README.md")), Verdict::Allow);
        assert_eq!(world.ask(Mode::Run, &wrote(&world, "README.md")), None);
        assert_eq!(world.ask(Mode::Run, &world.ran("make")), None);
    }
    // Like every rule, it can be switched off by its name.
    let world = World::in_run(&story(&["src"]));
    world.write(".verdone/config.toml", "[policy]\nscope = \"enforced\"\noff = [\"story-scope\", \"read-before-edit\"]\n");
    assert_eq!(world.judge(Mode::Run, "Write", &write(&world, "README.md")), Verdict::Allow);
}

#[test]
fn a_plan_that_only_the_run_knows_is_guarded() {
    let mut named = story(&[]);
    let world = World::in_run(&named);
    let plan = world.write("work/odd-name", "# Plan\n\n- [ ] US-007: Say hello\n  - Verification: `make hello`\n");
    named["plan"] = plan.clone().into();
    world.write(&format!(".verdone/runs/{RUN}/turns/story.json"), &named.to_string());
    world.write(".verdone/config.toml", "[policy]\noff = [\"read-before-edit\"]\n");
    let edit = |old: &str, new: &str| json!({ "file_path": plan, "old_string": old, "new_string": new });
    world.judge(Mode::Run, "Edit", &edit("- [ ]", "- [x]")).denied_by("plan-status");
    world.judge(Mode::Run, "Edit", &edit("make hello", "true")).denied_by("plan-checks");
    world.judge(Mode::Run, "Bash", &json!({ "command": "rm -r work" })).denied_by("plan-status");
    assert_eq!(world.judge(Mode::Run, "Edit", &edit("# Plan", "# The plan")), Verdict::Allow);
    // Another plan in the project is then an ordinary file.
    let other = world.write("PLAN.md", "- [ ] US-001: One\n");
    let tick = json!({ "file_path": other, "old_string": "- [ ]", "new_string": "- [x]" });
    assert_eq!(world.judge(Mode::Run, "Edit", &tick), Verdict::Allow);
}

#[test]
fn a_story_that_cannot_be_read_denies_changes_and_nothing_else() {
    let world = world(&["src"], "enforced");
    let path = format!(".verdone/runs/{RUN}/turns/story.json");
    for broken in ["{", "{\"story\": 7}", ""] {
        world.write(&path, broken);
        let Verdict::Deny(reason) = world.judge(Mode::Run, "Write", &write(&world, "src/a.rs")) else {
            panic!("{broken:?} opens")
        };
        assert!(reason.contains("fault in Verdone"), "{reason}");
        assert_eq!(world.judge(Mode::Run, "Read", &json!({ "file_path": world.path("src/a.rs") })), Verdict::Allow);
        assert_eq!(world.judge(Mode::Run, "Bash", &json!({ "command": "cat src/a.rs" })), Verdict::Allow);
        assert_eq!(world.begin(Mode::Run), None);
    }
}
