//! A condition proven by CI: a run asks about a commit with exactly the work, and waits for the answer.

use serde_json::Value;
use verdone_testkit::Signal;

use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, VERDONE, World, always, reason, text};

const CONDITION: &str = "[[done.condition]]\nname = \"ci_ok\"\nprover = \"ci\"\n";
/// Creates the file first, then changes it.
const TWO_TURNS: &str = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                         [[turn]]\nsteps = [{ append = \"a\", text = \"two\\n\" }]\n";

/// A project whose CI is a script outside of it. Each question adds a line to `tmp/asked`.
fn world(plan: &str, script: &str, limits: &str, ci: &str, waiting: &str) -> World {
    requiring("", plan, script, limits, ci, waiting)
}

fn requiring(require: &str, plan: &str, script: &str, limits: &str, ci: &str, waiting: &str) -> World {
    let require = format!("[done]\nrequire = [{require}\"ci_ok\"]\n{CONDITION}");
    let tables = format!("{require}[done.ci]\ncommand = \"../tmp/ci\"\n{waiting}");
    let world = World::with(plan, script, &Settings { limits, tables: &tables, ..Settings::default() });
    world.sandbox.write_script("../tmp/ci", &format!("#!/bin/sh\necho \"$VERDONE_COMMIT\" >> ../tmp/asked\n{ci}\n"));
    world
}

/// The commits that CI was asked about.
fn asked(world: &World) -> Vec<String> {
    world.sandbox.read("../tmp/asked").lines().map(str::to_owned).collect()
}

fn outcome(verified: &Value) -> String {
    text(&verified["report"]["outcome"])
}

fn no_ref_is_left(world: &World) {
    assert_eq!(world.git(&["for-each-ref", "refs/verdone/ci"]), "");
}

#[test]
fn ci_is_asked_about_a_commit_of_the_very_files_before_the_story_is_done() {
    let look = "git for-each-ref --points-at $VERDONE_COMMIT --format='%(refname)' > ../tmp/refs\npwd > ../tmp/pwd\n\
                test -z \"$(git log --format=%H refs/heads | grep $VERDONE_COMMIT)\"";
    let world = world(ONE, HONEST, "", look, "");
    let base = world.head();
    let output = world.run(0);
    let [commit] = &asked(&world)[..] else { panic!("{:?}", asked(&world)) };
    assert!(output.transcript().contains(&format!("asking CI about {}", &commit[..10])), "{}", output.transcript());
    let of = |what: &str| world.git(&["rev-parse", what]);
    assert_eq!(of(&format!("{commit}^{{tree}}")), of("HEAD^{tree}"), "what CI saw is what is committed");
    assert_eq!((of(&format!("{commit}^")), of("HEAD^")), (base.clone(), base));
    assert_ne!(*commit, world.head(), "and no branch ever had that commit");
    assert!(world.sandbox.read("../tmp/refs").starts_with("refs/verdone/ci/"), "git must not collect it meanwhile");
    assert_eq!(world.sandbox.read("../tmp/pwd").trim(), world.sandbox.work().display().to_string());
    no_ref_is_left(&world);
    world.assert_clean();
}

#[test]
fn what_a_red_ci_says_goes_back_to_the_agent() {
    let wants_two = "git show $VERDONE_COMMIT:a | grep -q two || { echo 'e2e: a lacks two'; exit 1; }";
    let fixed = world(ONE, TWO_TURNS, "", wants_two, "");
    fixed.run(0);
    let seen = fixed.all("verified");
    assert_eq!((outcome(&seen[0]), reason(&seen[0]).0), ("failed".to_owned(), "condition-missing".to_owned()), "{}", seen[0]);
    assert!(fixed.prompt(2).contains("e2e: a lacks two"), "{}", fixed.prompt(2));
    assert_eq!((seen.len(), outcome(&seen[1]).as_str(), asked(&fixed).len()), (2, "done", 2));
    assert_eq!(fixed.subjects().len(), 2);

    // The run does not wait again for an answer about the same files.
    let limits = "attempts = 1\nturns = 3\nno_progress = 0\n";
    let stubborn = world(ONE, "[[turn]]\nturn = 1\nsteps = [{ create = \"a\" }]\n[[turn]]\nsteps = []\n", limits, wants_two, "");
    stubborn.run(4);
    assert_eq!((stubborn.all("verified").len(), asked(&stubborn).len()), (3, 1));
    assert_eq!(stubborn.subjects(), ["initial"]);
}

#[test]
fn ci_is_asked_after_everything_else_that_is_cheaper() {
    let claim = format!("{{ run = \"{VERDONE} claim retrospective_done --note 'write first'\" }}");
    let script = format!("[[turn]]\nturn = 1\nsteps = [{{ create = \"a\" }}]\n[[turn]]\nsteps = [{claim}]\n");
    let world = requiring("\"retrospective_done\", ", ONE, &script, "", "exit 0", "");
    world.run(0);
    let seen = world.all("verified");
    assert_eq!((seen.len(), outcome(&seen[1]).as_str()), (2, "done"));
    assert!(!world.prompt(2).contains("ci_ok"), "{}", world.prompt(2));
    assert_eq!(asked(&world).len(), 1);
}

#[test]
fn a_ci_that_never_answers_proves_nothing() {
    let world = world(ONE, HONEST, "", "exit 75", "timeout = \"400ms\"\ninterval = \"50ms\"\n");
    world.run(4);
    let seen = world.last("verified");
    assert_eq!((outcome(&seen).as_str(), reason(&seen).0.as_str()), ("needs-review", "condition-unknown"), "{seen}");
    assert!(reason(&seen).1.contains("CI had no result for"), "{seen}");
    assert_eq!(world.all("turn_started").len(), 1, "no turn is spent on it");
    assert!(world.tree_files(&text(&world.last("review_needed")["work"])).contains(&"a".to_owned()), "the work is kept");
    assert!(asked(&world).len() > 1, "and it was asked more than once");
    no_ref_is_left(&world);
}

#[test]
fn no_wait_for_ci_outlasts_the_run() {
    let world = world(ONE, HONEST, "total_time = \"5s\"\n", "exit 75", "timeout = \"1h\"\ninterval = \"50ms\"\n");
    world.run(4);
    let seen = world.last("verified");
    assert!(outcome(&seen) == "needs-review" && reason(&seen).1.contains("CI had no result for"), "{seen}");
    no_ref_is_left(&world);
}

#[test]
fn a_signal_ends_the_wait_for_ci_and_the_next_run_asks_again() {
    for waits in ["exit 75", "sleep 60"] {
        let ci = format!("test ! -e ../tmp/again || exit 0\n: > ../tmp/again\n{waits}");
        let world = world(ONE, HONEST, "", &ci, "timeout = \"2h\"\ninterval = \"1h\"\n");
        let run = world.start();
        wait_for_file(&world, "../tmp/again");
        run.signal(Signal::INT);
        run.wait(PATIENCE).assert_code(130);
        world.sandbox.assert_no_survivors(PATIENCE);
        assert_eq!((world.finish().as_str(), world.plan().as_str()), ("manual", ONE));
        assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
        no_ref_is_left(&world);
        world.run(0);
        assert_eq!(world.last("story_selected")["place"]["attempt"], 1, "the stopped attempt did not count");
        assert_eq!(asked(&world).len(), 2);
    }
}

#[test]
fn what_died_with_a_run_that_waited_for_ci_is_cleared_away() {
    let ci = "test ! -e ../tmp/again || exit 0\n: > ../tmp/again\nexit 75";
    let world = world(ONE, HONEST, "", ci, "timeout = \"2h\"\ninterval = \"1h\"\n");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::KILL);
    let _ = run.wait(PATIENCE);
    assert_ne!(world.git(&["for-each-ref", "refs/verdone/ci"]), "", "the ref outlives a killed run");
    world.run(0);
    no_ref_is_left(&world);
}

#[test]
fn what_a_git_hook_rewrites_is_another_question_to_ci() {
    let twice = world(ONE, HONEST, "", "exit 0", "");
    twice.hook("pre-commit", "echo rewritten > a; git add a");
    twice.run(0);
    let trees: Vec<String> = asked(&twice).iter().map(|commit| twice.git(&["show", &format!("{commit}:a")])).collect();
    assert_eq!(trees, ["one", "rewritten"]);

    let red = world(ONE, HONEST, "", "git show $VERDONE_COMMIT:a | grep -q one", "");
    red.hook("pre-commit", "echo rewritten > a; git add a");
    red.run(4);
    assert_eq!(red.subjects(), ["initial"]);
    assert!(red.last("commit_refused").to_string().contains("the condition ci_ok is not met"), "{}", red.last("commit_refused"));
}

#[test]
fn an_agent_cannot_have_its_own_script_asked_for_ci() {
    let tables = format!("[done]\nrequire = [\"ci_ok\"]\n{CONDITION}[done.ci]\ncommand = \"./q\"\n");
    let script = always("{ create = \"a\" }, { append = \"q\", text = \"exit 0\\n\" }");
    let world = World::folder(&script, &Settings { tables: &tables, ..Settings::default() });
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write_script("q", "#!/bin/sh\nexit 0\n");
    world.sandbox.repo();
    world.run(4);
    let seen = world.last("verified");
    assert_eq!((outcome(&seen).as_str(), reason(&seen).0.as_str()), ("needs-review", "autorun-changed"), "{seen}");
}

#[test]
fn a_condition_that_nobody_can_evaluate_refuses_the_run_at_its_start() {
    let own =
        |prover: &str| format!("[done]\nrequire = [\"mine\"]\n[[done.condition]]\nname = \"mine\"\nprover = \"{prover}\"\n");
    let judged = |settings: &str| format!("{}[done.judge]\n{settings}\ncommand = \"true\"\n", own("judge"));
    let simple = ONE.replace("  - Verification", "  - Complexity: 3\n  - Verification");
    let two = format!("{ONE}\n### US-002: Write b\n\n- [ ] Write the file b\n");
    let gate = "[[gate]]\nname = \"lint\"\nstage = \"quality\"\ncommand = \"true\"\n";
    for (plan, tables, expected) in [
        (ONE, own("ci"), "a run cannot meet [done] here: mine: CI cannot be asked: set `command` in [done.ci]"),
        (ONE, own("ci") + "[done.ci]\ncommand = \"../tmp/not-there\"\n", "../tmp/not-there: no such program"),
        (ONE, judged("enabled = false"), "mine: the judge is disabled: set `enabled = true` in [done.judge] (story US-001)"),
        (&simple, judged("enabled = true"), "the judge is asked from complexity 7, and this counts as 3: lower `min_complexity`"),
        (ONE, own("gate:e2e"), "mine: no gate of the stage \"e2e\" is configured: add a [[gate]] to .verdone/config.toml"),
        (
            &two,
            format!("[done]\nrequire = [\"correctness_passed\"]\n{gate}"),
            "no gate of the stage \"correctness\" is configured: add a [[gate]] to .verdone/config.toml (story US-002)",
        ),
        (ONE, "[done]\nrequire = [\"ci_okay\"]\n".to_owned() + CONDITION, "unknown condition \"ci_okay\""),
    ] {
        let world = World::with(plan, HONEST, &Settings { tables: &tables, ..Settings::default() });
        let refused = world.run(2).stderr;
        assert!(refused.contains(expected), "no {expected:?} in {refused}");
        assert_eq!(world.git(&["for-each-ref", "refs/heads/verdone"]), "", "nothing began");
    }
}
