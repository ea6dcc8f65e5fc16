//! `[done]` of the config: which conditions count, and how the provers that have to be asked are asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ADVERSARIAL_FROM, Condition, MOST_COMPLEX, Prover};
use crate::agent::PromptVia;
use crate::base::money::Usd;
use crate::base::proof::Proof;
use crate::base::span::Span;
use crate::check::CommandSpec;

/// What has to hold before work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DoneSettings {
    /// The weakest proof that counts as done: `untested`, `agent-tested` or `verified`. `Proof:` in a story overrides it.
    pub minimum: Proof,
    /// Which conditions count.
    pub profile: Profile,
    /// The conditions that count, by name, instead of those of the profile. Empty means those of the profile and your own.
    pub require: Vec<String>,
    /// How complex tasks are, 1 to 10, where the plan does not say it. An agent may raise it, never lower it; unknown counts as 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u32>,
    /// Whether the state files of other loops under `~/.ralph/state/` are read and written.
    pub ralph_state: RalphState,
    /// Conditions of your own.
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

/// A list of conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A change and green gates. Changes that are in no commit are told, and do not block.
    #[default]
    Loop,
    /// All nine conditions; changes that are in no commit block.
    Orchestrator,
}

/// What is done with the state files of other loops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RalphState {
    /// Read where they are; written where `~/.ralph/state` is a folder already.
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
    /// The name, as `require` and `verdone claim` spell it; unique.
    pub name: String,
    /// Who proves it: "gate:STAGE", "git", "plan", "claim", "ci" or "judge".
    pub prover: String,
    /// Count it only for tasks of at least this complexity; 0 means for all.
    #[serde(default)]
    pub min_complexity: u32,
    /// What the agent is told to do where it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

/// A second agent that is asked to refute the work. Off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSettings {
    /// Whether it is asked.
    pub enabled: bool,
    /// Who is asked.
    pub agent: JudgeAgent,
    /// What is started; without it, the command of the agent "command". A string for `sh -c`, or a list of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How the command gets the prompt.
    pub prompt: PromptVia,
    /// The model of Claude Code as the judge; that of `[agent.claude]` where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The most that one answer of Claude Code may cost, in US dollars; 0 means what is left of `limits.cost_usd`.
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

/// Who is asked to refute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JudgeAgent {
    /// The command, where there is one; else the agent of your runs.
    #[default]
    Auto,
    /// A command: it is told to look and not to touch, and its work tree is compared.
    Command,
    /// Claude Code in a session of its own: calls that do more than look are denied.
    Claude,
}

/// A command that says what CI thinks of the commit in `VERDONE_COMMIT`: 0 green, 75 not known yet, anything else red. Off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CiSettings {
    /// What is started, with your rights and in the project's folder: a string for `sh -c`, or a list of words. A question that takes
    /// longer than a minute is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How long it is asked again and again.
    pub timeout: Span,
    /// The time between two questions.
    pub interval: Span,
}

impl Default for CiSettings {
    fn default() -> Self {
        Self { command: None, timeout: Span::from_secs(30 * 60), interval: Span::from_secs(30) }
    }
}

impl OwnCondition {
    /// The config was looked over: a prover that cannot be read proves nothing.
    pub fn prover(&self) -> Prover {
        Prover::read(&self.prover).unwrap_or(Prover::Claim)
    }
}

impl DoneSettings {
    /// Whether a condition counts because somebody asked for it by name, or by a profile that wants them all.
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

    /// Whether more is asked for than the verification of a run looks at anyway.
    pub fn asks_more_than_a_run(&self) -> bool {
        self.profile == Profile::Orchestrator || !self.require.is_empty() || !self.condition.is_empty()
    }

    /// Every condition that there is, by name.
    pub fn names(&self) -> Vec<&str> {
        Condition::ALL
            .iter()
            .map(|condition| condition.name())
            .chain(self.condition.iter().map(|own| own.name.as_str()))
            .collect()
    }

    /// Whether an agent's word counts for it; nothing for a condition that there is not.
    pub fn can_be_claimed(&self, name: &str) -> Option<bool> {
        let own = || self.condition.iter().find(|own| own.name == name).map(|own| own.prover() == Prover::Claim);
        Condition::of(name).map(Condition::can_be_claimed).or_else(own)
    }

    /// Who proves it.
    pub fn prover_of(&self, name: &str) -> Option<Prover> {
        let own = || self.condition.iter().find(|own| own.name == name).map(OwnCondition::prover);
        Condition::of(name).map(Condition::prover).or_else(own)
    }

    /// Whether a prover has to be asked for a task of this complexity.
    pub fn wants_judge(&self, complexity: u8) -> bool {
        let asked = |own: &OwnCondition| own.prover() == Prover::Judge && self.requires(&own.name);
        let adversarial = self.requires(Condition::AdversarialPassed.name()) && complexity >= ADVERSARIAL_FROM;
        let wanted = adversarial || self.condition.iter().any(asked);
        self.judge.enabled && wanted && u32::from(complexity) >= self.judge.min_complexity
    }

    /// The least complexity for which the judge is asked; nothing where it never is.
    pub fn judges_from(&self) -> Option<u8> {
        (1..=MOST_COMPLEX).find(|complexity| self.wants_judge(*complexity))
    }

    pub fn wants_ci(&self) -> bool {
        self.ci.command.is_some() && self.condition.iter().any(|own| own.prover() == Prover::Ci && self.requires(&own.name))
    }
}
