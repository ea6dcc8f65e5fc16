//! The next run cleans up after a killed one. The `faults` test kills at every fault point.

use verdone_testkit::Signal;

use crate::run_loop::land::{branch_of, commit};
use crate::run_loop::signals::{HANGS_ONCE, wait_for_file};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, VERDONE, World, always, text};

/// Does `steps` and hangs; in the second attempt, it does what the story asks for.
pub(crate) fn once(steps: &str) -> String {
    format!(
        "[[turn]]\nsteps = [{steps}{{ run = \"test -f ../tmp/again || {{ : > ../tmp/again; echo in-the-turn; sleep 600; }}\" }}, {{ create = \"a\" }}]\n"
    )
}

pub(crate) fn kill_in_the_turn(world: &World) {
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
}

#[test]
fn killed_in_a_turn_the_next_run_says_so_and_completes() {
    let world = World::new(ONE, &once("{ create = \"half\", text = \"half done\" }, { tick = \"US-001\" }, "));
    kill_in_the_turn(&world);
    let killed = text(&world.events()[0]["run"]);
    let output = world.run(0);
    assert!(output.stdout.contains(&format!("run {killed} did not end properly")), "{}", output.stdout);
    assert!(output.stdout.contains("the unfinished attempt at US-001 was lost with its workspace"), "{}", output.stdout);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    let left = world.verdone(&["workspace", "list"]).stdout;
    assert!(left.contains("No workspaces"), "{left}");
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn what_the_dead_runs_agent_did_to_the_plan_and_the_settings_reached_nobody() {
    for steps in [
        "{ edit = \"PLAN.md\", find = \"test -f a\", replace = \"true\" }, ",
        "{ delete = \"PLAN.md\" }, ",
        "{ create = \"PLAN.md\", text = \"no plan\" }, ",
        "{ create = \".verdone/config.toml\", text = \"nonsense = [\" }, ",
        "{ delete = \".verdone/config.toml\" }, ",
    ] {
        let world = World::new(ONE, &once(steps));
        let settings = world.sandbox.read(".verdone/config.toml");
        kill_in_the_turn(&world);
        world.run(0);
        assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"), "{steps}");
        assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified", "{steps}");
        assert_eq!(world.sandbox.read(".verdone/config.toml"), settings, "{steps}");
    }
}

/// What an agent may try so that a later commit bypasses the user's hook, or git sees something else.
const TAMPERING: [&str; 8] = [
    "rm .git/hooks/pre-commit",
    "git config core.hooksPath /dev/null",
    "git config core.worktree ../../tmp",
    "git config core.bare true",
    "echo 'nonsense [' > .git/config",
    "rm .git/config; mkfifo .git/config",
    "rm .git/config; mkdir -p .git/config/x; mkfifo .git/packed-refs .git/logs/pipe",
    "rm -r .git/hooks; ln -s ../../tmp .git/hooks; echo '* filter=x' > .git/info/attributes",
];

#[test]
fn what_the_dead_runs_agent_did_to_git_was_done_to_its_own_copy() {
    for tampering in TAMPERING {
        let script = once("{ run = 'test -f ../tmp/again || sh .verdone/tamper.sh' }, ");
        let world = World::folder(&script, &Settings::default());
        world.sandbox.write(".verdone/tamper.sh", tampering);
        world.sandbox.write("PLAN.md", ONE);
        world.sandbox.repo();
        world.sandbox.write(".git/info/exclude", "# mine\n");
        world.hook("pre-commit", "echo ran >> ../tmp/hook");
        let config = world.sandbox.read(".git/config");
        kill_in_the_turn(&world);
        world.run(0);
        assert_eq!(world.sandbox.read("../tmp/hook"), "ran\n", "the user's hook had its say: {tampering}");
        assert_eq!(world.sandbox.read(".git/config"), config, "{tampering}");
        assert!(!world.has(".git/info/attributes"), "{tampering}");
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "{tampering}");
        world.assert_clean();
    }
}

#[test]
fn killed_in_a_commit_hook_the_next_run_completes() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 600; }");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"));
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn killed_in_a_hook_that_follows_a_commit_the_next_run_completes() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("post-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 600; }");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.run(0);
    assert!(world.git(&["notes", "--ref=verdone", "show", "HEAD"]).contains("\"proof\": \"verified\""));
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    world.assert_clean();
}

