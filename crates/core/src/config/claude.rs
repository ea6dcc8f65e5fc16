//! Which settings of the `claude` agent cannot work.

use super::diagnose::{Finding, Step};

use crate::agent::claude::ClaudeAgent;

/// Arguments that Verdone sets itself, or that would disable its guard, and what to do instead.
const OURS: [(&str, &str); 24] = [
    ("-p", "Verdone sets it itself"),
    ("--print", "Verdone sets it itself"),
    ("--input-format", "Verdone sets it itself"),
    ("--output-format", "Verdone sets it itself"),
    ("--verbose", "Verdone sets it itself"),
    ("--settings", "Verdone sets it itself; put yours into the client's settings file"),
    ("--session-id", "Verdone sets it itself"),
    ("--resume", "Verdone manages sessions itself"),
    ("-r", "Verdone manages sessions itself"),
    ("--continue", "Verdone manages sessions itself"),
    ("-c", "Verdone manages sessions itself"),
    ("--fork-session", "Verdone manages sessions itself"),
    ("--max-budget-usd", "Verdone sets it from its own limit"),
    ("--model", "set agent.claude.model"),
    ("--effort", "set agent.claude.effort"),
    ("--permission-mode", "set agent.claude.permission"),
    ("--dangerously-skip-permissions", "set agent.claude.permission = \"bypass\" if you must"),
    ("--allow-dangerously-skip-permissions", "set agent.claude.permission = \"bypass\" if you must"),
    ("--permission-prompt-tool", "Verdone's policy decides"),
    ("--bare", "it disables every guard"),
    ("--safe-mode", "it disables guards"),
    ("--worktree", "use verdone run --worktree"),
    ("-w", "use verdone run --worktree"),
    ("--", "Verdone sets the prompt itself"),
];

/// Variables that would disable the guard.
const UNSAFE_VARIABLES: [&str; 2] = ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"];

/// The first fault in settings of the right types.
pub(super) fn unusable(config: &ClaudeAgent) -> Option<Finding> {
    let fault = |mut way: Vec<Step>, message: String, hint: Option<String>| {
        let mut path = vec![Step::Key("agent".to_owned()), Step::Key("claude".to_owned())];
        path.append(&mut way);
        Some(Finding { path, on_key: false, message, hint })
    };
    let key = |text: &str| Step::Key(text.to_owned());
    if config.binary.trim().is_empty() || config.binary.contains('\0') {
        return fault(vec![key("binary")], "`agent.claude.binary` must be the name or path of a program".to_owned(), None);
    }
    let names = [
        ("model", &config.model),
        ("effort", &config.effort),
        ("escalate", &config.escalate),
        ("escalate_effort", &config.escalate_effort),
    ];
    for (name, value) in names {
        // The client would treat a leading dash as an option.
        if value.as_deref().is_some_and(|value| value.trim().is_empty() || value.starts_with('-') || value.contains('\0')) {
            return fault(vec![key(name)], format!("`agent.claude.{name}` must be a name"), None);
        }
    }
    if !(1..=100).contains(&config.context_share) {
        let message = "`agent.claude.context_share` must be a percentage from 1 to 100".to_owned();
        return fault(vec![key("context_share")], message, None);
    }
    if config.pause_at > 100 {
        let message = "`agent.claude.pause_at` must be a percentage from 0 to 100".to_owned();
        return fault(vec![key("pause_at")], message, Some("0 disables the pause".to_owned()));
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
    for (name, value) in &config.env {
        let way = || vec![key("env"), key(name)];
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return fault(way(), format!("{name:?} is not a valid variable"), None);
        }
        if UNSAFE_VARIABLES.contains(&name.as_str()) {
            return fault(way(), format!("{name} disables Verdone's guards"), None);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::agent::AgentKind;
    use crate::agent::claude::{ClaudePermission, HookWay, SessionMode};
    use crate::config::{Layer, resolve};

    #[test]
    fn every_setting_of_the_client_is_read() {
        let text = "[agent]\nname = \"claude\"\n[agent.claude]\nbinary = \"/opt/claude\"\nmodel = \"opus\"\neffort = \"high\"\n\
                    escalate = \"best\"\nescalate_effort = \"max\"\npermission = \"accept-edits\"\nargs = [\"--add-dir\", \"../lib\"]\ncontext_limit = 0\ncontext_share = 50\n\
                    pause_at = 95\n\
                    sessions = \"single\"\nhooks = \"exec\"\n[agent.claude.env]\nX = \"y\"\n";
        let config = resolve(&[Layer::from_toml("c.toml", text).unwrap()]).unwrap().config;
        let expected = ClaudeAgent {
            binary: "/opt/claude".to_owned(),
            model: Some("opus".to_owned()),
            effort: Some("high".to_owned()),
            escalate: Some("best".to_owned()),
            escalate_effort: Some("max".to_owned()),
            permission: ClaudePermission::AcceptEdits,
            args: vec!["--add-dir".to_owned(), "../lib".to_owned()],
            env: BTreeMap::from([("X".to_owned(), "y".to_owned())]),
            context_limit: 0,
            context_share: 50,
            pause_at: 95,
            sessions: SessionMode::Single,
            hooks: HookWay::Exec,
        };
        assert_eq!((config.agent.name, config.agent.claude), (AgentKind::Claude, expected));
    }

    #[test]
    fn settings_that_would_break_the_guard_or_the_pipe_are_refused_with_their_line() {
        for (text, said, hint) in [
            ("args = [\"--bare\"]", "c.toml:2:9: --bare cannot be used as an argument", "it disables every guard"),
            ("args = [\"--x\", \"--settings={}\"]", "c.toml:2:16: --settings cannot be", "Verdone sets it itself"),
            ("args = [\"--dangerously-skip-permissions\"]", "c.toml:2:9: --dangerously", "permission = \"bypass\""),
            ("args = [\"--model\", \"x\"]", "c.toml:2:9: --model cannot be", "set agent.claude.model"),
            ("model = \"--bare\"", "c.toml:2:9: `agent.claude.model` must be a name", ""),
            ("model = \"\"", "c.toml:2:9: `agent.claude.model` must be a name", ""),
            ("escalate = \"-x\"", "c.toml:2:12: `agent.claude.escalate` must be a name", ""),
            ("binary = \" \"", "c.toml:2:10: `agent.claude.binary` must be the name or path of a program", ""),
            ("context_share = 0", "c.toml:2:17: `agent.claude.context_share` must be a percentage", ""),
            ("context_share = 101", "c.toml:2:17: `agent.claude.context_share` must be a percentage", ""),
            ("pause_at = 101", "c.toml:2:12: `agent.claude.pause_at` must be a percentage", "0 disables"),
            ("env = { CLAUDE_CODE_SIMPLE = \"1\" }", "c.toml:2:30: CLAUDE_CODE_SIMPLE disables", ""),
            ("env = { \"A=B\" = \"1\" }", "c.toml:2:17: \"A=B\" is not a valid variable", ""),
            ("permission = \"bypas\"", "c.toml:2:14: `agent.claude.permission` cannot be \"bypas\"", "\"bypass\""),
            ("sesions = \"fresh\"", "c.toml:2:1: unknown key `sesions`", "`sessions`"),
        ] {
            let problem = Layer::from_toml("c.toml", &format!("[agent.claude]\n{text}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}\n{text}");
            assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{:?}\n{text}", problem.hint);
        }
    }
}
