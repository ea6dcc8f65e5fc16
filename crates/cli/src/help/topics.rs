//! The manual: the pages of `docs/` that the program carries with it.

/// One page, under each of its names.
#[derive(Debug)]
pub(crate) struct Topic {
    /// The first is the one that is listed.
    pub names: &'static [&'static str],
    pub about: &'static str,
    /// The file in `docs/`.
    pub file: &'static str,
    pub text: &'static str,
}

macro_rules! topic {
    ($names:expr, $file:literal, $about:literal) => {
        Topic { names: &$names, about: $about, file: $file, text: include_str!(concat!("../../../../docs/", $file)) }
    };
}

/// In the order in which a user needs them.
pub(crate) const TOPICS: [Topic; 15] = [
    topic!(["quick-start"], "quick-start.md", "The first run, step by step"),
    topic!(["plans"], "plans.md", "How to write a plan"),
    topic!(["checks", "proofs"], "checks-and-proofs.md", "Checks, gates and proofs (also: verdone help proofs)"),
    topic!(["runs"], "runs.md", "What happens in a run, and how to steer it"),
    topic!(["agents"], "agents.md", "Which agents can be used, and how much of each Verdone sees"),
    topic!(["workspaces", "safety"], "workspaces-and-safety.md", "What an agent sees and what it can reach"),
    topic!(["sessions"], "sessions.md", "Your own agent sessions: hooks, loops and the Stop gate"),
    topic!(["agent-tools", "mcp"], "agent-tools.md", "The tools that an agent can call"),
    topic!(["plugin"], "plugin.md", "The plugin for Claude Code: hooks, skills and tools"),
    topic!(["troubleshooting"], "troubleshooting.md", "What to do when something does not work"),
    topic!(["rules"], "rules.md", "Every rule of verification in one table"),
    topic!(["lifecycle"], "lifecycle.md", "Your own scripts at moments of a run"),
    topic!(["notifications"], "notifications.md", "How to be notified when a run needs you or ends"),
    topic!(["ci"], "ci.md", "Verify pull requests"),
    topic!(["exit-codes"], "exit-codes.md", "What each exit code means"),
];

/// The topic with this name.
pub(crate) fn find(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// What to type to read the page that a link leads to.
pub(crate) fn name_link(target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or_default();
    let topic = TOPICS.iter().find(|topic| topic.file == file)?;
    Some(format!("verdone help {}", topic.names[0]))
}
