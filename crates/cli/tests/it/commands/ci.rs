//! The workflow in docs/ci.md, as far as it can run without a network: its own commands, in a clone of a pull request.

use std::fs;

use serde_json::Value;
use verdone_runtime::launcher::FAULT_VARIABLE;
use verdone_testkit::Sandbox;

use crate::commands::stage::{BINARY, repository, repository_root, verdone};

/// The commands of the steps, in order.
fn commands(workflow: &str) -> Vec<&str> {
    workflow.lines().filter_map(|line| line.trim_start().strip_prefix("run: ")).collect()
}

fn workflow() -> String {
    let page = fs::read_to_string(repository_root().join("docs/ci.md")).unwrap();
    let (_, rest) = page.split_once("```yaml .github/workflows/verdone.yml\n").expect("docs/ci.md has the workflow");
    rest.split_once("```").unwrap().0.to_owned()
}

/// A clone whose HEAD is a pull request of two commits, and its base commit.
fn pull_request(greeting: &str) -> (Sandbox, String) {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"greeting\"\ncommand = \"! grep bye src/*.txt\"\n");
    sandbox.write("src/one.txt", "hello\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "base"]);
    let base = sandbox.git(["rev-parse", "HEAD"]).trim().to_owned();
    for (name, text) in [("two", "hello"), ("three", greeting)] {
        sandbox.write(format!("src/{name}.txt"), text);
        sandbox.git(["add", "--all"]);
        sandbox.git(["commit", "--quiet", "--message", name]);
    }
    sandbox.git(["checkout", "--quiet", "--detach"]);
    (sandbox, base)
}

#[test]
fn the_workflow_of_the_docs_passes_good_work_and_fails_bad_work() {
    let workflow = workflow();
    let (installs, rest): (Vec<&str>, Vec<&str>) =
        commands(&workflow).into_iter().partition(|command| command.starts_with("cargo install "));
    assert_eq!((installs.len(), rest.len()), (1, 2), "what cannot run here is the installation: {workflow}");
    for (greeting, code) in [("hello\n", 0), ("bye\n", 1)] {
        let (mut sandbox, base) = pull_request(greeting);
        sandbox.add_program("verdone", BINARY.as_ref());
        sandbox.set("BASE", &base);
        let summary = sandbox.root().join("summary.md");
        sandbox.set("GITHUB_STEP_SUMMARY", &summary);
        let outputs: Vec<_> = rest.iter().map(|command| sandbox.run("bash", ["-e", "-c", command])).collect();
        outputs[0].assert_code(0);
        assert_eq!(outputs[0].stdout.lines().count(), 2, "both commits: {}", outputs[0].stdout);
        outputs[1].assert_code(code);
        assert!(outputs[1].stdout.lines().all(|line| line.starts_with("::")), "{}", outputs[1].stdout);
        assert!(fs::read_to_string(summary).unwrap().starts_with("### Verdone: "));
    }
}

#[test]
fn the_workflow_of_the_docs_is_given_no_more_than_it_needs() {
    let workflow = workflow();
    assert!(workflow.contains("permissions:\n  contents: read\n") && workflow.contains("fetch-depth: 0"), "{workflow}");
    assert!(workflow.contains("on: pull_request\n") && !workflow.contains("secrets."), "{workflow}");
}

#[test]
fn without_name_spaces_a_range_is_verified_in_a_clone_and_the_output_says_so() {
    let (mut sandbox, base) = pull_request("hello\n");
    sandbox.set(FAULT_VARIABLE, "unshare");
    let output = verdone(&sandbox, &["verify", "--base", &base, "--json"]);
    output.assert_code(0);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    let (level, missing) = (found["seal"]["level"].as_str().unwrap(), found["seal"]["missing"].to_string());
    assert!(level != "view" && missing.contains("no private view of the file system"), "{}", output.stdout);
    let page = verdone(&sandbox, &["verify", "--base", &base]).stdout;
    assert!(page.replace("\n  ", " ").contains("no private view of the file system"), "{page}");
}
