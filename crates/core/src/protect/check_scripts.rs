//! Files that a check runs. Scripts run by a shell judge the work, whatever their name. A file run by another interpreter may be the
//! judge or the work: `python tools/accept.py`, `node server.js`.

use std::collections::BTreeSet;

use crate::check::CommandSpec;
use verdone_shell::{Directory, Piece, RedirectKind, Runs, Script, Simple, Variables, Word};

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ksh", "zsh", "ash", ".", "source"];
const INTERPRETERS: [&str; 12] =
    ["python", "python2", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "tsx", "ts-node"];
/// With these options an interpreter runs no file, but inline code or its own test runner.
const NO_FILE: [&str; 6] = ["-c", "-e", "-p", "--eval", "--print", "--test"];
/// Programs that compare files: one of the files contains the expected result.
const COMPARE: [&str; 2] = ["cmp", "diff"];

/// Stands for a part of a path that is known only when the command runs.
const ANYTHING: &str = "**";
/// Patterns for a shell's script if its name is completely unknown.
const ANY_SCRIPT: [&str; 3] = ["**/*.sh", "**/*.bash", "**/*.bats"];

/// A file that a command runs, or that otherwise determines the command's result.
#[derive(Clone)]
struct Run {
    /// Relative to the project; a pattern if it is only partly known.
    path: String,
    by_interpreter: bool,
    /// Its output is read by something else, so its exit code does not decide.
    is_read: bool,
}

/// Scripts that these commands run, directly or through a shell. Paths or path patterns, relative to the project.
pub fn check_scripts<'c>(commands: impl IntoIterator<Item = &'c CommandSpec>) -> BTreeSet<String> {
    commands.into_iter().flat_map(runs).filter(|run| !run.by_interpreter).map(|run| run.path).collect()
}

/// Scripts whose output a command reads: `./greet | grep hello`.
pub(super) fn read_scripts(command: &CommandSpec) -> impl Iterator<Item = String> {
    runs(command).into_iter().filter(|run| run.is_read && !run.by_interpreter).map(|run| run.path)
}

/// Files that decide a command's result: programs run by an interpreter, or files with the expected result.
pub fn deciding_programs(command: &CommandSpec) -> impl Iterator<Item = String> {
    runs(command).into_iter().filter(|run| run.by_interpreter && !run.is_read).map(|run| run.path)
}

fn runs(command: &CommandSpec) -> Vec<Run> {
    match command {
        CommandSpec::Argv(words) => run(words, ""),
        CommandSpec::Shell(line) => {
            let script = verdone_shell::parse(line, &Variables::new());
            let read_in = script.commands.iter().filter(|simple| simple.runs != Runs::Known && !simple.words.is_empty());
            read_in.flat_map(|simple| run_of(line, &script, simple)).collect()
        }
    }
}

fn run_of(line: &str, script: &Script, simple: &Simple) -> Vec<Run> {
    let words: Vec<String> = simple.words.iter().map(pattern).collect();
    let folder = match &simple.directory {
        Directory::Known(folder) => folder.as_str(),
        Directory::Unknown => "",
    };
    let is_read = is_output_read(line, script, simple);
    let on_path = simple.assignments.iter().filter(|set| set.name == "PATH").flat_map(|set| on_path(&pattern(&set.value)));
    let on_path =
        on_path.filter_map(|path| inside(folder, &path)).map(|path| Run { path, by_interpreter: false, is_read: false });
    run(&words, folder).into_iter().map(|run| Run { is_read, ..run }).chain(on_path).collect()
}

/// Converts a word to a path pattern. Parts known only at run time match anything.
fn pattern(word: &Word) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.replace(verdone_shell::COMPUTED, ANYTHING),
        Piece::Any(_) => ANYTHING.to_owned(),
        Piece::Glob => "*".to_owned(),
        Piece::One => "?".to_owned(),
    };
    word.pieces.iter().map(piece).collect()
}

/// Patterns for the programs in the folders of a search path: `$PWD/tools:$PATH`.
fn on_path(value: &str) -> Vec<String> {
    let folders = value.split(':').map(|folder| folder.strip_prefix("**/").unwrap_or(folder));
    folders.filter(|folder| *folder != ANYTHING && !folder.is_empty()).map(|folder| format!("{folder}/*")).collect()
}

fn run(words: &[String], folder: &str) -> Vec<Run> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_plain = |word: &&String| !word.starts_with('-');
    let (by_interpreter, paths): (bool, Vec<String>) = match program.as_str() {
        _ if SHELLS.contains(&name) => match shell_script(rest) {
            Some(ANYTHING) => (false, ANY_SCRIPT.map(str::to_owned).to_vec()),
            script => (false, script.map(str::to_owned).into_iter().collect()),
        },
        _ if COMPARE.contains(&name) => (true, rest.iter().filter(is_plain).cloned().collect()),
        _ if INTERPRETERS.contains(&name) => (true, interpreted(rest)),
        program if program.contains('/') => (false, vec![program.to_owned()]),
        _ => return Vec::new(),
    };
    let placed = paths.iter().filter(|path| !(by_interpreter && path.contains('*'))).filter_map(|path| inside(folder, path));
    placed.map(|path| Run { path, by_interpreter, is_read: false }).collect()
}

