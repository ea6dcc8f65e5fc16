//! The real client with Verdone's tools: what an agent calls during its turn, and what the run makes of it.

use serde_json::{Value, json};
use verdone_testkit::model_server::{Request, Script, ToolResult, Turn};

use crate::claude::world::{PATIENCE, World};

const AGENT: &str = "[agent]\nname = \"claude\"\n";
const PLAN: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `grep two a`\n";
const TWO: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `grep two a`\n\n\
    ### US-002: Write b\n\n- [ ] Write the file b\n  - Verification: `test -f b`\n";

fn tool(name: &str, arguments: Value) -> Turn {
    Turn::call(&format!("mcp__verdone__{name}"), arguments)
}

fn claim(status: &str) -> Turn {
    tool("complete_story", json!({ "story": "US-001", "summary": "wrote a", "status": status, "tests_passed": true }))
}

/// The result of the one call in the model's answer before this request.
#[track_caller]
fn result(world: &World, request: usize) -> (ToolResult, Value) {
    let given = world.model.turns()[request].tool_results().pop().unwrap_or_else(|| panic!("{}", world.model.overview()));
    let body = serde_json::from_str(&given.text).unwrap_or(Value::Null);
    (given, body)
}

fn asked<'j>(journal: &'j [Value], kind: &str) -> Vec<&'j Value> {
    let requests = journal.iter().filter(|event| event["event"] == "asked").map(|event| &event["request"][kind]);
    requests.filter(|request| !request.is_null()).collect()
}

fn count(journal: &[Value], name: &str) -> usize {
    journal.iter().filter(|event| event["event"] == name).count()
}

