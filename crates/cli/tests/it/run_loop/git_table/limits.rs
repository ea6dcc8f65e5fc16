//! Files that are too large: not committed if an attempt creates them, no problem if they are the user's.

use crate::run_loop::world::{HONEST, ONE, Settings, World, always, text};

fn limited(script: &str, limits: &str) -> World {
    World::with(ONE, script, &Settings { limits: &format!("attempts = 1\nturns = 1\n{limits}"), ..Settings::default() })
}

#[test]
fn a_large_untracked_file_of_the_users_is_no_obstacle() {
    let world = limited(HONEST, "snapshot_file_bytes = 1000");
    // A sparse file: it takes no disk space.
    std::fs::File::create(world.sandbox.path("big")).unwrap().set_len(2_000_000_000).unwrap();
    world.run(0);
    assert_eq!(world.git(&["status", "--porcelain"]), "?? big");
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn no_limit_means_no_limit() {
    let script = always("{ create = \"a\" }, { create = \"b\", text = \"more than ten bytes\" }");
    limited(&script, "snapshot_file_bytes = 10").run(4);
    limited(&script, "snapshot_file_bytes = 0").run(0);
}

#[test]
fn a_large_file_of_an_attempt_is_neither_committed_nor_kept() {
    let world = limited(&always("{ create = \"a\" }, { run = 'head -c 2000 /dev/zero > big' }"), "snapshot_file_bytes = 1000");
    world.run(4);
    assert_eq!(text(&world.last("verified")["report"]["reasons"][0]["why"]), "big is too large to commit (1 MB)");
    let kept = world.tree_files(&world.kept());
    assert!(kept.contains(&"a".to_owned()) && !kept.contains(&"big".to_owned()), "{kept:?}");
    assert!(!world.has("big"));
    world.assert_clean();
}

#[test]
fn a_file_of_the_repository_that_an_attempt_makes_large_is_not_committed() {
    let world = limited(&always("{ create = \"a\" }, { run = 'head -c 2000 /dev/zero > notes' }"), "snapshot_file_bytes = 1000");
    world.sandbox.write("notes", "small\n");
    world.git(&["add", "notes"]);
    world.git(&["commit", "--quiet", "-m", "notes"]);
    world.run(4);
    assert_eq!(text(&world.last("verified")["report"]["reasons"][0]["why"]), "notes is too large to commit (1 MB)");
    assert_eq!(world.sandbox.read("notes"), "small\n");
    assert_eq!(world.git(&["show", &format!("{}:notes", world.kept())]), "small");
    world.assert_clean();
}
