//! `verdone verify` and `verdone gates`: the current checkout, and the known results for its files.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use verdone_testkit::{Output, PATIENCE, Sandbox};

use crate::commands::stage::{BINARY, project, repository, transcript, verdone};

/// A repository with this config, committed. Checks may write to the sandbox's `tmp/`.
fn with_config(config: &str) -> Sandbox {
    let sandbox = repository();
    let writable = sandbox.root().join("tmp");
    fs::create_dir_all(&writable).unwrap();
    sandbox.write(".verdone/config.toml", format!("{config}\n[workspace]\nwritable = [\"{}\"]\n", writable.display()));
    sandbox.write("src/text.txt", "one\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "project"]);
    sandbox
}

/// A gate that appends a line to a file outside of its workspace each time it runs.
fn counted(rest: &str, command: &str) -> String {
    format!("[[gate]]\nname = \"g\"\ncommand = \"echo ran >> $VERDONE_TEST_TMP/asked; {command}\"\n{rest}\n")
}

fn counting(config: &str) -> Sandbox {
    let mut sandbox = with_config(config);
    let tmp = sandbox.root().join("tmp");
    sandbox.set("VERDONE_TEST_TMP", &tmp);
    sandbox
}

fn asked(sandbox: &Sandbox) -> usize {
    fs::read_to_string(sandbox.root().join("tmp/asked")).map_or(0, |text| text.lines().count())
}

#[track_caller]
fn verify(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Output {
    let output = verdone(sandbox, &[&["verify"], arguments].concat());
    output.assert_code(code);
    output
}

/// The only cached result.
fn entry(sandbox: &Sandbox) -> PathBuf {
    let mut entries = fs::read_dir(sandbox.path(".verdone/cache/results")).unwrap();
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
    assert!(sandbox.read("PLAN.md").contains("- [ ] US-001"), "nothing is marked");
}

#[test]
fn uncommitted_work_is_compared_with_the_last_commit() {
    let sandbox = with_config("plan = \"PLAN.md\"\n[[gate]]\nname = \"g\"\ncommand = \"test -s src/text.txt\"\n");
    sandbox.write("PLAN.md", "- [ ] US-1: Greet\n  - Verification: `grep hello src/greeting.txt`\n");
    sandbox.write("src/greeting.txt", "hello\n");
    let output = verify(&sandbox, &["US-1", "--json"], 0);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["outcome"], &report["proof"]), (&"done".into(), &"verified".into()), "{report}");
    assert_eq!(report["exit_code"], 0);
    let trees: Vec<&String> = report["runs"].as_object().unwrap().keys().collect();
    assert_eq!(trees, ["base", "attempt"], "nothing protected was changed: {report}");
    let page = verify(&sandbox, &["US-1"], 0).stdout;
    assert!(page.starts_with("✓ US-1: Done, verified\n"), "{page}");
    assert!(page.contains("· PLAN.md has uncommitted changes; the uncommitted version is used\n"), "{page}");
    assert!(!verify(&sandbox, &[], 0).stdout.contains("PLAN.md"), "no story is asked about");
    // After the commit nothing is left to compare, and the check proves nothing.
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "work"]);
    let report: Value = serde_json::from_str(&verify(&sandbox, &["US-1", "--json"], 0).stdout).unwrap();
    assert_eq!((&report["proof"], report["trees"].get("base")), (&"untested".into(), None), "{report}");
    assert_eq!(report.get("notes"), None, "{report}");
}

