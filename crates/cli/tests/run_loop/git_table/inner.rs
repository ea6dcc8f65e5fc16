//! Submodules and other repositories inside the repository: never changed, staged or deleted.

use super::SHORT;
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
fn a_submodule_with_changes_stays_as_it_is() {
    let world = with_submodule(HONEST);
    world.sandbox.write("sub/file", "changed\n");
    world.run(0);
    assert_eq!(world.sandbox.read("sub/file"), "changed\n");
    assert!(world.git(&["ls-tree", "HEAD", "sub"]).starts_with("160000 commit"));
    assert_eq!(world.git(&["status", "--porcelain"]), " M sub");
}

#[test]
fn what_an_agent_does_to_a_submodule_is_not_committed_and_does_not_reach_the_user() {
    for change in ["echo more >> sub/file", "git -C sub commit --quiet --allow-empty -m moved", "git rm --quiet --cached sub"] {
        let world = with_submodule(&always(&format!("{{ create = \"a\" }}, {{ run = '{change}' }}")));
        let before = world.git(&["rev-parse", "HEAD:sub"]);
        world.run(0);
        assert_eq!(world.git(&["rev-parse", "HEAD:sub"]), before, "{change}");
        assert_eq!(world.git(&["-C", "sub", "rev-parse", "HEAD"]), before, "{change}");
        assert_eq!(world.sandbox.read("sub/file"), "inner\n", "{change}");
        world.assert_clean();
    }
}

#[test]
fn a_submodule_that_an_attempt_made_is_refused() {
    let steps = "{ create = \"a\" }, { run = 'git -c protocol.file.allow=always submodule --quiet add ../tmp/lib made' }";
    let world = World::with(ONE, &always(steps), &SHORT);
    make_repository(&world, "../tmp/lib");
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "made is a git repository inside this one");
    assert!(!world.has("made") && !world.has(".gitmodules"));
    let kept = world.tree_files(&world.kept());
    assert!(kept.contains(&"a".to_owned()) && kept.contains(&".gitmodules".to_owned()), "{kept:?}");
    world.assert_clean();
}

#[test]
fn a_repository_of_the_users_is_left_alone() {
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }, { run = 'git add --all; rm -rf inner' }"), 4)] {
        let world = World::with(ONE, &script, &SHORT);
        make_repository(&world, "inner");
        let inside = world.git(&["-C", "inner", "rev-parse", "HEAD"]);
        world.sandbox.write("inner/file", "not committed\n");
        world.run(code);
        assert_eq!(world.git(&["-C", "inner", "rev-parse", "HEAD"]), inside);
        assert_eq!(world.sandbox.read("inner/file"), "not committed\n");
        assert!(!world.tree_files("HEAD").iter().any(|path| path.starts_with("inner")));
        assert_eq!(world.git(&["status", "--porcelain"]), "?? inner/");
    }
}

#[test]
fn a_repository_that_an_attempt_made_is_refused() {
    let world = World::with(ONE, &always("{ create = \"a\" }, { run = 'git init --quiet made; echo x > made/file' }"), &SHORT);
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "made is a git repository inside this one");
    assert!(!world.has("made"));
    assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
}
