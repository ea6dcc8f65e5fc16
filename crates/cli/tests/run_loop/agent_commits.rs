//! What the agent does to history itself.

use crate::world::{ONE, Settings, World, always, text};

const SHORT: Settings<'static> = Settings { top: "", limits: "attempts = 1\nturns = 1", tables: "" };

#[test]
fn the_agents_own_commits_stay_and_the_storys_commit_comes_on_top() {
    let world = World::new(ONE, &always("{ create = \"a\" }, { commit = \"my own commit\" }"));
    let base = world.head();
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "my own commit", "initial"]);
    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["base"]), base);
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(world.trailer("HEAD^", "Verdone-Story"), "");
    world.assert_clean();
}

#[test]
fn moved_history_fails_the_attempt_and_is_put_back() {
    for (name, steps) in [
        ("amend", "{ create = \"a\" }, { amend = \"rewritten\" }"),
        ("switch", "{ create = \"a\" }, { switch = \"elsewhere\" }, { commit = \"there\" }"),
        ("detach", "{ create = \"a\" }, { run = \"git checkout --quiet --detach\" }"),
        ("reset", "{ run = \"git reset --quiet --hard HEAD^\" }, { create = \"a\" }"),
        ("orphan", "{ run = \"git checkout --quiet --orphan new\" }, { create = \"a\" }"),
    ] {
        let world = World::with(ONE, &always(steps), &SHORT);
        world.sandbox.write("second", "");
        world.git(&["add", "second"]);
        world.git(&["commit", "--quiet", "-m", "second"]);
        let base = world.head();
        world.run(4);
        assert_eq!(world.head(), base, "{name}");
        assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{name}");
        assert_eq!(text(&world.last("attempt_rejected")["rejection"]), "history_moved", "{name}");
        assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()), "{name}");
        assert!(!world.has("a"), "{name}");
        assert_eq!(world.plan(), ONE, "{name}");
        world.assert_clean();
    }
}

#[test]
fn a_rejected_attempts_own_commits_leave_the_branch_but_are_kept() {
    let world = World::with(ONE, &always("{ create = \"x\" }, { commit = \"half done\" }"), &SHORT);
    let base = world.head();
    world.run(4);
    assert_eq!(world.head(), base);
    assert!(world.tree_files(&world.kept()).contains(&"x".to_owned()));
    let run = text(&world.events()[0]["run"]);
    assert!(world.git(&["log", "--format=%s", &format!("refs/verdone/{run}")]).lines().any(|subject| subject == "half done"));
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

#[test]
fn commits_that_a_rollback_takes_off_the_branch_are_named() {
    let world = World::with(
        ONE,
        &always("{ create = \"b\" }, { commit = \"by somebody\" }"),
        &Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() },
    );
    let output = world.run(4);
    assert!(
        output.stdout.contains("commits made during the attempt were taken off the branch; they are kept: git log "),
        "{}",
        output.stdout
    );
}
