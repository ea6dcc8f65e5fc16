//! Verdone's built-in rules, one table per family. Each can be turned off by name.

mod agents;
mod destructive;
mod git_history;
mod git_remote;
mod git_settings;
mod itself;
mod network;
mod paths;
mod processes;
mod publish;
mod tools;

use std::borrow::Cow;

use super::{Examples, Family, Matcher, Rule, Source, Texts};
use crate::base::verdict::PolicyVerdict;

/// All built-in rules, those with the most descriptive names first.
pub fn built_in() -> Vec<Rule> {
    let tables = [
        git_remote::rules(),
        git_history::rules(),
        git_settings::rules(),
        paths::rules(),
        processes::rules(),
        network::rules(),
        publish::rules(),
        destructive::rules(),
        tools::rules(),
        agents::rules(),
        itself::rules(),
    ];
    tables.into_iter().flatten().collect()
}

/// One line of a table.
struct Entry {
    name: &'static str,
    matcher: Matcher,
    reason: &'static str,
    alternative: &'static str,
    matches: &'static [&'static str],
    not_matches: &'static [&'static str],
}

fn deny(family: Family, entries: Vec<Entry>) -> Vec<Rule> {
    let rule = |entry: Entry| Rule {
        name: Cow::Borrowed(entry.name),
        family,
        tools: Vec::new(),
        matcher: entry.matcher,
        verdict: PolicyVerdict::Deny,
        reason: Cow::Borrowed(entry.reason),
        alternative: Cow::Borrowed(entry.alternative),
        examples: Examples { matches: Texts::BuiltIn(entry.matches), not_matches: Texts::BuiltIn(entry.not_matches) },
        source: Source::BuiltIn,
    };
    entries.into_iter().map(rule).collect()
}
