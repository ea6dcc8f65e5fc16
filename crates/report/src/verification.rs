//! The result of `verdone verify`: outcome and proof first, then the reasons, then every check on every tree.

mod github;
mod junit;

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;
use verdone_core::check::{CheckOutcome, CheckRun};
use verdone_core::verify::{CommitRange, Tree, Verified};
use verdone_text::sentence::capitalise;

use crate::event_lines::{Line, checked_as, tail};
use crate::landing::weak_seal;
use crate::result_text::{changed_label, reason_mark, report_mark, report_words, tree_words};
use crate::style::{Mark, Style};
use crate::width::clean;
use crate::wording::{check_mark, duration};

pub use github::{github_commands, github_summary};
pub use junit::junit;

/// The page for people.
pub fn verification(found: &Verified, style: &Style) -> String {
    let (report, dot) = (&found.report, style.dot());
    let mut lines = vec![Line::top(report_mark(report), headline(found))];
    for reason in &report.reasons {
        lines.push(under(reason_mark(reason), capitalise(&clean(&reason.to_string()))));
    }
    if !found.not_run.is_empty() {
        lines.push(under(Mark::Info, format!("Not run, because an earlier stage failed: {}", names(&found.not_run))));
    }
    lines.extend(changed_label(&report.protected).map(|label| under(Mark::Info, capitalise(&label))));
    lines.extend(found.range.as_ref().map(|range| Line::top(Mark::Info, compared(range))));
    for tree in Tree::ALL {
        let runs = report.runs_on(tree);
        if runs.is_empty() {
            continue;
        }
        let took = found.took_ms.get(&tree).map_or_else(|| "cached".to_owned(), |ms| duration(*ms));
        let is_compared = report.trees.base.is_some();
        let files = if is_compared { tree_words(tree) } else { "The current files" };
        lines.push(Line::top(Mark::Info, format!("{files}{dot}{took}")));
        for run in runs {
            let mark = mark(tree, run);
            lines.push(checked_as(mark, run, dot));
            if matches!(mark, Mark::Bad | Mark::Warn | Mark::Unproven) && !run.outcome.passed() {
                lines.extend(tail(run));
            }
        }
    }
    lines.extend(weak_seal(found.seal.as_ref()).map(|text| Line::top(Mark::Warn, text)));
    lines.extend(found.notes.iter().map(|note| Line::top(Mark::Info, capitalise(&clean(note)))));
    let rows = lines.iter().flat_map(|line| line.rows(style, Some(style.width)));
    rows.fold(String::new(), |out, row| out + row.trim_end() + "\n")
}

/// What `verdone verify --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
struct Printed<'a> {
    #[serde(flatten)]
    found: &'a Verified,
    /// 0 if done, 1 if failed, 4 if it needs review; a different code if a signal ended it.
    exit_code: u8,
}

pub fn verification_json(found: &Verified, exit_code: u8) -> Value {
    serde_json::json!(Printed { found, exit_code })
}

/// The JSON Schema of `verdone verify --format json`.
pub fn verification_schema() -> Value {
    let mut schema = schema_for!(Printed<'_>).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "Verdone verify".into());
    }
    schema
}

fn headline(found: &Verified) -> String {
    let words = capitalise(&report_words(&found.report));
    found.report.story.as_ref().map_or(words.clone(), |story| format!("{}: {words}", clean(story.as_str())))
}

fn compared(range: &CommitRange) -> String {
    let (base, head) = (clean(range.base.short()), clean(range.head.short()));
    format!("{head} compared with {} ({base})", clean(&range.asked))
}

fn under(mark: Mark, text: String) -> Line {
    Line::Finding { mark, indent: 2, text }
}

/// Without the work, checks are expected to fail.
fn mark(tree: Tree, run: &CheckRun) -> Mark {
    match tree {
        Tree::Base | Tree::Proof => Mark::Info,
        Tree::Attempt | Tree::Pristine if says_nothing(run) => Mark::Unproven,
        Tree::Attempt | Tree::Pristine => check_mark(run),
    }
}

