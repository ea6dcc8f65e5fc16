//! Files that a story's own check reads, and scripts whose output it reads. The story is about them, so they are work.

use std::collections::BTreeSet;

use super::check_scripts::read_scripts;
use crate::check::CommandSpec;
use verdone_testlog::simple_commands;

/// Programs that only read the files they are given. A file given to a test runner or build tool may decide whether it runs at all.
const LOOKERS: [&str; 18] = [
    "[",
    "cat",
    "cut",
    "egrep",
    "fgrep",
    "file",
    "grep",
    "head",
    "jq",
    "ls",
    "rg",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "test",
    "tr",
    "wc",
];

/// Paths that these commands read, relative to the project.
pub fn files_read_by<'c>(commands: impl IntoIterator<Item = &'c CommandSpec>) -> BTreeSet<String> {
    let of_one = |command: &CommandSpec| -> Vec<String> {
        let words = match command {
            CommandSpec::Shell(line) => simple_commands(line),
            CommandSpec::Argv(words) => vec![words.clone()],
        };
        words.iter().flat_map(|words| looked_at(words)).chain(read_scripts(command)).collect()
    };
    commands.into_iter().flat_map(of_one).collect()
}

fn looked_at(words: &[String]) -> Vec<String> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    if !LOOKERS.contains(&name) {
        return Vec::new();
    }
    let path = |word: &String| word.strip_prefix("./").unwrap_or(word).to_owned();
    rest.iter().filter(|word| !word.starts_with('-')).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_looks_at_is_a_subject() {
        for (command, expected) in [
            ("test -f a", vec!["a"]),
            ("grep -q hello ./greeting.txt && test -s b", vec!["b", "greeting.txt", "hello"]),
            ("make test", vec![]),
            ("pytest conftest.py", vec![]),
            ("sh own.sh", vec![]),
            ("./greet.sh world | sort", vec!["greet.sh"]),
            ("test \"$(bin/greet 2>&1)\" = hello", vec!["", "=", "bin/greet", "hello"]),
            ("sh greet.sh > out; cat out", vec!["greet.sh", "out"]),
        ] {
            let found = files_read_by([&CommandSpec::Shell(command.to_owned())]);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{command}");
        }
    }
}
