//! The text of a new `.verdone/config.toml`: the few lines that matter. All other keys are in the schema and in docs/config.md.

use crate::agent::AgentKind;
use crate::check::CommandSpec;
use crate::config::detect::Proposal;

const HEAD: &str = "\
# Verdone's settings. All keys with their defaults: docs/config.md, or `verdone config schema`.
# `verdone config show` prints the effective settings and where they come from.
";

const COMMAND_AGENT: &str = "\
# The agent: a command that gets the prompt on its standard input.
[agent.command]
# run = \"./agent.sh\"
";

const EXAMPLE_GATE: &str = "\
# Checks that every story must pass:
#
# [[gate]]
# name = \"test\"
# stage = \"correctness\"
# command = \"make test\"
";

/// The file's text.
pub fn template(plan: Option<&str>, agent: Option<AgentKind>, gates: &[Proposal]) -> String {
    let mut out = HEAD.to_owned();
    if let Some(plan) = plan {
        out.push_str(&format!("plan = {}\n", quote(plan)));
    }
    out.push('\n');
    match agent {
        Some(kind) => {
            out.push_str(&format!("[agent]\nname = {}\n", quote(kind.name())));
            out.push_str(&limited_network(kind));
        }
        None => out.push_str(COMMAND_AGENT),
    }
    if gates.is_empty() {
        out.push('\n');
        out.push_str(EXAMPLE_GATE);
    }
    for proposal in gates {
        out.push('\n');
        comment(&proposal.because, &mut out);
        out.push_str(&gate(proposal));
    }
    out
}

/// How to limit what the agent can reach, with the hosts that it needs itself.
fn limited_network(agent: AgentKind) -> String {
    let hosts: &[&str] = match agent.name() {
        "claude" => &["api.anthropic.com", "platform.claude.com"],
        _ => &["api.example.com"],
    };
    let hosts: Vec<String> = hosts.iter().map(|host| quote(host)).collect();
    format!("# To limit its network: [seal] agent_network = [{}]\n", hosts.join(", "))
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
    use crate::config::{Config, Layer, resolve};

    fn proposal(name: &str, stage: Stage, command: &str) -> Proposal {
        let gate = Gate::new(name, stage, CommandSpec::Shell(command.to_owned()));
        Proposal { gate, because: "Found in\nCargo.toml".to_owned() }
    }

    fn read_back(text: &str) -> Config {
        resolve(&[Layer::from_toml("config.toml", text).unwrap()]).unwrap().config
    }

    #[test]
    fn the_template_parses_into_defaults_and_what_was_found() {
        let gates = [
            proposal("test", Stage::Correctness, "cargo test"),
            proposal("odd", Stage::Quality, "printf '%s\\n' \"a # b\"\techo é"),
        ];
        let text = template(Some("docs/my \"plan\".md"), Some(AgentKind::Claude), &gates);
        let mut expected = Config {
            plan: Some("docs/my \"plan\".md".to_owned()),
            gate: gates.iter().map(|proposal| proposal.gate.clone()).collect(),
            ..Config::default()
        };
        expected.agent.name = AgentKind::Claude;
        assert_eq!(read_back(&text), expected);
        assert_eq!(read_back(&template(None, None, &[])), Config::default());
    }

    #[test]
    fn it_is_short_and_fits_a_narrow_window() {
        let text = template(Some("PLAN.md"), Some(AgentKind::Claude), &[proposal("test", Stage::Correctness, "cargo test")]);
        assert!(text.lines().count() <= 15, "{text}");
        for line in text.lines().chain(template(None, None, &[]).lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_was_found_is_read_back(plan in "\\PC{1,30}", command in "\\PC{0,30}[a-z]", because in "(?s).{0,60}") {
            let mut found = proposal("t", Stage::Security, &command);
            found.because = because;
            let config = read_back(&template(Some(&plan), None, &[found]));
            proptest::prop_assert_eq!(config.plan, Some(plan));
            proptest::prop_assert_eq!(config.gate[0].command.display(), command);
        }
    }
}
