//! The stories of each format, and the errors for plans that are refused.

use verdone_plan::{Document, Format, Status, Story, StoryId};

use crate::DIALECT;

fn parse(name: &str, text: &str) -> Document {
    Document::parse(name, text.as_bytes(), &DIALECT).unwrap_or_else(|error| panic!("{error}"))
}

fn summary(document: &Document) -> Vec<(&str, &str, Status)> {
    document.plan().stories.iter().map(|story| (story.id.as_str(), story.title.as_str(), story.status)).collect()
}

fn criteria(story: &Story) -> Vec<(&str, Option<bool>)> {
    story.criteria.iter().map(|criterion| (criterion.text.as_str(), criterion.ticked)).collect()
}

#[test]
fn plan_md_has_heading_stories_with_tasks() {
    let document = parse("plan.md", include_str!("../fixtures/plan.md"));
    assert_eq!(document.format(), Format::PlanMd);
    assert_eq!(summary(&document), [("US-001", "Sign in", Status::InProgress), ("US-002", "Sign out", Status::Open)]);
    let plan = document.plan();
    assert_eq!(plan.title.as_deref(), Some("Implementation Plan"));
    assert!(plan.context.contains("Sign-in for the shop.") && plan.context.contains("a human has looked"), "{}", plan.context);
    assert!(!plan.context.contains("Add the form"), "{}", plan.context);
    let first = &plan.stories[0];
    assert_eq!(first.line, 14);
    assert_eq!(
        criteria(first),
        [
            ("Add the form", Some(true)),
            ("a user can sign in", None),
            ("Add the route", Some(false)),
            ("wrong passwords are refused", None),
            ("the page says why", None),
        ]
    );
    assert_eq!(first.checks, ["npm test -- login", "npm run lint", "npm run typecheck"]);
    assert_eq!(first.maybe_checks, ["npm run e2e"]);
    assert_eq!(plan.stories[1].depends_on, [StoryId::from("US-001")]);
    assert_eq!(plan.stories[1].checks, ["test -e \"src/logout.tsx\""]);
    let warnings: Vec<_> = plan.warnings.iter().map(|warning| (warning.line, warning.column)).collect();
    assert_eq!(warnings, [(28, 7), (50, 1)]);
}

#[test]
fn prd_md_has_boxes_in_headings() {
    let document = parse("prd.md", include_str!("../fixtures/prd.md"));
    assert_eq!(document.format(), Format::PrdMd);
    assert_eq!(summary(&document), [("US-001", "Sign in", Status::Done), ("US-002", "Sign out", Status::Open)]);
    let stories = &document.plan().stories;
    assert_eq!(criteria(&stories[0]), [("a user can sign in", Some(false)), ("wrong passwords are refused", Some(false))]);
    assert_eq!(stories[1].priority, Some(2));
    assert_eq!(stories[1].depends_on, [StoryId::from("US-001")]);
    assert_eq!(stories[1].checks, ["npm test", "npm run lint"]);
    assert!(stories[0].body.starts_with("As a user"), "{}", stories[0].body);
}

#[test]
fn implementation_plans_have_priorities_and_work_in_progress() {
    let document = parse("IMPLEMENTATION_PLAN.md", include_str!("../fixtures/IMPLEMENTATION_PLAN.md"));
    assert_eq!(document.format(), Format::ImplementationPlan);
    assert_eq!(
        summary(&document),
        [
            ("item-1", "Parse the config", Status::Done),
            ("item-2", "Load plugins", Status::InProgress),
            ("item-3", "Show errors", Status::Open),
            ("item-4", "Dream", Status::Open),
        ]
    );
    let stories = &document.plan().stories;
    assert_eq!(stories.iter().map(|story| story.priority).collect::<Vec<_>>(), [Some(1), Some(1), Some(2), None]);
    assert_eq!(stories[2].depends_on, [StoryId::from("item-2"), StoryId::from("item-1")]);
    assert!(stories[0].body.starts_with("Refs: specs/config.md §4\n"), "{}", stories[0].body);
    assert!(stories.iter().all(|story| !story.explicit_id));
}

