//! A project that was set up for fresher works without changes.

use crate::lifecycle::world::{HONEST, ONE, Setting, VERDONE, World};

const CONFIG: &str = "[fresher]\nmode = \"building\"\nmax_iterations = 1\ndangerous_permissions = true\nmodel = \"opus\"\n\
                      [commands]\ntest = \"test -f README.md && : > ../tmp/gate\"\n[paths]\nspec_dir = \"requirements\"\n[hooks]\nenabled = true\ntimeout = 20\n";
const SHELL: &str = "#!/bin/bash\n# settings\nexport FRESHER_HOOK_FAIL_BEHAVIOR=\"${FRESHER_HOOK_FAIL_BEHAVIOR:-abort}\"\n\
                     export FRESHER_SLACK_WEBHOOK=\"${FRESHER_SLACK_WEBHOOK:-http://localhost/hook}\"\nrm -rf everything\n: > ../tmp/executed\n";

fn project(extra: &[(&str, &str)]) -> World {
    let scripts = [
        (
            ".fresher/hooks/started",
            "echo \"theirs $FRESHER_SPEC_DIR $FRESHER_SLACK_WEBHOOK\" >> ../tmp/ran; .fresher/hooks/custom/tool",
        ),
        (".fresher/hooks/custom/tool", "echo tool >> ../tmp/ran"),
    ];
    let world = World::new(&Setting::default(), &[&scripts[..], extra].concat());
    world.sandbox.write(".fresher/config.toml", CONFIG);
    world.sandbox.write(".fresher/config.sh", SHELL);
    world.sandbox.git(["add", "--all"]);
    world.sandbox.git(["commit", "--quiet", "-m", "fresher"]);
    world
}

#[test]
fn its_scripts_settings_and_commands_are_used_and_the_rest_is_told() {
    let world = project(&[]);
    let output = world.run(0);
    let work = world.sandbox.work();
    assert_eq!(world.noted("ran"), format!("theirs {}/requirements http://localhost/hook\ntool\n", work.display()));
    assert!(world.sandbox.path("../tmp/gate").exists(), "its test command is a gate");
    assert!(!world.sandbox.path("../tmp/executed").exists(), "config.sh is never executed");
    assert_eq!(world.all("run_started")[0]["max_iterations"], 1);
    let told = [
        ".fresher/config.toml: `fresher.dangerous_permissions` is ignored",
        ".fresher/config.toml: `fresher.model` is ignored",
        ".fresher/config.sh:5: skipped",
        ".fresher/config.sh:6: skipped",
    ];
    for words in told {
        assert_eq!(output.stdout.matches(words).count(), 1, "{words} in {}", output.stdout);
    }
    let doctor = world.sandbox.verdone(VERDONE, ["doctor"]);
    let config = world.sandbox.verdone(VERDONE, ["config", "show"]);
    for words in told {
        assert!(doctor.stdout.contains(words), "{words} in {}", doctor.stdout);
        assert!(config.stderr.contains(words), "{words} in {}", config.stderr);
    }
    assert!(config.stdout.contains(".fresher/config.toml"), "{}", config.stdout);
}

#[test]
fn its_instructions_are_in_the_prompt() {
    let world = project(&[]);
    world.sandbox.write(".fresher/PROMPT.building.md", "Prefer short functions.\n");
    world.run(0);
    let shown = world.sandbox.verdone(VERDONE, ["run", "--dry-run", "PLAN.md"]);
    let runs = std::fs::read_dir(world.sandbox.path(".verdone/runs")).unwrap().map(|run| run.unwrap().path());
    let prompts = runs.map(|run| std::fs::read_to_string(run.join("turns/1-prompt.md")).unwrap_or_default());
    assert!(prompts.into_iter().any(|prompt| prompt.contains("Prefer short functions.")), "{}", shown.stdout);
}

#[test]
fn our_script_runs_instead_of_theirs_never_both() {
    let world = project(&[("started", "echo ours >> ../tmp/ran")]);
    world.run(0);
    assert_eq!(world.noted("ran"), "ours\n");
}

#[test]
fn our_config_is_stronger_than_theirs() {
    let world = project(&[]);
    let ours = world.sandbox.read(".verdone/config.toml") + "max_iterations = 5\n[[gate]]\nname = \"own\"\ncommand = \"true\"\n";
    world.sandbox.write(".verdone/config.toml", ours);
    world.run(0);
    assert_eq!(world.all("run_started")[0]["max_iterations"], 5);
    assert!(!world.sandbox.path("../tmp/gate").exists());
}

#[test]
fn it_needs_no_folder_of_ours() {
    let sandbox = verdone_testkit::Sandbox::new();
    sandbox.write("PLAN.md", ONE);
    sandbox.write("script.toml", HONEST);
    sandbox.write("deep/below/x", "");
    sandbox.write(".fresher/config.toml", "[fresher]\nmax_iterations = 3\n");
    sandbox.write_script(".fresher/hooks/finished", "#!/bin/bash\npwd > ../tmp/ran\nexit 2\n");
    sandbox.repo();
    let world = World { sandbox };
    let agent = format!("{VERDONE} --version > a");
    let output = world.sandbox.verdone(VERDONE, ["-C", "deep/below", "run", "--agent-command", &agent, "../../PLAN.md"]);
    output.assert_code(0);
    assert_eq!(world.noted("ran"), format!("{}\n", world.sandbox.work().display()));
}
