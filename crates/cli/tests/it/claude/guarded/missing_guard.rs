//! Clients that run without our hooks, and hooks that fail.

use super::*;

/// A wrapper on the PATH that adds an option without our knowledge.
const BARE: &str = "exec \"$REAL\" --bare \"$@\"\n";

#[test]
fn a_client_that_runs_no_hooks_is_ended_before_it_does_anything() {
    without_a_guard(AGENT, BARE, never_answered(), UNSEEN);
}

#[test]
fn a_client_that_starts_no_hook_processes_is_ended_before_it_does_anything() {
    without_a_guard(EXEC, BARE, never_answered(), UNSEEN);
}

#[test]
fn a_client_that_never_gets_our_settings_is_ended_before_it_does_anything() {
    let strip = each_argument("--settings) shift; n=$((n - 1)) ;;");
    without_a_guard(EXEC, &strip, never_answered(), UNSEEN);
}

#[test]
fn a_call_that_ran_without_being_judged_stops_the_run_and_its_work_is_kept_aside() {
    // The first hook sees the session start; then the hooks are lost.
    let lose = each_argument(
        "*'\"PreToolUse\":'*) set -- \"$@\" \"$(printf %s \"$1\" | sed 's/\"PreToolUse\":/\"X\":/; s/\"PermissionRequest\":/\"Y\":/')\" ;;",
    );
    let call = Turn::bash("touch a").and_call("Write", json!({ "file_path": "b", "content": "x" }));
    let script = steps([call, Turn::say("Done.")]);
    let Some(world) = without_a_guard(EXEC, &lose, script, "ran without a policy check") else { return };
    assert_eq!(events_named(&world.journal(), "attempt_kept")[0]["files"], 2, "both calls ran, and nothing is left of them");
}

#[test]
fn a_hook_that_takes_its_time_at_the_start_of_a_session_is_waited_for() {
    let script = steps([Turn::write("a", "one\n"), Turn::say("Done.")]);
    let Some(mut world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script) else { return };
    let waited = world.shared("waited");
    hooks_go_through(&mut world, &format!("[ $2 = SessionStart ] && sleep 1 && : > {}\n", waited.display()));
    done(&world);
    assert!(waited.exists());
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
}

#[test]
fn calls_are_denied_when_the_hooks_program_is_missing_or_crashes_whatever_the_user_allows() {
    for (trouble, told) in [("exec /nowhere/verdone", "/nowhere/verdone"), ("kill -9 $$", "it exited without an answer")] {
        let call = Turn::bash("touch a").and_call("Write", json!({ "file_path": "a", "content": "x" }));
        let script = steps([call, Turn::say("Done.")]);
        let config = format!("{EXEC}[limits]\nattempts = 1\nturns = 1\n");
        let Some(mut world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", ONE)], script) else { return };
        allow_everything(&world);
        hooks_go_through(&mut world, &format!("[ $2 = PreToolUse ] && {trouble}\n"));
        not_done(&world, 4);
        let denied = results(&world, 1);
        assert!(denied.len() == 2 && denied.iter().all(|result| result.is_error), "{trouble}: {denied:?}");
        let journal = world.journal();
        assert_eq!(events_named(&journal, "verified")[0]["changed"], 0);
        assert!(!world.has("a"));
        let failed = events_named(&journal, "guard_failed");
        assert!(failed.len() == 1 && failed[0]["failures"] == 2 && failed[0]["denied"] == 2, "{trouble}: {failed:?}");
        let cause = failed[0]["cause"].as_str().unwrap();
        assert!(cause.starts_with("the hook's process failed: ") && cause.contains(told), "{cause}");
    }
}

/// Printed by a run if our hook did not see the start of a session.
const UNSEEN: &str = "Verdone's hook was not called when the session started";

/// The model never answers, so only the run itself can end it.
fn never_answered() -> Script {
    Script::new().rule(When::default(), Times::Always, Turn::bash("touch a").stall(Stall::UntilReleased))
}

/// A run whose client is started by a wrapper. The user's own rules would allow every call.
#[track_caller]
fn without_a_guard(config: &str, wrapper: &str, script: Script, said: &str) -> Option<World> {
    let mut world = World::with(&[(".verdone/config.toml", config), ("PLAN.md", ONE)], script)?;
    allow_everything(&world);
    wrap(&mut world, wrapper);
    let output = not_done(&world, 1);
    assert!(output.stdout.contains("ran without a guard"), "{}", output.transcript());
    let turn = events_named(&world.journal(), "turn_ended")[0].to_string();
    assert!(turn.contains("guard_dead") && turn.contains(said), "{turn}");
    assert!(!world.has("a") && !world.has("b"));
    Some(world)
}

fn allow_everything(world: &World) {
    user_settings(world, "{\"permissions\":{\"allow\":[\"Bash\",\"Write\"]}}");
}

/// Replaces the client with a shell script, in which `$REAL` is the client.
fn wrap(world: &mut World, script: &str) {
    let client = world.sandbox.root().join("bin/claude");
    world.sandbox.set("REAL", fs::canonicalize(&client).unwrap());
    fs::remove_file(&client).unwrap();
    world.sandbox.add_script("claude", &format!("#!/bin/sh\n{script}"));
}

/// Runs a shell script before every hook that the client starts as a process.
fn hooks_go_through(world: &mut World, script: &str) {
    let replace = "sed 's:\"command\"\\:\"[^\"]*\":\"command\"\\:\"before\":g'";
    let case = format!("*'\"SessionStart\":'*) set -- \"$@\" \"$(printf %s \"$1\" | {replace})\" ;;");
    wrap(world, &each_argument(&case));
    world.sandbox.add_script("before", &format!("#!/bin/sh\n{script}exec {} \"$@\"\n", verdone()));
}

/// A wrapper that handles one argument and passes the others through.
fn each_argument(case: &str) -> String {
    format!(
        "n=$#\nwhile [ $n -gt 0 ]; do\n  case $1 in\n    {case}\n    *) set -- \"$@\" \"$1\" ;;\n  esac\n  shift\n  n=$((n - 1))\ndone\n\
         exec \"$REAL\" \"$@\"\n"
    )
}
