//! Landing: bringing a run's commits to the user's branch, or refusing with a reason and changing nothing.

use serde_json::Value;
use verdone_testkit::{Checkout, Output, Signal, Tmux};

use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, TWO, VERDONE, World, text};

/// A world whose settings determine when commits land.
pub(crate) fn world(plan: &str, script: &str, land: &str) -> World {
    let world = World::folder(script, &Settings::default());
    let settings = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", &format!("land = {land:?}"));
    world.sandbox.write(".verdone/config.toml", settings);
    world.sandbox.write("PLAN.md", plan);
    world.sandbox.repo();
    world
}

/// One story that is committed but not landed; also returns its branch.
fn waiting(plan: &str) -> (World, String) {
    let world = world(plan, HONEST, "ask");
    world.run(0);
    let branch = branch_of(&world);
    (world, branch)
}

/// The branch of the last run.
pub(crate) fn branch_of(world: &World) -> String {
    text(&world.all("run_started")[0]["branch"])
}

pub(crate) fn commit(world: &World, path: &str, content: &str) {
    world.sandbox.write(path, content);
    world.git(&["add", "--", path]);
    world.git(&["commit", "--quiet", "-m", path]);
}

/// Asserts that landing is refused with this exit code and this text, and that nothing changed.
#[track_caller]
fn assert_refused(world: &World, code: i32, words: &[&str]) {
    let (before, branch) = (Checkout::snapshot(&world.sandbox), world.git(&["for-each-ref", "refs/heads"]));
    let output = world.verdone(&["land"]);
    output.assert_code(code);
    for words in words {
        assert!(output.stderr.contains(words), "{words}: {}", output.transcript());
    }
    before.assert_untouched(&world.sandbox);
    assert_eq!(world.git(&["for-each-ref", "refs/heads"]), branch, "no branch moves");
}

fn land(world: &World) -> Output {
    let output = world.verdone(&["land"]);
    output.assert_code(0);
    output
}

fn dry_run(world: &World) -> Value {
    let output = world.verdone(&["land", "--dry-run", "--json"]);
    output.assert_code(0);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn without_a_terminal_the_command_is_printed_and_nothing_lands() {
    let world = world(ONE, HONEST, "ask");
    let base = world.head();
    let output = world.run(0);
    let branch = branch_of(&world);
    for told in [&format!("1 commit on {branch}, not landed on main yet"), "Next: verdone land"] {
        assert!(output.stdout.contains(told), "{told}: {}", output.transcript());
    }
    assert_eq!((world.head(), world.has("a"), world.plan()), (base.clone(), false, ONE.to_owned()));
    assert_eq!(world.git(&["show", &format!("{branch}:PLAN.md")]), ONE.replace("[ ]", "[x]").trim_end());
    world.assert_clean();

    let output = land(&world);
    let tip = world.head();
    assert_eq!(output.stdout, format!("Landed 1 commit on main: {}..{}\n", &base[..10], &tip[..10]));
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert_eq!((world.sandbox.read("a"), world.plan()), ("one\n".to_owned(), ONE.replace("[ ]", "[x]")));
    world.assert_clean();
    let landed = world.last("landed");
    assert_eq!((text(&landed["branch"]), text(&landed["from"]), text(&landed["to"])), ("main".to_owned(), base, tip));
    assert_refused(&world, 2, &["there is nothing to land", "verdone status"]);
}

#[test]
fn a_terminal_is_asked_once() {
    for (answer, landed) in [("y", true), ("n", false)] {
        let world = world(ONE, HONEST, "ask");
        let terminal = Tmux::start(&world.sandbox, 100, 40, ["bash", "--norc", "-i"]);
        terminal.send_keys(&[&format!("{VERDONE} run; echo \"ended with $?\""), "Enter"]);
        terminal.wait_for("Land 1 commit on main? [y/N]", PATIENCE);
        assert_eq!(world.subjects(), ["initial"], "not before the answer");
        terminal.send_keys(&[answer, "Enter"]);
        terminal.wait_for("ended with 0", PATIENCE);
        assert_eq!(world.subjects().len(), if landed { 2 } else { 1 }, "{answer}");
        assert_eq!(terminal.capture_all().contains("Landed 1 commit on main"), landed, "{}", terminal.capture_all());
    }
}

#[test]
fn a_dry_run_lists_what_would_land_and_changes_nothing() {
    let (world, branch) = waiting(TWO);
    let before = Checkout::snapshot(&world.sandbox);
    let output = world.verdone(&["land", "--dry-run"]);
    output.assert_code(0);
    assert_eq!(output.stdout, format!("2 commits on branch {branch} to land on main\n"));
    let expected = serde_json::json!([{
        "branch": branch, "commits": 2, "landable": 2, "held_back": null, "target": "main", "fast_forward": true,
    }]);
    assert_eq!(dry_run(&world), expected);
    before.assert_untouched(&world.sandbox);
    assert_eq!(world.subjects(), ["initial"]);

    commit(&world, "mine", "");
    assert_eq!(dry_run(&world)[0]["fast_forward"], false);
    land(&world);
    assert_eq!(world.verdone(&["land", "--dry-run"]).stdout, "Nothing to land.\n");
    assert_eq!(dry_run(&world), serde_json::json!([]));
}

#[test]
fn a_hidden_gate_counts_when_commits_are_verified_again() {
    for (exam, code) in [("grep -q one a", 0), ("grep -q two a", 4)] {
        let (world, _) = waiting(ONE);
        commit(&world, "mine", "");
        world.sandbox.write("../home/hidden/exam.sh", exam);
        let config = world.sandbox.read(".verdone/config.toml");
        let gate = "[[gate]]\nname = \"exam\"\ncommand = \"sh $VERDONE_HIDDEN/exam.sh\"\nhidden = \"~/hidden\"\n";
        world.sandbox.write(".verdone/config.toml", format!("{config}\n{gate}"));
        let output = world.verdone(&["land"]);
        output.assert_code(code);
        assert_eq!(output.stderr.contains("`exam` failed with exit code 1"), code != 0, "{}", output.transcript());
    }
}

#[test]
fn a_gate_for_complex_stories_runs_again_when_their_commits_are_re_applied() {
    let gate = "[[gate]]\nname = \"hard\"\nwhen = { complexity_at_least = 8 }\ncommand = \"test ! -f broken\"\n";
    let world = World::folder(HONEST, &Settings { tables: gate, ..Settings::default() });
    let settings = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", "land = \"ask\"");
    world.sandbox.write(".verdone/config.toml", settings);
    world.sandbox.write("PLAN.md", format!("{ONE}  - Complexity: high\n"));
    world.sandbox.repo();
    world.run(0);
    commit(&world, "broken", "");
    assert_refused(&world, 4, &["`hard` failed with exit code 1"]);
}

