use super::*;

fn parse(tool: &str, arguments: Value) -> Result<Call, String> {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    Call::parse(tool, &arguments).map_err(|answer| answer.body["error"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn arguments_are_read_strictly_and_errors_name_what_is_known() {
    let claim = json!({ "story": "US-1", "summary": "done", "status": "success", "tests_passed": true });
    assert!(matches!(parse("complete_story", claim.clone()), Ok(Call::CompleteStory(_))));
    let mut extra = claim.clone();
    extra["sumary"] = "x".into();
    let mut missing = claim.clone();
    missing.as_object_mut().unwrap().remove("status");
    let mut wrong = claim.clone();
    wrong["status"] = "done".into();
    let mut empty = claim.clone();
    empty["summary"] = "  ".into();
    let mut long = claim;
    long["summary"] = "x".repeat(LONGEST_TEXT + 1).into();
    let cases = [
        ("complete_story", extra, "unknown field `sumary`, expected one of `story`, `summary`, `status`, `tests_passed`"),
        ("complete_story", missing, "missing field `status`"),
        ("complete_story", wrong, "unknown variant `done`, expected one of `success`, `partial`, `blocked`"),
        ("complete_story", empty, "`summary` is empty"),
        ("complete_story", long, "`summary` is longer than 16384 bytes"),
        ("add_guardrail", json!({ "text": "x".repeat(161) }), "`text` is longer than 160 bytes"),
        ("add_story", json!({ "title": "x", "criteria": ["a", " "] }), "`criteria` is empty"),
        (
            "add_story",
            json!({ "title": "x", "criteria": ["x".repeat(LONGEST_TEXT + 1)] }),
            "`criteria` is longer than 16384 bytes",
        ),
        ("add_story", json!({ "title": "x", "criteria": vec!["x"; MOST_CRITERIA + 1] }), "more than 50 `criteria`"),
        ("add_story", json!({ "title": "x", "reason": "x".repeat(LONGEST_TEXT + 1) }), "`reason` is longer than 16384 bytes"),
        ("status", json!({ "verbose": true }), "unknown field `verbose`, there are no fields"),
        ("get_story", json!({ "story": 7 }), "invalid type: integer `7`, expected a string"),
    ];
    for (tool, arguments, expected) in cases {
        assert_eq!(parse(tool, arguments).unwrap_err(), expected, "{tool}");
    }
    let unknown = parse("push", json!({})).unwrap_err();
    assert!(unknown.starts_with("unknown variant `push`, expected one of `complete_story`, `next_story`"), "{unknown}");
}

#[test]
fn every_tool_has_a_strict_schema_and_can_be_called() {
    let all = tools();
    assert_eq!(all.len(), 10);
    for tool in &all {
        assert_eq!(tool.schema["type"], "object", "{}", tool.name);
        assert_eq!(tool.schema["additionalProperties"], false, "{}", tool.name);
        assert!(tool.schema.get("$ref").is_none() && !tool.schema.to_string().contains("$ref"), "{}", tool.schema);
        // An example made from the schema is a call of that tool, so schema and type agree.
        let empty = Map::new();
        let properties = tool.schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let arguments: Map<String, Value> = properties.iter().map(|(name, schema)| (name.clone(), example(schema))).collect();
        let call = Call::parse(tool.name, &arguments).unwrap_or_else(|answer| panic!("{}: {}", tool.name, answer.body));
        assert_eq!((call.tool(), call.need()), (tool.name, tool.need));
    }
}

fn example(schema: &Value) -> Value {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].clone(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("boolean") => json!(true),
        Some("array") => json!(["x"]),
        Some("string") if schema.get("enum").is_some() => schema["enum"][0].clone(),
        Some("string") => json!("x"),
        _ => schema["oneOf"][0]["const"].clone(),
    }
}

#[test]
fn what_a_server_asks_survives_the_way_to_the_run() {
    let call = parse("verify", json!({ "stage": "security" })).unwrap();
    for query in [Query::Call(call), Query::Read(Resource::LastFailure)] {
        let line = serde_json::to_string(&query).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Query>(&line).unwrap(), query);
    }
    for resource in Resource::ALL {
        assert_eq!(Resource::from_uri(&resource.uri()), Some(resource));
    }
    assert_eq!(Resource::from_uri("verdone://journal"), None);
}

#[test]
fn a_question_is_asked_once_and_a_turn_has_one() {
    let known = |answer: Option<&str>| OpenQuestion {
        story: "US-1".into(),
        reason: "why".to_owned(),
        question: "Which port?".to_owned(),
        answer: answer.map(str::to_owned),
    };
    let (open, answered) = (known(None), known(Some("8080")));
    let cases = [
        ("Which port?", None, None, QuestionStatus::New),
        ("Which port?", None, Some("Which port?"), QuestionStatus::AlreadyAsked),
        ("Which port?", Some(&open), None, QuestionStatus::AlreadyAsked),
        ("Which port?", Some(&answered), None, QuestionStatus::Answered("8080".to_owned())),
        ("Which host?", Some(&answered), None, QuestionStatus::New),
        ("Which host?", None, Some("Which port?"), QuestionStatus::OneTooMany),
        ("Which host?", Some(&open), Some("Which port?"), QuestionStatus::OneTooMany),
    ];
    for (question, known, in_turn, expected) in cases {
        assert_eq!(QuestionStatus::of(question, known, in_turn), expected, "{question} {known:?} {in_turn:?}");
    }
}

#[test]
fn the_passage_with_the_most_common_words_comes_first() {
    let passage = |text: &str| Passage { source: "guardrails".to_owned(), text: text.to_owned() };
    let all = [passage("Use tabs"), passage("Database tests need a port"), passage("Tests of the parser are slow")];
    let found: Vec<String> = search("which port do database tests use?", all).into_iter().map(|found| found.text).collect();
    assert_eq!(found, ["Database tests need a port", "Use tabs", "Tests of the parser are slow"]);
    assert!(search("!? a", [passage("a !?")]).is_empty());
}

#[test]
fn nothing_but_the_name_of_a_hidden_check_is_in_an_answer() {
    use crate::base::id::Oid;
    use crate::base::span::Span;
    use crate::check::{Check, CheckOutcome, CheckRun, CommandSpec};
    use crate::verify::{Surface, Tree, TreeIds, VerifyReport};

    let run = |name: &str| {
        let check =
            Check { name: name.to_owned(), ..Check::own(CommandSpec::Shell(format!("sh {name}.sh")), Span::from_secs(1)) };
        let outcome = CheckOutcome::Failed { code: 3 };
        CheckRun {
            outcome,
            tail: format!("output of {name}"),
            first_error: format!("error of {name}"),
            ..CheckRun::pending(&check)
        }
    };
    let mut report = VerifyReport::empty(Surface::Run, None, TreeIds::of_attempt(Oid::from("t")));
    report.runs.insert(Tree::Attempt, vec![run("open"), run("secret"), CheckRun { hidden: true, ..run("marked") }]);
    report.hidden = vec!["secret".to_owned()];
    let answer = VerificationAnswer::new(&report);
    for text in [serde_json::to_string(&answer).unwrap(), answer.to_markdown()] {
        assert!(text.contains("output of open") && text.contains("sh open.sh") && text.contains("exit code 3"), "{text}");
        for name in ["secret", "marked"] {
            assert!(text.contains(name), "{text}");
            let leaks = [format!("output of {name}"), format!("error of {name}"), format!("sh {name}.sh")];
            assert!(!leaks.iter().any(|leak| text.contains(leak)), "{text}");
        }
    }
    assert_eq!(answer.failing[1].result, "did not pass");
    let stage = |failed: &[CheckRun]| serde_json::to_value(StageAnswer::of_runs("quality", "why".to_owned(), failed)).unwrap();
    assert_eq!(stage(&[]), json!({ "stage": "quality", "passed": true, "problems": [], "failing": [] }));
    let failed = stage(&[run("open")]);
    assert_eq!((&failed["passed"], failed.get("outcome")), (&json!(false), None), "gates of a stage decide about no story");
}
