//! Invalid input is reported with its position, a hint and exit code 2, and nothing is changed.

use std::fs;

use verdone_testkit::Sandbox;

use crate::commands::stage::{project, repository, transcript, verdone};

#[test]
fn before_the_first_run_there_is_nothing_to_look_at() {
    let sandbox = project();
    let commands: [&[&str]; 5] = [&["status"], &["log"], &["show", "US-001"], &["report"], &["undo"]];
    for output in transcript("no-run-yet", &sandbox, &commands) {
        output.assert_code(2);
    }
}

#[test]
fn outside_of_a_repository_every_command_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("PLAN.md", "- [ ] US-001: One\n");
    let commands: [&[&str]; 6] = [&["run"], &["status"], &["plan", "show"], &["undo"], &["init"], &["doctor"]];
    for output in transcript("not-a-repository", &sandbox, &commands) {
        output.assert_code(2);
    }
    assert!(!sandbox.path(".verdone").exists());
}

#[test]
fn a_broken_config_is_shown_at_its_place() {
    let sandbox = repository();
    let mut outputs = Vec::new();
    for config in [
        "[limits]\nturn = 3\n",
        "[limits]\nturns = \"three\"\n",
        "[limits]\nturn_time = \"30 parsecs\"\n",
        "[agent]\nname = \"clod\"\n",
        "[[gate]]\nname = \"test\"\n",
        "plan = \n",
    ] {
        sandbox.write(".verdone/config.toml", config);
        outputs.push(verdone(&sandbox, &["run"]));
        outputs.last().unwrap().assert_code(2);
    }
    crate::commands::stage::compare("config-broken", &sandbox, &outputs);
}

#[test]
fn a_broken_plan_is_shown_at_its_place_and_left_alone() {
    let sandbox = repository();
    let mut outputs = Vec::new();
    for (name, text) in [
        ("unknown.md", "- [ ] US-001: One\n  - Depends on: US-009\n"),
        ("cycle.md", "- [ ] US-001: One\n  - Depends on: US-002\n- [ ] US-002: Two\n  - Depends on: US-001\n"),
        ("twice.md", "- [ ] US-001: One\n- [ ] US-001: Two\n"),
        ("empty.md", "# Nothing to do\n"),
        ("cut.json", "{\"userStories\": [\n  {\"id\": \"US-001\", \"title\": \"One\", \"passes\": fal"),
        ("types.json", "{\"userStories\": [\n  {\"id\": \"US-001\", \"title\": 7, \"passes\": \"no\"}\n]}\n"),
    ] {
        sandbox.write(name, text);
        outputs.push(verdone(&sandbox, &["plan", "lint", name]));
        outputs.last().unwrap().assert_code(2);
        assert_eq!(sandbox.read(name), text);
    }
    outputs.push(verdone(&sandbox, &["plan", "lint", "cut.json", "--json"]));
    crate::commands::stage::compare("plan-broken", &sandbox, &outputs);
}

#[test]
fn a_plan_that_is_not_there_or_not_plain_is_asked_for() {
    let sandbox = repository();
    sandbox.write("folder/notes.txt", "");
    let commands: [&[&str]; 4] = [&["run"], &["run", "missing.md"], &["run", "folder"], &["run", "--prd", "7"]];
    for output in transcript("plan-missing", &sandbox, &commands) {
        output.assert_code(2);
    }
    sandbox.write(".ralph/PRD-1/plan.md", "- [ ] US-001: One\n- [ ] US-002: Two\n");
    sandbox.write(".ralph/PRD-2/plan.md", "- [ ] US-001: One\n");
    transcript("plan-several", &sandbox, &[&["run"], &["plan", "show", ".ralph/PRD-2"]])[0].assert_code(2);
}

#[test]
fn a_run_that_could_prove_nothing_is_refused() {
    let sandbox = repository();
    sandbox.write("PLAN.md", "- [ ] US-001: One\n");
    let commands: [&[&str]; 5] = [
        &["run", "PLAN.md"],
        &["run", "PLAN.md", "--agent-command", "no-such-agent"],
        &["run", "PLAN.md", "--agent", "clod"],
        &["run", "PLAN.md", "--agent-command", "true"],
        &["run", "PLAN.md", "--agent-command", "true", "--check", "no-such-check --all"],
    ];
    for output in transcript("run-refused", &sandbox, &commands) {
        output.assert_code(2);
    }
    assert!(!sandbox.path(".verdone/runs").exists());
}

#[test]
fn what_was_removed_gives_one_error_that_names_the_replacement() {
    let sandbox = project();
    let commands: [&[&str]; 5] = [
        &["run", "--worktree"],
        &["run", "--allow-dirty"],
        &["run", "--worktree", "--allow-dirty", "--dry-run"],
        &["checkpoints"],
        &["checkpoints", "--json"],
    ];
    let outputs = transcript("removed", &sandbox, &commands);
    for output in &outputs {
        output.assert_code(2);
        assert_eq!((output.stdout.as_str(), output.stderr.matches("error: ").count()), ("", 1), "{}", output.transcript());
    }
    for (output, replacement) in
        outputs.iter().zip(["verdone land", "leave it out", "verdone land", "verdone show STORY", "verdone show STORY"])
    {
        assert!(output.stderr.contains(replacement), "{}", output.transcript());
    }
    let help = verdone(&sandbox, &["run", "--help"]).stdout + &verdone(&sandbox, &["--help"]).stdout;
    for removed in ["worktree", "allow-dirty", "checkpoint"] {
        assert!(!help.contains(removed), "{removed} is in the help");
    }
    assert!(!sandbox.path(".verdone/runs").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let sandbox = project();
    sandbox.write(".verdone/runs", "a file where a folder should be\n");
    transcript("run-cannot-write", &sandbox, &[&["run"]])[0].assert_code(1);
}

#[test]
fn a_damaged_journal_is_told_about_and_never_guessed_at() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--story", "US-001", "--quiet"]).assert_code(0);
    let run = fs::read_dir(sandbox.path(".verdone/runs")).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let journal = run.path().join("journal.jsonl");
    let whole = fs::read_to_string(&journal).unwrap();

    fs::write(&journal, &whole[..whole.len() - 20]).unwrap();
    transcript("journal-torn", &sandbox, &[&["status"]])[0].assert_code(0);

    let damaged: Vec<&str> = whole.lines().enumerate().map(|(n, line)| if n == 5 { "garbage" } else { line }).collect();
    fs::write(&journal, damaged.join("\n") + "\n").unwrap();
    let commands: [&[&str]; 4] = [&["status"], &["log"], &["undo"], &["run"]];
    for output in transcript("journal-broken", &sandbox, &commands[..3]) {
        output.assert_code(1);
    }

    fs::write(&journal, whole.replace("{\"v\":1,", "{\"v\":2,")).unwrap();
    for output in transcript("journal-newer", &sandbox, &commands) {
        output.assert_code(1);
    }
    assert!(fs::read_to_string(&journal).unwrap().starts_with("{\"v\":2,"), "a newer file is not written to");
}
