//! Runs with the real client when the service fails, limits are reached or contexts fill up: what the run waits for, what it costs, and
//! which session each turn uses.

use serde_json::Value;
use verdone_testkit::model_server::{ApiError, Limit, LimitStatus, Script, Stop, Times, Turn, Usage, When, Window};
use verdone_testkit::{Claude, Sandbox, Signal};

use crate::claude::world::{ONE, PATIENCE, World, verdone};

const TWO: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
    ### US-002: Write b\n\n- [ ] Write the file b\n  - Depends on: US-001\n  - Verification: `test -f b`\n";
const FIRST: &str = "# Story US-001";
const SECOND: &str = "# Story US-002";
/// The prompt of a turn that is made again in its session.
const AGAIN: &str = "Continue with story US-001";
/// The client gives up immediately, so that Verdone has to wait.
const IMPATIENT: &str = "[agent.claude.env]\nCLAUDE_CODE_MAX_RETRIES = \"0\"\n";
const LOW: &str = "context_limit = 60000\n";
/// More than that.
const FULL: Usage = Usage { input: 70_000, cache_read: 0, cache_creation: 0, output: 50 };
/// A few dollars with any model.
const DEAR: Usage = Usage { input: 10, cache_read: 0, cache_creation: 0, output: 1_000_000 };

fn world(settings: &str, plan: &str, script: Script) -> Option<World> {
    let config = format!("[agent]\nname = \"claude\"\n\n[agent.claude]\n{settings}");
    World::with(&[(".verdone/config.toml", &config), ("PLAN.md", plan)], script)
}

fn writes(file: &str) -> [Turn; 2] {
    [Turn::write(file, "one\n"), Turn::say("It is written.")]
}

fn both() -> Script {
    Script::new().on(FIRST, writes("a")).on(SECOND, writes("b"))
}

fn events<'a>(journal: &'a [Value], name: &str) -> Vec<&'a Value> {
    journal.iter().filter(|event| event["event"] == name).collect()
}

/// The sessions of all turns, in order.
fn sessions(journal: &[Value]) -> Vec<&Value> {
    events(journal, "turn_ended").into_iter().map(|event| &event["session"]).collect()
}

/// The prompts of all turns.
fn prompts(world: &World) -> Vec<String> {
    let asked = world.model.turns();
    asked.iter().filter(|request| request.tool_results().is_empty()).map(verdone_testkit::model_server::Request::prompt).collect()
}

