//! Parses git's command line: git's own options, then the subcommand, then its arguments.

use super::word::Word;

/// A parsed git command line.
#[derive(Debug, Clone)]
pub struct GitCall<'a> {
    /// Whether the program is certainly git, or only may be.
    pub is_git: bool,
    /// `push`, `commit`, ...
    pub command: Word,
    pub arguments: &'a [Word],
    /// `-c name=value`, names in lower case.
    pub settings: Vec<(String, Word)>,
    /// An unknown word precedes the subcommand: it may be options, or the subcommand itself.
    pub guessed: bool,
}

impl GitCall<'_> {
    /// The expansion of an alias that is defined on the same line.
    pub fn alias(&self, command: &str) -> Option<&Word> {
        let name = format!("alias.{}", command.to_ascii_lowercase());
        self.settings.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
    "--attr-source",
    "--list-cmds",
];

/// Parses a command if its program is, or may be, git.
pub fn git_call(words: &[Word]) -> Option<GitCall<'_>> {
    let (program, mut rest) = words.split_first()?;
    let base = program.base();
    let mut settings = Vec::new();
    if let Some(command) = base.literal().and_then(|name| name.strip_prefix("git-")) {
        return Some(GitCall { is_git: true, command: Word::text(command), arguments: rest, settings, guessed: false });
    }
    let is_git = base.literal().is_some_and(|name| name == "git" || name == "git.exe");
    let may_be_git = base.literal().is_none() && base.could_be("git");
    if !is_git && !may_be_git {
        return None;
    }
    let mut guessed = false;
    while let Some((word, after)) = rest.split_first() {
        let prefix = word.prefix();
        if word.loose && word.is_computed() && !after.is_empty() {
            guessed = true;
            rest = after;
            continue;
        }
        // Without an attached value, `--exec-path` only prints.
        if VALUED.contains(&prefix) && word.literal().is_some() && prefix != "--exec-path" {
            let Some((value, after)) = after.split_first() else { break };
            if prefix == "-c" {
                settings.push(setting(value));
            }
            rest = after;
        } else if prefix.starts_with("-c") && !prefix.starts_with("--") && prefix.contains('=') {
            settings.extend(word.without_prefix("-c").as_ref().map(setting));
            rest = after;
        } else if prefix.starts_with('-') {
            rest = after;
        } else {
            break;
        }
    }
    let (command, arguments) = rest.split_first()?;
    Some(GitCall { is_git, command: command.clone(), arguments, settings, guessed })
}

fn setting(word: &Word) -> (String, Word) {
    let prefix = word.prefix();
    let name = prefix.split('=').next().unwrap_or_default();
    let value = word.without_prefix(&format!("{name}=")).unwrap_or_else(|| Word::text("true"));
    (name.to_ascii_lowercase(), value)
}
