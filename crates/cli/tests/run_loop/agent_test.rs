//! Stories without a check of their own: tests that the attempt brings along prove them only as a difference, in clean trees.

use std::path::PathBuf;

use crate::world::{Settings, World, text};

const PLAN: &str = "# Plan\n\n### US-001: Greet\n\n- [ ] The program greets\n";
const BATS: &str = "#!/bin/sh\n# As much of bats as a test needs: each file is a script.\necho \"1..$#\"\nn=0 bad=0\n\
                    for file in \"$@\"; do n=$((n + 1)); if sh \"$file\"; then echo \"ok $n $file\"; else echo \"not ok $n $file\"; bad=1; fi; done\n\
                    exit $bad\n";

fn world(script: &str, top: &str, tables: &str) -> World {
    let tables = format!("[[gate]]\nname = \"unit\"\ncommand = \"true\"\n{tables}");
    let settings = Settings { top, limits: "attempts = 1\nturns = 1", tables: &tables };
    let world = World::folder(script, &settings);
    world.sandbox.write("PLAN.md", PLAN);
    world.sandbox.write(".gitignore", "secret.txt\n");
    world.sandbox.write("tests/old.bats", "true\n");
    world.sandbox.write_script("tools/bats", BATS);
    world.sandbox.repo();
    world
}

fn turn(steps: &str) -> String {
    format!("[[turn]]\nsteps = [{steps}]\n")
}

const ASKED: &str = "own_check = \"agent-test\"";
const RUNNER: &str = "[clean]\ntest = [\"tools/bats\", \"{files}\"]\n";

#[test]
fn a_test_that_is_red_without_the_work_and_green_with_it_verifies_the_story() {
    let script =
        turn("{ create = \"greet\", text = \"hello\" }, { create = \"tests/greet it.bats\", text = \"grep -q hello greet\" }");
    let world = world(&script, ASKED, RUNNER);
    let output = world.run(0);
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "verified", "{}", output.stdout);
    let tests = &world.last("verified")["agent_test"];
    assert_eq!(text(&tests["files"][0]), "tests/greet it.bats");
    assert_eq!(tests["before"][0]["outcome"]["failed"]["code"], 1);
    assert_eq!(text(&tests["after"][0]["outcome"]), "passed");
    assert_eq!(text(&tests["after"][0]["origin"]), "agent_test");
    assert_eq!(text(&world.last("committed")["criteria"][0]["prover"]), "agent-test: tests/greet it.bats");
    let shown = world.verdone(&["show", "US-001"]).stdout;
    assert!(shown.contains("fail without its work and pass with it"), "{shown}");
    assert!(shown.contains("The program greets (agent-test: tests/greet it.bats)"), "{shown}");
    assert!(world.prompt(1).contains("the tests that you add or change"), "{}", world.prompt(1));
    world.assert_clean();
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    let left = world.verdone(&["workspace", "list"]).stdout;
    assert!(left.contains("No workspaces"), "{left}");
}

#[test]
fn what_is_no_difference_leaves_the_story_unproven_and_says_why() {
    let greet = "{ create = \"greet\", text = \"hello\" }";
    for (steps, said) in [
        (greet.to_owned(), "added or changed no test"),
        (format!("{greet}, {{ create = \"tests/greet.bats\", text = \"true\" }}"), "pass without the work"),
        ("{ create = \"tests/old.bats\", text = \"true # better\" }".to_owned(), "pass without the work"),
        (
            format!("{greet}, {{ create = \"tests/x.bats\", text = \"test -f greet\" }}, {{ run = \"chmod -x tools/bats\" }}"),
            "could not be run",
        ),
    ] {
        let world = world(&turn(&steps), ASKED, RUNNER);
        let output = world.run(0);
        assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven", "{steps}");
        assert!(output.stdout.contains(said), "{steps}: {}", output.stdout);
        assert!(world.verdone(&["report"]).stdout.contains("**unproven**"), "{steps}");
    }
}