#[test]
fn implementation_plans_may_tick_numbered_headings() {
    let text = include_str!("../fixtures/headings.md");
    let mut document = parse("IMPLEMENTATION_PLAN.md", text);
    assert_eq!(
        summary(&document),
        [("1.1", "Parse the config", Status::Done), ("1.2", "Load plugins", Status::Open), ("2.1", "Show errors", Status::Open)]
    );
    assert_eq!(document.plan().stories[1].depends_on, [StoryId::from("1.1")]);
    document.mark(2, Status::Done).unwrap();
    document.mark(0, Status::Open).unwrap();
    let expected = text.replace("config ✅", "config").replace("Show errors ##", "Show errors ✅ ##");
    assert_eq!(document.text(), expected);
}

#[test]
fn a_checklist_has_made_ids_and_nested_boxes_are_criteria() {
    let document = parse("TODO.md", include_str!("../fixtures/checklist.md"));
    assert_eq!(document.format(), Format::Checklist);
    assert_eq!(
        summary(&document),
        [("item-1", "first", Status::Open), ("item-2", "second", Status::Done), ("item-3", "third", Status::Open)]
    );
    assert_eq!(criteria(&document.plan().stories[0]), [("its part", Some(true)), ("its other part", Some(false))]);
}

#[test]
fn box_lines_with_ids_are_stories() {
    let text = "# Plan\n\n- [ ] **US-001: One**\n  Verification: `make one`\n- [x] US-002: Two\n  - Depends on: US-001 (one)\n- [ ] no id\n\n\
        - [ ] Group\n  - [ ] US-003: Three\n";
    let document = parse("plan.md", text);
    assert_eq!(document.format(), Format::PlanMd);
    assert_eq!(
        summary(&document),
        [
            ("US-001", "One", Status::Open),
            ("US-002", "Two", Status::Done),
            ("item-3", "no id", Status::Open),
            ("US-003", "Three", Status::Open),
        ]
    );
    assert_eq!(document.plan().stories[0].checks, ["make one"]);
    assert_eq!(document.plan().stories[1].depends_on, [StoryId::from("US-001")]);
}

#[test]
fn a_heading_above_stories_groups_them() {
    let text = "## M1: Release\n\nSoon.\n\n### US-001: One\n- [ ] a\n\n## M2: Later\n- [ ] b\n\n### US-002: Two\n- [x] c\n";
    let document = parse("plan.md", text);
    assert_eq!(
        summary(&document),
        [("US-001", "One", Status::Open), ("M2", "Later", Status::Open), ("US-002", "Two", Status::Done)]
    );
    assert_eq!(document.plan().context, "## M1: Release\n\nSoon.");
}

#[test]
fn prd_json_has_user_stories() {
    let document = parse("prd.json", include_str!("../fixtures/prd.json"));
    assert_eq!(document.format(), Format::PrdJson);
    assert_eq!(
        summary(&document),
        [
            ("US-001", "Sign in", Status::Done),
            ("US-002", "Sign out é😀", Status::Open),
            ("3", "Remember", Status::InProgress),
            ("US-004", "Forget", Status::Open),
        ]
    );
    let plan = document.plan();
    assert_eq!((plan.title.as_deref(), plan.branch.as_deref()), (Some("Shop"), Some("ralph/shop")));
    assert_eq!(criteria(&plan.stories[0]), [("a user can sign in", None), ("Typecheck passes", None)]);
    assert_eq!(plan.stories.iter().map(|story| story.priority).collect::<Vec<_>>(), [Some(2), Some(1), None, None]);
    assert_eq!(plan.stories[1].depends_on, [StoryId::from("US-001")]);
}

