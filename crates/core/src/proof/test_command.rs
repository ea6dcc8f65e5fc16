//! How single test files are run: the user's own command, or what the project seems to use. File names are words of their own,
//! never part of a shell's text.

use std::collections::{BTreeMap, BTreeSet};

use super::test_file::Runner;
use crate::check::{CheckOutcome, CommandSpec};
use crate::shell::{self, Variables};
use crate::test_outcome::{self, TestOutcome};

/// Stands for the test files in `[clean] test`.
pub const FILES_WORD: &str = "{files}";

/// A test file that an attempt added or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFile {
    /// Relative to the project.
    pub path: String,
    pub runner: Runner,
    pub text: String,
    /// The tests in it that count, where not all of it does: paths inside of the file.
    pub names: Vec<String>,
}

/// What a project says about its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Of the project's own folder.
    pub package_json: Option<String>,
    pub gemfile_lock: bool,
    pub uv_lock: bool,
    pub poetry_lock: bool,
    pub bun_lock: bool,
    /// Folders with a `Cargo.toml`, relative, the project's own as an empty text.
    pub cargo_folders: BTreeSet<String>,
    /// Of those, the ones with a `src/lib.rs`.
    pub cargo_libraries: BTreeSet<String>,
    /// Something in it speaks of pytest.
    pub pytest: bool,
}

/// What the output of such a command says about tests, where it is understood.
pub fn tests_seen(command: &CommandSpec, outcome: &CheckOutcome, output: &str) -> Option<TestOutcome> {
    let exit_code = match outcome {
        CheckOutcome::Passed => Some(0),
        CheckOutcome::Failed { code } => Some(*code),
        CheckOutcome::Signalled { .. }
        | CheckOutcome::TimedOut { .. }
        | CheckOutcome::Unknown { .. }
        | CheckOutcome::Interrupted => return None,
    };
    let text = match command {
        CommandSpec::Shell(text) => text,
        CommandSpec::Argv(words) => match words.as_slice() {
            [shell, option, text, ..] if shell == "sh" && option == "-c" => text,
            words => return test_outcome::read(&[words], exit_code, output),
        },
    };
    let script = shell::parse(text, &Variables::new());
    let words = |simple: &shell::Simple| -> Vec<String> {
        simple.words.iter().map(|word| word.literal().unwrap_or(word.prefix()).to_owned()).collect()
    };
    let commands: Vec<Vec<String>> = script.commands.iter().filter(|simple| !simple.words.is_empty()).map(words).collect();
    test_outcome::read(&commands, exit_code, output)
}

/// The user's command with the files as words of their own.
pub fn configured(command: &CommandSpec, files: &[TestFile]) -> CommandSpec {
    let names = files.iter().map(|file| word(&file.path));
    match command {
        CommandSpec::Argv(words) => {
            let mut all = Vec::new();
            for given in words {
                if given == FILES_WORD { all.extend(names.clone()) } else { all.push(given.clone()) }
            }
            CommandSpec::Argv(all)
        }
        CommandSpec::Shell(text) => {
            // Positional parameters: no name is ever read as shell text.
            let text = text.replace(FILES_WORD, "\"$@\"");
            CommandSpec::Argv(["sh".to_owned(), "-c".to_owned(), text, "sh".to_owned()].into_iter().chain(names).collect())
        }
    }
}

/// A command for each runner, with a name for people.
pub fn usual(files: &[TestFile], project: &Project) -> Vec<(String, CommandSpec)> {
    let mut groups: BTreeMap<Runner, Vec<&TestFile>> = BTreeMap::new();
    for file in files {
        groups.entry(file.runner).or_default().push(file);
    }
    groups.into_iter().flat_map(|(runner, files)| commands(runner, &files, project)).collect()
}

