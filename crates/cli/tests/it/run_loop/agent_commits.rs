//! What the agent does to history stays in its private repository. Only its files count.

use crate::run_loop::world::{ONE, Settings, World, always, text};

const SHORT: Settings<'static> = Settings { top: "", limits: "attempts = 1\nturns = 1", tables: "" };

/// The subjects of all commits reachable from any ref of the user's repository.
fn all_subjects(world: &World) -> Vec<String> {
    world.git(&["log", "--all", "--format=%s"]).lines().map(str::to_owned).collect()
}

#[test]
fn the_agents_own_commits_are_dropped_and_its_files_are_the_storys_commit() {
    let world = World::new(ONE, &always("{ create = \"a\" }, { commit = \"my own commit\" }, { run = \"git tag mine\" }"));
    let base = world.head();
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["base"]), base);
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    assert!(!all_subjects(&world).contains(&"my own commit".to_owned()));
    world.assert_clean();
}

#[test]
fn history_that_the_agent_moves_is_its_own_copy() {
    for (name, steps, changed) in [
        ("amend", "{ create = \"a\" }, { amend = \"rewritten\" }", "M\tPLAN.md\nA\ta"),
        ("switch", "{ create = \"a\" }, { switch = \"elsewhere\" }, { commit = \"there\" }", "M\tPLAN.md\nA\ta"),
        ("detach", "{ create = \"a\" }, { run = \"git checkout --quiet --detach\" }", "M\tPLAN.md\nA\ta"),
        ("orphan", "{ run = \"git checkout --quiet --orphan new\" }, { create = \"a\" }", "M\tPLAN.md\nA\ta"),
        (
            "stash",
            "{ create = \"a\" }, { run = \"git stash --quiet --include-untracked; git stash apply --quiet\" }",
            "M\tPLAN.md\nA\ta",
        ),
        // Files count, and this one is gone.
        ("reset", "{ run = \"git reset --quiet --hard HEAD^\" }, { create = \"a\" }", "M\tPLAN.md\nA\ta\nD\tsecond"),
    ] {
        let world = World::with(ONE, &always(steps), &SHORT);
        world.sandbox.write("second", "");
        world.git(&["add", "second"]);
        world.git(&["commit", "--quiet", "-m", "second"]);
        world.run(0);
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "second", "initial"], "{name}");
        assert_eq!(world.git(&["diff", "--name-status", "--no-renames", "HEAD^", "HEAD"]), changed, "{name}");
        assert!(!all_subjects(&world).iter().any(|subject| subject == "rewritten" || subject == "there"), "{name}");
        world.assert_clean();
    }
}

#[test]
fn of_a_rejected_attempt_the_files_are_kept_and_its_own_commits_are_not() {
    let world = World::with(ONE, &always("{ create = \"x\" }, { commit = \"half done\" }"), &SHORT);
    let base = world.head();
    world.run(4);
    assert_eq!(world.head(), base);
    assert!(world.tree_files(&world.kept()).contains(&"x".to_owned()));
    assert_eq!(world.git(&["rev-parse", &format!("{}^", world.kept())]), base);
    assert!(!all_subjects(&world).contains(&"half done".to_owned()));
    world.assert_clean();
}

#[test]
fn what_the_agent_staged_or_unstaged_makes_no_difference() {
    let steps = "{ create = \"a\" }, { run = \"git add a\" }, { edit = \"README.md\", find = \"A\", replace = \"The\" }, { run = \"git rm --quiet --cached PLAN.md\" }";
    let world = World::new(ONE, &always(steps));
    world.run(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\nREADME.md\na");
    world.assert_clean();
}