#[test]
fn undo_waits_until_a_dead_run_is_in_order() {
    let world = World::new(ONE, &once("{ create = \"half\" }, "));
    kill_in_the_turn(&world);
    let undo = world.verdone(&["undo"]);
    undo.assert_code(2);
    assert!(undo.stderr.contains("verdone run"), "{}", undo.stderr);
    assert!(!world.has("half"));
}

#[test]
fn what_the_user_committed_after_a_crash_stays_on_the_branch() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.sandbox.write("mine", "my own work");
    world.git(&["add", "mine"]);
    world.git(&["commit", "--quiet", "-m", "user work"]);
    let mine = world.head();

    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "user work", "initial"]);
    assert_eq!(world.git(&["rev-parse", "HEAD^"]), mine, "the story is made on top of it");
    assert_eq!(world.sandbox.read("mine"), "my own work");
}

#[test]
fn what_another_project_of_the_repository_committed_since_stays_on_the_branch() {
    let world = World::new(ONE, HANGS_ONCE);
    for name in [".verdone/config.toml", ".verdone/script.toml", "PLAN.md"] {
        world.sandbox.write(format!("other/{name}"), world.sandbox.read(name));
    }
    world.sandbox.write("other/.verdone/script.toml", always("{ create = \"a\" }"));
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "-m", "another project"]);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.verdone(&["-C", "other", "run"]).assert_code(0);
    let theirs = world.head();
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    world.run(0);
    assert_eq!(world.git(&["rev-parse", "HEAD^"]), theirs, "the story is made on top of it");
    assert!(world.has("other/a"));
}

#[test]
fn no_plan_is_ticked_before_its_story_is_committed() {
    for committed in [true, false] {
        let world = World::new(ONE, &always("{ create = \"a\" }"));
        if !committed {
            world.sandbox.write("PLAN.md", format!("{ONE}\nMy own words.\n"));
        }
        let plan = world.plan();
        world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 600; }");
        let run = world.start();
        wait_for_file(&world, "../tmp/again");
        assert_eq!(world.plan(), plan);
        run.signal(Signal::KILL);
        run.wait(PATIENCE).assert_code(-9);
        assert_eq!(world.plan(), plan);
        world.git(&["switch", "--quiet", "-c", "elsewhere"]);
        world.run(0);
        assert_eq!(world.plan(), plan.replace("[ ]", "[x]"));
        assert!(!world.tree_files("main").contains(&"a".to_owned()), "the run landed where the user was");
    }
}

#[test]
fn a_branch_that_the_dead_runs_agent_switched_to_was_in_its_own_copy() {
    for steps in [
        "{ run = \"test -f ../tmp/again || git checkout -q -b elsewhere\" }, ",
        "{ run = \"test -f ../tmp/again || { git checkout -q -b elsewhere; git commit -q --allow-empty -m theirs; }\" }, ",
        "{ run = \"test -f ../tmp/again || git checkout -q --detach\" }, ",
    ] {
        let world = World::new(ONE, &once(steps));
        kill_in_the_turn(&world);
        world.run(0);
        assert_eq!(world.git(&["branch", "--show-current"]), "main", "{steps}");
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "{steps}");
    }
}

#[test]
fn a_commit_of_the_users_is_not_taken_for_the_verified_story() {
    let world = World::new(ONE, HONEST);
    let mut command = world.sandbox.command(VERDONE);
    command.arg("run").env("VERDONE_FAULT", "kill@commit-begin:1");
    assert!(!command.status().unwrap().success());
    let killed = world.run_dir();
    let branch = branch_of(&world);
    world.git(&["switch", "--quiet", &branch]);
    commit(&world, "unverified", "");
    world.git(&["switch", "--quiet", "main"]);
    let output = world.run(0);
    assert!(output.stdout.contains("the unfinished attempt at US-001 was lost"), "{}", output.stdout);
    let journal = std::fs::read_to_string(killed.join("journal.jsonl")).unwrap();
    assert!(!journal.contains("\"event\":\"committed\""), "{journal}");
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "unverified", "initial"]);
}
