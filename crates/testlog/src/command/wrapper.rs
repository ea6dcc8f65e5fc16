//! Commands that may start other programs' tests, and commands that only display text.

use super::{ASKS, Kind, base_name, classify, unwrap, without_wrapped};

/// Whether test reports in the output may come from programs that these commands started: `make test`, `./ci.sh`.
pub(crate) fn wraps(commands: &[Vec<&str>]) -> bool {
    let commands = without_wrapped(commands);
    let kinds: Vec<Kind> = commands.iter().filter_map(|words| classify(words)).collect();
    let is_wrapper = |kind: &Kind| matches!(kind, Kind::Runner | Kind::Loose);
    let may_run_any = |words: &&[&str]| is_own_script(words) || is_task_runner(words);
    kinds.iter().any(is_wrapper) || kinds.is_empty() && commands.iter().any(may_run_any)
}

/// Programs that run what a project file defines, whatever the task is called.
fn is_task_runner(words: &[&str]) -> bool {
    let runners =
        ["make", "gmake", "just", "task", "npm", "pnpm", "yarn", "rake", "composer", "invoke", "inv", "poe", "hatch", "mise"];
    unwrap(words).first().is_some_and(|program| runners.contains(&base_name(program)))
}

/// Programs that print their input.
pub(crate) fn only_shows_text(words: &[&str]) -> bool {
    let shows = ["cat", "head", "tail", "grep", "rg", "sed", "awk", "echo", "printf", "git", "diff", "tee", "less", "cd", "true"];
    unwrap(words).first().is_none_or(|program| shows.contains(&base_name(program)))
}

/// A program of the project, whatever its name: `./ci`, `sh scripts/all.sh`, `python3 tools/run.py`.
fn is_own_script(words: &[&str]) -> bool {
    let words = unwrap(words);
    let Some((program, args)) = words.split_first() else { return false };
    let of_the_system = ["/bin/", "/usr/", "/opt/", "/sbin/"].iter().any(|folder| program.starts_with(folder));
    let interprets =
        matches!(base_name(program), "sh" | "bash" | "zsh" | "dash" | "ksh" | "python3" | "python" | "node" | "ruby");
    let file = args.first().is_some_and(|arg| !arg.starts_with('-'));
    let asks = args.iter().any(|arg| ASKS.contains(arg));
    !asks && (program.contains('/') && !of_the_system || interprets && file)
}
