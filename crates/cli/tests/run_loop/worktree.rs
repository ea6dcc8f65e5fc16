//! `--worktree`: the run works beside the repository, and the user's checkout is left alone.

use std::fs;
use std::path::PathBuf;

use verdone_testkit::Signal;

use crate::world::{HONEST, ONE, PATIENCE, Settings, TWO, World, always};

/// Hangs at the first try, wherever it works.
const HANGS_ONCE: &str = "[[turn]]\nsteps = [{ create = \"half\" }, { run = \"test -f $HOME/again || { : > $HOME/again; echo in-the-turn; sleep 60; }\" }, { create = \"a\" }]\n";

/// The only work tree beside the repository.
#[track_caller]
pub(crate) fn place(world: &World) -> PathBuf {
    let beside = world.sandbox.root().join("work-worktrees");
    let mut found: Vec<PathBuf> = fs::read_dir(&beside).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Git in that work tree.
#[track_caller]
pub(crate) fn git_there(world: &World, arguments: &[&str]) -> String {
    let place = place(world).display().to_string();
    world.git(&[&["-C", &place], arguments].concat())
}

#[track_caller]
fn assert_refused(world: &World, arguments: &[&str], code: i32, words: &[&str]) {
    let before = (world.git(&["status", "--porcelain"]), world.sandbox.run("git", ["for-each-ref"]).stdout);
    let output = world.run_with(&[&["--worktree"], arguments].concat(), code);
    for word in words {
        assert!(output.stderr.contains(word), "{word:?} is not in\n{}", output.transcript());
    }
    assert_eq!((world.git(&["status", "--porcelain"]), world.sandbox.run("git", ["for-each-ref"]).stdout), before);
}

#[test]
fn the_users_checkout_is_left_alone_dirty_or_not() {
    let world = World::new(TWO, HONEST);
    world.sandbox.write("README.md", "my half-done work\n");
    world.sandbox.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.sandbox.write("loose.txt", "loose\n");
    let seen = || (world.head(), world.git(&["status", "--porcelain"]), world.git(&["symbolic-ref", "HEAD"]), world.plan());
    let before = seen();
    let output = world.run_with(&["--worktree"], 0);
    assert_eq!(seen(), before);
    assert!(!world.has("a") && !world.has(".verdone/runs"));
    let there = place(&world);
    assert!(there.join("a").is_file() && there.join("b").is_file());
    assert!(!there.join("loose.txt").exists());
    assert_eq!(git_there(&world, &["symbolic-ref", "--short", "HEAD"]), "verdone/PLAN");
    assert_eq!(git_there(&world, &["status", "--porcelain"]), "");
    assert_eq!(git_there(&world, &["rev-list", "--count", "HEAD"]), "3");
    for words in [
        format!("working in {} on branch verdone/PLAN (new at ", there.display()),
        "your checkout stays as it is".to_owned(),
        format!("verdone -C {} status", there.display()),
        "2 commits on branch verdone/PLAN; take over with: verdone land".to_owned(),
    ] {
        assert!(output.stdout.contains(&words), "{words:?} is not in {}", output.stdout);
    }
    world.verdone(&["-C", there.to_str().unwrap(), "status"]).assert_code(0);
    let status = world.verdone(&["status"]);
    status.assert_code(2);
    assert!(status.stderr.contains(there.to_str().unwrap()), "{}", status.stderr);
}

#[test]
fn the_same_command_again_goes_on_in_the_same_worktree() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--worktree", "--max-iterations", "1"], 3);
    let there = place(&world);
    let output = world.run_with(&["--worktree"], 0);
    assert!(output.stdout.contains("on branch verdone/PLAN (continued)"), "{}", output.stdout);
    assert_eq!(place(&world), there);
    assert_eq!(git_there(&world, &["log", "--format=%s"]), "feat(US-002): Write b\nfeat(US-001): Write a\ninitial");
}