#[test]
fn work_that_passes_only_with_its_own_tests_needs_a_review() {
    let sandbox = with_config("[[gate]]\nname = \"tests\"\ncommand = \"sh tests/run.sh\"\n");
    sandbox.write("tests/run.sh", "grep -q one src/text.txt\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "tests"]);
    sandbox.write("src/text.txt", "two\n");
    verify(&sandbox, &[], 1);
    sandbox.write("tests/run.sh", "true\n");
    let page = verify(&sandbox, &[], 4).stdout;
    assert!(page.starts_with("! Needs review, untested\n  ! `tests` passes only with the changed tests/run.sh"), "{page}");
    assert!(page.contains("· Changed: tests/run.sh\n"), "{page}");
}

#[test]
fn checks_never_run_in_the_checkout() {
    let sandbox = with_config("[[gate]]\nname = \"g\"\ncommand = \"echo two > src/text.txt; touch left; rm README.md\"\n");
    verify(&sandbox, &[], 0);
    assert_eq!(sandbox.read("src/text.txt"), "one\n");
    assert!(!sandbox.path("left").exists() && sandbox.path("README.md").exists());
    assert_eq!(sandbox.git(["status", "--porcelain"]), "");
}

#[test]
fn what_gives_no_answer_does_not_pass() {
    assert!(verify(&repository(), &[], 4).stderr.contains("there is nothing to verify"));
    let empty = "printf 'running 0 tests\\n\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n'";
    let sandbox = with_config("[[gate]]\nname = \"t\"\ncommand = \"cargo test\"\n");
    sandbox.add_script("cargo", &format!("#!/bin/sh\n{empty}\n"));
    assert!(verify(&sandbox, &[], 1).stdout.contains("`t` gave no answer: no tests were run"));
    let advisory = with_config("[[gate]]\nname = \"t\"\nblocking = false\ncommand = \"true\"\n");
    assert!(verify(&advisory, &[], 4).stdout.contains("is unchecked, but at least untested is required"));
    let missing = with_config("[[gate]]\nname = \"t\"\ncommand = \"no-such-tool\"\n");
    assert!(verify(&missing, &[], 1).stdout.contains("? t command not found"));
    let broken = with_config("[[gate]]\nname = \"t\"\ncommand = \"true\"\nretrys = 1\n");
    assert!(verify(&broken, &[], 2).stderr.contains("did you mean `retries`?"));
    let unborn = Sandbox::new();
    unborn.git(["init", "--quiet"]);
    unborn.write(".verdone/config.toml", "[[gate]]\nname = \"t\"\ncommand = \"true\"\n");
    assert!(verify(&unborn, &[], 2).stderr.contains("there is no commit yet"));
}

#[test]
fn settings_of_the_first_edition_name_what_replaced_them() {
    for (config, hint) in [
        ("[clean]\nshare = [\"node_modules\"]\n", "[workspace] folders"),
        ("[[gate]]\nname = \"t\"\ncommand = \"true\"\nwhere = \"clean\"\n", "[workspace]"),
        ("[[gate]]\nname = \"t\"\ncommand = \"true\"\nshare = [\"a\"]\n", "[workspace] folders"),
        ("[[gate]]\nname = \"t\"\ncommand = \"true\"\nsetup = [\"a\"]\n", "[workspace] folders"),
    ] {
        let sandbox = repository();
        sandbox.write(".verdone/config.toml", config);
        let told = verify(&sandbox, &[], 2).stderr;
        assert!(told.contains("is no longer a setting") && told.contains(hint), "{config}: {told}");
    }
}

#[test]
fn asking_twice_about_the_same_files_runs_nothing_and_every_change_runs_it_again() {
    let sandbox = counting(&counted("inputs = [\"ignored.env\"]", "true"));
    sandbox.write(".gitignore", "ignored.env\nother.env\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "ignored"]);
    let index = fs::read(sandbox.path(".git/index")).unwrap();
    verify(&sandbox, &[], 0);
    assert!(verify(&sandbox, &[], 0).stdout.contains("cached"));
    assert_eq!(asked(&sandbox), 1);
    assert_eq!(fs::read(sandbox.path(".git/index")).unwrap(), index, "the user's index is untouched");

    let mut runs = 1;
    let mut changed = |change: &dyn Fn(), more: usize| {
        change();
        verify(&sandbox, &[], 0);
        runs += more;
        assert_eq!(asked(&sandbox), runs);
    };
    changed(&|| sandbox.write("src/text.txt", "two\n"), 1);
    changed(&|| sandbox.write("src/new.txt", "new\n"), 1);
    changed(&|| drop(sandbox.git(["add", "--all"])), 0);
    changed(&|| drop(sandbox.git(["commit", "--quiet", "--message", "the same files"])), 0);
    changed(&|| sandbox.write("other.env", "A=1\n"), 0);
    changed(&|| sandbox.write("ignored.env", "A=1\n"), 1);
    changed(&|| sandbox.write("ignored.env", "A=2\n"), 1);
    verify(&sandbox, &["--no-cache"], 0);
    assert_eq!(asked(&sandbox), runs + 1);
    assert!(sandbox.git(["status", "--porcelain", "--ignored"]).contains("!! .verdone/cache/"));
}

#[test]
fn a_killed_verification_leaves_no_check_behind() {
    let mut sandbox = with_config(
        "[limits]\ngrace = \"100ms\"\n[[gate]]\nname = \"g\"\n\
         command = \"(sleep 600 & setsid sleep 600 & : > $VERDONE_TEST_TMP/started; wait)\"\n",
    );
    let tmp = sandbox.root().join("tmp");
    sandbox.set("VERDONE_TEST_TMP", &tmp);
    let running = sandbox.spawn(BINARY, ["verify"]);
    let until = Instant::now() + PATIENCE;
    while !tmp.join("started").exists() {
        assert!(Instant::now() < until, "the gate never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    running.wait(PATIENCE).assert_code(-9);
    sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn an_interrupted_verification_says_so_and_ends_with_the_code_of_the_signal() {
    let mut sandbox = with_config(
        "[limits]\ngrace = \"100ms\"\n[[gate]]\nname = \"g\"\ncommand = \": > $VERDONE_TEST_TMP/started; sleep 600\"\n",
    );
    let tmp = sandbox.root().join("tmp");
    sandbox.set("VERDONE_TEST_TMP", &tmp);
    let running = sandbox.spawn(BINARY, ["verify"]);
    let until = Instant::now() + PATIENCE;
    while !tmp.join("started").exists() {
        assert!(Instant::now() < until, "the gate never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let output = running.wait(PATIENCE);
    output.assert_code(130);
    assert!(output.stdout.contains("The verification was interrupted"), "{}", output.stdout);
}

#[test]
fn another_environment_is_another_question() {
    let mut sandbox = counting(&counted("", "true"));
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
    let sandbox = counting(&counted("", "exit 1"));
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
fn a_file_that_is_hidden_from_git_is_named_as_not_verified() {
    let sandbox = with_config("[[gate]]\nname = \"g\"\ncommand = \"grep -q one src/text.txt\"\n");
    let page = verify(&sandbox, &[], 0).stdout;
    assert!(!page.contains("were not verified"), "{page}");
    sandbox.git(["update-index", "--assume-unchanged", "src/text.txt"]);
    sandbox.write("src/text.txt", "broken\n");
    let page = verify(&sandbox, &[], 0).stdout;
    assert!(page.replace("\n ", "").contains("were not verified"), "{page}");
}

#[test]
fn red_and_then_green_on_the_same_files_is_flaky_and_never_kept() {
    let sandbox = counting(&counted("", "test -e $VERDONE_TEST_TMP/mended"));
    verify(&sandbox, &[], 1);
    assert!(verify(&sandbox, &[], 1).stdout.contains("cached"));
    fs::write(sandbox.root().join("tmp/mended"), "").unwrap();
    assert!(verify(&sandbox, &["--no-cache"], 0).stdout.contains("(flaky)"));
    verify(&sandbox, &[], 1);
    assert_eq!(asked(&sandbox), 2);
}
