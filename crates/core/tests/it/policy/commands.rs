//! A table of commands: what is denied and by which rule, what is allowed, what cannot be determined.

use verdone_core::base::verdict::PolicyVerdict;
use verdone_core::policy::{OnUnknown, PolicyContext, ToolCall, evaluate};

use super::project::{context, rules};
use super::table::{COMPUTED, DATA, DENIED, EVERYDAY};

fn rule_that_denies(command: &str, context: &PolicyContext) -> Option<String> {
    let decision = evaluate(&ToolCall::bash(command), context, &rules());
    match decision.verdict {
        PolicyVerdict::Deny => Some(decision.rule.map_or_else(|| decision.reason.clone(), |(name, _)| name)),
        PolicyVerdict::Allow | PolicyVerdict::Ask => None,
    }
}

#[test]
fn every_disguise_of_a_denied_command_is_denied_by_its_rule() {
    let wrong: Vec<String> = DENIED
        .iter()
        .filter_map(|(rule, command)| {
            let found = rule_that_denies(command, &context());
            (found.as_deref() != Some(rule)).then(|| format!("{command:?}: {rule}, but {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), DENIED.len(), wrong.join("\n"));
}

#[test]
fn commands_as_data_and_everyday_work_are_allowed() {
    let wrong: Vec<String> = DATA
        .iter()
        .chain(EVERYDAY)
        .filter_map(|command| rule_that_denies(command, &context()).map(|rule| format!("{command:?}: {rule}")))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), DATA.len() + EVERYDAY.len(), wrong.join("\n"));
}

#[test]
fn computed_words_are_unknown_and_deny_only_where_the_known_words_fit() {
    let mut wrong = Vec::new();
    for (rule, command) in COMPUTED {
        let decision = evaluate(&ToolCall::bash(command), &context(), &rules());
        let found = rule_that_denies(command, &context());
        if found.as_deref() != *rule || decision.unknown.is_none() {
            wrong.push(format!("{command:?}: {rule:?}, but {found:?}, unknown {:?}", decision.unknown));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), COMPUTED.len(), wrong.join("\n"));
}

#[test]
fn a_strict_setting_denies_whatever_is_computed() {
    let strict = PolicyContext { on_unknown: OnUnknown::Deny, ..context() };
    for (_, command) in COMPUTED {
        assert!(rule_that_denies(command, &strict).is_some(), "{command}");
    }
    let lax = PolicyContext { on_unknown: OnUnknown::Allow, ..context() };
    for (_, command) in COMPUTED {
        assert_eq!(rule_that_denies(command, &lax), None, "{command}");
    }
}

#[test]
fn the_tables_are_longer_than_those_that_others_failed() {
    let pushes = DENIED.iter().filter(|(rule, _)| *rule == "git-push").count();
    assert!(pushes >= 46 && DENIED.len() + EVERYDAY.len() + COMPUTED.len() >= 150 && DATA.len() >= 18);
}
