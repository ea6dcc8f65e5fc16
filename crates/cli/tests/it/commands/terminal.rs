//! What a person sees in a real terminal of 80 and of 200 columns.

use std::fs;
use std::time::Duration;

use verdone_testkit::{PATIENCE, Sandbox, Tmux};

use crate::commands::stage::{BINARY, project, repository, slow_config, slow_project, verdone};

fn live_line(screen: &str) -> &str {
    screen.lines().rev().find(|line| !line.is_empty()).unwrap_or_default()
}

/// Whether the visible screen has colour, as SGR codes.
fn has_colour(terminal: &Tmux<'_>) -> bool {
    terminal.capture_coloured().contains("\u{1b}[3")
}

#[test]
fn the_live_line_says_where_the_run_is() {
    for (width, parts) in [
        (80, &["░", "story 1 of 1", "US-001", "attempt 1, turn 1", "00:0", "│ Waiting for the"][..]),
        (200, &["░", "story 1 of 1", "US-001", "Wait for the word", "attempt 1, turn 1", "run 00:0", "│ Waiting for the word."]),
        (40, &["1/1", "US-001", "00:0"]),
    ] {
        let (sandbox, word) = slow_project();
        let terminal = Tmux::start(&sandbox, width, 24, [BINARY, "run"]);
        terminal.wait_for("│ Waiting for the word.", PATIENCE);
        let screen = terminal.capture();
        let line = live_line(&screen);
        for part in parts {
            assert!(line.contains(part), "no {part:?} in {line:?} at {width} columns\n{screen}");
        }
        assert!(line.chars().count() < usize::from(width), "{line:?}");
        let above: Vec<&str> = screen.lines().filter(|line| line.starts_with("  │")).collect();
        assert_eq!(above, ["  │ Reading the plan.", "  │ Waiting for the word."], "{screen}");
        assert!(has_colour(&terminal), "{}", terminal.capture_coloured());

        fs::write(word, "").unwrap();
        assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
        let whole = terminal.capture_all();
        let words: Vec<&str> = whole.split_whitespace().collect();
        assert!(words.join(" ").contains("1 verified; 1 of 1 story done in the plan"), "{whole}");
        assert!(!whole.contains('░'), "the live line is gone at the end\n{whole}");
        assert_eq!(whole, terminal.capture_unwrapped(), "nothing wraps at {width} columns");
    }
}

#[test]
fn a_whole_run_fits_eighty_columns_and_asks_once_whether_to_land() {
    let sandbox = project();
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "run"]);
    terminal.wait_for("Land 3 commits on work? [y/N]", PATIENCE);
    assert!(!sandbox.path("greeting.txt").exists(), "nothing is landed before the answer");
    terminal.send_keys(&["y", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 4, "the answer does not change how the run ended");
    assert_eq!(sandbox.read("greeting.txt"), "hello\n");
    let whole = terminal.capture_all();
    assert_eq!(whole, terminal.capture_unwrapped());
    for part in [
        "● Story 4 of 4 · US-004 Square the circle",
        "↶ Kept the attempt: git show",
        "✓ US-002  Count to three",
        "Caught 4 false claims",
        "Landed 3 commits on work",
    ] {
        assert!(whole.contains(part), "no {part:?} in\n{whole}");
    }
    assert!(!whole.contains('░'), "no live line is left over\n{whole}");
}

#[test]
fn the_landing_question_can_be_interrupted() {
    for keys in ["C-c", "C-d"] {
        let sandbox = project();
        let terminal = Tmux::start(&sandbox, 40, 24, [BINARY, "run"]);
        terminal.wait_for("[y/N]", PATIENCE);
        terminal.send_keys(&[keys]);
        assert_eq!(terminal.wait_for_exit(PATIENCE), 4, "{keys}: {}", terminal.capture_all());
        assert!(!sandbox.path("greeting.txt").exists(), "nothing is landed");
    }
}

#[test]
fn the_live_line_follows_a_resize() {
    let (sandbox, word) = slow_project();
    let terminal = Tmux::start(&sandbox, 200, 24, [BINARY, "run"]);
    terminal.wait_for("│ Waiting for the word.", PATIENCE);
    terminal.wait_for("run 00:0", PATIENCE);
    terminal.resize(60, 24);
    // The line is redrawn within a second.
    let narrow = |screen: &str| live_line(screen).contains("1/1") || !live_line(screen).contains("run 00:");
    let until = std::time::Instant::now() + PATIENCE;
    while !narrow(&terminal.capture()) {
        assert!(std::time::Instant::now() < until, "{}", terminal.capture());
        std::thread::sleep(Duration::from_millis(30));
    }
    let screen = terminal.capture();
    assert_eq!(screen.lines().filter(|line| line.contains('░')).count(), 1, "one live line, not two\n{screen}");
    terminal.resize(120, 24);
    fs::write(word, "").unwrap();
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
    assert!(!terminal.capture_all().contains('░'), "{}", terminal.capture_all());
}

