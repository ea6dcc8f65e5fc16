//! Story commits and their evidence: honest histories pass, and each kind of damage gets its own message.

use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::{Output, Signal};

use crate::run_loop::world::{HONEST, ONE, PATIENCE, TWO, VERDONE, World, always, text};

/// Two stories in two runs, so that the evidence chain spans both.
pub(crate) fn two_stories() -> World {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--max-iterations", "1"], 3);
    world.run(0);
    world
}

#[track_caller]
pub(crate) fn audit(world: &World, arguments: &[&str], code: i32) -> Output {
    let output = world.verdone(&[&["audit"], arguments].concat());
    output.assert_code(code);
    output
}

/// The output without line breaks.
pub(crate) fn flat(output: &Output) -> String {
    output.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The story and kind of each problem; missing commits come last.
#[track_caller]
pub(crate) fn problems(world: &World, code: i32) -> Vec<String> {
    let found: Value = serde_json::from_str(&audit(world, &["--json"], code).stdout).unwrap();
    assert_eq!(found["holds"], code == 0);
    let of = |story: &Value| {
        let name = story["story"].as_str().unwrap_or("?").to_owned();
        let kinds = story["problems"].as_array().unwrap().iter().map(move |problem| format!("{name} {}", text(&problem["kind"])));
        kinds.collect::<Vec<_>>()
    };
    let gone = |gone: &Value| format!("{} {}", text(&gone["story"]), text(&gone["problem"]["kind"]));
    let missing = found["missing"].as_array().into_iter().flatten().map(gone);
    found["stories"].as_array().unwrap().iter().flat_map(of).chain(missing).collect()
}

fn note(world: &World, commit: &str) -> Value {
    serde_json::from_str(&world.git(&["notes", "--ref=verdone", "show", commit])).unwrap()
}

#[track_caller]
pub(crate) fn shell(world: &World, script: &str) {
    world.sandbox.run("sh", ["-ec", script]).assert_code(0);
}

#[test]
fn an_honest_history_holds_and_names_its_evidence() {
    let world = two_stories();
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "my own"]);
    let all = audit(&world, &[], 0);
    assert!(
        all.stdout.contains("2 stories passed the audit.") && all.stdout.contains("1 commit in between is not Verdone's."),
        "{}",
        all.stdout
    );
    assert!(audit(&world, &["HEAD~1"], 0).stdout.contains("1 story passed the audit."));
    assert!(audit(&world, &["HEAD~2..HEAD"], 0).stdout.contains("US-002"));
    assert!(audit(&world, &["HEAD"], 4).stdout.contains("No story's commit is in this range."));

    let (first, second) = (note(&world, "HEAD~2"), note(&world, "HEAD~1"));
    assert_eq!(first["previous"], Value::Null);
    assert_eq!(text(&second["previous"]), world.trailer("HEAD~2", "Verdone-Evidence"), "across two runs");
    assert_ne!(text(&first["run"]), text(&second["run"]));
    assert_eq!(first["gates"], second["gates"]);
    let committed = world.last("committed");
    assert_eq!(text(&committed["evidence"]), world.trailer("HEAD~1", "Verdone-Evidence"), "in the journal");
}

#[test]
fn the_note_keeps_what_the_agent_claimed() {
    let world = World::new(ONE, &always("{ create = \"a\" }, { claim = \"Everything is done, I promise.\" }"));
    world.run(0);
    assert!(text(&note(&world, "HEAD")["claim"]).ends_with("Everything is done, I promise."));
    assert!(audit(&world, &[], 0).stdout.contains("claimed: "));
    let shown = world.verdone(&["show", "US-001"]).stdout;
    assert!(shown.contains("claimed: ") && shown.contains("evidence sha256:"), "{shown}");
    let report = world.verdone(&["report"]).stdout;
    assert!(report.contains("- note: `sha256:") && report.contains("- claimed: "), "{report}");
}

