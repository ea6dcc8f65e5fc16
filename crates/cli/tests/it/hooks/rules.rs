//! Policy behind the hook: its file access, the user's rules, prompts and settings.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::hooks::world::{MODES, Mode, Verdict, World};

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

fn write(path: &str) -> Value {
    json!({ "file_path": path, "content": "x" })
}

#[test]
fn denials_hold_in_both_modes_and_only_a_run_says_allow() {
    let world = World::new();
    for mode in MODES {
        world.judge(mode, "Bash", &bash("cd sub; git -C . push origin main")).denied_by("git-push");
        world.judge(mode, "Write", &write(&world.path(".git/hooks/pre-commit"))).denied_by("git-dir");
        let fine = if mode == Mode::Run { Verdict::Allow } else { Verdict::Silent };
        assert_eq!(world.judge(mode, "Bash", &bash("git commit -m 'then git push'")), fine);
        assert_eq!(world.judge(mode, "Write", &write(&world.path("new.txt"))), fine);
    }
    assert!(matches!(world.judge(Mode::Run, "EnterWorktree", &json!({})), Verdict::Deny(_)));
    assert!(
        matches!(world.judge(Mode::Run, "AskUserQuestion", &json!({})), Verdict::Deny(reason) if reason.contains("needs a human"))
    );
    assert_eq!(world.judge(Mode::Session, "AskUserQuestion", &json!({})), Verdict::Silent);
}

#[test]
fn links_do_not_lead_around_a_rule() {
    let world = World::new();
    symlink(world.work.join(".git"), world.work.join("innocent")).unwrap();
    symlink("/opt/not-there/file", world.work.join("dangling")).unwrap();
    symlink("/opt", world.work.join("out")).unwrap();
    world.judge(Mode::Run, "Write", &write(&world.path("innocent/config"))).denied_by("git-dir");
    world.judge(Mode::Run, "Bash", &bash("echo x > innocent/config")).denied_by("git-dir");
    for path in ["dangling", "out/x", "out/deep/er/x"] {
        assert!(matches!(world.judge(Mode::Run, "Write", &write(&world.path(path))), Verdict::Deny(_)), "{path}");
        assert!(matches!(world.judge(Mode::Run, "Bash", &bash(&format!("echo x > {path}"))), Verdict::Deny(_)), "{path}");
    }
    world.write(".env", "KEY=1\n");
    symlink(".env", world.work.join("harmless")).unwrap();
    world.judge(Mode::Run, "Bash", &bash("echo x >> harmless")).denied_by("env-file");
}

#[test]
fn the_plans_marks_and_checks_are_guarded_in_a_run() {
    let world = World::new();
    let plan = world.write("PLAN.md", "# Plan\n\nProse.\n\n- [ ] US-001: One\n  - Verification: `make test`\n");
    let mut read = world.event("PostToolUse", "Read", &json!({ "file_path": plan }));
    read["tool_response"] = json!({});
    world.ask(Mode::Run, &read);
    let edit = |old: &str, new: &str| json!({ "file_path": plan, "old_string": old, "new_string": new });
    for configured in [false, true] {
        if configured {
            world.write(".verdone/config.toml", "plan = \"PLAN.md\"\n");
        }
        world.judge(Mode::Run, "Edit", &edit("- [ ] US-001", "- [x] US-001")).denied_by("plan-status");
        world.judge(Mode::Run, "Edit", &edit("make test", "true")).denied_by("plan-checks");
        world.judge(Mode::Run, "Bash", &bash("sed -i 's/ /x/' PLAN.md")).denied_by("plan-status");
        for command in ["rm P*", "rm -f *.md", "rm -rf *", "git rm PLAN.md", "sort -o PLAN.md x"] {
            world.judge(Mode::Run, "Bash", &bash(command)).denied_by("plan-status");
        }
        assert_eq!(world.judge(Mode::Run, "Bash", &bash("rm -f *.log")), Verdict::Allow);
        world.judge(Mode::Run, "Monitor", &bash("git push")).denied_by("git-push");
        assert_eq!(world.judge(Mode::Run, "Edit", &edit("Prose", "Other prose")), Verdict::Allow);
        assert_eq!(world.judge(Mode::Session, "Edit", &edit("- [ ] US-001", "- [x] US-001")), Verdict::Silent);
    }
}

#[test]
fn a_rule_of_the_user_denies_and_is_recorded_with_its_line() {
    let mut world = World::new();
    world.set("API_TOKEN", "0123456789abcdef0123");
    world.write(
        ".verdone/config.toml",
        "[policy]\noff = [\"git-push\"]\n\n[[policy.rule]]\nname = \"no-deploy\"\nverdict = \"deny\"\nreason = \"not now\"\n\
         program = [\"deploy\"]\n\n[[policy.rule]]\nname = \"no-secrets\"\nverdict = \"deny\"\nreason = \"secret\"\nprompt = [\"hunter2\"]\n",
    );
    world.judge(Mode::Session, "Bash", &bash("env X=1 ./deploy --token 0123456789abcdef0123")).denied_by("no-deploy");
    assert_eq!(world.judge(Mode::Run, "Bash", &bash("git push")), Verdict::Allow, "a rule that is off");
    let events = world.lines(".verdone/sessions/s1/events.jsonl");
    assert_eq!(events[0]["place"], ".verdone/config.toml:4");
    assert_eq!((&events[0]["rule"], &events[0]["verdict"]), (&json!("no-deploy"), &json!("deny")));
    assert!(events[0]["about"].as_str().unwrap().contains("[redacted:"), "{}", events[0]);
    let prompt =
        |text: &str| json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "UserPromptSubmit", "prompt": text });
    let said = world.ask(Mode::Session, &prompt("the password is hunter2")).unwrap();
    assert!(said["reason"].as_str().unwrap().contains("no-secrets"));
    assert_eq!(world.ask(Mode::Session, &prompt("hello")), None);
}

#[test]
fn settings_may_change_in_a_session_and_not_in_a_run() {
    let world = World::new();
    let change = json!({
        "session_id": "s1", "cwd": world.work, "hook_event_name": "ConfigChange", "source": "project_settings",
        "file_path": world.path(".claude/settings.json"),
    });
    assert_eq!(world.ask(Mode::Run, &change).unwrap()["decision"], "block");
    assert_eq!(world.ask(Mode::Session, &change), None);
}

#[test]
fn a_session_begins_with_rules_in_a_run_and_with_guardrails_where_there_are_some() {
    let world = World::new();
    let start = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "SessionStart", "source": "startup" });
    assert!(world.ask(Mode::Run, &start).unwrap().to_string().contains("Verdone checks every tool call"));
    assert_eq!(world.ask(Mode::Session, &start), None);
    world.write(".verdone/guardrails.md", &"- Mind the gap.\n".repeat(2_000));
    for mode in MODES {
        assert!(world.ask(mode, &start).unwrap().to_string().contains("Mind the gap"));
    }
    let live = world.lines(".verdone/sessions/s1/events.jsonl");
    assert_eq!((&live[0]["record"], &live[0]["source"]), (&json!("started"), &json!("startup")));
    assert_eq!(world.read(".verdone/sessions/.gitignore"), "*\n");
}
