//! Applies all rules to one call. The most severe verdict wins, and the first rule that gives it is named.

use super::act::{Acts, gather};
use super::matcher::{Certainty, Hit, Matcher};
use super::tool::default_verdict;
use super::{Decision, Family, MatchedRule, Mode, OnUnknown, PolicyContext, Rule, STORY_SCOPE, Source, ToolCall};
use crate::base::verdict::PolicyVerdict;
use verdone_shell::Unknown;
use verdone_text::pattern::name_matches;

/// Decides about a tool call.
pub fn evaluate(call: &ToolCall, context: &PolicyContext, rules: &[Rule]) -> Decision {
    let acts = gather(call, context);
    let mut best = by_table(call, context);
    best.unknown = acts.script.unknown.first().map(|unknown| unknown.why.describe().to_owned());
    let users = acts.on_the_users_repository(context);
    for rule in rules.iter().filter(|rule| is_for(rule, &call.tool) && is_in_force(rule, context)) {
        let Some(hit) = rule.matcher.evaluate(call, relevant(rule, &acts, &users), context) else { continue };
        let Some(verdict) = verdict_of(rule, &hit, context.on_unknown) else { continue };
        if verdict > best.verdict || (verdict == best.verdict && best.rule.is_none() && best.reason.is_empty()) {
            best = decision(rule, hit, verdict, best.unknown.take());
        }
    }
    by_unknown(&mut best, &acts, context.on_unknown);
    name_scope(&mut best, context);
    attended(best, context.mode)
}

/// Adds the scope's paths to the reason: the rule is the same for every story, but the paths differ.
fn name_scope(best: &mut Decision, context: &PolicyContext) {
    let by_scope = best.rule.as_ref().is_some_and(|(name, source)| name == STORY_SCOPE && *source == Source::BuiltIn);
    if let Some(scope) = context.scope.as_ref().filter(|_| by_scope) {
        best.reason.push_str(&format!(", which is {}", scope.describe()));
    }
}

/// Decides about a user's prompt.
pub fn evaluate_prompt(prompt: &str, mode: Mode, rules: &[Rule]) -> Decision {
    let mut best = allowed();
    for rule in rules {
        let Matcher::Prompt(texts) = &rule.matcher else { continue };
        if rule.verdict > best.verdict && texts.iter().any(|text| prompt.contains(text.as_str())) {
            best = decision(rule, Hit { certainty: Certainty::Yes, command: None, path: None }, rule.verdict, None);
        }
    }
    attended(best, mode)
}

fn is_for(rule: &Rule, tool: &str) -> bool {
    rule.tools.is_empty() || rule.tools.iter().any(|glob| name_matches(glob, tool))
}

/// In their own sessions, users may tell an agent to start or undo a run, unless a loop controls the session.
fn is_in_force(rule: &Rule, context: &PolicyContext) -> bool {
    match rule.family {
        Family::Itself => context.mode == Mode::Run || context.held,
        Family::Unattended => context.mode == Mode::Run,
        Family::GitRemote
        | Family::GitHistory
        | Family::GitSettings
        | Family::Paths
        | Family::Processes
        | Family::Network
        | Family::Tools
        | Family::Own => true,
    }
}

fn relevant<'a>(rule: &Rule, all: &'a Acts, users: &'a Acts) -> &'a Acts {
    match rule.family {
        Family::GitHistory | Family::GitSettings => users,
        Family::GitRemote
        | Family::Paths
        | Family::Processes
        | Family::Network
        | Family::Tools
        | Family::Itself
        | Family::Unattended
        | Family::Own => all,
    }
}

/// The verdict of a match; `None` if it is too uncertain to count.
fn verdict_of(rule: &Rule, hit: &Hit, on_unknown: OnUnknown) -> Option<PolicyVerdict> {
    match (hit.certainty, on_unknown) {
        (Certainty::No, _) | (Certainty::Maybe, OnUnknown::Allow) => None,
        (Certainty::Yes, _) | (Certainty::Maybe, OnUnknown::Deny) => Some(rule.verdict),
        (Certainty::Maybe, OnUnknown::Remote) => (rule.family == Family::GitRemote).then_some(rule.verdict),
        (Certainty::Maybe, OnUnknown::Ask) => Some(rule.verdict.min(PolicyVerdict::Ask)),
    }
}

fn decision(rule: &Rule, hit: Hit, verdict: PolicyVerdict, unknown: Option<String>) -> Decision {
    let (mut reason, mut alternative) = (rule.reason.to_string(), rule.alternative.to_string());
    if hit.certainty == Certainty::Maybe {
        reason = format!("part of this command is computed when it runs, and the rest matches a rule: {reason}");
        alternative = format!("write every word out; {alternative}");
    }
    Decision {
        verdict,
        rule: Some((rule.name.to_string(), rule.source.clone())),
        command: hit.command,
        path: hit.path,
        reason,
        alternative,
        unknown: unknown
            .or_else(|| (hit.certainty == Certainty::Maybe).then(|| "a word is computed when the command runs".to_owned())),
        needs_human: false,
    }
}

fn by_table(call: &ToolCall, context: &PolicyContext) -> Decision {
    let (verdict, alternative) = default_verdict(&call.tool, context);
    let reason = match verdict {
        PolicyVerdict::Allow => String::new(),
        PolicyVerdict::Ask => format!("the tool {} needs an answer from the user", call.tool),
        PolicyVerdict::Deny => format!("the tool {} cannot be used in unattended runs", call.tool),
    };
    Decision { verdict, reason, alternative, ..allowed() }
}

/// With a strict setting, unknown parts alone decide.
fn by_unknown(best: &mut Decision, acts: &Acts, on_unknown: OnUnknown) {
    let verdict = match on_unknown {
        OnUnknown::Remote | OnUnknown::Allow => return,
        OnUnknown::Ask => PolicyVerdict::Ask,
        OnUnknown::Deny => PolicyVerdict::Deny,
    };
    let Some(Unknown { range, why }) = acts.script.unknown.first() else { return };
    if verdict > best.verdict {
        best.verdict = verdict;
        best.command = Some(MatchedRule { range: range.clone(), text: String::new() });
        why.describe().clone_into(&mut best.reason);
        "write the command out, one simple step at a time".clone_into(&mut best.alternative);
    }
}

fn attended(mut decision: Decision, mode: Mode) -> Decision {
    if mode == Mode::Run && decision.verdict == PolicyVerdict::Ask {
        decision.verdict = PolicyVerdict::Deny;
        decision.needs_human = true;
        decision.reason = format!("needs a human, but this run is unattended: {}", decision.reason);
    }
    decision
}

fn allowed() -> Decision {
    Decision {
        verdict: PolicyVerdict::Allow,
        rule: None,
        command: None,
        path: None,
        reason: String::new(),
        alternative: String::new(),
        unknown: None,
        needs_human: false,
    }
}
