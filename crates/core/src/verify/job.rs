//! What to judge, as data: one job for every surface.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_plan::scope::ScopeMatcher;

use super::counts::{CheckState, TestNames};
use super::observed::CheckResult;
use crate::base::id::{Oid, StoryId, digest};
use crate::base::proof::Proof;
use crate::check::{Check, CheckOrigin, CheckOutcome, CommandSpec, TestCount, ZeroTests};

/// Everything that the engine has to know before anything runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyJob {
    pub surface: Surface,
    /// Absent if a range of commits is judged without a plan.
    pub story: Option<JobStory>,
    /// The gates in the order of the config, including hidden ones. `when` is evaluated here.
    pub gates: Vec<JobGate>,
    /// The tree that the attempt started from, if there is one.
    pub base: Option<Oid>,
    /// The tree to judge, and to commit if it passes.
    pub attempt: Oid,
    /// Files that differ from the base, without those that Verdone itself writes (plan marks). Absent if unknown.
    pub changed: Option<Vec<String>>,
    /// Why this tree cannot be committed, whatever the checks say: a changed submodule, a file that is too large.
    #[serde(default)]
    pub obstacle: Option<String>,
    /// Changed protected files.
    pub protected: Vec<ProtectedChange>,
    /// Changed files that later run outside the workspace.
    pub autorun: Vec<AutorunChange>,
    /// Changed files that are named in checks of other open stories.
    #[serde(default)]
    pub others: Vec<OtherCheck>,
    /// `[done] minimum`: work with a weaker proof is not done. `--unchecked` sets it to the weakest.
    pub minimum: Proof,
    /// An upper bound for the proof. `accept` passes the proof with which the attempt went to review.
    pub at_most: Option<Proof>,
    /// Whether changes outside the story's scope fail it.
    pub enforce_scope: bool,
    /// Whether a story without changes can be done.
    pub allow_unchanged: bool,
    /// Whether to skip later stages once a check of a stage fails.
    pub stop_at_failing_stage: bool,
    pub feedback: FeedbackTurn,
    /// Whether a second agent has to be asked to refute the work.
    pub judge: bool,
    /// Names of conditions that have to be met.
    pub conditions: Vec<String>,
}

/// Who requests the verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    Run,
    Loop,
    Verify,
    VerifyBase,
    AuditRerun,
    Accept,
}

impl Surface {
    pub const ALL: [Self; 6] = [Self::Run, Self::Loop, Self::Verify, Self::VerifyBase, Self::AuditRerun, Self::Accept];

    /// Whether there is an agent that can get feedback.
    pub fn has_agent(self) -> bool {
        match self {
            Self::Run | Self::Loop => true,
            Self::Verify | Self::VerifyBase | Self::AuditRerun | Self::Accept => false,
        }
    }

    /// Whether a person has already reviewed the work. Then only its checks count: no pristine tree, no comparison of counts, no
    /// minimum, no scope, no judge.
    pub fn is_reviewed(self) -> bool {
        match self {
            Self::Accept => true,
            Self::Run | Self::Loop | Self::Verify | Self::VerifyBase | Self::AuditRerun => false,
        }
    }
}

/// The parts of a story that matter for its proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobStory {
    pub id: StoryId,
    /// Its own checks, in order.
    pub checks: Vec<Check>,
    /// The texts of its criteria.
    pub criteria: Vec<String>,
    /// Paths that belong to the story. Empty if it names none.
    pub scope: Vec<String>,
    /// The story's `Proof: …`, instead of `[done] minimum`.
    pub minimum: Option<Proof>,
    /// From 1 to 10, for gates that depend on the complexity.
    pub complexity: u32,
}

/// A gate, and its result on the base if that is already known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobGate {
    pub check: Check,
    /// Its files are outside the repository. The agent learns only its name and whether it passed.
    #[serde(default)]
    pub hidden: bool,
    #[serde(default)]
    pub baseline: Option<Baseline>,
}

