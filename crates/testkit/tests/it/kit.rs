//! Tests of the test kit.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use verdone_testkit::{PATIENCE, PlanShape, Sandbox, Signal, Tmux, assert_block, assert_file, processes_with_env};

fn sh(sandbox: &Sandbox, script: &str) -> verdone_testkit::Output {
    sandbox.run("sh", ["-c", script])
}

#[test]
fn nothing_of_the_developers_environment_leaks_in() {
    let sandbox = Sandbox::new();
    let output = sandbox.run("env", std::iter::empty::<&str>());
    let names: BTreeSet<_> = output.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    let allowed = BTreeSet::from([
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LC_ALL",
        "LLVM_PROFILE_FILE",
        "PATH",
        "TERM",
        "TESTKIT_SANDBOX",
        "TMPDIR",
        "TZ",
        "XDG_CONFIG_HOME",
    ]);
    let unexpected: Vec<_> = names.difference(&allowed).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    assert_eq!(sh(&sandbox, "command -v cargo node python3").stdout, "");
}

#[test]
fn a_repository_starts_with_one_commit_of_a_fixed_author() {
    let sandbox = Sandbox::new();
    sandbox.write("src/deep/file.txt", "text\n");
    sandbox.repo();
    assert_eq!(sandbox.git(["log", "--format=%an <%ae> %s"]), "Ada Tester <ada@example.com> initial");
    assert_eq!(sandbox.git(["ls-files"]), "README.md\nsrc/deep/file.txt");
    assert_eq!(sandbox.git(["branch", "--show-current"]), "main");
    assert_eq!(sandbox.git(["status", "--porcelain"]), "");
    assert_eq!(sandbox.read("src/deep/file.txt"), "text\n");
}

#[test]
fn git_works_with_nothing_else_on_the_path() {
    let sandbox = Sandbox::only_git();
    sandbox.repo();
    assert_eq!(std::fs::read_dir(sandbox.root().join("bin")).unwrap().count(), 1);
}

#[test]
fn scripts_can_be_added_to_the_work_tree_and_to_the_path() {
    let sandbox = Sandbox::new();
    sandbox.write_script("tools/agent.sh", "#!/bin/sh\necho \"agent $1\"\n");
    sandbox.add_script("checker", "#!/bin/sh\nexit 9\n");
    assert_eq!(sh(&sandbox, "./tools/agent.sh works; checker").assert_code(9).stdout, "agent works\n");
    assert_eq!(sh(&sandbox, "ls tools").stdout, "agent.sh\n");
}

#[test]
fn output_exit_code_and_signal_are_told_apart() {
    let sandbox = Sandbox::new();
    let output = sh(&sandbox, "echo out; echo err >&2; exit 130");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.code), ("out\n", "err\n", 130));
    assert_eq!(sh(&sandbox, "kill -INT $$").code, -2);
}

