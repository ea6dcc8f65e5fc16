//! A test that must pass both as root and as an unprivileged user.

use std::path::Path;
use std::process::Command;

/// Set in the copy of the test binary that runs as an unprivileged user.
const VARIABLE: &str = "VERDONE_TEST_UNPRIVILEGED";
const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// If we are root, runs the test that this thread is named after once more as an unprivileged user. `program` is the program it starts.
pub fn repeat_unprivileged(program: &Path) {
    if !rustix::process::getuid().is_root() || std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let name = std::thread::current().name().expect("a test has a name").to_owned();
    let own = std::env::current_exe().expect("the test is a file");
    let reachable = |file: &Path| {
        Command::new("setpriv").args(NOBODY).arg("test").arg("-x").arg(file).status().expect("setpriv is started").success()
    };
    assert!(reachable(&own) && reachable(program), "{} is private to root", own.display());
    let mut command = Command::new("setpriv");
    command.args(NOBODY).arg(own).args(["--exact", &name, "--nocapture"]).current_dir("/");
    command.env(VARIABLE, "1").env("HOME", "/nonexistent").env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let output = command.output().expect("setpriv is started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "as an unprivileged user:\n{out}\n{err}");
}
