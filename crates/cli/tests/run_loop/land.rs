//! `verdone land`: a fast-forward or a reason, and nothing lost on the way.

use std::fs;

use serde_json::Value;

use crate::worktree::{git_there, place};
use crate::world::{HONEST, ONE, Settings, TWO, World, always};

/// A run in a worktree has ended well.
fn ended(plan: &str, script: &str) -> World {
    let world = World::new(plan, script);
    world.run_with(&["--worktree"], 0);
    world
}

#[track_caller]
fn assert_refused(world: &World, arguments: &[&str], code: i32, words: &[&str]) {
    let seen =
        || (world.head(), world.git(&["status", "--porcelain"]), world.git(&["worktree", "list"]), world.git(&["for-each-ref"]));
    let before = seen();
    let output = world.verdone(&[&["land"], arguments].concat());
    output.assert_code(code);
    for word in words {
        assert!(output.stderr.contains(word), "{word:?} is not in\n{}", output.transcript());
    }
    assert_eq!(seen(), before, "nothing may change");
    assert!(!world.has(".verdone/runs"));
}

#[test]
fn the_commits_and_the_runs_come_over_and_the_worktree_goes() {
    let world = ended(TWO, HONEST);
    let (there, tip) = (place(&world), git_there(&world, &["rev-parse", "HEAD"]));
    fs::write(there.join(".verdone/runs/.verdone-1a2b3c.tmp"), "of a killed write").unwrap();
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    assert_eq!(world.head(), tip);
    assert_eq!(world.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    world.assert_clean();
    assert!(!there.exists() && !there.parent().unwrap().exists(), "the folder beside is gone when it is empty");
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.git(&["rev-parse", "verdone/PLAN"]), tip, "the branch is kept");
    assert!(output.stdout.contains("git branch -d verdone/PLAN"), "{}", output.stdout);
    for arguments in [&["status"][..], &["log"], &["show", "US-002"], &["report"], &["checkpoints"]] {
        let look = world.verdone(arguments);
        look.assert_code(0);
        assert_eq!(look.stderr, "", "{arguments:?}");
    }
    assert_eq!(world.all("committed").len(), 2);
    assert!(world.run_dir().join("turns").is_dir(), "prompts and outputs came along");
    let again = world.run(0);
    assert!(!again.stdout.contains("ticked without evidence"), "the evidence is known here: {}", again.stdout);
}

#[test]
fn an_undo_after_landing_is_refused_and_works_on_the_branch_of_the_run() {
    let world = ended(ONE, HONEST);
    let base = world.head();
    world.verdone(&["land"]).assert_code(0);
    let landed = world.head();
    let undo = world.verdone(&["undo"]);
    undo.assert_code(4);
    assert!(undo.stderr.contains("worked on branch verdone/PLAN, and this is main"), "{}", undo.stderr);
    assert!(undo.stderr.contains("git revert") && undo.stderr.contains("git switch verdone/PLAN"), "{}", undo.stderr);
    assert_eq!((world.head(), world.git(&["rev-parse", "verdone/PLAN"])), (landed.clone(), landed.clone()));
    world.assert_clean();
    world.git(&["switch", "--quiet", "verdone/PLAN"]);
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!((world.head(), world.git(&["rev-parse", "main"])), (base, landed));
}

#[test]
fn changes_that_are_not_in_the_way_survive_and_others_are_named() {
    let world = ended(ONE, HONEST);
    world.git(&["config", "merge.autoStash", "true"]);
    world.sandbox.write("README.md", "my half-done work\n");
    world.git(&["stash", "--quiet"]);
    world.sandbox.write("README.md", "my half-done work\n");
    world.sandbox.write("loose.txt", "loose\n");
    let stash = world.git(&["rev-parse", "refs/stash"]);
    let in_the_way = |path: &str, text: &str| {
        let before = world.sandbox.path(path).exists().then(|| world.sandbox.read(path));
        world.sandbox.write(path, text);
        assert_refused(&world, &[], 4, &["nothing was changed", path]);
        assert_eq!(world.sandbox.read(path), text);
        match before {
            Some(text) => world.sandbox.write(path, text),
            None => fs::remove_file(world.sandbox.path(path)).unwrap(),
        }
    };
    in_the_way("PLAN.md", &ONE.replace("Write a", "Write my a"));
    in_the_way("a", "an untracked file of mine");
    world.sandbox.write(".git/info/exclude", "/a\n");
    in_the_way("a", "an ignored file of mine");

    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\n?? loose.txt");
    assert_eq!(world.sandbox.read("README.md"), "my half-done work\n");
    assert_eq!(world.sandbox.read("a"), "one\n");
    assert_eq!(world.git(&["rev-parse", "refs/stash"]), stash);
}