#[test]
fn an_overload_that_outlasts_the_client_is_waited_out_and_spends_no_turn() {
    let script = Script::new().on(FIRST, [ApiError::status(529)]).on(AGAIN, writes("a"));
    let Some(world) = world(IMPATIENT, ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let turns = events(&journal, "turn_ended");
    let error = &turns[0]["outcome"]["api_error"];
    assert_eq!((&error["status"], &error["retryable"]), (&529.into(), &true.into()), "{}", turns[0]);
    assert_eq!(events(&journal, "wait_started")[0]["why"], "service_error");
    let places: Vec<&Value> = events(&journal, "turn_started").into_iter().map(|event| &event["place"]).collect();
    assert_eq!((places.len(), places[0]), (2, places[1]), "the same turn, made again");
    assert_eq!(events(&journal, "committed")[0]["place"], *places[0]);
    let asked = world.model.turns();
    let again = asked.iter().find(|request| request.prompt().contains(AGAIN)).unwrap();
    let sent = again.prompts().join("\n").matches(FIRST).count();
    assert_eq!(sent, 1, "the session has the prompt, so it is not sent again");
    assert!(
        output.stdout.contains("waiting until") && output.stdout.contains("Continuing after the wait"),
        "{}",
        output.transcript()
    );
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_service_that_stays_down_ends_the_run_after_the_configured_errors() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::status(529));
    let settings = format!("{IMPATIENT}\n[limits]\napi_errors = 1\n");
    let Some(world) = world(&settings, ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(1);
    let journal = world.journal();
    assert_eq!((events(&journal, "wait_started").len(), events(&journal, "turn_ended").len()), (1, 2));
    assert_eq!(events(&journal, "attempt_rejected")[0]["rejection"], "service_error");
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
    assert!(output.stdout.contains("529"), "{}", output.transcript());
}

#[test]
fn a_usage_limit_is_waited_for_until_its_reset_and_spends_no_attempt() {
    let script = Script::new().on(FIRST, [ApiError::usage_limit(3)]).on(AGAIN, writes("a"));
    let Some(mut world) = world("", ONE, script) else { return };
    Claude::subscribe(&mut world.sandbox);
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let wait = events(&journal, "wait_started")[0];
    assert_eq!(wait["why"], "usage_limit", "{wait}");
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let resets = time(&events(&journal, "turn_ended")[0]["outcome"]["usage_limit"]["resets_at"]);
    let again = events(&journal, "wait_ended")[0];
    assert!(time(&wait["until"]) > resets && time(&again["at"]) > resets, "{wait}\n{again}");
    let done = events(&journal, "committed")[0];
    assert_eq!((&done["place"]["attempt"], &done["place"]["turn"]), (&1.into(), &1.into()), "{done}");
    assert!(output.stdout.contains("Usage limit"), "{}", output.transcript());
}

#[test]
fn with_no_wait_a_usage_limit_ends_the_run_and_the_time_of_the_reset_is_told() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::usage_limit(3600));
    let Some(mut world) = world("", ONE, script) else { return };
    Claude::subscribe(&mut world.sandbox);
    let output = world.verdone(&["run", "--no-wait"]);
    output.assert_code(3);
    let journal = world.journal();
    assert_eq!(events(&journal, "run_stopped")[0]["finish"], "budget");
    assert_eq!(events(&journal, "wait_started"), [&Value::Null; 0]);
    let resets = events(&journal, "turn_ended")[0]["outcome"]["usage_limit"]["resets_at"].as_str().unwrap();
    assert!(output.stdout.contains(resets), "{resets}\n{}", output.transcript());
}

/// The first story's last answer warns that the usage limit is nearly reached.
fn nearly_used_up(resets_in: u64) -> Script {
    let limit = Limit { window: Window::FiveHour, status: LimitStatus::AllowedWarning, utilization: 0.97, resets_in };
    let first = [Turn::write("a", "one\n"), Turn::say("It is written.").limit(limit)];
    Script::new().on(FIRST, first).on(SECOND, writes("b"))
}

#[test]
fn near_the_usage_limit_the_next_turn_waits_for_the_reset_where_the_settings_say_so() {
    let Some(mut paused) = world("pause_at = 95\n", TWO, nearly_used_up(4)) else { return };
    Claude::subscribe(&mut paused.sandbox);
    let output = paused.verdone(&["run"]);
    output.assert_code(0);
    paused.assert_scripted();
    let journal = paused.journal();
    let told = &events(&journal, "turn_ended")[0]["allowance"];
    assert_eq!((&told["window"], &told["percent"]), (&"five_hour".into(), &97.into()), "{told}");
    let wait = events(&journal, "wait_started")[0];
    let (story, turn) = (&wait["place"]["story"], &wait["place"]["turn"]);
    assert_eq!((&wait["why"], &wait["ahead"], story, turn), (&"usage_limit".into(), &true.into(), &"US-002".into(), &1.into()));
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let (resets, again) = (time(&told["resets_at"]), time(&events(&journal, "turn_started")[1]["at"]));
    assert!(again > resets, "{again} {resets}");
    let committed = events(&journal, "committed");
    assert!(committed.len() == 2 && committed[1]["place"]["attempt"] == 1, "{committed:?}");
    assert!(output.stdout.contains("97% of the five-hour allowance is used"), "{}", output.transcript());
    drop(paused);

    let Some(mut stopped) = world("pause_at = 95\n", TWO, nearly_used_up(3600)) else { return };
    Claude::subscribe(&mut stopped.sandbox);
    let output = stopped.verdone(&["run", "--no-wait"]);
    output.assert_code(3);
    let journal = stopped.journal();
    assert_eq!((events(&journal, "turn_started").len(), events(&journal, "committed").len()), (1, 1), "{}", output.transcript());
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
    assert!(output.stdout.contains("it resets at"), "{}", output.transcript());
}