#[test]
fn a_test_that_only_an_ignored_file_makes_green_does_not_pass() {
    let steps = "{ create = \"greet\" }, { create = \"secret.txt\", text = \"hello\" }, { create = \"tests/greet.bats\", text = \"grep -q hello secret.txt\" }";
    let world = world(&turn(steps), ASKED, &RUNNER.replace("tools/bats", "bats"));
    world.sandbox.write_script("../bin/bats", BATS);
    world.run(4);
    let tests = &world.last("verified")["agent_test"];
    assert_eq!(tests["after"][0]["outcome"]["failed"]["code"], 1, "{tests}");
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn without_the_setting_such_tests_prove_nothing_and_require_refuses_the_plan() {
    let script =
        turn("{ create = \"greet\", text = \"hello\" }, { create = \"tests/greet.bats\", text = \"grep -q hello greet\" }");
    let world = world(&script, "", RUNNER);
    world.run(0);
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven");
    let strict = self::world(&script, "own_check = \"require\"", "");
    let output = strict.run(2);
    assert!(output.stderr.contains("no check of their own: US-001"), "{}", output.stderr);
}

#[test]
fn tests_inside_of_rust_code_are_run_by_name_on_the_code_from_before() {
    let tests = "#[cfg(test)]\\nmod tests {\\n    #[test]\\n    fn doubles() { assert_eq!(super::double(2), 4); }\\n}\\n";
    let steps = format!("{{ create = \"src/number.rs\", text = \"pub fn double(n: u32) -> u32 {{ n * 2 }}\\n{tests}\" }}");
    let world = world(&turn(&steps), ASKED, "");
    let sandbox = &world.sandbox;
    sandbox.write("Cargo.toml", "[package]\nname = \"greet\"\nedition = \"2021\"\n");
    sandbox.write("src/lib.rs", "pub mod number;\n");
    sandbox.write("src/number.rs", "pub fn double(n: u32) -> u32 { n }\n");
    sandbox.write("Cargo.lock", "version = 4\n\n[[package]]\nname = \"greet\"\nversion = \"0.0.0\"\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--amend", "--no-edit"]);
    // The toolchain itself: the usual `cargo` asks a home for it that is not the test's.
    let toolchain = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    for program in ["cargo", "rustc"] {
        sandbox.add_program(program, &toolchain.with_file_name(program));
    }
    sandbox.add_tool("cc");
    sandbox.add_tool("ld");
    let output = world.run(0);
    let proof = &world.last("verified")["agent_test"];
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "verified", "{proof}\n{}", output.stdout);
    assert_eq!(text(&proof["files"][0]), "src/number.rs");
    assert_eq!(proof["before"][0]["outcome"]["failed"]["code"], 101);
    assert_eq!(proof["before"][0]["tests"]["failed"], 1, "it was built and failed without the work: {proof}");
    assert_eq!(proof["after"][0]["tests"]["passed"], 1, "{proof}");
}

#[test]
fn a_marked_script_is_a_test_and_new_rust_code_with_tests_is_unproven() {
    let steps = "{ create = \"greet\", text = \"hello\" }, { create = \"tests/greet.test.sh\", text = \"grep -q hello greet\" }";
    let marked = world(&turn(steps), ASKED, "");
    marked.run(0);
    assert_eq!(marked.trailer("HEAD", "Verdone-Verdict"), "verified", "{}", marked.last("verified"));

    let steps = "{ create = \"src/new.rs\", text = \"pub fn f() {}\\n#[cfg(test)]\\nmod tests {\\n#[test]\\nfn t() {}\\n}\\n\" }";
    let mixed = world(&turn(steps), ASKED, "");
    let output = mixed.run(0);
    assert_eq!(mixed.trailer("HEAD", "Verdone-Verdict"), "unproven");
    assert!(output.stdout.contains("those in src/new.rs cannot be taken apart from it"), "{}", output.stdout);
}