#[test]
fn what_is_no_fast_forward_is_told_with_the_commits_of_each_side() {
    let world = ended(TWO, HONEST);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let words = ["main cannot be fast-forwarded: it has 1 commit that verdone/PLAN has not", "has 2 commits of its own"];
    assert_refused(&world, &[], 4, &[words[0], words[1], "git merge verdone/PLAN"]);
    world.git(&["merge", "--quiet", "--no-edit", "verdone/PLAN"]);
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    assert!(output.stdout.contains("Nothing to land: main has every commit"), "{}", output.stdout);
    assert!(output.stdout.contains("is removed"), "{}", output.stdout);
    world.verdone(&["report"]).assert_code(0);
}

#[test]
fn uncommitted_changes_in_the_worktree_are_named_and_untracked_files_keep_it() {
    let world = ended(ONE, HONEST);
    let there = place(&world);
    fs::write(there.join("README.md"), "edited there").unwrap();
    assert_refused(&world, &[], 4, &["uncommitted changes", "README.md", "git -C"]);
    git_there(&world, &["checkout", "--quiet", "--", "README.md"]);
    fs::write(there.join("notes.txt"), "only here").unwrap();
    let output = world.verdone(&["land", "--remove"]);
    output.assert_code(0);
    assert!(output.stdout.contains("stays: untracked files are only there: notes.txt"), "{}", output.stdout);
    assert_eq!(fs::read_to_string(there.join("notes.txt")).unwrap(), "only here");
    assert!(world.has("a"), "landed all the same");
    world.verdone(&["report"]).assert_code(0);
    fs::remove_file(there.join("notes.txt")).unwrap();
    assert!(world.verdone(&["land"]).stdout.contains("is removed"));
    assert!(!there.exists());
}

#[test]
fn ignored_files_keep_the_worktree_until_they_are_given_up() {
    let world = World::new(ONE, &always("{ create = \"target/build\" }, { create = \"a\" }"));
    world.sandbox.write(".gitignore", "target/\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "--quiet", "-m", "ignore"]);
    world.run_with(&["--worktree"], 0);
    let there = place(&world);
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    assert!(output.stdout.contains("stays: ignored files are only there: target"), "{}", output.stdout);
    assert!(output.stdout.contains("verdone land --remove verdone/PLAN"), "{}", output.stdout);
    assert!(world.has("a") && there.join("target/build").is_file());
    world.verdone(&["land", "--remove"]).assert_code(0);
    assert!(!there.exists());
}

#[test]
fn a_kept_worktree_keeps_its_runs() {
    let world = ended(ONE, HONEST);
    let there = place(&world);
    world.verdone(&["land", "--keep"]).assert_code(0);
    assert!(world.has("a") && !world.has(".verdone/runs"));
    world.verdone(&["-C", there.to_str().unwrap(), "report"]).assert_code(0);
    let note = world.verdone(&["doctor"]).stdout;
    assert!(note.contains("has 0 commits to land"), "{note}");
    assert_refused(&world, &["--keep", "--remove"], 2, &["--keep"]);
    world.verdone(&["land"]).assert_code(0);
    assert!(!there.exists() && world.has(".verdone/runs"));
}

#[test]
fn which_one_is_meant_has_to_be_plain() {
    let world = World::new(ONE, HONEST);
    assert_refused(&world, &[], 2, &["no worktree of a run", "verdone run --worktree"]);
    world.git(&["worktree", "add", "--quiet", "-b", "users", "../users"]);
    assert_refused(&world, &[], 2, &["no worktree of a run"]);
    assert_refused(&world, &["users"], 2, &["no worktree of a run on branch \"users\""]);
    for branch in ["one", "two"] {
        world.run_with(&["--worktree", "--branch", branch], 0);
    }
    assert_refused(&world, &[], 2, &["several", "one", "two", "verdone land BRANCH"]);
    assert_refused(&world, &["three"], 2, &["\"three\"", "there are: one, two"]);
    assert_refused(&world, &["\u{1b}[2J"], 2, &["no worktree of a run"]);
    world.verdone(&["land", "one"]).assert_code(0);
    assert!(world.has("a") && world.sandbox.root().join("work-worktrees/two").is_dir());
}

#[test]
fn it_lands_on_a_branch_in_order_or_not_at_all() {
    let world = ended(ONE, HONEST);
    let there = place(&world);
    let inside = world.verdone(&["-C", there.to_str().unwrap(), "land"]);
    inside.assert_code(2);
    assert!(inside.stderr.contains(&format!("verdone -C {} land", world.sandbox.work().display())), "{}", inside.stderr);
    world.git(&["checkout", "--quiet", "--detach"]);
    assert_refused(&world, &[], 2, &["detached", "git switch"]);
    world.git(&["switch", "--quiet", "main"]);
    world.git(&["switch", "--quiet", "--create", "side"]);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "side"]);
    world.git(&["switch", "--quiet", "main"]);
    world.git(&["merge", "--quiet", "--no-ff", "--no-commit", "side"]);
    assert_refused(&world, &[], 2, &["merge is in progress"]);
    world.git(&["merge", "--abort"]);
    git_there(&world, &["switch", "--quiet", "--create", "away"]);
    assert_refused(&world, &[], 4, &["is not on branch verdone/PLAN but on away", "switch verdone/PLAN"]);
    git_there(&world, &["switch", "--quiet", "verdone/PLAN"]);
    world.verdone(&["land"]).assert_code(0);
}