#[test]
fn killed_in_a_worktree_the_same_command_again_puts_it_in_order_and_completes() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.sandbox.spawn(crate::world::VERDONE, ["run", "--worktree"]);
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    let land = world.verdone(&["land"]);
    land.assert_code(2);
    assert!(land.stderr.contains("did not end properly"), "{}", land.stderr);

    let output = world.run_with(&["--worktree"], 0);
    assert!(output.stdout.contains("did not end properly; putting things in order"), "{}", output.stdout);
    assert_eq!(git_there(&world, &["log", "--format=%s"]), "feat(US-001): Write a\ninitial");
    assert_eq!(git_there(&world, &["status", "--porcelain"]), "", "what the dead run left is gone from the tree");
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn an_agent_that_left_the_branch_before_it_was_killed_does_not_take_the_worktree_along() {
    let script = "[[turn]]\nsteps = [{ run = \"test -f $HOME/again || { : > $HOME/again; git switch -q -c elsewhere; echo in-the-turn; sleep 60; }\" }, { create = \"a\" }]\n";
    let world = World::new(ONE, script);
    let run = world.sandbox.spawn(crate::world::VERDONE, ["run", "--worktree"]);
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.run_with(&["--worktree"], 0);
    assert_eq!(git_there(&world, &["symbolic-ref", "--short", "HEAD"]), "verdone/PLAN");
    assert_eq!(git_there(&world, &["log", "--format=%s"]), "feat(US-001): Write a\ninitial");
}

#[test]
fn a_run_here_and_one_in_a_worktree_go_on_at_once_and_both_are_noted() {
    // Each waits in its turn until the other is in its own.
    let meet = "{ run = ': > \"$HOME/$(basename \"$PWD\")\"; while [ $(ls \"$HOME\" | wc -l) -lt 2 ]; do sleep 0.02; done' }";
    let script = format!(
        "[[turn]]\nstory = \"US-001\"\nsteps = [{meet}, {{ create = \"a\" }}]\n[[turn]]\nstory = \"US-002\"\nsteps = [{{ create = \"b\" }}]\n"
    );
    let world = World::new(TWO, &script);
    world.git(&["switch", "--quiet", "--create", "here"]);
    let runs = [&["run"][..], &["run", "--worktree"]].map(|arguments| world.sandbox.spawn(crate::world::VERDONE, arguments));
    for run in runs {
        run.wait(PATIENCE).assert_code(0);
    }
    let mut ids = Vec::new();
    for branch in ["here", "verdone/PLAN"] {
        assert_eq!(world.git(&["rev-list", "--count", branch]), "3", "{branch}");
        for commit in [branch.to_owned(), format!("{branch}^")] {
            let note = world.git(&["notes", "--ref=verdone", "show", &commit]);
            assert!(note.contains("\"verdict\""), "{commit}: {note}");
            ids.push(world.trailer(&commit, "Verdone-Run"));
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 2, "two runs with an id each");
    for id in ids {
        world.git(&["rev-parse", "--verify", &format!("refs/verdone/{id}")]);
    }
    world.assert_clean();
    assert_eq!(git_there(&world, &["status", "--porcelain"]), "");
}

#[test]
fn a_second_run_in_the_same_worktree_is_refused() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.sandbox.spawn(crate::world::VERDONE, ["run", "--worktree"]);
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    let second = world.run_with(&["--worktree"], 1);
    assert!(second.stderr.contains("another run works in this work tree"), "{}", second.stderr);
    let land = world.verdone(&["land"]);
    land.assert_code(1);
    assert!(land.stderr.contains("a run works in") && land.stderr.contains(" stop"), "{}", land.stderr);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
}

#[test]
fn a_worktree_deleted_by_hand_is_made_anew_from_its_branch() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--worktree", "--max-iterations", "1"], 3);
    fs::remove_dir_all(place(&world)).unwrap();
    let output = world.run_with(&["--worktree"], 0);
    assert!(output.stdout.contains("was deleted; it is made anew from its branch"), "{}", output.stdout);
    assert_eq!(git_there(&world, &["rev-list", "--count", "HEAD"]), "3");
}

#[test]
fn a_place_that_cannot_be_had_is_named_and_nothing_is_made() {
    let world = World::new(ONE, HONEST);
    let beside = world.sandbox.root().join("work-worktrees");
    fs::write(&beside, "a file where the folder should be").unwrap();
    assert_refused(&world, &[], 1, &["cannot be made", "work-worktrees", "--branch NAME"]);
    fs::remove_file(&beside).unwrap();
    fs::create_dir_all(beside.join("mine")).unwrap();
    fs::write(beside.join("mine/file"), "somebody's").unwrap();
    assert_refused(&world, &["--branch", "mine"], 2, &["is there already"]);
    assert_eq!(fs::read_to_string(beside.join("mine/file")).unwrap(), "somebody's");
    world.git(&["branch", "verdone"]);
    assert_refused(&world, &[], 1, &["cannot be made", "refs/heads/verdone"]);
}

