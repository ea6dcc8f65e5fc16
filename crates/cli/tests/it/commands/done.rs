//! `verdone claim` and `verdone done`.

use std::fs;

use serde_json::Value;

use verdone_testkit::Sandbox;

use crate::commands::stage::{project as bare_project, transcript, verdone};

const OWN: &str = "\n[done]\nrequire = [\"implementation_complete\", \"correctness_passed\", \"seen\"]\n\
                   [[done.condition]]\nname = \"seen\"\nprover = \"claim\"\ntodo = \"Look at the page in a browser.\"\n";

/// A project in which a hook has seen the session `s1` start.
fn project() -> Sandbox {
    let sandbox = bare_project();
    let head = sandbox.git(["rev-parse", "HEAD"]);
    let line =
        format!("{{\"at\":\"2026-11-15T08:00:00Z\",\"event\":\"SessionStart\",\"record\":\"began\",\"head\":\"{head}\"}}\n");
    sandbox.write(".verdone/sessions/.gitignore", "*\n");
    sandbox.write(".verdone/sessions/s1/events.jsonl", line);
    sandbox
}

#[test]
fn conditions_are_explained_and_a_claim_is_shown_as_one() {
    let sandbox = project();
    let config = sandbox.read(".verdone/config.toml");
    sandbox.write(".verdone/config.toml", config + OWN);
    let claim: &[&str] = &["claim", "seen", "--note", "the page shows the greeting", "--session", "s1"];
    let outputs = transcript("done", &sandbox, &[&["done", "--session", "s1"], claim, &["done", "--session", "s1"]]);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [1, 0, 1]);
    let json: Value = serde_json::from_str(&verdone(&sandbox, &["done", "--json"]).stdout).unwrap();
    assert_eq!((json["session"].as_str(), json["standing"].as_str()), (Some("s1"), Some("open")));
    let of = |name: &str| json["conditions"].as_array().unwrap().iter().find(|condition| condition["name"] == name).unwrap();
    assert_eq!((of("seen")["outcome"].as_str(), of("seen")["prover"].as_str()), (Some("held"), Some("claim")));
    assert_eq!(of("memory_search")["required"], false);
}

#[test]
fn claims_that_prove_nothing_are_refused() {
    let mut sandbox = bare_project();
    let bad: [&[&str]; 10] = [
        &["claim", "", "--note", "x"],
        &["claim", "everything", "--note", "x"],
        &["claim", "retrospective_done", "--note", "x", "--session", ""],
        &["claim", "quality_pased", "--note", "x"],
        &["claim", "correctness_passed", "--note", "x"],
        &["claim", "retrospective_done", "--note", "x"],
        &["claim", "retrospective_done", "--note", " ", "--session", "s1"],
        &["claim", "task_classified", "--note", "x", "--session", "s1"],
        &["done"],
        &["done", "--session", "s1"],
    ];
    for output in transcript("claim-refused", &sandbox, &bad) {
        output.assert_code(2);
    }
    assert!(!sandbox.path(".verdone/sessions").exists());
    // Inside a session, the client sets the session's id; a hostile id stays inside the folder.
    sandbox.set("CLAUDE_CODE_SESSION_ID", "../../x");
    verdone(&sandbox, &["claim", "retrospective_done", "--note", "one"]).assert_code(0);
    let names: Vec<_> =
        fs::read_dir(sandbox.path(".verdone/sessions")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name == "%2E%2E%2F%2E%2E%2Fx"), "{names:?}");
    let json: Value = serde_json::from_str(&verdone(&sandbox, &["done", "--json"]).stdout).unwrap();
    assert_eq!(json["session"], "../../x");
}