#[test]
fn a_worktree_deleted_by_hand_still_lands() {
    let world = ended(ONE, HONEST);
    fs::remove_dir_all(place(&world)).unwrap();
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a"));
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn newer_formats_of_repositories_do_as_well() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet", "--object-format=sha256", "--ref-format=reftable"]);
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "-m", "initial"]);
    world.run_with(&["--worktree"], 0);
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a"));
    world.run_with(&["--branch", "next"], 0);
    assert_eq!(world.git(&["symbolic-ref", "--short", "HEAD"]), "next");
}

#[test]
fn a_worktree_that_was_moved_is_found_and_its_new_parent_stays() {
    let world = ended(ONE, HONEST);
    fs::create_dir(world.sandbox.root().join("elsewhere")).unwrap();
    world.git(&["worktree", "move", place(&world).to_str().unwrap(), "../elsewhere/moved"]);
    world.run_with(&["--worktree"], 0);
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a") && !world.sandbox.root().join("elsewhere/moved").exists());
    assert!(world.sandbox.root().join("elsewhere").is_dir());
}

#[test]
fn a_locked_worktree_stays() {
    let world = ended(ONE, HONEST);
    let there = place(&world);
    world.git(&["worktree", "lock", there.to_str().unwrap()]);
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    assert!(output.stdout.contains("git does not remove it"), "{}", output.stdout);
    assert!(there.join("a").is_file() && world.has("a"));
}

#[test]
fn status_and_doctor_tell_of_what_waits_and_programs_get_json() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    world.run_with(&["--worktree"], 0);
    let note = format!("the worktree {} has 1 commit to land on branch verdone/PLAN", place(&world).display());
    assert!(world.verdone(&["status"]).stderr.contains(&note));
    assert!(world.verdone(&["doctor"]).stdout.contains(&note));
    let (from, to) = (world.head(), git_there(&world, &["rev-parse", "HEAD"]));
    let output = world.verdone(&["land", "--json"]);
    output.assert_code(0);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((json["branch"].as_str(), json["into"].as_str()), (Some("verdone/PLAN"), Some("main")));
    assert_eq!((json["from"].as_str(), json["to"].as_str()), (Some(&*from), Some(&*to)));
    assert_eq!((json["commits"].as_u64(), json["runs"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(json["worktree"]["fate"], "removed");
    assert_eq!(world.verdone(&["status"]).stderr, "");
    assert_eq!(world.all("committed")[0]["place"]["story"], "US-002", "the landed run is the latest");
}

#[test]
fn what_an_agent_wrote_into_the_marker_leads_nowhere() {
    let world = ended(ONE, HONEST);
    let own = git_there(&world, &["rev-parse", "--absolute-git-dir"]);
    fs::create_dir_all(world.sandbox.home().join(".verdone/runs/20260101-000000-0000")).unwrap();
    let marker =
        format!("{{\"branch\": \"verdone/PLAN\", \"roots\": [\"../../home\", \"{}\", \"\"]}}", world.sandbox.home().display());
    fs::write(format!("{own}/verdone-made"), marker).unwrap();
    world.verdone(&["land"]).assert_code(0);
    assert!(world.sandbox.home().join(".verdone/runs/20260101-000000-0000").is_dir());
}

#[test]
fn journals_that_both_checkouts_share_survive_a_landing() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    let shared = world.sandbox.root().join("shared");
    fs::rename(world.sandbox.path(".verdone"), &shared).unwrap();
    std::os::unix::fs::symlink(&shared, world.sandbox.path(".verdone")).unwrap();
    world.sandbox.repo();
    world.run_with(&["--worktree"], 0);
    let there = place(&world);
    let kept = || world.everything_kept().into_iter().filter(|(path, _)| path.ends_with("journal.jsonl")).collect::<Vec<_>>();
    let before = kept();
    assert_eq!(before.len(), 1);
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a") && !there.exists());
    assert_eq!(kept(), before);
    world.verdone(&["report"]).assert_code(0);
}

#[test]
fn a_file_that_is_only_named_like_ours_keeps_the_worktree() {
    let world = ended(ONE, HONEST);
    let notes = place(&world).join(".verdone/runs/.verdone-notes");
    fs::write(&notes, "mine").unwrap();
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    assert!(output.stdout.contains("stays: ignored files are only there"), "{}", output.stdout);
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}
