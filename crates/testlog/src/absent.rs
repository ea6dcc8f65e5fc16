//! Failing runs that prove nothing: the command names a test, file, target or runner that does not exist.
//!
//! Only the runner's own messages count. A test that exists but cannot be loaded, because the code under test is not written yet,
//! has failed.

use std::sync::LazyLock;

use regex::Regex;

use super::command::{Kind, base_name, classify, names_tests, unwrap, wraps};
use super::failures::cut;
use super::{Framework, borrowed, lines};

/// The programs that print a message, the message's pattern, and when to believe it. The first capture group is the missing item.
type Saying = (&'static [&'static str], &'static str, Thing);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// No other program prints this, so it also counts if a wrapper ran the program.
    Any,
    /// Counts if the command names the program.
    Own,
    /// Counts if the missing item is a word of the command.
    Named,
    /// Like `Named`, and the item must be named like a test: a missing program of the project may be the work still to be written.
    NamedTest,
    /// Existing tests fail with the same message. The program's reader can tell the two apart and must have found a missing test.
    Counted,
}

const PYTHON: &[&str] = &["python", "python3"];
const MAKE: &[&str] = &["make", "gmake"];

const SAYINGS: &[Saying] = &[
    (&["pytest", "py.test"], r"^ERROR: (?:file or directory not found|file not found|not found): (.+)", Thing::Any),
    (&["pytest", "py.test"], r"^(?:pytest: )?error: (unrecognized arguments: .+)", Thing::Own),
    (&["unittest"], r"^ImportError: Start directory is not importable: (.+)", Thing::Any),
    (&["unittest"], r"^(ModuleNotFoundError: No module named .+|AttributeError: .+ has no attribute .+)", Thing::Counted),
    (PYTHON, r"^\S*python\S*: can't open file '(.+)': \[Errno 2\]", Thing::NamedTest),
    (PYTHON, r"^\S*python\S*: (?:No module named|Error while finding module specification for) '?([\w.]+)", Thing::NamedTest),
    (PYTHON, r"^\S*python\S*: No module named (pytest|coverage|nose2|green|tox|nox)\b", Thing::Own),
    (&["go"], r"^no required module provides package (.+?);", Thing::Counted),
    (
        &["go"],
        r"^(?:stat|lstat|pattern|package) (.+ (?:not found|no such file or directory|is not in std|main module).*)",
        Thing::Own,
    ),
    (&["cargo"], r"^error: no (?:test|bin|example|bench) targets? (?:named|matches pattern) `(.+?)`", Thing::Any),
    (&["cargo"], r"^error: no (library) targets found in package", Thing::Any),
    (&["cargo"], r"^error: package ID specification `(.+?)` did not match any packages", Thing::Any),
    (&["cargo"], r"^error: could not find `(Cargo.toml)` in ", Thing::Any),
    (&["cargo"], r"^error: manifest path `(.+?)` does not exist", Thing::Any),
    (&["node"], r"^Could not find '(.+)'$", Thing::Own),
    (&["node"], r"^Error: Cannot find module '(.+)'$", Thing::NamedTest),
    (&["jest"], r"^  Directory (.+) in the rootDir option was not found\.", Thing::Named),
    (&["tsc"], r"^error TS(?:6053|5058|5083|18003): (.+)", Thing::Own),
    (&["npx", "jest", "vitest", "mocha"], r"^npm (?:error|ERR!) npx (canceled due to missing packages)", Thing::Own),
    (&["npm"], r"^npm (?:error|ERR!) enoent (Could not read package.json)", Thing::Own),
    (
        &["npm", "pnpm", "yarn"],
        r#"^(?:npm (?:error|ERR!) | ERR_PNPM_NO_SCRIPT  |error )(?:Missing script: |Command )"?([^"\s]+)"#,
        Thing::Named,
    ),
    (MAKE, r"^g?make: \*\*\* No rule to make target [`'‘](.+?)['’]\.  Stop\.", Thing::Named),
    (MAKE, r"^g?make: \*\*\* (.+): No such file or directory\.  Stop\.", Thing::Named),
    (MAKE, r"^g?make: \*\*\* (No targets specified and no makefile found)\.", Thing::Own),
    (&["sh", "dash"], r"^(?:sh|dash): (?:\d+: )?(?:cannot open|can't open) '?(.+?)'?(?:: No such file|$)", Thing::NamedTest),
    (&["perl"], r#"^Can't open perl script "(.+)": No such file or directory"#, Thing::NamedTest),
    (&["prove"], r"^Cannot detect source of '(.+)'!", Thing::Named),
    (&["bats"], r#"(?:Test file |bats: )"?(.+?)"? does not exist"#, Thing::Named),
    (&["phpunit"], r#"^(?:Cannot open|Test) file "(.+?)""#, Thing::Named),
    (&["rspec"], r"^  cannot load such file -- (.+)", Thing::NamedTest),
];

/// The line in which the runner of a failed command says that what it should run does not exist. `has_missing` says whether the
/// tally of the output contains missing tests.
pub fn absent<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], output: &str, has_missing: bool) -> Option<String> {
    static WORDS: LazyLock<Vec<Regex>> =
        LazyLock::new(|| SAYINGS.iter().map(|(_, words, _)| Regex::new(words).expect("a fixed pattern compiles")).collect());
    let commands = borrowed(commands);
    let started: Vec<&str> = commands.iter().flat_map(|words| programs(words)).collect();
    let wraps = wraps(&commands);
    let may_say = |(programs, _, thing): &Saying| {
        let is_started = programs.iter().any(|program| started.contains(program));
        is_started && *thing != Thing::Counted || wraps && *thing == Thing::Any || has_missing && *thing == Thing::Counted
    };
    let sayings: Vec<(&Saying, &Regex)> = SAYINGS.iter().zip(WORDS.iter()).filter(|(saying, _)| may_say(saying)).collect();
    let says = |line: &str| {
        sayings.iter().any(|((_, _, thing), words)| {
            let found = words.captures(line).and_then(|found| found.get(1));
            found.is_some_and(|found| thing.fits(found.as_str(), &commands))
        })
    };
    let lines = lines::split(output);
    lines.iter().find(|line| says(line)).map(|line| cut(line.trim(), 200))
}

/// Whether the exit code alone says that no test was found: pytest and unittest reserve 5 for that.
pub fn is_code_of_no_tests<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: i32) -> bool {
    let of_python = |kind: Kind| matches!(kind, Kind::Direct(Framework::Pytest | Framework::Unittest));
    exit_code == 5 && borrowed(commands).iter().filter_map(|words| classify(words)).any(of_python)
}