#[test]
fn a_story_is_completed_through_the_tool_after_one_refusal() {
    let steps = [Turn::bash("echo one > a"), claim("success"), Turn::bash("echo two > a"), claim("success"), Turn::say("Done.")];
    let script = Script::new().on("US-001", steps);
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", PLAN)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let (refused, body) = result(&world, 2);
    assert!(!refused.is_error, "{}", refused.text);
    assert_eq!((&body["outcome"], &body["should_continue"]), (&json!("failed"), &json!(true)), "{body}");
    assert_eq!(body["failing"][0]["command"], "grep two a", "{body}");
    let (_, body) = result(&world, 4);
    assert_eq!((&body["outcome"], &body["proof"]), (&json!("done"), &json!("verified")), "{body}");
    assert_eq!(body["should_continue"], false, "{body}");
    let journal = world.journal();
    assert_eq!((count(&journal, "turn_started"), count(&journal, "verified"), count(&journal, "committed")), (1, 1, 1));
    let claims: Vec<&Value> = asked(&journal, "claim");
    assert_eq!(claims.len(), 2);
    assert_eq!((&claims[0]["story"], &claims[0]["status"]), (&json!("US-001"), &json!("success")));
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "two");
    // The tools are in the first request, not behind a search.
    let first = &world.model.turns()[0];
    assert!(first.contains("mcp__verdone__complete_story"), "the client does not offer the tools");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_claim_alone_closes_nothing_and_an_unfinished_story_stays_open() {
    // The story would pass its gates; the agent itself says that it is not finished.
    let plan = "# Plan\n\n- [ ] US-001: Write a\n";
    let config = format!("{AGENT}[[gate]]\nname = \"g\"\ncommand = \"true\"\n[limits]\nturns = 2\nattempts = 1\n");
    let note = json!({ "story": "US-001", "summary": "half of it", "status": "partial", "tests_passed": true });
    let steps = [
        Turn::bash("echo one > a"),
        tool("complete_story", note),
        Turn::say("More to do."),
        Turn::bash("echo two > a"),
        Turn::say("Done."),
    ];
    let script = Script::new().on("US-001", steps);
    let Some(world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", plan)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let journal = world.journal();
    assert_eq!((count(&journal, "turn_started"), count(&journal, "verified"), count(&journal, "committed")), (2, 1, 1));
    assert!(world.model.turns()[3].prompt().contains("half of it"), "the next prompt repeats the note");
}

#[test]
fn an_agent_that_is_denied_a_push_and_follows_the_advice_gets_a_review_branch() {
    let merge = |story: &str| tool("request_merge", json!({ "story": story, "summary": "please look at a" }));
    let steps = [Turn::bash("git push"), merge("US-001"), Turn::bash("echo two > a"), merge("US-001"), Turn::say("Done.")];
    let script = Script::new().on("US-001", steps);
    let config = format!("{AGENT}[merge]\ncommand = \"echo $VERDONE_STORY $VERDONE_REVIEW_BRANCH > ../tmp/published\"\n");
    let Some(world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", PLAN)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let (denied, _) = result(&world, 1);
    assert!(denied.is_error && denied.text.contains("request_merge"), "{}", denied.text);
    let (early, body) = result(&world, 2);
    assert!(early.is_error && body["error"].as_str().unwrap().contains("not done"), "{body}");
    let (merged, body) = result(&world, 4);
    assert!(!merged.is_error, "{body}");
    assert_eq!(body["branch"], "verdone/review/US-001");
    assert_eq!(world.sandbox.git(["rev-parse", "verdone/review/US-001"]), world.sandbox.git(["rev-parse", "HEAD"]));
    let report = std::fs::read_to_string(body["report"].as_str().unwrap()).unwrap();
    assert!(report.contains("please look at a") && report.contains("Proof: verified"), "{report}");
    assert_eq!(asked(&world.journal(), "merge").len(), 1);
    let published = std::fs::read_to_string(world.shared("published")).unwrap();
    assert_eq!(published, "US-001 verdone/review/US-001\n", "the command ran outside of the seal, once");
}

#[test]
fn a_question_is_answered_and_the_next_session_goes_on_with_it() {
    let question = json!({ "story": "US-001", "reason": "two databases exist", "question": "Which database?" });
    let blocked = [tool("report_blocked", question), Turn::say("Waiting for an answer.")];
    let script = Script::new().on("US-001", blocked).on("US-002", [Turn::bash("echo x > b"), Turn::say("Done.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", TWO)], script) else { return };
    let run = world.verdone(&["run"]);
    run.assert_code(4);
    assert!(run.stdout.contains("Question about US-001: Which database?"), "{}", run.transcript());
    assert!(run.stdout.contains("Next: verdone answer"), "{}", run.transcript());
    let journal = world.journal();
    assert_eq!(count(&journal, "committed"), 1, "the other story is done");
    let rejected: Vec<&Value> =
        journal.iter().filter(|event| event["event"] == "attempt_rejected").map(|event| &event["rejection"]).collect();
    assert_eq!(rejected, ["blocked"]);
    let listed = world.verdone(&["answer"]);
    assert!(listed.stdout.contains("US-001: Which database?"), "{}", listed.stdout);
    assert!(world.verdone(&["status"]).stdout.contains("Which database?"));
    assert!(world.verdone(&["show", "US-001"]).stdout.contains("Which database?"));
    world.verdone(&["answer", "US-009", "x"]).assert_code(2);
    world.verdone(&["answer", "us-001", "The staging one."]).assert_code(0);
    world.model.extend(Script::new().on("US-001", [Turn::bash("echo two > a"), Turn::say("Done.")]));
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let prompts: Vec<String> = world.model.turns().iter().map(Request::prompt).collect();
    let told = prompts.iter().rfind(|prompt| prompt.contains("US-001")).unwrap();
    assert!(told.contains("You asked: Which database?") && told.contains("The answer: The staging one."), "{told}");
    assert!(world.verdone(&["answer"]).stdout.contains("No agent has asked"), "a story that is done has no question");
}

#[test]
fn the_run_answers_every_other_tool_and_hides_what_hidden_checks_say() {
    let steps = [
        Turn::bash("echo two > a"),
        tool("status", json!({})),
        tool("next_story", json!({})),
        tool("verify", json!({})),
        tool("add_guardrail", json!({ "text": "Use tabs\nand nothing else" })),
        tool("recall", json!({ "query": "tabs" })),
        tool("add_story", json!({ "title": "Write c", "criteria": ["c exists"] })),
        claim("done"),
        tool("complete_story", json!({ "story": "US-002", "summary": "x", "status": "success", "tests_passed": true })),
        Turn::bash("touch good"),
        Turn::say("Done."),
    ];
    let script = Script::new().on("US-001", steps);
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", TWO)], script) else { return };
    let hidden = world.sandbox.root().join("hidden");
    std::fs::create_dir_all(&hidden).unwrap();
    let gate = format!("[[gate]]\nname = \"secret\"\ncommand = \"echo HIDDEN OUTPUT; test -f good\"\nhidden = {hidden:?}\n");
    let config = world.sandbox.read(".verdone/config.toml");
    world.sandbox.write(".verdone/config.toml", format!("{config}{gate}"));
    world.verdone(&["run", "--story", "US-001", "--red-baseline"]).assert_code(0);
    world.assert_scripted();
    let body = |request: usize| result(&world, request).1;
    assert_eq!((&body(2)["in_run"], &body(2)["story"]), (&json!(true), &json!("US-001")));
    assert_eq!(body(3)["story"]["checks"][0], "grep two a");
    let names: Vec<Value> = body(4)["failing"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect();
    assert!(names.contains(&json!("secret")), "{}", body(4));
    assert!(body(5)["what_was_done"].as_str().unwrap().contains("guardrails.md"));
    assert_eq!(world.sandbox.read(".verdone/guardrails.md"), "- An agent noted (\"Use tabs and nothing else\")\n");
    assert_eq!(body(6)["found"][0]["text"], "An agent noted (\"Use tabs and nothing else\")");
    assert!(world.sandbox.read(".verdone/proposed-stories.md").contains("- [ ] Write c"));
    assert!(body(8)["error"].as_str().unwrap().contains("unknown variant `done`"), "{}", body(8));
    assert!(body(9)["error"].as_str().unwrap().contains("this session works on US-001"), "{}", body(9));
    let said: String = world.model.turns().iter().flat_map(Request::tool_results).map(|given| given.text).collect();
    assert!(!said.contains("HIDDEN OUTPUT") && !said.contains("test -f good"), "{said}");
}

#[test]
fn a_story_that_the_settings_let_an_agent_add_is_done_in_the_same_run() {
    let adds = [
        tool("add_story", json!({ "title": "Write c", "criteria": ["Verification: `true`"] })),
        Turn::bash("echo two > a"),
        Turn::say("Done."),
    ];
    let [writes_b, writes_c] = ["b", "c"].map(|name| [Turn::bash(&format!("echo x > {name}")), Turn::say("Done.")]);
    let script = Script::new().on("US-001", adds).on("US-002", writes_b).on("US-003", writes_c);
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", TWO)], script) else { return };
    let config = world.sandbox.read(".verdone/config.toml").replace("[run]", "[run]\nadd_stories = true");
    world.sandbox.write(".verdone/config.toml", format!("{config}[[gate]]\nname = \"clean\"\ncommand = \"test ! -f bad\"\n"));
    world.sandbox.write("PLAN.md", format!("{TWO}\n"));
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    assert_eq!(result(&world, 1).1["what_was_done"], "added to the plan as US-003");
    let plan = world.sandbox.read("PLAN.md");
    assert!(plan.starts_with(TWO.replace("[ ]", "[x]").as_str()) && plan.contains("### US-003: Write c"), "{plan}");
    assert!(world.sandbox.path("c").is_file(), "the story was done and has landed");
    let shown = world.verdone(&["plan", "show"]).stdout;
    assert!(shown.contains("grep two a"), "{shown}");
    let (_, added) = shown.split_once("Write c").unwrap();
    assert!(!added.contains("check"), "an agent's story brings no command: {shown}");
}
