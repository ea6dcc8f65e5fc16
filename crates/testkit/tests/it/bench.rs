//! The benchmark harness, with a stand-in for the program: it must measure real work, and reject samples without work.

use std::path::Path;
use std::process::{Command, Output};

use verdone_testkit::Sandbox;

/// Does in shell what the harness expects from `verdone run`.
const STAND_IN: &str = r#"#!/bin/sh
plan=$2
case " $* " in *" --dry-run "*|*" status "*) exit 0 ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --agent-command) agent=$2 ;;
    --max-iterations) count=$2 ;;
  esac
  shift
done
event() { echo "{\"v\":1,\"seq\":1,\"at\":\"\",\"event\":\"$2\"}" >>"$1"; }
mkdir -p .verdone/runs/$$ && echo '*' >.verdone/.gitignore
for journal in .verdone/runs/*/journal.jsonl; do
  [ ! -e "$journal" ] || grep -q run_stopped "$journal" || event "$journal" run_stopped
done
journal=.verdone/runs/$$/journal.jsonl
event "$journal" run_started
for _ in $(seq "${count:-1}"); do
  event "$journal" story_selected
  event "$journal" turn_started
  sh -c "$agent"
  sed -i '0,/\[ \]/s//[x]/' "$plan"
  git add -A
  git commit --quiet -m story
done
event "$journal" run_stopped
exit 3
"#;

fn bench(sandbox: &Sandbox, stand_in: &str) -> Output {
    let stand_in = sandbox.add_script("stand-in", stand_in);
    Command::new(env!("CARGO_BIN_EXE_verdone-bench"))
        .args(["--rounds", "1", "--iterations", "2", "--sizes", "10,30", "--events", "10,100", "--old-runs", "3x20", "--verdone"])
        .arg(stand_in)
        .args(["--empty", env!("CARGO_BIN_EXE_verdone-empty"), "--loop"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench.d/loop.sh"))
        .output()
        .expect("the harness can be started")
}

#[test]
fn every_case_is_measured_in_one_run() {
    let output = bench(&Sandbox::new(), STAND_IN);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for row in [
        "empty process",
        "run --dry-run, 30 stories",
        "Bash loop, 10 stories",
        "bare write, add, commit, 30 stories",
        "verdone run, 10 stories",
        "verdone run, 30 stories",
        "status, 100 events",
        "same after a kill, 10 events",
        "same after a kill, 100 events",
        "same after 3 runs of 20 events",
        "Peak memory, in MB",
        "run after a kill, 100 events",
    ] {
        assert!(text.contains(row), "no row {row:?} in\n{text}");
    }
}

#[test]
fn a_run_that_does_no_work_is_not_a_result() {
    let table = [
        ("  git commit --quiet -m story\n", "iterations made 0 commits"),
        ("  event \"$journal\" turn_started\n  sh -c \"$agent\"\n", "it was not killed"),
        ("|| event \"$journal\" run_stopped\n", "the dead run was not put in order"),
    ];
    for (work, expected) in table {
        assert!(STAND_IN.contains(work), "{work}");
        let output = bench(&Sandbox::new(), &STAND_IN.replace(work, "\n"));
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{work}: {output:?}");
    }
}

#[test]
fn a_program_that_fails_is_not_a_result() {
    let output = bench(&Sandbox::new(), "#!/bin/sh\necho broken >&2\nexit 1\n");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("broken"), "{output:?}");
}

/// Does in shell what the harness expects from `verdone hook`.
const HOOK: &str = r#"#!/bin/sh
input=$(cat)
session=$(printf '%s' "$input" | sed 's/.*"session_id":"\([^"]*\)".*/\1/')
mkdir -p "$CLAUDE_PROJECT_DIR/.verdone/sessions/$session/known"
case $input in
  *PreToolUse*) echo '{"permissionDecision":"allow"}' ;;
  *SessionStart*) echo '{"additionalContext":"x"}' ;;
esac
"#;
const PYTHON: &str = r#"#!/bin/sh
case $1 in
  -c) echo "$0" ;;
  --version) echo "Python 0" ;;
  *) case $(cat) in *PreToolUse*) echo '{"decision":"allow"}' ;; esac ;;
esac
"#;