#[test]
fn stories_that_depend_on_each_other_are_done_in_one_session_that_the_user_can_fork() {
    let Some(world) = world("", TWO, both().on("What did you do", [Turn::say("I wrote a and b.")])) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let sessions = sessions(&journal);
    assert_eq!(sessions[0]["id"], sessions[1]["id"], "{sessions:?}");
    assert!(sessions[0]["fresh"].is_string() && sessions[1]["fresh"].is_null(), "{sessions:?}");
    assert!(!prompts(&world)[1].contains("# Hand-over"));
    assert_eq!(world.subjects().len(), 3);
    assert!(
        !output.transcript().contains("cannot start a watchdog"),
        "the check of the client swept it away\n{}",
        output.transcript()
    );
    assert!(output.stdout.contains("USD per verified story"), "{}", output.transcript());

    let shown = world.verdone(&["show", "US-002"]);
    shown.assert_code(0);
    let id = sessions[1]["id"].as_str().unwrap();
    let fork = format!("claude --resume {id} --fork-session");
    assert!(shown.stdout.contains(&fork) && shown.stdout.contains("same session"), "{}", shown.transcript());
    world.sandbox.run("claude", ["-p", "--resume", id, "--fork-session", "What did you do?"]).assert_code(0);
    world.assert_scripted();
    let forked = world.model.turns().pop().unwrap();
    assert!(forked.contains(FIRST) && forked.contains(SECOND), "the copy knows what was said");
    assert_ne!(forked.session(), Some(id));
}