#[test]
fn a_parent_folder_without_room_for_another_is_named() {
    let world = World::new(ONE, HONEST);
    // Also root cannot make a folder with a name of this length: the limit of the file system stands for a folder that is closed.
    let long = "w".repeat(250);
    fs::rename(world.sandbox.work(), world.sandbox.root().join(&long)).unwrap();
    fs::create_dir(world.sandbox.work()).unwrap();
    let output = world.verdone(&["-C", &format!("../{long}"), "run", "--worktree"]);
    output.assert_code(1);
    assert!(output.stderr.contains("cannot be made") && output.stderr.contains("too long"), "{}", output.stderr);
}

#[test]
fn without_a_commit_there_is_nothing_to_make_one_from() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet"]);
    assert_refused(&world, &[], 2, &["no commit yet", "git commit"]);
    assert!(!world.sandbox.root().join("work-worktrees").exists());
}

#[test]
fn a_plan_or_settings_that_are_not_committed_are_refused_by_name() {
    let world = World::new(ONE, HONEST);
    world.sandbox.write("PLAN.md", TWO);
    assert_refused(&world, &[], 2, &["has only what is committed", "PLAN.md", "git commit"]);
    world.sandbox.write("PLAN.md", ONE);
    for path in [".verdone/config.toml", ".verdone/hooks/started", ".verdone/approvals.json"] {
        let before = world.sandbox.path(path).exists().then(|| world.sandbox.read(path));
        world.sandbox.write(path, before.clone().unwrap_or_default() + "\n");
        assert_refused(&world, &[], 2, &["has only what is committed", path]);
        match before {
            Some(text) => world.sandbox.write(path, text),
            None => fs::remove_file(world.sandbox.path(path)).unwrap(),
        }
    }
    world.sandbox.write("ignored.md", ONE);
    world.sandbox.write(".git/info/exclude", "ignored.md\n.verdone/prompts/\n");
    assert_refused(&world, &["ignored.md"], 2, &["ignored.md"]);
    world.sandbox.write(".verdone/prompts/building.md", "Do it.\n");
    assert_refused(&world, &[], 2, &[".verdone/prompts"]);
    assert!(!world.sandbox.root().join("work-worktrees").exists());
}

#[test]
fn a_branch_with_an_older_plan_is_refused_until_it_has_the_new_one() {
    let world = World::new(ONE, HONEST);
    world.run_with(&["--worktree"], 0);
    world.sandbox.write("PLAN.md", TWO);
    world.git(&["commit", "--quiet", "--all", "-m", "one more story"]);
    assert_refused(&world, &[], 2, &["older PLAN.md", "merge main"]);
    let there = place(&world);
    fs::write(there.join("PLAN.md"), TWO.replacen("[ ]", "[x]", 1)).unwrap();
    world.sandbox.run("git", ["-C", there.to_str().unwrap(), "commit", "--quiet", "--all", "-m", "by hand"]).assert_code(0);
    let merge = ["-C", there.to_str().unwrap(), "merge", "--quiet", "-s", "ours", "-m", "both", "main"];
    world.sandbox.run("git", merge).assert_code(0);
    world.run_with(&["--worktree"], 0);
    assert_eq!(git_there(&world, &["log", "-1", "--format=%s"]), "feat(US-002): Write b");
}

#[test]
fn a_project_in_a_subfolder_is_run_and_landed_at_the_same_place() {
    let world = World::folder(HONEST, &Settings::default());
    for name in ["config.toml", "script.toml"] {
        world.sandbox.write(format!("app/.verdone/{name}"), world.sandbox.read(format!(".verdone/{name}")));
    }
    fs::remove_dir_all(world.sandbox.path(".verdone")).unwrap();
    world.sandbox.write("app/docs/the plan.md", ONE);
    world.sandbox.write("app/src/keep", "");
    world.sandbox.repo();
    fs::create_dir(world.sandbox.path("app/empty")).unwrap();
    world.verdone(&["-C", "app/empty", "run", "--worktree", "../docs/the plan.md"]).assert_code(0);
    let there = place(&world);
    assert!(there.join("app/a").is_file() && !there.join("a").exists());
    assert!(there.join("app/.verdone/runs").is_dir());
    assert_eq!(git_there(&world, &["symbolic-ref", "--short", "HEAD"]), "verdone/docs-the%20plan");
    world.verdone(&["-C", "app/src", "land"]).assert_code(0);
    assert!(world.has("app/a") && !there.exists());
    world.verdone(&["-C", "app", "report"]).assert_code(0);
}