#[test]
fn an_interrupted_verification_is_no_failed_check() {
    let hangs = "test -f a && { test ! -f ../tmp/hang || { : > ../tmp/hanging; sleep 60; }; }";
    let (world, _) = waiting(&ONE.replace("test -f a", hangs));
    commit(&world, "mine", "");
    world.sandbox.write("../tmp/hang", "");
    let (before, refs) = (Checkout::snapshot(&world.sandbox), world.git(&["for-each-ref", "refs/heads"]));
    let landing = world.sandbox.spawn(VERDONE, ["land"]);
    wait_for_file(&world, "../tmp/hanging");
    landing.signal(Signal::INT);
    let output = landing.wait(PATIENCE);
    output.assert_code(130);
    assert!(output.stderr.contains("stopped by SIGINT before every commit was verified"), "{}", output.transcript());
    before.assert_untouched(&world.sandbox);
    assert_eq!(world.git(&["for-each-ref", "refs/heads"]), refs, "no branch moves");
    std::fs::remove_file(world.sandbox.path("../tmp/hang")).unwrap();
    land(&world);
}

#[test]
fn files_that_are_not_in_the_way_survive() {
    let (world, _) = waiting(ONE);
    world.sandbox.write("README.md", "edited\n");
    world.sandbox.write("staged", "staged\n");
    world.git(&["add", "staged"]);
    world.sandbox.write("notes", "untracked\n");
    let before = Checkout::snapshot(&world.sandbox);
    land(&world);
    before.assert_untouched(&world.sandbox);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nA  staged\n?? notes");
    assert!(world.has("a"));
}

#[test]
fn a_file_in_the_way_is_named_and_nothing_changes() {
    let (world, _) = waiting(ONE);
    world.sandbox.write("a", "the user's own\n");
    assert_refused(&world, 4, &["cannot land: untracked files would be overwritten: a", "move these files first"]);
    world.git(&["add", "a"]);
    assert_refused(&world, 4, &["uncommitted changes would be overwritten: a"]);
    world.git(&["rm", "--quiet", "--force", "a"]);
    world.sandbox.write("PLAN.md", format!("{ONE}\nA note.\n"));
    assert_refused(&world, 4, &["cannot land: uncommitted changes would be overwritten: PLAN.md"]);
    assert!(text(&world.last("landing_refused")["reason"]).contains("PLAN.md"));
    world.git(&["checkout", "--quiet", "PLAN.md"]);
    land(&world);
    world.assert_clean();
}

