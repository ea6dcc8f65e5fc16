//! Test runs that exit with 0 but mention no test: the work ends the runner's process, or `make` had nothing to do.
//!
//! Only for runners that always print a summary. Others may be quiet on success because of a reporter in their configuration file,
//! so they are believed.

use std::sync::LazyLock;

use regex::Regex;

use super::borrowed;
use super::command::{Kind, Ran, classify, unwrap};
use super::tally::is_silent;
use verdone_shell::{RedirectKind, Simple, Variables, parse};

/// What is missing from the output of a run that exited with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingOutput {
    /// Nothing is missing.
    Nothing,
    /// The runner's final summary.
    Summary,
    /// The tests: make mistook a file for the target that runs them.
    Tests,
}

/// Determines what the output of these commands lacks; `commands` as for [`super::read`].
pub fn missing_from<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], output: &str) -> MissingOutput {
    let words = borrowed(commands);
    let Some(ran) = Ran::from_commands(&words).filter(|ran| ran.exit_is_its_own) else { return MissingOutput::Nothing };
    let (Some(last), [kind]) = (words.last(), ran.kinds.as_slice()) else { return MissingOutput::Nothing };
    let last = unwrap(last);
    let missing = match kind {
        Kind::Direct(_) if is_unittest(last) => is_silent(output),
        Kind::Direct(_) if is_plain_pytest(last) => is_silent(output) && is_cut_short(output),
        Kind::Direct(_) if is_cargo_test(last) => stops_in_the_middle(output),
        Kind::Direct(_) => false,
        Kind::Runner | Kind::Loose => {
            let idle = up_to_date(last, output) && is_silent(output);
            return if idle { MissingOutput::Tests } else { MissingOutput::Nothing };
        }
    };
    if missing { MissingOutput::Summary } else { MissingOutput::Nothing }
}

/// Whether the whole output of a command line is captured: none of it goes to a file, a pipe or a command substitution.
pub fn is_seen_whole(line: &str) -> bool {
    let writes = |simple: &Simple| {
        simple.redirects.iter().any(|redirect| {
            let elsewhere = redirect.target.literal().is_none_or(|target| !target.bytes().all(|byte| byte.is_ascii_digit()));
            redirect.kind != RedirectKind::Read && elsewhere
        })
    };
    let into_a_word = line.contains('`') || line.contains("$(");
    // A group's redirection may not belong to any simple command.
    let grouped = line.contains(") >") || line.contains(")>") || line.contains("} >") || line.contains("done >");
    !into_a_word && !grouped && !parse(line, &Variables::new()).commands.iter().any(writes)
}

/// No setting suppresses unittest's summary.
fn is_unittest(words: &[&str]) -> bool {
    module(words) == Some("unittest") && !words.contains(&"-h")
}

/// pytest without options that make it quiet. Its settings may still do so.
fn is_plain_pytest(words: &[&str]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let is_pytest = matches!(program.rsplit('/').next(), Some("pytest" | "py.test")) || module(words) == Some("pytest");
    let quiet = args.iter().filter(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('q'));
    let asks = args.iter().any(|arg| matches!(*arg, "-h" | "-V" | "--cache-show" | "no:terminal" | "-pno:terminal"));
    let quiet = quiet.count() + args.iter().filter(|arg| **arg == "--quiet").count();
    is_pytest && !asks && quiet < 2 && !args.contains(&"-qq")
}

fn module<'w>(words: &[&'w str]) -> Option<&'w str> {
    words.iter().position(|word| *word == "-m").and_then(|at| words.get(at + 1)).copied()
}

/// Empty output, or only the head of a pytest run. A run that its settings make quiet has neither.
fn is_cut_short(output: &str) -> bool {
    output.trim().is_empty() || (output.contains("test session starts") && !output.contains("[100%]"))
}

fn is_cargo_test(words: &[&str]) -> bool {
    matches!(words, ["cargo", "test" | "t", ..])
}

/// The test harness announces its tests and prints a summary. Programs without it do neither.
fn stops_in_the_middle(output: &str) -> bool {
    static BEGINS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^running \d+ tests?\s*$"));
    let last = BEGINS.find_iter(output).last();
    last.is_some_and(|last| !output[last.end()..].contains("test result: "))
}

