//! What proves a story, and which part of it: its own checks, tests that the attempt itself brought along, or nothing.
//!
//! A test of the agent's counts only as a difference: red on the tree from before the work, green on the tree that is committed,
//! both without any other file. Nothing here runs anything.

mod as_before;
pub mod inline_tests;
pub mod test_command;
pub mod test_file;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{CheckOrigin, CheckOutcome, CheckRun};
use crate::plan::Story;
use crate::test_outcome::{TestOutcome, TestState};

pub use as_before::{AsBefore, Doubted};

/// What is asked of a story that has no check of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OwnCheck {
    /// Gates are enough; the best verdict is *unproven*.
    #[default]
    Gates,
    /// Tests that the attempt adds or changes have to fail without its work and pass with it; else it is *unproven*.
    AgentTest,
    /// A plan with such a story is refused.
    Require,
}

/// The tests that an attempt brought along, on the tree from before and on its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTest {
    /// The test files, relative to the project.
    pub files: Vec<String>,
    /// What they said without the work: they ought to fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<CheckRun>,
    /// They could not even be built or loaded without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken_before: bool,
    /// What they said with it, in a clean tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<CheckRun>,
    /// Why they prove nothing, where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
}

impl AgentTest {
    /// Asks the runs themselves.
    pub fn proves(&self) -> bool {
        let green = !self.after.is_empty() && self.after.iter().all(|run| run.outcome.passed());
        self.unproven.is_none() && green && self.before.iter().any(is_red)
    }
}

pub use crate::verify::ProvenCriterion;

/// One run of a test command and what its output says about tests, where that is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub run: CheckRun,
    pub tests: Option<TestOutcome>,
}

/// What the tests of an attempt showed on one of the two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Showed {
    /// As it should be.
    Right,
    /// The tests themselves failed on the tree that is to be committed.
    Wrong,
    /// Nothing, for this reason.
    Nothing(String),
}

/// The tree from before the work with the attempt's tests: one of them has to fail.
pub fn without_the_work(seen: &[Seen]) -> Showed {
    if seen.iter().any(|seen| is_red(&seen.run)) {
        return Showed::Right;
    }
    match seen.iter().find(|seen| !seen.run.outcome.passed()) {
        Some(other) => Showed::Nothing(format!("its tests could not be run without the work: {}", words(&other.run))),
        None if seen.is_empty() => Showed::Nothing(NO_TEST.to_owned()),
        None => Showed::Nothing("its tests pass without the work, so they prove nothing".to_owned()),
    }
}

/// Whether they did not even get as far as a test.
pub fn broke_without_the_work(seen: &[Seen]) -> bool {
    let broken = |seen: &Seen| seen.tests.as_ref().is_some_and(|tests| tests.state == TestState::Broken);
    seen.iter().filter(|seen| is_red(&seen.run)).all(broken) && seen.iter().any(broken)
}

/// The tree that is to be committed: all of them have to pass. `believed` says that the user named the command, whose exit code
/// counts even where its output is not understood.
pub fn with_the_work(seen: &[Seen], believed: bool) -> Showed {
    let failed = |seen: &&Seen| seen.tests.as_ref().is_some_and(|tests| tests.state == TestState::Failed);
    if seen.iter().any(|seen| !seen.run.outcome.passed() && failed(&seen)) {
        return Showed::Wrong;
    }
    if let Some(other) = seen.iter().find(|seen| !seen.run.outcome.passed()) {
        return Showed::Nothing(format!("its tests could not be run in a clean tree: {}", words(&other.run)));
    }
    let ran = |seen: &Seen| match &seen.tests {
        Some(tests) => tests.state == TestState::Passed && tests.counts.passed != Some(0),
        None => believed,
    };
    match seen.iter().find(|seen| !ran(seen)) {
        Some(empty) => Showed::Nothing(format!("{}: no test ran, as far as its output tells", empty.run.name)),
        None if seen.is_empty() => Showed::Nothing(NO_TEST.to_owned()),
        None => Showed::Right,
    }
}

