//! What a result of a check depends on. Two runs with the same key are one question, and the answer to it can be kept.

use serde::Serialize;

use super::{Check, CommandSpec, Where, ZeroTests};
use crate::id::{Oid, digest};

/// Variables that differ from one terminal to the next and say nothing about a check. All others count: a variable that is not known
/// may be the one by which tests are skipped.
const OF_THE_TERMINAL: [&str; 29] = [
    "_",
    "ALACRITTY_WINDOW_ID",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "KITTY_PID",
    "KITTY_WINDOW_ID",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "XDG_SESSION_ID",
];

/// Whether the value of a variable is part of what a result depends on.
pub fn counts_for_results(variable: &str) -> bool {
    !OF_THE_TERMINAL.contains(&variable)
}

/// Everything that a result depends on, as far as it can be told.
#[derive(Debug, Clone, Serialize)]
pub struct ResultKey<'a> {
    /// Our own version: what we make of an exit code and an output may change.
    pub version: &'a str,
    pub tree: &'a Oid,
    /// All that a check in place can see of the work tree: a tree of git is less. A clean tree has nothing else.
    #[serde(skip)]
    pub in_place: &'a str,
    /// Where it runs, below the top of the tree.
    pub folder: &'a str,
    /// Digest of the declared inputs and their contents.
    pub inputs: &'a str,
    /// What the check inherits, as far as it counts, sorted.
    pub environment: &'a [(String, String)],
}

impl ResultKey<'_> {
    /// The key of one check, as hexadecimal digits. Neither its name nor its stage are part of it.
    pub fn of(&self, check: &Check) -> String {
        #[derive(Serialize)]
        struct Asked<'a> {
            seen: &'a ResultKey<'a>,
            command: &'a CommandSpec,
            place: Where,
            in_place: Option<&'a str>,
            setup: &'a [CommandSpec],
            share: &'a [String],
            input_patterns: &'a [String],
            env: &'a std::collections::BTreeMap<String, String>,
            zero_tests: Option<ZeroTests>,
            junit: Option<&'a str>,
        }
        let terms = &check.terms;
        let asked = Asked {
            seen: self,
            command: &check.command,
            place: terms.place,
            in_place: (terms.place == Where::InPlace).then_some(self.in_place),
            setup: &terms.setup,
            share: &terms.share,
            input_patterns: &terms.inputs,
            env: &terms.env,
            zero_tests: terms.zero_tests,
            junit: terms.junit.as_deref(),
        };
        digest(&serde_json::to_vec(&asked).expect("a key holds nothing that JSON cannot"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Gate, Stage};
    use crate::span::Span;

    #[test]
    fn whatever_a_result_depends_on_changes_its_key_and_nothing_else_does() {
        let gate = || Gate::new("test", Stage::Correctness, CommandSpec::Shell("make test".to_owned()));
        let (tree, environment) = (Oid::from("a"), vec![("PATH".to_owned(), "/bin".to_owned())]);
        let seen = ResultKey { version: "1", tree: &tree, in_place: "", folder: "", inputs: "", environment: &environment };
        let key = |gate: &Gate| seen.of(&gate.check(Span::from_secs(1)));
        let first = key(&gate());
        let same = [
            Gate { name: "other".to_owned(), ..gate() },
            Gate { stage: Stage::Quality, ..gate() },
            Gate { timeout: Some(Span::from_secs(9)), ..gate() },
            Gate { blocking: false, ..gate() },
            Gate { retries: 2, ..gate() },
        ];
        for other in &same {
            assert_eq!(key(other), first, "{other:?}");
        }
        let others = [
            Gate { command: CommandSpec::Shell("make test2".to_owned()), ..gate() },
            Gate { command: CommandSpec::Argv(vec!["make test".to_owned()]), ..gate() },
            Gate { place: Where::Clean, ..gate() },
            Gate { env: [("A".to_owned(), "1".to_owned())].into(), ..gate() },
            Gate { inputs: vec!["x".to_owned()], ..gate() },
            Gate { zero_tests: Some(ZeroTests::Ok), ..gate() },
            Gate { zero_tests: Some(ZeroTests::Fail), ..gate() },
            Gate { junit: Some("r.xml".to_owned()), ..gate() },
        ];
        for other in &others {
            assert_ne!(key(other), first, "{other:?}");
        }
        let check = gate().check(Span::from_secs(1));
        let more = [("PATH".to_owned(), "/usr/bin".to_owned())];
        for other in [
            ResultKey { version: "2", ..seen.clone() },
            ResultKey { tree: &Oid::from("b"), ..seen.clone() },
            ResultKey { in_place: "CRLF", ..seen.clone() },
            ResultKey { folder: "web", ..seen.clone() },
            ResultKey { inputs: "d", ..seen.clone() },
            ResultKey { environment: &more, ..seen.clone() },
        ] {
            assert_ne!(other.of(&check), first, "{other:?}");
        }
        let clean = Gate { place: Where::Clean, ..gate() }.check(Span::from_secs(1));
        assert_eq!(ResultKey { in_place: "CRLF", ..seen.clone() }.of(&clean), seen.of(&clean), "a clean tree has only the tree");
    }
}