#[test]
fn json_marks_change_one_value_and_a_missing_one_is_added_in_style() {
    let text = include_str!("../fixtures/prd.json");
    let mut document = parse("prd.json", text);
    let undos: Vec<_> = [(1, Status::Done), (3, Status::Done), (2, Status::Done), (0, Status::Open)]
        .into_iter()
        .map(|(index, status)| document.mark(index, status).unwrap())
        .collect();
    let expected = text
        .replace("\"passes\" : false", "\"passes\" : true")
        .replace("\"in_progress\"", "\"done\"")
        .replace("\"passes\": true,", "\"passes\": false,")
        .replace("\"title\": \"Forget\"\n", "\"title\": \"Forget\",\n      \"passes\": true\n");
    assert_eq!(document.text(), expected);
    assert_eq!(document, parse("prd.json", &expected));
    undos.into_iter().rev().for_each(|undo| document.undo(undo));
    assert_eq!(document, parse("prd.json", text));
}

#[test]
fn a_line_that_is_added_moves_the_stories_after_it() {
    let text = "[\n  {\n    \"description\": \"a\"\n  },\n  {\n    \"description\": \"b\"\n  }\n]\n";
    let mut document = parse("feature_list.json", text);
    let undo = document.mark(0, Status::Done).unwrap();
    assert_eq!(document.plan().stories[1].line, 6);
    assert_eq!(document, parse("feature_list.json", document.text()));
    document.undo(undo);
    assert_eq!(document, parse("feature_list.json", text));
}

#[test]
fn feature_lists_come_in_two_shapes() {
    let object = parse("feature_list.json", include_str!("../fixtures/feature_list.json"));
    assert_eq!(summary(&object), [("1", "New chat button", Status::Open), ("2", "Dark mode", Status::Done)]);
    assert_eq!(criteria(&object.plan().stories[0]), [("Click it", None), ("See an empty chat", None)]);
    let list = parse("feature_list.json", include_str!("../fixtures/feature_array.json"));
    assert_eq!((object.format(), list.format()), (Format::FeatureList, Format::FeatureList));
    assert_eq!(summary(&list), [("item-1", "New chat button", Status::Open), ("item-2", "Dark mode", Status::Done)]);
    assert!(list.plan().stories[0].body.contains("Second line"));
}

#[test]
fn a_heading_with_open_boxes_is_not_done_and_a_mark_ticks_all_of_them() {
    let text = "### US-001: One\r\n- [x] a\r\n- [X] b\r\n- [ ] c\r\n  - [ ] nested\r\n";
    let mut document = parse("plan.md", text);
    assert_eq!(document.plan().stories[0].status, Status::InProgress);
    let undo = document.mark(0, Status::Done).unwrap();
    assert_eq!(document.text(), "### US-001: One\r\n- [x] a\r\n- [X] b\r\n- [x] c\r\n  - [ ] nested\r\n");
    assert_eq!(document, parse("plan.md", document.text()));
    document.undo(undo);
    assert_eq!(document, parse("plan.md", text));
}

#[test]
fn what_a_story_had_begun_is_there_again_when_a_mark_is_taken_back() {
    let half = "### US-001: One\n- [X] a\n- [/] b\n- [ ] c\n";
    let word = "{\"userStories\": [{\"id\": \"US-001\", \"title\": \"One\", \"status\": \"in-progress\"}]}";
    for (name, before, after) in [
        ("plan.md", half, half.replace("[/]", "[x]").replace("[ ]", "[x]")),
        ("prd.json", word, word.replace("in-progress", "done")),
    ] {
        let marks = Document::parse(name, before.as_bytes(), &DIALECT).unwrap().marks_of(0);
        let mut ticked = Document::parse(name, after.as_bytes(), &DIALECT).unwrap();
        assert_eq!(ticked.plan().stories[0].status, Status::Done, "{after}");
        ticked.take_back(0, &marks).unwrap();
        assert_eq!(ticked.text(), before);
        // Unknown marks are ignored.
        let mut other = Document::parse(name, after.as_bytes(), &DIALECT).unwrap();
        other.take_back(0, &["?".to_owned()]).unwrap();
        assert_eq!(other.plan().stories[0].status, Status::Open);
    }
}

