//! What a run says at its start and at its end: true, and with the next command to type.

use std::fs;

use crate::run_loop::world::{HONEST, ONE, Settings, TWO, World};

#[test]
fn a_done_story_is_named_as_done_with_the_way_to_run_it_again() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    let again = world.run_with(&["--story", "US-001"], 2);
    assert!(again.stderr.contains("US-001 is already done in PLAN.md"), "{}", again.stderr);
    assert!(again.stderr.contains("to run it again: verdone undo US-001"), "{}", again.stderr);
    world.verdone(&["undo", "US-001"]).assert_code(0);
    world.run_with(&["--story", "US-001"], 0);
}

#[test]
fn a_hint_can_be_copied_whatever_the_storys_id_is() {
    let plan = r##"{ "userStories": [{ "id": "#12", "title": "Write a", "passes": false }, { "id": "b", "title": "B", "passes": false }] }"##;
    let gate = "[[gate]]\nname = \"file\"\ncommand = \"test -f a\"\n";
    let world = World::folder("[[turn]]\nsteps = [{ create = \"a\" }]\n", &Settings { tables: gate, ..Settings::default() });
    world.sandbox.write("prd.json", plan);
    world.sandbox.repo();
    world.run_with(&["--story", "#12", "--red-baseline"], 0);
    let again = world.run_with(&["--story", "#12"], 2);
    assert!(again.stderr.contains("hint: to run it again: verdone undo '#12'\n"), "{}", again.stderr);
}

#[test]
fn a_story_that_is_done_on_the_runs_branch_is_named_as_well() {
    let world = World::new(TWO, HONEST);
    let config = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", "land = \"off\"");
    world.sandbox.write(".verdone/config.toml", config);
    world.run_with(&["--story", "US-001"], 0);
    let again = world.run_with(&["--story", "US-001"], 0);
    assert!(again.stdout.contains("US-001 is already done on the run's branch"), "{}", again.stdout);
    assert!(again.stdout.contains("to run it again: verdone undo US-001"), "{}", again.stdout);
}

#[test]
fn the_next_command_works_in_a_subfolder() {
    let world = World::new(TWO, HONEST);
    world.sandbox.write("sub/x", "x");
    let limited = world.run_with(&["--max-iterations", "1"], 3);
    assert!(limited.stdout.contains("Next: verdone run PLAN.md"), "{}", limited.stdout);
    world.verdone(&["-C", "sub", "run", "PLAN.md"]).assert_code(0);
    assert_eq!(world.plan(), TWO.replace("[ ]", "[x]"));
}

#[test]
fn quiet_output_has_no_headings_and_each_problem_names_its_story() {
    let world = World::new(ONE, "[[turn]]\nsteps = [{ create = \"b\" }]\n");
    let output = world.run_with(&["--quiet"], 4);
    assert!(!output.stdout.contains("Story 1 of 1"), "{}", output.stdout);
    assert!(output.stdout.contains("✗ US-001: "), "{}", output.stdout);
}

#[test]
fn ticked_boxes_with_a_note_are_no_claims_in_another_clone() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    // As in a fresh clone that fetched the notes: the journals stay behind.
    fs::remove_dir_all(world.sandbox.path(".verdone/runs")).unwrap();
    let next = world.run_with(&["--story", "US-002"], 0);
    assert!(!next.stdout.contains("without evidence"), "{}", next.stdout);
    let report = world.verdone(&["report"]);
    report.assert_code(0);
    assert!(!report.stdout.contains("without evidence"), "{}", report.stdout);
}

#[test]
fn a_ticked_box_without_journal_and_note_is_a_claim() {
    let world = World::new(&TWO.replacen("- [ ]", "- [x]", 1), HONEST);
    let run = world.run(0);
    assert!(run.stdout.contains("ticked without evidence (claimed, not verified): US-001"), "{}", run.stdout);
    assert!(run.stdout.contains("git fetch origin refs/notes/verdone"), "without any notes, this may be a clone: {}", run.stdout);
    // A note that is not in the history of the branch proves nothing.
    world.git(&["branch", "other"]);
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    world.sandbox.write("PLAN.md", TWO.replacen("- [ ]", "- [x]", 1));
    fs::remove_dir_all(world.sandbox.path(".verdone/runs")).unwrap();
    let run = world.run_with(&["--story", "US-002"], 0);
    assert!(run.stdout.contains("ticked without evidence") && !run.stdout.contains("git fetch"), "{}", run.stdout);
}

