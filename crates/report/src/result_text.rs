//! A story's result and its reasons, worded the same in live lines, pages, log and report.

use verdone_core::base::id::StoryId;
use verdone_core::journal::view::RunView;
use verdone_core::verify::{Outcome, Proof, ProtectedChange, Reason, StoryResult, Tree, VerifyReport};
use verdone_text::shell_word::shell_argument;

use crate::style::Mark;
use crate::width::clean;
use crate::wording::plural;

/// The word used in tables and counts.
pub(crate) fn result_words(result: StoryResult) -> &'static str {
    match result.outcome {
        Outcome::NeedsReview => "needs review",
        Outcome::Done | Outcome::Accepted | Outcome::Failed => result.name(),
    }
}

pub(crate) fn result_mark(result: StoryResult) -> Mark {
    match (result.outcome, result.proof) {
        (Outcome::Failed, _) => Mark::Bad,
        (Outcome::NeedsReview, _) => Mark::Warn,
        (Outcome::Accepted, _) | (Outcome::Done, Some(Proof::Verified | Proof::AgentTested)) => Mark::Good,
        (Outcome::Done, Some(Proof::Untested | Proof::Unchecked) | None) => Mark::Unproven,
    }
}

/// Outcome and proof: `done, verified`, `needs review, agent-tested`.
pub(crate) fn outcome_and_proof(result: StoryResult) -> String {
    let outcome = match result.outcome {
        Outcome::Done => "done",
        Outcome::NeedsReview | Outcome::Accepted | Outcome::Failed => result_words(result),
    };
    result.proof.map_or_else(|| outcome.to_owned(), |proof| format!("{outcome}, {proof}"))
}

/// The label of a commit: its proof, plus the person's decision or the one still needed.
pub(crate) fn committed_as(result: StoryResult) -> String {
    match (result.outcome, result.proof) {
        (Outcome::Done, Some(proof)) => proof.to_string(),
        (_, Some(proof)) => format!("{proof}, {}", result_words(result)),
        (_, None) => result_words(result).to_owned(),
    }
}

/// Counts stories by result, best first: `2 verified, 1 untested`. Empty if there are none.
pub fn results(view: &RunView) -> String {
    let count = |kind: &StoryResult| view.with_result(Some(kind.name())).count();
    let counted = StoryResult::KINDS.iter().map(|kind| (count(kind), *kind)).filter(|(number, _)| *number > 0);
    counted.map(|(number, kind)| format!("{number} {}", counted_words(number, kind))).collect::<Vec<_>>().join(", ")
}

fn counted_words(number: usize, kind: StoryResult) -> &'static str {
    match kind.outcome {
        Outcome::NeedsReview if number > 1 => "need review",
        Outcome::NeedsReview | Outcome::Done | Outcome::Accepted | Outcome::Failed => result_words(kind),
    }
}

/// The result of a verification in two or three words.
pub(crate) fn report_words(report: &VerifyReport) -> String {
    match report.outcome {
        Outcome::Failed if report.was_interrupted() => "interrupted".to_owned(),
        Outcome::Failed if report.is_doubted() => "not done yet".to_owned(),
        Outcome::Failed => "failed".to_owned(),
        // Older versions recorded the proof with the commit.
        Outcome::Done if report.proof.is_none() => "passed".to_owned(),
        outcome @ (Outcome::Done | Outcome::NeedsReview | Outcome::Accepted) => {
            outcome_and_proof(StoryResult { outcome, proof: report.proof })
        }
    }
}

pub(crate) fn report_mark(report: &VerifyReport) -> Mark {
    match report.outcome {
        Outcome::Failed if report.is_doubted() || report.was_interrupted() => Mark::Warn,
        Outcome::Done if report.proof.is_none() => Mark::Good,
        outcome => result_mark(StoryResult { outcome, proof: report.proof }),
    }
}

pub(crate) fn reason_mark(reason: &Reason) -> Mark {
    match reason {
        Reason::Failure(_) => Mark::Bad,
        Reason::Doubt(_) => Mark::Warn,
        Reason::Note(_) => Mark::Info,
    }
}

