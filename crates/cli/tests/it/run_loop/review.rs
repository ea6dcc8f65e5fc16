//! Stories whose checks pass but that a person has to look at.

use verdone_testkit::{Checkout, Output, Signal};

use crate::run_loop::land::{branch_of, commit};
use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{PATIENCE, Settings, TWO, VERDONE, World, text};

/// US-001 passes only because it changes the script that checks it; US-002 is honest.
const WEAK: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"bad\\n\" }, { create = \"own.sh\", text = \"test -f a\\n\" }]\n\
                    [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }]\n";

/// `run` has lines for `[run]`, `tables` has other settings.
fn world(script: &str, run: &str, tables: &str) -> World {
    let world = World::folder(script, &Settings { limits: "attempts = 2\nturns = 3", tables, ..Settings::default() });
    let config = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", run);
    world.sandbox.write(".verdone/config.toml", config);
    world.sandbox.write("PLAN.md", TWO.replace("`test -f a`", "`sh own.sh`"));
    world.sandbox.write("own.sh", "grep -q good a\n");
    world.sandbox.repo();
    world
}

fn ok(world: &World, arguments: &[&str]) -> Output {
    let output = world.verdone(arguments);
    output.assert_code(0);
    output
}

#[track_caller]
fn refused(world: &World, arguments: &[&str], code: i32, words: &str) {
    let before = Checkout::snapshot(&world.sandbox);
    let output = world.verdone(arguments);
    output.assert_code(code);
    assert!(output.stderr.contains(words), "{}", output.transcript());
    before.assert_untouched(&world.sandbox);
}

fn on_branch(world: &World) -> Vec<String> {
    let subjects = world.git(&["log", "--format=%s", &branch_of(world)]);
    subjects.lines().map(str::to_owned).collect()
}

#[test]
fn a_doubt_is_one_turn_of_feedback_and_then_a_review_that_costs_no_attempt() {
    let world = world(WEAK, "land = \"ask\"\non_review = \"continue\"", "");
    let output = world.run(4);
    assert_eq!(world.finish(), "blocked");
    assert_eq!(world.all("turn_started").len(), 3, "two for the first story, one for the second: {}", output.stdout);
    let told = world.prompt(2);
    assert!(told.contains("own.sh") && told.contains("Restore"), "{told}");
    assert_eq!(text(&world.last("attempt_rejected")["rejection"]), "needs_review");
    assert!(world.all("story_failed").is_empty());
    let review = world.last("review_needed");
    assert_eq!((&review["place"]["story"], &review["proof"]), (&"US-001".into(), &"untested".into()));
    assert_eq!(on_branch(&world), ["feat(US-002): Write b", "initial"]);
    assert!(output.stdout.contains("1 verified") && output.stdout.contains("review"), "{}", output.stdout);
    // A later run does not try it again.
    world.run(4);
    assert!(world.all("story_selected").is_empty());
}

#[test]
fn accepted_work_is_verified_on_the_tip_and_committed_with_the_persons_name() {
    let world = world(WEAK, "land = \"ask\"\non_review = \"continue\"", "");
    world.run(4);
    let listed = ok(&world, &["review"]).stdout;
    assert!(listed.contains("US-001: Write a") && listed.contains("verdone accept US-001"), "{listed}");
    assert!(ok(&world, &["review", "us-001"]).stdout.contains("+bad"), "the diff");
    assert!(ok(&world, &["show", "us-002"]).stdout.contains("US-002"));
    let json: serde_json::Value = serde_json::from_str(&ok(&world, &["review", "--json"]).stdout).unwrap();
    assert_eq!((&json[0]["story"], &json[0]["stacked"]), (&"US-001".into(), &false.into()));
    refused(&world, &["accept", "US-002"], 2, "does not need a review");
    refused(&world, &["accept", "US-9"], 2, "does not need a review");
    for (command, variable) in [("accept", "CLAUDECODE"), ("accept", "CLAUDE_CODE_SESSION_ID"), ("reject", "CLAUDECODE")] {
        let agent = world.sandbox.command(VERDONE).args([command, "US-001"]).env(variable, "1").output().unwrap();
        let said = String::from_utf8_lossy(&agent.stderr);
        assert!(said.contains(&format!("an agent may not {command} a story")), "{variable}: {said}");
    }
    let before = Checkout::snapshot(&world.sandbox);
    let output = ok(&world, &["accept", "us-001"]);
    assert!(output.stdout.contains("Accepted US-001"), "{}", output.transcript());
    before.assert_untouched(&world.sandbox);
    let status = ok(&world, &["status"]).stdout;
    assert!(status.contains("US-001 was accepted") && status.contains("Next     verdone land"), "{status}");
    assert_eq!(on_branch(&world), ["feat(US-001): Write a", "feat(US-002): Write b", "initial"]);
    let accepted = world.last("accepted");
    assert!(text(&accepted["by"]).contains('<'), "{accepted}");
    let note = world.git(&["notes", "--ref=verdone", "show", &branch_of(&world)]);
    assert!(note.contains("\"outcome\": \"accepted\"") && note.contains("own.sh"), "{note}");
    refused(&world, &["accept", "US-001"], 2, "no story needs a review");
    ok(&world, &["land"]);
    assert!(world.plan().contains("- [x] Write the file a") || world.plan().contains("[x]"), "{}", world.plan());
    ok(&world, &["audit"]);
    world.run(0);
    assert!(world.all("turn_started").is_empty(), "nothing is left to do");
}

