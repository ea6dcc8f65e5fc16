//! Conditions beyond checks: what a run with `[done]` requires before it commits.

use std::fs;

use serde_json::Value;

use crate::run_loop::world::{HONEST, ONE, Settings, TWO, VERDONE, World, reason, text};

const ORCHESTRATOR: &str = "[done]\nprofile = \"orchestrator\"\n[[gate]]\nname = \"lint\"\nstage = \"quality\"\ncommand = \"true\"\n\
                            [[gate]]\nname = \"review\"\nstage = \"adversarial\"\ncommand = \"true\"\n";

fn complex() -> String {
    ONE.replace("  - Verification", "  - Complexity: high\n  - Verification")
}

fn claim(what: &str) -> String {
    format!("{{ run = \"{VERDONE} claim {what}\" }}")
}

fn outcome(verified: &Value) -> String {
    text(&verified["report"]["outcome"])
}

/// The conditions that are unmet or unknown.
fn missing(verified: &Value) -> Vec<String> {
    let is_open = |reason: &&Value| text(&reason["reason"]).starts_with("condition-");
    verified["report"]["reasons"].as_array().unwrap().iter().filter(is_open).map(|reason| text(&reason["name"])).collect()
}

/// Settings with this command as the judge.
fn judged_by(command: &str) -> String {
    format!("[done]\nrequire = [\"adversarial_passed\"]\n[done.judge]\nenabled = true\ncommand = '''{command}'''\n")
}

#[test]
fn the_orchestrator_profile_commits_only_when_all_nine_hold_and_says_what_to_do_until_then() {
    let lesson = claim("retrospective_done --note 'write the file first'");
    let script = format!("[[turn]]\nturn = 1\nsteps = [{{ create = \"a\" }}]\n[[turn]]\nsteps = [{lesson}]\n");
    let world = World::with(&complex(), &script, &Settings { tables: ORCHESTRATOR, ..Settings::default() });
    let approved = world.verdone(&["plan", "approve", "--yes"]);
    approved.assert_code(0);
    assert!(approved.stdout.contains("Approved in its current form."), "{}", approved.stdout);
    let output = world.run(0);
    let seen = world.all("verified");
    assert_eq!((outcome(&seen[0]), outcome(&seen[1])), ("failed".to_owned(), "done".to_owned()));
    assert_eq!(missing(&seen[0]), ["retrospective_done"], "only that is missing");
    assert!(world.prompt(2).contains("run `verdone claim retrospective_done --note WHAT`"), "{}", world.prompt(2));
    assert!(output.stdout.contains("retrospective_done"), "{}", output.stdout);
    assert_eq!(world.subjects().len(), 2);
}

#[test]
fn a_run_that_could_never_meet_the_conditions_does_not_begin_and_a_claim_of_an_earlier_attempt_holds_nothing() {
    let early = claim("retrospective_done --note 'too early'");
    let script = format!("[[turn]]\nattempt = 1\nsteps = [{early}]\n[[turn]]\nattempt = 2\nsteps = [{{ create = \"a\" }}]\n");
    let settings = Settings { limits: "attempts = 2\nturns = 1\n", tables: ORCHESTRATOR, ..Settings::default() };
    let world = World::with(&complex(), &script, &settings);
    let refused = world.run(2).stderr;
    assert!(refused.contains("plan_approved: PLAN.md has not been approved. The user runs `verdone plan approve`"), "{refused}");
    world.verdone(&["plan", "approve", "--yes"]).assert_code(0);
    world.run(4);
    assert_eq!(missing(&world.last("verified")), ["retrospective_done"]);
    assert!(world.subjects().len() == 1 && !world.has("a"), "nothing was committed, and the attempt is elsewhere");
}

