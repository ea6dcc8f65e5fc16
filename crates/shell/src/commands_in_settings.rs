//! Commands in git's settings, options and variables: git runs them, so they are analysed like any other text.

use super::git::GitCall;
use super::scope::Scope;
use super::unwrap::Call;
use super::walk::Walker;
use super::word::Word;

/// Variables whose value is a command line that git, or a program it starts, runs.
const VARIABLES: &[&str] = &[
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "PROMPT_COMMAND",
];

const SETTINGS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.askpass",
    "core.gitproxy",
    "core.sshcommand",
    "core.alternaterefscommand",
    "sequence.editor",
    "diff.external",
    "interactive.difffilter",
    "credential.helper",
    "gpg.program",
];

/// The start and end of setting names with an arbitrary middle part: `diff.NAME.command`.
const FAMILIES: &[(&str, &str)] = &[
    ("pager.", ""),
    ("diff.", ".command"),
    ("diff.", ".textconv"),
    ("difftool.", ".cmd"),
    ("mergetool.", ".cmd"),
    ("merge.", ".driver"),
    ("trailer.", ".command"),
    ("trailer.", ".cmd"),
    ("browser.", ".cmd"),
    ("credential.", ".helper"),
    ("gpg.", ".program"),
];

/// Options of git subcommands whose value is a command line.
const OPTIONS: &[(&str, &str)] = &[
    ("difftool", "-x"),
    ("difftool", "--extcmd"),
    ("grep", "-O"),
    ("grep", "--open-files-in-pager"),
    ("fetch", "--upload-pack"),
    ("clone", "--upload-pack"),
    ("clone", "-u"),
    ("ls-remote", "--upload-pack"),
];

/// Whether git runs the value of a setting as a command.
pub fn is_command_setting(name: &str) -> bool {
    let fits =
        |(start, end): &(&str, &str)| name.starts_with(start) && name.ends_with(end) && name.len() > start.len() + end.len();
    SETTINGS.contains(&name) || FAMILIES.iter().any(fits)
}

impl Walker {
    /// Analyses the commands in variables that are set before or by a command.
    pub(super) fn follow_variables(&mut self, call: &Call<'_>, scope: &Scope) {
        for set in call.assignments.iter().filter(|set| VARIABLES.contains(&set.name.as_str())) {
            self.follow_value(&set.value, call, scope);
        }
    }

    /// Analyses the commands in the settings and options on git's command line.
    pub(super) fn follow_git_settings(&mut self, call: &Call<'_>, git: &GitCall<'_>, scope: &Scope) {
        for (_, value) in git.settings.iter().filter(|(name, _)| is_command_setting(name)) {
            self.follow_value(value, call, scope);
        }
        let command = git.command.literal().unwrap_or_default();
        for (at, word) in git.arguments.iter().enumerate() {
            for (_, option) in OPTIONS.iter().filter(|(of, _)| *of == command) {
                let glued = word.without_prefix(&format!("{option}=")).or_else(|| {
                    word.without_prefix(option).filter(|rest| !option.starts_with("--") && rest.literal() != Some(""))
                });
                let next = git.arguments.get(at + 1).filter(|_| word.literal() == Some(option) && *option != "-O");
                if let Some(value) = glued.as_ref().or(next) {
                    self.follow_value(value, call, scope);
                }
            }
        }
    }

    fn follow_value(&mut self, value: &Word, call: &Call<'_>, scope: &Scope) {
        // A word with unknown parts says nothing.
        let Some(line) = value.literal().map(|line| line.trim_start_matches('!')) else { return };
        self.source(line, &mut scope.clone(), None, Some(call.range.clone()), call.certain);
    }
}
