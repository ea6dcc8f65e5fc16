//! Files that are too large to copy: refused at the start, moved aside when an attempt makes them, as the settings say.

use super::assert_refused;
use crate::world::{HONEST, ONE, Settings, World, always, text};

fn limited(script: &str, limits: &str) -> World {
    World::with(ONE, script, &Settings { limits: &format!("attempts = 1\nturns = 1\n{limits}"), ..Settings::default() })
}

/// A file that takes no room on the disk.
fn sparse(world: &World, path: &str, bytes: u64) {
    std::fs::File::create(world.sandbox.path(path)).unwrap().set_len(bytes).unwrap();
}

#[test]
fn one_untracked_file_over_the_limit_is_refused_with_its_name() {
    let world = World::new(ONE, HONEST);
    sparse(&world, "big", 100_000_001);
    assert_refused(&world.verdone(&["run"]), "too large to snapshot: big (101 MB)", "raise snapshot_file_bytes");
    let world = limited(HONEST, "snapshot_file_bytes = 1000");
    sparse(&world, "big", 1001);
    assert_refused(&world.verdone(&["run"]), "too large to snapshot: big (1 MB)", ".gitignore");
    sparse(&world, "big", 1000);
    world.run(0);
    assert_eq!(world.git(&["status", "--porcelain"]), "?? big");
}

#[test]
fn untracked_files_over_the_limit_in_all_are_refused_with_their_names() {
    let world = World::new(ONE, HONEST);
    for number in 0..11 {
        sparse(&world, &format!("part-{number}"), 95_000_000);
    }
    assert_refused(
        &world.verdone(&["run"]),
        "too large to snapshot: part-0 (95 MB), part-1 (95 MB)",
        "or snapshot_bytes in [limits]",
    );
    let world = limited(HONEST, "snapshot_bytes = 1500");
    sparse(&world, "one", 800);
    sparse(&world, "two", 800);
    assert_refused(&world.verdone(&["run"]), "too large to snapshot: one (1 MB), two (1 MB)", ".gitignore");
}

#[test]
fn no_limit_means_no_limit() {
    let world =
        limited(&always("{ create = \"a\" }, { create = \"b\", text = \"more than ten bytes\" }"), "snapshot_file_bytes = 10");
    world.run(4);
    let world =
        limited(&always("{ create = \"a\" }, { create = \"b\", text = \"more than ten bytes\" }"), "snapshot_file_bytes = 0");
    world.run(0);
}

#[test]
fn a_large_file_of_an_attempt_fails_the_check_and_is_moved_aside() {
    let world = limited(&always("{ create = \"a\" }, { run = 'head -c 2000 /dev/zero > big' }"), "snapshot_file_bytes = 1000");
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "big is too large to commit (1 MB)");
    assert_eq!(std::fs::metadata(world.run_dir().join("aside/big")).unwrap().len(), 2000);
    assert!(!world.has("big"));
    world.assert_clean();
}

#[test]
fn an_undo_keeps_to_the_limits_of_its_run() {
    let world = limited(&always("{ create = \"x\", text = \"more than ten bytes\" }"), "snapshot_file_bytes = 100");
    sparse(&world, "mine", 90);
    world.run(4);
    let settings = world.sandbox.read(".verdone/config.toml");
    world.sandbox.write(".verdone/config.toml", settings.replace("snapshot_file_bytes = 100", "snapshot_file_bytes = 10"));
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.sandbox.read("x"), "more than ten bytes");
    assert!(world.has("mine"));
}

#[test]
fn a_file_of_the_repository_that_an_attempt_makes_large_is_not_committed() {
    let world = limited(&always("{ create = \"a\" }, { run = 'head -c 2000 /dev/zero > notes' }"), "snapshot_file_bytes = 1000");
    world.sandbox.write("notes", "small\n");
    world.git(&["add", "notes"]);
    world.git(&["commit", "--quiet", "-m", "notes"]);
    world.run(4);
    assert_eq!(text(&world.last("verified")["reason"]), "notes is too large to commit (1 MB)");
    assert_eq!(world.sandbox.read("notes"), "small\n");
    world.assert_clean();
}
