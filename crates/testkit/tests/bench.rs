//! The benchmark harness, with a stand-in for the program: it must measure real work, and refuse to measure none.

use std::path::Path;
use std::process::{Command, Output};

use verdone_testkit::Sandbox;

/// Does what the harness asks of `verdone run`, in shell.
const STAND_IN: &str = r#"#!/bin/sh
plan=$2
case " $* " in *" --dry-run "*) exit 0 ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --agent-command) agent=$2 ;;
    --max-iterations) count=$2 ;;
  esac
  shift
done
for _ in $(seq "$count"); do
  sh -c "$agent"
  sed -i '0,/\[ \]/s//[x]/' "$plan"
  git add -A
  git commit --quiet -m story
done
exit 3
"#;

fn bench(sandbox: &Sandbox, stand_in: &str) -> Output {
    let stand_in = sandbox.add_script("stand-in", stand_in);
    Command::new(env!("CARGO_BIN_EXE_verdone-bench"))
        .args(["--rounds", "1", "--iterations", "2", "--sizes", "10,30", "--verdone"])
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
    ] {
        assert!(text.contains(row), "no row {row:?} in\n{text}");
    }
}

#[test]
fn a_run_that_does_no_work_is_not_a_result() {
    let output = bench(&Sandbox::new(), "#!/bin/sh\nexit 0\n");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 iterations made 1 commits"), "{output:?}");
}

#[test]
fn a_program_that_fails_is_not_a_result() {
    let output = bench(&Sandbox::new(), "#!/bin/sh\necho broken >&2\nexit 1\n");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("broken"), "{output:?}");
}
