//! Calls that are denied because of the tool itself, not because of what they access.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = deny(
        Family::Tools,
        vec![
            Entry {
                name: "agent-worktree",
                matcher: Matcher::Input { field: "isolation", value: "worktree" },
                reason: "Verdone neither guards nor verifies an agent in another worktree",
                alternative: "start it without isolation",
                matches: &[
                    "Agent: {\"isolation\": \"worktree\", \"prompt\": \"x\"}",
                    "Task: {\"isolation\": \"worktree\"}",
                    "Agent: {\"prompt\": \"\", \"isolation\": \"worktree\"}",
                ],
                not_matches: &["Agent: {\"prompt\": \"worktree\"}", "Task: {}", "echo worktree"],
            },
            Entry {
                name: "unreadable-command",
                matcher: Matcher::Unread,
                reason: "the command is too long or too deeply nested to be checked",
                alternative: "write it into a script file with the file tools, or take smaller steps",
                matches: &[],
                not_matches: &["echo x", "git push", "for i in 1 2 3; do echo $i; done"],
            },
        ],
    );
    rules.extend(deny(
        Family::Unattended,
        vec![Entry {
            name: "background-command",
            matcher: Matcher::InBackground,
            reason: "a command in the background is ended together with the turn, whether it is finished or not",
            alternative: "run it in the foreground with a longer timeout; to test a server, start it, test it and stop it in one \
                command: `server & pid=$!; sleep 1; curl …; kill $pid`",
            matches: &[
                "Bash: {\"command\": \"make test\", \"run_in_background\": true}",
                "Bash: {\"command\": \"npm run dev\", \"description\": \"Serve\", \"run_in_background\": true}",
                "PowerShell: {\"command\": \"x\", \"is_background\": true}",
            ],
            not_matches: &[
                "Bash: {\"command\": \"make test\", \"run_in_background\": false}",
                "Agent: {\"prompt\": \"x\", \"run_in_background\": true}",
                "sleep 5 & wait",
            ],
        }],
    ));
    rules
}
