//! Trouble in the middle of a turn: the client or Verdone hangs, dies, floods its output, leaves processes running or is told to stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use verdone_testkit::model_server::{Fault, Script, Stall, Turn};
use verdone_testkit::{Output, Running, Signal};

use crate::claude::world::{ONE, PATIENCE, World, verdone};

const AGENT: &str = "[agent]\nname = \"claude\"\n";
/// Two stories; the check of the first can be delayed.
const TWO: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
                   ### US-002: Write b\n\n- [ ] Write the file b\n  - Verification: `test -f b`\n";
/// Never ends, and starts a process in a separate process session.
const HANGS: &str = "setsid sleep 601 & sleep 600";
/// Shows that it is running, and waits for permission to end.
const CHECK: &str = "test -f a || exit 1\n: > ../tmp/checking\nuntil test -f ../tmp/go; do sleep 0.02; done\n";

fn world(plan: &str, settings: &str, script: Script) -> Option<World> {
    World::with(&[(".verdone/config.toml", &format!("{AGENT}{settings}")), ("PLAN.md", plan)], script)
}

fn first(answers: impl IntoIterator<Item = Turn>) -> Script {
    Script::new().on("US-001", answers)
}

/// After that, the agent is honest.
fn then_done(script: Script) -> Script {
    script.on("US-001", [Turn::write("a", "one\n"), Turn::say("It is written.")])
}

fn stalls() -> Turn {
    Turn::say("Never.").stall(Stall::UntilReleased)
}

fn stalls_in_the_middle() -> Turn {
    Turn::say("Never whole").fault(Fault::Stall(Stall::UntilReleased))
}

/// Where a turn hangs.
#[derive(Debug, Clone, Copy)]
enum At {
    Tool,
    Answer,
}

/// A run whose first turn has written `half` and hangs.
fn hanging(place: At, settings: &str) -> Option<(World, Running)> {
    let hangs = match place {
        At::Tool => Turn::bash(HANGS),
        At::Answer => stalls_in_the_middle(),
    };
    let world = world(ONE, settings, first([Turn::write("half", "half\n"), hangs]))?;
    let run = world.start(&["run"]);
    match place {
        At::Tool => wait_until("a command", || ["sleep 600", "sleep 601"].iter().all(|command| runs(&world, command))),
        At::Answer => world.model.wait_for_stall(PATIENCE),
    }
    Some((world, run))
}

fn events<'a>(journal: &'a [Value], name: &str) -> Vec<&'a Value> {
    journal.iter().filter(|event| event["event"] == name).collect()
}

/// How each turn ended, as one word.
fn outcomes(journal: &[Value]) -> Vec<String> {
    let word = |event: &&Value| match &event["outcome"] {
        Value::String(word) => word.clone(),
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        other => other.to_string(),
    };
    events(journal, "turn_ended").iter().map(word).collect()
}

/// The client's own process, not the launcher processes above it.
pub(crate) fn client(world: &World) -> Option<u32> {
    let is_client =
        |command: &str| command.contains("--input-format") && command.contains("stream-json") && !command.starts_with(verdone());
    world.sandbox.survivors().into_iter().find(|process| is_client(&process.command)).map(|process| process.pid)
}

fn runs(world: &World, command: &str) -> bool {
    world.sandbox.survivors().iter().any(|process| process.command == command)
}

