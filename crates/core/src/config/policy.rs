//! Validates `[policy]` of a config file: rules that cannot work are errors with a line number.

use toml::de::{DeTable, DeValue};
use verdone_text::pattern;

use super::diagnose::{Finding, Step, but_examples, unreadable};
use super::layer::Layer;
use super::{Config, ConfigProblem};
use crate::policy::{ExampleProblem, PolicyConfig, RuleProblem, check_examples, rules};

/// The settings of one file, over the defaults and without other layers.
pub fn config_of_one_file(place: &str, text: &str) -> Result<Config, ConfigProblem> {
    Layer::alone(place, text)
}

/// Like [`config_of_one_file`], for a hook, which is started for every tool call: does not check the rules' examples again, and parses a valid text
/// only once.
pub fn for_hook(place: &str, text: &str) -> Result<Config, ConfigProblem> {
    match toml::from_str::<Config>(text.trim_start_matches('\u{feff}')) {
        Ok(config) if but_examples(&config).is_none() => Ok(config),
        Ok(_) | Err(_) => config_of_one_file(place, text),
    }
}

/// The line numbers of the rules in a config file, from 1.
pub fn rule_lines(text: &str) -> Vec<usize> {
    let text = text.trim_start_matches('\u{feff}');
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let policy = root.get_ref().iter().find(|(key, _)| key.get_ref() == "policy").map(|(_, value)| value.get_ref());
    let Some(DeValue::Table(policy)) = policy else { return Vec::new() };
    let rules = policy.iter().find(|(key, _)| key.get_ref() == "rule").map(|(_, value)| value.get_ref());
    let Some(DeValue::Array(rules)) = rules else { return Vec::new() };
    let line = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    rules.iter().map(|rule| line(rule.span().start)).collect()
}

/// The first fault in rules of the right types. Their examples are checked separately.
pub(super) fn unusable(config: &PolicyConfig) -> Option<Finding> {
    if let Some(finding) = unreadable_tool(config) {
        return Some(finding);
    }
    if config.rule.is_empty() && config.off.is_empty() {
        return None;
    }
    let (_, problems) = rules(config, "", |_| 0);
    let in_rule = |name: &str, field| in_rule(config, name, field);
    if let Some(problem) = problems.first() {
        let path = match problem {
            RuleProblem::NoSuchRule { name, .. } => {
                let index = config.off.iter().position(|off| off == name).unwrap_or_default();
                vec![key("policy"), key("off"), Step::Index(index)]
            }
            RuleProblem::SameName { name } => in_rule(name, Some("name")),
            RuleProblem::NoMatcher { name } => in_rule(name, None),
            RuleProblem::Mixed { name, second, .. } => in_rule(name, Some(second)),
        };
        return Some(Finding { path, on_key: false, message: problem.to_string(), hint: None });
    }
    config.rule.iter().enumerate().find_map(|(number, rule)| {
        let list = |field: &str, patterns: &[String], check| {
            let place = vec![key("policy"), key("rule"), Step::Index(number), key(field)];
            unreadable(patterns, check).map(|finding| finding.below(place))
        };
        list("tools", &rule.tools, pattern::check_name)
            .or_else(|| list("write", &rule.write, pattern::check))
            .or_else(|| list("read", &rule.read, pattern::check))
    })
}

fn unreadable_tool(config: &PolicyConfig) -> Option<Finding> {
    config.tools.keys().find_map(|tool| {
        let error = pattern::check_name(tool).err()?;
        let path = vec![key("policy"), key("tools"), key(tool)];
        Some(Finding { path, on_key: true, message: error.to_string(), hint: Some(error.hint.to_owned()) })
    })
}

/// The first rule that contradicts one of its examples.
pub(super) fn broken_example(config: &PolicyConfig) -> Option<Finding> {
    if config.rule.is_empty() {
        return None;
    }
    let (all, _) = rules(config, "", |_| 0);
    // The built-in rules come last, and tests check their examples.
    let problem = check_examples(all.get(..config.rule.len())?).into_iter().next()?;
    let path = match &problem {
        ExampleProblem::DoesNotMatch { rule, .. } => in_rule(config, rule, Some("matches")),
        ExampleProblem::Matches { rule, .. } => in_rule(config, rule, Some("not_matches")),
    };
    Some(Finding { path, on_key: false, message: problem.to_string(), hint: None })
}

