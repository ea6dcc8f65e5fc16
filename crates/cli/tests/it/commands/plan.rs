//! `verdone plan`, `init` and `config show`.

use crate::commands::stage::{BINARY, project, repository, transcript, verdone};

#[test]
fn a_plan_is_shown_and_looked_over() {
    let sandbox = project();
    transcript("plan-show", &sandbox, &[&["plan", "show"]]);
    transcript("plan-show-json", &sandbox, &[&["plan", "show", "--json"]]);
    sandbox.write("loose.md", "- [ ] US-001: One\n  - Scope: `../shared`\n  - Verification: it looks good\n- [x] US-002: Two\n  - Scope: src/, docs/*.md\n  - Verificaton: `test -f two`\n");
    transcript(
        "plan-lint",
        &sandbox,
        &[
            &["plan", "lint"],
            &["plan", "lint", "loose.md"],
            &["plan", "lint", "--json", "loose.md"],
            &["plan", "show", "loose.md"],
        ],
    );
    transcript("plan-approve-own", &sandbox, &[&["plan", "approve"]])[0].assert_code(0);
}

const ANSWER: &str = "\
# Plan

- [ ] US-001: Write a greeting
  - Verification: `grep hello greeting.txt`
- [ ] US-002: Count to three
  - Verification: `grep three numbers.txt`
";

#[test]
fn an_agents_plan_runs_only_after_the_user_accepted_it() {
    let sandbox = repository();
    sandbox.write("answer.txt", ANSWER);
    sandbox.write_script("planner.sh", "#!/bin/sh\ncat answer.txt\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "a planner"]);
    let new = ["plan", "new", "Greet and count", "--agent-command", "./planner.sh"];
    let run = ["run", "--agent-command", "true", "--dry-run"];
    transcript("plan-new", &sandbox, &[&new, &new, &["plan", "approve"], &["doctor"]]);
    assert_eq!(sandbox.read("PLAN.md"), ANSWER);
    transcript("plan-approve", &sandbox, &[&["plan", "approve", "--yes"], &["plan", "approve", "--yes"]]);
    verdone(&sandbox, &run).assert_code(0);
    sandbox.write("PLAN.md", ANSWER.replace("grep three", "rm -rf"));
    transcript("plan-approve-changed", &sandbox, &[&["run", "--agent-command", "true"]])[0].assert_code(2);
}

#[test]
fn a_request_can_come_from_a_file_or_a_pipe() {
    let sandbox = repository();
    sandbox.write("request.txt", "Greet, from a file\n");
    sandbox.write("answer.txt", format!("Here it is.\n<plan>\n{ANSWER}</plan>\n"));
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "a request"]);
    let agent = "grep 'Greet, from' >&2; cat answer.txt";
    let file = verdone(&sandbox, &["plan", "new", "request.txt", "--output", "file.md", "--agent-command", agent]);
    assert!(file.stdout.contains("│ Greet, from a file"), "{}", file.transcript());
    let pipe = "echo 'Greet, from a pipe' | \"$0\" plan new - --output pipe.md --agent-command \"$1\"";
    let pipe = sandbox.run("sh", ["-c", pipe, BINARY, agent]);
    assert!(pipe.stdout.contains("│ Greet, from a pipe"), "{}", pipe.transcript());
    let mode = verdone(&sandbox, &["run", "--mode", "planning", "request.txt", "--agent-command", agent]);
    assert!(
        mode.stdout.ends_with("Wrote PLAN.md: 2 stories. Read it, then: verdone plan approve PLAN.md\n"),
        "{}",
        mode.transcript()
    );
    for plan in ["file.md", "pipe.md", "PLAN.md"] {
        assert_eq!(sandbox.read(plan), ANSWER, "{plan}");
    }
}

#[test]
fn an_answer_that_is_no_plan_is_kept_and_told_about() {
    let sandbox = repository();
    let commands: [&[&str]; 4] = [
        &["plan", "new", "Anything", "--agent-command", "echo I would rather not"],
        &["plan", "new", "Anything", "--agent-command", "echo '- [ ] no id at all'"],
        &["plan", "new", "Anything", "--agent-command", "false"],
        &["plan", "new", " ", "--agent-command", "true"],
    ];
    transcript("plan-new-refused", &sandbox, &commands);
    assert!(!sandbox.path("PLAN.md").exists());
    assert_eq!(verdone(&sandbox, &["status"]).code, 2, "planning is no run");
}

#[test]
fn init_proposes_what_it_finds() {
    let sandbox = repository();
    sandbox.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");
    sandbox.write("package.json", r#"{"scripts":{"test":"node --test","lint":"eslint ."}}"#);
    sandbox.write("PLAN.md", "- [ ] US-001: One\n");
    for program in ["cargo", "npm"] {
        sandbox.add_script(program, "exit 0\n");
    }
    transcript("init", &sandbox, &[&["init"], &["init"], &["init", "--force"]]);
    transcript("config-show", &sandbox, &[&["config", "show"]]);
}
