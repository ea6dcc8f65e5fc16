//! The scripts on machines that lack something: stubs stand for cargo, rustup, apt-get and sudo, and write down how they were called.

use std::path::{Path, PathBuf};

use verdone_testkit::{Output, Sandbox};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A stub that writes its name and arguments to `calls` in the work directory and ends with this code.
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
    assert!(output.stderr.contains("no clippy, and there is no rustup"), "{}", output.stderr);

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

#[test]
fn an_unknown_step_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "cargo", 0);
    let output = sandbox.run("bash", [&format!("{}/scripts/test", repository().display()), "fmt", "tset"]);
    output.assert_code(1);
    assert!(output.stderr.contains("no step 'tset'"), "{}", output.stderr);
    assert_eq!(calls(&sandbox), "");
}
