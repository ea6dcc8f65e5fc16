//! The Stop gate through the binary: sessions with a loop, what keeps their agents working, and everything that lets them stop.

mod conditions;
mod verification;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::hooks::world::{Mode, Verdict, World};

/// One gate that requires as many lines in `done.txt` as `want.txt` says.
const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
const CHECK: &str = "test \"$(cat done.txt)\" != broken || { echo 'src/a.rs:42: broken'; exit 3; }\n";
/// Stories with their own checks.
const PLAN: &str = "- [ ] US-001: One\n  - Verification: `test -f one`\n- [ ] US-002: Two\n  - Verification: `test -f two`\n";

fn features(done: usize) -> String {
    let list: Vec<Value> = (1..=3)
        .map(|n| json!({ "id": n, "description": format!("Feature {n}"), "steps": [format!("Do {n}")], "passes": n <= done }))
        .collect();
    serde_json::to_string_pretty(&json!({ "features": list })).unwrap()
}

/// New files at the root are protected unless the settings declare them as work.
pub(crate) const WORK: &str = "\n[protect]\nwork = [\"one\", \"two\", \"three\", \"a\", \"*.txt\", \"broken\", \"mood\"]\n";

pub(crate) fn world(config: &str, files: &[(&str, &str)]) -> World {
    let config = format!("{config}{WORK}");
    let given = [(".verdone/config.toml", config.as_str()), ("check.sh", CHECK), ("done.txt", "0\n")];
    World::with_repository(&[&given[..], files].concat())
}

fn loops(features: &str) -> World {
    let progress = "# Loop\n- Iteration: 0\n- Max Iterations: 4\n- Status: UNKNOWN\n";
    world(GATE, &[("feature_list.json", features), ("progress.txt", progress)])
}

#[track_caller]
pub(crate) fn verdone(world: &World, arguments: &[&str]) -> Output {
    let at = world.work.display().to_string();
    let output = world.command(&[&["-C", &at], arguments].concat()).output().unwrap();
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    output
}

#[track_caller]
pub(crate) fn arm(world: &World, arguments: &[&str]) {
    verdone(world, &[&["loop", "start", "--session", "s1"], arguments].concat());
}

fn input(world: &World, session: &str, more: &Value) -> Value {
    let mut input = json!({ "session_id": session, "cwd": world.work, "hook_event_name": "Stop", "stop_hook_active": false });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Block(String),
    Told(String),
    Nothing,
}

#[track_caller]
pub(crate) fn stop_with(world: &World, session: &str, more: &Value) -> Said {
    match world.ask(Mode::Session, &input(world, session, more)) {
        None => Said::Nothing,
        Some(answer) if answer["decision"] == "block" => {
            let reason = answer["reason"].as_str().unwrap().to_owned();
            assert!(reason.chars().count() <= 4_000);
            Said::Block(reason)
        }
        Some(answer) => Said::Told(answer["systemMessage"].as_str().unwrap().to_owned()),
    }
}

pub(crate) fn name_the_author(world: &mut World) {
    for name in ["AUTHOR", "COMMITTER"] {
        world.set(&format!("GIT_{name}_NAME"), "dev");
        world.set(&format!("GIT_{name}_EMAIL"), "dev@example.org");
    }
}

#[track_caller]
pub(crate) fn stop(world: &World) -> Said {
    stop_with(world, "s1", &json!({}))
}

impl Said {
    #[track_caller]
    pub(crate) fn blocked(self, part: &str) -> String {
        let Self::Block(reason) = self else { panic!("not held: {self:?}") };
        assert!(reason.contains(part), "no {part:?} in: {reason}");
        reason
    }