/// Criteria of one story that are listed, and characters of each: they go into the journal and the commit's note.
const MOST_CRITERIA: usize = 200;
const LONGEST_TEXT: usize = 500;

/// Why there is nothing to run.
pub const NO_TEST: &str = "the attempt added or changed no test";

/// Each criterion of a story with the check that is tied to it: one whose command the criterion names in backticks, or is. A story
/// that is one criterion alone is proven by what proves the story.
pub fn criteria(story: &Story, runs: &[CheckRun], agent_test: Option<&AgentTest>) -> Vec<ProvenCriterion> {
    let green: Vec<&CheckRun> = runs.iter().filter(|run| run.outcome.passed()).collect();
    let whole = || {
        let own = green.iter().find(|run| run.origin == CheckOrigin::Story).map(|run| prover(run));
        own.or_else(|| agent_test.filter(|test| test.proves()).map(|test| format!("agent-test: {}", test.files.join(", "))))
    };
    let single = story.criteria.len() == 1;
    let one = |text: &str| {
        let named = green.iter().find(|run| names(text, &run.command.display())).map(|run| prover(run));
        named.or_else(|| if single { whole() } else { None })
    };
    let cut = |text: &str| text.chars().take(LONGEST_TEXT).collect();
    let listed = story.criteria.iter().take(MOST_CRITERIA);
    listed.map(|each| ProvenCriterion { text: cut(&each.text), prover: one(&each.text) }).collect()
}

fn prover(run: &CheckRun) -> String {
    match &run.origin {
        CheckOrigin::Story => format!("own check: {}", run.name),
        CheckOrigin::Gate(_) => format!("gate: {}", run.name),
        CheckOrigin::AgentTest => format!("agent-test: {}", run.name),
    }
}

/// Whether a text is a command, or has it in backticks.
fn names(text: &str, command: &str) -> bool {
    let command = command.trim();
    if command.is_empty() {
        return false;
    }
    // Every second part lies between two backticks.
    text.trim() == command || text.split('`').skip(1).step_by(2).any(|quoted| quoted.trim() == command)
}

fn is_red(run: &CheckRun) -> bool {
    matches!(run.outcome, CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. })
}

