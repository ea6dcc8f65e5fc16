//! Agents that an agent starts from the command line, without a guard, a limit or supervision.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::Arguments;
use crate::policy::matcher::Certainty;
use verdone_shell::{Simple, Word};

const INSTEAD: &str = "do the work in this session, or with the client's own subagents, which are guarded like it";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = deny(
        Family::Tools,
        vec![Entry {
            name: "unguarded-agent",
            matcher: Matcher::Simple(|simple| starts(simple, Agent::is_unguarded)),
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
            matcher: Matcher::Simple(|simple| starts(simple, Agent::works)),
            reason: "this starts another agent, whose work and cost the run does not see",
            alternative: INSTEAD,
            matches: &[
                "claude -p 'fix it'",
                "codex exec 'fix it'",
                "npx @openai/codex exec x",
                "pnpm dlx opencode-ai run x",
                "bunx @github/copilot < prompt.txt",
                "env A=1 gemini -p x",
            ],
            not_matches: &[
                "claude --help",
                "claude mcp list",
                "codex --version",
                "opencode models",
                "goose up",
                "grep -p claude x",
            ],
        }],
    ));
    rules
}

/// How one agent is started.
struct Agent {
    /// The names of its program and of its packages, without scopes.
    names: &'static [&'static str],
    /// Subcommands that start no work. `None` for a name that other programs have, too: there, only the marks count.
    harmless: Option<&'static [&'static str]>,
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
        harmless: Some(&["mcp", "config", "doctor", "plugin", "auth", "update", "install", "help"]),
        headless: Marks { options: &["-p", "--print"], ..NONE },
        unguarded: Marks {
            options: &["--dangerously-skip-permissions"],
            values: &[(&["--permission-mode"], "bypassPermissions")],
            ..NONE
        },
    },
    Agent {
        names: &["codex"],
        harmless: Some(&["mcp", "login", "logout", "completion", "features", "plugin", "doctor", "help"]),
        headless: Marks { subcommands: &["exec", "e"], ..NONE },
        unguarded: Marks {
            options: &["--dangerously-bypass-approvals-and-sandbox", "--yolo"],
            values: &[(&["--sandbox", "-s"], "danger-full-access")],
            ..NONE
        },
    },
    Agent {
        names: &["gemini", "gemini-cli", "qwen", "qwen-code"],
        harmless: Some(&["mcp", "extensions", "extension", "skills", "skill", "hooks", "auth"]),
        headless: Marks { options: &["-p", "--prompt"], ..NONE },
        unguarded: Marks { options: &["-y", "--yolo"], values: &[(&["--approval-mode"], "yolo")], ..NONE },
    },
    Agent {
        names: &["cursor-agent"],
        harmless: Some(&["login", "logout", "status", "whoami", "about", "models", "mcp", "ls", "update", "help"]),
        headless: Marks { options: &["-p", "--print"], ..NONE },
        unguarded: Marks { options: &["-f", "--force", "--yolo"], ..NONE },
    },
    Agent {
        names: &["copilot"],
        harmless: Some(&["help", "version", "login", "logout", "plugin", "mcp", "update"]),
        headless: Marks { options: &["-p", "--prompt"], ..NONE },
        unguarded: Marks { options: &["--allow-all-tools", "--allow-all", "--yolo"], ..NONE },
    },
    Agent {
        names: &["opencode", "opencode-ai"],
        harmless: Some(&["models", "auth", "providers", "mcp", "stats", "export", "session", "agent", "upgrade", "completion"]),
        headless: Marks { subcommands: &["run"], ..NONE },
        unguarded: NONE,
    },
    Agent {
        names: &["goose"],
        harmless: None,
        headless: Marks { subcommands: &["run", "acp", "serve"], ..NONE },
        unguarded: NONE,
    },
    Agent {
        names: &["crush"],
        harmless: None,
        headless: Marks { subcommands: &["run"], ..NONE },
        unguarded: Marks { options: &["-y", "--yolo"], ..NONE },
    },
    Agent {
        names: &["droid"],
        harmless: None,
        headless: Marks { subcommands: &["exec"], ..NONE },
        unguarded: Marks { options: &["--skip-permissions-unsafe"], ..NONE },
    },
    Agent {
        names: &["amp"],
        harmless: None,
        headless: Marks { options: &["-x", "--execute"], ..NONE },
        unguarded: Marks { options: &["--dangerously-allow-all"], ..NONE },
    },
    Agent {
        names: &["aider", "aider-chat"],
        harmless: Some(&[]),
        headless: Marks { options: &["-m", "--message", "--message-file"], ..NONE },
        unguarded: Marks { options: &["--yes-always"], ..NONE },
    },
    // Adapters that run one of the above behind the Agent Client Protocol.
    Agent { names: &["claude-code-acp", "claude-agent-acp", "codex-acp"], harmless: Some(&[]), headless: NONE, unguarded: NONE },
];

impl Agent {
    /// Whether it starts to work. Without a terminal, the clients take their prompt from anywhere: `codex 'fix it'`, `gemini < x`.
    fn works(&self, rest: &[Word]) -> bool {
        let harmless = |list: &[&str]| subcommand(rest).is_some_and(|first| list.contains(&first));
        self.headless.are_in(rest) || self.harmless.is_some_and(|list| !harmless(list))
    }

    fn is_unguarded(&self, rest: &[Word]) -> bool {
        self.unguarded.are_in(rest)
    }
}

impl Marks {
    fn are_in(&self, rest: &[Word]) -> bool {
        let is_set =
            |(names, value): &(&[&str], &str)| Arguments::new(rest).value(names).iter().any(|word| word.literal() == Some(value));
        self.options.iter().any(|option| is_given(rest, option))
            || self.values.iter().any(is_set)
            || subcommand(rest).is_some_and(|first| self.subcommands.contains(&first))
    }
}

fn starts(simple: &Simple, test: fn(&Agent, &[Word]) -> bool) -> Certainty {
    let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
    let base = program.base();
    // `npx @google/gemini-cli@latest`
    let name = base.literal().and_then(|name| name.split('@').next()).unwrap_or_default();
    let Some(agent) = AGENTS.iter().find(|agent| agent.names.contains(&name)) else { return Certainty::No };
    if !only_informs(rest) && test(agent, rest) { Certainty::Yes } else { Certainty::No }
}

fn only_informs(rest: &[Word]) -> bool {
    let is_version = matches!(rest, [only] if matches!(only.literal(), Some("-v" | "-V")));
    is_version || Arguments::new(rest).any(&["--help", "-h", "--version"])
}

/// The first operand, if it is certain.
fn subcommand(rest: &[Word]) -> Option<&str> {
    let valued = ["-m", "--model", "-C", "--cd", "-c", "--config", "-p", "--profile", "-s", "--sandbox", "-a"];
    Arguments::new(rest).operands(&valued).first().and_then(|word| word.literal())
}

/// An option as a word, or with a value after `=`.
fn is_given(words: &[Word], option: &str) -> bool {
    words.iter().any(|word| word.prefix().split('=').next() == Some(option))
}
