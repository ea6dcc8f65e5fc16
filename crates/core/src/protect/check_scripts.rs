//! Scripts that a check runs: they judge the work, whatever their names are.

use std::collections::BTreeSet;

use crate::check::CommandSpec;
use crate::test_outcome::simple_commands;

/// Programs that run the file that they are given. Interpreters of other languages are not listed: what they are given may be the work.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "ash"];

/// Paths, relative to the project, of the scripts that these commands run: as a program, or by a shell.
pub fn check_scripts<'c>(commands: impl IntoIterator<Item = &'c CommandSpec>) -> BTreeSet<String> {
    let words = |command: &CommandSpec| match command {
        CommandSpec::Shell(line) => simple_commands(line),
        CommandSpec::Argv(words) => vec![words.clone()],
    };
    commands.into_iter().flat_map(words).filter_map(|words| script(&words)).collect()
}

fn script(words: &[String]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    let path = match program.as_str() {
        _ if SHELLS.contains(&name) => rest.iter().find(|word| !word.starts_with('-'))?,
        program if program.contains('/') => program,
        _ => return None,
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_inside = !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..");
    (is_inside && !path.is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_run_is_a_script() {
        for (command, expected) in [
            ("./check.sh", Some("check.sh")),
            ("scripts/verify --all", Some("scripts/verify")),
            ("sh -e checks/own.sh x", Some("checks/own.sh")),
            ("cd sub && bash ./own.sh", Some("own.sh")),
            ("CI=1 ./check.sh", Some("check.sh")),
            ("sh -c 'make test'", None),
            ("/usr/bin/env true", None),
            ("../outside.sh", None),
            ("python calc.py", None),
            ("grep -q done README.md", None),
            ("make test", None),
        ] {
            let found = check_scripts([&CommandSpec::Shell(command.to_owned())]);
            let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(found, expected, "{command}");
        }
    }
}
