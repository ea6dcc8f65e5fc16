//! Freeing disk space without losing evidence.

use crate::run_loop::world::{HONEST, TWO, World, always};

#[test]
fn old_runs_keep_their_journal_and_nothing_else() {
    let world = World::new(TWO, &always("{ create = \"wrong\" }"));
    world.run(4);
    let old = world.run_dir();
    let kept = world.kept();
    world.sandbox.write(".verdone/script.toml", HONEST);
    world.run(0);
    assert_ne!(world.run_dir(), old);

    let preview = world.verdone(&["prune", "--keep", "1", "--dry-run"]);
    preview.assert_code(0);
    assert!(preview.stdout.starts_with("Would delete files of 1 run"), "{}", preview.stdout);
    assert!(old.join("turns").exists());

    world.verdone(&["prune", "--keep", "1"]).assert_code(0);
    let left: Vec<_> = std::fs::read_dir(&old).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["journal.jsonl"]);
    assert!(world.run_dir().join("turns").exists(), "the newest run is left alone");
    assert_eq!(world.git(&["for-each-ref", "--format=%(refname)", "refs/verdone"]), "", "the attempts of the old run");
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    assert!(world.sandbox.run("git", ["cat-file", "-e", &kept]).code != 0, "git could collect the attempt");

    let again = world.verdone(&["prune", "--keep", "1"]);
    assert!(again.stdout.starts_with("Deleted files of 0 runs"), "{}", again.stdout);
    world.verdone(&["prune", "--keep", "0"]).assert_code(0);
    let report = world.verdone(&["report"]);
    assert!(!report.stdout.contains("Claimed"), "the evidence is still known: {}", report.stdout);
}
