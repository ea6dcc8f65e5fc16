//! What a run of tests showed: whether the command was a test run at all, how it ended, in which framework, which tests failed.
//!
//! The exit code is believed first. The output names the failures, and it is believed against the exit code only where the
//! exit code is not that of the test command (`pytest | tail`, `npm test || true`). A framework's own last summary decides then,
//! never a word: tests print "FAILED" all the time.

mod absent;
mod choose;
mod command;
mod failures;
mod lines;
mod names;
mod plain;
mod reader;
mod report;
mod summary;
mod tally;
mod unsaid;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shell::{self, Runs, Simple, Variables};

pub use absent::{absent, is_code_of_no_tests, may_be_code_of_tests};
pub use names::TestNames;
pub use report::{Report, ReportFault, report};
pub use summary::summary;
pub use tally::{SomeRan, Tally, tally};
pub use unsaid::{Unsaid, is_seen_whole, unsaid};

/// What a test run showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestOutcome {
    /// Unknown when a script ran the tests and the output fits no framework.
    pub framework: Option<Framework>,
    pub state: TestState,
    pub counts: TestCounts,
    /// What failed, in the order of the output; the first ones, when there are very many.
    pub failures: Vec<TestFailure>,
    /// Why a run failed in which no test is to blame: a threshold, a missing module, a command that was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The output says failed though the exit code is 0: a pipe or `|| true` hid it.
    pub hidden: bool,
}

/// How a test run ended. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestState {
    Passed,
    /// No test ran to an end: nothing was found, or everything was skipped.
    NothingRan,
    Failed,
    /// It broke before or outside the tests: it does not compile, load or start.
    Broken,
}

/// How many tests, where the output says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub skipped: Option<u64>,
}

impl TestCounts {
    pub(crate) fn plus(self, more: Self) -> Self {
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
    /// The first line of what the framework says about it, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The frameworks whose output is understood.
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
    /// A report as `JUnit` XML, from no framework that is known.
    JunitXml,
}

impl Framework {
    /// The name as people write it.
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

/// Reads what a finished command showed about tests; nothing if it ran none as far as can be told.
///
/// `commands` are the simple commands of what was run, in order, each a list of words (`pytest -q | tail -3` is two).
pub fn read<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    choose::outcome(&command::Ran::of(&borrowed(commands))?, exit_code, output)
}

fn borrowed<'c, C: AsRef<[W]>, W: AsRef<str> + 'c>(commands: &'c [C]) -> Vec<Vec<&'c str>> {
    commands.iter().map(|command| command.as_ref().iter().map(AsRef::as_ref).collect()).collect()
}

/// As [`read`], for a command line of a shell.
pub fn read_line(line: &str, exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    read(&simple_commands(line), exit_code, output)
}

/// The simple commands of a command line of a shell, each a list of words.
pub fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let script = shell::parse(line, &Variables::new());
    let words = |simple: &Simple| -> Vec<String> {
        simple.words.iter().map(|word| word.literal().unwrap_or(word.prefix()).to_owned()).collect()
    };
    // What a shell was given as text is listed after it.
    let read_in = |simple: &&Simple| simple.runs != Runs::Known && !simple.words.is_empty();
    script.commands.iter().filter(read_in).map(words).collect()
}

/// Whether one simple command runs tests, as far as its words tell.
pub fn runs_tests<W: AsRef<str>>(words: &[W]) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    command::classify(&words).is_some_and(|kind| kind != command::Kind::Loose)
}