/// Whether the check is neither green nor red.
fn says_nothing(run: &CheckRun) -> bool {
    match run.outcome {
        CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted | CheckOutcome::TimedOut { .. } => !run.advisory,
        CheckOutcome::Passed | CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } => false,
    }
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use verdone_core::base::id::{Oid, StoryId};
    use verdone_core::base::span::Span;
    use verdone_core::check::{Check, CommandSpec, TestCount};
    use verdone_core::verify::{
        ChangeKind, Doubt, Note, Outcome, OwnCheckBefore, Proof, ProtectedChange, ProtectedKind, Reason, Surface, TreeIds,
        VerifyReport,
    };

    use super::*;

    fn run(name: &str, outcome: CheckOutcome) -> CheckRun {
        let check = Check::own(CommandSpec::Shell(name.to_owned()), Span::from_secs(1));
        CheckRun { outcome, duration_ms: 1200, ..CheckRun::pending(&check) }
    }

    /// Work that passes only with its own changes to the tests.
    pub(crate) fn doubted() -> Verified {
        let oid = |digit: &str| Oid(digit.repeat(40));
        let mut report = VerifyReport::empty(
            Surface::VerifyBase,
            Some(StoryId::from("US-1")),
            TreeIds { base: Some(oid("1")), attempt: oid("2"), pristine: Some(oid("3")), proof: None },
        );
        report.outcome = Outcome::NeedsReview;
        report.proof = Some(Proof::Untested);
        let failed = || CheckOutcome::Failed { code: 1 };
        report.reasons = vec![
            Reason::Doubt(Doubt::PristineFailed {
                check: "test".to_owned(),
                said: failed().describe(),
                files: vec!["tests/a.py".to_owned()],
            }),
            Reason::Note(Note::OwnCheck { check: "own".to_owned(), before: OwnCheckBefore::Red }),
        ];
        let mut red = run("test", failed());
        red.tests = Some(TestCount { ran: 3, passed: 2, failed: 1, skipped: 0 });
        red.tail = "::error::a < b & c\n<![CDATA[x]]>\n```\nassert False\n".to_owned();
        report.runs = BTreeMap::from([
            (Tree::Base, vec![run("own", failed())]),
            (Tree::Attempt, vec![run("own", CheckOutcome::Passed), run("test", CheckOutcome::Passed)]),
            (Tree::Pristine, vec![red]),
        ]);
        report.protected = vec![ProtectedChange {
            path: "tests/a.py".to_owned(),
            kind: ProtectedKind::Test,
            change: ChangeKind::Modified,
            released: false,
        }];
        Verified {
            report,
            range: Some(CommitRange { asked: "main".to_owned(), settings: oid("4"), base: oid("4"), head: oid("5") }),
            seal: None,
            notes: vec!["a note".to_owned()],
            took_ms: BTreeMap::from([(Tree::Base, 1300), (Tree::Attempt, 2500)]),
            not_run: Vec::new(),
        }
    }

    #[test]
    fn outcome_and_proof_come_first_then_why_then_the_trees() {
        let page = verification(&doubted(), &Style { width: 200, ..Style::default() });
        let expected = "\
! US-1: Needs review, untested
  ! `test` passes only with the changed tests/a.py: with the files from before the work it failed with exit code 1
  · `own` failed before the work and passes now
  · Changed: tests/a.py
· 5555555555 compared with main (4444444444)
· Before the work · 1.3s
  · own failed with exit code 1 · 1.2s
· With the work · 2.5s
  ✓ own passed · 1.2s
  ✓ test passed · 1.2s
· The work with the original tests and configuration · cached
  ✗ test failed with exit code 1 · 3 tests, 1 failed · 1.2s
    │ ::error::a < b & c
    │ <![CDATA[x]]>
    │ ```
    │ assert False
· A note
";
        assert_eq!(page, expected);
    }
}
