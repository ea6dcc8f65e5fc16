//! The scripts on machines that lack something: stubs replace cargo, rustup, apt-get and sudo, and record their calls.

use std::path::{Path, PathBuf};

use verdone_testkit::{Output, Sandbox};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A stub that writes its name and arguments to `calls` in the work directory and exits with this code.
fn stub(sandbox: &Sandbox, name: &str, code: i32) {
    let calls = sandbox.path("calls");
    sandbox.add_script(name, &format!("#!/bin/sh\necho \"{name} $*\" >>'{}'\nexit {code}\n", calls.display()));
}

/// Runs lines of Bash after the shared functions.
fn tools(sandbox: &Sandbox, lines: &str) -> Output {
    let script = format!("set -euo pipefail; source '{}/scripts/lib/tools.bash'; {lines}", repository().display());
    sandbox.run("bash", ["-c", &script])
}

fn calls(sandbox: &Sandbox) -> String {
    sandbox.run("sh", ["-c", "cat calls 2>/dev/null"]).stdout
}

#[test]
fn missing_programs_are_installed_by_the_name_of_their_package() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "apt-get", 0);
    sandbox.add_script("sudo", "#!/bin/sh\nshift\nexec \"$@\"\n");
    tools(&sandbox, "need_debian git=git shellcheck=shellcheck cc=gcc").assert_code(0);
    assert_eq!(calls(&sandbox), "apt-get update -qq\napt-get install -y -qq --no-install-recommends shellcheck gcc\n");
}

#[test]
fn nothing_is_installed_when_nothing_is_missing() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "apt-get", 0);
    stub(&sandbox, "cargo", 0);
    tools(&sandbox, "need_debian git=git sh=dash; need_crate git some-crate 1.0.0; need_component true clippy").assert_code(0);
    assert_eq!(calls(&sandbox), "");
}

#[test]
fn a_machine_without_apt_is_told_what_to_install() {
    let sandbox = Sandbox::new();
    let output = tools(&sandbox, "need_debian shellcheck=shellcheck tmux=tmux");
    output.assert_code(1);
    assert!(output.stderr.contains("missing: shellcheck tmux"), "{}", output.stderr);
}

#[test]
fn a_package_that_cannot_be_installed_is_an_error() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "apt-get", 100);
    sandbox.add_script("sudo", "#!/bin/sh\nshift\nexec \"$@\"\n");
    let output = tools(&sandbox, "need_debian tmux=tmux; echo reached");
    output.assert_code(1);
    assert!(output.stderr.contains("could not install: tmux") && !output.stdout.contains("reached"), "{output:?}");
}

#[test]
fn a_missing_component_is_added_or_named() {
    let sandbox = Sandbox::new();
    let output = tools(&sandbox, "need_component false clippy");
    output.assert_code(1);
    assert!(output.stderr.contains("no clippy, and rustup is not installed"), "{}", output.stderr);

    stub(&sandbox, "rustup", 0);
    tools(&sandbox, "need_component false clippy").assert_code(0);
    assert_eq!(calls(&sandbox), "rustup component add clippy\n");
}

#[test]
fn a_missing_crate_is_installed_at_its_version() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "cargo", 0);
    tools(&sandbox, "need_crate cargo-deny cargo-deny 1.2.3").assert_code(0);
    assert_eq!(calls(&sandbox), "cargo install --quiet --debug --locked cargo-deny --version 1.2.3\n");
}

#[test]
fn a_failing_step_fails_the_whole_and_the_rest_still_runs() {
    let sandbox = Sandbox::new();
    let calls_file = sandbox.path("calls");
    let script = format!("#!/bin/sh\necho \"cargo $*\" >>'{}'\n[ \"$1\" != fmt ]\n", calls_file.display());
    sandbox.add_script("cargo", &script);
    let output = sandbox.run("bash", [&format!("{}/scripts/test", repository().display()), "fmt", "test"]);
    output.assert_code(1);
    assert!(output.stdout.contains("==> fmt: FAILED") && output.stdout.contains("==> test: ok"), "{}", output.stdout);
    assert!(output.stdout.ends_with("steps: 1 passed, 1 failed\n"), "{}", output.stdout);
    assert_eq!(calls(&sandbox), "cargo fmt --all --check\ncargo test --workspace --locked\n");
}

