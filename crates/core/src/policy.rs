//! Rules over tool calls: what an agent may do, and what to do instead.
//!
//! A call is split into its actions (commands, writes, reads), and every rule checks each of them. The most severe verdict wins. This
//! module does not access the disk: the caller asks which paths to resolve, resolves them, and passes in the result. Policy prevents
//! accidents. It is not a sandbox, because code that an agent writes and then runs can do anything that the user can.

mod act;
mod arguments;
mod builtin;
mod config;
mod evaluate;
mod example;
mod matcher;
mod one_liner;
mod path;
mod plan_text;
mod read_only;
mod tool;
mod write;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;
use verdone_plan::scope::ScopeMatcher;

use crate::base::verdict::PolicyVerdict;

pub use act::{Access, ReadCommand, paths_and_changes, paths_to_resolve, reads, writes};
pub use builtin::built_in;
pub use config::{
    OnFailure, OnGitState, OnScope, OnTestFailure, PolicyConfig, READ_BEFORE_EDIT, RuleConfig, RuleProblem, STORY_SCOPE,
    TestsConfig, rules,
};
pub use evaluate::{evaluate, evaluate_prompt};
pub use example::{ExampleProblem, check_examples};
pub use matcher::{Certainty, CommandPattern, FilePatterns, Matcher};
pub use path::{Place, normalise, pattern_takes};
pub use plan_text::{PlanFile, Protected, ProtectedRange};
pub use read_only::{ReadOnlyReason, read_only_rule};
pub use tool::{ToolKind, kind_of};

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    pub name: Cow<'static, str>,
    pub family: Family,
    /// Patterns of tool names; empty means every tool that the matcher supports.
    pub tools: Vec<Cow<'static, str>>,
    pub matcher: Matcher,
    pub verdict: PolicyVerdict,
    pub reason: Cow<'static, str>,
    pub alternative: Cow<'static, str>,
    pub examples: Examples,
    pub source: Source,
}

/// Calls that a rule must and must not match: a Bash command, or `Tool: input`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examples {
    pub matches: Texts,
    pub not_matches: Texts,
}

/// Texts from a built-in table or from a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Texts {
    BuiltIn(&'static [&'static str]),
    Own(Vec<String>),
}

impl Texts {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (built_in, own): (&[&str], &[String]) = match self {
            Self::BuiltIn(texts) => (texts, &[]),
            Self::Own(texts) => (&[], texts),
        };
        built_in.iter().copied().chain(own.iter().map(String::as_str))
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::BuiltIn(&[])
    }
}

/// The subject of a rule. By default, unknown words count only against the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    GitRemote,
    GitHistory,
    GitSettings,
    Paths,
    Processes,
    Network,
    Tools,
    /// Verdone's own commands and other agents: forbidden for an unattended agent, allowed in a user's session.
    Itself,
    /// What works only in a session that stays open: forbidden for an unattended agent, allowed wherever a user sits.
    Unattended,
    /// Defined by the user.
    Own,
}

/// Where a rule is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    BuiltIn,
    File { path: String, line: usize },
}

/// A call as announced by the agent's client.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub tool: String,
    pub input: Value,
}

impl ToolCall {
    pub fn bash(command: &str) -> Self {
        Self { tool: "Bash".to_owned(), input: serde_json::json!({ "command": command }) }
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.input.get(field).and_then(Value::as_str)
    }
}

/// The circumstances of a call. Paths are absolute and contain no symlinks.
#[derive(Debug, Clone, Default)]
pub struct PolicyContext {
    pub mode: Mode,
    /// A loop controls the session, so its agent must not disable the gate.
    pub held: bool,
    /// The top of the work tree.
    pub root: String,
    pub cwd: String,
    pub home: Option<String>,
    /// Writable directories outside the tree.
    pub temp: Vec<String>,
    pub plans: Vec<PlanFile>,
    pub scope: Option<Scope>,
    /// The real paths of those that `paths_to_resolve` returned; others are used as written.
    pub resolved: BTreeMap<String, String>,
    /// Existing files named `.env*`.
    pub env_files: BTreeSet<String>,
    /// The file system is case-insensitive.
    pub ignore_case: bool,
    pub on_unknown: OnUnknown,
    /// The user's own verdicts on tools, by pattern.
    pub tools: BTreeMap<String, PolicyVerdict>,
    /// A cache, filled when a command is first parsed.
    pub read: ReadCommand,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Unattended: the policy is the permission system, and it denies what needs a person.
    #[default]
    Run,
    /// The user's own session: only denials matter.
    Interactive,
}

/// The scope of a story, as patterns relative to the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub paths: Vec<String>,
    pub enforced: bool,
    /// Files that are always allowed: the plan and its related files, relative to the tree.
    pub exempt: Vec<String>,
}

impl Scope {
    /// Returns a test for paths below the tree that are outside of the scope. A scope without paths limits nothing.
    pub fn outside(&self, ignore_case: bool) -> impl Fn(&str) -> bool {
        let covered = ScopeMatcher::new(&self.paths, ignore_case);
        move |path| {
            let ours = path.is_empty()
                || path.split('/').any(|part| part == ".verdone")
                || self.exempt.iter().any(|exempt| path::fold(exempt, ignore_case) == path::fold(path, ignore_case));
            // A plan whose scope is invalid is faulty; such a scope covers nothing.
            !self.paths.is_empty() && !ours && !covered.as_ref().is_ok_and(|covered| covered.has(path))
        }
    }

    /// The text for people.
    pub fn describe(&self) -> String {
        let shown: Vec<String> = self.paths.iter().take(8).map(|path| format!("`{path}`")).collect();
        let more = self.paths.len().saturating_sub(shown.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", shown.join(", "))
    }
}

/// What happens if a rule may match, but some words are only computed when the command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Deny if the known words match a rule about pushing and merging; otherwise allow.
    #[default]
    Remote,
    /// Only what is certain counts.
    Allow,
    /// What is unknown needs a person's permission.
    Ask,
    /// What is unknown is denied.
    Deny,
}

/// The decision, with everything needed to explain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: PolicyVerdict,
    /// The name and source of the rule that decided.
    pub rule: Option<(String, Source)>,
    /// The simple command that the rule matched.
    pub command: Option<MatchedRule>,
    /// The path that the rule matched, as the rule saw it.
    pub path: Option<String>,
    pub reason: String,
    pub alternative: String,
    /// What is unknown about the call, whether or not it mattered.
    pub unknown: Option<String>,
    /// Denied only because no person is available to ask.
    pub needs_human: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedRule {
    pub range: Range<usize>,
    pub text: String,
}

#[cfg(test)]
mod tests;
