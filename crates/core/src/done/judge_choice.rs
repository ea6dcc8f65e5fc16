//! Which judge to ask, according to the settings.

use super::{JudgeAgent, JudgeSettings};
use crate::agent::{AgentKind, Agents, PromptVia};
use crate::check::CommandSpec;

/// The judge selected by the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeChoice<'c> {
    Command {
        command: &'c CommandSpec,
        prompt: PromptVia,
    },
    /// A client in a separate session.
    Client(AgentKind),
    /// No judge can be asked, for this reason.
    Nobody {
        why: String,
    },
}

impl<'c> JudgeChoice<'c> {
    pub fn from_settings(settings: &'c JudgeSettings, agents: &'c Agents) -> Self {
        let agents_own = || agents.own_command().map(|run| (run, agents.command.prompt));
        let own = settings.command.as_ref().map(|command| (command, settings.prompt));
        let command = own.or_else(agents_own).filter(|(command, _)| !command.is_empty());
        match (settings.agent, command) {
            (JudgeAgent::Claude, _) => Self::Client(AgentKind::Claude),
            (JudgeAgent::Auto | JudgeAgent::Command, Some((command, prompt))) => Self::Command { command, prompt },
            (JudgeAgent::Auto, None) if agents.name == AgentKind::Claude => Self::Client(agents.name),
            (JudgeAgent::Auto, None) => Self::Nobody {
                why: format!("the agent {:?} cannot judge here: set `agent` or `command` in [done.judge]", agents.name.name()),
            },
            (JudgeAgent::Command, None) => {
                Self::Nobody { why: "the judge has no command: set `command` in [done.judge]".to_owned() }
            }
        }
    }

    /// The name used in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Client(kind) => kind.name(),
            Self::Nobody { .. } => "nobody",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_is_who_is_named_else_the_command_else_the_agent_of_runs() {
        let shell = |text: &str| CommandSpec::Shell(text.to_owned());
        for (agent, command, runs, run, expected) in [
            (JudgeAgent::Auto, None, AgentKind::Claude, None, "claude"),
            (JudgeAgent::Auto, Some("mine"), AgentKind::Claude, None, "command mine"),
            (JudgeAgent::Auto, None, AgentKind::Command, Some("theirs"), "command theirs"),
            (JudgeAgent::Auto, Some("mine"), AgentKind::Command, Some("theirs"), "command mine"),
            (JudgeAgent::Auto, None, AgentKind::Command, None, "nobody"),
            (JudgeAgent::Auto, None, AgentKind::Scripted, Some("theirs"), "nobody"),
            (JudgeAgent::Command, None, AgentKind::Claude, Some("theirs"), "nobody"),
            (JudgeAgent::Command, None, AgentKind::Command, Some("theirs"), "command theirs"),
            (JudgeAgent::Claude, None, AgentKind::Scripted, None, "claude"),
        ] {
            let settings = JudgeSettings { agent, command: command.map(shell), ..JudgeSettings::default() };
            let mut agents = Agents { name: runs, ..Agents::default() };
            agents.command.run = run.map(shell);
            let judge = JudgeChoice::from_settings(&settings, &agents);
            let said = match &judge {
                JudgeChoice::Command { command, .. } => format!("{} {}", judge.name(), command.display()),
                JudgeChoice::Client(_) | JudgeChoice::Nobody { .. } => judge.name().to_owned(),
            };
            assert_eq!(said, expected, "{agent:?} {command:?} {runs:?} {run:?}");
        }
    }
}