#[test]
fn a_mark_that_the_format_cannot_say_changes_nothing() {
    for (name, text) in [("TODO.md", "- [ ] a\n"), ("feature_list.json", "[{\"description\": \"a\", \"passes\": false}]")] {
        let mut document = parse(name, text);
        document.mark(0, Status::InProgress).unwrap();
        assert_eq!(document.text(), text);
        assert_eq!(document.plan().stories[0].status, Status::Open);
    }
    let mut document = parse("IMPLEMENTATION_PLAN.md", "## Priority 1\n- [ ] a\n");
    document.mark(0, Status::InProgress).unwrap();
    assert_eq!(document.text(), "## Priority 1\n- [~] a\n");
    assert!(document.mark(1, Status::Done).is_err());
}

#[test]
fn the_fingerprint_follows_the_text_and_not_the_ticks() {
    let mut document = parse("plan.md", include_str!("../fixtures/plan.md"));
    let before = document.fingerprint();
    document.mark(0, Status::Done).unwrap();
    assert_eq!(document.fingerprint(), before);
    assert_eq!(parse("plan.md", document.text()).fingerprint(), before);
    let edited = document.text().replace("npm run typecheck", "true");
    assert_ne!(parse("plan.md", &edited).fingerprint(), before);
}

#[test]
fn lint_names_prose_and_stories_without_checks() {
    let document = parse("plan.md", "- [ ] US-001: One\n- [ ] US-002: Two\n  - Verification: look at it\n");
    let problems = document.lint(&DIALECT);
    let lines: Vec<_> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(lines, [(1, 1), (2, 1), (3, 5)], "{problems:?}");
}

#[test]
fn a_long_list_of_problems_is_cut() {
    let text = format!("[{}]", vec!["7"; 150].join(","));
    let error = Document::parse("p.json", text.as_bytes(), &DIALECT).unwrap_err();
    assert_eq!(error.problems.len(), 101);
    assert_eq!(error.problems[100].message, "and 50 more after this");
    assert_eq!(error.problems[100].column, 202);
}