fn words(run: &CheckRun) -> String {
    format!("{} {}", run.name, run.outcome.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Stage;
    use crate::check::tests::ran;
    use crate::plan::Document;
    use crate::test_outcome::TestCounts;

    fn run(command: &str, origin: CheckOrigin, outcome: CheckOutcome) -> CheckRun {
        CheckRun { origin, ..ran(command, outcome) }
    }

    fn seen(outcome: CheckOutcome, state: Option<TestState>) -> Seen {
        let tests = state.map(|state| TestOutcome {
            framework: None,
            state,
            counts: TestCounts::default(),
            failures: Vec::new(),
            reason: None,
            hidden: false,
        });
        Seen { run: run("tests", CheckOrigin::AgentTest, outcome), tests }
    }

    fn failed() -> CheckOutcome {
        CheckOutcome::Failed { code: 1 }
    }

    #[test]
    fn without_the_work_only_a_failure_is_right() {
        let unknown = CheckOutcome::Unknown { reason: "not found".to_owned() };
        for (outcomes, right, said) in [
            (vec![seen(failed(), Some(TestState::Failed))], true, ""),
            (vec![seen(failed(), Some(TestState::Broken))], true, ""),
            (vec![seen(failed(), None)], true, ""),
            (vec![seen(CheckOutcome::Passed, Some(TestState::Passed))], false, "pass without the work"),
            (vec![seen(unknown, None)], false, "tests not found"),
            (vec![seen(CheckOutcome::TimedOut { after_ms: 5 }, None)], false, "did not end within"),
            (Vec::new(), false, NO_TEST),
        ] {
            match without_the_work(&outcomes) {
                Showed::Right => assert!(right, "{outcomes:?}"),
                Showed::Nothing(why) => assert!(!right && why.contains(said), "{why}"),
                Showed::Wrong => panic!("{outcomes:?}"),
            }
        }
        assert!(broke_without_the_work(&[seen(failed(), Some(TestState::Broken))]));
        assert!(!broke_without_the_work(&[seen(failed(), Some(TestState::Failed)), seen(failed(), Some(TestState::Broken))]));
        assert!(!broke_without_the_work(&[seen(failed(), None)]));
    }

    #[test]
    fn with_the_work_every_test_passes_and_one_ran() {
        let passed = || CheckOutcome::Passed;
        for (outcomes, believed, expected) in [
            (vec![seen(passed(), Some(TestState::Passed))], false, Showed::Right),
            (vec![seen(passed(), None)], true, Showed::Right),
            (vec![seen(failed(), Some(TestState::Failed))], true, Showed::Wrong),
        ] {
            assert_eq!(with_the_work(&outcomes, believed), expected, "{outcomes:?}");
        }
        for (outcomes, believed, said) in [
            (vec![seen(passed(), Some(TestState::NothingRan))], true, "no test ran"),
            (vec![seen(passed(), None)], false, "no test ran"),
            (vec![seen(failed(), Some(TestState::Broken))], true, "could not be run in a clean tree"),
            (vec![seen(failed(), None)], true, "could not be run in a clean tree"),
            (Vec::new(), true, NO_TEST),
        ] {
            let Showed::Nothing(why) = with_the_work(&outcomes, believed) else { panic!("{outcomes:?}") };
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn a_difference_needs_both_of_its_sides() {
        let red = || vec![run("t", CheckOrigin::AgentTest, failed())];
        let green = || vec![run("t", CheckOrigin::AgentTest, CheckOutcome::Passed)];
        let test = |before, after| AgentTest { before, after, ..AgentTest::default() };
        assert!(test(red(), green()).proves());
        assert!(!test(green(), green()).proves());
        assert!(!test(red(), red()).proves());
        assert!(!test(red(), Vec::new()).proves());
        assert!(!AgentTest { unproven: Some("why".to_owned()), ..test(red(), green()) }.proves());
    }

    fn story(text: &str) -> Story {
        Document::parse("PLAN.md", text.as_bytes()).unwrap().plan().stories[0].clone()
    }

    #[test]
    fn a_criterion_is_proven_by_a_check_that_it_names_and_by_no_other() {
        let plan = "# Plan\n\n### US-001: A\n\n- [ ] The parser is fast\n- [ ] `cargo test` passes\n- [ ] `make lint` is clean\n  - Verification: `test -f a`\n";
        let gate = |command: &str, outcome| run(command, CheckOrigin::Gate(Stage::Quality), outcome);
        let runs = [
            run("test -f a", CheckOrigin::Story, CheckOutcome::Passed),
            gate("cargo test", CheckOutcome::Passed),
            gate("make lint", failed()),
        ];
        let found = criteria(&story(plan), &runs, None);
        let provers: Vec<Option<&str>> = found.iter().map(|each| each.prover.as_deref()).collect();
        assert_eq!(provers[..3], [None, Some("gate: cargo test"), None], "{found:?}");
    }

    #[test]
    fn a_story_of_one_criterion_is_proven_by_what_proves_the_story() {
        let story = story("# Plan\n\n### US-001: A\n\n- [ ] The parser is fast\n");
        let prover = |runs: &[CheckRun], test: Option<&AgentTest>| criteria(&story, runs, test)[0].prover.clone();
        assert_eq!(prover(&[run("x", CheckOrigin::Story, CheckOutcome::Passed)], None).unwrap(), "own check: x");
        assert_eq!(prover(&[run("x", CheckOrigin::Gate(Stage::Quality), CheckOutcome::Passed)], None), None);
        let test = AgentTest {
            files: vec!["tests/a.rs".to_owned()],
            before: vec![run("t", CheckOrigin::AgentTest, failed())],
            after: vec![run("t", CheckOrigin::AgentTest, CheckOutcome::Passed)],
            ..AgentTest::default()
        };
        assert_eq!(prover(&[], Some(&test)).unwrap(), "agent-test: tests/a.rs");
    }
}
