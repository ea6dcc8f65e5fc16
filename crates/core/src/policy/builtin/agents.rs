//! Agents that an agent starts from the command line, without a guard, a limit or supervision.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::Arguments;
use crate::policy::matcher::Certainty;
use verdone_shell::Simple;

const INSTEAD: &str = "do the work in this session, or with the client's own subagents, which are guarded like it";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = deny(
        Family::Tools,
        vec![Entry {
            name: "unguarded-agent",
            matcher: Matcher::Simple(|simple| starts(simple, |agent| agent.unguarded)),
            reason: "this starts another agent that may do anything without asking",
            alternative: INSTEAD,
            matches: &[
                "claude -p --dangerously-skip-permissions 'fix it'",
                "claude --permission-mode=bypassPermissions",
                "codex exec --dangerously-bypass-approvals-and-sandbox x",
                "npx -y @google/gemini-cli@latest --yolo",
                "sh -c 'gemini -y -p x'",
            ],
            not_matches: &[
                "claude --version",
                "claude --permission-mode plan",
                "codex --help",
                "gemini mcp list",
                "npm install --yes codex",
                "echo claude --dangerously-skip-permissions",
            ],
        }],
    );
    // In their own sessions, users may let one agent ask another.
    rules.extend(deny(
        Family::Itself,
        vec![Entry {
            name: "nested-agent",
            matcher: Matcher::Simple(|simple| starts(simple, |agent| agent.headless)),
            reason: "this starts another agent, whose work and cost the run does not see",
            alternative: INSTEAD,
            matches: &[
                "claude -p 'fix it'",
                "codex exec 'fix it'",
                "npx @openai/codex exec x",
                "opencode run x",
                "env A=1 gemini -p x",
            ],
            not_matches: &["claude --help", "claude mcp list", "codex --version", "opencode models", "grep -p claude x"],
        }],
    ));
    rules
}

/// How one agent is started.
struct Agent {
    names: &'static [&'static str],
    /// Subcommands and options that make it run without a person.
    headless: Marks,
    /// Subcommands and options that disable its permission prompts.
    unguarded: Marks,
}

/// At least one of these must be present.
#[derive(Clone, Copy)]
struct Marks {
    subcommands: &'static [&'static str],
    options: &'static [&'static str],
    values: &'static [(&'static [&'static str], &'static str)],
}

const NONE: Marks = Marks { subcommands: &[], options: &[], values: &[] };

const AGENTS: &[Agent] = &[
    Agent {
        names: &["claude", "claude-code"],
        headless: Marks { options: &["-p", "--print"], ..NONE },
        unguarded: Marks {
            options: &["--dangerously-skip-permissions"],
            values: &[(&["--permission-mode"], "bypassPermissions")],
            ..NONE
        },
    },
    Agent {
        names: &["codex"],
        headless: Marks { subcommands: &["exec", "e"], ..NONE },
        unguarded: Marks {
            options: &["--dangerously-bypass-approvals-and-sandbox", "--yolo"],
            values: &[(&["--sandbox", "-s"], "danger-full-access")],
            ..NONE
        },
    },
    Agent {
        names: &["gemini", "gemini-cli", "qwen", "qwen-code"],
        headless: Marks { options: &["-p", "--prompt"], ..NONE },
        unguarded: Marks { options: &["-y", "--yolo"], values: &[(&["--approval-mode"], "yolo")], ..NONE },
    },
    Agent {
        names: &["cursor-agent"],
        headless: Marks { options: &["-p", "--print"], ..NONE },
        unguarded: Marks { options: &["-f", "--force", "--yolo"], ..NONE },
    },
    Agent {
        names: &["copilot"],
        headless: Marks { options: &["-p", "--prompt"], ..NONE },
        unguarded: Marks { options: &["--allow-all-tools", "--allow-all", "--yolo"], ..NONE },
    },
    Agent { names: &["opencode", "goose"], headless: Marks { subcommands: &["run"], ..NONE }, unguarded: NONE },
    Agent {
        names: &["crush"],
        headless: Marks { subcommands: &["run"], ..NONE },
        unguarded: Marks { options: &["-y", "--yolo"], ..NONE },
    },
    Agent {
        names: &["droid"],
        headless: Marks { subcommands: &["exec"], ..NONE },
        unguarded: Marks { options: &["--skip-permissions-unsafe"], ..NONE },
    },
    Agent {
        names: &["amp"],
        headless: Marks { options: &["-x", "--execute"], ..NONE },
        unguarded: Marks { options: &["--dangerously-allow-all"], ..NONE },
    },
    Agent {
        names: &["aider"],
        headless: Marks { options: &["-m", "--message", "--message-file"], ..NONE },
        unguarded: Marks { options: &["--yes-always"], ..NONE },
    },
];

fn starts(simple: &Simple, marks: fn(&Agent) -> Marks) -> Certainty {
    let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
    let base = program.base();
    // `npx @google/gemini-cli@latest`
    let name = base.literal().and_then(|name| name.split('@').next()).unwrap_or_default();
    let Some(marks) = AGENTS.iter().find(|agent| agent.names.contains(&name)).map(marks) else { return Certainty::No };
    let arguments = Arguments::new(rest);
    let option = || marks.options.iter().any(|option| is_given(rest, option));
    let value = || {
        let is_set = |(names, value): &(&[&str], &str)| arguments.value(names).iter().any(|word| word.literal() == Some(value));
        marks.values.iter().any(is_set)
    };
    let subcommand = || {
        let valued = ["-m", "--model", "-C", "--cd", "-c", "--config", "-p", "--profile", "-s", "--sandbox", "-a"];
        let first = arguments.operands(&valued).first().and_then(|word| word.literal());
        first.is_some_and(|first| marks.subcommands.contains(&first))
    };
    let helps = arguments.any(&["--help", "-h", "--version"]);
    if !helps && (option() || value() || subcommand()) { Certainty::Yes } else { Certainty::No }
}

/// An option as a word, or with a value after `=`.
fn is_given(words: &[verdone_shell::Word], option: &str) -> bool {
    words.iter().any(|word| word.prefix().split('=').next() == Some(option))
}
