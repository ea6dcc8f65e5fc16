//! Changes as text. `#####` begins one, `=====` a file of it, `-----` divides before and after; `(none)` is no file.

use std::collections::BTreeMap;

use verdone_core::tamper::{Alarm, Change, Context, Response, Severity, TamperSettings, gate_reach, report, said};

const CAUGHT: &str = include_str!("../fixtures/tamper/caught.txt");
const HONEST: &str = include_str!("../fixtures/tamper/honest.txt");

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) alarm: String,
    gates: Vec<String>,
    /// The story's own checks.
    own: Vec<String>,
    scope: Vec<String>,
    story: String,
    pub(crate) files: Vec<(String, Option<String>, Option<String>)>,
}

pub(crate) fn cases(text: &str) -> Vec<Case> {
    text.split("##### ").skip(1).map(case).collect()
}

pub(crate) fn all() -> Vec<Case> {
    cases(CAUGHT).into_iter().chain(cases(HONEST)).collect()
}

fn case(text: &str) -> Case {
    let mut parts = text.split("\n===== ");
    let head = parts.next().unwrap_or_default();
    let (name, head) = head.split_once('\n').unwrap_or((head, ""));
    let field = |key: &str| head.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned();
    let list = |key: &str| Some(field(key)).filter(|text| !text.is_empty()).into_iter().collect();
    let content = |text: &str| (text.trim_end() != "(none)").then(|| text.to_owned());
    let file = |part: &str| {
        let (path, rest) = part.split_once('\n').unwrap_or_else(|| panic!("{name}: a file without content"));
        let (old, new) = rest.split_once("\n-----\n").unwrap_or_else(|| panic!("{name}: no divider in {path}"));
        (path.to_owned(), content(old), content(new))
    };
    let files = parts.map(file).collect();
    Case {
        name: name.to_owned(),
        alarm: field("alarm:"),
        gates: list("gate:"),
        own: list("own:"),
        scope: list("scope:"),
        story: field("story:"),
        files,
    }
}

impl Case {
    pub(crate) fn report(&self) -> Vec<Alarm> {
        let old: BTreeMap<String, Option<String>> = self.files.iter().map(|(path, old, _)| (path.clone(), old.clone())).collect();
        let plan = ["PLAN.md".to_owned()];
        let scope = self.scope.iter().map(|path| path.trim_end_matches('/').to_owned()).collect::<Vec<_>>();
        let context = Context {
            scope: &scope,
            said: said(&self.story),
            gates: gate_reach(&self.gates, "", &old),
            own: gate_reach(&self.own, "", &old),
            plan: &plan,
            unread: &[],
        };
        report(&self.changes(), &context)
    }

    pub(crate) fn changes(&self) -> Vec<Change<'_>> {
        self.files
            .iter()
            .map(|(path, old, new)| Change { path, old: bytes(old.as_ref()), new: bytes(new.as_ref()), old_path: None })
            .collect()
    }
}

fn bytes(text: Option<&String>) -> Option<&[u8]> {
    text.map(String::as_bytes)
}

fn lines(alarms: &[Alarm]) -> String {
    let line = |alarm: &Alarm| format!("    {:?} {}\n", alarm.severity, alarm.sentence());
    alarms.iter().map(line).collect()
}