fn in_rule(config: &PolicyConfig, name: &str, field: Option<&str>) -> Vec<Step> {
    let place = config.rule.iter().rposition(|rule| rule.name == name).unwrap_or_default();
    let mut path = vec![key("policy"), key("rule"), Step::Index(place)];
    path.extend(field.map(key));
    path
}

fn key(text: &str) -> Step {
    Step::Key(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[policy]\noff = [\"git-stash\", \"read-before-edit\"]\n[policy.tools]\nWebFetch = \"deny\"\n\n\
                        [[policy.rule]]\nname = \"no-deploy\"\nverdict = \"deny\"\nreason = \"not now\"\nprogram = [\"deploy\"]\n\
                        matches = [\"deploy it\"]\nnot_matches = [\"echo deploy\"]\n";

    #[test]
    fn rules_are_read_with_their_lines() {
        let config = config_of_one_file("c.toml", RULE).unwrap();
        assert_eq!(config.policy.rule[0].name, "no-deploy");
        assert!(!config.policy.read_before_edit());
        assert_eq!(rule_lines(RULE), [6]);
        assert_eq!(rule_lines("plan = 1\n"), [0; 0]);
    }

    #[test]
    fn a_hook_reads_the_same_and_does_not_try_the_examples() {
        for text in ["", RULE, "\u{feff}plan = \"a.md\"\n[limits]\nturns = 4\n[[gate]]\nname = \"t\"\ncommand = \"make\"\n"] {
            assert_eq!(for_hook("c.toml", text).unwrap(), config_of_one_file("c.toml", text).unwrap());
        }
        let broken = RULE.replace("deploy it", "delpoy it");
        assert!(config_of_one_file("c.toml", &broken).is_err());
        assert_eq!(for_hook("c.toml", &broken).unwrap().policy.rule.len(), 1);
        for text in ["plan = 7\n", "plna = \"x\"\n", "[policy]\noff = [\"x\"]\n", "[[gate]]\nname = \"\"\ncommand = \"x\"\n", "["]
        {
            let problem = config_of_one_file("c.toml", text).unwrap_err().to_string();
            assert_eq!(for_hook("c.toml", text).unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn rules_that_cannot_work_are_faults_of_their_line() {
        let rule = "[[policy.rule]]\nname = \"x\"\nverdict = \"deny\"\nreason = \"r\"\n";
        for (text, said) in [
            ("[policy]\noff = [\"git-pusch\"]\n".to_owned(), "c.toml:2:8: no built-in rule is named `git-pusch`; did you mean"),
            (rule.to_owned(), "c.toml:1:1: rule `x` matches nothing"),
            (format!("{rule}program = [\"a\"]\nmatches = [\"b\"]\n"), "c.toml:6:11: rule `x` does not match its example `b`"),
            (format!("{rule}program = [\"a\"]\nnot_matches = [\"a\"]\n"), "c.toml:6:15: rule `x` matches `a`"),
            (format!("{rule}program = [\"a\"]\nread = [\"b\"]\n"), "c.toml:6:8: rule `x` mixes"),
            (format!("{rule}program = [\"a\"]\n{rule}program = [\"a\"]\n"), "c.toml:7:8: two rules are named `x`"),
            (
                format!("{rule}write = [\"**/*.{{pem,key\"]\n"),
                "c.toml:5:10: \"**/*.{pem,key\" is not a valid pattern: `{` is not closed",
            ),
            (format!("{rule}read = [\"a\", \"[z-a]\"]\n"), "c.toml:5:14: \"[z-a]\" is not a valid pattern: the range"),
            (format!("{rule}tools = [\"[x\"]\n"), "c.toml:5:10: \"[x\" is not a valid pattern"),
            ("[policy.tools]\n\"{X\" = \"deny\"\n".to_owned(), "c.toml:2:1: \"{X\" is not a valid pattern"),
            ("[policy]\nunknwon = \"deny\"\n".to_owned(), "c.toml:2:1: unknown key `unknwon` in `policy`"),
            ("[policy.tools]\nX = \"perhaps\"\n".to_owned(), "c.toml:2:5: `policy.tools.X` cannot be \"perhaps\""),
            ("[policy]\non_failure = \"x\"\n".to_owned(), "c.toml:2:14: `policy.on_failure` cannot be"),
        ] {
            let problem = config_of_one_file("c.toml", &text).unwrap_err().to_string();
            assert!(problem.starts_with(said), "{problem}\n{text}");
        }
    }
}
