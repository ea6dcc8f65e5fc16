//! Clients that are started once for each turn, with the arguments that make them work alone. Verdone sees only their output: the seal
//! and the checks protect the project, not a guard.

use super::{AgentKind, CommandAgent, PromptVia};
use crate::check::CommandSpec;

/// One client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub kind: AgentKind,
    /// The name for people.
    pub title: &'static str,
    pub program: &'static str,
    arguments: &'static [&'static str],
    prompt: PromptVia,
    /// The pattern of files that it leaves in the project, which git should ignore.
    pub leaves: Option<&'static str>,
}

const PRESETS: [Preset; 3] = [
    Preset {
        kind: AgentKind::Aider,
        title: "aider",
        program: "aider",
        // It must not commit, ask, change .gitignore or keep the conversation in the project.
        arguments: &[
            "--yes-always",
            "--no-auto-commits",
            "--no-gitignore",
            "--no-check-update",
            "--no-show-release-notes",
            "--no-pretty",
            "--no-stream",
            "--chat-history-file",
            "/dev/null",
            "--input-history-file",
            "/dev/null",
            "--message-file",
        ],
        prompt: PromptVia::File,
        leaves: Some(".aider*"),
    },
    Preset {
        kind: AgentKind::Goose,
        title: "Goose",
        program: "goose",
        arguments: &["run", "--no-session", "--instructions"],
        prompt: PromptVia::File,
        leaves: None,
    },
    Preset {
        kind: AgentKind::Cursor,
        title: "Cursor CLI",
        program: "cursor-agent",
        arguments: &["--print", "--force", "--output-format", "text"],
        prompt: PromptVia::Argument,
        leaves: None,
    },
];

/// All presets.
pub fn presets() -> impl Iterator<Item = &'static Preset> {
    PRESETS.iter()
}

impl Preset {
    /// The preset of an agent, if it has one.
    pub fn for_kind(kind: AgentKind) -> Option<&'static Self> {
        presets().find(|preset| preset.kind == kind)
    }

    /// The command that starts it.
    pub fn command(&self) -> CommandAgent {
        let words = std::iter::once(&self.program).chain(self.arguments).map(|word| (*word).to_owned());
        CommandAgent { run: Some(CommandSpec::Argv(words.collect())), prompt: self.prompt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_the_last_word_of_a_command_that_asks_nothing() {
        for preset in presets() {
            let command = preset.command();
            let Some(CommandSpec::Argv(words)) = command.run else { panic!("{preset:?}") };
            assert_eq!(words[0], preset.program);
            match command.prompt {
                PromptVia::File => assert!(words.last().unwrap().starts_with("--"), "{words:?}"),
                PromptVia::Argument => {}
                PromptVia::Stdin => panic!("{preset:?}"),
            }
        }
    }

    #[test]
    fn aider_neither_commits_nor_writes_its_history_into_the_project() {
        let command = Preset::for_kind(AgentKind::Aider).unwrap().command();
        let text = command.run.unwrap().display();
        for needed in ["--yes-always", "--no-auto-commits", "--no-gitignore", "--chat-history-file /dev/null", "--message-file"] {
            assert!(text.contains(needed), "{needed}: {text}");
        }
    }
}