impl From<Check> for JobGate {
    fn from(check: Check) -> Self {
        Self { hidden: check.terms.hidden.is_some(), check, baseline: None }
    }
}

/// A gate's result on the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    pub state: CheckState,
    /// Absent if its output counts no tests.
    pub tests: Option<TestCount>,
    #[serde(default)]
    pub names: Option<TestNames>,
}

impl From<&CheckResult> for Baseline {
    fn from(result: &CheckResult) -> Self {
        // A check that could not start, or found no tests, ran none.
        let none = matches!(result.run.outcome, CheckOutcome::Unknown { .. }).then(TestCount::default);
        Self { state: CheckState::from_run(&result.run), tests: result.run.tests.or(none), names: result.names.clone() }
    }
}

/// The trees on which checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tree {
    /// The tree that the attempt started from.
    Base,
    /// The files that the attempt produced.
    Attempt,
    /// The base with only the attempt's work files, and the protected files that its scope names.
    Pristine,
    /// The base with only the attempt's protected files: its tests without its work.
    Proof,
}

impl Tree {
    pub const ALL: [Self; 4] = [Self::Base, Self::Attempt, Self::Pristine, Self::Proof];

    /// The name in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Attempt => "attempt",
            Self::Pristine => "pristine",
            Self::Proof => "proof",
        }
    }
}

/// A protected file that the attempt changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtectedChange {
    pub path: String,
    pub kind: ProtectedKind,
    pub change: ChangeKind,
    /// Whether the story's scope or `[protect] release` names it.
    pub released: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectedKind {
    Test,
    /// Tests in a file that is otherwise work.
    InlineTest,
    /// Configuration of tests, linters and builds.
    Config,
    Ci,
    CheckScript,
}

impl ProtectedKind {
    pub fn is_test(self) -> bool {
        matches!(self, Self::Test | Self::InlineTest)
    }
}

/// A rename is a deletion and an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A changed file that later runs outside the workspace: `.envrc`, `.vscode/`, git hooks, CI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AutorunChange {
    pub path: String,
    /// Whether the story's scope names it.
    pub released: bool,
}

/// A changed file that judges another story, which is not done yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherCheck {
    pub path: String,
    pub story: StoryId,
}

/// The single turn of feedback before a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackTurn {
    /// Not used yet, and the attempt has a turn for it.
    Left,
    Given,
    /// The attempt has no turns left.
    NoneLeft,
}

/// A check with the digest under which its results are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCheck {
    pub check: Check,
    pub hidden: bool,
    pub digest: String,
}

impl PlannedCheck {
    pub fn new(check: &Check, hidden: bool) -> Self {
        Self { digest: command_digest(check, hidden), check: check.clone(), hidden }
    }

    pub fn is_required(&self) -> bool {
        !self.check.terms.advisory
    }

    pub fn is_own(&self) -> bool {
        self.check.origin == CheckOrigin::Story
    }
}

/// A digest of what a result depends on besides the tree. Excludes name, stage, retries and time limit.
fn command_digest(check: &Check, hidden: bool) -> String {
    #[derive(Serialize)]
    struct CommandKey<'a> {
        command: &'a CommandSpec,
        hidden: bool,
        folder: Option<&'a Path>,
        env: &'a BTreeMap<String, String>,
        inputs: &'a [String],
        zero_tests: Option<ZeroTests>,
        junit: Option<&'a str>,
    }
    let terms = &check.terms;
    let asked = CommandKey {
        command: &check.command,
        hidden,
        folder: terms.hidden.as_deref(),
        env: &terms.env,
        inputs: &terms.inputs,
        zero_tests: terms.zero_tests,
        junit: terms.junit.as_deref(),
    };
    digest(&serde_json::to_vec(&asked).expect("a command is always valid JSON"))
}

impl JobStory {
    /// A story of which only the checks are known.
    pub fn of_checks(id: StoryId, checks: Vec<Check>) -> Self {
        let complexity = u32::from(crate::done::UNKNOWN_COMPLEXITY);
        Self { id, checks, criteria: Vec::new(), scope: Vec::new(), minimum: None, complexity }
    }
}

