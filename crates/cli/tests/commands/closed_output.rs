//! Nobody reads the output any more: the run goes on and ends right.

use crate::stage::{BINARY, project, verdone};

#[test]
fn a_run_outlives_its_reader() {
    for flag in ["--color=never", "--json", "--quiet"] {
        let sandbox = project();
        let pipe = r#""$0" run "$1" | head -n 1 >/dev/null; echo "exit ${PIPESTATUS[0]}""#;
        let output = sandbox.run("bash", ["-c", pipe, BINARY, flag]);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("exit 4\n", ""), "{flag}");
        let status = verdone(&sandbox, &["status"]);
        assert!(status.stdout.contains("finished, blocked (exit code 4)"), "{flag}: {}", status.transcript());
        assert_eq!(sandbox.git(["log", "-1", "--format=%s"]), "feat(US-003): Name the bird", "{flag}");
    }
}

#[test]
fn commands_that_look_back_end_quietly_without_a_reader() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--story", "US-001", "--quiet"]).assert_code(0);
    for command in ["status", "log", "report", "checkpoints", "doctor", "plan show"] {
        // Whether the reader goes before or after the first write, the end is the same.
        let closed = format!("\"$0\" {command} | true; echo \"exit ${{PIPESTATUS[0]}}\"");
        let output = sandbox.run("bash", ["-c", &closed, BINARY]);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("exit 0\n", ""), "{command}");
    }
}