#[test]
fn an_ignored_file_in_the_way_is_not_overwritten() {
    let (world, _) = waiting(ONE);
    world.sandbox.write(".git/info/exclude", "a\n");
    world.sandbox.write("a", "ignored, and the only copy\n");
    assert_refused(&world, 4, &["cannot land", "a"]);
    assert_eq!(world.sandbox.read("a"), "ignored, and the only copy\n");
}

#[test]
fn commits_are_re_applied_and_verified_again_where_the_users_branch_has_moved_on() {
    let (world, branch) = waiting(TWO);
    let first = world.git(&["rev-parse", &branch]);
    commit(&world, "mine", "the user's\n");
    let output = land(&world);
    assert!(output.stdout.contains("Landed 2 commits on main, re-applied and verified again"), "{}", output.transcript());
    assert!(output.stdout.contains("Verifying feat(US-002): Write b"), "{}", output.transcript());
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "feat(US-001): Write a", "mine", "initial"]);
    assert_eq!(world.git(&["rev-parse", &branch]), world.head(), "the run's branch is what landed");
    assert_ne!(world.head(), first);
    for commit in ["HEAD", "HEAD^"] {
        let note: Value = serde_json::from_str(&world.git(&["notes", "--ref=verdone", "show", commit])).unwrap();
        assert_eq!(text(&note["tree"]), world.git(&["rev-parse", &format!("{commit}^{{tree}}")]), "{commit}");
        assert_eq!(text(&note["base"]), world.git(&["rev-parse", &format!("{commit}^")]), "{commit}");
        assert_eq!(world.trailer(commit, "Verdone-Proof"), "verified");
    }
    world.assert_clean();
    world.verdone(&["audit"]).assert_code(0);
    world.verdone(&["audit", "--rerun"]).assert_code(0);
}

#[test]
fn a_conflict_names_the_commit_and_the_file_and_changes_nothing() {
    let (world, branch) = waiting(TWO);
    let commit_of_a = world.git(&["rev-parse", "--short=10", &format!("{branch}^")]);
    commit(&world, "a", "the user's own a\n");
    let words = format!("cannot re-apply {commit_of_a} (feat(US-001): Write a): it conflicts in a");
    assert_refused(&world, 4, &[&words, &format!("git cherry-pick {commit_of_a}")]);
    world.git(&["revert", "--no-edit", "HEAD"]);
    land(&world);
    assert_eq!(world.sandbox.read("a"), "one\n");
}

#[test]
fn work_that_the_users_branch_has_already_proves_nothing_and_does_not_land() {
    let (world, branch) = waiting(ONE);
    let content = world.sandbox.run("git", ["show", &format!("{branch}:a")]).stdout;
    commit(&world, "a", &content);
    assert_refused(&world, 4, &["already has the change of a by US-001", "verdone undo US-001"]);
}

#[test]
fn work_that_fails_on_top_of_the_users_commits_does_not_land() {
    let (world, _) = waiting(&ONE.replace("test -f a", "test -f a && test ! -f broken"));
    commit(&world, "broken", "");
    let words = ["(feat(US-001): Write a) fails its checks after being re-applied", "failed with exit code 1"];
    assert_refused(&world, 4, &words);
    world.git(&["rm", "--quiet", "broken"]);
    world.git(&["commit", "--quiet", "-m", "mended"]);
    land(&world);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "mended", "broken", "initial"]);
}

#[test]
fn a_run_that_began_without_a_branch_lands_once_there_is_one() {
    let world = world(ONE, HONEST, "ask");
    world.git(&["checkout", "--quiet", "--detach"]);
    world.run(0);
    assert_refused(&world, 4, &["cannot land: HEAD is detached", "git switch BRANCH"]);
    world.git(&["switch", "--quiet", "main"]);
    land(&world);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
}

#[test]
fn commits_land_on_the_branch_that_the_run_began_on_whichever_is_checked_out() {
    let (world, _) = waiting(ONE);
    world.git(&["switch", "--quiet", "--create", "other"]);
    commit(&world, "elsewhere", "");
    let here = world.head();
    let output = land(&world);
    assert!(output.stdout.contains("Landed 1 commit on main"), "{}", output.stdout);
    assert_eq!((world.head(), world.has("a")), (here, false), "other is what it was");
    assert_eq!(world.git(&["log", "--format=%s", "main"]), "feat(US-001): Write a\ninitial");
    world.assert_clean();
}

