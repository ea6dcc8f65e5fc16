//! Policy in a config file: `[policy]` and `[[policy.rule]]`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_text::suggest::nearest;

use super::act::Access;
use super::{CommandPattern, Examples, Family, Matcher, OnUnknown, Rule, Source, Texts, built_in};
use crate::base::verdict::PolicyVerdict;

/// The name of the only rule that needs the session's memory: an agent must read a file before it changes it.
pub const READ_BEFORE_EDIT: &str = "read-before-edit";
/// The name of the rule that needs a story.
pub const STORY_SCOPE: &str = "story-scope";

/// What agents may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// The names of built-in rules to turn off.
    pub off: Vec<String>,
    /// What happens if some words of a command are only computed when it runs, and a rule may match.
    pub unknown: OnUnknown,
    /// Verdicts on tools, by name or pattern.
    pub tools: BTreeMap<String, PolicyVerdict>,
    /// What happens to a call in your own sessions if Verdone itself fails. In a run, the call is always denied.
    pub on_failure: OnFailure,
    /// What happens if a story names its scope and an agent changes files outside of it.
    pub scope: OnScope,
    /// What happens if a command leaves another branch checked out, HEAD detached, or a merge, rebase, cherry-pick, revert or bisect in
    /// progress.
    pub git_state: OnGitState,
    pub tests: TestsConfig,
    /// Your own rules. They are checked before the built-in ones.
    pub rule: Vec<RuleConfig>,
}

/// What happens to a call in the user's own session if Verdone itself fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The failure is only recorded.
    #[default]
    Record,
    /// The call is denied, as in a run.
    Deny,
}

/// Tests that the agent runs itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TestsConfig {
    /// What happens in a run if tests that the agent runs itself fail. In your own sessions it is always `feedback`.
    pub on_failure: OnTestFailure,
    /// The number of failing test runs in a row after which the attempt ends; 0 means that `on_failure` decides.
    pub rollback_after: u32,
}

/// What happens if tests that the agent runs itself fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTestFailure {
    /// The agent learns which tests failed, and continues.
    #[default]
    Feedback,
    /// The turn ends immediately. The attempt is kept under a ref, and the next one starts from a clean workspace.
    Rollback,
}

impl TestsConfig {
    /// The number of failing test runs in a row that ends the turn; `None` if failures are only reported.
    pub fn patience(&self) -> Option<u32> {
        match (self.on_failure, self.rollback_after) {
            (OnTestFailure::Feedback, 0) => None,
            (OnTestFailure::Rollback, 0) => Some(1),
            (OnTestFailure::Feedback | OnTestFailure::Rollback, runs) => Some(runs),
        }
    }
}

/// How strictly a story's scope applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnScope {
    /// The scope is ignored.
    Off,
    /// Each file outside of it is reported to the agent once.
    #[default]
    Advisory,
    /// Writes outside of it are denied, and an attempt that changed such files is not committed.
    Enforced,
}

/// What happens if a command leaves git in a wrong state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnGitState {
    /// The state is ignored.
    Off,
    /// It is reported to the agent once.
    #[default]
    Report,
    /// The command counts as failed, and the agent learns how to get back.
    Deny,
}

