//! Where a run's commits go, what it starts from, and how it reads and marks the plan.

use verdone_testkit::Checkout;

use crate::run_loop::land::{branch_of, commit, world};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Run, Settings, TWO, VERDONE, World, always, text};

/// The first story waits for the test.
const WAITS: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ say = \"at work\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\", text = \"one\\n\" }]\n\
                     [[turn]]\nsteps = [{ run = \"echo $VERDONE_STORY > $(echo $VERDONE_STORY | tr 123 abc | tail -c 2)\" }]\n";

fn at_work(world: &World) -> Run<'_> {
    let run = world.start();
    run.wait_for("at work", PATIENCE);
    run
}

/// Lets the agent continue, and waits for the run to end.
#[track_caller]
fn finish(world: &World, run: Run<'_>, code: i32) -> String {
    world.sandbox.write("../tmp/go", "");
    let output = run.wait(PATIENCE);
    output.assert_code(code);
    output.stdout
}

fn subjects_of(world: &World, branch: &str) -> Vec<String> {
    world.git(&["log", "--format=%s", branch]).lines().map(str::to_owned).collect()
}

/// A run whose branch has a custom name.
#[track_caller]
fn run_on(world: &World, arguments: &[&str]) {
    world.sandbox.verdone(VERDONE, [&["run"], arguments].concat()).assert_code(0);
}

/// Asserts that the run is refused before anything happens.
#[track_caller]
fn assert_refused(world: &World, arguments: &[&str], words: &[&str]) {
    let branches = world.sandbox.run("git", ["for-each-ref", "refs/heads"]).stdout;
    let output = world.run_with(arguments, 2);
    for words in words {
        assert!(output.stderr.contains(words), "{words}: {}", output.transcript());
    }
    assert_eq!(world.sandbox.run("git", ["for-each-ref", "refs/heads"]).stdout, branches);
}

#[test]
fn a_second_run_continues_the_branch_of_the_first() {
    let world = world(TWO, HONEST, "ask");
    world.run_with(&["--max-iterations", "1"], 3);
    let branch = branch_of(&world);
    let output = world.run(0);
    assert!(output.stdout.contains(&format!("continuing branch {branch} (1 commit to land)")), "{}", output.stdout);
    assert_eq!((branch_of(&world), world.all("committed").len()), (branch.clone(), 1), "US-001 is not done again");
    assert_eq!(subjects_of(&world, &branch), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.plan(), TWO, "ticked in the commits, not in the checkout");
    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.plan(), TWO.replace("[ ]", "[x]"));
    world.verdone(&["audit"]).assert_code(0);
}

#[test]
fn fresh_starts_over_and_leaves_the_old_branch() {
    let world = world(TWO, HONEST, "ask");
    world.run_with(&["--max-iterations", "1"], 3);
    let old = branch_of(&world);
    world.run_with(&["--fresh"], 0);
    let new = branch_of(&world);
    assert_ne!(old, new);
    assert_eq!(subjects_of(&world, &new), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    assert_eq!(subjects_of(&world, &old), ["feat(US-001): Write a", "initial"]);
    let bases: Vec<String> = world.all("attempt_started").iter().map(|event| text(&event["base"])).collect();
    assert_eq!(bases[0], world.head());
}

#[test]
fn commits_go_to_the_branch_that_is_asked_for() {
    let world = world(TWO, HONEST, "ask");
    run_on(&world, &["--branch", "work/it", "--story", "US-001"]);
    assert_eq!(branch_of(&world), "work/it");
    assert_eq!(subjects_of(&world, "work/it"), ["feat(US-001): Write a", "initial"]);
    // An existing branch is continued, including the user's commits on it.
    world.git(&["switch", "--quiet", "work/it"]);
    commit(&world, "mine", "");
    world.git(&["switch", "--quiet", "main"]);
    run_on(&world, &["--branch", "work/it"]);
    assert_eq!(subjects_of(&world, "work/it"), ["feat(US-002): Write b", "mine", "feat(US-001): Write a", "initial"]);
    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.subjects().len(), 4);
}

