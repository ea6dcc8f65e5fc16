//! The variables that scripts get, where they run, and where their output goes.

use std::collections::BTreeMap;

use crate::lifecycle::world::{SCRIPTS, Setting, TWO, VERDONE, World, always};

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Writes down its whole environment.
const TELL: &str = "env > ../tmp/told-$(basename \"$0\")-${VERDONE_ITERATION:-0}";

fn told(world: &World, script: &str, iteration: u32, prefix: &str) -> BTreeMap<String, String> {
    let text = world.noted(&format!("told-{script}-{iteration}"));
    let pairs = text.lines().filter_map(|line| line.strip_prefix(prefix)?.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).filter(|(name, _)| name != "RUN").collect()
}

#[test]
fn every_script_gets_its_variables_under_both_names() {
    let scripts = SCRIPTS.map(|name| (name, TELL));
    let setting = Setting { plan: TWO, limits: "max_iterations = 7", ..Setting::default() };
    let world = World::new(&setting, &scripts);
    world.run(0);
    let run = world.all("run_started").pop().unwrap();
    let work = world.sandbox.work().display().to_string();
    let run_dir = format!("{work}/.verdone/runs/{}", run["run"].as_str().unwrap());
    let started_at = format!("{}Z", &run["at"].as_str().unwrap()[..19]);
    let (plan, specs) = (format!("{work}/PLAN.md"), format!("{work}/specs"));
    let common = [
        ("MODE", "building"),
        ("MAX_ITERATIONS", "7"),
        ("PROJECT_DIR", work.as_str()),
        ("LOG_DIR", run_dir.as_str()),
        ("STARTED_AT", started_at.as_str()),
    ];
    let cases: [(&str, u32, Pairs<'_>); 6] = [
        ("started", 0, &[("PLAN_FILE", &plan), ("SPEC_DIR", &specs)]),
        (
            "next_iteration",
            1,
            &[("ITERATION", "1"), ("LAST_EXIT_CODE", "0"), ("LAST_DURATION", "0"), ("COMMITS_MADE", "0"), ("STORY", "US-001")],
        ),
        (
            "post_iteration",
            1,
            &[
                ("ITERATION", "1"),
                ("LAST_EXIT_CODE", "0"),
                ("LAST_DURATION", "*"),
                ("COMMITS_MADE", "1"),
                ("STORY", "US-001"),
                ("VERDICT", "verified"),
            ],
        ),
        (
            "next_iteration",
            2,
            &[("ITERATION", "2"), ("LAST_EXIT_CODE", "0"), ("LAST_DURATION", "*"), ("COMMITS_MADE", "1"), ("STORY", "US-002")],
        ),
        (
            "post_iteration",
            2,
            &[
                ("ITERATION", "2"),
                ("LAST_EXIT_CODE", "0"),
                ("LAST_DURATION", "*"),
                ("COMMITS_MADE", "2"),
                ("STORY", "US-002"),
                ("VERDICT", "verified"),
            ],
        ),
        (
            "finished",
            2,
            &[
                ("ITERATION", "2"),
                ("FINISH_TYPE", "complete"),
                ("TOTAL_ITERATIONS", "2"),
                ("TOTAL_COMMITS", "2"),
                ("DURATION", "*"),
            ],
        ),
    ];
    for (script, iteration, own) in cases {
        let expected: BTreeMap<&str, &str> = common.iter().chain(own).copied().collect();
        for prefix in ["VERDONE_", "FRESHER_"] {
            let told = told(&world, script, iteration, prefix);
            assert_eq!(
                told.keys().map(String::as_str).collect::<Vec<_>>(),
                expected.keys().copied().collect::<Vec<_>>(),
                "{script}"
            );
            for (name, value) in &expected {
                match *value {
                    "*" => assert!(told[*name].parse::<u64>().is_ok(), "{script} {name}: {}", told[*name]),
                    value => assert_eq!(told[*name], value, "{script} {prefix}{name}"),
                }
            }
        }
    }
}

#[test]
fn the_agents_own_exit_code_is_told_whatever_the_checks_say() {
    for (agent, limits, exit_code) in [
        (always("{ create = \"x\" }"), "attempts = 1\nturns = 1", "0"),
        (always("{ create = \"x\" }, { crash = 7 }"), "attempts = 1\nturns = 1", "7"),
        (always("{ hang = true }"), "attempts = 1\nturns = 1\nturn_time = \"1s\"", "124"),
    ] {
        let setting = Setting { agent: &agent, limits, ..Setting::default() };
        let world = World::new(&setting, &[("post_iteration", TELL), ("finished", TELL)]);
        world.run(4);
        let post = told(&world, "post_iteration", 1, "VERDONE_");
        assert_eq!((post["LAST_EXIT_CODE"].as_str(), post["VERDICT"].as_str()), (exit_code, "failed"));
        assert_eq!(post["COMMITS_MADE"], "0");
        assert_eq!(told(&world, "finished", 1, "FRESHER_")["FINISH_TYPE"], "blocked");
    }
}

#[test]
fn scripts_run_in_the_project_with_our_environment() {
    let mut world = World::new(&Setting::default(), &[("started", "pwd > ../tmp/where; echo \"$MINE\" >> ../tmp/where")]);
    world.sandbox.set("MINE", "kept");
    world.sandbox.write("sub/x", "");
    world.sandbox.git(["add", "--all"]);
    world.sandbox.git(["commit", "--quiet", "-m", "sub"]);
    world.sandbox.verdone(VERDONE, ["-C", "sub", "run", "../PLAN.md"]).assert_code(0);
    assert_eq!(world.noted("where"), format!("{}\nkept\n", world.sandbox.work().display()));
}

#[test]
fn what_a_script_says_is_shown_apart_kept_and_redacted() {
    let agent = always("{ say = \"words of the agent\" }, { create = \"a\" }");
    let setting = Setting { agent: &agent, ..Setting::default() };
    let scripts = [("started", "echo good morning; echo \"key $API_TOKEN\" >&2"), ("finished", "echo good night")];
    let mut world = World::new(&setting, &scripts);
    world.sandbox.set("API_TOKEN", "correct-horse-battery-staple");
    let output = world.run(0);
    for line in ["\n\u{2502} started: good morning\n", "\n\u{2502} finished: good night\n", "\n  \u{2502} words of the agent\n"] {
        assert!(output.stdout.contains(line), "{line:?} in {}", output.stdout);
    }
    assert!(!output.stdout.contains("battery"), "{}", output.stdout);
    let kept = world.kept("scripts/1-started.txt");
    assert!(kept.contains("good morning\n") && kept.contains("key ") && !kept.contains("battery"), "{kept}");
    assert_eq!(world.kept("scripts/2-finished.txt"), "good night\n");
    assert_eq!(world.script_events("finished")[0]["output"], "scripts/2-finished.txt");

    let world = World::new(&setting, &scripts);
    let output = world.sandbox.verdone(VERDONE, ["run", "--json"]);
    let said = output.stdout.lines().find(|line| line.contains("good night")).unwrap();
    let said: serde_json::Value = serde_json::from_str(said).unwrap();
    assert_eq!((&said["speaker"], &said["name"]), (&"script".into(), &"finished".into()));
}