#[test]
fn what_other_loops_wrote_about_a_session_is_told_and_left_as_it_is() {
    let sandbox = project();
    let dir = sandbox.home().join(".ralph/state/test-456");
    fs::create_dir_all(dir.join("tasks")).unwrap();
    let theirs = r#"{"verified_done": false, "phase": "implementation"}"#;
    fs::write(dir.join("orchestrator.json"), theirs).unwrap();
    fs::write(dir.join("tasks/1.json"), r#"{"status": "pending", "subject": "write the \u001b[31mtest"}"#).unwrap();
    let output = verdone(&sandbox, &["done", "--session", "test-456"]);
    output.assert_code(1);
    for part in ["phase \"implementation\" is not done", "1 task is not finished: write the"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert!(
        !output.stdout.contains('\u{1b}') && output.stderr.contains("another tool owns them: orchestrator.json"),
        "{}",
        output.stderr
    );
    assert_eq!(fs::read_to_string(dir.join("orchestrator.json")).unwrap(), theirs);
    assert!(dir.join("quality-gate.json").is_file(), "a projection stands beside it");
    assert!(!dir.join("loop.json").exists(), "there is no loop");
    // Such a file never makes a session done: this one only no longer blocks it.
    fs::write(dir.join("orchestrator.json"), r#"{"verified_done": true, "phase": "complete"}"#).unwrap();
    fs::remove_dir_all(dir.join("tasks")).unwrap();
    let output = verdone(&sandbox, &["done", "--session", "test-456"]);
    output.assert_code(1);
    assert!(output.stdout.contains("no other tool reports remaining work"), "{}", output.stdout);
}

#[test]
fn the_judge_and_ci_are_asked_on_request_and_their_answers_are_bound_to_what_they_saw() {
    let sandbox = project();
    let config = sandbox.read(".verdone/config.toml");
    let own = "\n[done]\nrequire = [\"adversarial_passed\", \"green\"]\n[[done.condition]]\nname = \"green\"\nprover = \"ci\"\n\
               [done.judge]\nenabled = true\ncommand = \"echo '{\\\"verdict\\\":\\\"holds\\\"}'\"\n\
               [done.ci]\ncommand = \"test -n \\\"$VERDONE_COMMIT\\\"\"\n";
    sandbox.write(".verdone/config.toml", config + own);
    let outcomes = |arguments: &[&str]| {
        let output = verdone(&sandbox, &[arguments, &["--session", "s1", "--json"]].concat());
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        let of = |name: &str| {
            let conditions = json["conditions"].as_array().unwrap();
            conditions.iter().find(|condition| condition["name"] == name).unwrap()["outcome"].as_str().unwrap().to_owned()
        };
        [of("adversarial_passed"), of("green")]
    };
    assert_eq!(outcomes(&["done"]), ["unknown", "unknown"], "nobody was asked");
    assert_eq!(outcomes(&["done", "--ask"]), ["held", "held"]);
    assert_eq!(outcomes(&["done"]), ["held", "held"], "and it is kept");
    sandbox.write("new.txt", "x");
    assert_eq!(outcomes(&["done"]), ["unknown", "unknown"], "the judge did not see that file, and it is in no commit");
    assert_eq!(outcomes(&["done", "--ask"]), ["held", "unknown"], "so CI is not asked");
    let page = verdone(&sandbox, &["done", "--session", "s1"]).stdout;
    assert!(page.contains("CI only sees committed files; commit new.txt first, then run `verdone done --ask`"), "{page}");
    sandbox.git(["add", "new.txt"]);
    assert_eq!(outcomes(&["done"])[0], "held", "the files are the same");
    sandbox.git(["commit", "--quiet", "--message", "more"]);
    assert_eq!(outcomes(&["done"]), ["held", "unknown"], "there is a commit that CI was not asked about");
    assert_eq!(outcomes(&["done", "--ask"]), ["held", "held"]);
}

#[test]
fn the_first_clear_answer_of_a_judge_about_files_and_a_story_stands() {
    let sandbox = project();
    let config = sandbox.read(".verdone/config.toml");
    let own = "\n[done]\nrequire = [\"adversarial_passed\"]\n[done.judge]\nenabled = true\n\
               command = \"echo x >> $HOME/asked; cat $HOME/answer\"\n";
    sandbox.write(".verdone/config.toml", config + own);
    let (answer, counted) = (sandbox.home().join("answer"), sandbox.home().join("asked"));
    // What the judge would answer, the resulting state of the condition, and how often it has been asked so far.
    let ask = |would_say: &str, more: &[&str], expected: (&str, usize)| {
        fs::write(&answer, would_say).unwrap();
        let output = verdone(&sandbox, &[&["done", "--session", "s1", "--ask"], more].concat());
        let line = output.stdout.lines().find(|line| line.contains("adversarial_passed")).unwrap().to_owned();
        let times = fs::read_to_string(&counted).unwrap().lines().count();
        assert_eq!((line.split(' ').next().unwrap(), times), expected, "{line}");
        output.stderr
    };
    let (holds, refutes) = (r#"{"verdict":"holds"}"#, r#"{"verdict":"refuted","findings":["a lacks two"]}"#);
    ask("who knows", &[], ("unknown", 1));
    ask(refutes, &[], ("missing", 2));
    let said = ask(holds, &[], ("missing", 2));
    assert!(said.contains("refuted it: a lacks two; it was not asked again, because it already gave a clear answer"), "{said}");
    sandbox.write("a", "two\n");
    ask(holds, &[], ("held", 3));
    ask(refutes, &[], ("held", 3));
    fs::remove_file(sandbox.path("a")).unwrap();
    ask(holds, &[], ("missing", 3));

    // Another story, or a changed text of the story, is a new question; a tick is not.
    sandbox.write("a", "two\n");
    let outcome = |why: &str| {
        let page = verdone(&sandbox, &["done", "--session", "s1", "--story", "US-001"]).stdout;
        let line = page.lines().find(|line| line.contains("adversarial_passed")).unwrap().to_owned();
        assert!(line.contains(why), "{line}");
    };
    ask(refutes, &["--story", "US-002"], ("missing", 4));
    outcome("a second agent found nothing against it");
    let plan = sandbox.read("PLAN.md");
    sandbox.write("PLAN.md", plan.replace("- [ ] US-001", "- [x] US-001"));
    outcome("a second agent found nothing against it");
    sandbox.write("PLAN.md", plan.replace("it says hello", "it says hello to everybody"));
    outcome("the judge was asked about another story, or another version of this one: run `verdone done --ask`");
}

#[test]
fn gates_that_ran_on_the_files_as_they_are_prove_a_condition_of_a_session() {
    let sandbox = project();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n[[gate]]\nname = \"lint\"\nstage = \"quality\"\ncommand = \"true\"\n[[gate]]\nname = \"style\"\nstage = \"quality\"\nblocking = false\ncommand = \"false\"\n");
    sandbox.write("PLAN.md", "- [ ] US-001: One\n");
    let outcomes = || {
        let json: Value = serde_json::from_str(&verdone(&sandbox, &["done", "--session", "s1", "--json"]).stdout).unwrap();
        let of = |name: &str| {
            let conditions = json["conditions"].as_array().unwrap();
            conditions.iter().find(|condition| condition["name"] == name).unwrap()["outcome"].as_str().unwrap().to_owned()
        };
        [of("correctness_passed"), of("quality_passed")]
    };
    assert_eq!(outcomes(), ["unknown", "unknown"], "nobody ran them");
    verdone(&sandbox, &["verify"]).assert_code(0);
    assert_eq!(outcomes(), ["held", "held"]);
    sandbox.write("new.txt", "x");
    assert_eq!(outcomes(), ["unknown", "unknown"], "another tree, another question");
}