#[test]
fn a_branch_that_cannot_be_used_is_refused() {
    let world = World::new(ONE, HONEST);
    assert_refused(&world, &["--branch", "no..name"], &["\"no..name\" is not a valid branch name", "--branch NAME"]);
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    assert_refused(&world, &["--branch", "side"], &["branch side is checked out in", "/side"]);
    world.git(&["branch", "verdone"]);
    assert_refused(&world, &[], &["the branch \"verdone\" blocks the names of run branches", "git branch -m verdone NAME"]);
    run_on(&world, &["--branch", "free"]);
}

#[test]
fn the_branch_that_is_checked_out_is_moved_by_landing_alone() {
    let world = world(ONE, HONEST, "ask");
    world.run_with(&["--branch", "main"], 0);
    assert!(branch_of(&world).starts_with("verdone/"), "{}", branch_of(&world));
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn a_plan_may_name_its_branch() {
    let plan = r#"{ "branchName": "ralph/it", "userStories": [{ "id": "US-001", "title": "Write a", "passes": false }] }"#;
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("prd.json", plan);
    world.sandbox.repo();
    run_on(&world, &["--check", "test -f README.md"]);
    assert_eq!(branch_of(&world), "ralph/it");
    assert_eq!(subjects_of(&world, "ralph/it"), ["feat(US-001): Write a", "initial"]);
}

#[test]
fn once_everything_is_landed_the_next_run_starts_from_the_users_new_tip() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--story", "US-001"], 0);
    let old = branch_of(&world);
    commit(&world, "mine", "");
    let tip = world.head();
    world.run(0);
    assert_ne!(branch_of(&world), old);
    assert_eq!(text(&world.last("attempt_started")["base"]), tip);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "mine", "feat(US-001): Write a", "initial"]);
}

#[test]
fn commits_that_wait_while_the_users_branch_moved_on_come_first() {
    let world = world(TWO, HONEST, "ask");
    world.run_with(&["--story", "US-001"], 0);
    commit(&world, "mine", "");
    let words = ["1 commit is", "not landed yet, and main has moved on", "verdone land", "verdone run --fresh"];
    assert_refused(&world, &[], &words);
    world.verdone(&["land"]).assert_code(0);
    world.run(0);
    assert_eq!(world.all("committed").len(), 1);
}

#[test]
fn commits_of_the_users_change_nothing_for_the_attempt_in_progress() {
    let world = World::new(ONE, WAITS);
    let base = world.head();
    let run = at_work(&world);
    world.by_user(|| commit(&world, "mine", ""));
    let said = finish(&world, run, 0);
    assert!(said.contains("Not landed: cannot land: the branch has moved on to"), "{said}");
    let branch = branch_of(&world);
    assert_eq!(world.git(&["rev-parse", &format!("{branch}^")]), base);
    assert_eq!(world.subjects(), ["mine", "initial"]);
    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "mine", "initial"]);
}

#[test]
fn a_user_who_switches_branches_during_a_run_keeps_the_new_one_as_it_is() {
    let world = World::new(ONE, WAITS);
    // Landing moves main, which is not checked out at that time.
    let run = world.sandbox.spawn(VERDONE, ["run"]);
    run.wait_for("at work", PATIENCE);
    world.git(&["switch", "--quiet", "--create", "other"]);
    world.sandbox.write("../tmp/go", "");
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(subjects_of(&world, "other"), ["initial"]);
    assert_eq!(subjects_of(&world, "main"), ["feat(US-001): Write a", "initial"], "landed where the run began");
    assert!(!world.has("a"));
    world.assert_clean();
}

#[test]
fn edits_of_the_users_during_a_run_are_neither_seen_nor_lost() {
    let world = World::new(&ONE.replace("test -f a", "test -f a && grep -q project README.md"), WAITS);
    let run = at_work(&world);
    world.by_user(|| {
        world.sandbox.write("README.md", "half a thought\n");
        world.sandbox.write("notes", "mine\n");
    });
    finish(&world, run, 0);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\n?? notes");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na");
}

