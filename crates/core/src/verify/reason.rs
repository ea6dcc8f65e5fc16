//! Why a story is proven as it is, and why it is done or not: one sentence each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{CountFall, list};
use super::job::Tree;
use super::proof::Proof;

/// What a reason does to the outcome. Ordered from mildest to gravest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It explains the proof.
    Explains,
    /// A person has to look, after one turn of feedback if the agent can do something about it.
    Review,
    Fails,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    CheckFailed { check: String, said: String },
    CheckUnknown { check: String, said: String },
    CheckNotRun { check: String },
    Interrupted,
    NothingChanged,
    OutOfScope { files: Vec<String> },
    ConditionMissing { name: String, why: String, todo: String },
    /// Green on the attempt, but not with the protected files from before the work.
    PristineFailed { check: String, said: String, files: Vec<String> },
    PristineNotRun { check: String },
    PristineTreeFailed { why: String },
    CountsFell { check: String, tree: Tree, change: CountFall },
    AutorunChanged { files: Vec<String> },
    JudgeRefuted { findings: Vec<String> },
    JudgeUnknown { why: String },
    ConditionUnknown { name: String, why: String },
    BelowMinimum { proof: Proof, minimum: Proof },
    OwnCheckRedThenGreen { check: String },
    TestsRedThenGreen { check: String, files: Vec<String> },
    NoOwnCheck,
    OwnCheckGreenBefore { check: String },
    OwnCheckUnknownBefore { check: String, why: String },
    OwnCheckMissingBefore { check: String, file: String },
    OwnCheckNotRunBefore { check: String },
    NoTests,
    TestsPassWithoutWork { files: Vec<String> },
    TestsUnclear { check: String, said: String },
    TestsNotRun { files: Vec<String> },
    ProofTreeFailed { why: String },
    ScopeNamesProtected { files: Vec<String> },
    CountsLowered { check: String, change: CountFall },
    PristineSkipped { files: Vec<String> },
    ProofLimited { at_most: Proof },
    Flaky { check: String },
    NoCheck,
}

impl Reason {
    pub fn weight(&self) -> Weight {
        match self {
            Self::CheckFailed { .. }
            | Self::CheckUnknown { .. }
            | Self::CheckNotRun { .. }
            | Self::Interrupted
            | Self::NothingChanged
            | Self::OutOfScope { .. }
            | Self::ConditionMissing { .. } => Weight::Fails,
            Self::PristineFailed { .. }
            | Self::PristineNotRun { .. }
            | Self::PristineTreeFailed { .. }
            | Self::CountsFell { .. }
            | Self::AutorunChanged { .. }
            | Self::JudgeRefuted { .. }
            | Self::JudgeUnknown { .. }
            | Self::ConditionUnknown { .. }
            | Self::BelowMinimum { .. } => Weight::Review,
            Self::OwnCheckRedThenGreen { .. }
            | Self::TestsRedThenGreen { .. }
            | Self::NoOwnCheck
            | Self::OwnCheckGreenBefore { .. }
            | Self::OwnCheckUnknownBefore { .. }
            | Self::OwnCheckMissingBefore { .. }
            | Self::OwnCheckNotRunBefore { .. }
            | Self::NoTests
            | Self::TestsPassWithoutWork { .. }
            | Self::TestsUnclear { .. }
            | Self::TestsNotRun { .. }
            | Self::ProofTreeFailed { .. }
            | Self::ScopeNamesProtected { .. }
            | Self::CountsLowered { .. }
            | Self::PristineSkipped { .. }
            | Self::ProofLimited { .. }
            | Self::Flaky { .. }
            | Self::NoCheck => Weight::Explains,
        }
    }

