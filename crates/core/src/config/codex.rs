//! Which settings of the `codex` agent cannot work.

use super::diagnose::{Finding, Step};

use crate::agent::codex::CodexAgent;

/// Arguments that Verdone sets itself, or that would disable its guard, and what to do instead.
const OURS: [(&str, &str); 14] = [
    ("app-server", "Verdone sets it itself"),
    ("exec", "Verdone uses `codex app-server`"),
    ("--model", "set agent.codex.model"),
    ("-m", "set agent.codex.model"),
    ("--cd", "Verdone sets the folder itself"),
    ("-C", "Verdone sets the folder itself"),
    ("--ask-for-approval", "Verdone's policy decides"),
    ("-a", "Verdone's policy decides"),
    ("--sandbox", "Verdone seals the workspace itself"),
    ("-s", "Verdone seals the workspace itself"),
    ("--full-auto", "Verdone's policy decides"),
    ("--yolo", "it disables the guard"),
    ("--dangerously-bypass-approvals-and-sandbox", "it disables the guard"),
    ("--dangerously-bypass-hook-trust", "Verdone's policy decides"),
];

/// The first fault in settings of the right types.
pub(super) fn unusable(config: &CodexAgent) -> Option<Finding> {
    let key = |text: &str| Step::Key(text.to_owned());
    let fault = |way: Vec<Step>, message: String, hint: Option<String>| {
        let path = [key("agent"), key("codex")].into_iter().chain(way).collect();
        Some(Finding { path, on_key: false, message, hint })
    };
    if config.command.trim().is_empty() || config.command.contains('\0') {
        return fault(vec![key("command")], "`agent.codex.command` must be the name or path of a program".to_owned(), None);
    }
    for (name, value) in [("model", &config.model), ("effort", &config.effort)] {
        if value.as_deref().is_some_and(|value| value.trim().is_empty() || value.contains('\0')) {
            return fault(vec![key(name)], format!("`agent.codex.{name}` must be a name"), None);
        }
    }
    if !(1..=100).contains(&config.context_share) {
        let message = "`agent.codex.context_share` must be a percentage from 1 to 100".to_owned();
        return fault(vec![key("context_share")], message, None);
    }
    for (n, argument) in config.args.iter().enumerate() {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        if let Some((_, instead)) = OURS.iter().find(|(ours, _)| *ours == name) {
            let message = format!("{name} cannot be used as an argument");
            return fault(vec![key("args"), Step::Index(n)], message, Some((*instead).to_owned()));
        }
        if argument.contains('\0') {
            return fault(vec![key("args"), Step::Index(n)], "an argument cannot contain a NUL byte".to_owned(), None);
        }
    }
    let broken = |(name, value): &(&String, &String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    let (name, _) = config.env.iter().find(broken)?;
    fault(vec![key("env"), key(name)], format!("{name:?} is not a valid variable"), None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::agent::AgentKind;
    use crate::agent::claude::SessionMode;
    use crate::config::{Layer, resolve};

    #[test]
    fn every_setting_of_the_client_is_read() {
        let text = "[agent]\nname = \"codex\"\n[agent.codex]\ncommand = \"/opt/codex\"\nmodel = \"gpt\"\neffort = \"high\"\n\
                    args = [\"-c\", \"a=b\"]\ncontext_limit = 0\ncontext_share = 50\nsessions = \"single\"\n[agent.codex.env]\nX = \"y\"\n";
        let config = resolve(&[Layer::from_toml("c.toml", text).unwrap()]).unwrap().config;
        let expected = CodexAgent {
            command: "/opt/codex".to_owned(),
            model: Some("gpt".to_owned()),
            effort: Some("high".to_owned()),
            args: vec!["-c".to_owned(), "a=b".to_owned()],
            env: BTreeMap::from([("X".to_owned(), "y".to_owned())]),
            context_limit: 0,
            context_share: 50,
            sessions: SessionMode::Single,
        };
        assert_eq!((config.agent.name, config.agent.codex), (AgentKind::Codex, expected));
    }

    #[test]
    fn settings_that_would_break_the_guard_or_the_pipe_are_refused_with_their_line() {
        for (text, said) in [
            ("args = [\"--yolo\"]", "c.toml:2:9: --yolo cannot be used as an argument"),
            ("args = [\"-c\", \"app-server\"]", "c.toml:2:15: app-server cannot be"),
            ("model = \"\"", "c.toml:2:9: `agent.codex.model` must be a name"),
            ("command = \" \"", "c.toml:2:11: `agent.codex.command` must be the name or path of a program"),
            ("context_share = 0", "c.toml:2:17: `agent.codex.context_share` must be a percentage"),
        ] {
            let problem = Layer::from_toml("c.toml", &format!("[agent.codex]\n{text}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}\n{text}");
        }
    }
}