#[test]
fn each_kind_of_damage_is_told_in_its_own_words() {
    let world = two_stories();
    let (head, notes) = (world.head(), world.git(&["rev-parse", "refs/notes/verdone"]));
    let remake = "remake() { git log -1 --format=%B $1 > ../tmp/m; new=$(git commit-tree $1^{tree} -p $2 -F ../tmp/m); \
                  git notes --ref=verdone copy $1 $new; }; a=$(git rev-parse HEAD~1); b=$(git rev-parse HEAD); i=$(git rev-parse HEAD~2)\n";
    let edit =
        "show() { git notes --ref=verdone show $1; }; put() { git notes --ref=verdone add -f -F ../tmp/n $1 2>../tmp/err; }\n";
    let table: [(&str, &str, &str, &[&str]); 12] = [
        (
            "all notes removed",
            "git update-ref -d refs/notes/verdone",
            "no evidence notes found; to fetch them: git fetch",
            &["US-001 note_missing", "US-002 note_missing"],
        ),
        (
            "note copied to another commit",
            "git notes --ref=verdone copy HEAD HEAD~2",
            "the note on it is the evidence of another commit",
            &["? note_of_another"],
        ),
        (
            "note edited",
            "show HEAD | sed 's/\"turns\": 1/\"turns\": 9/' > ../tmp/n; put HEAD",
            "its evidence note was edited: the commit names sha256:",
            &["US-002 note_edited", "US-002 journal_differs"],
        ),
        (
            "note removed",
            "git notes --ref=verdone remove HEAD~1 2>../tmp/err",
            "there is no evidence note on this commit",
            &["US-001 note_missing"],
        ),
        (
            "note moved",
            "git notes --ref=verdone copy HEAD HEAD~2; git notes --ref=verdone remove HEAD 2>../tmp/err",
            "the note was moved",
            &["? note_of_another", "US-002 note_moved"],
        ),
        (
            "amended with another tree",
            "echo more > more; git add more; git commit --quiet --amend --no-edit",
            "its tree differs and was not checked",
            &["US-002 commit_rewritten", "US-002 not_in_journal"],
        ),
        (
            "another tree, and the note copied",
            "old=$(git rev-parse HEAD); echo more > more; git add more; git commit --quiet --amend --no-edit; \
             git notes --ref=verdone copy $old HEAD",
            "and the checks ran on",
            &["US-002 tree_differs", "US-002 not_in_journal"],
        ),
        (
            "a story removed from the history",
            "remake $b $i; git reset --quiet --hard $new",
            "that story's commit or note was removed, edited or rewritten",
            &["US-002 commit_rebased", "US-002 chain_lost", "US-002 not_in_journal", "US-001 commit_missing"],
        ),
        (
            "stories reordered",
            "remake $b $i; first=$new; remake $a $first; git reset --quiet --hard $new",
            "commits or notes were removed, added or reordered",
            &["US-002 commit_rebased", "US-002 chain_broken", "US-002 not_in_journal", "US-001 not_in_journal"],
        ),
        (
            "verdict forged, digests and all",
            "old=$(git rev-parse HEAD); show HEAD | sed 's/\"red\": \"red\"/\"red\": \"green\"/' > ../tmp/n; \
             digest=$(sha256sum < ../tmp/n | cut -c1-64); \
             git log -1 --format=%B | sed \"s/sha256:.*/sha256:$digest/\" > ../tmp/m; git commit --quiet --amend -F ../tmp/m; put HEAD; \
             git notes --ref=verdone remove $old 2>../tmp/err",
            "its checks do not make it verified: none of the story's checks failed before the work",
            &["US-002 proof_overclaimed", "US-002 not_in_journal"],
        ),
        (
            "message says another verdict",
            "git log -1 --format=%B | sed 's/Verdone-Story: .*/Verdone-Story: US-777/' > ../tmp/m; old=$(git rev-parse HEAD); \
             git commit --quiet --amend -F ../tmp/m; git notes --ref=verdone copy $old HEAD",
            "its message says story \"US-777\", its evidence says \"US-002\"",
            &["US-002 message_differs", "US-002 not_in_journal"],
        ),
        (
            "cherry-picked",
            "git checkout --quiet --detach HEAD~2; git cherry-pick main >../tmp/out",
            "it was amended, rebased or cherry-picked from",
            &["US-002 commit_rewritten", "US-002 not_in_journal"],
        ),
    ];
    for (name, damage, words, kinds) in table {
        shell(&world, &format!("{edit}{remake}{damage}"));
        assert_eq!(problems(&world, 1), kinds, "{name}");
        let told = flat(&audit(&world, &[], 1)).to_lowercase();
        assert!(told.contains(&words.to_lowercase()), "{name}: {told}");
        world.git(&["checkout", "--quiet", "main"]);
        world.git(&["reset", "--quiet", "--hard", &head]);
        world.git(&["update-ref", "refs/notes/verdone", &notes]);
    }
    assert_eq!(problems(&world, 0), Vec::<String>::new());
}

