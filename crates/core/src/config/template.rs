//! The text of a new `.verdone/config.toml`: every key with its meaning and default as comments, and what `init` detected as active lines.

use serde_json::Value;
use verdone_text::sentence::capitalise;

use super::shape::{Field, Shape};
use crate::check::CommandSpec;
use crate::config::detect::Proposal;

const HEAD: &str = "\
# Verdone's settings. Every key is listed with its default, commented out: remove the \"#\" to change it.
# `verdone config show` prints the effective settings and where they come from.
";

/// The file's text. `plan` and `gates` become active lines; everything else is a comment.
pub fn template(plan: Option<&str>, gates: &[Proposal]) -> String {
    let mut out = HEAD.to_owned();
    table(&Shape::of_config(), "", plan, &mut out);
    out.push('\n');
    comment("Custom rules for what agents may do, each in a table [[policy.rule]]; docs/config.md has its keys.", &mut out);
    out.push_str(RULE);
    out.push('\n');
    comment(
        "Custom commands that run after the agent uses a tool, each in a table [[after_tool]]; docs/config.md has its keys.",
        &mut out,
    );
    out.push_str(AFTER_TOOL);
    out.push('\n');
    comment("Custom conditions, each in a table [[done.condition]]; docs/config.md has its keys.", &mut out);
    out.push_str(CONDITION);
    out.push('\n');
    comment("Checks that every story must pass, by stage: correctness, quality, security, adversarial.", &mut out);
    comment("A failing stage stops the later ones. A command is a string for `sh -c`, or a list of words.", &mut out);
    comment("The key `timeout` of a gate replaces limits.check_time for that gate; docs/config.md has its other keys.", &mut out);
    if gates.is_empty() {
        out.push_str(EXAMPLE);
    }
    for proposal in gates {
        out.push('\n');
        comment(&proposal.because, &mut out);
        out.push_str(&gate(proposal));
    }
    out
}

const RULE: &str = "\
#
# [[policy.rule]]
# name = \"no-deploy\"
# verdict = \"deny\"
# reason = \"deploying is done by the pipeline\"
# program = [\"deploy\"]
# matches = [\"./deploy staging\"]
";

const AFTER_TOOL: &str = "\
#
# [[after_tool]]
# tools = [\"Edit\", \"Write\"]
# paths = [\"**/*.rs\"]
# run = [\"rustfmt\", \"{file}\"]
";

const CONDITION: &str = "\
#
# [[done.condition]]
# name = \"page_seen\"
# prover = \"claim\"
# todo = \"Look at the page in a browser.\"
";

const EXAMPLE: &str = "\
#
# [[gate]]
# name = \"test\"
# stage = \"correctness\"
# command = \"make test\"
# timeout = \"20m\"
";

/// Writes keys with values first, because TOML requires them before tables.
fn table(shape: &Shape, path: &str, plan: Option<&str>, out: &mut String) {
    let Shape::Table(fields) = shape else { return };
    for field in fields.iter().filter(|field| is_value(&field.shape)) {
        if path.is_empty() || !out.ends_with("]\n") {
            out.push('\n');
        }
        comment(&meaning(field), out);
        for choice in choices(field) {
            comment(&choice, out);
        }
        match plan {
            Some(plan) if path.is_empty() && field.key == "plan" => out.push_str(&["plan = ", &quote(plan), "\n"].concat()),
            Some(_) | None => out.push_str(&["# ", &field.key, " = ", &shown(field), "\n"].concat()),
        }
    }
    for field in fields.iter().filter(|field| matches!(field.shape, Shape::Table(_))) {
        let path = if path.is_empty() { field.key.clone() } else { format!("{path}.{}", field.key) };
        out.push('\n');
        comment(&field.meaning, out);
        out.push_str(&["[", &path, "]\n"].concat());
        table(&field.shape, &path, plan, out);
    }
}

fn is_value(shape: &Shape) -> bool {
    match shape {
        Shape::Table(_) => false,
        Shape::List(item) => matches!(item.as_ref(), Shape::Text),
        Shape::Map(_)
        | Shape::WordOr { .. }
        | Shape::Command
        | Shape::Duration
        | Shape::Choice(_)
        | Shape::Whole { .. }
        | Shape::Number
        | Shape::Text
        | Shape::Flag
        | Shape::Any => true,
    }
}

fn meaning(field: &Field) -> String {
    match &field.shape {
        Shape::Choice(choices) if choices.iter().all(|choice| choice.meaning.is_empty()) => {
            format!("{} {}.", field.meaning, capitalise(&field.shape.describe()))
        }
        Shape::Choice(_)
        | Shape::Table(_)
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::WordOr { .. }
        | Shape::Command
        | Shape::Duration
        | Shape::Whole { .. }
        | Shape::Number
        | Shape::Text
        | Shape::Flag
        | Shape::Any => field.meaning.clone(),
    }
}