/// Whether the exit code may come from a test run: the last command is one, or may start one.
pub fn may_be_code_of_tests<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C]) -> bool {
    let last = borrowed(&commands[commands.len().saturating_sub(1)..]);
    last.iter().any(|words| classify(words).is_some()) || wraps(&last)
}

impl Thing {
    fn fits(self, thing: &str, commands: &[Vec<&str>]) -> bool {
        // Runners print absolute paths.
        let is = |word: &str| {
            let word = word.trim_start_matches("./").trim_end_matches('/');
            !word.is_empty() && (thing == word || thing.ends_with(&format!("/{word}")))
        };
        match self {
            Self::Any | Self::Own | Self::Counted => true,
            Self::Named => commands.iter().flatten().any(|word| is(word)),
            Self::NamedTest => commands.iter().flatten().any(|word| is(word) && names_tests(word)),
        }
    }
}

/// The program of a command and the program or module it starts: `npx jest`, `python -m pytest`.
fn programs<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let inner = unwrap(words);
    let module = inner.iter().position(|word| *word == "-m").and_then(|at| inner.get(at + 1)).copied();
    words.first().into_iter().chain(inner.first()).map(|word| base_name(word)).chain(module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simple_commands;

    fn is_absent(line: &str, output: &str) -> bool {
        absent(&simple_commands(line), output, false).is_some()
    }

    #[test]
    fn work_that_is_not_there_yet_is_no_missing_test() {
        let script = "python3: can't open file '/project/app.py': [Errno 2] No such file or directory\n";
        assert!(
            !is_absent("python3 app.py", script) && is_absent("python3 tests/app.py", &script.replace("app.py", "tests/app.py"))
        );
        assert!(!is_absent("python3 -m shop.cli", "/usr/bin/python3: No module named shop.cli\n"));
        let import = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'shop'\n";
        for line in ["python3 tests/run.py", "make test", "python3 -m unittest tests.test_shop", "./ci.sh"] {
            assert!(!is_absent(line, import), "{line}");
        }
        let module = "Error: Cannot find module '../src/shop'\nRequire stack:\n- /project/test/shop.test.js\n";
        assert!(!is_absent("node test/shop.test.js", module) && !is_absent("npx mocha test/shop.test.js", module));
        assert!(!is_absent("make app", "make: *** No rule to make target 'src/app.c', needed by 'app'.  Stop.\n"));
    }

    #[test]
    fn a_program_is_believed_only_of_what_it_was_given() {
        let make = "make: *** No rule to make target 'test'.  Stop.\n";
        assert!(is_absent("make test", make) && is_absent("cd app && make -s test", make));
        assert!(!is_absent("make", make) && !is_absent("pytest", make) && !is_absent("cat make.log", make));
        let cargo = "error: no test target named `flow`\n";
        assert!(is_absent("cargo test --test flow", cargo) && is_absent("make test", cargo) && is_absent("./ci.sh", cargo));
        assert!(!is_absent("pytest", cargo));
        assert!(is_absent("npm run e2e", "npm error Missing script: \"e2e\"\n"));
        assert!(is_absent("yarn e2e", "error Command \"e2e\" not found.\n"));
    }
}