#[test]
fn a_tree_that_a_git_hook_rewrote_holds_and_the_note_keeps_both() {
    let world = World::new(TWO, HONEST);
    world.hook("pre-commit", "for f in a b; do test ! -f $f || { echo rewritten > $f; git add $f; }; done");
    world.run(0);
    let told = audit(&world, &[], 0).stdout;
    assert!(told.contains("A git hook rewrote its tree"), "{told}");
    let (first, second) = (note(&world, "HEAD~1"), note(&world, "HEAD"));
    assert_eq!(text(&first["tree"]), world.git(&["rev-parse", "HEAD~1^{tree}"]));
    assert_ne!(first["tree"], first["amends"]["tree"]);
    assert_ne!(text(&second["previous"]), world.trailer("HEAD~1", "Verdone-Evidence"), "the chain goes by notes");
}

#[test]
fn a_commit_message_that_a_hook_replaces_keeps_its_trailers_and_holds_without_the_journal() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "echo 'PROJ-7 all new' > \"$1\"");
    world.run(0);
    assert_eq!(world.subjects()[0], "PROJ-7 all new");
    std::fs::rename(world.sandbox.path(".verdone/runs"), world.sandbox.path("../tmp/runs")).unwrap();
    assert!(problems(&world, 0).is_empty());
}

#[test]
fn a_fresh_clone_is_audited_once_it_has_the_notes() {
    let world = two_stories();
    world.git(&["clone", "--quiet", ".", "../tmp/clone"]);
    let there = |code: i32| {
        let output = world.sandbox.verdone(VERDONE, ["-C", "../tmp/clone", "audit"]);
        output.assert_code(code);
        output.stdout
    };
    let told = there(1);
    assert!(told.contains("No evidence notes found"), "{told}");
    world.git(&["-C", "../tmp/clone", "fetch", "--quiet", "origin", "refs/notes/verdone:refs/notes/verdone"]);
    let told = there(0);
    assert!(told.contains("2 stories passed the audit.") && told.contains("No journal of their runs was found"), "{told}");

    world.git(&["clone", "--quiet", "--depth=1", &format!("file://{}", world.sandbox.work().display()), "../tmp/shallow"]);
    world.git(&["-C", "../tmp/shallow", "fetch", "--quiet", "origin", "refs/notes/verdone:refs/notes/verdone"]);
    let shallow = world.sandbox.verdone(VERDONE, ["-C", "../tmp/shallow", "audit"]);
    shallow.assert_code(0);
    assert!(flat(&shallow).contains("a shallow clone"), "{}", shallow.stdout);
}

#[test]
fn long_ids_are_audited_too() {
    let world = World::folder(HONEST, &crate::run_loop::world::Settings::default());
    world.sandbox.write("PLAN.md", ONE);
    world.git(&["init", "--quiet", "--object-format=sha256"]);
    audit(&world, &[], 4);
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "-m", "initial"]);
    audit(&world, &[], 4);
    world.run(0);
    audit(&world, &[], 0);
}