#[test]
fn the_first_interrupt_ends_the_run_in_order_and_leaves_the_terminal_usable() {
    let (sandbox, _) = slow_project();
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "run"]);
    terminal.wait_for("│ Waiting for the word.", PATIENCE);
    terminal.send_keys(&["C-c"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 130);
    let screen = terminal.capture_all();
    for part in ["SIGINT: cleaning up, then stopping", "Finished: manual (exit code 130)", "Next: verdone run"] {
        assert!(screen.contains(part), "no {part:?} in\n{screen}");
    }
    assert!(!screen.contains('░'), "{screen}");
    assert!(!sandbox.path("greeting.txt").exists());
    sandbox.assert_no_survivors(PATIENCE);

    terminal.send_keys(&["what now", "Enter"]);
    terminal.wait_for("what now", PATIENCE);
    let coloured = terminal.capture_coloured();
    let typed = coloured.lines().find(|line| line.contains("what now")).unwrap();
    let resets = ["\u{1b}[0m", "\u{1b}[39m", "\u{1b}[49m"];
    let bare = resets.iter().fold(typed.to_owned(), |text, reset| text.replace(reset, ""));
    assert_eq!(bare, "what now", "a colour was left behind: {typed:?}");
}

#[test]
fn the_second_interrupt_kills_what_does_not_listen() {
    let (sandbox, _) = slow_project();
    let agent = "#!/bin/sh\ntrap '' TERM INT\necho 'I do not listen.'\nwhile :; do sleep 0.05; done\n";
    sandbox.add_script("deaf-agent", agent);
    sandbox.write(".verdone/config.toml", slow_config(&sandbox, "deaf-agent", "grace = \"10m\""));
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "run"]);
    terminal.wait_for("│ I do not listen.", PATIENCE);
    terminal.send_keys(&["C-c"]);
    terminal.wait_for("stopping; waiting for processes to end (Ctrl-C again kills at once)", PATIENCE);
    assert_eq!(terminal.exit_code(), None);
    terminal.send_keys(&["C-c"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 130);
    assert!(terminal.capture_all().contains("Finished: manual (exit code 130)"), "{}", terminal.capture_all());
    sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn no_color_is_obeyed_on_a_terminal() {
    let (mut sandbox, word) = slow_project();
    sandbox.set("NO_COLOR", "1");
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "run"]);
    terminal.wait_for("│ Waiting for the word.", PATIENCE);
    assert!(!has_colour(&terminal), "{:?}", terminal.capture_coloured());
    assert!(live_line(&terminal.capture()).contains("story 1 of 1"), "the live line does not need colour");
    fs::write(word, "").unwrap();
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
    assert!(!terminal.capture_coloured().contains("\u{1b}["), "{:?}", terminal.capture_coloured());
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_plain_lines() {
    let (sandbox, word) = slow_project();
    let terminal = Tmux::start(&sandbox, 80, 24, ["env", "TERM=dumb", BINARY, "run"]);
    terminal.wait_for("│ Waiting for the word.", PATIENCE);
    assert!(!terminal.capture().contains('░') && !has_colour(&terminal), "{}", terminal.capture());
    fs::write(word, "").unwrap();
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
}

#[test]
fn questions_are_asked_on_a_terminal_and_answered_there() {
    let sandbox = repository();
    sandbox.write("Makefile", "test:\n\ttrue\n");
    sandbox.add_script("make", "#!/bin/sh\n");
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "init"]);
    terminal.wait_for("Add them? [Y/n]", PATIENCE);
    terminal.send_keys(&["n", "Enter"]);
    terminal.wait_for("Write a starter plan to PLAN.md? [Y/n]", PATIENCE);
    assert!(!sandbox.path(".verdone/config.toml").exists(), "nothing is written before the last answer");
    terminal.send_keys(&["n", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
    assert!(terminal.capture_all().contains("No gate was added"), "{}", terminal.capture_all());
    drop(terminal);

    let plan = "- [ ] US-001: One\n  - Verification: `test -e one.txt`\n";
    sandbox.write("answer.txt", plan);
    sandbox.git(["add", "answer.txt"]);
    sandbox.git(["commit", "--quiet", "--message", "an answer"]);
    verdone(&sandbox, &["plan", "new", "One", "--agent-command", "cat answer.txt"]).assert_code(0);
    for (answer, code, said) in [("n", 4, "[y/N] n"), ("y", 0, "Approved in its current form.")] {
        let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "plan", "approve"]);
        terminal.wait_for("Run these commands unattended? [y/N]", PATIENCE);
        terminal.send_keys(&[answer, "Enter"]);
        assert_eq!(terminal.wait_for_exit(PATIENCE), code, "{answer}");
        assert!(terminal.capture_all().contains(said), "{}", terminal.capture_all());
    }
}

#[test]
fn hostile_output_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("PLAN.md", "- [ ] US-001: \u{1b}[2Jcleared \u{202e}turned\n");
    sandbox.write_script("agent.sh", "#!/bin/sh\nprintf 'first\\n\\033[2J\\033[Hsecond\\n\\033[31mthird\\n'\necho x > x.txt\n");
    sandbox.repo();
    sandbox.git(["switch", "--quiet", "--create", "work"]);
    let run = [BINARY, "run", "--agent-command", "./agent.sh", "--check", "true", "--no-color"];
    let terminal = Tmux::start(&sandbox, 80, 40, run);
    terminal.wait_for("Land 1 commit on work? [y/N]", PATIENCE);
    terminal.send_keys(&["n", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
    let screen = terminal.capture();
    for line in ["  │ first", "  │ second", "  │ third"] {
        assert!(screen.lines().any(|shown| shown == line), "no {line:?} in\n{screen}");
    }
    assert!(!terminal.capture_coloured().contains("\u{1b}[31m"));
    assert!(!sandbox.path("x.txt").exists(), "no means no");
}
