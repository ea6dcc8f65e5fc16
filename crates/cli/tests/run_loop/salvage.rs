//! A dead run's traces in odd states: whatever lies there, the next run puts things in order and begins.

use std::fs;

use crate::crashes::{kill_in_the_turn, once};
use crate::world::{HONEST, ONE, Settings, TWO, World, text};

#[test]
fn a_folder_that_is_no_run_does_not_hide_a_dead_one() {
    let world = World::new(ONE, &once("{ create = \"half\" }, "));
    kill_in_the_turn(&world);
    let killed = text(&world.events()[0]["run"]);
    world.sandbox.write(".verdone/runs/backup/journal.jsonl", "not a journal\n");
    let output = world.run(0);
    assert!(output.stdout.contains(&format!("run {killed} did not end properly")), "{}", output.stdout);
    world.assert_clean();
    assert_eq!(world.finish(), "complete");
}

#[test]
fn a_long_journal_that_is_broken_in_its_middle_keeps_nobody_from_going_on() {
    let world = World::new(TWO, HONEST);
    world.run(0);
    let path = world.run_dir().join("journal.jsonl");
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    let at =
        |lines: &[String], kind: &str| lines.iter().position(|line| line.contains(&format!("\"event\":\"{kind}\""))).unwrap();
    let committed = at(&lines, "committed");
    lines[committed] = lines[committed].replace("\"noted\":true", "\"noted\":false");
    // So far from the end that where the run stood is known without it.
    let filler = lines[at(&lines, "checkpointed")].clone();
    let middle = std::iter::once("garbage".to_owned()).chain(std::iter::repeat_n(filler, 1000));
    lines.splice(committed + 1..=committed, middle);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let output = world.run(0);
    assert!(output.stdout.contains("evidence notes that are missing cannot be made again"), "{}", output.stdout);
}

#[test]
fn a_file_that_only_raised_limits_allow_does_not_keep_a_run_without_its_journal_from_being_put_in_order() {
    let settings = Settings { limits: "snapshot_file_bytes = 0", ..Settings::default() };
    let world = World::with(ONE, &once("{ create = \"half\" }, "), &settings);
    fs::File::create(world.sandbox.path("large")).unwrap().set_len(100_000_001).unwrap();
    kill_in_the_turn(&world);
    fs::remove_file(world.run_dir().join("journal.jsonl")).unwrap();
    let output = world.run(0);
    assert!(output.stdout.contains("the work tree as it was found is kept as"), "{}", output.stdout);
}
