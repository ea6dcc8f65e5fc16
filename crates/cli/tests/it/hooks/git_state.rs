//! Git's state after a command.

use std::fs;

use serde_json::{Value, json};

use crate::hooks::world::{MODES, Mode, World};

const COMMIT: &str = "1111111111111111111111111111111111111111\n";

fn told(said: Option<Value>) -> String {
    said.map(|said| said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn a_switched_branch_a_detached_head_and_a_merge_in_progress_are_told_once_each() {
    for mode in MODES {
        let world = World::new();
        world.begin(mode);
        assert_eq!(world.ask(mode, &world.ran("make")), None);
        world.write(".git/HEAD", "ref: refs/heads/other\n");
        let said = told(world.ask(mode, &world.ran("./switch.sh")));
        assert!(said.contains("the branch is now `other`, and was `main`. To undo it: `git switch main`."), "{said}");
        assert_eq!(said.contains("end the turn"), mode == Mode::Run, "{said}");
        assert_eq!(world.ask(mode, &world.ran("make")), None, "told once");
        world.write(".git/HEAD", COMMIT);
        assert!(told(world.ask(mode, &world.ran("make"))).contains("HEAD is detached"));
        world.write(".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(world.ask(mode, &world.ran("make")), None, "back where it was");
        for (sign, said, back) in [
            ("MERGE_HEAD", "a merge is in progress", "`git merge --abort`"),
            ("rebase-merge/onto", "a rebase is in progress", "`git rebase --abort`"),
            ("CHERRY_PICK_HEAD", "a cherry-pick is in progress", "`git cherry-pick --abort`"),
            ("REVERT_HEAD", "a revert is in progress", "`git revert --abort`"),
            ("BISECT_LOG", "a bisect is in progress", "`git bisect reset`"),
        ] {
            world.write(&format!(".git/{sign}"), "");
            // After a failed command, too.
            let mut failed = world.event("PostToolUseFailure", "Bash", &json!({ "command": "make" }));
            failed["error"] = "Exit code 1".into();
            let text = told(world.ask(mode, &failed));
            assert!(text.contains(said) && text.contains(back), "{sign}: {text}");
            assert_eq!(world.ask(mode, &world.ran("make")), None);
            let first = world.work.join(".git").join(sign.split('/').next().unwrap());
            let removed = if first.is_dir() { fs::remove_dir_all(first) } else { fs::remove_file(first) };
            removed.unwrap();
            assert_eq!(world.ask(mode, &world.ran("make")), None);
        }
        let records = world.records("git_state");
        assert_eq!((records.len(), &records[0]["blocked"]), (7, &json!(false)));
    }
}

#[test]
fn the_settings_say_whether_it_is_told_or_counts_as_a_failure_or_neither() {
    for (setting, expected) in [("off", None), ("report", Some(false)), ("deny", Some(true))] {
        let world = World::new();
        world.write(".verdone/config.toml", &format!("[policy]\ngit_state = \"{setting}\"\n"));
        world.begin(Mode::Run);
        world.write(".git/HEAD", COMMIT);
        let said = world.ask(Mode::Run, &world.ran("make"));
        let blocked = said.as_ref().map(|said| said["decision"] == "block");
        assert_eq!(blocked, expected, "{setting}: {said:?}");
        if expected == Some(true) {
            let reason = said.unwrap()["reason"].as_str().unwrap().to_owned();
            assert!(reason.contains("HEAD is detached") && reason.contains("`git switch main`"), "{reason}");
        }
    }
}

#[test]
fn a_run_knows_its_branch_and_a_linked_work_tree_its_own_head() {
    let world = World::in_run(&json!({
        "story": "US-001", "title": "One", "text": "", "checks": [], "branch": "verdone/work", "plan": "/nowhere",
    }));
    // The session started on the wrong branch, so only the run can notice.
    let said = told(world.ask(Mode::Run, &world.ran("make")));
    assert!(said.contains("the branch is now `main`, and was `verdone/work`"), "{said}");

    let mut linked = World::in_run(&json!({ "story": "US-001", "title": "One", "text": "", "checks": [], "plan": "/nowhere" }));
    let place = linked.root.join("linked").display().to_string();
    linked.git(&["worktree", "add", "--quiet", "-b", "side", &place]);
    fs::create_dir(linked.root.join("linked/.verdone")).unwrap();
    linked.set("CLAUDE_PROJECT_DIR", &place);
    linked.begin(Mode::Run);
    linked.git(&["switch", "--quiet", "-c", "elsewhere"]);
    assert_eq!(linked.ask(Mode::Run, &linked.ran("make")), None, "another work tree's branch");
    linked.git(&["-C", &place, "checkout", "--quiet", "--detach"]);
    let said = told(linked.ask(Mode::Run, &linked.ran("make")));
    assert!(said.contains("HEAD is detached, and was on the branch `side`"), "{said}");
}

#[test]
fn what_the_user_did_between_two_prompts_is_not_the_agents() {
    let world = World::new();
    world.begin(Mode::Session);
    world.write(".git/HEAD", "ref: refs/heads/other\n");
    let prompt = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "UserPromptSubmit", "prompt": "go on" });
    assert_eq!(world.ask(Mode::Session, &prompt), None);
    assert_eq!(world.ask(Mode::Session, &world.ran("make")), None);
    // The hooks' own files may contain anything: they are a memory, not a guard.
    world.write(".verdone/sessions/s1/seen.json", "broken");
    assert_eq!(world.ask(Mode::Session, &world.ran("make")), None);
}

#[test]
fn a_failing_test_and_a_state_of_git_are_told_in_one_answer() {
    let world = World::new();
    world.write(".verdone/config.toml", "[policy]\ngit_state = \"deny\"\n");
    world.begin(Mode::Run);
    world.write(".git/HEAD", COMMIT);
    let mut failed = world.event("PostToolUseFailure", "Bash", &json!({ "command": "cargo test" }));
    failed["error"] =
        "Exit code 101\nrunning 1 test\ntest adds ... FAILED\n\nfailures:\n    adds\n\ntest result: FAILED. 0 passed; 1 failed; \
                       0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
            .into();
    let said = world.ask(Mode::Run, &failed).unwrap();
    let reason = said["reason"].as_str().unwrap();
    assert!(reason.contains("adds") && reason.contains("HEAD is detached"), "{reason}");
}