fn commands(runner: Runner, files: &[&TestFile], project: &Project) -> Vec<(String, CommandSpec)> {
    let named = |fixed: &[&str]| {
        let words = fixed.iter().map(|word| (*word).to_owned()).chain(files.iter().map(|file| word(&file.path)));
        vec![(fixed.join(" "), CommandSpec::Argv(words.collect()))]
    };
    match runner {
        Runner::Cargo => cargo(files, project),
        Runner::CargoInline => cargo_inline(files, project),
        Runner::JavaScript => named(java_script(project)),
        Runner::Pytest if project.uv_lock => named(&["uv", "run", "pytest"]),
        Runner::Pytest if project.poetry_lock => named(&["poetry", "run", "pytest"]),
        Runner::Pytest if !project.pytest && files.iter().all(|file| is_unittest(&file.text)) => {
            named(&["python3", "-m", "unittest"])
        }
        Runner::Pytest => named(&["pytest"]),
        Runner::Go => vec![go(files)],
        Runner::Rspec if project.gemfile_lock => named(&["bundle", "exec", "rspec"]),
        Runner::Rspec => named(&["rspec"]),
        // It takes one file.
        Runner::Minitest => files.iter().map(|file| minitest(file)).collect(),
        Runner::Bats => named(&["bats"]),
        Runner::Shell => files.iter().map(|file| shell_test(file)).collect(),
    }
}

/// By the script's own first line, but never a program that it names itself.
fn shell_test(file: &TestFile) -> (String, CommandSpec) {
    let first = file.text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
    let is_bash = first.contains("bash") || first.is_empty() && file.path.ends_with(".bash");
    let shell = if is_bash { "bash" } else { "sh" };
    (format!("{shell} {}", file.path), CommandSpec::Argv(vec![shell.to_owned(), word(&file.path)]))
}

/// The library that comes with Python, and no other.
fn is_unittest(text: &str) -> bool {
    let imports = |name: &str| {
        text.lines().map(str::trim_start).any(|line| {
            let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
            rest.is_some_and(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next() == Some(name))
        })
    };
    imports("unittest") && !imports("pytest")
}

fn minitest(file: &TestFile) -> (String, CommandSpec) {
    let words = ["ruby", "-Itest", "-Ilib", &word(&file.path)].map(str::to_owned);
    (format!("ruby {}", file.path), CommandSpec::Argv(words.to_vec()))
}

fn java_script(project: &Project) -> &'static [&'static str] {
    let package = project.package_json.as_deref().unwrap_or_default();
    let uses = |name: &str| package.contains(&format!("\"{name}\""));
    if uses("vitest") {
        &["npx", "--no-install", "vitest", "run"]
    } else if uses("jest") || uses("react-scripts") {
        &["npx", "--no-install", "jest", "--runTestsByPath"]
    } else if uses("mocha") {
        &["npx", "--no-install", "mocha"]
    } else if project.bun_lock {
        &["bun", "test"]
    } else {
        &["node", "--test"]
    }
}

/// One call for each package and kind of target, with the tests by their full names.
fn cargo_inline(files: &[&TestFile], project: &Project) -> Vec<(String, CommandSpec)> {
    let mut calls: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let Some((package, inside)) = in_package(&file.path).filter(|(package, _)| project.cargo_folders.contains(*package))
        else {
            continue;
        };
        let Some((module, is_program)) = module_of(inside) else { continue };
        let target = if is_program || !project.cargo_libraries.contains(package) { "--bins" } else { "--lib" };
        let full = |name: &String| module.iter().copied().chain([name.as_str()]).collect::<Vec<_>>().join("::");
        calls.entry((package, target)).or_default().extend(file.names.iter().map(full));
    }
    let command = |((package, target), names): ((&str, &str), BTreeSet<String>)| {
        let mut words = vec!["cargo".to_owned(), "test".to_owned(), "--no-fail-fast".to_owned(), target.to_owned()];
        if !package.is_empty() {
            words.extend(["--manifest-path".to_owned(), format!("{}/Cargo.toml", word(package))]);
        }
        words.extend(["--".to_owned(), "--exact".to_owned()]);
        words.extend(names);
        (format!("cargo test {target}"), CommandSpec::Argv(words))
    };
    calls.into_iter().map(command).collect()
}

/// `crates/x/src/a/b.rs`: package `crates/x`, and `a/b.rs` in it.
pub fn in_package(path: &str) -> Option<(&str, &str)> {
    match path.strip_prefix("src/") {
        Some(inside) => Some(("", inside)),
        None => path.split_once("/src/"),
    }
}

