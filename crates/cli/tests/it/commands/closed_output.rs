//! If the reader of the output goes away, the run continues and ends correctly.

use crate::commands::stage::{BINARY, project, run_subjects, verdone};

#[test]
fn a_run_outlives_its_reader() {
    for flag in ["--color=never", "--json", "--quiet"] {
        let sandbox = project();
        let pipe = r#""$0" run "$1" | head -n 1 >/dev/null; echo "exit ${PIPESTATUS[0]}""#;
        let output = sandbox.run("bash", ["-c", pipe, BINARY, flag]);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("exit 4\n", ""), "{flag}");
        let status = verdone(&sandbox, &["status"]);
        assert!(status.stdout.contains("finished, blocked (exit code 4)"), "{flag}: {}", status.transcript());
        assert!(run_subjects(&sandbox).starts_with("feat(US-003): Name the bird\n"), "{flag}");
    }
}

#[test]
fn a_full_disk_behind_the_output_ends_no_run() {
    let sandbox = project();
    let run = sandbox.run("sh", ["-c", "\"$0\" run >/dev/full", BINARY]);
    assert_eq!((run.code, run.stderr.as_str()), (4, ""));
    let status = sandbox.run("sh", ["-c", "\"$0\" status >/dev/full", BINARY]);
    assert_eq!(status.code, 1);
    assert!(status.stderr.starts_with("error: cannot write the output: No space left on device"), "{}", status.stderr);
}

#[test]
fn commands_that_look_back_end_quietly_without_a_reader() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--story", "US-001", "--quiet"]).assert_code(0);
    for command in ["status", "log", "report", "land --dry-run", "doctor", "plan show", "workspace list"] {
        // The result is the same whether the reader ends before or after the first write.
        let closed = format!("\"$0\" {command} | true; echo \"exit ${{PIPESTATUS[0]}}\"");
        let output = sandbox.run("bash", ["-c", &closed, BINARY]);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("exit 0\n", ""), "{command}");
    }
}

#[test]
fn closed_or_full_streams_change_neither_the_work_nor_the_exit_code() {
    for streams in [">&-", "2>&-", ">&- 2>&-", ">&- 2>&- <&-", ">/dev/full 2>/dev/full"] {
        let sandbox = project();
        let run = sandbox.run("sh", ["-c", &format!("\"$0\" run {streams}"), BINARY]);
        assert_eq!(run.code, 4, "{streams}: {}", run.transcript());
        assert!(run_subjects(&sandbox).starts_with("feat(US-003): Name the bird\n"), "{streams}");
        let status = verdone(&sandbox, &["status"]);
        assert!(status.stdout.contains("finished, blocked (exit code 4)"), "{streams}: {}", status.transcript());
    }
}
