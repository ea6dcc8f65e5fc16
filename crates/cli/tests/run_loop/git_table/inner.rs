//! Submodules and other repositories inside the repository: opaque, never staged, never deleted.

use super::{SHORT, assert_refused};
use crate::world::{HONEST, ONE, World, always, text};

fn with_submodule(script: &str) -> World {
    let world = World::folder(script, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.repo();
    make_repository(&world, "../lib");
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub"]);
    world.git(&["commit", "--quiet", "-m", "submodule"]);
    world
}

fn make_repository(world: &World, path: &str) {
    world.git(&["init", "--quiet", path]);
    world.sandbox.write(format!("{path}/file"), "inner\n");
    world.git(&["-C", path, "add", "file"]);
    world.git(&["-C", path, "commit", "--quiet", "-m", "inner"]);
}

#[test]
fn a_submodule_with_changes_is_refused_at_the_start() {
    let world = with_submodule(HONEST);
    world.sandbox.write("sub/file", "changed\n");
    let message = "repositories inside this one have changes that a checkpoint cannot keep: sub";
    assert_refused(&world.verdone(&["run"]), message, "commit or discard them there: git -C sub status");
    assert_eq!(world.sandbox.read("sub/file"), "changed\n");
    world.sandbox.write("sub/file", "inner\n");
    world.run(0);
    assert!(world.git(&["ls-tree", "HEAD", "sub"]).starts_with("160000 commit"));
    world.assert_clean();
}

#[test]
fn a_story_that_changes_a_submodule_fails_with_that_reason() {
    for change in ["echo more >> sub/file", "git -C sub commit --quiet --allow-empty -m moved", "git rm --quiet --cached sub"] {
        let world = with_submodule(&always(&format!("{{ create = \"a\" }}, {{ run = '{change}' }}")));
        let before = world.git(&["rev-parse", "HEAD:sub"]);
        world.run(4);
        assert_eq!(text(&world.last("verified")["reason"]), "the submodule sub was changed", "{change}");
        assert_eq!(world.git(&["rev-parse", "HEAD:sub"]), before, "{change}");
        assert!(world.has("sub/file"), "never deleted: {change}");
    }
}

#[test]
fn a_submodule_that_an_attempt_made_is_moved_into_the_runs_directory() {
    let steps = "{ create = \"a\" }, { run = 'git -c protocol.file.allow=always submodule --quiet add ../lib made' }";
    let world = World::with(ONE, &always(steps), &SHORT);
    make_repository(&world, "../lib");
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "the submodule made was changed");
    assert!(!world.has("made") && !world.has(".gitmodules"));
    assert!(world.run_dir().join("aside/made/file").exists());
    world.assert_clean();
}

#[test]
fn a_repository_of_the_users_is_left_alone() {
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }, { run = 'git add --all' }"), 4)] {
        let world = World::with(ONE, &script, &SHORT);
        make_repository(&world, "inner");
        let inside = world.git(&["-C", "inner", "rev-parse", "HEAD"]);
        world.run(code);
        assert_eq!(world.git(&["-C", "inner", "rev-parse", "HEAD"]), inside);
        assert!(!world.tree_files("HEAD").iter().any(|path| path.starts_with("inner")));
        assert_eq!(world.git(&["status", "--porcelain"]), "?? inner/");
    }
}

#[test]
fn a_repository_of_the_users_with_changes_is_refused_and_a_story_that_changes_one_fails() {
    let world = World::with(ONE, &always("{ create = \"a\" }, { run = 'echo agent > inner/file' }"), &SHORT);
    make_repository(&world, "inner");
    world.sandbox.write("inner/file", "not committed\n");
    let message = "repositories inside this one have changes that a checkpoint cannot keep: inner";
    assert_refused(&world.verdone(&["run"]), message, "add it to .gitignore");
    world.git(&["-C", "inner", "checkout", "--quiet", "file"]);
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "the repository inside this one was changed: inner");
    assert!(world.has("inner/.git"), "never deleted");
}

#[test]
fn a_repository_that_an_attempt_made_is_moved_into_the_runs_directory() {
    let world = World::with(ONE, &always("{ create = \"a\" }, { run = 'git init --quiet made; echo x > made/file' }"), &SHORT);
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "a repository was made inside this one: made");
    assert!(!world.has("made"));
    assert!(world.run_dir().join("aside/made/file").exists());
}
