//! Gate settings of the config: `[[gate]]` and `[gates]`.

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
    /// When it runs: correctness, quality, security, adversarial, or a custom name. Custom stages run last, in the order of the config.
    #[serde(default)]
    pub stage: Stage,
    /// The command: a string for `sh -c`, or a list of arguments.
    pub command: CommandSpec,
    /// How long it may take. The default is `limits.check_time`; 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether a failure fails the story. Otherwise the gate is advisory: it runs and its result is shown and recorded, but fails nothing.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub blocking: bool,
    /// The stories for which it runs.
    #[serde(default, skip_serializing_if = "When::is_always")]
    pub when: When,
    /// Patterns of further files that the result depends on: ignored files, or files outside the project. Used for cached results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Environment variables to set for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How often to retry it when it fails. A pass on a retry counts, but is reported as flaky.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// What to do if it runs no tests at all. If not set, it does not pass if its output says that no tests ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_tests: Option<ZeroTests>,
    /// Path or pattern of the test reports (`JUnit` XML) that it writes. Tests are counted from these reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub junit: Option<String>,
    /// A folder outside the repository with tests that the agent must not see: an absolute path, or one below `~/`. The gate
    /// finds it, read-only, at the path in `VERDONE_HIDDEN`. The agent only learns the gate's name and whether it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<PathBuf>,
}

impl Gate {
    /// A gate with default settings.
    pub fn new(name: impl Into<String>, stage: Stage, command: CommandSpec) -> Self {
        let terms = CheckOptions::default();
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

    /// The gate as a check that is ready to run.
    pub fn check(&self, check_time: Span) -> Check {
        Check {
            name: self.name.clone(),
            origin: CheckOrigin::Gate(self.stage.clone()),
            command: self.command.clone(),
            timeout: self.timeout.unwrap_or(check_time),
            terms: CheckOptions {
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

/// How to run and judge a check, apart from its command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckOptions {
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

impl CheckOptions {
    pub fn are_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What to do if a gate runs no tests at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ZeroTests {
    /// Pass only if the output or the report shows that at least one test ran.
    Fail,
    /// The exit code decides.
    #[serde(alias = "allow")]
    Ok,
}

/// How gates are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GateSettings {
    /// How many gates of one stage run at the same time. With 1, they run one after another; 0 uses the number of processors, at most 4.
    /// They share a workspace.
    pub parallel: u32,
    /// Whether to skip later stages when a blocking gate fails.
    pub stop_at_failing_stage: bool,
    /// Whether `verdone verify` and the gate of your own sessions may reuse an earlier result for the same tree. Checks before a
    /// commit always run.
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
