//! Rules over tool calls: what an agent may do, and what to do instead.
//!
//! A call is taken apart into what it does (commands, writes, reads), and every rule looks at each of those. The gravest verdict
//! counts. Nothing here looks at the disk: the caller asks which paths to resolve, resolves them, and hands the answers in. Policy
//! prevents accidents; it is no sandbox, because code that an agent writes and then runs can do anything that the user can.

mod act;
mod arguments;
mod builtin;
mod config;
mod evaluate;
mod example;
mod looking;
mod matcher;
mod one_liner;
mod path;
mod plan_text;
mod tool;
mod write;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

use crate::base::scope::Covered;
use crate::base::verdict::PolicyVerdict;

pub use act::{Access, ReadCommand, paths_and_changes, paths_to_resolve, reads, writes};
pub use builtin::built_in;
pub use config::{
    OnFailure, OnGitState, OnScope, OnTestFailure, PolicyConfig, READ_BEFORE_EDIT, RuleConfig, RuleProblem, STORY_SCOPE,
    TestsConfig, rules,
};
pub use evaluate::{evaluate, evaluate_prompt};
pub use example::{ExampleProblem, check_examples};
pub use looking::{Looking, look_only};
pub use matcher::{Certainty, CommandPattern, FilePatterns, Matcher};
pub use path::{Place, normalise, pattern_takes};
pub use plan_text::{PlanFile, Protected, ProtectedRange};
pub use tool::{ToolKind, kind_of};

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    pub name: Cow<'static, str>,
    pub family: Family,
    /// Patterns of tool names; empty means every tool that the matcher can look at.
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

/// Texts of a table, or of a config file.
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

/// What a rule is about. Unknown words count against the first of them only, unless config says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    GitRemote,
    GitHistory,
    GitSettings,
    Paths,
    Processes,
    Network,
    Tools,
    /// Verdone's own commands and other agents: what an unattended agent must not start, and a user's session may.
    Itself,
    /// Written by the user.
    Own,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    BuiltIn,
    File { path: String, line: usize },
}

/// A call as an agent's client announces it.
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

/// What the caller knows about the place where a call would happen. Paths are absolute and real (no links in them).
#[derive(Debug, Clone, Default)]
pub struct PolicyContext {
    pub mode: Mode,
    /// A loop holds the session: its agent may not take the gate away.
    pub held: bool,
    /// Top of the work tree.
    pub root: String,
    pub cwd: String,
    pub home: Option<String>,
    /// Directories outside the tree that may be written.
    pub temp: Vec<String>,
    pub plans: Vec<PlanFile>,
    pub scope: Option<Scope>,
    /// Real paths of what `paths_to_resolve` asked for; what is missing is taken as it is written.
    pub resolved: BTreeMap<String, String>,
    /// Files named `.env*` that exist.
    pub env_files: BTreeSet<String>,
    /// The file system does not tell upper from lower case.
    pub ignore_case: bool,
    pub on_unknown: OnUnknown,
    /// The user's own verdicts on tools, by pattern.
    pub tools: BTreeMap<String, PolicyVerdict>,
    /// Filled by the first question about a command.
    pub read: ReadCommand,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nobody watches: the policy is the permission system, and what needs a human is denied.
    #[default]
    Run,
    /// The user's own session: only denials matter.
    Interactive,
}

/// The paths that a story names as its own, relative to the tree, as patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub paths: Vec<String>,
    pub enforced: bool,
    /// Files that never count: the plan and what belongs to it, relative to the tree.
    pub exempt: Vec<String>,
}

impl Scope {
    /// Tells whether a path below the tree is outside of the scope. Without a path, a scope limits nothing.
    pub fn outside(&self, ignore_case: bool) -> impl Fn(&str) -> bool {
        let covered = Covered::new(&self.paths, ignore_case);
        move |path| {
            let ours = path.is_empty()
                || path.split('/').any(|part| part == ".verdone")
                || self.exempt.iter().any(|exempt| path::fold(exempt, ignore_case) == path::fold(path, ignore_case));
            // Plans with a scope that cannot be read are faulty; such a scope covers nothing.
            !self.paths.is_empty() && !ours && !covered.as_ref().is_ok_and(|covered| covered.has(path))
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        let shown: Vec<String> = self.paths.iter().take(8).map(|path| format!("`{path}`")).collect();
        let more = self.paths.len().saturating_sub(shown.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", shown.join(", "))
    }
}

/// What it means when a rule may match but words are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Deny where the words that are known fit a rule about pushing and merging; else allow.
    #[default]
    Remote,
    /// Only what is known for sure counts.
    Allow,
    /// What cannot be known needs a human.
    Ask,
    /// What cannot be known is denied.
    Deny,
}

/// The answer, with everything that is needed to explain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: PolicyVerdict,
    /// Name and place of the rule that decided.
    pub rule: Option<(String, Source)>,
    /// The simple command that the rule is about.
    pub command: Option<Found>,
    /// The path that the rule is about, as the rule saw it.
    pub path: Option<String>,
    pub reason: String,
    pub alternative: String,
    /// What could not be known, whether or not it mattered.
    pub unknown: Option<String>,
    /// Denied only because nobody is there to be asked.
    pub needs_human: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub range: Range<usize>,
    pub text: String,
}

#[cfg(test)]
mod tests;
