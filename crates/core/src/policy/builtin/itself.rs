//! Verdone's own commands that change a run, its commits or its guards. During a run, only the user may use them.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = deny(
        Family::Itself,
        vec![Entry {
            name: "verdone-itself",
            matcher: Matcher::Programs(&[
                &["verdone", "uninstall"],
                &["verdone", "install"],
                &["verdone", "prune"],
                &["verdone", "undo"],
                &["verdone", "land"],
                &["verdone", "stop"],
                &["verdone", "pause"],
                &["verdone", "skip"],
                &["verdone", "retry"],
                &["verdone", "loop", "stop"],
            ]),
            reason: "an agent must not control its own run, or remove its guards and commits",
            alternative: "say in the answer what the user should do; `verdone status` and other read-only commands are fine",
            matches: &["verdone uninstall --yes", "verdone prune --keep 0", "/usr/bin/verdone undo", "bash -c 'verdone land'"],
            not_matches: &[
                "verdone status",
                "verdone log --json",
                "verdone policy check 'git push'",
                "echo verdone undo",
                "verdone --help",
                "verdone claim retrospective_done --note 'tests first'",
                "verdone done",
            ],
        }],
    );
    // A user's approval counts as proof in every session, so no agent may give it.
    rules.extend(deny(
        Family::Tools,
        vec![
            Entry {
                name: "plan-approval",
                matcher: Matcher::Programs(&[&["verdone", "plan", "approve"]]),
                reason: "only the user may approve a plan, after reading its commands",
                alternative: "ask the user to run `verdone plan approve`",
                matches: &["verdone plan approve --yes", "sh -c 'verdone plan approve'", "/usr/bin/verdone plan approve PLAN.md"],
                not_matches: &["verdone plan show", "verdone plan lint", "echo verdone plan approve"],
            },
            Entry {
                name: "story-review",
                matcher: Matcher::Programs(&[&["verdone", "accept"], &["verdone", "reject"]]),
                reason: "only the user may accept or reject a story that needs a review, after looking at the work",
                alternative: "ask the user to run `verdone review`",
                matches: &["verdone accept US-001", "sh -c 'verdone accept US-001'", "/usr/bin/verdone reject US-001 --json"],
                not_matches: &["verdone review", "verdone review US-001 --json", "echo verdone accept US-001"],
            },
        ],
    ));
    rules
}
