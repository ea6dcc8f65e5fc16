//! Which settings of agents that speak ACP cannot work.

use super::diagnose::{Finding, Step};

use crate::agent::Agents;
use crate::agent::acp::{AcpAgent, profiles};
use crate::check::CommandSpec;

/// Arguments that Verdone sets itself, or that would disable its guard, and what to do instead.
const OURS: [(&str, &str); 13] = [
    ("--acp", "Verdone sets it itself"),
    ("--experimental-acp", "Verdone sets it itself"),
    ("--model", "set `model` beside it"),
    ("-m", "set `model` beside it"),
    ("--yolo", "it disables the guard"),
    ("-y", "it disables the guard"),
    ("--approval-mode", "Verdone's policy decides"),
    ("--allowed-tools", "Verdone's policy decides"),
    ("--allow-all", "it disables the guard"),
    ("--allow-all-tools", "it disables the guard"),
    ("--allow-all-paths", "Verdone's policy decides"),
    ("--allow-tool", "Verdone's policy decides"),
    ("--policy", "Verdone's policy decides"),
];

/// The first fault in settings of the right types.
pub(super) fn unusable(agents: &Agents) -> Option<Finding> {
    profiles().filter_map(|profile| agents.acp_agent(profile.kind)).find_map(|(profile, config)| {
        let (way, message, hint) = fault_in(config, profile.kind.name())?;
        let key = |text: &str| Step::Key(text.to_owned());
        let path = [key("agent"), key(profile.kind.name())].into_iter().chain(way).collect();
        Some(Finding { path, on_key: false, message, hint })
    })
}

type Fault = (Vec<Step>, String, Option<String>);

fn fault_in(config: &AcpAgent, name: &str) -> Option<Fault> {
    let key = |text: &str| Step::Key(text.to_owned());
    if config.command.as_ref().is_some_and(CommandSpec::is_empty) {
        return Some((vec![key("command")], format!("`agent.{name}.command` is empty"), None));
    }
    if config.model.as_deref().is_some_and(|model| model.trim().is_empty() || model.starts_with('-') || model.contains('\0')) {
        return Some((vec![key("model")], format!("`agent.{name}.model` must be a name"), None));
    }
    if !(1..=100).contains(&config.context_share) {
        let message = format!("`agent.{name}.context_share` must be a percentage from 1 to 100");
        return Some((vec![key("context_share")], message, None));
    }
    for (n, argument) in config.args.iter().enumerate() {
        let option = argument.split_once('=').map_or(argument.as_str(), |(option, _)| option);
        if let Some((_, instead)) = OURS.iter().find(|(ours, _)| *ours == option) {
            let message = format!("{option} cannot be used as an argument");
            return Some((vec![key("args"), Step::Index(n)], message, Some((*instead).to_owned())));
        }
        if argument.contains('\0') {
            return Some((vec![key("args"), Step::Index(n)], "an argument cannot contain a NUL byte".to_owned(), None));
        }
    }
    let broken = |(name, value): &(&String, &String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    let (variable, _) = config.env.iter().find(broken)?;
    Some((vec![key("env"), key(variable)], format!("{variable:?} is not a valid variable"), None))
}

#[cfg(test)]
mod tests {
    use crate::agent::AgentKind;
    use crate::config::{Layer, resolve};

    #[test]
    fn every_client_has_its_own_settings() {
        let text =
            "[agent]\nname = \"opencode\"\n[agent.opencode]\ncommand = \"/opt/opencode\"\n[agent.gemini]\nmodel = \"pro\"\n";
        let config = resolve(&[Layer::from_toml("c.toml", text).unwrap()]).unwrap().config;
        assert_eq!(config.agent.name, AgentKind::Opencode);
        assert_eq!(config.agent.gemini.model.as_deref(), Some("pro"));
        let client = config.agent.pipe_client(std::path::Path::new("/repo")).unwrap();
        assert_eq!(client.launch.argv, ["/opt/opencode", "acp"]);
    }

    #[test]
    fn settings_that_cannot_work_are_found_with_their_place() {
        for (text, message) in [
            ("args = [\"--yolo\"]", "--yolo cannot be used"),
            ("args = [\"-d\", \"--approval-mode=yolo\"]", "--approval-mode cannot be used"),
            ("model = \"--yolo\"", "`agent.gemini.model` must be a name"),
            ("context_share = 0", "`agent.gemini.context_share` must be"),
            ("command = \"\"", "`agent.gemini.command` is empty"),
        ] {
            let problem = Layer::from_toml("c.toml", &format!("[agent.gemini]\n{text}\n")).unwrap_err();
            assert!(problem.to_string().contains(message) && problem.to_string().contains("c.toml:2:"), "{problem}");
        }
    }
}
