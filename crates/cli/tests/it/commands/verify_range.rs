//! `verdone verify --base`: judges a range of commits without a run.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use verdone_testkit::{Output, Sandbox};

use crate::commands::schema;
use crate::commands::stage::{repository, verdone};

/// `main` has settings, tests and a plan; the current branch, `work`, starts there.
fn pull_request() -> Sandbox {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "plan = \"docs/todo.md\"\n[[gate]]\nname = \"tests\"\ncommand = \"sh tests/run.sh\"\n");
    sandbox.write("docs/todo.md", "- [ ] US-1: Greet\n  - Verification: `grep hello src/greeting.txt`\n");
    sandbox.write("tests/run.sh", "for test in tests/*.t; do sh $test || exit 1; done\n");
    sandbox.write("tests/readme.t", "test -s README.md\n");
    commit(&sandbox, "settings");
    sandbox.git(["branch", "--force", "main"]);
    sandbox
}

fn commit(sandbox: &Sandbox, message: &str) {
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", message]);
}

#[track_caller]
fn verify(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Output {
    let output = verdone(sandbox, &[&["verify", "--base"], arguments].concat());
    output.assert_code(code);
    output
}

#[track_caller]
fn judged(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Value {
    let found: Value = serde_json::from_str(&verify(sandbox, &[arguments, &["--json"]].concat(), code).stdout).unwrap();
    assert_eq!(found["exit_code"], code);
    schema::assert_valid(&verdone_report::verification_schema(), &found);
    found
}

#[test]
fn commits_get_the_same_proof_as_a_run_whoever_made_them() {
    let sandbox = pull_request();
    sandbox.write("src/greeting.txt", "hello\n");
    commit(&sandbox, "greet");
    let found = judged(&sandbox, &["main", "US-1"], 0);
    assert_eq!((&found["outcome"], &found["proof"]), (&"done".into(), &"verified".into()), "{found}");
    assert_eq!(found["surface"], "verify-base");
    assert_eq!(found["range"]["base"], sandbox.git(["rev-parse", "main"]).trim());
    assert_eq!(found["range"]["head"], sandbox.git(["rev-parse", "HEAD"]).trim());
    assert_eq!(judged(&sandbox, &["main"], 0)["proof"], "untested", "without the story, nothing was red before");
    assert!(!sandbox.path(".verdone/runs").exists());
    assert_eq!(sandbox.git(["status", "--porcelain"]), "", "the checkout is untouched");
    // Uncommitted changes are not part of it.
    sandbox.write("src/greeting.txt", "bye\n");
    judged(&sandbox, &["main", "US-1"], 0);
    let page = verify(&sandbox, &["main", "US-1"], 0).stdout;
    assert!(page.starts_with("✓ US-1: Done, verified\n") && page.contains(" compared with main ("), "{page}");
}

#[test]
fn tests_that_come_with_the_work_have_to_fail_without_it() {
    let sandbox = pull_request();
    sandbox.write("src/greeting.txt", "hello\n");
    sandbox.write("tests/greeting.t", "echo 1..1; grep -q hello src/greeting.txt && echo ok 1 || { echo not ok 1; exit 1; }\n");
    commit(&sandbox, "greet, with a test");
    let found = judged(&sandbox, &["main"], 0);
    assert_eq!((&found["proof"], found["trees"].as_object().unwrap().len()), (&"agent-tested".into(), 4), "{found}");
}

#[test]
fn settings_gates_and_stories_come_from_the_base() {
    let sandbox = pull_request();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"nothing\"\ncommand = \"true\"\n");
    sandbox.write("docs/todo.md", "- [ ] US-1: Greet\n  - Verification: `true`\n");
    fs::remove_file(sandbox.path("README.md")).unwrap();
    commit(&sandbox, "weaken everything");
    let found = judged(&sandbox, &["main", "US-1"], 1);
    let names: Vec<&str> = found["runs"]["attempt"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["grep hello src/greeting.txt"], "{found}");
    assert_eq!(found["not_run"], serde_json::json!(["tests"]));
}

#[test]
fn a_check_script_of_the_settings_folder_comes_from_the_base_too() {
    let sandbox = pull_request();
    sandbox.write(".verdone/check.sh", "test -s README.md\n");
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"own\"\ncommand = \"sh .verdone/check.sh\"\n");
    commit(&sandbox, "a gate with a script");
    sandbox.git(["branch", "--force", "main"]);
    sandbox.write(".verdone/check.sh", "true\n");
    fs::remove_file(sandbox.path("README.md")).unwrap();
    commit(&sandbox, "weaken the script");
    let found = judged(&sandbox, &["main"], 4);
    assert_eq!(found["reasons"][0]["reason"], "pristine-failed", "{found}");
}

#[test]
fn a_story_that_comes_with_the_work_is_agent_tested_at_best() {
    let sandbox = pull_request();
    sandbox.write("docs/todo.md", "- [ ] US-2: Wave\n  - Verification: `test -s src/wave.txt`\n");
    sandbox.write("src/wave.txt", "o/\n");
    commit(&sandbox, "plan and work");
    let found = judged(&sandbox, &["main", "US-2"], 0);
    assert_eq!(found["proof"], "agent-tested", "{found}");
    assert!(found["notes"][0].as_str().unwrap().contains("it comes with the work"), "{found}");
    let told = verify(&sandbox, &["main", "US-3"], 2).stderr;
    assert!(told.contains("docs/todo.md has no story \"US-3\""), "{told}");
}