#[test]
fn a_hostile_range_is_a_name_and_never_an_option() {
    let world = World::new(ONE, HONEST);
    for range in [
        "--output=pwned",
        "-n1",
        "--all",
        "$(touch pwned)",
        "HEAD...HEAD",
        "..",
        "...",
        "",
        "HEAD^{tree}",
        "HEAD..--output=pwned",
        "--output=pwned..HEAD",
        "a\u{1b}[2Jb",
        "HEAD\nHEAD",
        "HEAD HEAD",
        "../../etc/passwd",
        "@{upstream}",
    ] {
        let output = audit(&world, &["--", range], 2);
        assert!(!output.stderr.contains('\u{1b}') && output.stdout.is_empty(), "{range:?}: {}", output.stderr);
        assert!(!world.has("pwned"), "{range:?}");
    }
}

#[test]
fn stories_that_are_verified_again_hold() {
    let world = two_stories();
    let output = audit(&world, &["--rerun"], 0);
    assert!(output.stdout.contains("Run again, test -f b passed"), "{}", output.stdout);
    assert!(output.stderr.contains("verifying US-001"), "{}", output.stderr);
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    world.assert_clean();
}

#[test]
fn what_only_an_earlier_build_made_green_is_red_again() {
    let world = World::new(&ONE.replace("test -f a", "test -f a && test -f target/helper"), HONEST);
    world.sandbox.write(".git/info/exclude", "target\n");
    world.sandbox.write("target/helper", "");
    world.run(0);
    let output = audit(&world, &["--rerun", "--json"], 1);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(text(&found["stories"][0]["problems"][0]["kind"]), "fails_now");
    assert_eq!(text(&found["stories"][0]["reruns"][0]["outcome"]), "failed");
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_proof_that_cannot_be_found_again_does_not_hold() {
    let world = World::folder(HONEST, &crate::run_loop::world::Settings::default());
    let always = world.sandbox.root().join("tmp/always");
    world.sandbox.write("PLAN.md", ONE.replace("test -f a", &format!("test -f a || test -e {}", always.display())));
    world.sandbox.repo();
    world.run(0);
    audit(&world, &["--rerun"], 0);
    std::fs::write(&always, "").unwrap();
    let told = flat(&audit(&world, &["--rerun"], 1));
    assert!(told.contains("Verified again, it is untested, not verified") && told.contains("passed before the work"), "{told}");
}

#[test]
fn a_check_that_passes_the_second_time_is_flaky() {
    let world = World::folder(HONEST, &crate::run_loop::world::Settings::default());
    let again = world.sandbox.root().join("tmp/again");
    let flaky = "test -f a && { test -e AGAIN || { : > AGAIN; false; }; }".replace("AGAIN", again.to_str().unwrap());
    world.sandbox.write("PLAN.md", ONE.replace("test -f a", &flaky));
    world.sandbox.repo();
    std::fs::write(&again, "").unwrap();
    world.run(0);
    std::fs::remove_file(&again).unwrap();
    let output = audit(&world, &["--rerun"], 0);
    assert!(flat(&output).contains("is flaky: it failed, then passed"), "{}", output.stdout);
}

#[test]
fn a_command_that_is_not_the_projects_own_runs_only_when_the_user_says_so() {
    let world = World::folder(HONEST, &crate::run_loop::world::Settings::default());
    let command = format!("echo ran >> {}/tmp/ran; test -f a", world.sandbox.root().display());
    world.sandbox.write("PLAN.md", ONE.replace("test -f a", &command));
    world.sandbox.repo();
    world.run(0);
    let ran = || world.sandbox.read("../tmp/ran").lines().count();
    // The note still has the command; the plan now has a different one.
    world.sandbox.write("PLAN.md", world.plan().replace(&command, "test -f a"));
    let mut before = ran();
    audit(&world, &["--rerun"], 0);
    assert_eq!(ran(), before + 2, "a run of here ran it: once before the work, and once with it");
    before = ran();
    let refused = || {
        let output = audit(&world, &["--rerun"], 4);
        assert!(flat(&output).contains("neither the plan, the settings nor a local run has this command"), "{}", output.stdout);
        assert!(output.stderr.contains("verdone audit --rerun --yes"), "{}", output.stderr);
        assert_eq!(ran(), before);
    };
    // A journal tracked by git does not count as local: it came with the repository.
    world.git(&["add", "--force", ".verdone/runs"]);
    refused();
    world.git(&["rm", "-r", "--quiet", "--cached", ".verdone/runs"]);
    std::fs::rename(world.sandbox.path(".verdone/runs"), world.sandbox.path("../tmp/runs")).unwrap();
    refused();
    std::os::unix::fs::symlink("../../tmp/runs", world.sandbox.path(".verdone/runs")).unwrap();
    refused();
    audit(&world, &["--rerun", "--yes"], 0);
    assert_eq!(ran(), before + 2);
}

#[test]
fn a_check_of_the_command_line_runs_again_because_the_journal_knows_it() {
    let plan = ONE.replace("\n  - Verification: `test -f a`", "");
    let world = World::new(&plan, HONEST);
    world.run_with(&["--check", "test -f PLAN.md"], 0);
    let output = audit(&world, &["--rerun"], 0);
    assert!(output.stdout.contains("Run again, test -f PLAN.md passed"), "{}", output.stdout);
}

#[test]
fn an_interrupted_rerun_says_what_was_not_run_and_leaves_nothing_behind() {
    let slow = "test -f a && { test ! -e ~/slow || sleep 60; }";
    let world = World::new(&TWO.replace("test -f a", slow), HONEST);
    world.run(0);
    std::fs::write(world.sandbox.home().join("slow"), "").unwrap();
    let interrupted = |form: &[&str]| {
        let running = world.sandbox.spawn(VERDONE, [&["audit", "--rerun"], form].concat());
        running.wait_for("again: test -f a && {", PATIENCE);
        running.signal(Signal::INT);
        let output = running.wait(PATIENCE);
        output.assert_code(130);
        output
    };
    let plain = flat(&interrupted(&[]));
    assert!(plain.contains("Interrupted: not every check was run again") && !plain.contains("passed the audit"), "{plain}");
    assert!(plain.contains("Not run again: US-001, US-002.") && plain.contains("was interrupted: test -f b"), "{plain}");
    let markdown = interrupted(&["--markdown"]).stdout;
    assert!(markdown.contains("**Interrupted: ") && markdown.contains("| not run again | US-002 Write b |"), "{markdown}");
    let found: Value = serde_json::from_str(&interrupted(&["--json"]).stdout).unwrap();
    assert_eq!((found["holds"].as_bool(), found["interrupted"].as_bool()), (Some(false), Some(true)));
    let outcomes: Vec<String> = (0..2).map(|at| text(&found["stories"][at]["reruns"][0]["outcome"])).collect();
    assert_eq!(outcomes, ["interrupted", "interrupted"]);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    world.assert_clean();
}

#[test]
fn a_rerun_that_is_killed_leaves_no_check_and_nothing_that_git_lists() {
    let world = World::folder(HONEST, &crate::run_loop::world::Settings::default());
    let tmp = world.sandbox.root().join("tmp");
    let waits = "test -f a && { while test -e TMP/slow; do : > TMP/started; sleep 0.1; done; }";
    world.sandbox.write("PLAN.md", ONE.replace("test -f a", &waits.replace("TMP", tmp.to_str().unwrap())));
    world.sandbox.repo();
    world.run(0);
    std::fs::write(tmp.join("slow"), "").unwrap();
    let running = world.sandbox.spawn(VERDONE, ["audit", "--rerun"]);
    let until = Instant::now() + PATIENCE;
    while !tmp.join("started").exists() {
        assert!(Instant::now() < until, "the check never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    assert!(!world.sandbox.path(".git/worktrees").exists());
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}
