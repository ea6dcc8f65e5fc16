//! `[done]` of the config: which conditions count, and how to ask CI and the judge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_plan::complexity::MOST_COMPLEX;

use super::{ADVERSARIAL_FROM, Condition, Prover};
use crate::agent::PromptVia;
use crate::base::money::Usd;
use crate::base::proof::Proof;
use crate::base::span::Span;
use crate::check::CommandSpec;

/// What has to be true before work counts as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DoneSettings {
    /// The weakest proof that counts as done: `untested`, `agent-tested` or `verified`. `Proof:` in a story overrides it.
    pub minimum: Proof,
    /// Which conditions count.
    pub profile: Profile,
    /// The names of the conditions that count, instead of those of the profile. Empty means those of the profile and your own.
    pub require: Vec<String>,
    /// How complex tasks are, from 1 to 10, if the plan does not say. An agent may raise it, never lower it. Unknown counts as 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u32>,
    /// Whether to read and write the state files of other loops under `~/.ralph/state/`.
    pub ralph_state: RalphState,
    /// Your own conditions.
    pub condition: Vec<OwnCondition>,
    pub judge: JudgeSettings,
    pub ci: CiSettings,
}

impl Default for DoneSettings {
    fn default() -> Self {
        Self {
            minimum: Proof::Untested,
            profile: Profile::default(),
            require: Vec::new(),
            complexity: None,
            ralph_state: RalphState::default(),
            condition: Vec::new(),
            judge: JudgeSettings::default(),
            ci: CiSettings::default(),
        }
    }
}

/// A predefined list of conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A change and green gates. Uncommitted changes are reported, but do not block.
    #[default]
    Loop,
    /// All nine conditions. Uncommitted changes block.
    Orchestrator,
}

/// What to do with the state files of other loops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RalphState {
    /// Read if they exist; written if the folder `~/.ralph/state` exists.
    #[default]
    Auto,
    /// Read and written.
    Always,
    /// Neither read nor written.
    Never,
}

/// One `[[done.condition]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnCondition {
    /// The name, as used in `require` and `verdone claim`. It must be unique.
    pub name: String,
    /// Who proves it: "gate:STAGE", "git", "plan", "claim", "ci" or "judge".
    pub prover: String,
    /// Count it only for tasks of at least this complexity; 0 means for all tasks.
    #[serde(default)]
    pub min_complexity: u32,
    /// The instruction for the agent if the condition is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

/// A second agent that tries to refute the work. Off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSettings {
    /// Whether to ask a judge.
    pub enabled: bool,
    /// Which agent to ask.
    pub agent: JudgeAgent,
    /// The command to start; by default, the command of the agent "command". A string for `sh -c`, or a list of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How the command receives the prompt.
    pub prompt: PromptVia,
    /// The model for Claude Code as the judge. The default is the model of `[agent.claude]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The maximum cost of one answer from Claude Code, in US dollars; 0 means whatever is left of `limits.cost_usd`.
    pub cost_usd: Usd,
    /// How long it may take.
    pub timeout: Span,
    /// Ask it only for tasks of at least this complexity.
    pub min_complexity: u32,
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            agent: JudgeAgent::default(),
            command: None,
            prompt: PromptVia::default(),
            model: None,
            cost_usd: Usd::whole(2),
            timeout: Span::from_secs(10 * 60),
            min_complexity: ADVERSARIAL_FROM.into(),
        }
    }
}

/// Which agent to ask for a refutation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JudgeAgent {
    /// The command if there is one, else the agent of your runs.
    #[default]
    Auto,
    /// A command. It is told to read only, and its working tree is compared afterwards.
    Command,
    /// Claude Code in a separate session. Tool calls that do more than read are denied.
    Claude,
}

/// A command that reports CI's result for the commit in `VERDONE_COMMIT`: 0 green, 75 not known yet, anything else red. Off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CiSettings {
    /// The command, run with your permissions in the project's folder: a string for `sh -c`, or a list of arguments. If it takes longer
    /// than a minute, it is started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How long to keep asking.
    pub timeout: Span,
    /// The time between two attempts.
    pub interval: Span,
}

impl Default for CiSettings {
    fn default() -> Self {
        Self { command: None, timeout: Span::from_secs(30 * 60), interval: Span::from_secs(30) }
    }
}

impl OwnCondition {
    /// The config was validated before, so the fallback is never used for a valid config.
    pub fn prover(&self) -> Prover {
        Prover::read(&self.prover).unwrap_or(Prover::Claim)
    }
}

impl DoneSettings {
    /// Whether a condition counts because `require` names it, or because the profile requires all conditions.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        match self.profile {
            _ if !self.require.is_empty() => self.require.iter().any(|required| required == name),
            Profile::Orchestrator => true,
            Profile::Loop => self.condition.iter().any(|own| own.name == name),
        }
    }

    /// Whether a condition counts at all.
    pub fn requires(&self, name: &str) -> bool {
        const LOOP: [Condition; 3] = [Condition::ImplementationComplete, Condition::CorrectnessPassed, Condition::QualityPassed];
        let by_loop = self.require.is_empty() && LOOP.iter().any(|condition| condition.name() == name);
        self.asks_for(name) || by_loop
    }

    /// Whether the settings require more than the verification of a run covers anyway.
    pub fn asks_more_than_a_run(&self) -> bool {
        self.profile == Profile::Orchestrator || !self.require.is_empty() || !self.condition.is_empty()
    }

    /// The names of all conditions.
    pub fn names(&self) -> Vec<&str> {
        Condition::ALL
            .iter()
            .map(|condition| condition.name())
            .chain(self.condition.iter().map(|own| own.name.as_str()))
            .collect()
    }

    /// Whether the agent can claim it; `None` if there is no such condition.
    pub fn can_be_claimed(&self, name: &str) -> Option<bool> {
        let own = || self.condition.iter().find(|own| own.name == name).map(|own| own.prover() == Prover::Claim);
        Condition::from_name(name).map(Condition::can_be_claimed).or_else(own)
    }

    /// Who proves it; `None` if there is no such condition.
    pub fn prover_of(&self, name: &str) -> Option<Prover> {
        let own = || self.condition.iter().find(|own| own.name == name).map(OwnCondition::prover);
        Condition::from_name(name).map(Condition::prover).or_else(own)
    }

    /// Whether the judge has to be asked for a task of this complexity.
    pub fn wants_judge(&self, complexity: u8) -> bool {
        let asked = |own: &OwnCondition| own.prover() == Prover::Judge && self.requires(&own.name);
        let adversarial = self.requires(Condition::AdversarialPassed.name()) && complexity >= ADVERSARIAL_FROM;
        let wanted = adversarial || self.condition.iter().any(asked);
        self.judge.enabled && wanted && u32::from(complexity) >= self.judge.min_complexity
    }

    /// The lowest complexity for which the judge is asked; `None` if it never is.
    pub fn judges_from(&self) -> Option<u8> {
        (1..=MOST_COMPLEX).find(|complexity| self.wants_judge(*complexity))
    }

    pub fn wants_ci(&self) -> bool {
        self.ci.command.is_some() && self.condition.iter().any(|own| own.prover() == Prover::Ci && self.requires(&own.name))
    }
}