/// An npm that installs the client into its working directory.
const NPM: &str = "\
#!/bin/sh
echo \"npm $1\" >>CALLS
[ -f package-lock.json ] || exit 9
mkdir -p node_modules/@anthropic-ai/claude-code-linux-x64
printf '#!/bin/sh\\necho 2.1.325\\n' >node_modules/@anthropic-ai/claude-code-linux-x64/claude
chmod +x node_modules/@anthropic-ai/claude-code-linux-x64/claude
";

fn client_step(sandbox: &Sandbox) -> Output {
    sandbox.run("bash", [&format!("{}/scripts/test", repository().display()), "client"])
}

#[test]
fn the_client_for_tests_is_installed_once_and_outside_of_the_checkout() {
    let sandbox = Sandbox::new();
    sandbox.add_script("npm", &NPM.replace("CALLS", &sandbox.path("calls").display().to_string()));
    for _ in 0..2 {
        let output = client_step(&sandbox);
        output.assert_code(0);
        let place = sandbox.home().join(".cache/verdone/claude-code-2.1.325/node_modules");
        assert!(output.stdout.contains(&place.display().to_string()) && !output.stdout.contains("SKIPPED"), "{}", output.stdout);
    }
    assert_eq!(calls(&sandbox), "npm ci\n");
}

#[test]
fn a_client_that_cannot_be_had_is_a_loud_skip_and_a_failure_where_nothing_may_be_skipped() {
    let mut sandbox = Sandbox::new();
    let skipped = |sandbox: &Sandbox, reason: &str| {
        let output = client_step(sandbox);
        output.assert_code(0);
        let line = format!("SKIPPED: the tests with the real Claude Code: {reason}");
        assert!(output.stdout.contains(&line), "{}", output.stdout);
    };
    skipped(&sandbox, "npm is missing and could not be installed");
    sandbox.add_script("npm", "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n");
    skipped(&sandbox, "npm could not install Claude Code: code ENOTFOUND");
    let left = std::fs::read_dir(sandbox.home().join(".cache/verdone")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "half an installation stayed");

    sandbox.set("VERDONE_NO_SKIP", "1");
    let output = client_step(&sandbox);
    output.assert_code(1);
    assert!(output.stderr.contains("cannot run: npm could not install Claude Code: code ENOTFOUND"), "{}", output.stderr);
}

#[test]
fn test_runners_that_cannot_be_had_are_a_loud_skip_and_a_failure_where_nothing_may_be_skipped() {
    let mut sandbox = Sandbox::new();
    let step = |sandbox: &Sandbox| sandbox.run("bash", [&format!("{}/scripts/test", repository().display()), "runners"]);
    let output = step(&sandbox);
    output.assert_code(0);
    let line = "SKIPPED: the tests with real test runners: npm is missing and could not be installed";
    assert!(output.stdout.contains(line), "{}", output.stdout);

    for name in ["npm", "make", "prove", "cc"] {
        stub(&sandbox, name, 0);
    }
    sandbox.add_tool("flock");
    sandbox.add_script("python3", "#!/bin/sh\n[ \"$2\" = ensurepip ] || { echo 'no network' >&2; exit 1; }\n");
    let output = step(&sandbox);
    assert!(output.stdout.contains("pip could not install the Python runners: no network"), "{}", output.stdout);

    sandbox.set("VERDONE_NO_SKIP", "1");
    let output = step(&sandbox);
    output.assert_code(1);
    assert!(output.stderr.contains("cannot run: pip could not install the Python runners"), "{}", output.stderr);
}

#[test]
fn an_unknown_step_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "cargo", 0);
    let output = sandbox.run("bash", [&format!("{}/scripts/test", repository().display()), "fmt", "tset"]);
    output.assert_code(1);
    assert!(output.stderr.contains("no step 'tset'"), "{}", output.stderr);
    assert_eq!(calls(&sandbox), "");
}
