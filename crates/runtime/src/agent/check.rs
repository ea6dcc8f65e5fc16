//! Whether the configured agent can be started.

use std::path::Path;

use verdone_core::agent::preset::Preset;
use verdone_core::agent::{AgentKind, Driver};
use verdone_core::check::CommandSpec;
use verdone_core::config::{ClaudePermission, Config, ScriptedAgent};

use super::acp_check::check_acp;
use super::pipe::check_codex;
use super::{VERSION_TIME, check_claude};
use crate::base::finding::Finding;
use crate::process::missing_program;

/// Whether the agent of runs can be started.
pub fn check(config: &Config, root: &Path) -> Finding {
    let agent = &config.agent;
    if let Some((profile, settings)) = agent.acp_agent(agent.name) {
        return check_acp(profile, settings, root);
    }
    if let Some(preset) = Preset::for_kind(agent.name) {
        return check_preset(preset, root);
    }
    match agent.name.driver() {
        Driver::Claude => check_claude(&agent.claude, root, VERSION_TIME),
        Driver::Pipe => check_codex(&agent.codex, root),
        Driver::Scripted => check_script(&agent.scripted, root),
        Driver::Command => check_command(agent.command.run.as_ref(), root),
    }
}

/// Whether a client that is started for each turn is there, and leaves nothing in commits.
fn check_preset(preset: &Preset, root: &Path) -> Finding {
    let command = preset.command();
    if let Some(program) = command.run.as_ref().and_then(|command| missing_program(command, root)) {
        let hint = format!("install {}, or choose another agent", preset.title);
        return Finding::bad("agent", format!("{program}: no such program"), [hint.as_str()]);
    }
    let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    match preset.leaves {
        Some(pattern) if !ignored.lines().any(|line| line.trim() == pattern) => {
            let message = format!("{} leaves files in the project, which would be committed", preset.title);
            Finding { hints: vec![format!("add {pattern} to .gitignore")], ..Finding::warning("agent", message) }
        }
        Some(_) | None => Finding::good("agent", format!("{}, started for each turn", preset.title)),
    }
}

/// Whether a client can answer the judge's questions. It reads only, so its permission setting does not matter.
pub(crate) fn check_judge(kind: AgentKind, config: &Config, root: &Path) -> Finding {
    let mut config = config.clone();
    config.agent.name = kind;
    config.agent.claude.permission = ClaudePermission::Policy;
    check(&config, root)
}

fn check_script(agent: &ScriptedAgent, root: &Path) -> Finding {
    match &agent.script {
        None => Finding::bad("agent", "the scripted agent has no script", ["set agent.scripted.script"]),
        Some(script) if root.join(script).is_file() => Finding::good("agent", format!("scripted: {script}")),
        Some(script) => Finding::bad("agent", format!("{script}: no such script"), ["check agent.scripted.script"]),
    }
}

fn check_command(command: Option<&CommandSpec>, root: &Path) -> Finding {
    let Some(command) = command else {
        let hints = ["verdone run --agent-command 'CMD'", "or set agent.command.run in .verdone/config.toml"];
        return Finding::bad("agent", "no agent to run", hints);
    };
    if command.is_empty() {
        return Finding::bad("agent", "the agent's command is empty", []);
    }
    match missing_program(command, root) {
        Some(program) if root.join(&program).is_file() && program.contains('/') => {
            let hint = format!("chmod +x {program}");
            Finding::bad("agent", format!("{program} is not executable"), [hint.as_str()])
        }
        Some(program) => {
            let message = format!("{program}: no such program");
            Finding::bad("agent", message, ["install it, or correct the agent's command"])
        }
        None => Finding::good("agent", command.display()),
    }
}
