//! What the config says about gates: `[[gate]]` and `[gates]`.

mod when;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, CheckOrigin, CommandSpec, Stage};
use crate::base::span::Span;

pub use when::When;

/// One `[[gate]]` of the config: a check that every story has to pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The name shown in reports; unique.
    pub name: String,
    /// When it runs: correctness, quality, security, adversarial, or a name of your own; own stages run last, in the order of the
    /// config.
    #[serde(default)]
    pub stage: Stage,
    /// What runs: a string for `sh -c`, or a list of words.
    pub command: CommandSpec,
    /// How long it may take; the default is `limits.check_time`, and 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether a story fails by it; otherwise it is advisory: run, shown and kept, but nothing fails by it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub blocking: bool,
    /// For which stories it runs.
    #[serde(default, skip_serializing_if = "When::is_always")]
    pub when: When,
    /// Files that count beside the tree when a result is looked up: ignored ones, or such outside of the project. Patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Variables to set for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How often it is tried again when it fails. A pass after that counts, and is reported as flaky.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// What it means when it ran no tests at all. Not set: it did not pass where its output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_tests: Option<ZeroTests>,
    /// The test reports (`JUnit` XML) that it writes, a path or a pattern: tests are counted in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub junit: Option<String>,
    /// A folder outside of the repository with tests that the agent must not see: an absolute path, or one below `~/`. The gate
    /// finds it, read-only, at the path in `VERDONE_HIDDEN`. The agent learns the gate's name and whether it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<PathBuf>,
}

impl Gate {
    /// A gate with nothing special about it.
    pub fn new(name: impl Into<String>, stage: Stage, command: CommandSpec) -> Self {
        let terms = Terms::default();
        Self {
            name: name.into(),
            stage,
            command,
            timeout: None,
            blocking: true,
            when: terms.when,
            inputs: terms.inputs,
            env: terms.env,
            retries: terms.retries,
            zero_tests: terms.zero_tests,
            junit: terms.junit,
            hidden: terms.hidden,
        }
    }

    /// The gate, ready to be run.
    pub fn check(&self, check_time: Span) -> Check {
        Check {
            name: self.name.clone(),
            origin: CheckOrigin::Gate(self.stage.clone()),
            command: self.command.clone(),
            timeout: self.timeout.unwrap_or(check_time),
            terms: Terms {
                advisory: !self.blocking,
                when: self.when.clone(),
                inputs: self.inputs.clone(),
                env: self.env.clone(),
                retries: self.retries,
                zero_tests: self.zero_tests,
                junit: self.junit.clone(),
                hidden: self.hidden.clone(),
            },
        }
    }
}

/// How a check is run and judged, beside its command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Terms {
    pub advisory: bool,
    pub when: When,
    pub inputs: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_tests: Option<ZeroTests>,
    pub junit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<PathBuf>,
}

impl Terms {
    pub fn are_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What it means when a gate ran no tests at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ZeroTests {
    /// It passes only where its output, or its report, shows that at least one test ran.
    Fail,
    /// Its exit code decides.
    #[serde(alias = "allow")]
    Ok,
}

/// How gates are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GateSettings {
    /// Gates of one stage that run at the same time; 1 runs them one after another, 0 takes the number of processors, at most 4.
    /// They share a workspace.
    pub parallel: u32,
    /// Whether a stage in which a blocking gate fails is the last one to run.
    pub stop_at_failing_stage: bool,
    /// Whether `verdone verify` and the gate of your own sessions may answer with an earlier result for the same tree. What comes
    /// before a commit is always run.
    pub cache: bool,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self { parallel: 0, stop_at_failing_stage: true, cache: true }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
