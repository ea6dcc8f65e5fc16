//! Verdone's own commands that change a run, its commits or its guards: the user's, while a run works.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};

pub(super) fn rules() -> Vec<Rule> {
    deny(
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
                &["verdone", "plan", "approve"],
                &["verdone", "loop", "stop"],
            ]),
            reason: "an agent does not steer the run that it works for, nor take its guards and commits away",
            alternative: "say in the answer what the user should do; `verdone status` and other questions are fine",
            matches: &["verdone uninstall --yes", "verdone prune --keep 0", "/usr/bin/verdone undo", "bash -c 'verdone land'"],
            not_matches: &[
                "verdone status",
                "verdone log --json",
                "verdone policy check 'git push'",
                "echo verdone undo",
                "verdone --help",
            ],
        }],
    )
}
