//! `verdone verify` and `verdone gates`: checks by hand, and what is known of a tree.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use verdone_testkit::{Output, Sandbox};

use crate::stage::{BINARY, project, repository, transcript, verdone};

const PATIENCE: Duration = Duration::from_mins(1);

/// A repository with this config, committed.
fn with_config(config: &str) -> Sandbox {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", config);
    sandbox.write("src.txt", "one\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "project"]);
    sandbox
}

/// A gate that leaves a line outside of the repository each time that it is run.
fn counted(rest: &str, command: &str) -> String {
    format!("[[gate]]\nname = \"g\"\ncommand = \"echo ran >> ../asked; {command}\"\n{rest}\n")
}

fn asked(sandbox: &Sandbox) -> usize {
    fs::read_to_string(sandbox.root().join("asked")).map_or(0, |text| text.lines().count())
}

#[track_caller]
fn verify(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Output {
    let output = verdone(sandbox, &[&["verify"], arguments].concat());
    output.assert_code(code);
    output
}

/// The only kept result.
fn entry(sandbox: &Sandbox) -> PathBuf {
    let mut entries = fs::read_dir(sandbox.path(".verdone/cache/gates")).unwrap();
    entries.next().unwrap().unwrap().path()
}

#[test]
fn gates_and_a_storys_checks_can_be_run_by_hand() {
    let sandbox = project();
    let commands: [&[&str]; 7] = [
        &["gates"],
        &["verify"],
        &["gates"],
        &["verify", "US-001"],
        &["verify", "US-009"],
        &["verify", "--stage", "quality"],
        &["gates", "--json"],
    ];
    let outputs = transcript("verify", &sandbox, &commands);
    let codes: Vec<i32> = outputs.iter().map(|output| output.code).collect();
    assert_eq!(codes, [0, 0, 0, 1, 2, 2, 0]);
    sandbox.write("greeting.txt", "hello\n");
    let report: Value = serde_json::from_str(&verify(&sandbox, &["US-001", "--json"], 0).stdout).unwrap();
    assert_eq!(report["verdict"], "passed");
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    assert!(sandbox.read("PLAN.md").contains("- [ ] US-001"), "nothing is marked");
}

#[test]
fn where_nothing_can_be_told_the_exit_code_says_so() {
    assert!(verify(&repository(), &[], 4).stderr.contains("there is nothing to verify"));
    let empty = "printf 'running 0 tests\\n\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n'";
    let sandbox = with_config("[[gate]]\nname = \"t\"\ncommand = \"cargo test\"\n");
    sandbox.add_script("cargo", &format!("#!/bin/sh\n{empty}\n"));
    assert!(verify(&sandbox, &[], 4).stdout.contains("no tests were run"));
    let advisory = with_config("[[gate]]\nname = \"t\"\nblocking = false\ncommand = \"true\"\n");
    verify(&advisory, &[], 4);
    let missing = with_config("[[gate]]\nname = \"t\"\ncommand = \"no-such-tool\"\n");
    verify(&missing, &[], 4);
    let broken = with_config("[[gate]]\nname = \"t\"\ncommand = \"true\"\nretrys = 1\n");
    assert!(verify(&broken, &[], 2).stderr.contains("did you mean `retries`?"));
}

#[test]
fn asking_twice_about_the_same_tree_runs_nothing_and_every_change_runs_it_again() {
    let sandbox = with_config(&counted("inputs = [\"ignored.env\"]", "true"));
    sandbox.write(".gitignore", "ignored.env\nother.env\n");
    let index = fs::read(sandbox.path(".git/index")).unwrap();
    verify(&sandbox, &[], 0);
    assert!(verify(&sandbox, &[], 0).stdout.contains("cached"));
    assert_eq!(asked(&sandbox), 1);
    assert_eq!(fs::read(sandbox.path(".git/index")).unwrap(), index, "the user's index is as it was");

    let mut runs = 1;
    let mut changed = |change: &dyn Fn(), runs_again: bool| {
        change();
        verify(&sandbox, &[], 0);
        runs += usize::from(runs_again);
        assert_eq!(asked(&sandbox), runs);
    };
    changed(&|| sandbox.write("src.txt", "two\n"), true);
    changed(&|| sandbox.write("new.txt", "new\n"), true);
    changed(&|| sandbox.write("ignored.env", "A=1\n"), true);
    changed(&|| sandbox.write("other.env", "A=1\n"), false);
    changed(&|| drop(sandbox.git(["add", "--all"])), true);
    changed(&|| sandbox.write("ignored.env", "A=2\n"), true);
    verify(&sandbox, &["--no-cache"], 0);
    assert_eq!(asked(&sandbox), runs + 1);
    assert!(sandbox.git(["status", "--porcelain", "--ignored"]).contains("!! .verdone/cache/"));
}

#[test]
fn whatever_a_gate_in_place_can_see_beside_the_tree_is_another_question_and_none_for_a_clean_one() {
    let clean = "[[gate]]\nname = \"c\"\nwhere = \"clean\"\ncommand = \"echo ran >> $CLEAN\"\n";
    let mut sandbox = with_config(&[&counted("", "true"), clean].concat());
    let cleanly = sandbox.root().join("clean");
    sandbox.set("CLEAN", &cleanly);
    sandbox.write(".gitattributes", "*.txt text=auto\n");
    std::os::unix::fs::symlink("src.txt", sandbox.path("link")).unwrap();
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "attributes"]);
    verify(&sandbox, &[], 0);
    let tree = |sandbox: &Sandbox| {
        let report: Value = serde_json::from_str(&verify(sandbox, &["--json"], 0).stdout).unwrap();
        report["tree"].clone()
    };
    let first = tree(&sandbox);
    let changes: [(&str, &dyn Fn()); 5] = [
        ("HEAD", &|| drop(sandbox.git(["commit", "--quiet", "--allow-empty", "--message", "empty"]))),
        ("branch", &|| drop(sandbox.git(["switch", "--quiet", "--create", "other"]))),
        ("empty folder", &|| fs::create_dir_all(sandbox.path("empty/inner")).unwrap()),
        ("line ends", &|| sandbox.write("src.txt", "one\r\n")),
        ("index", &|| drop(sandbox.git(["update-index", "--force-remove", "link"]))),
    ];
    for (number, (what, change)) in changes.iter().enumerate() {
        change();
        assert_eq!(tree(&sandbox), first, "{what}: it is the same tree for git");
        assert_eq!(asked(&sandbox), number + 2, "{what}");
    }
    assert!(verify(&sandbox, &[], 0).stdout.contains("cached"));
    assert_eq!(asked(&sandbox), changes.len() + 1);
    assert_eq!(fs::read_to_string(cleanly).unwrap(), "ran\n", "the gate in a clean tree saw the tree alone");
}

