//! The outcome of a test run: whether the command ran tests at all, how they ended, in which framework, and which tests failed.
//!
//! The exit code decides first. The output names the failures, and it overrides the exit code only if that is not the exit code of
//! the test command (`pytest | tail`, `npm test || true`). In that case the framework's last summary decides, never a single word:
//! tests print "FAILED" all the time.

mod absent;
mod choose;
mod command;
mod failures;
mod first_error;
mod lines;
mod missing_summary;
mod names;
mod not_found;
mod outcome_text;
mod reader;
mod report;
pub mod sanitise;
mod script_summary;
mod tally;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use verdone_shell::{Runs, Simple, Variables};

pub use absent::{absent, is_code_of_no_tests, may_be_code_of_tests};
pub use first_error::first_error;
pub use missing_summary::{MissingOutput, is_seen_whole, missing_from};
pub use names::TestNames;
pub use not_found::program_not_found;
pub use outcome_text::describe_outcome;
pub use report::{Report, ReportFault, report};
pub use tally::{SomeRan, Tally, tally};

/// The outcome of a test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestOutcome {
    /// Unknown if a script ran the tests and the output matches no framework.
    pub framework: Option<Framework>,
    pub state: TestState,
    pub counts: TestCounts,
    /// The failures in output order. If there are very many, only the first ones.
    pub failures: Vec<TestFailure>,
    /// Why the run failed if no test is to blame: a threshold, a missing module, a command that was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The output reports a failure although the exit code is 0: a pipe or `|| true` hid it.
    pub hidden: bool,
}

/// How a test run ended. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestState {
    Passed,
    /// No test was completed: none was found, or all were skipped.
    NothingRan,
    Failed,
    /// The run broke before or outside the tests: it does not compile, load or start.
    Broken,
}

/// The number of tests, as far as the output reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub skipped: Option<u64>,
}

impl TestCounts {
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            passed: add(self.passed, more.passed),
            failed: add(self.failed, more.failed),
            skipped: add(self.skipped, more.skipped),
        }
    }
}

/// One test, or one file that could not be loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFailure {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The first line of the framework's message, truncated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The frameworks whose output can be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    Jest,
    Vitest,
    Mocha,
    Ava,
    NodeTest,
    Bun,
    Tap,
    Bats,
    Pytest,
    Unittest,
    Go,
    CargoTest,
    Nextest,
    Rspec,
    Minitest,
    Phpunit,
    Surefire,
    Gradle,
    Dotnet,
    /// A `JUnit` XML report from an unknown framework.
    JunitXml,
}

impl Framework {
    /// The display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jest => "Jest",
            Self::Vitest => "Vitest",
            Self::Mocha => "Mocha",
            Self::Ava => "AVA",
            Self::NodeTest => "node --test",
            Self::Bun => "bun test",
            Self::Tap => "TAP",
            Self::Bats => "Bats",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::Go => "go test",
            Self::CargoTest => "cargo test",
            Self::Nextest => "cargo nextest",
            Self::Rspec => "RSpec",
            Self::Minitest => "Minitest",
            Self::Phpunit => "PHPUnit",
            Self::Surefire => "Maven Surefire",
            Self::Gradle => "Gradle",
            Self::Dotnet => "dotnet test",
            Self::JunitXml => "JUnit XML",
        }
    }
}

/// Determines the test outcome of a finished command; `None` if it ran no tests, as far as can be determined.
///
/// `commands` are the simple commands that ran, in order, each a list of words (`pytest -q | tail -3` is two).
pub fn read<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    choose::outcome(&command::Ran::from_commands(&borrowed(commands))?, exit_code, output)
}

fn borrowed<'c, C: AsRef<[W]>, W: AsRef<str> + 'c>(commands: &'c [C]) -> Vec<Vec<&'c str>> {
    commands.iter().map(|command| command.as_ref().iter().map(AsRef::as_ref).collect()).collect()
}

/// Like [`read`], for a shell command line.
pub fn read_line(line: &str, exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    read(&simple_commands(line), exit_code, output)
}

/// The simple commands of a shell command line, each a list of words.
pub fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let script = verdone_shell::parse(line, &Variables::new());
    let words = |simple: &Simple| -> Vec<String> {
        simple.words.iter().map(|word| word.literal().unwrap_or(word.prefix()).to_owned()).collect()
    };
    // The parser lists commands passed to a shell as text (`sh -c`) separately, after the shell itself.
    let read_in = |simple: &&Simple| simple.runs != Runs::Known && !simple.words.is_empty();
    script.commands.iter().filter(read_in).map(words).collect()
}

/// Whether one simple command runs tests, judging by its words.
pub fn runs_tests<W: AsRef<str>>(words: &[W]) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    command::classify(&words).is_some_and(|kind| kind != command::Kind::Loose)
}