#[test]
fn a_branch_that_fell_behind_is_compared_with_where_it_branched_off() {
    let sandbox = pull_request();
    sandbox.write("src/greeting.txt", "hello\n");
    commit(&sandbox, "greet");
    let began = sandbox.git(["rev-parse", "main"]).trim().to_owned();
    sandbox.git(["switch", "--quiet", "main"]);
    sandbox.write("src/other.txt", "other\n");
    commit(&sandbox, "main goes on");
    sandbox.git(["switch", "--quiet", "--detach", "work"]);
    let found = judged(&sandbox, &["main", "US-1"], 0);
    assert_eq!((&found["range"]["base"], &found["proof"]), (&began.into(), &"verified".into()), "{found}");
    assert!(found["notes"][0].as_str().unwrap().contains("where it branched off"), "{found}");
    assert_eq!(judged(&sandbox, &["main", "--head", "main"], 0)["notes"][0], "no file differs from main");
}

/// Creates a clone next to the sandbox's repository.
fn clone(sandbox: &Sandbox, name: &str, options: &[&str]) -> PathBuf {
    let (from, to) = (format!("file://{}", sandbox.work().display()), sandbox.root().join(name));
    let arguments = [&["clone", "--quiet"], options, &[from.as_str(), to.to_str().unwrap()]].concat();
    sandbox.git(arguments);
    to
}

#[test]
fn a_fresh_clone_is_enough_and_a_shallow_one_if_both_commits_are_there() {
    let sandbox = pull_request();
    sandbox.write("src/greeting.txt", "hello\n");
    commit(&sandbox, "greet");
    let in_clone = |folder: &PathBuf, arguments: &[&str]| {
        verdone(&sandbox, &[&["-C", folder.to_str().unwrap(), "verify", "--base"], arguments].concat())
    };
    let whole = clone(&sandbox, "whole", &[]);
    let told = in_clone(&whole, &["main"]);
    told.assert_code(2);
    assert!(told.stderr.contains("hint: verdone verify --base origin/main"), "{}", told.stderr);
    in_clone(&whole, &["origin/main", "US-1"]).assert_code(0);

    let shallow = clone(&sandbox, "shallow", &["--depth", "1", "--branch", "work"]);
    let told = in_clone(&shallow, &["origin/main"]);
    told.assert_code(2);
    assert!(told.stderr.contains("this clone is shallow") && told.stderr.contains("fetch-depth: 0"), "{}", told.stderr);
    let fetch = ["-C", shallow.to_str().unwrap(), "fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main"];
    sandbox.git(fetch);
    let found = in_clone(&shallow, &["origin/main", "US-1", "--json"]);
    found.assert_code(0);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found["proof"], "verified");
    assert!(found["notes"][0].as_str().unwrap().contains("this clone is shallow"), "{found}");
}

#[test]
fn wrong_names_and_missing_settings_are_told_apart() {
    let sandbox = pull_request();
    assert!(verify(&sandbox, &["no-such-branch"], 2).stderr.contains("\"no-such-branch\" is not a commit in this clone"));
    for (name, fetched) in
        [("no-such/branch", Some("no-such/branch")), ("origin/gone", Some("gone")), ("main~50", None), ("f~5", None)]
    {
        let told = verify(&sandbox, &[name], 2).stderr;
        let hint =
            fetched.map_or("hint: git log --oneline --all".to_owned(), |fetched| format!("hint: git fetch origin {fetched}\n"));
        assert!(told.contains(&hint), "{name}: {told}");
    }
    let option = verdone(&sandbox, &["verify", "--base=--upload-pack=x"]);
    option.assert_code(2);
    assert!(option.stderr.contains("is not a commit"), "{}", option.stderr);
    let root = sandbox.git(["rev-list", "--max-parents=0", "HEAD"]).trim().to_owned();
    let told = verify(&sandbox, &[&root], 4).stderr;
    assert!(told.contains("there is nothing to verify") && told.contains("settings and gates come from"), "{told}");
    sandbox.git(["switch", "--quiet", "--orphan", "alone"]);
    sandbox.git(["commit", "--quiet", "--allow-empty", "--message", "alone"]);
    assert!(verify(&sandbox, &["main"], 2).stderr.contains("main and the work have no commit in common"));
    verdone(&sandbox, &["verify", "--head", "HEAD"]).assert_code(2);
}

#[test]
fn every_format_has_the_outcome_and_the_reasons() {
    let mut sandbox = pull_request();
    sandbox.write("src/greeting.txt", "bye\n");
    commit(&sandbox, "no greeting");
    let summary = sandbox.root().join("summary.md");
    sandbox.set("GITHUB_STEP_SUMMARY", &summary);
    let github = verify(&sandbox, &["main", "US-1", "--format", "github"], 1).stdout;
    assert!(github.starts_with("::error title=Verdone%3A US-1%3A Failed::"), "{github}");
    assert!(github.lines().all(|line| line.starts_with("::")), "{github}");
    let page = fs::read_to_string(&summary).unwrap();
    assert!(page.starts_with("### Verdone: US-1: Failed\n") && page.contains("| With the work | "), "{page}");
    let junit = verify(&sandbox, &["main", "US-1", "--format", "junit"], 1).stdout;
    assert!(junit.contains("<property name=\"outcome\" value=\"failed\"/>"), "{junit}");
    assert!(junit.contains("<testsuite name=\"attempt\" tests=\"1\" failures=\"1\""), "{junit}");
    assert!(verify(&sandbox, &["main", "--format", "xml"], 2).stderr.contains("[possible values: human, json, junit, github]"));
}