#[test]
fn a_killed_verification_leaves_no_check_behind() {
    let gate = |name: &str, command: &str| format!("[[gate]]\nname = \"{name}\"\ncommand = \"{command}\"\n");
    let waits = "(sleep 600 & setsid sleep 600 & : > ../started; wait)";
    let sandbox = with_config(&["[limits]\ngrace = \"100ms\"\n", &gate("g", waits)].concat());
    let running = sandbox.spawn(BINARY, ["verify"]);
    let until = Instant::now() + PATIENCE;
    while !sandbox.root().join("started").exists() {
        assert!(Instant::now() < until, "the gate never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    running.wait(PATIENCE).assert_code(-9);
    sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn another_environment_is_another_question() {
    let mut sandbox = with_config(&counted("", "true"));
    verify(&sandbox, &[], 0);
    sandbox.set("SKIP_THE_TESTS", "1");
    verify(&sandbox, &[], 0);
    assert_eq!(asked(&sandbox), 2);
    sandbox.set("COLUMNS", "44");
    verify(&sandbox, &[], 0);
    assert_eq!(asked(&sandbox), 2, "the width of a terminal changes nothing");
}

#[test]
fn a_forged_result_opens_nothing() {
    let sandbox = with_config(&counted("", "exit 1"));
    verify(&sandbox, &[], 1);
    let honest = fs::read_to_string(entry(&sandbox)).unwrap();
    let forged = honest.replace("{\"failed\":{\"code\":1}}", "\"passed\"");
    assert_ne!(honest, forged);
    fs::write(entry(&sandbox), forged).unwrap();
    verify(&sandbox, &[], 1);
    assert_eq!(asked(&sandbox), 2, "it was run again");
    let secret = sandbox.home().join(".local/state/verdone/gate-results.key");
    assert_eq!(fs::read(secret).unwrap().len(), 32);
}

#[test]
fn a_file_that_is_hidden_from_git_does_not_hide_behind_an_earlier_result() {
    let sandbox = with_config(&counted("", "grep -q one src.txt"));
    verify(&sandbox, &[], 0);
    sandbox.git(["update-index", "--assume-unchanged", "src.txt"]);
    sandbox.write("src.txt", "broken\n");
    verify(&sandbox, &[], 1);
}

#[test]
fn red_and_then_green_on_the_same_tree_is_flaky_and_never_kept() {
    let sandbox = with_config(&counted("", "test -e ../mended"));
    verify(&sandbox, &[], 1);
    assert!(verify(&sandbox, &[], 1).stdout.contains("cached"));
    fs::write(sandbox.root().join("mended"), "").unwrap();
    assert!(verify(&sandbox, &["--no-cache"], 0).stdout.contains("(flaky)"));
    verify(&sandbox, &[], 1);
    assert_eq!(asked(&sandbox), 2);
}

#[test]
fn checks_that_change_what_they_check_are_run_again_and_have_to_settle() {
    let formats = with_config(&counted("", "echo one > src.txt; touch junk"));
    formats.write("src.txt", "ugly\n");
    verify(&formats, &[], 0);
    assert_eq!(asked(&formats), 2);
    let never = with_config(&counted("", "echo more >> src.txt"));
    let output = verify(&never, &[], 1);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("the checks change the files that they check"), "{}", output.stderr);
}

#[test]
fn a_file_that_was_another_one_for_a_moment_is_not_vouched_for() {
    let sandbox = with_config(&counted("", "cp src.txt ../kept; echo other > src.txt; cp ../kept src.txt"));
    verify(&sandbox, &[], 0);
    verify(&sandbox, &[], 0);
    assert_eq!(asked(&sandbox), 2);
}