    #[track_caller]
    pub(crate) fn let_go(self, part: &str) {
        let Self::Told(text) = self else { panic!("not let go with a word: {self:?}") };
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// A file of the loop of session s1, which is stored outside of the project.
pub(crate) fn kept(world: &World, file: &str) -> PathBuf {
    let folders = fs::read_dir(world.root.join(".local/state/verdone/loops")).unwrap();
    let mut found = folders.map(|folder| folder.unwrap().path().join("s1")).filter(|folder| folder.is_dir());
    found.next().unwrap().join(file)
}

/// Waits until the worker has written a finding other than `before`.
#[track_caller]
pub(crate) fn wait_for_finding(world: &World, before: &[u8]) {
    let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while fs::read(kept(world, "finding.json")).is_ok_and(|now| now == before) {
        assert!(std::time::Instant::now() < until, "no finding");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn causes(world: &World) -> Vec<String> {
    world.records("stop").iter().map(|record| record["cause"].as_str().unwrap().to_owned()).collect()
}

// Basic behaviour of the gate.

#[test]
fn a_turn_that_was_held_before_is_let_go_in_mode_once() {
    let world = loops(&features(0));
    world.write(".verdone/config.toml", &format!("[stop]\nmode = \"once\"\n{GATE}"));
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("THE STORY (1): Feature 1");
    assert_eq!(stop_with(&world, "s1", &json!({ "stop_hook_active": true })), Said::Nothing);
}

#[test]
fn a_session_without_a_loop_and_without_state_files_is_let_go() {
    let world = loops(&features(0));
    assert_eq!(stop_with(&world, "test-123", &json!({})), Said::Nothing);
    let lines = world.lines(".verdone/sessions/test-123/events.jsonl");
    assert_eq!((&lines[0]["record"], &lines[0]["cause"]), (&json!("stop"), &json!("foreign")));
}

#[test]
fn state_files_of_another_tool_hold_a_session_once_and_never_open_the_gate() {
    let world = loops(&features(0));
    let state = |session: &str, name: &str, value: &Value| {
        let path = world.root.join(".ralph/state").join(session).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    state("test-456", "orchestrator.json", &json!({ "verified_done": false, "phase": "implementation" }));
    stop_with(&world, "test-456", &json!({}))
        .blocked("orchestrator.json says that there is work left: phase \"implementation\" is not done");
    assert_eq!(stop_with(&world, "test-456", &json!({ "stop_hook_active": true })), Said::Nothing);
    state("test-789", "orchestrator.json", &json!({ "verified_done": true, "phase": "complete" }));
    assert_eq!(stop_with(&world, "test-789", &json!({})), Said::Nothing);
    state("test-789", "quality-gate.json", &json!({ "last_result": "failed" }));
    state("test-789", "tasks/1.json", &json!({ "status": "in_progress" }));
    let reason = stop_with(&world, "test-789", &json!({})).blocked("the last result is failed");
    assert!(reason.contains("1 of its tasks"), "{reason}");
    // Verdone's own entries there do not count as another tool's.
    state("ours", "orchestrator.json", &json!({ "verified_done": false, "written_by": "verdone" }));
    assert_eq!(stop_with(&world, "ours", &json!({})), Said::Nothing);
    state("s1", "orchestrator.json", &json!({ "verified_done": true }));
    state("s1", "loop.json", &json!({ "verified_done": true, "iteration": 9, "max_iterations": 9 }));
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("Feature 1");
    assert_eq!(stop_with(&world, "../../x", &json!({})), Said::Nothing);
}

// How a loop over a feature list ends.

#[test]
fn features_are_marked_one_by_one_and_the_last_one_completes_the_loop() {
    let world = loops(&features(0));
    arm(&world, &["Build it", "--plan", "feature_list.json"]);
    let reason = stop(&world).blocked("CONTINUATION: Verdone loop, iteration 1 of 4.");
    assert!(reason.contains("No file was changed."), "{reason}");
    assert!(reason.contains("1. Read the current state from progress.txt.") && reason.contains("- Do 1"), "{reason}");
    assert!(!reason.contains("set \"passes\"") && !reason.contains("Update progress.txt"), "{reason}");
    assert!(world.read("progress.txt").contains("- Iteration: 1\n- Max Iterations: 4\n- Status: IN_PROGRESS\n"));
    for n in 1..=2 {
        world.write("done.txt", &format!("{n}\n"));
        let reason = stop(&world).blocked(&format!("NEXT STORY ({}): Feature {}", n + 1, n + 1));
        assert!(reason.contains(&format!("story {n} is done (untested)")), "{reason}");
        assert_eq!(world.read("feature_list.json"), features(n), "and no other byte changed");
    }
    world.write("done.txt", "3\n");
    stop(&world).let_go("COMPLETE: all 3 stories of the loop are done (3 untested)");
    assert_eq!(world.read("feature_list.json"), features(3));
    assert!(world.read("progress.txt").contains("- Status: COMPLETE\n"));
    assert_eq!(stop(&world), Said::Nothing, "the loop is over");
    assert_eq!(causes(&world), ["nothing_changed", "next_story", "next_story", "complete", "ended"]);
}

#[test]
fn the_limit_lets_go_and_says_what_remains() {
    let world = loops(&features(1));
    arm(&world, &["--plan", "feature_list.json", "--max-iterations", "2"]);
    for n in 0..2 {
        world.write("done.txt", "broken\n");
        world.write("more.txt", &n.to_string());
        stop(&world).blocked("The check `tests` failed with exit code 3 (`sh check.sh`).\nsrc/a.rs:42: broken\nAt: src/a.rs:42");
    }
    world.write("more.txt", "x");
    stop(&world).let_go("REACHED_LIMIT: 2 iterations were used; 2 remain: 2, 3");
    let progress = world.read("progress.txt");
    assert!(progress.contains("- Iteration: 2\n- Max Iterations: 4\n- Status: REACHED_LIMIT\n- Remaining: 2, 3\n"), "{progress}");
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn a_session_where_nothing_changes_is_let_go_with_a_reason() {
    let world = loops(&features(0));
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("No file was changed");
    stop(&world).blocked("No file was changed");
    stop(&world).let_go("nothing has changed in 3 turns in a row");
    stop(&world).blocked("No file was changed");
    let stops = world.records("stop");
    assert_eq!((&stops[0]["verdict"], &stops[1]["verdict"]), (&json!("ran"), &json!("cached")));
    let status = verdone(&world, &["loop", "status"]);
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.starts_with("session s1: active\n") && status.contains("0 of 3 done"), "{status}");
}

#[test]
fn a_mark_of_the_agents_is_a_claim_that_has_to_be_verified() {
    let world = world("", &[("PLAN.md", PLAN)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("PLAN.md", &PLAN.replace("[ ]", "[x]").replace("test -f one", "true").replace("test -f two", "true"));
    let reason = stop(&world).blocked("No file was changed.");
    assert!(reason.contains("marked as done without verification, and Verdone removed the marks: US-001, US-002"), "{reason}");
    assert!(world.read("PLAN.md").starts_with("- [ ] US-001"));
    world.write("one", "");
    stop(&world).blocked("story US-001 is done (verified)");
    world.write("two", "");
    stop(&world).let_go("COMPLETE: all 2 stories");
    assert_eq!(world.read("PLAN.md").matches("[x]").count(), 2);
}

#[test]
fn a_story_that_is_gone_from_the_plan_is_not_done() {
    let world = world("", &[("PLAN.md", PLAN)]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("PLAN.md", "- [x] US-001: One\n");
    world.write("one", "");
    stop(&world).blocked("Story US-002 was in the plan when the loop started, but is missing now.");
    world.write("PLAN.md", "no plan at all");
    stop(&world).blocked("Verdone's Stop gate could not judge this turn (fault 1 of at most 3");
}

#[test]
fn a_task_without_a_plan_is_done_when_its_gates_are_green_and_something_changed() {
    let world = world(GATE, &[("PLAN.md", PLAN)]);
    arm(&world, &["Fix it"]);
    stop(&world).blocked("No file was changed");
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The task: Fix it");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE: every gate is green");
}

#[test]
fn files_that_the_checks_make_reach_neither_the_checkout_nor_the_verdict() {
    let gate = "[[gate]]\nname = \"writes\"\ncommand = \"date +%N > made.txt; echo x >> README.md\"\n";
    let world = world(gate, &[("feature_list.json", &features(2))]);
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("No file was changed");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE: the one story");
    assert!(!world.work.join("made.txt").exists() && world.read("README.md") == "Read me.\n");
}

#[test]
fn a_second_session_in_the_same_directory_is_never_captured() {
    let world = loops(&features(0));
    let start = |session: &str, source: &str| {
        let input = json!({ "session_id": session, "cwd": world.work, "hook_event_name": "SessionStart", "source": source });
        world.ask(Mode::Session, &input).map(|answer| answer["hookSpecificOutput"]["additionalContext"].to_string())
    };
    verdone(&world, &["loop", "start", "--plan", "feature_list.json"]);
    assert_eq!(start("s0", "compact"), None, "that is no session that begins");
    assert!(start("s1", "startup").unwrap().contains("A Verdone loop is active here"));
    assert_eq!(start("s2", "startup"), None);
    stop(&world).blocked("Feature 1");
    for session in ["s0", "s2", "s3"] {
        assert_eq!(stop_with(&world, session, &json!({})), Said::Nothing, "{session}");
    }
    assert!(start("s1", "resume").unwrap().contains("The current story is 1: Feature 1"));
}

#[test]
fn an_agent_arms_its_own_session_and_cannot_end_the_loop() {
    let mut world = loops(&features(0));
    let call = |world: &World, command: &str| world.judge(Mode::Session, "Bash", &json!({ "command": command }));
    assert_eq!(call(&world, "verdone loop stop"), Verdict::Silent);
    assert_eq!(call(&world, "verdone loop start --plan feature_list.json"), Verdict::Silent);
    // A hook saw which session ran it; the client's variable, if set, says the same.
    world.set("CLAUDECODE", "1");
    verdone(&world, &["loop", "start", "--plan", "feature_list.json"]);
    stop(&world).blocked("Feature 1");
    for command in ["verdone loop stop", "bash -c 'verdone loop stop --session s1'", "verdone uninstall --yes"] {
        call(&world, command).denied_by("verdone-itself");
    }
    call(&world, "rm .verdone/sessions/s1/loop.json").denied_by("verdone-dir");
    let at = world.work.display().to_string();
    let again =
        world.command(&["-C", &at, "loop", "start", "--plan", "feature_list.json", "--max-iterations", "1"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("the session s1 already has a loop for feature_list.json"));
    // A script of the agent, which no rule sees, cannot do it either.
    for command in [&["loop", "stop"][..], &["plan", "approve", "feature_list.json", "--yes"]] {
        let refused = world.command(&[&["-C", &at], command].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains("CLAUDECODE shows that this is an agent"), "{said}");
    }
    stop(&world).blocked("Feature 1");
    world.variables.clear();
    verdone(&world, &["loop", "stop"]);
    assert_eq!(stop(&world), Said::Nothing);
}

#[test]
fn what_only_pauses_lets_go_and_leaves_the_loop_armed() {
    let world = loops(&features(0));
    arm(&world, &["--plan", "feature_list.json"]);
    let tasks = json!({ "background_tasks": [{ "id": "b1", "type": "shell", "status": "running", "description": "Serves" }] });
    assert_eq!(stop_with(&world, "s1", &tasks), Said::Nothing);
    let over = json!({ "background_tasks": [{ "id": "b1", "type": "shell", "status": "completed" }] });
    stop_with(&world, "s1", &over).blocked("Feature 1");
    world.write(".verdone/pause", "");
    stop(&world).let_go("the loop is paused");
    fs::remove_file(world.work.join(".verdone/pause")).unwrap();
    let answer = |tokens: u64, more: &str| {
        let message = json!({ "model": "claude-opus-5-5", "usage": { "input_tokens": tokens }, "content": [{ "type": "text", "text": "Overloaded" }] });
        format!("{{\"type\":\"assistant\",{more}\"message\":{message}}}\n")
    };
    let transcript = |text: &str| json!({ "transcript_path": world.write("t.jsonl", text) });
    stop_with(&world, "s1", &transcript(&answer(160_000, "")))
        .let_go("`verdone run feature_list.json` continues in a fresh session");
    let failed = answer(1, "") + &answer(1, "\"isApiErrorMessage\":true,");
    stop_with(&world, "s1", &transcript(&failed)).let_go("the model's service failed: Overloaded");
    stop_with(&world, "s1", &transcript(&answer(1, ""))).blocked("Feature");
    let found = causes(&world);
    assert_eq!(found[..5], ["background", "nothing_changed", "paused", "context", "api_failure"]);
}

/// Whether any process has this word in its arguments.
pub(crate) fn is_running(word: &str) -> bool {
    let words = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let all = fs::read_dir("/proc").unwrap().flatten().map(words);
    all.into_iter().any(|words| words.split(|byte| *byte == 0).any(|found| found == word.as_bytes()))
}

#[test]
fn a_verification_that_does_not_end_is_ended_by_its_deadline() {
    let gate =
        "[stop]\nverify_deadline = \"100ms\"\n[limits]\ngrace = \"10ms\"\n[[gate]]\nname = \"slow\"\ncommand = \"sleep 600\"\n";
    let world = world(gate, &[]);
    arm(&world, &["Wait for it"]);
    world.write("done.txt", "1\n");
    stop(&world).blocked("The verification did not finish within 100ms.");
}

#[test]
fn stories_are_committed_only_where_the_settings_say_so() {
    let mut world = world("[stop]\ncommit = true\n", &[("PLAN.md", PLAN)]);
    name_the_author(&mut world);
    world.write("mine.txt", "the user's own\n");
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("test -f one");
    world.write("one", "1\n");
    stop(&world).blocked("NEXT STORY (US-002)");
    let shown =
        std::process::Command::new("git").args(["show", "--format=%s", "--name-only", "HEAD"]).current_dir(&world.work).output();
    assert_eq!(String::from_utf8(shown.unwrap().stdout).unwrap(), "feat(US-001): One\n\nPLAN.md\none\n");
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE: all 2 stories of the loop are done (2 verified)");
    assert_eq!(world.read("mine.txt"), "the user's own\n");
}

#[test]
fn a_commit_alone_is_no_work_and_what_was_red_is_run_again_for_a_new_prompt() {
    let world = loops(&features(0));
    arm(&world, &["--plan", "feature_list.json", "--max-iterations", "9"]);
    world.write("done.txt", "1\n");
    stop(&world).blocked("NEXT STORY (2)");
    world.git(&["-c", "user.name=dev", "-c", "user.email=dev@example.org", "commit", "--quiet", "-am", "the agent's own"]);
    stop(&world).blocked("No file was changed");
    world.write("done.txt", "broken\n");
    let again = json!({ "stop_hook_active": true });
    stop(&world).blocked("The check `tests` failed");
    stop_with(&world, "s1", &again).blocked("The check `tests` failed");
    stop(&world).let_go("nothing has changed in 3 turns");
    let verdicts: Vec<Value> = world.records("stop").iter().map(|record| record["verdict"].clone()).collect();
    assert_eq!(verdicts[2..], [json!("ran"), json!("cached"), json!("ran")]);
}

#[test]
fn a_full_context_hands_over_to_a_run_where_the_settings_say_so() {
    let config = format!("[stop]\non_context = \"spawn\"\n[limits]\nmax_iterations = 1\n[agent.command]\nrun = \"true\"\n{GATE}");
    let mut world = world(&config, &[("PLAN.md", PLAN)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    let message = json!({ "model": "claude-opus-5-5", "usage": { "input_tokens": 200_000 } });
    let transcript = world.root.join("t.jsonl");
    fs::write(&transcript, format!("{{\"type\":\"assistant\",\"message\":{message}}}\n")).unwrap();
    let full = json!({ "transcript_path": transcript });
    world.write("dirty.txt", "");
    stop_with(&world, "s1", &full).let_go("`verdone run PLAN.md` continues in a fresh session");
    fs::remove_file(world.work.join("dirty.txt")).unwrap();
    stop_with(&world, "s1", &full).let_go("`verdone run PLAN.md` starts in the background");
    assert_eq!(stop_with(&world, "s1", &full), Said::Nothing);
    let log = || world.read(".verdone/sessions/s1/run.log");
    let journals = || {
        let runs = fs::read_dir(world.work.join(".verdone/runs")).into_iter().flatten().flatten();
        runs.map(|run| fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default()).collect::<String>()
    };
    let began = std::time::Instant::now();
    while !journals().contains("\"run_stopped\"") {
        assert!(began.elapsed() < std::time::Duration::from_mins(1), "{}\n{}", log(), journals());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn every_decision_is_in_the_log_with_a_summary() {
    let world = loops(&features(2));
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("Feature 3");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE: the one story");
    stop_with(&world, "s2", &json!({}));
    let text = String::from_utf8(verdone(&world, &["log", "--stops"]).stdout).unwrap();
    for part in ["s1  block nothing_changed [3]", "s1  yield complete", "s2  yield foreign", "1 block, 2 releases"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let json: Value = serde_json::from_slice(&verdone(&world, &["log", "--stops", "--json"]).stdout).unwrap();
    assert_eq!((json["stops"].as_array().unwrap().len(), &json["summary"]["blocks"]["nothing_changed"]["count"]), (3, &json!(1)));
}

#[test]
fn a_finding_or_a_request_that_somebody_else_wrote_counts_for_nothing() {
    let world = world(&format!("[stop]\nsame_limit = 0\n{GATE}"), &[]);
    arm(&world, &["Do it"]);
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    let again = json!({ "stop_hook_active": true });
    let forged = |path: &PathBuf| {
        let honest = fs::read_to_string(path).unwrap();
        let (mark, body) = honest.split_once('\n').unwrap();
        let body = body.replace("failed", "passed").replace("false", "true");
        [body.clone(), format!("{mark}\n{body}"), format!("{}\n{body}", "0".repeat(64)), "{".to_owned()]
    };
    let (finding, request) = (kept(&world, "finding.json"), kept(&world, "request.json"));
    let honest = fs::read(&finding).unwrap();
    for text in forged(&finding) {
        fs::write(&finding, &text).unwrap();
        stop_with(&world, "s1", &again).blocked("was not written by Verdone");
        fs::write(&finding, &honest).unwrap();
        stop_with(&world, "s1", &again).blocked("The check `tests` failed");
    }
    // A worker ignores forged requests, too.
    for text in forged(&request) {
        fs::write(&request, &text).unwrap();
        world.command(&["stop-verify", world.work.to_str().unwrap(), "s1"]).output().unwrap();
        assert_eq!(fs::read(&finding).unwrap(), honest, "{text}");
    }
}

#[test]
fn a_loop_needs_a_place_for_its_secret_outside_of_the_work_tree() {
    let mut world = world(GATE, &[]);
    let inside = world.path("state");
    world.set("XDG_STATE_HOME", &inside);
    let output = world.command(&["-C", &world.path("."), "loop", "start", "--session", "s1", "Do it"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("set XDG_STATE_HOME"), "{said}");
    assert_eq!(stop(&world), Said::Nothing, "nothing is held");
}