#[test]
fn every_trick_of_the_table_is_caught_with_its_kind_and_severity() {
    let cases = cases(CAUGHT);
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let alarms = case.report();
        let found = alarms.iter().any(|alarm| {
            let kind = serde_json::to_value(alarm.kind).unwrap();
            format!("{} {}", kind.as_str().unwrap(), alarm.severity.words()) == case.alarm
        });
        if !found {
            wrong.push_str(&format!("{}: wanted {}, found\n{}", case.name, case.alarm, lines(&alarms)));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_honest_change_of_the_table_is_more_than_reported() {
    let cases = cases(HONEST);
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let alarms = case.report();
        if alarms.iter().any(|alarm| alarm.severity > Severity::Low) {
            wrong.push_str(&format!("{}: found\n{}", case.name, lines(&alarms)));
        }
        assert_eq!(TamperSettings::default().gravest(&alarms).0, Response::Report, "{}", case.name);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn renames_moves_and_formatting_are_silent() {
    let quiet = ["renamed", "moved", "formatted", "split in two", "comments added", "source only", "docs only"];
    for case in cases(HONEST).into_iter().filter(|case| quiet.iter().any(|word| case.name.contains(word))) {
        assert_eq!(lines(&case.report()), "", "{}", case.name);
    }
}

#[test]
fn a_scope_expects_the_tests_that_it_names_and_no_others() {
    let deleted = |scope: &str, path: &str| {
        let case = format!("##### x\nscope: {scope}\n===== {path}\ndef test_a():\n    assert f() == 1\n-----\n(none)\n");
        let alarms = cases(&case).remove(0).report();
        let alarm = alarms.iter().find(|alarm| alarm.path == path).unwrap().clone();
        (alarm.severity, alarm.expected)
    };
    assert_eq!(deleted("tests", "tests/test_a.py"), (Severity::Low, true));
    assert_eq!(deleted("src/test_a.py", "src/test_a.py"), (Severity::Low, true));
    assert_eq!(deleted("src", "src/test_a.py"), (Severity::High, false), "a folder of sources expects nothing of its tests");
    assert_eq!(deleted(".", "tests/test_a.py"), (Severity::High, false));
    assert_eq!(deleted("tests/unit", "tests/test_a.py"), (Severity::High, false));
}

#[test]
fn what_a_story_says_not_to_do_is_not_expected() {
    for text in
        ["Do not delete tests.", "without removing any test", "Refactor; never skip tests", "Add tests", "update the tests"]
    {
        assert_eq!(said(text), verdone_core::tamper::Said::default(), "{text}");
    }
    assert!(said("Delete the tests of v1").deletes && said("Disable the flaky specs").skips);
    assert!(said("Refresh snapshots").snapshots);
}

#[test]
fn gates_are_followed_through_scripts_and_targets() {
    let files: BTreeMap<String, Option<String>> = [
        (
            "web/package.json",
            r#"{"scripts": {"test": "npm run unit && ../tools/check.sh", "unit": "jest", "pretest": "node gen.js"}}"#,
        ),
        ("tools/check.sh", "#!/bin/sh\nmake -C . lint\nsh tools/deep.sh\n"),
        ("Makefile", "all:\n\techo\nlint: fmt\n\t@scripts/lint\nfmt:\n\tcargo fmt --check\n"),
    ]
    .map(|(path, text)| (path.to_owned(), Some(text.to_owned())))
    .into();
    let reach = gate_reach(&["cd web && npm test".to_owned(), "make lint".to_owned()], "", &files);
    assert!(reach.scripts["web/package.json"].contains("unit") && reach.scripts["web/package.json"].contains("pretest"));
    for file in ["tools/check.sh", "scripts/lint", "web/gen.js"] {
        assert!(reach.files.contains(file), "{file}: {reach:?}");
    }
    assert!(reach.wanted.contains("scripts/lint") && !reach.wanted.contains("Makefile"));
    assert_eq!(gate_reach(&["../out.sh; /bin/x; $X".to_owned()], "", &files).files.len(), 0);
}

#[test]
fn what_could_not_be_read_is_said() {
    let unread = ["tests/big_test.py".to_owned(), "logo.png".to_owned(), "src/big.rs".to_owned()];
    let alarms = report(&[], &Context { unread: &unread, ..Context::default() });
    let seen: Vec<(&str, Severity)> = alarms.iter().map(|alarm| (alarm.path.as_str(), alarm.severity)).collect();
    assert_eq!(seen, [("tests/big_test.py", Severity::Medium), ("src/big.rs", Severity::Low)]);
}