/// One line for each choice that needs an explanation.
fn choices(field: &Field) -> Vec<String> {
    let Some(choices) = field.shape.choices() else { return Vec::new() };
    let told = choices.iter().filter(|choice| !choice.meaning.is_empty());
    told.map(|choice| format!("- \"{}\": {}", choice.name, choice.meaning.replace('*', ""))).collect()
}

/// The default, or an example if the key has none.
fn shown(field: &Field) -> String {
    match &field.default {
        Some(Value::String(text)) => quote(text),
        Some(value) if !value.is_null() => value.to_string(),
        Some(_) | None => match field.key.as_str() {
            "plan" => quote("PLAN.md"),
            "run" => quote("./agent.sh"),
            "script" => quote("script.json"),
            "model" => quote("opus"),
            "effort" => quote("high"),
            "complexity" => "5".to_owned(),
            "command" => quote("./ask.sh"),
            "state" => quote("~/.local/state/verdone"),
            "on_review" => quote("stack"),
            _ => quote(""),
        },
    }
}

fn gate(proposal: &Proposal) -> String {
    let gate = &proposal.gate;
    let command = match &gate.command {
        CommandSpec::Shell(text) => quote(text),
        CommandSpec::Argv(words) => format!("[{}]", words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(", ")),
    };
    format!("[[gate]]\nname = {}\nstage = {}\ncommand = {command}\n", quote(&gate.name), quote(gate.stage.name()))
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn comment(text: &str, out: &mut String) {
    const WIDTH: usize = 98;
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + word.len() + 1 > WIDTH && line.len() > 1 {
            out.push_str(&line);
            out.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        // A file's content must not break out of a comment line.
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Gate, Stage};
    use crate::config::{Config, Layer, flatten, resolve};

    fn proposal(name: &str, stage: Stage, command: &str) -> Proposal {
        let gate = Gate::new(name, stage, CommandSpec::Shell(command.to_owned()));
        Proposal { gate, because: "Found in\nCargo.toml".to_owned() }
    }

    #[test]
    fn the_template_parses_into_defaults_and_what_was_found() {
        let gates = [
            proposal("test", Stage::Correctness, "cargo test"),
            proposal("odd", Stage::Quality, "printf '%s\\n' \"a # b\"\techo é"),
        ];
        let text = template(Some("docs/my \"plan\".md"), &gates);
        let config = resolve(&[Layer::from_toml("config.toml", &text).unwrap()]).unwrap().config;
        let expected = Config {
            plan: Some("docs/my \"plan\".md".to_owned()),
            gate: gates.iter().map(|proposal| proposal.gate.clone()).collect(),
            ..Config::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn removing_the_comment_marks_gives_a_config_of_defaults_and_every_key() {
        let uncommented: String = template(None, &[])
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) => {
                    format!("{rest}\n")
                }
                Some(_) | None => format!("{line}\n"),
            })
            .collect();
        let layer = Layer::from_toml("config.toml", &uncommented).unwrap_or_else(|problem| panic!("{problem}\n{uncommented}"));
        let mut config = resolve(&[layer]).unwrap().config;
        assert_eq!((config.gate.len(), config.policy.rule.len(), config.after_tool.len()), (1, 1, 1));
        for (key, value) in flatten(&config) {
            assert!(!value.is_null(), "{key} is not in the template");
        }
        config.plan = None;
        (config.agent.claude.model, config.agent.claude.effort) = (None, None);
        config.agent.command.run = None;
        config.agent.scripted.script = None;
        config.gate.clear();
        config.policy.rule.clear();
        config.after_tool.clear();
        config.done.condition.clear();
        (config.done.complexity, config.done.judge.command, config.done.ci.command) = (None, None, None);
        config.done.judge.model = None;
        (config.workspace.state, config.run.on_review) = (None, None);
        assert_eq!(config, Config::default());
    }

    proptest::proptest! {
        #[test]
        fn whatever_was_found_is_read_back(plan in "\\PC{1,30}", command in "\\PC{0,30}[a-z]", because in "(?s).{0,60}") {
            let mut found = proposal("t", Stage::Security, &command);
            found.because = because;
            let text = template(Some(&plan), &[found]);
            let config = resolve(&[Layer::from_toml("c", &text).unwrap()]).unwrap().config;
            proptest::prop_assert_eq!(config.plan, Some(plan));
            proptest::prop_assert_eq!(config.gate[0].command.display(), command);
        }
    }

    #[test]
    fn lines_fit_a_narrow_window() {
        for line in template(None, &[]).lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
