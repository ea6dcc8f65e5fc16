//! A run that was killed in the middle of something is put in order by the next one. The `faults` test kills at every point.

use verdone_testkit::{Running, Signal};

use crate::signals::{HANGS_ONCE, wait_for_file};
use crate::world::{ONE, PATIENCE, Settings, VERDONE, World, always, text};

/// Does `steps` and hangs; at the second try it does what the story wants.
pub(crate) fn once(steps: &str) -> String {
    format!(
        "[[turn]]\nsteps = [{steps}{{ run = \"test -f ../tmp/again || {{ : > ../tmp/again; echo in-the-turn; sleep 60; }}\" }}, {{ create = \"a\" }}]\n"
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
    assert!(output.stdout.contains("is kept as"), "{}", output.stdout);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    let kept = world.git(&["log", "--format=%H", "--grep=as the dead run left it", "-1", &format!("refs/verdone/{killed}")]);
    assert!(!kept.is_empty());
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn what_the_dead_runs_agent_did_to_the_plan_and_the_settings_is_put_back_before_they_are_read() {
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
        assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "verified", "{steps}");
        assert_eq!(world.sandbox.read(".verdone/config.toml"), settings, "{steps}");
    }
}

/// What an agent may do so that a later commit goes past the user's hook, or git sees something else.
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
fn what_the_dead_runs_agent_did_to_gits_settings_and_hooks_is_put_back_before_git_is_asked() {
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
        let output = world.run(0);
        assert_eq!(world.sandbox.read("../tmp/hook"), "ran\n", "the user's hook had its say: {tampering}");
        assert_eq!(world.sandbox.read(".git/config"), config, "{tampering}");
        assert!(!world.has(".git/info/attributes"), "{tampering}");
        assert!(output.stdout.contains("put back as it was when that run began: .git/"), "{tampering}: {}", output.stdout);
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "{tampering}");
        world.assert_clean();
    }
}

#[test]
fn what_was_found_in_gits_settings_after_a_crash_is_kept() {
    let world = World::new(ONE, &once("{ run = 'test -f ../tmp/again || git config core.hooksPath ../tmp' }, "));
    kill_in_the_turn(&world);
    let killed = world.run_dir();
    assert!(killed.join("protected").is_dir(), "copies are there while they may be needed");
    world.run(0);
    let found = world.everything_kept().into_iter().filter(|(path, _)| path.starts_with(killed.join("undone/as-found")));
    assert!(found.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).any(|text| text.contains("hooksPath")));
    assert!(!killed.join("protected").exists() && !world.run_dir().join("protected").exists(), "and gone when they are not");
    world.git(&["config", "core.hooksPath", "../tmp"]);
    world.run(0);
    assert_eq!(world.git(&["config", "core.hooksPath"]), "../tmp", "what the user sets after that stays");
}

#[test]
fn settings_that_work_trees_share_are_put_back_after_a_crash_in_one_of_them() {
    let world = World::folder("", &Settings::default());
    let (again, hook) = (world.sandbox.path("../tmp/again"), world.sandbox.path("../tmp/hook"));
    let tamper =
        "git config core.hooksPath /dev/null; git config extensions.worktreeConfig true; git config --worktree core.abbrev 4";
    let run = format!("test -f {again} || {{ {tamper}; : > {again}; echo in-the-turn; sleep 60; }}", again = again.display());
    world.sandbox.write(".verdone/script.toml", always(&format!("{{ run = '{run}' }}, {{ create = \"a\" }}")));
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.repo();
    world.hook("pre-commit", &format!("echo ran >> {}", hook.display()));
    let config = world.sandbox.read(".git/config");
    let run = world.sandbox.spawn(VERDONE, ["run", "--worktree"]);
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    let output = world.run_with(&["--worktree"], 0);
    assert!(output.stdout.contains("put back as it was when that run began: "), "{}", output.stdout);
    assert_eq!(world.sandbox.read(".git/config"), config);
    assert_eq!(std::fs::read_to_string(hook).unwrap(), "ran\n");
    let own = std::fs::read_dir(world.sandbox.path(".git/worktrees")).unwrap().next().unwrap().unwrap().path();
    assert!(!own.join("config.worktree").exists());
}

#[test]
fn settings_that_a_git_hook_changed_before_the_crash_are_put_back_though_the_story_is_committed() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    let hook = "test -f ../tmp/again && exit; git config core.hooksPath /dev/null; : > ../tmp/again; sleep 60";
    world.hook("post-commit", hook);
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    let output = world.run(0);
    assert!(output.stdout.contains("put back as it was when that run began: .git/config"), "{}", output.stdout);
    assert!(!world.sandbox.read(".git/config").contains("hooksPath"));
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn killed_in_a_commit_hook_the_next_run_completes() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 60; }");
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
fn killed_right_after_the_commit_the_story_counts_as_done() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("post-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 60; }");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.run(0);
    assert!(world.git(&["notes", "--ref=verdone", "show", "HEAD"]).contains("\"verdict\": \"verified\""));
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
    assert!(world.has("half"));
}

/// Until the journal has this many lines or the run is over. Where exactly the run is then does not matter.
pub(crate) fn wait_for_events(world: &World, run: &Running, events: usize) {
    let lines = || {
        let runs = std::fs::read_dir(world.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
        let journals = runs.filter_map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")).ok());
        journals.map(|text| text.lines().count()).max().unwrap_or(0)
    };
    while lines() < events && !run.has_ended() {
        std::thread::yield_now();
    }
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

    let output = world.verdone(&["run"]);
    assert!(output.stdout.contains("was left as it is (the branch has moved since"), "{}", output.stdout);
    assert_eq!(world.git(&["merge-base", "HEAD", &mine]), mine, "the commit is still on the branch");
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
    let output = world.verdone(&["run"]);
    assert!(output.stdout.contains("was left as it is (the branch has moved since"), "{}", output.stdout);
    assert_eq!(world.git(&["merge-base", "HEAD", &theirs]), theirs, "the commit is still on the branch");
    assert!(world.has("other/a"));
}

#[test]
fn a_tick_of_ours_does_not_outlive_an_attempt_that_is_left_as_it_is() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 60; }");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"), "ticked, and not committed");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.git(&["switch", "--quiet", "-c", "elsewhere"]);
    let output = world.verdone(&["run"]);
    assert!(output.stdout.contains("US-001 was ticked in the plan and never verified"), "{}", output.stdout);
    assert_eq!(world.plan(), ONE);
}

#[test]
fn a_branch_that_the_dead_runs_agent_switched_to_is_left_again() {
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