#[test]
fn a_branch_that_another_work_tree_is_on_is_landed_there() {
    let (world, _) = waiting(ONE);
    world.git(&["switch", "--quiet", "--create", "other"]);
    world.git(&["worktree", "add", "--quiet", "../there", "main"]);
    assert_refused(&world, 4, &["the branch is checked out in", "/there"]);
}

#[test]
fn switched_off_nothing_lands_until_it_is_asked_for() {
    let world = world(ONE, HONEST, "off");
    world.run(0);
    assert_eq!((world.subjects(), world.all("landed").len()), (vec!["initial".to_owned()], 0));
    land(&world);
    assert_eq!(world.subjects().len(), 2);
}

#[test]
fn what_could_not_land_after_its_story_lands_with_the_next() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ say = \"at work\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"b\" }]\n";
    let world = World::new(TWO, script);
    world.sandbox.write("a", "in the way\n");
    let run = world.start();
    run.wait_for("at work", PATIENCE);
    assert_eq!(world.subjects(), ["initial"]);
    world.by_user(|| std::fs::remove_file(world.sandbox.path("a")).unwrap());
    world.sandbox.write("../tmp/go", "");
    let output = run.wait(PATIENCE);
    output.assert_code(0);
    assert!(output.stdout.contains("Not landed: cannot land: untracked files would be overwritten: a"), "{}", output.stdout);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    assert_eq!((world.all("landing_refused").len(), world.all("landed").len()), (1, 1));
    world.assert_clean();
}

#[test]
fn a_landing_that_was_killed_at_any_point_is_finished_by_the_next() {
    for point in ["land-files", "land-files-moved", "land-branch", "land-branch-moved"] {
        let (world, _) = waiting(TWO);
        world.sandbox.write("README.md", "edited\n");
        let mut command = world.sandbox.command(VERDONE);
        let killed = command.arg("land").env("VERDONE_FAULT", format!("kill@{point}:1")).status().unwrap();
        assert!(!killed.success(), "{point}");
        assert_eq!(world.subjects().len(), if point == "land-branch-moved" { 3 } else { 1 }, "{point}");
        if point != "land-branch-moved" {
            land(&world);
        }
        assert_eq!(world.subjects(), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"], "{point}");
        let said = world.verdone(&["land", "--dry-run"]).stdout;
        assert_eq!(said, "Nothing to land.\n", "{point}");
        let _ = world.verdone(&["land"]);
        assert_eq!(text(&world.last("landed")["to"]), world.head(), "{point}: the journal knows");
        assert_eq!(world.git(&["status", "--porcelain"]), " M README.md", "{point}");
        assert_eq!(world.sandbox.read("b"), "two\n", "{point}");
        world.sandbox.write("README.md", "# A project\n");
        world.run(0);
    }
}

#[test]
fn files_that_are_already_what_they_are_to_become_are_not_in_the_way() {
    let (world, _) = waiting(ONE);
    world.sandbox.write("a", "one\n");
    land(&world);
    world.assert_clean();
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn of_several_branches_one_has_to_be_named() {
    let (world, first) = waiting(ONE);
    world.run_with(&["--fresh"], 0);
    let second = branch_of(&world);
    assert_ne!(first, second);
    assert_refused(&world, 2, &["several runs have commits to land", &first, &second, &format!("verdone land {second}")]);
    let unknown = world.verdone(&["land", "nowhere"]);
    unknown.assert_code(2);
    assert!(unknown.stderr.contains("no run worked on branch nowhere"), "{}", unknown.stderr);
    let landed = world.verdone(&["land", &first, "--json"]);
    landed.assert_code(0);
    let landed: Value = serde_json::from_str(&landed.stdout).unwrap();
    assert_eq!((text(&landed["branch"]), text(&landed["into"]), &landed["commits"]), (first, "main".to_owned(), &1.into()));
    assert_eq!(landed["reapplied"], false);
    assert_eq!(text(&landed["to"]), world.head());
}

#[test]
fn a_runs_branch_that_a_work_tree_is_on_is_not_re_applied() {
    let (world, branch) = waiting(ONE);
    commit(&world, "mine", "");
    world.git(&["worktree", "add", "--quiet", "../there", &branch]);
    assert_refused(&world, 4, &[&format!("branch {branch} is checked out in"), "/there", "git switch BRANCH"]);
    world.git(&["worktree", "remove", "../there"]);
    land(&world);
}

#[test]
fn a_re_applied_landing_that_git_left_half_done_is_finished_and_recorded_by_the_next_command() {
    // After the last check, the filter of one file fails.
    let (world, branch) = waiting(&ONE.replace("test -f a", "test -f a && if test -f mine; then : > ../tmp/broken; fi"));
    world.sandbox.write(".git/info/attributes", "a filter=fails\n");
    world.git(&["config", "filter.fails.required", "true"]);
    world.git(&["config", "filter.fails.clean", "cat"]);
    let broken = world.sandbox.path("../tmp/broken");
    world.git(&["config", "filter.fails.smudge", &format!("test ! -e '{}' && cat", broken.display())]);
    commit(&world, "mine", "");
    let old = world.git(&["rev-parse", &branch]);
    let half = world.verdone(&["land"]);
    half.assert_code(1);
    assert!(half.stderr.contains("git stopped in the middle of landing"), "{}", half.transcript());
    std::fs::remove_file(broken).unwrap();
    let again = land(&world);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "mine", "initial"], "{}", again.transcript());
    assert_ne!(world.git(&["rev-parse", &branch]), old);
    assert_eq!(world.git(&["rev-parse", &branch]), world.head());
    assert_eq!(world.all("landing_refused").len(), 0);
    assert_eq!(text(&world.last("landed")["to"]), world.head());
    assert_eq!(dry_run(&world), serde_json::json!([]));
    world.verdone(&["audit"]).assert_code(0);
}

