//! What a story expects to change: its scope names it, or its text says so.
//!
//! A scope that covers a folder of sources expects no change of the tests that lie in it: only a path that itself names tests does.

use std::sync::LazyLock;

use regex::Regex;

use super::watched::is_test_path;
use super::{Alarm, AlarmKind, Context};
use crate::scope::Covered;

/// What a story says in words that it does to tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// "Remove the tests of …"
    pub deletes: bool,
    /// "Skip the flaky test …"
    pub skips: bool,
    /// "Update the snapshots"
    pub snapshots: bool,
}

/// Reads a story's title, text and criteria. What it says not to do does not count.
pub fn said(text: &str) -> Said {
    static DELETES: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:remove|delete|drop|retire)s?\b[^.\n]{0,40}\b(?:tests?|specs?)\b"));
    static SKIPS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:skip|ignore|disable|quarantine)s?\b[^.\n]{0,40}\b(?:tests?|specs?)\b"));
    static SNAPSHOTS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:update|renew|refresh|regenerate|bless|accept)s?\b[^.\n]{0,40}\bsnapshots?\b"));
    let text = &text.to_lowercase();
    Said { deletes: says(&DELETES, text), skips: says(&SKIPS, text), snapshots: says(&SNAPSHOTS, text) }
}

fn pattern(words: &str) -> Regex {
    Regex::new(&format!(r"\b(?:{words})")).expect("a fixed pattern compiles")
}

fn says(pattern: &Regex, text: &str) -> bool {
    static NOT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:not|never|without|no|don't|cannot|must not)\b[^.\n]{0,20}$").expect("a fixed pattern compiles")
    });
    pattern.find_iter(text).any(|found| {
        let line = text[..found.start()].rfind(['\n', '.']).map_or(0, |at| at + 1);
        !NOT.is_match(&text[line..found.start()])
    })
}

pub(super) fn expects(context: &Context<'_>, alarm: &Alarm) -> bool {
    let said = context.said;
    let by_words = match alarm.kind {
        AlarmKind::TestDeleted | AlarmKind::TestRewritten | AlarmKind::FewerTests => said.deletes,
        AlarmKind::TestSkipped => said.skips,
        AlarmKind::SnapshotChanged => said.snapshots,
        AlarmKind::TestOutOfReach
        | AlarmKind::TestFocused
        | AlarmKind::TestInverted
        | AlarmKind::TestWeakened
        | AlarmKind::AssertionChanged
        | AlarmKind::GateChanged
        | AlarmKind::GateDefused
        | AlarmKind::CiChanged
        | AlarmKind::LintChanged
        | AlarmKind::CoverageLowered
        | AlarmKind::LockChanged
        | AlarmKind::RunnerChanged
        | AlarmKind::PlanEdited
        | AlarmKind::JudgeTouched
        | AlarmKind::GitTouched
        | AlarmKind::Unread => false,
    };
    by_words || (may_be_expected(alarm.kind) && context.scope.iter().any(|scope| names(scope, alarm)))
}

/// The judge's own files are never part of a story, and what cannot fail proves nothing whoever wanted it.
fn may_be_expected(kind: AlarmKind) -> bool {
    !matches!(kind, AlarmKind::PlanEdited | AlarmKind::JudgeTouched | AlarmKind::TestFocused | AlarmKind::Unread)
}

/// Whether this path of the scope means what the alarm is about, and not just the folder that it lies in.
fn names(scope: &str, alarm: &Alarm) -> bool {
    let of_tests = match alarm.kind {
        AlarmKind::TestDeleted
        | AlarmKind::TestOutOfReach
        | AlarmKind::TestRewritten
        | AlarmKind::TestSkipped
        | AlarmKind::TestInverted
        | AlarmKind::TestWeakened
        | AlarmKind::AssertionChanged
        | AlarmKind::SnapshotChanged => true,
        AlarmKind::TestFocused
        | AlarmKind::FewerTests
        | AlarmKind::GateChanged
        | AlarmKind::GateDefused
        | AlarmKind::CiChanged
        | AlarmKind::LintChanged
        | AlarmKind::CoverageLowered
        | AlarmKind::LockChanged
        | AlarmKind::RunnerChanged
        | AlarmKind::PlanEdited
        | AlarmKind::JudgeTouched
        | AlarmKind::GitTouched
        | AlarmKind::Unread => false,
    };
    scope_names(scope, &alarm.path, of_tests)
}

/// Whether this path of a scope means that very file, or tests where it is one of them.
pub(super) fn scope_names(scope: &str, path: &str, of_tests: bool) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let means = if of_tests {
        is_test_path(scope) || is_test_path(&format!("{scope}/x")) || scope.contains("snap")
    } else {
        scope == path || (!folder.is_empty() && scope.trim_end_matches("/**").trim_end_matches("/*") == folder)
    };
    let covers = || Covered::new(&[scope.to_owned()], false).is_ok_and(|covered| covered.has(path));
    !path.is_empty() && means && covers()
}
