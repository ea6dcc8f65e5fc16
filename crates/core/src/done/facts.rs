//! The facts that conditions are judged by, as data. Anything that could not be checked is *unknown*.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DoneSettings, stated_complexity};

/// All facts. The default knows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub memory: LessonsConsulted,
    pub plan: PlanFact,
    pub git: GitFact,
    /// By name of the stage. A stage that is not listed has no gate.
    pub gates: BTreeMap<String, GateFact>,
    /// The story's own checks.
    pub own_checks: GateFact,
    pub claims: Vec<Claim>,
    pub lessons: Lessons,
    pub ci: CiFact,
    pub judge: JudgeFact,
    /// Why a person has to review work that passes, one sentence each.
    pub doubts: Vec<String>,
    /// Subjects of the session's unfinished tasks.
    pub tasks: Vec<String>,
    /// What other tools recorded about the session.
    pub state_files: Vec<StateFile>,
}

/// Whether lessons and past evidence were consulted in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LessonsConsulted {
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

impl Default for LessonsConsulted {
    fn default() -> Self {
        Self::Unknown { why: "the lessons were not checked".to_owned() }
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
        /// Complexity of the current story, 1 to 10.
        complexity: Option<u8>,
        /// Open questions of that story and of the plan itself.
        questions: Vec<String>,
    },
}

impl PlanFact {
    /// Raises the complexity to at least the value it had when the loop began, so that later edits of the plan cannot lower it.
    pub fn at_least(&mut self, settings: &DoneSettings, began: Option<u8>) {
        let Self::Found { complexity, .. } = self else { return };
        let least = stated_complexity(settings, began).value;
        if stated_complexity(settings, *complexity).value < least {
            *complexity = Some(least);
        }
    }
}

/// The user's decision about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    Approved,
    /// The user approved different content.
    Changed,
    /// An agent wrote it.
    WrittenBy(String),
    /// The user was never asked.
    NeverAsked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitFact {
    Unknown {
        why: String,
    },
    Seen {
        /// Number of files that the task changed since it began.
        changed: u32,
        /// Changed files outside the story's scope, if it has one.
        outside: Vec<String>,
        /// Files with uncommitted changes.
        uncommitted: Vec<String>,
    },
}

impl GitFact {
    /// Files with known uncommitted changes.
    pub fn uncommitted(&self) -> &[String] {
        match self {
            Self::Seen { uncommitted, .. } => uncommitted,
            Self::Unknown { .. } => &[],
        }
    }
}

impl Default for GitFact {
    fn default() -> Self {
        Self::Unknown { why: "git was not queried".to_owned() }
    }
}

/// Results of a stage's checks on the current tree, from best to worst.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateFact {
    #[default]
    NotConfigured,
    /// Gates exist, but none of them had to run for this change.
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

/// A claim that an agent made with `verdone claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When it was made, as text for people.
    pub at: String,
    /// The condition.
    pub name: String,
    pub note: String,
    /// Only with `task_classified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
}

/// Whether a lesson was added in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lessons {
    Unknown { why: String },
    Same,
    New,
}

impl Lessons {
    /// The number of non-empty lines in a list of lessons and a digest of it: enough to tell later whether it grew.
    pub fn stamp(text: &str) -> (u32, String) {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        (u32::try_from(lines).unwrap_or(u32::MAX), crate::base::id::digest(text.trim().as_bytes()))
    }

    /// Compares it with an earlier stamp.
    pub fn since(before: Option<&(u32, String)>, now: &(u32, String)) -> Self {
        match before {
            None => Self::Unknown { why: "no hook saw the session start, so the lessons at that time are unknown".to_owned() },
            Some((lines, digest)) if now.0 > *lines && now.1 != *digest => Self::New,
            Some(_) => Self::Same,
        }
    }
}

impl Default for Lessons {
    fn default() -> Self {
        Self::Unknown { why: "the lessons were not checked".to_owned() }
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

/// The answer of a second agent that was asked to refute the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeFact {
    /// No judge was asked.
    #[default]
    Off,
    /// The judge found nothing wrong.
    Holds,
    /// No clear answer, which proves nothing.
    Unknown {
        why: String,
    },
    Refuted {
        findings: Vec<String>,
    },
}

/// A file of another tool that keeps the gate closed. Files that report success are not listed, because they cannot open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateFile {
    Closed { file: String, why: String },
    Unreadable { file: String, why: String },
}