#[test]
fn a_context_that_is_full_between_stories_gives_the_next_a_fresh_session_with_a_hand_over() {
    let first = [Turn::write("a", "one\n"), Turn::say("The file a is there.").usage(FULL)];
    let script = Script::new().on(FIRST, first).on(SECOND, writes("b"));
    let Some(world) = world(LOW, TWO, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let sessions = sessions(&journal);
    assert_ne!(sessions[0]["id"], sessions[1]["id"], "{sessions:?}");
    assert!(sessions[1]["fresh"].as_str().unwrap().contains("the limit is 60000"), "{sessions:?}");
    let prompt = &prompts(&world)[1];
    for told in
        ["# Hand-over", "the limit is 60000", "- US-001: Write a (verified)", "- US-002: Write b, now", "The file a is there."]
    {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    let fresh = world.model.turns();
    let fresh = fresh.iter().find(|request| request.prompt().contains(SECOND)).unwrap();
    assert!(!fresh.contains(FIRST), "nothing of the old conversation is sent again");
    assert!(output.stdout.contains("Fresh session: the context has"), "{}", output.transcript());
}

#[test]
fn a_context_that_is_full_within_a_story_hands_over_what_was_done_what_failed_and_what_is_left() {
    let first = [Turn::write("wrong", "one\n"), Turn::say("Done, it is in another file.").usage(FULL)];
    let script = Script::new().on(FIRST, first).on("# Hand-over", writes("a"));
    let rules = ("guardrails.md", "- Never touch the file c.\n");
    let config = format!("[agent]\nname = \"claude\"\n\n[agent.claude]\n{LOW}");
    let files = [(".verdone/config.toml", config.as_str()), (&format!(".verdone/{}", rules.0), rules.1), ("PLAN.md", ONE)];
    let Some(world) = World::with(&files, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let sessions = sessions(&journal);
    assert_ne!(sessions[0]["id"], sessions[1]["id"], "{sessions:?}");
    let prompt = &prompts(&world)[1];
    let told = [
        "`wrong`",
        "## Tried and failed\n\n- US-001: ",
        "US-001: Write a, now",
        "Done, it is in another file.",
        "Never touch the file c",
    ];
    for told in told {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    assert!(prompt.contains("did not pass. Your edits are still here"), "{prompt}");
    assert_eq!(events(&journal, "committed")[0]["place"]["turn"], 2);
}

#[test]
fn a_client_that_dies_in_a_turn_is_started_again_and_told_what_was_done() {
    let first = [Turn::write("wrong", "one\n"), Turn::bash("kill -9 $PPID")];
    let script = Script::new().on(FIRST, first).on("# Hand-over", writes("a"));
    let Some(world) = world("", ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    assert!(events(&journal, "turn_ended")[0]["outcome"]["crashed"].is_object(), "{}", output.transcript());
    assert_eq!(sessions(&journal)[1]["fresh"], "the last session is gone");
    let prompt = &prompts(&world)[1];
    for told in ["because the last session is gone", "`wrong`", "- US-001: the last turn crashed: signal 9"] {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_prompt_that_no_longer_fits_is_made_again_in_a_fresh_session() {
    let too_long = ApiError::status(400).message("prompt is too long: 1200000 tokens > 1000000 maximum");
    // The client compacts its conversation once on its own and asks again.
    let script = Script::new().on(FIRST, writes("a")).rule(When::default(), Times::N(2), too_long).on("# Hand-over", writes("b"));
    let Some(world) = world("", TWO, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    assert_eq!(sessions(&journal)[2]["fresh"], "the last session cannot be continued", "{}", output.transcript());
}

#[test]
fn a_mode_of_fresh_sessions_gives_every_story_its_own_and_a_single_one_ignores_the_context() {
    let Some(fresh) = world("sessions = \"fresh\"\n", TWO, both()) else { return };
    fresh.verdone(&["run"]).assert_code(0);
    fresh.assert_scripted();
    let journal = fresh.journal();
    let sessions_of = sessions(&journal);
    assert_ne!(sessions_of[0]["id"], sessions_of[1]["id"], "{sessions_of:?}");
    assert!(!prompts(&fresh)[1].contains("# Hand-over"), "nothing is handed over that nobody lost");
    drop(fresh);

    let first = [Turn::write("a", "one\n"), Turn::say("Done.").usage(FULL)];
    let script = Script::new().on(FIRST, first).on(SECOND, writes("b"));
    let Some(single) = world(&format!("sessions = \"single\"\n{LOW}"), TWO, script) else { return };
    single.verdone(&["run"]).assert_code(0);
    single.assert_scripted();
    let journal = single.journal();
    let sessions_of = sessions(&journal);
    assert_eq!(sessions_of[0]["id"], sessions_of[1]["id"], "{sessions_of:?}");
}

#[test]
fn work_of_a_turn_that_ran_out_of_model_calls_is_verified_all_the_same() {
    let script = Script::new().on(FIRST, [Turn::write("a", "one\n")]);
    let Some(world) = world("args = [\"--max-turns\", \"1\"]\n", ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    let journal = world.journal();
    assert!(events(&journal, "turn_ended")[0]["outcome"]["max_turns"].is_object(), "{}", output.transcript());
    assert_eq!(events(&journal, "committed")[0]["proof"], "verified");
}

#[test]
fn a_cost_cap_ends_the_run_with_what_was_done_kept_and_the_spend_shown() {
    // The client knows the remaining budget: it stops on its own after the answer that exceeded it.
    let first = [Turn::write("a", "one\n"), Turn::bash("true").usage(DEAR), Turn::say("Done.")];
    let script = Script::new().on(FIRST, first).on(SECOND, writes("b"));
    let Some(world) = world("", TWO, script) else { return };
    let output = world.verdone(&["run", "--max-cost", "0.5"]);
    output.assert_code(3);
    let journal = world.journal();
    let turns = events(&journal, "turn_ended");
    assert!(turns.len() == 1 && turns[0]["outcome"]["budget"].is_object(), "{turns:?}");
    assert_eq!((events(&journal, "committed").len(), &events(&journal, "run_stopped")[0]["finish"]), (1, &"budget".into()));
    assert!(turns[0]["usage"]["cost_usd"].as_f64().unwrap() > 0.5, "{}", turns[0]);
    assert!(output.stdout.contains("USD were spent, and the limit is 0.50"), "{}", output.transcript());
    let shown = world.verdone(&["show", "US-001"]);
    assert!(shown.stdout.contains(" USD"), "{}", shown.transcript());
    assert_eq!(prompts(&world).len(), 1, "no model was asked about the second story");
}

#[test]
fn a_cap_that_is_passed_by_the_last_answer_of_a_turn_allows_no_further_turn() {
    let script = Script::new().on(FIRST, [Turn::say("I did nothing, at length.").usage(DEAR)]);
    let Some(world) = world("", ONE, script) else { return };
    let output = world.verdone(&["run", "--max-cost", "0.5"]);
    output.assert_code(3);
    let journal = world.journal();
    assert_eq!((events(&journal, "turn_ended").len(), &events(&journal, "run_stopped")[0]["finish"]), (1, &"budget".into()));
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
}

#[test]
fn a_client_that_is_started_later_is_given_what_is_left_of_the_money() {
    let dear = Usage { output: 240_000, ..DEAR };
    let first = [Turn::write("a", "one\n"), Turn::say("Done, at length.").usage(dear)];
    let script = Script::new().on(FIRST, first).on(SECOND, writes("b"));
    let claude = "#!/bin/sh\nown=\"$HOME/.claude/projects/$(pwd | tr -c 'A-Za-z0-9\\n' -)\"\n\
                  mkdir -p \"$own\"\necho \"$@\" >> \"$own/started\"\nexec claude \"$@\"\n";
    let Some(world) = world("sessions = \"fresh\"\nbinary = \"noted-claude\"\n", TWO, script) else { return };
    world.sandbox.add_script("noted-claude", claude);
    let output = world.verdone(&["run", "--max-cost", "8"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let cost = events(&journal, "turn_ended")[0]["usage"]["cost_usd"].as_f64().unwrap();
    assert!((4.1..7.9).contains(&cost), "more than half has to be spent for this test: {cost}");
    // Files that a client keeps among its project's transcripts outlive the workspace.
    let project = world.sandbox.work().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let started = std::fs::read_to_string(world.sandbox.home().join(".claude/projects").join(project).join("started")).unwrap();
    let given = |line: &str| line.split("--max-budget-usd ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    let given: Vec<f64> = started.lines().filter(|line| line.contains("--max-budget-usd")).map(given).collect();
    assert!(given.len() == 2 && (given[0] - 8.0).abs() < 0.01 && (given[1] - (8.0 - cost)).abs() < 0.01, "{given:?} {cost}");
}

#[test]
fn a_key_that_is_refused_ends_the_run_as_a_fault_of_the_setup_with_the_way_to_log_in() {
    let refused = ApiError::status(401).message("invalid x-api-key");
    let script = Script::new().rule(When::default(), Times::Always, refused);
    let Some(world) = world(IMPATIENT, ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(2);
    assert!(output.stdout.contains("could not log in") && output.stdout.contains("/login"), "{}", output.transcript());
    let journal = world.journal();
    assert!(events(&journal, "turn_ended")[0]["outcome"]["auth"].is_object());
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
}

#[test]
fn a_refusal_of_the_model_is_a_failed_turn_and_the_next_one_may_succeed() {
    // The client asks once more on its own.
    let refusal = Turn::say("").stop(Stop::Refusal);
    let script = Script::new().rule(When::default(), Times::N(2), refusal).on("was refused by the model", writes("a"));
    let Some(world) = world("", ONE, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    assert!(events(&journal, "turn_ended")[0]["outcome"]["refused"].is_object(), "{}", output.transcript());
    let done = events(&journal, "committed")[0];
    assert_eq!((&done["place"]["attempt"], &done["place"]["turn"]), (&1.into(), &2.into()));
}

#[test]
fn a_client_that_is_missing_or_too_old_is_refused_with_what_to_do() {
    let sandbox = Sandbox::new();
    let old = sandbox.add_script("old-claude", "#!/bin/sh\necho '2.1.100 (Claude Code)'\n");
    sandbox.write("PLAN.md", ONE);
    sandbox.write(".verdone/config.toml", "");
    sandbox.repo();
    let cases = [
        ("no-such-claude".to_owned(), "no such program", "install Claude Code, or set agent.claude.binary"),
        (old.display().to_string(), "2.1.100 is too old: before 2.1.295", "claude update"),
    ];
    for (binary, what, hint) in cases {
        sandbox.write(".verdone/config.toml", format!("[agent]\nname = \"claude\"\n[agent.claude]\nbinary = \"{binary}\"\n"));
        for command in ["run", "doctor"] {
            let output = sandbox.verdone(verdone(), [command]);
            output.assert_code(2);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(said.contains(what) && said.contains(hint), "{}", output.transcript());
        }
    }
}

#[test]
fn a_client_newer_than_the_tested_one_gets_a_note_in_doctor_and_at_the_start_of_a_run() {
    let mut sandbox = Sandbox::new();
    sandbox.set("ANTHROPIC_API_KEY", "opens-nothing");
    sandbox.add_script("claude", "#!/bin/sh\n[ \"$1\" = --version ] && echo '99.0.1 (Claude Code)' && exit\nexit 1\n");
    sandbox.write("PLAN.md", ONE);
    sandbox.write(".verdone/config.toml", "[agent]\nname = \"claude\"\n[limits]\nattempts = 1\n");
    sandbox.repo();
    for command in ["doctor", "run"] {
        let output = sandbox.verdone(verdone(), [command]);
        let said = format!("{}{}", output.stdout, output.stderr);
        let note = "Claude Code 99.0.1 is newer than 2.1.325, the newest one that this Verdone was tested with";
        assert_eq!(said.matches(note).count(), 1, "{}", output.transcript());
    }
}

#[test]
fn a_conversation_that_the_client_shortens_by_itself_is_noticed_and_told() {
    // Near the end of the context window, which only a single long session reaches.
    let brim = Usage { input: 980_000, ..FULL };
    let first = [Turn::write("a", "one\n"), Turn::say("Done.").usage(brim)];
    let script = Script::new()
        .on(FIRST, first)
        .rule(When { after_tool: Some(false), ..When::default() }, Times::Once, Turn::write("b", "two\n"))
        .rule(When::after_tool(), Times::Once, Turn::say("Both are there."));
    let Some(world) = world("sessions = \"single\"\n", TWO, script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    let sessions = sessions(&journal);
    assert_eq!((&sessions[1]["id"], &sessions[1]["compactions"]), (&sessions[0]["id"], &1.into()), "{sessions:?}");
    assert!(output.stdout.contains("context was compacted once"), "{}", output.transcript());
}

#[test]
fn a_wait_is_seen_from_another_terminal_and_ends_when_the_story_is_skipped_or_the_run_is_stopped() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::usage_limit(3600));
    let Some(mut world) = world("", ONE, script) else { return };
    Claude::subscribe(&mut world.sandbox);
    let run = world.start(&["run"]);
    run.wait_for("waiting until", PATIENCE);
    let status = world.verdone(&["status"]);
    assert!(status.stdout.contains("to wait: usage limit"), "{}", status.transcript());
    world.verdone(&["skip", "US-001"]).assert_code(0);
    let output = run.wait(PATIENCE);
    output.assert_code(4);
    assert!(output.stdout.contains("skipped by the user"), "{}", output.transcript());

    let run = world.start(&["run"]);
    run.wait_for("waiting until", PATIENCE);
    run.signal(Signal::TERM);
    run.wait(PATIENCE).assert_code(143);
    assert_eq!(events(&world.journal(), "wait_ended").len(), 1);
    world.sandbox.assert_no_survivors(PATIENCE);
}