/// The module that a file is, and whether it is one of a program. As the language has it, where no attribute says otherwise.
fn module_of(inside: &str) -> Option<(Vec<&str>, bool)> {
    let mut parts: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    let is_program = parts[0] == "main" || parts[0] == "bin";
    if parts[0] == "bin" {
        // `bin/name.rs` and `bin/name/main.rs`: each is a program.
        parts.drain(..parts.len().min(2));
    }
    if matches!(parts.as_slice(), ["lib" | "main"]) || parts.last() == Some(&"mod") {
        parts.pop();
    }
    let plain = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    parts.iter().all(plain).then_some((parts, is_program))
}

/// One call for each package: test programs are named after their file or folder.
fn cargo(files: &[&TestFile], project: &Project) -> Vec<(String, CommandSpec)> {
    let mut packages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let Some((package, program)) = program_of(&file.path) else { continue };
        if project.cargo_folders.contains(package) {
            packages.entry(package).or_default().insert(program);
        }
    }
    let command = |(package, programs): (&str, BTreeSet<&str>)| {
        let mut words = vec!["cargo".to_owned(), "test".to_owned(), "--no-fail-fast".to_owned()];
        if !package.is_empty() {
            words.extend(["--manifest-path".to_owned(), format!("{}/Cargo.toml", word(package))]);
        }
        for program in programs {
            words.push(format!("--test={program}"));
        }
        ("cargo test".to_owned(), CommandSpec::Argv(words))
    };
    packages.into_iter().map(command).collect()
}

/// `crates/x/tests/name.rs` and `crates/x/tests/name/main.rs`: package `crates/x`, program `name`.
fn program_of(path: &str) -> Option<(&str, &str)> {
    let (package, rest) = match path.strip_prefix("tests/") {
        Some(rest) => ("", rest),
        None => path.rsplit_once("/tests/")?,
    };
    let program = rest.strip_suffix("/main.rs").or_else(|| rest.strip_suffix(".rs"))?;
    (!program.is_empty() && !program.contains('/')).then_some((package, program))
}

/// Go runs packages, so the tests of the files are picked by name.
fn go(files: &[&TestFile]) -> (String, CommandSpec) {
    let tests: BTreeSet<&str> = files.iter().flat_map(|file| go_tests(&file.text)).collect();
    let folders: BTreeSet<String> = files
        .iter()
        .map(|file| file.path.rsplit_once('/').map_or_else(|| ".".to_owned(), |(folder, _)| format!("./{folder}")))
        .collect();
    let pick = format!("^({})$", tests.into_iter().collect::<Vec<_>>().join("|"));
    let words = ["go", "test", "-count=1", "-v", "-run", &pick].map(str::to_owned).into_iter().chain(folders);
    ("go test".to_owned(), CommandSpec::Argv(words.collect()))
}

fn go_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let name = line.strip_prefix("func ")?.split('(').next()?;
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (name.starts_with("Test") && plain).then_some(name)
    })
}