#[test]
fn work_that_does_not_pass_on_the_tip_cannot_be_accepted() {
    let world = world(
        WEAK,
        "land = \"ask\"\non_review = \"continue\"",
        "[[gate]]\nname = \"one\"\ncommand = \"test ! -f a || test ! -f c\"\n",
    );
    world.run(4);
    ok(&world, &["land"]);
    commit(&world, "c", "c\n");
    refused(&world, &["accept", "US-001"], 4, "does not pass its checks");
    ok(&world, &["reject", "US-001"]);
    assert_eq!(text(&world.last("refused")["story"]), "US-001");
    refused(&world, &["review", "US-001"], 2, "does not need a review");
}

#[test]
fn a_gate_that_was_not_due_stands_in_the_way_of_no_acceptance() {
    let gate = "[[gate]]\nname = \"docs\"\ncommand = \"test ! -f a\"\nwhen = { paths = [\"docs/**\"] }\n";
    for on_review in ["continue", "stack"] {
        let world = world(WEAK, &format!("land = \"ask\"\non_review = \"{on_review}\""), gate);
        world.run(4);
        ok(&world, &["accept", "US-001"]);
    }
}

#[test]
fn a_story_that_is_gone_from_the_plan_cannot_be_accepted_without_its_checks() {
    let world = world(WEAK, "land = \"ask\"\non_review = \"continue\"", "");
    world.run(4);
    let plan = world.plan();
    let (start, end) = (plan.find("### US-001").unwrap(), plan.find("### US-002").unwrap());
    world.sandbox.write("PLAN.md", format!("{}{}", &plan[..start], &plan[end..]));
    refused(&world, &["accept", "US-001"], 2, "US-001 is no longer in PLAN.md");
    world.sandbox.write("PLAN.md", plan);
    ok(&world, &["accept", "US-001"]);
}

#[test]
fn an_interrupted_acceptance_is_no_failed_check() {
    let gate = "[[gate]]\nname = \"slow\"\ncommand = \"test ! -f ../tmp/hang || { : > ../tmp/hanging; sleep 60; }\"\n";
    let world = world(WEAK, "land = \"ask\"\non_review = \"continue\"", gate);
    world.run(4);
    world.sandbox.write("../tmp/hang", "");
    let accepting = world.sandbox.spawn(VERDONE, ["accept", "US-001"]);
    wait_for_file(&world, "../tmp/hanging");
    accepting.signal(Signal::TERM);
    let output = accepting.wait(PATIENCE);
    output.assert_code(143);
    assert!(output.stderr.contains("stopped by SIGTERM before US-001 was verified"), "{}", output.transcript());
    std::fs::remove_file(world.sandbox.path("../tmp/hang")).unwrap();
    ok(&world, &["accept", "US-001"]);
}

