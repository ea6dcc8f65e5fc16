//! A verification as `JUnit` XML: one suite per tree, one case per check, and one case for the result itself.

use std::fmt::Write as _;

use verdone_core::base::sanitise::sanitise;
use verdone_core::check::CheckRun;
use verdone_core::verify::{CheckState, Outcome, Tree, Verified};

use crate::wording::{ended, plural};

pub fn junit(found: &Verified) -> String {
    let report = &found.report;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"verdone\">\n");
    suite(&mut out, "outcome", 1, u32::from(report.outcome != Outcome::Done), found.took_ms.values().sum());
    property(&mut out, "outcome", report.outcome.name());
    property(&mut out, "proof", report.proof.map_or("none", |proof| proof.name()));
    out.push_str("    </properties>\n");
    let story = report.story.as_ref().map_or("the work is done", |story| story.as_str());
    let problems = report.problems();
    let failure = (report.outcome != Outcome::Done).then(|| (report.outcome.name(), problems.join("\n")));
    case(&mut out, "verdone", story, 0, failure, "");
    out.push_str("  </testsuite>\n");
    for tree in Tree::ALL {
        let runs = report.runs_on(tree);
        if runs.is_empty() {
            continue;
        }
        let failures = runs.iter().filter(|run| counts_against_it(tree, run)).count() as u32;
        suite(&mut out, tree.name(), runs.len(), failures, found.took_ms.get(&tree).copied().unwrap_or(0));
        property(&mut out, "outcome", report.outcome.name());
        property(&mut out, "proof", report.proof.map_or("none", |proof| proof.name()));
        out.push_str("    </properties>\n");
        for run in runs {
            let reason = reason(found, tree, run);
            let failure = counts_against_it(tree, run).then_some(("failed", reason));
            case(&mut out, tree.name(), &run.name, run.duration_ms, failure, &said(run));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// On the base and proof trees, checks are expected to fail.
fn counts_against_it(tree: Tree, run: &CheckRun) -> bool {
    match tree {
        Tree::Base | Tree::Proof => false,
        Tree::Attempt | Tree::Pristine => !run.advisory && CheckState::from_run(run) != CheckState::Green,
    }
}

/// The reason about this check, or how the check ended.
fn reason(found: &Verified, tree: Tree, run: &CheckRun) -> String {
    let about_pristine = tree == Tree::Pristine;
    let is_it = |reason: &&verdone_core::verify::Reason| {
        reason.failing_check() == Some(run.name.as_str())
            && matches!(reason, verdone_core::verify::Reason::Doubt(_)) == about_pristine
    };
    found.report.reasons.iter().find(is_it).map_or_else(|| format!("{} {}", run.name, ended(run)), ToString::to_string)
}

fn said(run: &CheckRun) -> String {
    let counted = run.tests.map(|tests| {
        let ran = plural(usize::try_from(tests.ran).unwrap_or(usize::MAX), "test", "tests");
        format!("; {ran}, {} failed, {} skipped", tests.failed, tests.skipped)
    });
    format!("{}{}\n{}", ended(run), counted.unwrap_or_default(), run.excerpt(usize::MAX))
}

fn suite(out: &mut String, name: &str, cases: usize, failures: u32, ms: u64) {
    let (name, time) = (attribute(name), seconds(ms));
    let _ = write!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{cases}\" failures=\"{failures}\" errors=\"0\" time=\"{time}\">\n    <properties>\n"
    );
}

fn property(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "      <property name=\"{}\" value=\"{}\"/>", attribute(name), attribute(value));
}

fn case(out: &mut String, class: &str, name: &str, ms: u64, failure: Option<(&str, String)>, said: &str) {
    let (class, name, time) = (attribute(class), attribute(name), seconds(ms));
    let _ = writeln!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\">");
    if let Some((kind, text)) = failure {
        let first = text.lines().next().unwrap_or_default();
        let (kind, first, text) = (attribute(kind), attribute(first), content(&text));
        let _ = writeln!(out, "      <failure type=\"{kind}\" message=\"{first}\">{text}</failure>");
    }
    if !said.trim().is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", content(said));
    }
    out.push_str("    </testcase>\n");
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Escapes text for XML: no control characters, and nothing that opens or closes a tag.
fn content(text: &str) -> String {
    let allowed = |c: char| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c };
    let text: String = sanitise(text).chars().map(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn attribute(text: &str) -> String {
    content(text).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verification::tests::doubted;

    #[test]
    fn each_tree_is_a_suite_and_each_check_a_case_with_the_reason_of_its_failure() {
        let text = junit(&doubted());
        for line in [
            "<testsuite name=\"outcome\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"3.800\">",
            "<property name=\"outcome\" value=\"needs-review\"/>",
            "<property name=\"proof\" value=\"untested\"/>",
            "<testsuite name=\"base\" tests=\"1\" failures=\"0\" errors=\"0\" time=\"1.300\">",
            "<testsuite name=\"attempt\" tests=\"2\" failures=\"0\" errors=\"0\" time=\"2.500\">",
            "<testsuite name=\"pristine\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"0.000\">",
            "<testcase classname=\"pristine\" name=\"test\" time=\"1.200\">",
            "<failure type=\"failed\" message=\"`test` passes only with the changed tests/a.py",
            "3 tests, 1 failed, 0 skipped",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(text.matches("<testsuite ").count(), 4);
    }

    #[test]
    fn no_text_of_a_check_gets_out_of_its_element() {
        let mut found = doubted();
        let run = &mut found.report.runs.get_mut(&Tree::Pristine).unwrap()[0];
        run.name = "\"/><failure/><x a=\"\n\x1b[2J\u{0}".to_owned();
        run.tail = "</system-out></testcase>]]><evil/>\u{fffe}\u{1}".to_owned();
        let text = junit(&found);
        assert!(!text.contains("<evil") && !text.contains("<x ") && !text.contains("\"/><failure"), "{text}");
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{fffe}'), "{text:?}");
        assert_eq!(text.matches("</testcase>").count(), 5);
    }
}