/// The file that an interpreter runs, or the possible files of a module.
fn interpreted(words: &[String]) -> Vec<String> {
    if let Some(at) = words.iter().position(|word| word == "-m") {
        let modules = words[at + 1..].iter().filter(|word| !word.starts_with('-')).map(|word| word.replace('.', "/"));
        return modules
            .flat_map(|path| [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")])
            .collect();
    }
    if words.iter().any(|word| NO_FILE.contains(&word.as_str())) {
        return Vec::new();
    }
    // An option's value contains neither.
    words.iter().find(|word| !word.starts_with('-') && word.contains(['.', '/'])).cloned().into_iter().collect()
}

/// The first word that is neither an option nor an option's value: `-euo pipefail check.sh`.
fn shell_script(words: &[String]) -> Option<&str> {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with(['-', '+']) {
            return Some(word);
        }
        if word.ends_with(['o', 'O']) && !word.starts_with("--") || word == "--rcfile" || word == "--init-file" {
            words.next();
        }
    }
    None
}

/// A path relative to the project; `None` if it is outside.
fn inside(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) || folder.starts_with(['/', '~']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Whether something in the line reads the command's output.
fn is_output_read(line: &str, script: &Script, simple: &Simple) -> bool {
    let (Some(before), Some(after)) = (line.get(..simple.range.start), line.get(simple.range.end..)) else { return false };
    let (before, after) = (before.trim_end(), after.trim_start());
    let is_piped = after.starts_with('|') && !after.starts_with("||");
    let is_captured = before.ends_with("$(") || before.ends_with('`');
    let is_named = |file: &str| {
        let others = script.commands.iter().filter(|other| other.range != simple.range);
        others.flat_map(|other| &other.words).any(|word| word.literal() == Some(file))
    };
    let written = simple.redirects.iter().filter(|one| matches!(one.kind, RedirectKind::Write | RedirectKind::Append));
    is_piped || is_captured || written.filter_map(|one| one.target.literal()).any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let command = CommandSpec::Shell(command.to_owned());
        (check_scripts([&command]).into_iter().collect(), read_scripts(&command).collect(), deciding_programs(&command).collect())
    }

    #[test]
    fn only_what_is_run_is_a_script() {
        for (command, expected) in [
            ("./check.sh", "check.sh"),
            ("scripts/verify --all", "scripts/verify"),
            ("sh -e checks/own.sh x", "checks/own.sh"),
            ("bash -euo pipefail checks/own.sh", "checks/own.sh"),
            ("cd sub && bash ./own.sh", "sub/own.sh"),
            ("CI=1 ./check.sh", "check.sh"),
            ("sh own.sh > log", "own.sh"),
            (". ./settings.env && run", "settings.env"),
            ("sh -c 'make test'", ""),
            ("/usr/bin/env true", ""),
            ("../outside.sh", ""),
            ("python calc.py", ""),
            ("grep -q done README.md", ""),
            ("make test", ""),
            ("for f in checks/*.sh; do sh \"$f\" || exit 1; done", "checks/*.sh"),
            ("cd sub && for t in t/*; do ./$t; done", "sub/t/*"),
            ("find checks -name '*.sh' | xargs sh", "**/*.bash **/*.bats **/*.sh"),
            ("ls checks | while read f; do bash $f; done", "**/*.bash **/*.bats **/*.sh"),
            ("bash \"$(dirname \"$0\")/lib.sh\"", "**/lib.sh"),
            ("PATH=$PWD/tools:$PATH verify", "tools/*"),
            ("export PATH=tools/bin:$PATH; verify", "tools/bin/*"),
            ("$PYTHON -m pytest", ""),
        ] {
            assert_eq!(found(command).0.join(" "), expected, "{command}");
        }
    }

    #[test]
    fn a_script_whose_output_is_read_is_told_from_one_whose_exit_code_decides() {
        for (command, expected) in [
            ("./greet.sh world | sort", "greet.sh"),
            ("test \"$(bin/greet 2>&1)\" = hello", "bin/greet"),
            ("sh greet.sh > out; cat out", "greet.sh"),
            ("./own.sh > /dev/null && ./other || exit 1", ""),
            ("sh own.sh > log", ""),
        ] {
            assert_eq!(found(command).1.join(" "), expected, "{command}");
        }
    }

    #[test]
    fn a_program_in_another_language_decides_by_its_exit_code_unless_its_output_is_read() {
        for (command, expected) in [
            ("python3 -W error tools/accept.py --all", "tools/accept.py"),
            ("cd web && node ./smoke.mjs", "web/smoke.mjs"),
            ("python calc.py | grep 5", ""),
            ("python -c 'import calc'", ""),
            ("python -m unittest", "unittest.py unittest/__main__.py unittest/__init__.py"),
            ("python -c 'import calc; print(calc.div(6, 3))' | diff - qa/expected.txt", "qa/expected.txt"),
            ("node --test calc.js", ""),
            ("pytest conftest.py", ""),
        ] {
            assert_eq!(found(command).2.join(" "), expected, "{command}");
        }
    }
}
