//! What a loop's work does to how git sees the files: a check then sees other files than any tree of git.

use std::fs;

use serde_json::json;

use crate::stop_gate::{Said, arm, name_the_author, stop, verdone, world};
use crate::world::{Mode, World};

const CHECK: &str = "test \"$(cat a)\" = good\n";
const WEAK: &str = "test -f a\n";

type Step = Box<dyn Fn(&World)>;

#[test]
fn what_hides_a_changed_check_from_git_holds_until_it_is_undone() {
    let plan = "- [ ] US-001: Do it\n  - Verification: `sh t.sh`\n";
    let config = "[stop]\ncommit = true\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n";
    let mut world = world(config, &[("PLAN.md", plan), ("t.sh", CHECK)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    // Commands of every day change settings, too.
    world.git(&["remote", "add", "origin", "/nowhere"]);
    world.git(&["config", "branch.main.remote", "origin"]);
    world.write("a", "bad\n");
    let elsewhere = world.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("t.sh"), CHECK).unwrap();
    fs::write(world.root.join("included"), "[core]\n\tautocrlf = input\n").unwrap();
    let set = |key: &'static str, value: String| move |world: &World| world.git(&["config", key, &value]);
    let unset = |key: &'static str| move |world: &World| world.git(&["config", "--unset-all", key]);
    let marks = |marks: [&'static str; 2]| move |world: &World| world.git(&["update-index", marks[0], marks[1]]);
    let tricks: [(&str, Step, Step); 5] = [
        (
            "was added; delete it (.git/info/attributes)",
            Box::new(|world| {
                world.write(".git/info/attributes", "t.sh filter=f\n");
            }),
            Box::new(|world| fs::remove_file(world.work.join(".git/info/attributes")).unwrap()),
        ),
        (
            "filter.f.clean was set; `git config --unset-all filter.f.clean` takes it back",
            Box::new(set("filter.f.clean", "git show HEAD:%f".to_owned())),
            Box::new(unset("filter.f.clean")),
        ),
        (
            "t.sh changed out of git's sight",
            Box::new(marks(["--assume-unchanged", "t.sh"])),
            Box::new(marks(["--no-assume-unchanged", "t.sh"])),
        ),
        ("include.path was set", Box::new(set("include.path", "../../included".to_owned())), Box::new(unset("include.path"))),
        (
            "core.worktree was set",
            Box::new(set("core.worktree", elsewhere.display().to_string())),
            Box::new(unset("core.worktree")),
        ),
    ];
    world.write("t.sh", WEAK);
    // What was seen of this tree before anything was hidden is not good enough for its commit.
    stop(&world).blocked("seen");
    verdone(&world, &["claim", "seen", "--note", "I looked", "--session", "s1"]);
    for (said, trick, undo) in &tricks {
        trick(&world);
        let reason = stop(&world).blocked("The checks pass, but this looks like tampering");
        assert!(reason.contains(said), "no {said:?} in: {reason}");
        undo(&world);
    }
    assert!(world.read("PLAN.md").contains("[ ] US-001"));
    // The same tree, and nothing is hidden any more: what was seen of it does not stand.
    stop(&world).let_go("with it as it was, sh t.sh failed");
}

#[test]
fn a_repository_inside_a_hook_of_git_and_a_rule_to_ignore_that_changed_leave_a_story_unproven() {
    let plan = "- [ ] US-001: One\n  - Verification: `sh inside/t.sh`\n- [ ] US-002: Two\n  - Verification: `make ready`\n";
    let makefile = "ready:\n\tgrep -q good two\n";
    let world = world("", &[("PLAN.md", plan), ("hidden", "1\n"), ("Makefile", makefile)]);
    let inside = ["-C", "inside", "-c", "user.name=dev", "-c", "user.email=dev@example.org"];
    world.write("inside/t.sh", CHECK);
    world.git(&["init", "--quiet", "inside"]);
    world.git(&[&inside[..], &["add", "."]].concat());
    world.git(&[&inside[..], &["commit", "--quiet", "-m", "inside"]].concat());
    world.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inside"]);
    world.git(&[&inside[2..], &["commit", "--quiet", "-m", "inside"]].concat());
    world.git(&["update-index", "--skip-worktree", "hidden"]);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("a", "bad\n");
    world.write("inside/t.sh", WEAK);
    let reason = stop(&world).blocked("story US-001 is unproven");
    assert!(reason.contains("a repository inside was changed, and no tree of git shows what is in it (inside)"), "{reason}");
    // As it was.
    world.git(&[&inside[..], &["checkout", "--quiet", "."]].concat());
    world.write("a", "good\n");
    world.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    world.write("two", "bad\n");
    // A rule that hides itself, too.
    world.write("GNUmakefile", "ready:\n\ttrue\n");
    world.write(".gitignore", "GNUmakefile\n.gitignore\n");
    // What the user hid is not the agent's to change.
    world.write("hidden", "2\n");
    stop(&world).blocked("hidden changed out of git's sight");
    world.write("hidden", "1\n");
    let Said::Told(told) = stop(&world) else { panic!("not let go") };
    assert!(told.contains("was added; delete it (.git/hooks/pre-commit)") && told.contains("2 of them unproven"), "{told}");
    assert!(told.contains("GNUmakefile changed, which its own check runs; with it as it was, make ready failed"), "{told}");
}

#[test]
fn what_is_hidden_after_the_last_story_was_marked_holds_too() {
    let plan = "- [ ] US-001: One\n  - Verification: `sh t.sh`\n- [ ] US-002: Two\n  - Verification: `test -f two`\n";
    let world = world("", &[("PLAN.md", plan), ("t.sh", CHECK)]);
    arm(&world, &["--plan", "PLAN.md"]);
    let task = |event: &str| json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": event, "task_id": "1", "task_subject": "Write docs" });
    world.ask(Mode::Session, &task("TaskCreated"));
    world.write("a", "good\n");
    stop(&world).blocked("story US-001 is verified");
    world.write("a", "bad\n");
    world.write("t.sh", WEAK);
    world.write("two", "");
    stop(&world).blocked("- Write docs");
    assert_eq!(world.read("PLAN.md").matches("[x]").count(), 2);
    world.ask(Mode::Session, &task("TaskCompleted"));
    world.git(&["config", "filter.f.clean", "git show HEAD:%f"]);
    world.write(".git/info/attributes", "t.sh filter=f\n");
    stop(&world).blocked("The checks pass, but this looks like tampering");
    world.git(&["config", "--unset-all", "filter.f.clean"]);
    fs::remove_file(world.work.join(".git/info/attributes")).unwrap();
    stop(&world).let_go("COMPLETE: all 2 stories of the loop passed, 2 of them unproven");
}