#[test]
fn a_process_past_its_deadline_is_killed_with_its_group_and_fails_the_test() {
    let sandbox = Sandbox::new().deadline(Duration::from_secs(2));
    let outcome = catch_unwind(AssertUnwindSafe(|| sh(&sandbox, "echo before; sleep 300 & wait")));
    let message = outcome.expect_err("the deadline must fail the test");
    let message = message.downcast_ref::<String>().expect("the panic carries a message");
    assert!(message.contains("before"), "{message}");
    sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_running_process_can_be_watched_and_signalled() {
    let sandbox = Sandbox::new();
    let shell = sandbox.root().join("bin/sh");
    let running = sandbox.spawn(shell, ["-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done"]);
    running.wait_for("ready", PATIENCE);
    assert!(!running.has_ended());
    running.signal(Signal::TERM);
    let output = running.wait(PATIENCE);
    assert_eq!((output.stdout.as_str(), output.code), ("ready\ncaught\n", 7));
}

#[test]
fn waiting_for_text_that_never_comes_fails_at_the_end_of_the_process() {
    let sandbox = Sandbox::new();
    let running = sandbox.spawn(sandbox.root().join("bin/echo"), ["something else"]);
    assert!(catch_unwind(AssertUnwindSafe(|| running.wait_for("ready", PATIENCE))).is_err());
}

#[test]
fn a_process_that_escaped_by_setsid_is_found_by_its_environment() {
    let sandbox = Sandbox::new();
    sh(&sandbox, "setsid sleep 300 >/dev/null 2>&1 & echo started").assert_code(0);
    let until = Instant::now() + PATIENCE;
    loop {
        let survivors = processes_with_env(sandbox.marker());
        if matches!(&survivors[..], [one] if one.command == "sleep 300") {
            break;
        }
        assert!(Instant::now() < until, "{survivors:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| sandbox.assert_no_survivors(Duration::ZERO))).is_err());

    let marker = sandbox.marker().to_owned();
    drop(sandbox);
    // The sandbox kills what is left; the kernel may need a moment.
    let until = Instant::now() + PATIENCE;
    while !processes_with_env(&marker).is_empty() {
        assert!(Instant::now() < until, "a sandbox leaves no process behind");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn transcripts_read_like_a_terminal_session() {
    let sandbox = Sandbox::new();
    sandbox.repo();
    let first = sandbox.run("git", ["rev-parse", "--show-toplevel", "HEAD"]);
    let second = sh(&sandbox, "printf 'no line break'; echo \"it's wrong\" >&2; exit 3");
    let transcript = sandbox.transcript(&[&first, &second]);
    assert_eq!(
        transcript,
        "$ git rev-parse --show-toplevel HEAD\n[WORK]\n[SHA]\n--- exit 0\n\n\
         $ sh -c 'printf '\\''no line break'\\''; echo \"it'\\''s wrong\" >&2; exit 3'\n\
         no line break\u{21b5}\n--- stderr\nit's wrong\n--- exit 3\n"
    );
}

#[test]
fn expected_text_in_files_and_blocks_is_compared() {
    if std::env::var_os("VERDONE_BLESS").is_some() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("file.txt", "same\n");
    assert_file(sandbox.path("file.txt"), "same\n");
    assert!(catch_unwind(|| assert_file(sandbox.path("file.txt"), "other\n")).is_err());
    assert!(catch_unwind(|| assert_file(sandbox.path("missing.txt"), "same\n")).is_err());

    sandbox.write("page.md", "before\n<!-- part:begin -->\nsame\n<!-- part:end -->\nafter\n");
    assert_block(sandbox.path("page.md"), "part", "same\n");
    assert!(catch_unwind(|| assert_block(sandbox.path("page.md"), "part", "other\n")).is_err());
    assert!(catch_unwind(|| assert_block(sandbox.path("page.md"), "absent", "same\n")).is_err());
}

#[test]
fn a_terminal_has_the_asked_size_and_shows_what_is_typed() {
    let sandbox = Sandbox::new();
    let script = "stty size; read -r line; echo \"got $line\"; exit 5";
    let terminal = Tmux::start(&sandbox, 80, 24, ["sh", "-c", script]);
    terminal.wait_for("24 80", PATIENCE);
    terminal.send_keys(&["hello there", "Enter"]);
    let screen = terminal.wait_for("got hello there", PATIENCE);
    assert!(screen.lines().count() <= 24, "{screen}");
    assert_eq!(terminal.wait_for_exit(PATIENCE), 5);
    sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn keys_of_a_terminal_signal_the_program() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo caught; exit 130' INT; echo ready; while :; do sleep 0.05; done";
    let terminal = Tmux::start(&sandbox, 200, 50, ["sh", "-c", script]);
    terminal.wait_for("ready", PATIENCE);
    assert_eq!((terminal.exit_code(), sandbox.survivors().is_empty()), (None, false));
    terminal.send_keys(&["C-c"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 130);
    terminal.wait_for("caught", PATIENCE);
}

#[test]
fn plans_have_the_asked_number_of_stories_in_every_shape() {
    for shape in PlanShape::ALL {
        let (open, done) = match shape {
            PlanShape::PrdJson | PlanShape::FeatureArray | PlanShape::FeatureObject => ("\"passes\": false", "\"passes\": true"),
            PlanShape::StoryHeadings
            | PlanShape::StoryLines
            | PlanShape::BoxedHeadings
            | PlanShape::Priorities
            | PlanShape::Checklist => ("[ ]", "[x]"),
        };
        let text = shape.build_with_done(5, |n| n <= 2);
        assert_eq!((text.matches(open).count(), text.matches(done).count()), (3, 2), "{shape:?}\n{text}");
        assert!(!shape.file_name().is_empty() && shape.build(0).ends_with('\n'), "{shape:?}");
    }
}