#[test]
fn a_plan_named_by_its_whole_path_is_the_worktrees_own() {
    let world = World::new(ONE, HONEST);
    let plan = world.sandbox.path("PLAN.md").display().to_string();
    world.run_with(&["--worktree", &plan], 0);
    assert_eq!(world.plan(), ONE);
    assert_eq!(fs::read_to_string(place(&world).join("PLAN.md")).unwrap(), ONE.replace("[ ]", "[x]"));
}

#[test]
fn a_worktree_that_git_did_not_finish_is_not_run_in() {
    let world = World::new(ONE, HONEST);
    world.git(&["worktree", "add", "--quiet", "-b", "mine", "../work-worktrees/mine"]);
    fs::remove_file(place(&world).join("README.md")).unwrap();
    assert_refused(&world, &["--branch", "mine"], 2, &["was not made to its end", "git worktree remove"]);
    git_there(&world, &["checkout", "--quiet", "--", "README.md"]);
    world.run_with(&["--worktree", "--branch", "mine"], 0);
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a"));
}

#[test]
fn an_agent_can_neither_make_a_worktree_nor_land_one() {
    let verdone = crate::world::VERDONE;
    let script = always(&format!(
        "{{ run = '{verdone} run --worktree --branch x; echo run said $?; {verdone} land; echo land said $?' }}, {{ create = \"a\" }}"
    ));
    let world = World::new(ONE, &script);
    let output = world.run(0);
    assert!(output.stdout.contains("run said 2") && output.stdout.contains("land said 2"), "{}", output.stdout);
    assert!(!world.sandbox.root().join("work-worktrees").exists());
}

/// The refs of all runs, with where they point.
fn kept(world: &World) -> Vec<String> {
    world.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/verdone"]).lines().map(str::to_owned).collect()
}

/// A run that leaves alone what the runs before it kept, and says nothing about them.
#[track_caller]
fn assert_minds_its_own(world: &World, arguments: &[&str]) {
    let before = kept(world);
    let output = world.run_with(arguments, 0);
    assert!(!output.stdout.contains("the journal of run"), "{}", output.transcript());
    let after = kept(world);
    assert!(before.iter().all(|entry| after.contains(entry)), "{before:?} became {after:?}");
    assert!(after.len() > before.len(), "it worked");
}

#[test]
fn runs_of_other_work_trees_are_not_taken_for_lost_ones() {
    let plan = format!("{TWO}\n### US-003: Write c\n\n- [ ] Write the file c\n  - Verification: `test -f c`\n");
    let script = format!("{HONEST}[[turn]]\nstory = \"US-003\"\nsteps = [{{ create = \"c\" }}]\n");
    let world = World::new(&plan, &script);
    world.run_with(&["--story", "US-001"], 0);
    assert_minds_its_own(&world, &["--worktree", "--story", "US-002"]);
    assert_minds_its_own(&world, &["--story", "US-002"]);
    let there = place(&world);
    let (before, output) = (kept(&world), world.verdone(&["-C", there.to_str().unwrap(), "run", "--story", "US-003"]));
    output.assert_code(0);
    assert!(!output.stdout.contains("the journal of run"), "{}", output.transcript());
    assert_eq!(kept(&world)[..before.len()], before);
    assert_minds_its_own(&world, &["--story", "US-003"]);
}

#[test]
fn a_run_that_is_under_way_in_another_work_tree_is_not_taken_for_a_lost_one() {
    for (first, second) in [(&["run"][..], &["--worktree"][..]), (&["run", "--worktree"], &[])] {
        let world = World::new(ONE, HANGS_ONCE);
        let run = world.sandbox.spawn(crate::world::VERDONE, first);
        run.wait_for("\u{2502} in-the-turn", PATIENCE);
        assert_minds_its_own(&world, second);
        run.signal(Signal::INT);
        run.wait(PATIENCE).assert_code(130);
    }
}

#[test]
fn runs_that_landed_are_not_taken_for_lost_ones_where_they_worked() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--worktree", "--max-iterations", "1"], 3);
    let there = place(&world);
    world.verdone(&["land"]).assert_code(0);
    assert_minds_its_own(&world, &["--worktree"]);
    assert_eq!(place(&world), there);
}
