//! Processes that do not belong to the agent, such as the run itself.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::matcher::Certainty;
use verdone_shell::Simple;

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::Processes,
        vec![
            Entry {
                name: "kill-by-name",
                matcher: Matcher::Programs(&[&["pkill"], &["killall"], &["killall5"], &["skill"], &["xkill"]]),
                reason: "a name may match the user's processes, and the run itself",
                alternative: "end what you started by its process id: `kill PID`",
                matches: &["pkill node", "sudo killall -9 python", "timeout 5 pkill -f server"],
                not_matches: &["kill 1234", "pgrep node", "echo pkill node", "kill %1"],
            },
            Entry {
                name: "kill-everything",
                matcher: Matcher::Simple(kills_everything),
                reason: "this signals all of the user's processes, or the run itself with everything it started",
                alternative: "end what you started by its process id: `kill PID`",
                matches: &["kill -9 -1", "kill -- -1", "kill -KILL -1", "kill -1", "kill -s TERM -1", "kill 0", "kill -9 0"],
                not_matches: &["kill -9 1234", "kill -l", "kill -1 1234", "kill -HUP 77", "kill -0 1234"],
            },
        ],
    )
}

/// `-1` before a process id is a signal; in place of one, it means all processes.
fn kills_everything(simple: &Simple) -> Certainty {
    let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
    if program.base().literal() != Some("kill") {
        return Certainty::No;
    }
    let words: Vec<&str> = rest.iter().map(|word| word.literal().unwrap_or("?")).collect();
    let targets = match words.as_slice() {
        ["-s" | "-n" | "--signal", _, targets @ ..] => targets,
        ["-1"] => return Certainty::Yes,
        [signal, targets @ ..] if signal.starts_with('-') && *signal != "--" => targets,
        targets => targets,
    };
    // `0` is the shell's process group, which may include the agent and the run.
    if targets.contains(&"-1") || targets.contains(&"0") { Certainty::Yes } else { Certainty::No }
}
