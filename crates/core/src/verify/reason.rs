//! The reasons for a story's proof and outcome, one sentence each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{CountFall, list};
use super::facts::OwnCheckBefore;
use super::job::Tree;
use crate::base::id::StoryId;
use crate::base::proof::Proof;

/// The kind determines the outcome: a failure fails, a doubt needs a review, a note only explains the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reason {
    Failure(Failure),
    Doubt(Doubt),
    Note(Note),
}

/// The attempt does not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Failure {
    CheckFailed { check: String, said: String },
    CheckUnknown { check: String, said: String },
    CheckNotRun { check: String },
    Interrupted,
    NothingChanged,
    CannotCommit { why: String },
    OutOfScope { files: Vec<String> },
    ConditionMissing { name: String, why: String, todo: String },
}

/// The attempt passes, but a person has to review it; after one turn of feedback, if the agent can do something about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Doubt {
    /// Green on the attempt, but not with the protected files from before the work.
    PristineFailed {
        check: String,
        said: String,
        files: Vec<String>,
    },
    PristineNotBuilt {
        why: String,
    },
    CountsFell {
        check: String,
        tree: Tree,
        change: CountFall,
    },
    /// This story may not change the files that judge a later story.
    OtherCheckChanged {
        files: Vec<String>,
        stories: Vec<StoryId>,
    },
    AutorunChanged {
        files: Vec<String>,
    },
    BelowMinimum {
        proof: Proof,
        minimum: Proof,
    },
    ConditionUnknown {
        name: String,
        why: String,
    },
    JudgeRefuted {
        findings: Vec<String>,
    },
    JudgeUnknown {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Note {
    OwnCheck { check: String, before: OwnCheckBefore },
    NoOwnCheck,
    NoCheck,
    TestsProveWork { check: String, files: Vec<String> },
    NoTests,
    TestsPassWithoutWork { files: Vec<String> },
    TestsUnclear { check: String, said: String },
    TestsNotRun { files: Vec<String> },
    ProofTreeNotBuilt { why: String },
    ScopeNamesProtected { files: Vec<String> },
    CountsLowered { check: String, change: CountFall },
    PristineSkipped { files: Vec<String> },
    ProofLimited { at_most: Proof },
    RedWithOldTests { check: String },
    Flaky { check: String },
}

impl Reason {
    /// What the agent can do about it; `None` if it can do nothing.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Failure(failure) => failure.advice(),
            Self::Doubt(doubt) => doubt.advice(),
            Self::Note(_) => None,
        }
    }

    /// The sentence as an agent may see it: for a hidden check, only its name and that it did not pass.
    pub fn for_agent(&self, is_hidden: impl Fn(&str) -> bool) -> String {
        match self.failing_check().filter(|name| is_hidden(name)) {
            Some(name) => format!("the hidden check `{name}` did not pass"),
            None => self.to_string(),
        }
    }

    /// The name of the failing check, if there is one.
    pub fn failing_check(&self) -> Option<&str> {
        match self {
            Self::Failure(failure) => failure.check(),
            Self::Doubt(doubt) => doubt.check(),
            Self::Note(_) => None,
        }
    }
}

impl Failure {
    fn check(&self) -> Option<&str> {
        match self {
            Self::CheckFailed { check, .. } | Self::CheckUnknown { check, .. } | Self::CheckNotRun { check } => Some(check),
            Self::Interrupted
            | Self::NothingChanged
            | Self::CannotCommit { .. }
            | Self::OutOfScope { .. }
            | Self::ConditionMissing { .. } => None,
        }
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::CheckFailed { .. } | Self::CheckUnknown { .. } => Some("Make the check pass.".to_owned()),
            Self::CheckNotRun { .. } | Self::Interrupted => None,
            Self::NothingChanged => Some("Do the work that the story asks for.".to_owned()),
            Self::CannotCommit { .. } => Some("Undo the blocking change.".to_owned()),
            Self::OutOfScope { files } => Some(format!("Undo the changes to {}.", list(files))),
            Self::ConditionMissing { todo, .. } => Some(format!("{}.", todo.trim_end_matches('.'))),
        }
    }
}