#[test]
fn a_story_that_was_undone_or_whose_commit_is_missing_has_no_evidence() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    world.verdone(&["undo"]).assert_code(0);
    let runs = world.verdone(&["runs"]);
    assert!(runs.stdout.contains("1 commit, undone"), "{}", runs.transcript());
    for keep_journals in [true, false] {
        if !keep_journals {
            fs::remove_dir_all(world.sandbox.path(".verdone/runs")).unwrap();
        }
        world.sandbox.write("PLAN.md", TWO.replacen("- [ ]", "- [x]", 1));
        let run = world.run_with(&["--story", "US-002", "--dry-run"], 0);
        let report = world.verdone(&["run", "--story", "US-002"]);
        assert!(report.stdout.contains("ticked without evidence"), "{}{}", run.stdout, report.stdout);
        world.verdone(&["undo"]).assert_code(0);
    }
    // A squash merge: the notes are here, the commits are not.
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    let commit = world.sandbox.git(["rev-parse", "HEAD"]);
    world.git(&["reset", "-q", "--soft", "HEAD~1"]);
    world.git(&["commit", "-q", "-m", "Squashed"]);
    fs::remove_dir_all(world.sandbox.path(".verdone/runs")).unwrap();
    for reference in world.sandbox.git(["for-each-ref", "--format=%(refname)", "refs/heads/verdone", "refs/verdone"]).lines() {
        world.git(&["update-ref", "-d", reference]);
    }
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "-q", "--prune=now"]);
    assert_ne!(world.sandbox.run("git", ["cat-file", "-e", &commit]).code, 0, "the commit is gone");
    let run = world.run_with(&["--story", "US-002"], 0);
    assert!(run.stdout.contains("ticked without evidence"), "{}", run.stdout);
    world.verdone(&["report"]).assert_code(0);
}

#[test]
fn untracked_files_are_named_with_the_way_to_include_them() {
    let world = World::new(ONE, HONEST);
    world.sandbox.write("my notes.txt", "x");
    let dry = world.verdone(&["doctor"]).stdout;
    assert!(dry.contains("hint: to include it: git add -- 'my notes.txt' && git commit"), "{dry}");
    fs::remove_file(world.sandbox.path("my notes.txt")).unwrap();
    for number in 0..12 {
        world.sandbox.write(format!("new{number:02}.txt"), "x");
    }
    let run = world.run(0);
    assert!(run.stdout.contains("12 untracked files are not part of the run: new00.txt, "), "{}", run.stdout);
    assert!(run.stdout.contains("and 4 more; to include them: git add FILE… && git commit"), "{}", run.stdout);
}

#[test]
fn a_missing_program_is_named_by_the_shells_message() {
    let gate = "[[gate]]\nname = \"lint\"\ncommand = \"./lint\"\n";
    let world = World::folder(HONEST, &Settings { tables: gate, ..Settings::default() });
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write_script("lint", "#!/bin/sh\nno-such-linter .\n");
    world.sandbox.repo();
    let run = world.run_with(&["--red-baseline"], 4);
    assert!(run.stdout.contains("command not found (exit code 127): no-such-linter"), "{}", run.stdout);
}

#[test]
fn criteria_of_a_verified_story_are_not_called_unproven() {
    let plan = "# Plan\n\n- [ ] US-001: Write a\n  - Acceptance: it is a file\n  - Acceptance: it has a name\n  - Verification: `test -f a`\n";
    let world = World::new(plan, HONEST);
    world.run(0);
    for command in [&["show", "US-001"][..], &["report"]] {
        let page = world.verdone(command).stdout;
        assert!(page.contains("it has a name") && page.contains("the story is verified"), "{page}");
        assert!(!page.contains("not proven"), "{page}");
    }
}

#[test]
fn only_words_that_say_done_are_a_claim() {
    for (words, claims) in [("breaking", 0), ("Done, all tests pass.", 1)] {
        let script = format!("[[turn]]\nsteps = [{{ create = \"b\" }}, {{ say = \"{words}\" }}]\n");
        let limits = "attempts = 1\nturns = 1\n";
        let world = World::with(ONE, &script, &Settings { limits, ..Settings::default() });
        let run = world.run(4);
        assert_eq!(run.stdout.matches("Claimed done, but the checks fail").count(), claims, "{}", run.stdout);
        assert_eq!(run.stdout.contains("false claim"), claims > 0, "{}", run.stdout);
    }
}

#[test]
fn a_commits_subject_has_the_kind_of_its_story() {
    let plan = "# Plan\n\n- [ ] US-001: fix: write a\n  - Verification: `test -f a`\n- [ ] US-002: Write b\n  - Kind: docs\n  - Verification: `test -f b`\n";
    let world = World::new(plan, HONEST);
    world.run(0);
    assert_eq!(world.subjects()[..2], ["docs(US-002): Write b", "fix(US-001): write a"]);
    let world =
        World::with(ONE, HONEST, &Settings { tables: "[commit]\nsubject = \"{kind}: {title}\"\n", ..Settings::default() });
    world.run(0);
    assert_eq!(world.subjects()[0], "feat: Write a");
}

#[test]
fn the_summary_ends_with_one_command() {
    let world = World::new(ONE, "[[turn]]\nsteps = [{ create = \"b\" }]\n");
    let failed = world.run(4);
    assert_eq!(failed.stdout.lines().last(), Some("Next: verdone show US-001"), "{}", failed.stdout);
    let world = World::new(TWO, HONEST);
    world.git(&["mv", "PLAN.md", "my plan.md"]);
    world.git(&["commit", "-qm", "renamed"]);
    let limited = world.run_with(&["my plan.md", "--max-iterations", "1"], 3);
    assert_eq!(limited.stdout.lines().last(), Some("Next: verdone run 'my plan.md'"), "{}", limited.stdout);
}