/// Polls, because there is no event to wait for.
#[track_caller]
pub(crate) fn wait_until(what: &str, reached: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn wait_for_file(world: &World, path: &str) {
    wait_until(path, || world.has(path));
}

/// Waits until the agent has created a file in its workspace; returns the file's folder.
#[track_caller]
fn wait_for_work(world: &World, path: &str) -> PathBuf {
    wait_until(path, || world.in_workspace(path).is_some());
    world.in_workspace(path).and_then(|path| path.parent().map(Path::to_owned)).expect("it was there")
}

fn state(pid: u32) -> Option<char> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn send(pid: u32, signal: &str) {
    assert!(std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Waits until the run and all its processes have ended.
fn ended(world: &World, run: Running, code: i32) -> Output {
    let output = run.wait(PATIENCE);
    output.assert_code(code);
    world.sandbox.assert_no_survivors(PATIENCE);
    output
}

/// Asserts that the last kept attempt has this file, and that the checkout does not.
#[track_caller]
fn assert_kept(world: &World, path: &str) {
    let journal = world.journal();
    let attempts = events(&journal, "attempt_kept");
    let kept = attempts.last().and_then(|event| event["kept"].as_str());
    let kept = kept.unwrap_or_else(|| panic!("nothing was kept: {journal:#?}"));
    world.sandbox.git(["cat-file", "-e", &format!("{kept}:{path}")]);
    assert!(!world.has(path), "{path} is in the checkout");
}

#[test]
fn what_a_turn_leaves_running_is_ended_before_the_checks_and_wakes_nobody() {
    let plan = TWO.replace("`test -f a`", "`sh check.sh`");
    let background = json!({ "command": "sleep 611", "description": "A server", "run_in_background": true });
    let apart = "nohup sleep 612 > /dev/null 2>&1 & setsid sleep 613 > /dev/null 2>&1 & echo started";
    let script = first([Turn::call("Bash", background), Turn::bash(apart), Turn::write("a", "one\n"), Turn::say("Done.")]);
    let script = script.on("US-002", [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let files = [(".verdone/config.toml", AGENT), ("PLAN.md", &plan), ("check.sh", CHECK)];
    let Some(world) = World::with(&files, script.otherwise(Turn::say("I see."))) else { return };
    let run = world.start(&["run"]);
    wait_for_file(&world, "../tmp/checking");
    for left in ["sleep 611", "sleep 612", "sleep 613"] {
        assert!(!runs(&world, left), "{left} is alive while the work is checked");
    }
    let (asked, pid) = (world.model.requests().len(), client(&world).expect("the client stays"));
    assert_eq!(state(pid), Some('T'), "nothing moves while its work is checked");
    // There is no event for not waking up, so wait.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(world.model.requests().len(), asked, "{}", world.model.overview());
    assert_eq!(state(pid), Some('T'));
    world.sandbox.write("../tmp/go", "");
    ended(&world, run, 0);
    assert_eq!(world.subjects().len(), 3, "{:?}", world.subjects());
    let journal = world.journal();
    let turns = events(&journal, "turn_ended");
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert_eq!(turns[0]["session"]["id"], turns[1]["session"]["id"], "the second story goes on in the same process");
    assert!(turns[0]["leftovers"].as_u64() >= Some(3), "{}", turns[0]);
}

#[test]
fn a_turn_that_hangs_is_ended_at_its_limit_and_the_next_one_works_in_the_same_session() {
    let limits = "[limits]\nturn_time = \"3s\"\nno_progress = 0\n";
    // The model does not answer, stops in the middle of an answer, and a command does not end.
    let script = first([stalls(), stalls_in_the_middle(), Turn::bash(HANGS)]);
    let Some(world) = world(ONE, limits, then_done(script)) else { return };
    ended(&world, world.start(&["run"]), 0);
    let journal = world.journal();
    assert_eq!(outcomes(&journal), ["timed_out", "timed_out", "timed_out", "ended"]);
    let turns = events(&journal, "turn_ended");
    assert!(turns.iter().all(|turn| turn["session"]["id"] == turns[0]["session"]["id"]), "{turns:#?}");
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
}

#[test]
fn a_client_that_is_silent_for_too_long_is_interrupted() {
    let script = then_done(first([stalls_in_the_middle()]));
    let Some(world) = world(ONE, "[limits]\nidle_time = \"2s\"\n", script) else { return };
    ended(&world, world.start(&["run"]), 0);
    assert_eq!(outcomes(&world.journal()), ["idle", "ended"]);
}

#[test]
fn a_flood_of_output_is_cut_and_the_story_is_done() {
    let long = "A line of the model that says very little.\n".repeat(20_000);
    let script = first([
        Turn::bash("head -c 50000000 /dev/zero | tr '\\0' x; yes flood | head -c 50000000"),
        Turn::say(&long).and_call("Write", json!({ "file_path": "a", "content": "one\n" })),
        Turn::say(&long),
    ]);
    let Some(world) = world(ONE, "[limits]\noutput_bytes = 200000\n", script) else { return };
    let output = ended(&world, world.start(&["run"]), 0);
    world.assert_scripted();
    // The model says this text twice. How much of it is shown depends on timing.
    assert!(output.stdout.len() < long.len(), "{} bytes were shown", output.stdout.len());
    let journal = world.journal();
    let file = events(&journal, "turn_ended")[0]["output"].as_str().unwrap().to_owned();
    let run_dir = world.sandbox.verdone(verdone(), ["status", "--json"]).stdout;
    let run_dir: Value = serde_json::from_str(&run_dir).unwrap();
    let run = run_dir["run"].as_str().or(run_dir["run"]["id"].as_str()).unwrap_or_else(|| panic!("{run_dir}")).to_owned();
    let kept = fs::metadata(world.sandbox.path(".verdone/runs").join(run).join(file)).unwrap().len();
    assert!(kept < 4_000_000, "{kept} bytes were kept");
}

#[test]
fn a_client_that_dies_in_a_turn_is_replaced_and_the_story_is_done() {
    for place in [At::Tool, At::Answer] {
        let Some((world, run)) = hanging(place, "") else { return };
        let asked = world.model.requests().len();
        world.model.extend(then_done(Script::new()));
        send(client(&world).unwrap(), "-KILL");
        world.model.wait_for("the next turn", PATIENCE, |requests| requests.len() > asked);
        assert!(!runs(&world, "sleep 600") && !runs(&world, "sleep 601"), "{place:?}: its commands outlive it");
        ended(&world, run, 0);
        let journal = world.journal();
        assert_eq!(outcomes(&journal), ["crashed", "ended"], "{place:?}");
        let turns = events(&journal, "turn_ended");
        assert!(turns[0]["outcome"]["crashed"]["reason"].as_str().unwrap().contains("signal 9"), "{place:?}: {}", turns[0]);
        assert_ne!(turns[0]["session"]["id"], turns[1]["session"]["id"], "{place:?}");
    }
}

#[test]
fn a_client_that_dies_between_two_turns_is_replaced_too() {
    let plan = TWO.replace("`test -f a`", "`sh check.sh`");
    let script = then_done(Script::new()).on("US-002", [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let files = [(".verdone/config.toml", AGENT), ("PLAN.md", &plan), ("check.sh", CHECK)];
    let Some(world) = World::with(&files, script) else { return };
    let run = world.start(&["run"]);
    wait_for_file(&world, "../tmp/checking");
    send(client(&world).unwrap(), "-KILL");
    world.sandbox.write("../tmp/go", "");
    ended(&world, run, 0);
    world.assert_scripted();
    assert_eq!(world.subjects().len(), 3, "{:?}", world.subjects());
}

#[test]
fn a_signal_in_a_turn_ends_the_run_with_its_code_and_leaves_no_process() {
    for (signal, code, place) in [(Signal::INT, 130, At::Tool), (Signal::TERM, 143, At::Answer)] {
        let Some((world, run)) = hanging(place, "") else { return };
        run.signal(signal);
        ended(&world, run, code);
        assert_eq!(outcomes(&world.journal()), ["interrupted"]);
        assert_kept(&world, "half");
        world.model.extend(then_done(Script::new()));
        world.verdone(&["run"]).assert_code(0);
        assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
    }
}

#[test]
fn a_second_interrupt_waits_for_nobody() {
    // Another process suspends the client, so it cannot answer; the grace period is long.
    let Some((world, run)) = hanging(At::Tool, "[limits]\ngrace = \"10m\"\n") else { return };
    let pid = client(&world).unwrap();
    send(pid, "-STOP");
    run.signal(Signal::INT);
    run.wait_for("again", PATIENCE);
    run.signal(Signal::INT);
    ended(&world, run, 130);
    assert_kept(&world, "half");
}

#[test]
fn a_killed_run_takes_its_client_along_and_the_next_one_goes_on() {
    for place in [At::Tool, At::Answer] {
        let Some((world, run)) = hanging(place, "") else { return };
        run.signal(Signal::KILL);
        ended(&world, run, -9);
        assert!(!world.has("half"));
        world.model.extend(then_done(Script::new()));
        ended(&world, world.start(&["run"]), 0);
        assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
        assert_eq!(world.sandbox.git(["status", "--porcelain"]), "");
        // The dead run's journal now has its end.
        let runs = fs::read_dir(world.sandbox.path(".verdone/runs")).unwrap();
        let journals = runs.filter_map(|run| fs::read_to_string(run.unwrap().path().join("journal.jsonl")).ok());
        let dropped = journals.filter(|journal| journal.contains("\"event\":\"attempt_dropped\"")).count();
        assert_eq!(dropped, 1, "{place:?}");
    }
}

#[test]
fn a_run_that_is_killed_while_the_client_is_frozen_leaves_nobody() {
    let plan = ONE.replace("`test -f a`", "`sh check.sh`");
    let files = [(".verdone/config.toml", AGENT), ("PLAN.md", &plan), ("check.sh", CHECK)];
    let Some(world) = World::with(&files, then_done(Script::new())) else { return };
    let run = world.start(&["run"]);
    wait_for_file(&world, "../tmp/checking");
    assert_eq!(state(client(&world).unwrap()), Some('T'));
    run.signal(Signal::KILL);
    ended(&world, run, -9);
}

#[test]
fn a_user_can_steer_a_run_while_the_client_works() {
    let waits = Turn::bash("echo half > half; until test -f go; do sleep 0.02; done; rm half go");
    let script = || then_done(first([waits.clone()])).on("US-002", [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let Some(steered) = world(TWO, "", script()) else { return };
    let run = steered.start(&["run"]);
    let workspace = wait_for_work(&steered, "half");
    steered.verdone(&["pause"]).assert_code(0);
    steered.verdone(&["note", "prefer tabs"]).assert_code(0);
    fs::write(workspace.join("go"), "").unwrap();
    run.wait_for("Requested: pause", PATIENCE);
    assert!(!run.has_ended() && steered.subjects().len() == 1);
    steered.verdone(&["resume"]).assert_code(0);
    ended(&steered, run, 0);
    let prompts: Vec<String> = steered.model.turns().iter().map(|turn| turn.prompt().clone()).collect();
    assert!(prompts.last().unwrap().contains("- prefer tabs"), "{}", prompts.last().unwrap());
    drop(steered);

    let Some(stopped) = world(TWO, "", script()) else { return };
    let run = stopped.start(&["run"]);
    wait_for_work(&stopped, "half");
    stopped.verdone(&["stop"]).assert_code(0);
    ended(&stopped, run, 130);
    assert_kept(&stopped, "half");
}

#[test]
fn a_stop_by_the_terminal_does_not_wake_a_client_whose_work_is_checked() {
    let plan = ONE.replace("`test -f a`", "`sh check.sh`");
    let files = [(".verdone/config.toml", AGENT), ("PLAN.md", &plan), ("check.sh", CHECK)];
    let Some(world) = World::with(&files, then_done(Script::new())) else { return };
    let run = world.start(&["run"]);
    wait_for_file(&world, "../tmp/checking");
    let pid = client(&world).unwrap();
    let checking = || world.sandbox.survivors().into_iter().find(|process| process.command.ends_with("sh check.sh"));
    let checker = checking().unwrap().pid;
    assert_eq!(state(pid), Some('T'));
    run.signal(Signal::TSTP);
    wait_until("everything stands", || state(run.pid()) == Some('T') && state(checker) == Some('T'));
    run.signal(Signal::CONT);
    wait_until("the check goes on", || state(run.pid()) != Some('T') && state(checker) != Some('T'));
    assert_eq!(state(pid), Some('T'), "only what the stop stopped goes on");
    world.sandbox.write("../tmp/go", "");
    ended(&world, run, 0);
}

#[test]
fn a_stop_by_the_terminal_stops_the_client_in_its_turn_and_it_goes_on() {
    let waits = Turn::bash("echo half > half; until test -f go; do sleep 0.02; done; rm half go");
    let Some(world) = world(ONE, "", then_done(first([waits]))) else { return };
    let run = world.start(&["run"]);
    let workspace = wait_for_work(&world, "half");
    let pid = client(&world).unwrap();
    run.signal(Signal::TSTP);
    wait_until("everything stands", || state(run.pid()) == Some('T') && state(pid) == Some('T'));
    run.signal(Signal::CONT);
    fs::write(workspace.join("go"), "").unwrap();
    ended(&world, run, 0);
    assert_eq!(outcomes(&world.journal()), ["ended"]);
}

#[test]
fn a_second_run_and_a_run_of_the_agent_itself_are_refused() {
    let inner =
        format!("{} run > inner.txt 2>&1; echo code $? >> inner.txt; until test -f go; do sleep 0.02; done; rm go", verdone());
    let Some(world) = world(ONE, "", then_done(first([Turn::bash(&inner)]))) else { return };
    let run = world.start(&["run"]);
    let workspace = wait_for_work(&world, "inner.txt");
    wait_until("the answer to the agent", || fs::read_to_string(workspace.join("inner.txt")).unwrap().contains("code "));
    let second = world.verdone(&["run"]);
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&format!("process {}", run.pid())), "{}", second.stderr);
    fs::write(workspace.join("go"), "").unwrap();
    ended(&world, run, 0);
    let inner = world.sandbox.git(["show", "HEAD:inner.txt"]);
    assert!(!inner.contains("code 0"), "{inner}");
}

#[test]
fn commands_after_a_tool_run_beside_each_other_and_the_turn_goes_on() {
    // Each waits for the other: if they ran one after the other, both would time out.
    let meet =
        ": > ../tmp/at-$(basename $VERDONE_FILE); until test -f ../tmp/at-one && test -f ../tmp/at-two; do sleep 0.02; done";
    let settings =
        format!("[[after_tool]]\ntools = [\"Read\"]\nrun = \"{meet}; echo met\"\nfeedback = \"always\"\ntimeout = \"45s\"\n");
    let reads = |file: &str| json!({ "file_path": file });
    let both = Turn::call("Read", reads("one")).and_call("Read", reads("two"));
    let config = format!("{AGENT}{settings}");
    let files = [(".verdone/config.toml", config.as_str()), ("PLAN.md", ONE), ("one", "1\n"), ("two", "2\n")];
    let Some(world) = World::with(&files, then_done(first([both]))) else { return };
    ended(&world, world.start(&["run"]), 0);
    world.assert_scripted();
    let told = &world.model.turns()[1];
    let results = told.tool_results();
    assert!(results.len() == 2 && results.iter().all(|result| !result.is_error), "{results:?}");
    assert!(told.contains("met") && !told.contains("timed out after"), "{:?}", told.messages());
}

#[test]
fn a_command_after_a_tool_that_hangs_keeps_neither_a_limit_nor_a_signal_waiting() {
    let hangs = "[[after_tool]]\nrun = \": > ../tmp/formatting; setsid sleep 631 & sleep 632\"\ntimeout = \"45s\"\n";
    let script = || first([Turn::write("half", "half\n"), Turn::say("Never.")]);
    let limits = format!("[limits]\nturn_time = \"3s\"\nturns = 1\nattempts = 1\n{hangs}");
    let Some(limited) = world(ONE, &limits, script()) else { return };
    ended(&limited, limited.start(&["run"]), 4);
    let journal = limited.journal();
    assert_eq!(outcomes(&journal), ["timed_out"]);
    // The command itself had 45 seconds.
    let turn = events(&journal, "turn_ended")[0];
    assert!(turn["duration_ms"].as_u64().unwrap() < 40_000, "{turn}");
    drop(limited);

    let Some(stopped) = world(ONE, hangs, script()) else { return };
    let run = stopped.start(&["run"]);
    wait_for_file(&stopped, "../tmp/formatting");
    run.signal(Signal::TERM);
    ended(&stopped, run, 143);
    assert_kept(&stopped, "half");
}

#[test]
fn a_failing_test_run_ends_the_turn_where_the_settings_say_so_and_the_next_attempt_is_told() {
    let failing = "echo 'running 2 tests'; echo 'test adds ... ok'; echo 'test subtracts ... FAILED'; \
                   echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; exit 101\n";
    let script = first([Turn::write("rejected", "work\n"), Turn::bash("cargo test")]);
    let settings = "[policy.tests]\non_failure = \"rollback\"\n";
    let Some(world) = world(ONE, settings, then_done(script)) else { return };
    world.sandbox.add_script("cargo", &format!("#!/bin/sh\n{failing}"));
    ended(&world, world.start(&["run"]), 0);
    world.assert_scripted();
    let journal = world.journal();
    let rejected = events(&journal, "attempt_rejected");
    assert_eq!(rejected.len(), 1, "{rejected:?}");
    assert_eq!(rejected[0]["rejection"], "tests_failed");
    assert_kept(&world, "rejected");
    let turns = events(&journal, "turn_ended");
    assert_ne!(turns[0]["session"]["id"], turns[1]["session"]["id"], "the next attempt knows nothing of what was taken back");
    let told = world.model.turns();
    assert!(told.last().unwrap().prompt().contains("1 failed"), "{}", told.last().unwrap().prompt());
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
}