#[test]
fn an_agent_raises_the_complexity_and_cannot_claim_what_others_prove() {
    let steps = [
        "{ create = \"a\" }".to_owned(),
        claim("task_classified --complexity 9 --note 'many parts'"),
        format!(
            "{{ run = \"{VERDONE} claim plan_approved --note 'yes' && exit 1; {VERDONE} claim correctness_passed --note x && exit 1; exit 0\" }}"
        ),
    ];
    let script = format!("[[turn]]\nsteps = [{}]\n", steps.join(", "));
    let plan = ONE.replace("  - Verification", "  - Complexity: 2\n  - Verification");
    let tables = "[done]\nrequire = [\"task_classified\", \"adversarial_passed\"]\n";
    let world = World::with(&plan, &script, &Settings { limits: "attempts = 1\nturns = 1\n", tables, ..Settings::default() });
    world.run(4);
    assert_eq!(missing(&world.last("verified")), ["adversarial_passed"], "a claim of 9 makes it needed");
    let kept = fs::read_to_string(world.run_dir().join("sessions/claims.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "the other claims were refused: {kept}");
}

#[test]
fn a_judge_that_refutes_is_heard_and_what_one_does_to_files_counts_for_nothing() {
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n[[turn]]\nsteps = [{ append = \"a\", text = \"two\\n\" }]\n";
    let honest = "grep -q 'Write a' && grep -q two a && echo '{\"verdict\":\"holds\"}' || echo '{\"verdict\":\"refuted\",\"findings\":[\"a lacks two\"]}'";
    let world = World::with(&complex(), script, &Settings { tables: &judged_by(honest), ..Settings::default() });
    world.run(0);
    let seen = world.all("verified");
    assert_eq!(reason(&seen[0]).0, "judge-refuted", "{}", seen[0]);
    assert!(world.prompt(2).contains("the judge refuted the work: a lacks two"), "{}", world.prompt(2));
    assert_eq!((seen.len(), outcome(&seen[1]).as_str()), (2, "done"));
    world.assert_clean();

    let careless = "touch stray; echo x >> a; echo '{\"verdict\":\"holds\"}'";
    let world = World::with(&complex(), script, &Settings { tables: &judged_by(careless), ..Settings::default() });
    world.run(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na");
    assert_eq!(world.sandbox.read("a"), "one\n", "what the judge wrote is gone with its workspace");
    world.assert_clean();
}

#[test]
fn a_judge_is_asked_last_and_its_first_clear_answer_about_a_tree_stands() {
    // It refutes, but would agree if asked again.
    let judge = "echo x >> \"../tmp/asked\"; test $(wc -l < \"../tmp/asked\") -ge 2 && echo '{\"verdict\":\"holds\"}' || echo \
                 '{\"refuted\":true,\"reasons\":[\"too short\"],\"checked\":[]}'";
    let tables = format!(
        "[done]\nrequire = [\"adversarial_passed\", \"retrospective_done\"]\n[done.judge]\nenabled = true\ncommand = '''{judge}'''\n"
    );
    let lesson = claim("retrospective_done --note 'write more'");
    let script = format!(
        "[[turn]]\nturn = 1\nsteps = [{{ create = \"a\" }}]\n[[turn]]\nturn = 2\nsteps = [{lesson}]\n[[turn]]\nsteps = []\n"
    );
    let limits = "attempts = 1\nturns = 3\nno_progress = 0\n";
    let world = World::with(&complex(), &script, &Settings { limits, tables: &tables, ..Settings::default() });
    world.run(4);
    let seen = world.all("verified");
    assert!(missing(&seen[0]) == ["retrospective_done"] && seen[0]["judge"].is_null(), "not asked yet: {}", seen[0]);
    assert!(seen[1..].iter().all(|event| reason(event).1.contains("too short")), "{seen:?}");
    assert_eq!((outcome(&seen[1]), outcome(&seen[2])), ("failed".to_owned(), "needs-review".to_owned()));
    assert_eq!((seen.len(), world.sandbox.read("../tmp/asked").as_str()), (3, "x\n"));

    // After a refused commit, the judge is not asked again about the same tree.
    let judge = "echo x >> \"../tmp/asked\"; echo '{\"verdict\":\"holds\"}'";
    let world = World::with(&complex(), HONEST, &Settings { tables: &judged_by(judge), ..Settings::default() });
    world.hook("commit-msg", "test -e \"../tmp/refused\" || { : > \"../tmp/refused\"; exit 1; }");
    world.run(0);
    assert_eq!((world.all("verified").len(), world.all("commit_refused").len()), (2, 1));
    assert_eq!(world.sandbox.read("../tmp/asked"), "x\n");

    let nobody = "[done]\nrequire = [\"adversarial_passed\"]\n[done.judge]\nenabled = true\n";
    let world = World::with(&complex(), HONEST, &Settings { tables: nobody, ..Settings::default() });
    let refused = world.run(2).stderr;
    assert!(refused.contains("the agent \"scripted\" cannot judge here: set `agent` or `command` in [done.judge]"), "{refused}");
}

#[test]
fn a_judge_that_gives_no_clear_answer_is_asked_once_more_and_then_a_human_is() {
    let judge = "echo x >> \"../tmp/asked\"; echo 'who knows'";
    let world = World::with(&complex(), HONEST, &Settings { tables: &judged_by(judge), ..Settings::default() });
    let output = world.run(4);
    let told = format!("{}{}", output.stdout, output.stderr);
    assert!(told.contains("the judge's answer cannot be understood; asking it once more"), "{told}");
    assert_eq!((outcome(&world.last("verified")), world.all("turn_started").len()), ("needs-review".to_owned(), 1));
    assert_eq!(world.sandbox.read("../tmp/asked"), "x\nx\n");
    let kept = text(&world.last("review_needed")["work"]);
    assert!(world.tree_files(&kept).contains(&"a".to_owned()), "the work is kept");
}

#[test]
fn the_loop_profile_asks_nothing_new_and_tells_other_loops_where_they_look() {
    let world = World::new(TWO, HONEST);
    let home = world.sandbox.home().join(".ralph/state");
    world.run(0);
    assert!(!home.exists(), "a home that is not there is not made");
    let world = World::new(TWO, HONEST);
    let home = world.sandbox.home().join(".ralph/state");
    fs::create_dir_all(&home).unwrap();
    world.run(0);
    let run = text(&world.last("run_started")["run"]);
    let state: Value = serde_json::from_slice(&fs::read(home.join(&run).join("orchestrator.json")).unwrap()).unwrap();
    assert_eq!((&state["verified_done"], &state["written_by"]), (&Value::Bool(true), &Value::from("verdone")), "{state}");
    assert_eq!(state["conditions"]["correctness_passed"], true);
    let settings = Settings { tables: "[done]\nralph_state = \"always\"\n", ..Settings::default() };
    let world = World::with(TWO, HONEST, &settings);
    world.run(0);
    let state = world.sandbox.home().join(".ralph/state").join(text(&world.last("run_started")["run"])).join("loop.json");
    assert!(state.is_file(), "the settings ask for it");
}
