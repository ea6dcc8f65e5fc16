//! The program that a shell did not find, by the shell's own message. The first word of a command line is often only what started it:
//! `npm run lint` ends with 127 if eslint is missing.

use std::sync::LazyLock;

use regex::Regex;

use super::lines;

/// Messages of sh, dash, bash, zsh, busybox and env; each captures the program.
const MESSAGES: [&str; 4] = [
    r"^\S+: (?:line )?\d+: ([^\s:]+): (?:command )?not found$",
    r"^(?:\S*/)?(?:sh|dash|ash|bash|ksh|busybox): ([^\s:]+): (?:command )?not found$",
    r"^(?:\S*/)?(?:zsh|sh|fish)(?::\d+)?: command not found: (\S+)$",
    r"^(?:\S*/)?env: [‘'`]?([^\s:’']+)[’']?: No such file or directory$",
];

/// The last program that the output of a command with exit code 127 reports as missing.
pub fn program_not_found(output: &str) -> Option<String> {
    static PATTERNS: LazyLock<Vec<Regex>> =
        LazyLock::new(|| MESSAGES.iter().map(|words| Regex::new(words).expect("a fixed pattern compiles")).collect());
    let name = |line: &str| {
        PATTERNS.iter().find_map(|pattern| pattern.captures(line.trim())?.get(1).map(|found| found.as_str().to_owned()))
    };
    lines::split(output).iter().rev().find_map(|line| name(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_comes_from_the_message_of_the_shell() {
        for (output, expected) in [
            ("> lint\n> eslint .\n\nsh: 1: eslint: not found\n", Some("eslint")),
            ("sh: eslint: command not found\nnpm error code 127\n", Some("eslint")),
            ("bash: line 1: ruff: command not found\n", Some("ruff")),
            ("./check.sh: line 3: shellcheck: command not found\n", Some("shellcheck")),
            ("/bin/sh: 1: tox: not found\n", Some("tox")),
            ("zsh:1: command not found: jest\n", Some("jest")),
            ("/usr/bin/env: ‘node’: No such file or directory\n", Some("node")),
            ("page 404: /x: not found\n", None),
            ("error: not found\n", None),
            ("", None),
        ] {
            assert_eq!(program_not_found(output).as_deref(), expected, "{output}");
        }
    }
}