#[test]
fn stacked_work_lands_only_after_it_was_accepted() {
    let world = world(WEAK, "land = \"auto\"", "");
    world.run(4);
    assert_eq!(on_branch(&world), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"], "later stories build on it");
    assert_eq!(world.subjects(), ["initial"]);
    refused(&world, &["land"], 4, "US-001 needs a review first");
    refused(&world, &["land", "--dry-run"], 4, "US-001 needs a review first");
    ok(&world, &["accept", "US-001"]);
    ok(&world, &["land"]);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
    ok(&world, &["audit"]);
}

#[test]
fn stacked_work_that_is_rejected_leaves_the_later_stories() {
    let world = world(WEAK, "land = \"ask\"", "");
    world.run(4);
    let output = ok(&world, &["reject", "us-001"]);
    assert!(output.stdout.contains("1 later commit was verified again without it"), "{}", output.stdout);
    assert_eq!(on_branch(&world), ["feat(US-002): Write b", "initial"]);
    ok(&world, &["land"]);
    assert!(world.has("b") && !world.has("a"));
    assert!(world.plan().contains("- [ ] Write the file a"), "{}", world.plan());
}

#[test]
fn on_review_stop_ends_the_run() {
    let world = world(WEAK, "land = \"ask\"\non_review = \"stop\"", "");
    let output = world.run(4);
    assert_eq!(world.all("story_selected").len(), 1);
    assert!(output.stdout.contains("US-001 needs a review"), "{}", output.stdout);
}

#[test]
fn a_proof_below_the_minimum_is_feedback_and_then_a_review() {
    let script = "[[turn]]\nsteps = [{ create = \"a\", text = \"x\\n\" }]\n";
    let plan = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n";
    let gate = "[[gate]]\nname = \"fine\"\ncommand = \"true\"\n[done]\nminimum = \"agent-tested\"\n";
    let world = World::with(plan, script, &Settings { tables: gate, ..Settings::default() });
    world.run(4);
    let why = world.last("review_needed")["reasons"].to_string();
    assert!(why.contains("untested, but at least agent-tested is required"), "{why}");
    assert!(world.prompt(2).contains("Add a test that fails without your change"), "{}", world.prompt(2));
    // The story itself can require less.
    let world = World::with(&format!("{plan}  - Proof: untested\n"), script, &Settings { tables: gate, ..Settings::default() });
    world.run(0);
}

#[test]
fn landing_stops_before_the_first_weaker_story() {
    let plan = TWO.replace("  - Verification: `test -f b`\n", "");
    let script = crate::run_loop::world::HONEST;
    let gate = "[[gate]]\nname = \"fine\"\ncommand = \"true\"\n";
    let world = World::folder(script, &Settings { tables: gate, ..Settings::default() });
    let config = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", "land = \"off\"");
    world.sandbox.write(".verdone/config.toml", config);
    world.sandbox.write("PLAN.md", &plan);
    world.sandbox.repo();
    world.run(0);
    refused(&world, &["land", "--proof", "certain"], 2, "unknown proof");
    refused(&world, &["land", "--dry-run", "--proof", "certain"], 2, "unknown proof");
    refused(&world, &["land", "--dry-run", "no/such"], 2, "no run worked on branch no/such");
    // A commit message about the proof is not evidence.
    let first = format!("{}^", branch_of(&world));
    let note = world.git(&["notes", "--ref=verdone", "show", &first]);
    world.git(&["notes", "--ref=verdone", "remove", &first]);
    refused(&world, &["land", "--proof", "agent-tested"], 4, "US-001 has no readable evidence");
    world.git(&["notes", "--ref=verdone", "add", "-m", &note, &first]);
    let said = ok(&world, &["land", "--dry-run", "--proof", "agent-tested"]).stdout;
    assert!(said.starts_with("2 commits on ") && said.contains("only 1 of them lands: US-002 is untested"), "{said}");
    let output = ok(&world, &["land", "--proof", "agent-tested"]);
    assert!(output.stdout.contains("1 commit stays"), "{}", output.stdout);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    refused(&world, &["land", "--proof", "agent-tested"], 4, "US-002 is untested");
    refused(&world, &["land", "--proof", "agent-tested", "--dry-run"], 4, "US-002 is untested");
    ok(&world, &["land"]);
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "feat(US-001): Write a", "initial"]);
}

#[test]
fn what_is_protected_is_listed_with_the_reason() {
    let world = world(WEAK, "land = \"ask\"", "[[gate]]\nname = \"own\"\ncommand = \"sh own.sh || true\"\n");
    commit(&world, "tests/test_a.py", "x = 1\n");
    let listed = ok(&world, &["protect"]).stdout;
    assert!(listed.contains("own.sh") && listed.contains("a check runs it"), "{listed}");
    assert!(listed.contains("tests/test_a.py") && listed.contains("Python"), "{listed}");
    let one = ok(&world, &["protect", "pytest.ini"]).stdout;
    assert!(
        one.starts_with("Conventions of: Python") && one.contains("protected") && one.contains("not in the last commit"),
        "{one}"
    );
    refused(&world, &["protect", "/etc"], 2, "not in this repository");
}