#[test]
fn a_repository_without_a_commit_is_refused_with_the_way_out() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet"]);
    assert_refused(&world, &[], &["the repository has no commit yet", "git add -A && git commit -m \"first commit\""]);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "start"]);
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "start"]);
    assert_eq!(
        world.git(&["show", "--name-only", "--format=", "HEAD"]),
        "a",
        "the plan and the settings are the user's to commit"
    );
}

#[test]
fn a_detached_head_is_no_obstacle() {
    let world = World::new(ONE, HONEST);
    world.git(&["checkout", "--quiet", "--detach"]);
    let (base, before) = (world.head(), Checkout::snapshot(&world.sandbox));
    let output = world.run(0);
    assert!(output.stdout.contains("Not landed: cannot land: HEAD is detached"), "{}", output.stdout);
    assert_eq!(world.git(&["rev-parse", &format!("{}^", branch_of(&world))]), base);
    before.assert_untouched(&world.sandbox);
}

#[test]
fn another_branch_is_what_the_run_starts_from_and_lands_on() {
    let world = World::new(ONE, HONEST);
    world.git(&["switch", "--quiet", "--create", "work"]);
    commit(&world, "mine", "");
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "mine", "initial"]);
    assert_eq!(subjects_of(&world, "main"), ["initial"]);
}

#[test]
fn a_plan_in_no_commit_is_ticked_in_the_users_file_and_stays_out_of_commits() {
    for (committed, status) in [(None, "?? PLAN.md"), (Some("# An older plan\n"), " M PLAN.md")] {
        let world = World::folder(HONEST, &Settings::default());
        if let Some(text) = committed {
            world.sandbox.write("PLAN.md", text);
        }
        world.sandbox.repo();
        world.sandbox.write("PLAN.md", TWO);
        world.run(0);
        assert_eq!(world.plan(), TWO.replace("[ ]", "[x]"));
        assert_eq!(world.git(&["status", "--porcelain"]), status);
        assert_eq!(world.git(&["diff", "--name-only", "HEAD~2", "HEAD"]), "a\nb");
        for verified in world.all("verified") {
            assert!(verified["restored"].is_null(), "the agent edited no plan: {verified}");
        }
    }
}

#[test]
fn a_tick_in_the_users_file_stays_when_the_next_story_fails() {
    let world = World::folder(&always("{ create = \"a\" }"), &Settings::default());
    world.sandbox.repo();
    world.sandbox.write("PLAN.md", TWO);
    world.run(4);
    assert_eq!(world.plan(), TWO.replacen("[ ]", "[x]", 1));
}

#[test]
fn the_agent_sees_the_plan_as_the_user_has_it() {
    let script = "[[turn]]\nsteps = [{ run = \"cp PLAN.md a\" }]\n";
    let world = World::new("# An older plan\n", script);
    world.sandbox.write("PLAN.md", ONE);
    world.run(0);
    assert_eq!(world.sandbox.read("a"), ONE);
}

#[test]
fn an_edit_of_the_plan_counts_from_the_next_story_and_keeps_earlier_ticks() {
    let edited = format!("{TWO}\n### US-003: Write c\n\n- [ ] Write the file c\n").replace("Write b", "Write the b");
    for landing in ["ask", "auto"] {
        let waits = WAITS.replace("\"US-001\"", "\"US-002\"").replace("create = \"a\"", "create = \"b\"");
        let world = world(TWO, &waits, landing);
        let run = world.start_with(&["--check", "true"]);
        run.wait_for("at work", PATIENCE);
        let ticked = landing == "auto";
        world.by_user(|| world.sandbox.write("PLAN.md", if ticked { edited.replacen("[ ]", "[x]", 1) } else { edited.clone() }));
        let said = finish(&world, run, 0);
        assert!(said.contains("the plan was edited"), "{said}");
        assert_eq!(world.plan(), edited.replace("[ ]", "[x]"), "{landing}");
        let titles = subjects_of(&world, &branch_of(&world));
        assert_eq!(titles[..3], ["feat(US-003): Write c", "feat(US-002): Write b", "feat(US-001): Write a"], "{landing}");
    }
}