/// Measures hook calls with stand-ins for everything else, isolated from the machine.
fn hooks(sandbox: &Sandbox, hook: &str, jq: Option<&str>) -> Output {
    let hook = sandbox.add_script("stand-in-hook", hook);
    let python = sandbox.add_script("python3", PYTHON);
    if let Some(jq) = jq {
        sandbox.add_script("jq", jq);
    }
    let own = python.parent().expect("a script lies in a folder");
    // The tools that the compared scripts need, without jq.
    for name in ["bash", "sh", "env", "cat", "sed", "mkdir", "dirname", "grep", "date"] {
        let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name)).into_iter().find(|path| path.exists());
        let link = own.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(found.expect("every system has it"), link).expect("a link can be made");
        }
    }
    Command::new(env!("CARGO_BIN_EXE_verdone-bench"))
        .args(["hooks", "--rounds", "5", "--reads", "2,5", "--stories", "2,5", "--transcript", "1,9", "--verdone"])
        .arg(hook)
        .args(["--empty", env!("CARGO_BIN_EXE_verdone-empty"), "--hook-scripts"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench.d/hooks"))
        .env("PATH", own)
        .output()
        .expect("the harness can be started")
}

#[test]
fn hook_calls_are_measured_beside_scripts_and_what_can_grow() {
    let output = hooks(&Sandbox::new(), HOOK, Some("#!/bin/sh\necho jq-0\n"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for row in [
        "empty process, linked the same way",
        "PreToolUse Read ",
        "PreToolUse Bash, complex",
        "PostToolUse Bash, tests",
        "SessionStart ",
        "an unknown event",
        "PreToolUse Edit, 5 files read before",
        "Stop, a transcript of 9 bytes",
        "PreToolUse Bash, complex, a plan of 5 stories",
        "PreToolUse Edit in Bash and jq",
        "Stop in Python",
        "Compared with: jq-0, Python 0",
    ] {
        assert!(text.contains(row), "no row {row:?} in\n{text}");
    }
}

#[test]
fn a_hook_call_without_its_answer_is_not_a_result_and_a_missing_program_is_named() {
    let sandbox = Sandbox::new();
    let missing = hooks(&sandbox, HOOK, None);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("jq is missing: install it"), "{missing:?}");
    let wrong = hooks(&sandbox, &HOOK.replace("additionalContext", "nothing"), Some("#!/bin/sh\necho jq-0\n"));
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("it answered"), "{wrong:?}");
}

/// Does in shell, without workspaces, what the harness expects from `verdone launch measure` and `verdone run`.
const WORKSPACES: &str = r#"#!/bin/sh
event() { echo "{\"event\":\"$1\",\"at\":\"2026-01-01T00:00:0$2.5Z\",\"files\":100}" >>"$journal"; }
case "$1 $2" in
  "launch measure")
    while read -r step commit; do
      case $step in
        create) git worktree add --quiet --detach ../space "$commit" >&2; said="{\"files\":\"$(cd ../space && pwd)\"}" ;;
        reset) git -C ../space reset --quiet --hard "$commit"; git -C ../space clean -fdq; said={} ;;
        read) git -C ../space add --all; said="{\"tree\":\"$(git -C ../space write-tree)\"}" ;;
        remove) git worktree remove --force ../space; said={} ;;
      esac
      echo "{\"ms\":1.5,\"said\":$said}"
    done ;;
  "run plan.md")
    mkdir -p .verdone/runs/1
    journal=.verdone/runs/1/journal.jsonl
    if grep -q rm .verdone/script.toml; then
      for n in 1 3; do event attempt_started $n; event turn_ended $n; event attempt_kept $((n + 1)); done
      exit 4
    fi
    for _ in 1 2 3 4 5 6 7 8 9 10; do event story_selected 1; event turn_ended 2; event verified 4; event committed 5; done ;;
esac
"#;

fn workspaces(stand_in: &str) -> Output {
    let sandbox = Sandbox::new();
    let stand_in = sandbox.add_script("stand-in", stand_in);
    Command::new(env!("CARGO_BIN_EXE_verdone-bench"))
        .args(["workspace", "--rounds", "2", "--files", "60", "--deleted", "100", "--parts", "operations,iteration,deleted"])
        .arg("--verdone")
        .arg(&stand_in)
        .arg("--before")
        .arg(&stand_in)
        .output()
        .expect("the harness can be started")
}

#[test]
fn workspaces_are_measured_beside_git_status_and_an_earlier_build() {
    let output = workspaces(WORKSPACES);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for row in [
        "A workspace of 60 files, in ms",
        "git status of the checkout",
        "create, with its view",
        "reset + read back",
        "aim at most 5x",
        "before: from selection to commit",
        "1.00x before, aim at most 1.5x: kept",
        "An attempt that deletes 100 files",
        "aim at most 2000: kept",
    ] {
        assert!(text.contains(row), "no row {row:?} in\n{text}");
    }
    let rows = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap_or_default();
    assert!(rows("from selection to commit").contains("4000.00"), "{text}");
    assert!(rows("the same without verification").contains("2000.00"), "{text}");
    assert!(rows("end of its turn").contains("2000.00"), "{text}");
}

#[test]
fn a_workspace_that_does_not_hold_its_files_is_not_a_result() {
    for (work, expected) in [
        ("reset --quiet --hard \"$commit\"", "after the reset the files are not those of the commit"),
        ("git -C ../space add --all;", "the edits were not read back"),
        ("event committed 5;", "0 of 10 stories were committed"),
        ("event attempt_kept $((n + 1));", "was not kept"),
    ] {
        assert!(WORKSPACES.contains(work), "{work}");
        let output =
            workspaces(&WORKSPACES.replace(work, if work.starts_with("reset") { "rev-parse HEAD >/dev/null" } else { ":;" }));
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{work}: {output:?}");
    }
}