impl Doubt {
    fn check(&self) -> Option<&str> {
        match self {
            Self::PristineFailed { check, .. } | Self::CountsFell { check, .. } => Some(check),
            Self::PristineNotBuilt { .. }
            | Self::OtherCheckChanged { .. }
            | Self::AutorunChanged { .. }
            | Self::BelowMinimum { .. }
            | Self::ConditionUnknown { .. }
            | Self::JudgeRefuted { .. }
            | Self::JudgeUnknown { .. } => None,
        }
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::PristineFailed { files, .. } => {
                Some(format!("Restore {}, or change the code so that the check passes with the old files.", list(files)))
            }
            Self::PristineNotBuilt { .. } => Some("Restore the changed tests and configuration.".to_owned()),
            Self::CountsFell { .. } => {
                Some("Restore the tests that no longer pass, or change the code so that they do.".to_owned())
            }
            Self::OtherCheckChanged { files, .. } | Self::AutorunChanged { files } => {
                Some(format!("Undo the changes to {}.", list(files)))
            }
            // The agent's tests can never reach that proof.
            Self::BelowMinimum { minimum: Proof::Verified, .. } => {
                Some("Do not add tests for this: only the user can add such a check. Say so in your answer.".to_owned())
            }
            Self::BelowMinimum { .. } => Some("Add a test that fails without your change.".to_owned()),
            Self::JudgeRefuted { .. } => Some("Fix what the judge found.".to_owned()),
            Self::ConditionUnknown { .. } | Self::JudgeUnknown { .. } => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Doubt(doubt) => doubt.fmt(f),
            Self::Note(note) => note.fmt(f),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckFailed { check, said } => write!(f, "`{check}` {said}"),
            Self::CheckUnknown { check, said } => write!(f, "`{check}` gave no answer: {said}"),
            Self::CheckNotRun { check } => write!(f, "`{check}` was not run"),
            Self::Interrupted => f.write_str("the verification was interrupted"),
            Self::NothingChanged => f.write_str("no file was changed"),
            Self::CannotCommit { why } => f.write_str(why),
            Self::OutOfScope { files } => write!(f, "files outside the story's scope were changed: {}", list(files)),
            Self::ConditionMissing { name, why, .. } => write!(f, "the condition {name} is not met: {why}"),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PristineFailed { check, said, files } => {
                write!(f, "`{check}` passes only with the changed {}: with the files from before the work it {said}", list(files))
            }
            Self::PristineNotBuilt { why } => {
                write!(f, "the work could not be combined with the tests and configuration from before it: {why}")
            }
            Self::CountsFell { check, tree: Tree::Pristine, change } => {
                write!(f, "`{check}`, run with the files from before the work: {change}")
            }
            Self::CountsFell { check, tree: Tree::Base | Tree::Attempt | Tree::Proof, change } => {
                write!(f, "`{check}`: {change}")
            }
            Self::OtherCheckChanged { files, stories } => {
                let stories: Vec<String> = stories.iter().map(ToString::to_string).collect();
                write!(f, "the checks of {} use {}, which this story's scope does not name", list(&stories), list(files))
            }
            Self::AutorunChanged { files } => {
                write!(f, "the story's scope does not name {}, which will run outside the workspace", list(files))
            }
            Self::BelowMinimum { proof, minimum: Proof::Verified } => write!(
                f,
                "the story is {proof}, but at least verified is required: that takes a `Verification:` command in the plan that \
                 fails before the work and uses no test of the agent"
            ),
            Self::BelowMinimum { proof, minimum } => write!(f, "the story is {proof}, but at least {minimum} is required"),
            Self::ConditionUnknown { name, why } => write!(f, "the condition {name} could not be determined: {why}"),
            Self::JudgeRefuted { findings } if findings.is_empty() => f.write_str("the judge refuted the work"),
            Self::JudgeRefuted { findings } => write!(f, "the judge refuted the work: {}", findings.join("; ")),
            Self::JudgeUnknown { why } => write!(f, "the judge gave no clear answer: {why}"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnCheck { check, before } => write!(f, "`{check}` {before}"),
            Self::NoOwnCheck => f.write_str("the story names no check"),
            Self::NoCheck => f.write_str("no check ran, so nothing was proven"),
            Self::TestsProveWork { check, files } if files.is_empty() => {
                write!(f, "`{check}` fails without the work and passes with it")
            }
            Self::TestsProveWork { check, files } => {
                write!(f, "`{check}` with {} fails without the work and passes with it", list(files))
            }
            Self::NoTests => f.write_str("the attempt added or changed no test"),
            Self::TestsPassWithoutWork { files } => {
                write!(f, "the attempt's tests pass without its work, so they prove nothing: {}", list(files))
            }
            Self::TestsUnclear { check, said } => {
                write!(f, "`{check}` {said} without the work, but no test is known to fail without it and pass with it")
            }
            Self::TestsNotRun { files } => write!(f, "no check is known to run the attempt's tests: {}", list(files)),
            Self::ProofTreeNotBuilt { why } => write!(f, "the attempt's tests could not be run without its work: {why}"),
            Self::ScopeNamesProtected { files } => {
                write!(f, "the story may change {}, so it is agent-tested at best", list(files))
            }
            Self::CountsLowered { check, change } => {
                write!(f, "`{check}`: {change}, which the story's scope allows")
            }
            Self::PristineSkipped { files } => write!(f, "a person accepted the changes to {}", list(files)),
            Self::ProofLimited { at_most } => write!(f, "the proof is {at_most} at best"),
            Self::RedWithOldTests { check } => {
                write!(
                    f,
                    "`{check}` needs tests or configuration from earlier stories of this run, so the work is agent-tested at best"
                )
            }
            Self::Flaky { check } => write!(f, "`{check}` failed and passed on the same files"),
        }
    }
}
