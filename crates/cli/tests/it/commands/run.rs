//! `verdone run`: what it prints when it runs and when it refuses.

use crate::commands::stage::{project, project_with, repository, run_branch, run_subjects, transcript, verdone};

#[test]
fn a_run_shows_a_pass_a_repair_a_lie_and_a_kept_attempt() {
    let sandbox = project();
    transcript("run", &sandbox, &[&["run"]])[0].assert_code(4);
    assert_eq!(
        run_subjects(&sandbox),
        "feat(US-003): Name the bird\nfeat(US-002): Count to three\nfeat(US-001): Write a greeting\ninitial"
    );
    assert_eq!(sandbox.git(["show", &format!("{}:bird.txt", run_branch(&sandbox))]), "verdone");
    let kept = sandbox.git(["for-each-ref", "--format=%(refname)", "refs/verdone/attempts"]);
    assert_eq!(sandbox.git(["show", &format!("{kept}:circle.txt")]), "round");
    assert_eq!(sandbox.git(["log", "--format=%s"]), "initial", "the user's branch stays where it was");
    assert_eq!(sandbox.git(["status", "--porcelain"]), "", "the lesson of the kept attempt is hidden");
}

#[test]
fn quiet_shows_problems_and_the_summary() {
    transcript("run-quiet", &project(), &[&["run", "--quiet"]])[0].assert_code(4);
}

#[test]
fn a_dry_run_shows_the_first_step_and_changes_nothing() {
    let sandbox = project();
    transcript("run-dry-run", &sandbox, &[&["run", "--dry-run"]])[0].assert_code(0);
    transcript("run-dry-run-json", &sandbox, &[&["run", "--dry-run", "--json", "--max-iterations", "0"]])[0].assert_code(0);
    assert!(!sandbox.path(".verdone/runs").exists());
    assert_eq!(sandbox.git(["for-each-ref", "refs/verdone", "refs/heads/verdone"]), "");
}

#[test]
fn a_finished_plan_is_complete_and_ends_with_zero() {
    let plan = "- [ ] US-001: Write a greeting\n  - Verification: `grep hello greeting.txt`\n";
    let script = "[[turn]]\nsteps = [{ create = 'greeting.txt', text = 'hello' }]\n";
    let sandbox = project_with(plan, script);
    let outputs = transcript("run-complete", &sandbox, &[&["run"], &["run"], &["run", "--dry-run"]]);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [0, 0, 0]);
}

#[test]
fn any_repository_and_any_command_will_do() {
    let sandbox = repository();
    sandbox.write("PLAN.md", "- [ ] Say hello\n");
    sandbox.write_script("agent.sh", "#!/bin/sh\necho 'I read the prompt:'\nhead -n 1\necho hello > hello.txt\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "a plan and an agent"]);
    let command = ["run", "PLAN.md", "--agent-command", "./agent.sh", "--check", "grep hello hello.txt || test ! -e hello.txt"];
    for output in transcript("run-any-repository", &sandbox, &[&command, &["land"]]) {
        output.assert_code(0);
    }
    assert_eq!(sandbox.read("PLAN.md"), "- [x] Say hello\n");
}

#[test]
fn one_story_can_be_named_and_an_unknown_one_is_refused() {
    let sandbox = project();
    let run = verdone(&sandbox, &["run", "--story", "US-003", "--quiet"]);
    run.assert_code(0);
    assert_eq!(run_subjects(&sandbox), "feat(US-003): Name the bird\ninitial");
    transcript("run-unknown-story", &sandbox, &[&["run", "--story", "US-9"]])[0].assert_code(2);
}

#[test]
fn colour_is_for_terminals_unless_it_is_asked_for() {
    let sandbox = project();
    let plain = verdone(&sandbox, &["run", "--story", "US-001"]);
    assert!(!plain.stdout.contains('\u{1b}'), "{}", plain.stdout);
    let coloured = verdone(&sandbox, &["run", "--story", "US-002", "--color", "always"]);
    assert!(coloured.stdout.contains("\u{1b}[32m✓\u{1b}[0m"), "{}", coloured.stdout);
    assert!(!coloured.stdout.contains('\r'), "colour is not a live line");
}

#[test]
fn uncommitted_changes_are_named_once_and_stay_as_they_are() {
    let sandbox = project();
    sandbox.write("README.md", "my own words\n");
    sandbox.write("greeting.txt", "good morning\n");
    sandbox.git(["add", "greeting.txt"]);
    sandbox.write("notes.txt", "mine\n");
    let before = sandbox.git(["status", "--porcelain"]);
    let commands: [&[&str]; 3] = [&["run", "--max-iterations", "1"], &["doctor"], &["land"]];
    let outputs = transcript("run-uncommitted", &sandbox, &commands);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [3, 0, 4]);
    assert_eq!(sandbox.git(["status", "--porcelain"]), before);
    assert_eq!(sandbox.read("README.md"), "my own words\n");
    assert_eq!(sandbox.read("greeting.txt"), "good morning\n");
    assert_eq!(sandbox.git(["show", &format!("{}:greeting.txt", run_branch(&sandbox))]), "hello");
}