#[test]
fn a_re_application_that_was_killed_around_the_move_of_the_branch_can_be_landed_and_undone() {
    for (point, next) in [("ref-set", "land"), ("ref-was-set", "land"), ("ref-set", "undo"), ("ref-was-set", "undo")] {
        let (world, branch) = waiting(ONE);
        commit(&world, "mine", "");
        let old = world.git(&["rev-parse", &branch]);
        let mut command = world.sandbox.command(VERDONE);
        command.arg("land").env("VERDONE_FAULT", format!("kill@{point}:1"));
        assert!(!command.status().unwrap().success());
        assert_eq!(world.git(&["rev-parse", &branch]) == old, point == "ref-set");
        if next == "land" {
            land(&world);
            world.verdone(&["audit"]).assert_code(0);
        }
        world.verdone(&["undo"]).assert_code(0);
        let landed = world.subjects().len() == 4;
        assert_eq!(landed, next == "land", "{point}, {next}: {:?}", world.subjects());
        assert_eq!(world.git(&["log", "--format=%s", &branch]).contains("US-001"), landed, "{point}, {next}");
    }
}

#[test]
fn re_applied_commits_keep_their_author_and_date() {
    let (world, branch) = waiting(ONE);
    world.git(&["switch", "--quiet", &branch]);
    world.sandbox.write("theirs", "");
    world.git(&["add", "theirs"]);
    let date = "2020-02-03T04:05:06+07:00";
    world.git(&["commit", "--quiet", "-m", "theirs", "--author=Ann Other <ann@example.org>", "--date", date]);
    world.git(&["switch", "--quiet", "main"]);
    commit(&world, "mine", "");
    land(&world);
    assert_eq!(world.git(&["log", "-1", "--format=%s|%an|%ae|%aI"]), format!("theirs|Ann Other|ann@example.org|{date}"));
}

#[test]
fn a_landing_at_the_end_of_a_run_is_recorded_and_counts_for_its_stories() {
    for landing in ["auto", "ask"] {
        let world = world(ONE, HONEST, landing);
        world.sandbox.write(".ralph/PRD-1/plan.md", ONE);
        world.sandbox.write(".ralph/PRD-1/progress.md", "# Progress Log\n");
        world.git(&["add", ".ralph"]);
        world.git(&["commit", "--quiet", "-m", "plan"]);
        world.run_with(&["--prd", "1"], 0);
        if landing == "ask" {
            land(&world);
        }
        assert_eq!(world.subjects()[..2], ["chore: record progress", "feat(US-001): Write a"], "{landing}");
        assert_eq!(text(&world.last("landed")["to"]), world.head(), "{landing}");
        let said = world.verdone(&["report"]).stdout;
        assert!(!said.contains("not landed"), "{landing}: {said}");
    }
}
