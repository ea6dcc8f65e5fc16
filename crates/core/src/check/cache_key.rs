//! What the result of a check depends on. Runs with the same key have the same result, so it can be cached.

use serde::Serialize;

use crate::base::id::{Oid, digest};

/// Variables that differ between terminals and do not affect a check. All others count, because an unknown variable may be the one
/// that makes tests skip.
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

/// Whether results depend on the value of this variable.
pub fn counts_for_results(variable: &str) -> bool {
    !OF_THE_TERMINAL.contains(&variable)
}

/// Everything that a result is known to depend on.
#[derive(Debug, Clone, Serialize)]
pub struct CacheKey<'a> {
    /// Verdone's own version, because the interpretation of exit codes and output may change.
    pub version: &'a str,
    pub tree: &'a Oid,
    /// Digest of the command, see [`crate::verify::PlannedCheck`].
    pub command: &'a str,
    /// The working directory, relative to the top of the tree.
    pub folder: &'a str,
    /// Digest of the settings that decide what a check sees besides the tree: `[workspace]` and `[seal]`.
    pub place: &'a str,
    /// Digest of the declared inputs and their contents.
    pub inputs: &'a str,
    /// The inherited environment variables that count, sorted.
    pub environment: &'a [(String, String)],
}

impl CacheKey<'_> {
    /// The key as hexadecimal digits.
    pub fn digest(&self) -> String {
        digest(&serde_json::to_vec(self).expect("a key is always valid JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::span::Span;
    use crate::check::{Check, CommandSpec, Gate, Stage, ZeroTests};
    use crate::verify::PlannedCheck;

    #[test]
    fn whatever_a_result_depends_on_changes_its_key() {
        let (tree, environment) = (Oid::from("a"), vec![("PATH".to_owned(), "/bin".to_owned())]);
        let (other, more) = (Oid::from("b"), [("PATH".to_owned(), "/usr/bin".to_owned())]);
        let key =
            CacheKey { version: "1", tree: &tree, command: "c", folder: "", place: "", inputs: "", environment: &environment };
        for other in [
            CacheKey { version: "2", ..key.clone() },
            CacheKey { tree: &other, ..key.clone() },
            CacheKey { command: "d", ..key.clone() },
            CacheKey { folder: "web", ..key.clone() },
            CacheKey { place: "p", ..key.clone() },
            CacheKey { inputs: "d", ..key.clone() },
            CacheKey { environment: &more, ..key.clone() },
        ] {
            assert_ne!(other.digest(), key.digest(), "{other:?}");
        }
        assert!(counts_for_results("PATH") && !counts_for_results("COLUMNS"));
    }

    #[test]
    fn a_command_is_the_same_whatever_it_is_called_and_another_one_with_other_terms() {
        let gate = || Gate::new("test", Stage::Correctness, CommandSpec::Shell("make test".to_owned()));
        let digest = |gate: &Gate| PlannedCheck::new(&gate.check(Span::from_secs(1)), false).digest;
        let first = digest(&gate());
        for same in [
            Gate { name: "other".to_owned(), ..gate() },
            Gate { stage: Stage::Quality, ..gate() },
            Gate { timeout: Some(Span::from_secs(9)), ..gate() },
            Gate { blocking: false, ..gate() },
            Gate { retries: 2, ..gate() },
        ] {
            assert_eq!(digest(&same), first, "{same:?}");
        }
        for other in [
            Gate { command: CommandSpec::Shell("make test2".to_owned()), ..gate() },
            Gate { command: CommandSpec::Argv(vec!["make test".to_owned()]), ..gate() },
            Gate { env: [("A".to_owned(), "1".to_owned())].into(), ..gate() },
            Gate { inputs: vec!["x".to_owned()], ..gate() },
            Gate { zero_tests: Some(ZeroTests::Ok), ..gate() },
            Gate { junit: Some("r.xml".to_owned()), ..gate() },
        ] {
            assert_ne!(digest(&other), first, "{other:?}");
        }
        let check: Check = gate().check(Span::from_secs(1));
        assert_ne!(PlannedCheck::new(&check, true).digest, first, "a hidden check sees other files");
    }
}