/// Whether make's only output is that a test target is up to date because a file has that name.
fn up_to_date(words: &[&str], output: &str) -> bool {
    static IDLE: LazyLock<Regex> = LazyLock::new(|| regex(r"^g?make(?:\[\d+\])?: [`'‘]([^'’]+)['’] is up to date\.$"));
    let Some((program, targets)) = words.split_first() else { return false };
    if !matches!(program.rsplit('/').next(), Some("make" | "gmake")) {
        return false;
    }
    let told = |line: &str| !line.contains(": Entering directory ") && !line.contains(": Leaving directory ");
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty() && told(line)).peekable();
    let is_test =
        |target: &str| targets.contains(&target) && (target == "check" || classify(&["make", target]) == Some(Kind::Runner));
    lines.peek().is_some() && lines.all(|line| IDLE.captures(line).is_some_and(|found| is_test(&found[1])))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simple_commands;

    fn from_line(line: &str, output: &str) -> MissingOutput {
        missing_from(&simple_commands(line), output)
    }

    #[test]
    fn a_runner_that_always_sums_up_and_did_not_is_missed() {
        let begun = "===== test session starts =====\nplatform linux\ncollected 1 item\n\ntests/test_a.py ";
        for (line, output) in [
            ("python3 -m unittest tests.test_a", ""),
            ("cd app && python3.12 -m unittest", "all fine\n"),
            ("coverage run -m unittest -q", ""),
            ("pytest", begun),
            ("uv run pytest -q tests", ""),
            ("python -m pytest --junitxml=out.xml", begun),
            ("cargo test --test a", "     Running tests/a.rs (target/debug/deps/a-1)\n\nrunning 2 tests\n"),
            ("cargo test -q", "\nrunning 1 test\ntest result: ok. 1 passed; 0 failed\n\nrunning 3 tests\n"),
        ] {
            assert_eq!(from_line(line, output), MissingOutput::Summary, "{line}: {output}");
        }
    }

    #[test]
    fn a_quiet_run_is_believed_where_its_runner_can_be_quiet() {
        let ran = "\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nOK\n";
        let cargo = "running 2 tests\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        for (line, output) in [
            ("python3 -m unittest -q", ran),
            ("pytest -q", ".                       [100%]\n1 passed in 0.01s\n"),
            ("pytest -q", ".                       [100%]\n"),
            ("pytest -qq", ""),
            ("pytest -q -q", ""),
            ("pytest -p no:terminal", ""),
            ("pytest", "Results (0.05s):\n       1 passed\n"),
            ("pytest", ".\n"),
            ("bundle exec rspec", ""),
            ("rspec", "\n\nFinished in 0.01 seconds\n1 example, 0 failures\n"),
            ("rspec --format RspecJunitFormatter --out out.xml", ""),
            ("rspec -fj -oout.json", ""),
            ("cargo test --test a", cargo),
            ("cargo test --test without_harness", "all fine\n"),
            ("python3 tests/test_a.py", ""),
            ("node tests/a.test.js", ""),
            ("npx jest", ""),
            ("npx mocha", ""),
            ("pytest | tail -1", ""),
            ("pytest || true", ""),
            ("test -d web && pytest", ""),
            ("pytest --version", "pytest 8.0\n"),
            ("./run_tests.sh", ""),
        ] {
            assert_eq!(from_line(line, output), MissingOutput::Nothing, "{line}: {output}");
        }
    }

    #[test]
    fn a_make_that_takes_a_file_for_its_tests_ran_none() {
        let idle = |target: &str| format!("make: '{target}' is up to date.\n");
        let below = "make: Entering directory '/x/sub'\nmake: 'test' is up to date.\nmake: Leaving directory '/x/sub'\n";
        for (line, output) in [("make test", idle("test")), ("make check", idle("check")), ("make -C sub test", below.to_owned())]
        {
            assert_eq!(from_line(line, &output), MissingOutput::Tests, "{line}");
        }
        for (line, output) in [
            ("make build/app", idle("build/app")),
            ("make", "make: Nothing to be done for 'all'.\n".to_owned()),
            ("make test", format!("{}sh tests/greet\n", idle("build"))),
            ("make test", "sh tests/greet\n".to_owned()),
            ("make test", String::new()),
            ("make test && ./test", idle("test")),
        ] {
            assert_eq!(from_line(line, &output), MissingOutput::Nothing, "{line}");
        }
    }

    #[test]
    fn what_goes_elsewhere_is_not_missed() {
        for line in ["pytest", "pytest 2>&1", "cd a && pytest < in"] {
            assert!(is_seen_whole(line), "{line}");
        }
        for line in
            ["pytest > log", "pytest >log 2>&1", "(pytest) >> log", "out=$(pytest)", "x=`pytest`", "exec 2>/dev/null; pytest"]
        {
            assert!(!is_seen_whole(line), "{line}");
        }
    }
}
