//! What was seen, as data. Whoever collects it says *unknown* where it could not look.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DoneSettings, stated_complexity};

/// Everything that the conditions are judged by. The default knows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub memory: Memory,
    pub plan: PlanFact,
    pub git: GitFact,
    /// By the name of the stage; a stage that is not here has no gate.
    pub gates: BTreeMap<String, GateFact>,
    /// The story's own checks.
    pub own_checks: GateFact,
    pub claims: Vec<Claim>,
    pub lessons: Lessons,
    pub ci: CiFact,
    pub judge: JudgeFact,
    /// Why a person has to look at work that passes, a sentence each.
    pub doubts: Vec<String>,
    /// Tasks of the session that are not finished, by their subjects.
    pub tasks: Vec<String>,
    /// What other tools wrote about the session.
    pub state_files: Vec<StateFile>,
}

/// Whether lessons and past evidence were looked at in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    Unknown {
        why: String,
    },
    /// There are neither lessons nor runs.
    NothingThere,
    NotQueried,
    Queried {
        by: String,
    },
}

impl Default for Memory {
    fn default() -> Self {
        Self::Unknown { why: "nobody looked".to_owned() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PlanFact {
    #[default]
    Absent,
    Unreadable {
        why: String,
    },
    Found {
        name: String,
        approval: Approval,
        /// That of the story in work, 1 to 10.
        complexity: Option<u8>,
        /// Open questions of that story and of the plan itself.
        questions: Vec<String>,
    },
}

impl PlanFact {
    /// The story is at least as complex as it was when its loop began, whatever was written into the plan since.
    pub fn at_least(&mut self, settings: &DoneSettings, began: Option<u8>) {
        let Self::Found { complexity, .. } = self else { return };
        let least = stated_complexity(settings, began).value;
        if stated_complexity(settings, *complexity).value < least {
            *complexity = Some(least);
        }
    }
}

/// What the user said about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    Approved,
    /// Another content was accepted.
    Changed,
    /// An agent wrote it.
    WrittenBy(String),
    /// Nobody was asked.
    NeverAsked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitFact {
    Unknown {
        why: String,
    },
    Seen {
        /// Files of the task that differ from where it began.
        changed: u32,
        /// Changed files outside of the story's scope, where it names one.
        outside: Vec<String>,
        /// Changes that are in no commit.
        uncommitted: Vec<String>,
    },
}

impl GitFact {
    /// Changes that are in no commit, as far as anybody knows.
    pub fn uncommitted(&self) -> &[String] {
        match self {
            Self::Seen { uncommitted, .. } => uncommitted,
            Self::Unknown { .. } => &[],
        }
    }
}

impl Default for GitFact {
    fn default() -> Self {
        Self::Unknown { why: "git was not asked".to_owned() }
    }
}

/// What the checks of a stage said about the tree as it is, from best to worst.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateFact {
    #[default]
    NotConfigured,
    /// There are some, and none of them had to run for this change.
    NotDue,
    Green {
        checks: Vec<String>,
    },
    Unknown {
        why: String,
    },
    Red {
        /// Each with how it ended.
        failed: Vec<String>,
    },
}

/// What an agent said through `verdone claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When, as text; for people.
    pub at: String,
    /// The condition.
    pub name: String,
    pub note: String,
    /// With `task_classified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
}

/// Whether the project learned something in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lessons {
    Unknown { why: String },
    Same,
    New,
}

impl Lessons {
    /// How many lines of a list of lessons say something, and a digest of it: enough to know later whether it grew.
    pub fn stamp(text: &str) -> (u32, String) {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        (u32::try_from(lines).unwrap_or(u32::MAX), crate::base::id::digest(text.trim().as_bytes()))
    }

    /// What became of it since.
    pub fn since(before: Option<&(u32, String)>, now: &(u32, String)) -> Self {
        match before {
            None => Self::Unknown { why: "no hook saw the session begin, so nobody knows the lessons of that time".to_owned() },
            Some((lines, digest)) if now.0 > *lines && now.1 != *digest => Self::New,
            Some(_) => Self::Same,
        }
    }
}

impl Default for Lessons {
    fn default() -> Self {
        Self::Unknown { why: "nobody looked".to_owned() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiFact {
    /// CI was not asked.
    #[default]
    Off,
    Green {
        commit: String,
    },
    Unknown {
        why: String,
    },
    Red {
        commit: String,
        said: String,
    },
}

/// What a second agent said that was asked to refute the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeFact {
    /// Nobody was asked.
    #[default]
    Off,
    /// It found nothing against it.
    Holds,
    /// No clear answer, which proves nothing.
    Unknown {
        why: String,
    },
    Refuted {
        findings: Vec<String>,
    },
}

/// A file of another tool that keeps the gate closed. One that says that all is well is not worth a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateFile {
    Closed { file: String, why: String },
    Unreadable { file: String, why: String },
}
