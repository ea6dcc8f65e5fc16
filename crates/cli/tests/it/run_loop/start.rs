//! When a run refuses to start, and that it then changes nothing.

use crate::run_loop::world::{HONEST, ONE, Settings, World, always};

/// Asserts a refusal with exit code 2 and this text, and that nothing changed.
#[track_caller]
fn assert_refused(world: &World, arguments: &[&str], words: &str) {
    let seen = || (world.sandbox.run("git", ["status", "--porcelain"]).stdout, world.sandbox.run("git", ["for-each-ref"]).stdout);
    let before = seen();
    let output = world.run_with(arguments, 2);
    assert!(output.stderr.contains(words), "{}", output.transcript());
    assert_eq!(seen(), before, "nothing may change");
    assert!(!world.has("a"));
}

#[test]
fn an_edited_plan_or_config_is_not_dirt() {
    let world = World::new(ONE, HONEST);
    world.sandbox.write("PLAN.md", ONE.replace("Write a", "Write the a"));
    world.sandbox.write(".verdone/config.toml", world.sandbox.read(".verdone/config.toml") + "# edited\n");
    world.run(0);
    assert_eq!(world.subjects()[0], "feat(US-001): Write the a");
}

#[test]
fn a_missing_identity_is_refused() {
    let mut world = World::new(ONE, HONEST);
    world.git(&["config", "user.useConfigOnly", "true"]);
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"] {
        world.sandbox.set(name, "");
    }
    assert_refused(&world, &[], "git config user.name");
}

#[test]
fn no_repository_and_a_bare_one_are_refused() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    let output = world.run(2);
    assert!(output.stderr.contains("git init"), "{}", output.stderr);
    world.git(&["init", "--quiet", "--bare", "bare.git"]);
    let output = world.verdone(&["-C", "bare.git", "run"]);
    output.assert_code(2);
    assert!(output.stderr.contains("bare"), "{}", output.stderr);
}

#[test]
fn a_story_that_nothing_can_check_is_refused_with_three_ways_out() {
    let world = World::new("# Plan\n\n- [ ] US-001: Write a\n", HONEST);
    assert_refused(&world, &[], "--unchecked");
    world.run_with(&["--unchecked"], 0);
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "unchecked");
}

#[test]
fn a_run_inside_a_run_is_refused() {
    let mut world = World::new(ONE, HONEST);
    world.sandbox.set("VERDONE_RUN", "outer");
    assert_refused(&world, &[], "inside run outer");
}

#[test]
fn an_agent_cannot_start_a_run_of_its_own() {
    let script = always(&format!(
        "{{ run = '{} run; echo the inner run said $?' }}, {{ create = \"a\" }}",
        crate::run_loop::world::VERDONE
    ));
    let world = World::new(ONE, &script);
    let output = world.run(0);
    assert!(output.stdout.contains("the inner run said 2"), "{}", output.stdout);
    assert_eq!(world.subjects().len(), 2);
}

#[test]
fn a_missing_agent_or_gate_is_refused_before_anything_happens() {
    let world = World::new(ONE, HONEST);
    assert_refused(&world, &["--agent-command", "no-such-agent --flag"], "no-such-agent");
    assert_refused(&world, &["--check", "no-such-tool"], "no-such-tool");
}

#[test]
fn a_run_and_the_demo_need_nothing_but_git_on_the_path() {
    let sandbox = verdone_testkit::Sandbox::only_git();
    sandbox.verdone(crate::run_loop::world::VERDONE, ["demo"]).assert_code(0);
    sandbox.write(".verdone/script.toml", HONEST);
    let settings = "[protect]\nwork = [\"a\"]\n[run]\nland = \"auto\"\n[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n";
    sandbox.write(".verdone/config.toml", settings);
    sandbox.write("PLAN.md", ONE);
    sandbox.repo();
    sandbox.verdone(crate::run_loop::world::VERDONE, ["run"]).assert_code(0);
    assert_eq!(sandbox.git(["log", "-1", "--format=%s"]), "feat(US-001): Write a");
}

#[test]
fn an_agent_that_is_not_executable_is_named_with_the_mend() {
    let world = World::new(ONE, HONEST);
    world.sandbox.write("agent.sh", "#!/bin/sh\n");
    let output = world.verdone(&["run", "--agent", "command", "--agent-command", "./agent.sh"]);
    output.assert_code(2);
    assert!(
        output.stderr.contains("./agent.sh is not executable") && output.stderr.contains("chmod +x ./agent.sh"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_plan_outside_of_the_project_is_worked_on_however_it_is_named() {
    for name in ["../plans/plan.md", "../plans", "sub/../../plans/plan.md", "absolute"] {
        let world = World::folder(HONEST, &Settings::default());
        world.sandbox.write("sub/keep", "");
        world.sandbox.repo();
        world.sandbox.write("../plans/plan.md", ONE);
        let plan = std::fs::canonicalize(world.sandbox.path("../plans/plan.md")).unwrap();
        let named = if name == "absolute" { plan.to_str().unwrap() } else { name };
        world.run_with(&[named], 0);
        assert_eq!(std::fs::read_to_string(plan).unwrap(), ONE.replace("[ ]", "[x]"), "{name}");
        assert!(world.has("a"));
        world.assert_clean();
    }
    let world = World::with(ONE, HONEST, &Settings::default());
    let output = world.run_with(&["../missing.md"], 2);
    assert!(output.stderr.contains("there is no plan at ") && !output.stderr.contains("fatal"), "{}", output.stderr);
}

#[test]
fn a_subfolder_finds_the_plan_of_its_project() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write("sub/keep", "");
    world.sandbox.repo();
    std::fs::remove_dir_all(world.sandbox.path(".verdone")).unwrap();
    let output = world.verdone(&["-C", "sub", "plan", "show"]);
    output.assert_code(0);
    assert!(output.stdout.contains("US-001"), "{}", output.stdout);
}