#[test]
fn plans_that_cannot_be_used_say_where_and_why() {
    let table: &[(&str, &[u8], &str)] = &[
        ("PLAN.md", b"", "PLAN.md:1:1: there is no story in this plan"),
        ("PLAN.md", b"# Title\n\n```\n- [ ] no\n```\n", "PLAN.md:1:1: there is no story in this plan"),
        ("PLAN.md", b"<!--\n- [ ] no\n-->\n", "PLAN.md:1:1: there is no story in this plan"),
        ("PLAN.md", b"text <!--\n- [ ] no\n-->\n", "PLAN.md:1:1: there is no story in this plan"),
        ("PLAN.md", b"---\ntitle: x\n---\n", "PLAN.md:1:1: there is no story in this plan"),
        ("PLAN.md", b"- [ ] a\n- [ ] \xffb\n", "PLAN.md:2:7: this is not UTF-8"),
        ("PLAN.md", b"\xff\xfe-\0", "PLAN.md:1:1: this is not UTF-8"),
        (
            "plan.md",
            b"### US-001: A\n\ntext\n\n### US-002: B\n- [ ] b\n",
            "plan.md:1:1: `US-001` has no box to tick",
        ),
        (
            "plan.md",
            "\u{feff}- [ ] US-001: A\r\n- [ ] US-002: B\r\n- [ ] US-001: C\r\n".as_bytes(),
            "plan.md:3:1: the id `US-001` is used twice",
        ),
        (
            "plan.md",
            b"- [ ] US-001: A\n  - Depends on: US-002, US-009\n- [ ] US-002: B\n  - Depends on: US-001\n",
            "plan.md:1:1: stories depend on each other: US-001 → US-002 → US-001\n\
             plan.md:2:5: `US-001` depends on `US-009`, which is not in this plan",
        ),
        ("plan.md", b"- [ ] US-001: A\n  - Depends on: US-001\n", "plan.md:1:1: stories depend on each other: US-001 → US-001"),
        ("p.json", b"", "p.json:1:1: the file ends too early: a value is missing"),
        ("p.json", b"{\"userStories\": [\n  {\"id\": \"a\"", "p.json:2:13: the file ends too early: the object is not closed"),
        ("p.json", b"{\"userStories\": [\n  {\"id\": \"a", "p.json:2:12: the file ends too early: a string is not closed"),
        ("p.json", b"{\"userStories\": [1,]}", "p.json:1:20: a comma before the closing bracket"),
        ("p.json", b"{\"userStories\": [tru", "p.json:1:21: the file ends too early: a value is cut off"),
        ("p.json", b"{'a': 1}", "p.json:1:2: expected a key in double quotes, found `'`"),
        ("p.json", b"[] x", "p.json:1:4: unexpected text after the JSON value"),
        ("p.json", b"[]", "p.json:1:1: there is no story in this plan"),
        ("p.json", b"[01]", "p.json:1:2: `01` is not a JSON number"),
        ("p.json", b"3", "p.json:1:1: a JSON plan is an object or a list, not a number"),
        ("p.json", b"{\"a\": 1}", "p.json:1:1: this file has neither `userStories` nor `features`"),
        ("p.json", b"{\"userStories\": {}}", "p.json:1:17: `the stories` must be a list, not an object"),
        (
            "p.json",
            b"{\"branchName\": 1, \"userStories\": [7,\n {\"title\": \"a\", \"passes\": \"yes\", \"priority\": 1.5},\n {\"title\": \"b\", \"passes\": true, \"passes\": false},\n {\"id\": []}]}",
            "p.json:1:16: `branchName` must be a string, not a number\n\
             p.json:1:35: `story` must be an object, not a number\n\
             p.json:2:27: `passes` must be true or false, not a string\n\
             p.json:2:46: `priority` must be a whole number, not a number\n\
             p.json:3:33: `passes` appears twice\n\
             p.json:4:2: the story has neither a title nor a description\n\
             p.json:4:9: `id` must be a string or a number, not a list",
        ),
        (
            "p.json",
            b"[{\"id\": 1, \"description\": \"a\"}, {\"id\": \"1\", \"description\": \"b\", \"status\": \"odd\"}, {\"id\": 1, \"description\": \"c\"}]",
            "p.json:1:75: the status `odd` is unknown\np.json:1:83: the id `1` is used twice",
        ),
    ];
    for (name, bytes, expected) in table {
        match Document::parse(name, bytes, &DIALECT) {
            Ok(document) => panic!("{:?} was parsed: {:?}", String::from_utf8_lossy(bytes), document.plan()),
            Err(error) => assert_eq!(error.to_string(), *expected, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

#[test]
fn a_flag_that_was_missing_moves_the_lines_below_it() {
    let text = "{\"userStories\": [\n  {\n    \"id\": \"A\",\n    \"title\": \"One\"\n  },\n  {\n    \"id\": \"B\",\n    \"title\": \"Two\"\n  }\n]}\n";
    let mut document = Document::parse("prd.json", text.as_bytes(), &DIALECT).expect("a good plan");
    let before = document.clone();
    let undo = document.mark(0, Status::Done).expect("the first story exists");
    let again = Document::parse("prd.json", document.text().as_bytes(), &DIALECT).expect("still a good plan");
    assert_eq!(document, again);
    assert_eq!(document.plan().stories[1].line, before.plan().stories[1].line + 1);
    document.undo(undo);
    assert_eq!(document, before);
}

#[test]
fn a_story_names_its_scope_in_every_format() {
    let table: [(&str, &str, &[&str]); 12] = [
        ("plan.md", "### US-001: One\n\n- [ ] Do it\n  - Scope: src/api/, docs/*.md\n", &["src/api", "docs/*.md"]),
        ("plan.md", "### US-001: One\n\n**Scope:** `src` and `my docs/`\nMore words.\n\n- [ ] Do it\n", &["src", "my docs"]),
        ("plan.md", "### US-001: One\n\n#### Scope\n- `src`\n- tests/a.rs\n\n#### Notes\n- [ ] x/y\n", &["src", "tests/a.rs"]),
        ("plan.md", "- [ ] US-001: One\n  Scope: src/a.rs src/b.rs\n", &["src/a.rs", "src/b.rs"]),
        ("plan.md", "### US-001: One\n- [ ] a\n  - Scope: src/\n- [ ] b\n  - Scope: tests/\n", &["src", "tests"]),
        ("prd.md", "### [ ] US-001: One\n\n**Scope**: `src/`\n", &["src"]),
        ("IMPLEMENTATION_PLAN.md", "## Priority 1\n\n- [ ] One\n  - Scope: src/\n", &["src"]),
        ("IMPLEMENTATION_PLAN.md", "### 1.1 One\n\nScope: src/\n", &["src"]),
        ("TODO.md", "- [ ] One\n  - **Scope:** src/, tests\n", &["src", "tests"]),
        (
            "prd.json",
            r#"{"userStories": [{"id": "1", "title": "One", "passes": false, "scope": ["src", "docs/a b.md"]}]}"#,
            &["src", "docs/a b.md"],
        ),
        (
            "prd.json",
            r#"{"userStories": [{"id": "1", "title": "One", "passes": false, "scope": "src/, docs/"}]}"#,
            &["src", "docs"],
        ),
        ("feature_list.json", r#"[{"description": "One", "passes": false, "scope": null}]"#, &[]),
    ];
    for (name, text, expected) in table {
        let document = parse(name, text);
        assert_eq!(*document.plan().stories[0].scope, *expected, "{name}: {text}");
        assert!(
            document.plan().warnings.iter().all(|warning| !warning.message.contains("scope")),
            "{:?}",
            document.plan().warnings
        );
    }
}

#[test]
fn a_scope_that_is_none_is_a_warning_with_its_place_and_never_makes_a_plan_unusable() {
    let table = [
        ("plan.md", "- [ ] US-001: One\n  - Scope: backend only\n", (2, "this scope contains no path")),
        ("plan.md", "- [ ] US-001: One\n  - Scope: `../x`\n", (2, "this scope is outside the project")),
        ("plan.md", "- [ ] US-001: One\n  - Scope: /etc/passwd\n", (2, "this scope is outside the project")),
        (
            "prd.json",
            "{\"userStories\": [{\"title\": \"One\", \"passes\": false,\n \"scope\": {\"a\": 1}}]}",
            (2, "`scope` must be"),
        ),
        ("prd.json", "{\"userStories\": [{\"title\": \"One\", \"passes\": false,\n \"scope\": [7]}]}", (2, "`scope` must be")),
        (
            "prd.json",
            "{\"userStories\": [{\"title\": \"One\", \"passes\": false,\n \"scope\": \"small\"}]}",
            (2, "this scope contains no path"),
        ),
    ];
    for (name, text, (line, message)) in table {
        let document = parse(name, text);
        let warning = document.lint(&DIALECT).into_iter().find(|warning| warning.message.starts_with(message));
        let warning = warning.unwrap_or_else(|| panic!("{text}: {:?}", document.lint(&DIALECT)));
        assert!(warning.line == line && warning.hint.is_some(), "{warning:?}");
        assert!(document.plan().stories[0].scope.is_empty(), "{text}");
    }
}