/// A name that begins with a dash is no option.
fn word(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, runner: Runner) -> TestFile {
        let names = vec!["tests::new".to_owned()];
        TestFile {
            path: path.to_owned(),
            runner,
            names,
            text: "func TestA(t *testing.T) {\nfunc Testé(x)\nfunc helper()".to_owned(),
        }
    }

    fn shown(command: &CommandSpec) -> String {
        match command {
            CommandSpec::Argv(words) => words.join("|"),
            CommandSpec::Shell(text) => panic!("{text} would be read by a shell"),
        }
    }

    #[test]
    fn a_hostile_name_is_a_word_and_nothing_else() {
        let files = [file("-rf; $(x) `y`.test.js", Runner::JavaScript), file("a b.test.js", Runner::JavaScript)];
        let argv = CommandSpec::Argv(vec!["t".to_owned(), FILES_WORD.to_owned(), "--end".to_owned()]);
        assert_eq!(shown(&configured(&argv, &files)), "t|./-rf; $(x) `y`.test.js|a b.test.js|--end");
        let shell = CommandSpec::Shell("cd web && npm test -- {files}".to_owned());
        let expected = "sh|-c|cd web && npm test -- \"$@\"|sh|./-rf; $(x) `y`.test.js|a b.test.js";
        assert_eq!(shown(&configured(&shell, &files)), expected);
    }

    #[test]
    fn each_runner_gets_its_files() {
        let package = |text: &str| Project { package_json: Some(text.to_owned()), ..Project::default() };
        let cargo = Project {
            cargo_folders: [String::new(), "crates/x".to_owned()].into(),
            cargo_libraries: ["crates/x".to_owned()].into(),
            ..Project::default()
        };
        let python = |text: &str| vec![TestFile { text: text.to_owned(), ..file("test_a.py", Runner::Pytest) }];
        let script = |path: &str, text: &str| vec![TestFile { text: text.to_owned(), ..file(path, Runner::Shell) }];
        let web = || vec![file("a.test.ts", Runner::JavaScript)];
        for (files, project, expected) in [
            (web(), package("{\"devDependencies\":{\"vitest\":\"1\"}}"), "npx|--no-install|vitest|run|a.test.ts"),
            (web(), package("{\"devDependencies\":{\"jest\":\"1\"}}"), "npx|--no-install|jest|--runTestsByPath|a.test.ts"),
            (web(), package("{}"), "node|--test|a.test.ts"),
            (vec![file("test_a.py", Runner::Pytest)], Project::default(), "pytest|test_a.py"),
            (python("import unittest\n"), Project::default(), "python3|-m|unittest|test_a.py"),
            (python("from unittest import mock\nimport pytest\n"), Project::default(), "pytest|test_a.py"),
            (python("import unittest\n"), Project { pytest: true, ..Project::default() }, "pytest|test_a.py"),
            (script("a.test.sh", ""), Project::default(), "sh|a.test.sh"),
            (script("-a.test.sh", "#!/usr/bin/env bash\n"), Project::default(), "bash|./-a.test.sh"),
            (
                vec![file("src/main.rs", Runner::CargoInline), file("src/a/mod.rs", Runner::CargoInline)],
                cargo.clone(),
                "cargo|test|--no-fail-fast|--bins|--|--exact|a::tests::new|tests::new",
            ),
            (
                vec![file("crates/x/src/a/b.rs", Runner::CargoInline), file("crates/x/src/lib.rs", Runner::CargoInline)],
                cargo.clone(),
                "cargo|test|--no-fail-fast|--lib|--manifest-path|crates/x/Cargo.toml|--|--exact|a::b::tests::new|tests::new",
            ),
            (
                vec![file("tests/a.rs", Runner::Cargo), file("tests/b/main.rs", Runner::Cargo)],
                cargo.clone(),
                "cargo|test|--no-fail-fast|--test=a|--test=b",
            ),
            (
                vec![file("crates/x/tests/a.rs", Runner::Cargo)],
                cargo,
                "cargo|test|--no-fail-fast|--manifest-path|crates/x/Cargo.toml|--test=a",
            ),
            (vec![file("p/a_test.go", Runner::Go)], Project::default(), "go|test|-count=1|-v|-run|^(TestA)$|./p"),
            (
                vec![file("spec/a_spec.rb", Runner::Rspec)],
                Project { gemfile_lock: true, ..Project::default() },
                "bundle|exec|rspec|spec/a_spec.rb",
            ),
            (vec![file("a.bats", Runner::Bats)], Project::default(), "bats|a.bats"),
        ] {
            let commands = usual(&files, &project);
            assert_eq!(commands.iter().map(|(_, command)| shown(command)).collect::<Vec<_>>(), [expected]);
        }
        for runner in
            [Runner::JavaScript, Runner::Pytest, Runner::Go, Runner::Rspec, Runner::Minitest, Runner::Bats, Runner::Shell]
        {
            let (name, CommandSpec::Argv(words)) = &usual(&[file("test/x.test.sh", runner)], &Project::default())[0] else {
                panic!()
            };
            assert!(test_outcome::runs_tests(words), "the output of {name} has to be understood");
        }
        let two = [file("a_test.go", Runner::Go), file("b.bats", Runner::Bats)];
        assert_eq!(usual(&two, &Project::default()).len(), 2);
        assert!(usual(&[file("vendor/y/tests/a.rs", Runner::Cargo)], &Project::default()).is_empty(), "no package there");
    }
}