    /// What the agent can do about it; nothing where it is out of its hands.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::PristineFailed { files, .. } => {
                Some(format!("Restore {} or change the code so that the check passes with them as they were.", list(files)))
            }
            Self::PristineTreeFailed { .. } => Some("Restore the changed tests and configuration.".to_owned()),
            Self::CountsFell { .. } => Some("Restore the tests that no longer run, or change the code so that they pass.".to_owned()),
            Self::AutorunChanged { files } => Some(format!("Restore {}: they run outside of the workspace.", list(files))),
            Self::JudgeRefuted { .. } => Some("Correct what the reviewer found.".to_owned()),
            Self::BelowMinimum { .. } => Some("Bring a test that fails without your change and passes with it.".to_owned()),
            Self::OutOfScope { files } => Some(format!("Undo the changes to {}.", list(files))),
            Self::ConditionMissing { todo, .. } => Some(format!("{}.", todo.trim_end_matches('.'))),
            Self::NothingChanged => Some("Do the work that the story asks for.".to_owned()),
            Self::CheckFailed { .. } | Self::CheckUnknown { .. } => Some("Make the check pass.".to_owned()),
            Self::CheckNotRun { .. }
            | Self::Interrupted
            | Self::PristineNotRun { .. }
            | Self::JudgeUnknown { .. }
            | Self::ConditionUnknown { .. } => None,
            Self::OwnCheckRedThenGreen { .. }
            | Self::TestsRedThenGreen { .. }
            | Self::NoOwnCheck
            | Self::OwnCheckGreenBefore { .. }
            | Self::OwnCheckUnknownBefore { .. }
            | Self::OwnCheckMissingBefore { .. }
            | Self::OwnCheckNotRunBefore { .. }
            | Self::NoTests
            | Self::TestsPassWithoutWork { .. }
            | Self::TestsUnclear { .. }
            | Self::TestsNotRun { .. }
            | Self::ProofTreeFailed { .. }
            | Self::ScopeNamesProtected { .. }
            | Self::CountsLowered { .. }
            | Self::PristineSkipped { .. }
            | Self::ProofLimited { .. }
            | Self::Flaky { .. }
            | Self::NoCheck => None,
        }
    }

    /// The check that it is about, by name.
    pub fn check(&self) -> Option<&str> {
        match self {
            Self::CheckFailed { check, .. }
            | Self::CheckUnknown { check, .. }
            | Self::CheckNotRun { check }
            | Self::PristineFailed { check, .. }
            | Self::PristineNotRun { check }
            | Self::CountsFell { check, .. }
            | Self::OwnCheckRedThenGreen { check }
            | Self::TestsRedThenGreen { check, .. }
            | Self::OwnCheckGreenBefore { check }
            | Self::OwnCheckUnknownBefore { check, .. }
            | Self::OwnCheckMissingBefore { check, .. }
            | Self::OwnCheckNotRunBefore { check }
            | Self::TestsUnclear { check, .. }
            | Self::CountsLowered { check, .. }
            | Self::Flaky { check } => Some(check),
            Self::Interrupted
            | Self::NothingChanged
            | Self::OutOfScope { .. }
            | Self::ConditionMissing { .. }
            | Self::PristineTreeFailed { .. }
            | Self::AutorunChanged { .. }
            | Self::JudgeRefuted { .. }
            | Self::JudgeUnknown { .. }
            | Self::ConditionUnknown { .. }
            | Self::BelowMinimum { .. }
            | Self::NoOwnCheck
            | Self::NoTests
            | Self::TestsPassWithoutWork { .. }
            | Self::TestsNotRun { .. }
            | Self::ProofTreeFailed { .. }
            | Self::ScopeNamesProtected { .. }
            | Self::PristineSkipped { .. }
            | Self::ProofLimited { .. }
            | Self::NoCheck => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckFailed { check, said } => write!(f, "`{check}` {said}"),
            Self::CheckUnknown { check, said } => write!(f, "`{check}` gave no answer: {said}"),
            Self::CheckNotRun { check } => write!(f, "`{check}` was not run"),
            Self::Interrupted => f.write_str("the verification was interrupted"),
            Self::NothingChanged => f.write_str("no file was changed"),
            Self::OutOfScope { files } => write!(f, "changed outside of the story's scope: {}", list(files)),
            Self::ConditionMissing { name, why, .. } => write!(f, "the condition {name} is not met: {why}"),
            Self::PristineFailed { check, said, files } => {
                write!(f, "`{check}` passes only with the changed {}: with the files from before the work it {said}", list(files))
            }
            Self::PristineNotRun { check } => write!(f, "`{check}` was not run with the tests and configuration from before the work"),
            Self::PristineTreeFailed { why } => {
                write!(f, "the work could not be combined with the tests and configuration from before it: {why}")
            }
            Self::CountsFell { check, tree: Tree::Pristine, change } => {
                write!(f, "`{check}` with the files from before the work: {change}")
            }
            Self::CountsFell { check, change, .. } => write!(f, "`{check}`: {change}"),
            Self::AutorunChanged { files } => {
                write!(f, "files that run outside of the workspace were changed, and the story's scope does not name them: {}", list(files))
            }
            Self::JudgeRefuted { findings } if findings.is_empty() => f.write_str("a second agent refuted the work"),
            Self::JudgeRefuted { findings } => write!(f, "a second agent refuted the work: {}", findings.join("; ")),
            Self::JudgeUnknown { why } => write!(f, "the second agent gave no clear answer: {why}"),
            Self::ConditionUnknown { name, why } => write!(f, "the condition {name} could not be determined: {why}"),
            Self::BelowMinimum { proof, minimum } => write!(f, "the story is {proof}, but at least {minimum} is required"),
            Self::OwnCheckRedThenGreen { check } => write!(f, "`{check}` failed before the work and passes now"),
            Self::TestsRedThenGreen { check, files } if files.is_empty() => {
                write!(f, "`{check}` fails without the work and passes with it")
            }
            Self::TestsRedThenGreen { check, files } => {
                write!(f, "with the attempt's {} `{check}` fails without the work and passes with it", list(files))
            }
            Self::NoOwnCheck => f.write_str("the story has no check of its own"),
            Self::OwnCheckGreenBefore { check } => write!(f, "`{check}` passed before the work already, so it proves nothing"),
            Self::OwnCheckUnknownBefore { check, why } => write!(f, "`{check}` gave no answer before the work: {why}"),
            Self::OwnCheckMissingBefore { check, file } => write!(f, "`{check}` needs {file}, which the attempt added"),
            Self::OwnCheckNotRunBefore { check } => write!(f, "`{check}` was not run before the work"),
            Self::NoTests => f.write_str("the attempt added or changed no test"),
            Self::TestsPassWithoutWork { files } => {
                write!(f, "the attempt's tests pass without its work, so they prove nothing: {}", list(files))
            }
            Self::TestsUnclear { check, said } => {
                write!(f, "without the work `{check}` {said}, but no test of the attempt is known to fail there and pass with it")
            }
            Self::TestsNotRun { files } => write!(f, "no check is known to run the attempt's tests: {}", list(files)),
            Self::ProofTreeFailed { why } => write!(f, "the attempt's tests could not be tried without its work: {why}"),
            Self::ScopeNamesProtected { files } => {
                write!(f, "the work may change {}, so it is agent-tested at best", list(files))
            }
            Self::CountsLowered { check, change } => {
                write!(f, "`{check}`: {change}; the story's scope names test files, so this is allowed")
            }
            Self::PristineSkipped { files } => {
                write!(f, "it was not tried without the changes to {}, which a person accepted", list(files))
            }
            Self::ProofLimited { at_most } => write!(f, "it was {at_most} when it went to review"),
            Self::Flaky { check } => write!(f, "`{check}` failed and passed on the same files"),
            Self::NoCheck => f.write_str("no check ran, so nothing was proven"),
        }
    }
}