/// Describes the tree on which checks ran.
pub(crate) fn tree_words(tree: Tree) -> &'static str {
    match tree {
        Tree::Base => "Before the work",
        Tree::Attempt => "With the work",
        Tree::Pristine => "The work with the original tests and configuration",
        Tree::Proof => "The attempt's tests without its work",
    }
}

/// Changed tests and configuration: `changed: 2 test files, pytest.ini`.
pub(crate) fn changed_label(protected: &[ProtectedChange]) -> Option<String> {
    const MOST_NAMES: usize = 3;
    let (tests, others): (Vec<_>, Vec<_>) = protected.iter().partition(|change| change.kind.is_test());
    let mut parts = match tests.as_slice() {
        [] => Vec::new(),
        [test] => vec![clean(&test.path)],
        tests => vec![plural(tests.len(), "test file", "test files")],
    };
    parts.extend(others.iter().take(MOST_NAMES).map(|change| clean(&change.path)));
    if others.len() > MOST_NAMES {
        parts.push(format!("{} more", others.len() - MOST_NAMES));
    }
    (!parts.is_empty()).then(|| format!("changed: {}", parts.join(", ")))
}

/// The first reason, and how many more there are.
pub(crate) fn first_of(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        [only] => clean(only),
        [first, rest @ ..] => format!("{} (and {} more)", clean(first), rest.len()),
    }
}

/// A story's id as a command-line argument.
pub(crate) fn argument(id: &StoryId) -> String {
    shell_argument(&clean(id.as_str()))
}

#[cfg(test)]
mod tests {
    use verdone_core::verify::{ChangeKind, ProtectedKind};

    use super::*;

    fn changed(path: &str, kind: ProtectedKind) -> ProtectedChange {
        ProtectedChange { path: path.to_owned(), kind, change: ChangeKind::Modified, released: false }
    }

    #[test]
    fn changed_tests_are_counted_and_the_rest_is_named() {
        use ProtectedKind::{Config, Test};
        let label = |changes: &[(&str, ProtectedKind)]| {
            changed_label(&changes.iter().map(|(path, kind)| changed(path, *kind)).collect::<Vec<_>>())
        };
        assert_eq!(label(&[]), None);
        assert_eq!(label(&[("tests/a.py", Test)]).as_deref(), Some("changed: tests/a.py"));
        let two = [("a", Test), ("b", Test), ("pytest.ini", Config)];
        assert_eq!(label(&two).as_deref(), Some("changed: 2 test files, pytest.ini"));
        let many = [("1", Config), ("2", Config), ("3", Config), ("4", Config), ("5", Config)];
        assert_eq!(label(&many).as_deref(), Some("changed: 1, 2, 3, 2 more"));
        assert_eq!(label(&[("a\x1b[2Jb\n", Config)]).as_deref(), Some(format!("changed: {}", clean("a\x1b[2Jb\n")).as_str()));
    }

    #[test]
    fn an_id_is_sanitised_and_quoted_where_a_shell_would_split_it() {
        for (id, expected) in [("US-2", "US-2"), ("a b", "'a b'"), ("a\u{1b}\nb", "'a b'"), ("--all", "-- --all"), ("#7", "'#7'")]
        {
            assert_eq!(argument(&StoryId::from(id)), expected);
        }
    }

    #[test]
    fn every_result_has_its_words() {
        let words = StoryResult::KINDS.map(result_words);
        assert_eq!(words, ["verified", "agent-tested", "untested", "unchecked", "accepted", "needs review", "failed"]);
        let pending = StoryResult { outcome: Outcome::NeedsReview, proof: Some(Proof::AgentTested) };
        assert_eq!(
            (outcome_and_proof(pending), committed_as(pending)),
            ("needs review, agent-tested".into(), "agent-tested, needs review".into())
        );
        let done = StoryResult::done(Proof::Verified);
        assert_eq!((outcome_and_proof(done), committed_as(done)), ("done, verified".into(), "verified".into()));
        assert_eq!(outcome_and_proof(StoryResult::FAILED), "failed");
    }
}
