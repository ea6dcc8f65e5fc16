//! A small project with a plan of four stories and an agent that passes, fixes, lies and fails.

use std::path::{Path, PathBuf};

use verdone_testkit::{Output, Running, Sandbox, assert_transcript};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_verdone");

const PLAN: &str = "\
# Plan

- [ ] US-001: Write a greeting
  - Acceptance: it says hello
  - Verification: `grep hello greeting.txt`
- [ ] US-002: Count to three
  - Verification: `grep three numbers.txt`
- [ ] US-003: Name the bird
  - Verification: `grep verdone bird.txt`
- [ ] US-004: Square the circle
  - Depends on: US-001
  - Verification: `grep squared circle.txt`
";

const CONFIG: &str = r#"plan = "PLAN.md"

[agent]
name = "scripted"

[agent.scripted]
script = ".verdone/script.toml"

[limits]
attempts = 1
turns = 3

[[gate]]
name = "readme"
command = "test -s README.md"
"#;

const SCRIPT: &str = r#"
[[turn]]
story = "US-001"
steps = [
  { say = "Writing a greeting." },
  { create = "greeting.txt", text = "hello\n" },
  { claim = "Done." },
]

[[turn]]
story = "US-002"
turn = 1
steps = [{ create = "numbers.txt", text = "one\ntwo\n" }, { claim = "Done: counted." }]

[[turn]]
story = "US-002"
steps = [{ append = "numbers.txt", text = "three\n" }, { claim = "Now with three." }]

[[turn]]
story = "US-003"
turn = 1
steps = [{ tick = "US-003" }, { claim = "Done! All tests pass." }]

[[turn]]
story = "US-003"
steps = [{ create = "bird.txt", text = "verdone\n" }]

[[turn]]
story = "US-004"
steps = [{ create = "circle.txt", text = "round\n" }, { claim = "Done: squared." }]
"#;

/// A repository on the branch `work` that Verdone knows nothing about.
pub(crate) fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.repo();
    sandbox.git(["switch", "--quiet", "--create", "work"]);
    sandbox
}

/// The project with four stories, committed and ready to run.
pub(crate) fn project() -> Sandbox {
    project_with(PLAN, SCRIPT)
}

/// The same with another plan and another agent.
pub(crate) fn project_with(plan: &str, script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("PLAN.md", plan);
    sandbox.write(".verdone/config.toml", CONFIG);
    sandbox.write(".verdone/script.toml", script);
    sandbox.repo();
    sandbox.git(["switch", "--quiet", "--create", "work"]);
    sandbox
}

/// A project whose only story runs until the returned file exists. It lands automatically.
pub(crate) fn slow_project() -> (Sandbox, PathBuf) {
    let sandbox = project_with("- [ ] US-001: Wait for the word\n  - Verification: `grep hello greeting.txt`\n", "");
    let word = sandbox.root().join("tmp/go");
    let agent = format!(
        "#!/bin/sh\necho 'Reading the plan.'\necho 'Waiting for the word.'\nwhile [ ! -e {} ]; do sleep 0.02; done\n\
         echo hello > greeting.txt\necho 'Done.'\n",
        word.display()
    );
    sandbox.add_script("slow-agent", &agent);
    sandbox.write(".verdone/config.toml", slow_config(&sandbox, "slow-agent", "attempts = 1\nturns = 1"));
    (sandbox, word)
}

/// Settings for an agent that is a program in the sandbox and may write to its `tmp/`.
pub(crate) fn slow_config(sandbox: &Sandbox, agent: &str, limits: &str) -> String {
    let shared = sandbox.root().join("tmp");
    format!(
        "[run]\nland = \"auto\"\n[workspace]\nwritable = [\"{}\"]\n[agent.command]\nrun = \"{agent}\"\n[limits]\n{limits}\n",
        shared.display()
    )
}

/// The branch of the only run.
#[track_caller]
pub(crate) fn run_branch(sandbox: &Sandbox) -> String {
    let branches = sandbox.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/verdone"]);
    assert_eq!(branches.lines().count(), 1, "{branches}");
    branches
}

/// The subjects of the only run's commits and of those before it, newest first.
#[track_caller]
pub(crate) fn run_subjects(sandbox: &Sandbox) -> String {
    sandbox.git(["log", "--format=%s", &run_branch(sandbox)])
}

/// Runs `verdone` with these arguments.
pub(crate) fn verdone(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.verdone(BINARY, arguments)
}

/// Starts `verdone` in the background.
pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Running {
    sandbox.spawn(BINARY, arguments)
}

/// Runs the commands one after the other and compares the outputs with the file of that name.
#[track_caller]
pub(crate) fn transcript(name: &str, sandbox: &Sandbox, commands: &[&[&str]]) -> Vec<Output> {
    let outputs: Vec<Output> = commands.iter().map(|arguments| verdone(sandbox, arguments)).collect();
    compare(name, sandbox, &outputs);
    outputs
}

#[track_caller]
pub(crate) fn compare(name: &str, sandbox: &Sandbox, outputs: &[Output]) {
    outputs.iter().for_each(assert_harmless);
    let outputs: Vec<&Output> = outputs.iter().collect();
    assert_transcript(file(name), &without_container(&sandbox.transcript(&outputs)));
}

/// Transcripts must not depend on whether the tests run in a container.
fn without_container(text: &str) -> String {
    let text = text.replace(",\"container\":true", "").replace(", inside a container", "");
    text.split_inclusive('\n').filter(|line| !line.starts_with("good     container ")).collect()
}

/// Asserts that the output contains no terminal control characters.
#[track_caller]
pub(crate) fn assert_harmless(output: &Output) {
    let hostile = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    for text in [&output.stdout, &output.stderr] {
        assert!(!text.contains(hostile), "`{}` printed something that a terminal obeys: {text:?}", output.command);
    }
}

pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(format!("{name}.txt"))
}