#[test]
fn a_named_branch_that_is_landed_and_behind_is_continued_from_the_users_tip() {
    let world = world(TWO, HONEST, "ask");
    run_on(&world, &["--branch", "work/it", "--story", "US-001"]);
    world.verdone(&["land"]).assert_code(0);
    commit(&world, "mine", "");
    run_on(&world, &["--branch", "work/it"]);
    assert_eq!(subjects_of(&world, "work/it"), ["feat(US-002): Write b", "mine", "feat(US-001): Write a", "initial"]);
    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.subjects().len(), 4);
}

/// A run during which the user switches to the run's branch.
fn on_the_runs_branch(world: &World, arrange: impl FnOnce()) -> (verdone_testkit::Output, String) {
    let run = world.sandbox.spawn(VERDONE, ["run"]);
    run.wait_for("at work", PATIENCE);
    let branch = branch_of(world);
    world.git(&["switch", "--quiet", &branch]);
    arrange();
    world.sandbox.write("../tmp/go", "");
    (run.wait(PATIENCE), branch)
}

#[test]
fn a_user_who_switches_to_the_runs_branch_gets_the_files_of_its_commits() {
    let world = world(TWO, WAITS, "ask");
    let (output, branch) = on_the_runs_branch(&world, || world.sandbox.write("README.md", "being edited\n"));
    output.assert_code(0);
    assert_eq!(subjects_of(&world, &branch), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    assert!(world.has("a") && world.has("b"), "{}", output.transcript());
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md");
    assert_eq!(subjects_of(&world, "main"), ["initial"]);
}

#[test]
fn a_commit_that_the_checked_out_branch_cannot_get_is_kept_and_the_run_says_how_to_add_it() {
    let world = world(ONE, WAITS, "ask");
    let (output, branch) = on_the_runs_branch(&world, || world.sandbox.write("a", "the user's own\n"));
    output.assert_code(1);
    let run = branch.trim_start_matches("verdone/").to_owned();
    let kept = format!("refs/verdone/commits/{run}");
    for words in ["is checked out in", "untracked files would be overwritten: a", &format!("git merge {kept}")] {
        assert!(output.stdout.contains(words), "{words}: {}", output.transcript());
    }
    assert_eq!(
        (world.sandbox.read("a"), subjects_of(&world, &branch)),
        ("the user's own\n".to_owned(), vec!["initial".to_owned()])
    );
    assert_eq!(world.git(&["status", "--porcelain"]), "?? a");
    std::fs::remove_file(world.sandbox.path("a")).unwrap();
    world.git(&["merge", "--quiet", &kept]);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    world.git(&["switch", "--quiet", "main"]);
    world.verdone(&["land"]).assert_code(0);
    world.verdone(&["prune", "--keep", "0"]).assert_code(0);
    assert_eq!(world.git(&["for-each-ref", "refs/verdone"]), "");
}

#[test]
fn where_everything_is_landed_the_next_attempt_starts_from_the_users_new_tip() {
    // The second story's first attempt only waits.
    let waits = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                 [[turn]]\nattempt = 1\nsteps = [{ say = \"at work\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }]\n\
                 [[turn]]\nsteps = [{ run = \"test -f mine && echo two > b\" }]\n";
    let world = World::with(TWO, waits, &Settings { limits: "attempts = 2\nturns = 1", ..Settings::default() });
    let run = world.sandbox.spawn(VERDONE, ["run"]);
    run.wait_for("at work", PATIENCE);
    commit(&world, "mine", "");
    let tip = world.head();
    world.sandbox.write("../tmp/go", "");
    let output = run.wait(PATIENCE);
    output.assert_code(0);
    assert!(output.stdout.contains("main has moved on: continuing from"), "{}", output.stdout);
    assert_eq!(text(&world.last("attempt_started")["base"]), tip);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "mine", "feat(US-001): Write a", "initial"]);
    assert_eq!(world.all("landed").len(), 2);
    world.assert_clean();
    world.verdone(&["audit"]).assert_code(0);
}