impl VerifyJob {
    /// Gates on one tree, without a base for comparison.
    pub fn of_gates(surface: Surface, gates: Vec<Check>, attempt: Oid) -> Self {
        Self {
            surface,
            story: None,
            gates: gates.into_iter().map(JobGate::from).collect(),
            base: None,
            attempt,
            changed: None,
            obstacle: None,
            protected: Vec::new(),
            autorun: Vec::new(),
            others: Vec::new(),
            minimum: Proof::Untested,
            at_most: None,
            enforce_scope: false,
            allow_unchanged: true,
            stop_at_failing_stage: false,
            feedback: FeedbackTurn::NoneLeft,
            judge: false,
            conditions: Vec::new(),
        }
    }

    /// The checks that have to run, the story's own first.
    pub fn checks(&self) -> Vec<PlannedCheck> {
        let own = self.story.iter().flat_map(|story| &story.checks).map(|check| PlannedCheck::new(check, false));
        own.chain(self.due_gates().map(|gate| PlannedCheck::new(&gate.check, gate.hidden))).collect()
    }

    pub(super) fn due_gates(&self) -> impl Iterator<Item = &JobGate> {
        let complexity = self.story.as_ref().map_or(u32::from(crate::done::UNKNOWN_COMPLEXITY), |story| story.complexity);
        self.gates.iter().filter(move |gate| gate.check.terms.when.matches(self.changed.as_deref(), complexity))
    }

    /// The weakest proof that counts as done.
    pub fn required_proof(&self) -> Proof {
        self.story.as_ref().and_then(|story| story.minimum).unwrap_or(self.minimum)
    }

    pub(super) fn requires(&self, condition: &str) -> bool {
        self.conditions.iter().any(|name| name == condition)
    }

    pub(super) fn can_give_feedback(&self) -> bool {
        self.surface.has_agent() && self.feedback == FeedbackTurn::Left
    }

    /// Changed protected files that are not released.
    pub(super) fn unreleased(&self) -> Vec<String> {
        self.protected_files(|change| !change.released)
    }

    pub(super) fn released(&self) -> Vec<String> {
        self.protected_files(|change| change.released)
    }

    /// Test files that the attempt added or changed.
    pub(super) fn brought_tests(&self) -> Vec<String> {
        self.protected_files(|change| change.kind.is_test() && change.change != ChangeKind::Deleted)
    }

    fn protected_files(&self, wanted: impl Fn(&ProtectedChange) -> bool) -> Vec<String> {
        self.protected.iter().filter(|change| wanted(change)).map(|change| change.path.clone()).collect()
    }

    /// Whether counts may fall: the attempt's changed test files include released ones, and it changed or deleted no others.
    pub(super) fn may_lower_counts(&self) -> bool {
        let is_changed_test = |change: &&ProtectedChange| change.kind.is_test() && change.change != ChangeKind::Added;
        let mut tests = self.protected.iter().filter(|change| change.kind.is_test());
        tests.any(|change| change.released) && self.protected.iter().filter(is_changed_test).all(|change| change.released)
    }

    pub(super) fn nothing_changed(&self) -> bool {
        let nothing = self.changed.as_ref().is_some_and(Vec::is_empty);
        nothing && !self.allow_unchanged && self.surface.has_agent()
    }

    /// Changed files outside an enforced scope. An unreadable scope covers nothing.
    pub(super) fn out_of_scope(&self) -> Vec<String> {
        let Some(story) = self.story.as_ref().filter(|story| self.enforce_scope && !story.scope.is_empty()) else {
            return Vec::new();
        };
        let covered = ScopeMatcher::new(&story.scope, false).ok();
        let is_outside = |path: &&String| !covered.as_ref().is_some_and(|covered| covered.has(path));
        self.changed.iter().flatten().filter(is_outside).cloned().collect()
    }
}
