//! Tamper alarms: what an attempt did to the things that judge it, found by comparing the files before and after.
//!
//! Tests are read, not diffed: each by its name, the digest of its body and what it asserts, so that a test that moved, was renamed
//! or was formatted anew is no alarm. What gates run, and what can switch tests off, is compared line by line. The comparison is a
//! guess about intent: alarms carry a severity, and what a severity does is the user's setting.

mod assertions;
mod changed_lines;
mod compare;
mod coverage;
mod deciders;
mod expected;
mod gates;
mod git_sight;
mod inventory;
mod make;
mod reach;
mod settings;
mod switches;
mod unmade;
mod watched;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Language;

pub use deciders::{Deciders, Held, HeldFiles, How, PutBack, Touched, deciders, expects_change};
pub use expected::{Said, said};
pub use git_sight::GitSight;
pub use reach::{GateReach, Task, gate_reach};
pub use settings::{Response, TamperSettings};
pub use watched::is_test_path;

/// One file before and after. Neither side: nothing to compare.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub path: &'a str,
    pub old: Option<&'a [u8]>,
    pub new: Option<&'a [u8]>,
    /// Where the old content was, where the caller knows of a rename.
    pub old_path: Option<&'a str>,
}

/// What alarms are judged by.
#[derive(Debug, Clone, Default)]
pub struct Context<'a> {
    /// The story's scope, as seen from the top of the tree.
    pub scope: &'a [String],
    /// What the story itself says that it does to tests.
    pub said: Said,
    /// What gates run.
    pub gates: GateReach,
    /// What the story's own checks run.
    pub own: GateReach,
    /// The plan and its progress files.
    pub plan: &'a [String],
    /// Changed files that were too large, or no text, to be read.
    pub unread: &'a [String],
}

/// How bad it looks, from mildest to gravest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    Medium,
    High,
}

impl Severity {
    pub fn words(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// A test is gone.
    TestDeleted,
    /// A test is still there, where no runner finds it.
    TestOutOfReach,
    /// A test was replaced by another.
    TestRewritten,
    /// A test is skipped, ignored or pending, or returns before it asserts.
    TestSkipped,
    /// Only some tests run.
    TestFocused,
    /// A test is expected to fail.
    TestInverted,
    /// A test asserts nothing any more, or only what is always true, or swallows what it finds.
    TestWeakened,
    /// A test of the same name asserts something else, or less.
    AssertionChanged,
    /// There are fewer tests than before.
    FewerTests,
    /// What a gate runs was changed.
    GateChanged,
    /// What a gate runs cannot fail any more, or less often.
    GateDefused,
    /// A file of continuous integration.
    CiChanged,
    /// Rules of a linter or a compiler.
    LintChanged,
    CoverageLowered,
    LockChanged,
    SnapshotChanged,
    /// What decides which tests a runner finds.
    RunnerChanged,
    PlanEdited,
    /// `.verdone/`: settings, gates, journal.
    JudgeTouched,
    /// Hooks of git, or settings and attributes that change what git sees.
    GitTouched,
    /// It could not be looked at.
    Unread,
}

impl AlarmKind {
    /// A few words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::TestDeleted => "test deleted",
            Self::TestOutOfReach => "test out of the runner's reach",
            Self::TestRewritten => "test replaced",
            Self::TestSkipped => "test skipped",
            Self::TestFocused => "other tests switched off",
            Self::TestInverted => "test expected to fail",
            Self::TestWeakened => "test weakened",
            Self::AssertionChanged => "assertion changed",
            Self::FewerTests => "fewer tests",
            Self::GateChanged => "changed what a gate runs",
            Self::GateDefused => "defused what a gate runs",
            Self::CiChanged => "CI changed",
            Self::LintChanged => "lint rules changed",
            Self::CoverageLowered => "coverage threshold lowered",
            Self::LockChanged => "lock file changed",
            Self::SnapshotChanged => "snapshot changed",
            Self::RunnerChanged => "test runner's settings changed",
            Self::PlanEdited => "plan edited",
            Self::JudgeTouched => "Verdone's own files touched",
            Self::GitTouched => "git's settings, hooks or attributes touched",
            Self::Unread => "could not be looked at",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    pub kind: AlarmKind,
    pub severity: Severity,
    /// Relative to the top of the work tree.
    pub path: String,
    /// From 1, in the file as it is now; as it was, where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What, in a few words.
    pub text: String,
    /// The story's scope or text says that this part is to change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected: bool,
}

/// What an alarm says about a change of the agent's that has no effect.
pub const IGNORED: &str = "the agent's change was ignored";
/// The same in journals of the first edition.
const PUT_BACK: &str = "put back";

impl Alarm {
    /// About a file that is not the agent's to write, and that is as it was.
    pub fn undone(kind: AlarmKind, path: &str) -> Self {
        Self { kind, severity: Severity::Low, path: path.to_owned(), line: None, text: IGNORED.to_owned(), expected: false }
    }

    pub fn is_undone(&self) -> bool {
        matches!(self.kind, AlarmKind::PlanEdited | AlarmKind::JudgeTouched | AlarmKind::GitTouched)
            && [IGNORED, PUT_BACK].contains(&self.text.as_str())
    }

    /// One line for people: `test deleted: adds_two (tests/a.rs:4)`.
    pub fn sentence(&self) -> String {
        let place = self.line.map_or_else(|| self.path.clone(), |line| format!("{}:{line}", self.path));
        let expected = if self.expected { ", as the story expects" } else { "" };
        match (self.text.is_empty(), place.is_empty()) {
            (true, _) => format!("{}: {place}{expected}", self.kind.words()),
            (false, true) => format!("{}: {}{expected}", self.kind.words(), self.text),
            (false, false) => format!("{}: {} ({place}){expected}", self.kind.words(), self.text),
        }
    }
}

/// A changed file as the parts of this module see it.
struct File<'a> {
    path: &'a str,
    old_path: &'a str,
    old: Option<String>,
    new: Option<String>,
    language: Option<Language>,
    old_language: Option<Language>,
}

impl<'a> File<'a> {
    fn of(change: &Change<'a>) -> Self {
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let (old, new) = (text(change.old), text(change.new));
        let old_path = change.old_path.unwrap_or(change.path);
        let language = Language::of(change.path, new.as_deref().unwrap_or_default());
        let old_language = Language::of(old_path, old.as_deref().unwrap_or_default());
        Self { path: change.path, old_path, old, new, language, old_language }
    }
}

/// Compares. The order of the changes does not matter; the gravest alarm comes first.
pub fn report(changes: &[Change<'_>], context: &Context<'_>) -> Vec<Alarm> {
    let mut files: Vec<File<'_>> =
        changes.iter().filter(|change| change.old != change.new || change.old_path.is_some()).map(File::of).collect();
    files.sort_by(|a, b| (a.path, a.old_path).cmp(&(b.path, b.old_path)));
    let mut alarms = compare::tests(&files);
    alarms.extend(watched::files(&files, context));
    alarms.extend(watched::unread(context.unread));
    alarms.extend(gates::taken_for_made(&files, context));
    for alarm in &mut alarms {
        if expected::expects(context, alarm) {
            alarm.expected = true;
            alarm.severity = Severity::Low;
        }
    }
    alarms.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    alarms.dedup();
    alarms
}