/// A user-defined rule. Conditions that are left out match everything, but at least one is required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// The name shown in denials and in `verdone policy list`.
    pub name: String,
    /// The most severe verdict of all matching rules wins.
    pub verdict: PolicyVerdict,
    /// Shown to the agent.
    pub reason: String,
    /// What to do instead; shown to the agent.
    #[serde(default)]
    pub alternative: String,
    /// The tools that the rule applies to, by name or pattern.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The programs of a Bash command, without their directory.
    #[serde(default)]
    pub program: Vec<String>,
    /// Subcommands: the first word after the program that is not an option.
    #[serde(default)]
    pub subcommand: Vec<String>,
    /// Options, at least one of which must be present.
    #[serde(default)]
    pub flag: Vec<String>,
    /// Patterns of files that any tool writes or deletes: relative to the work tree, absolute, or below `~/`. `*` and `?` match within a
    /// name, `**` across folders, `{a,b}` and `[a-z]` alternatives. `*.pem` matches only at the top, `**/*.pem` anywhere.
    #[serde(default)]
    pub write: Vec<String>,
    /// Patterns of files that any tool reads, written like those of `write`.
    #[serde(default)]
    pub read: Vec<String>,
    /// Text in a user's prompt.
    #[serde(default)]
    pub prompt: Vec<String>,
    /// Calls that the rule must match: a Bash command, or `Tool: input`.
    #[serde(default)]
    pub matches: Vec<String>,
    /// Calls that the rule must not match.
    #[serde(default)]
    pub not_matches: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    #[error("no built-in rule is named `{name}`{}", hint(suggestion.as_deref()))]
    NoSuchRule { name: String, suggestion: Option<String> },
    #[error("two rules are named `{name}`")]
    SameName { name: String },
    #[error("rule `{name}` matches nothing: give it `tools`, `program`, `write`, `read` or `prompt`")]
    NoMatcher { name: String },
    #[error("rule `{name}` mixes `{first}` and `{second}`: split it into two rules")]
    Mixed { name: String, first: &'static str, second: &'static str },
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The active rules: the user's own, then the built-in ones that are not turned off. `place` gives the line of the n-th rule.
pub fn rules(config: &PolicyConfig, path: &str, place: impl Fn(usize) -> usize) -> (Vec<Rule>, Vec<RuleProblem>) {
    let mut problems = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let built_in = built_in();
    for (index, given) in config.rule.iter().enumerate() {
        let name = given.name.as_str();
        if rules.iter().chain(&built_in).any(|rule| rule.name == name) {
            problems.push(RuleProblem::SameName { name: name.to_owned() });
        }
        match own(given, Source::File { path: path.to_owned(), line: place(index) }) {
            Ok(rule) => rules.push(rule),
            Err(problem) => problems.push(problem),
        }
    }
    for name in &config.off {
        let known = || built_in.iter().map(|rule| rule.name.as_ref()).chain([READ_BEFORE_EDIT]);
        if !known().any(|rule| rule == name.as_str()) {
            let suggestion = nearest(name, known()).map(str::to_owned);
            problems.push(RuleProblem::NoSuchRule { name: name.clone(), suggestion });
        }
    }
    rules.extend(built_in.into_iter().filter(|rule| !config.off.iter().any(|name| rule.name == name.as_str())));
    (rules, problems)
}

impl PolicyConfig {
    /// Whether a file must be read before it is changed.
    pub fn read_before_edit(&self) -> bool {
        !self.off.iter().any(|name| name == READ_BEFORE_EDIT)
    }

    /// How strictly a scope applies; `Off` if its rule is turned off.
    pub fn on_scope(&self) -> OnScope {
        if self.off.iter().any(|name| name == STORY_SCOPE) { OnScope::Off } else { self.scope }
    }
}

fn own(given: &RuleConfig, source: Source) -> Result<Rule, RuleProblem> {
    let is_command = !given.program.is_empty() || !given.subcommand.is_empty() || !given.flag.is_empty();
    let kinds = [
        ("program", is_command),
        ("write", !given.write.is_empty()),
        ("read", !given.read.is_empty()),
        ("prompt", !given.prompt.is_empty()),
    ];
    let given_kinds: Vec<&'static str> = kinds.iter().filter(|(_, there)| *there).map(|(kind, _)| *kind).collect();
    let matcher = match given_kinds.as_slice() {
        [] if given.tools.is_empty() => return Err(RuleProblem::NoMatcher { name: given.name.clone() }),
        [] => Matcher::Tool,
        ["program"] => Matcher::Command(CommandPattern {
            programs: given.program.clone(),
            subcommands: given.subcommand.clone(),
            flags: given.flag.clone(),
        }),
        ["write"] => Matcher::Path { access: &[Access::Write, Access::DeleteAll], globs: given.write.clone() },
        ["read"] => Matcher::Path { access: &[Access::Read], globs: given.read.clone() },
        ["prompt"] => Matcher::Prompt(given.prompt.clone()),
        [first, second, ..] => return Err(RuleProblem::Mixed { name: given.name.clone(), first, second }),
        [_] => return Err(RuleProblem::NoMatcher { name: given.name.clone() }),
    };
    let texts = |texts: &[String]| texts.iter().cloned().map(Cow::Owned).collect();
    Ok(Rule {
        name: Cow::Owned(given.name.clone()),
        family: Family::Own,
        tools: texts(&given.tools),
        matcher,
        verdict: given.verdict,
        reason: Cow::Owned(given.reason.clone()),
        alternative: Cow::Owned(given.alternative.clone()),
        examples: Examples { matches: Texts::Own(given.matches.clone()), not_matches: Texts::Own(given.not_matches.clone()) },
        source,
    })
}
