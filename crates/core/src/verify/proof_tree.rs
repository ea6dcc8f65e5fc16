//! What the proof tree shows: whether a test from the attempt fails without the work and passes with it.

use super::counts::CheckState;
use super::facts::{JobFacts, OwnCheckBefore};
use super::job::{PlannedCheck, Tree};
use super::observed::BuiltTree;
use super::reason::Note;
use crate::check::CommandSpec;
use verdone_testlog::{TestNames, runs_tests, simple_commands};

impl JobFacts<'_> {
    /// Whether the proof tree can make a difference.
    pub(super) fn needs_proof_tree(&self) -> bool {
        let is_open = |own: &PlannedCheck| match self.before(own) {
            OwnCheckBefore::Red | OwnCheckBefore::Unknown { .. } | OwnCheckBefore::Missing { .. } => true,
            OwnCheckBefore::Green | OwnCheckBefore::RunsWork { .. } | OwnCheckBefore::NotRun => false,
        };
        let has_question = !self.job.brought_tests().is_empty() || self.own().any(is_open);
        !self.job.protected.is_empty() && has_question && !self.is_limited_to_untested()
    }

    /// The checks that can show something on the proof tree.
    pub(super) fn proof_checks(&self) -> Vec<PlannedCheck> {
        self.required().filter(|check| self.may_run_tests(check)).cloned().collect()
    }

    fn may_run_tests(&self, check: &PlannedCheck) -> bool {
        check.is_own() || self.tests(Tree::Attempt, check).is_some() || is_test_command(&check.check.command)
    }

    /// The first check that proves that the attempt's tests test the work.
    pub(super) fn shown_by_tests(&self) -> Option<&PlannedCheck> {
        let mut checks = self.required().filter(|check| self.may_run_tests(check));
        checks.find(|check| self.needs_proof_tree() && self.shows_a_test(check))
    }

    fn shows_a_test(&self, check: &PlannedCheck) -> bool {
        let is_difference =
            self.state(Tree::Proof, check) == CheckState::Red && self.state(Tree::Attempt, check) == CheckState::Green;
        if !is_difference {
            return false;
        }
        if check.is_own() {
            match self.before(check) {
                // The work is the only difference between red and green.
                OwnCheckBefore::Red | OwnCheckBefore::Unknown { .. } | OwnCheckBefore::Missing { .. } => return true,
                OwnCheckBefore::Green | OwnCheckBefore::RunsWork { .. } | OwnCheckBefore::NotRun => {}
            }
        }
        !self.job.brought_tests().is_empty() && self.shows_more_than_the_base(check)
    }

    /// Whether a test fails on the proof tree that does not fail on the base.
    fn shows_more_than_the_base(&self, check: &PlannedCheck) -> bool {
        let Some(base) = self.baseline(check) else { return false };
        let failed = self.tests(Tree::Proof, check).map_or(0, |tests| tests.failed);
        if failed == 0 {
            // It does not build or load. That counts as red if the attempt passes tests that the base does not have.
            let passed = self.tests(Tree::Attempt, check).map_or(0, |tests| tests.passed);
            return base.tests.is_some_and(|base| passed > base.ran);
        }
        let names = (self.names(Tree::Proof, check), self.names(Tree::Attempt, check), &base.names);
        if let (Some(proof), Some(attempt), Some(base)) = names {
            let is_fixed = |name: &&String| attempt.passed.contains(*name) && !base.failed.contains(*name);
            return proof.failed.iter().any(|name| is_fixed(&name)) || self.shows_a_file_that_loads_now(proof, attempt, base);
        }
        let none_failed = (base.state == CheckState::Green).then_some(0);
        base.tests.map(|tests| tests.failed).or(none_failed).is_some_and(|before| failed > before)
    }

    /// Some runners report a file that does not load as one failed test with the name of the file. Its tests run only with the work.
    fn shows_a_file_that_loads_now(&self, proof: &TestNames, attempt: &TestNames, base: &TestNames) -> bool {
        let brought = self.job.brought_tests();
        let is_brought = |name: &String| brought.iter().any(|file| name == file || name.ends_with(&format!("/{file}")));
        let is_new = |name: &String| !proof.contains(name) && !base.contains(name);
        proof.failed.iter().any(|name| is_brought(name) && !base.contains(name)) && attempt.passed.iter().any(is_new)
    }

    /// Why no test of the attempt proves anything.
    pub(super) fn not_shown_because(&self) -> Note {
        let files = self.job.brought_tests();
        if files.is_empty() {
            return Note::NoTests;
        }
        if let Some(BuiltTree::Failed { why }) = &self.observed.proof {
            return Note::ProofTreeNotBuilt { why: why.clone() };
        }
        let checks = self.proof_checks();
        let is_in = |states: &[CheckState]| checks.iter().find(|check| states.contains(&self.state(Tree::Proof, check)));
        if let Some(check) = is_in(&[CheckState::Red, CheckState::Unknown, CheckState::Interrupted]) {
            let said = self.describe(Tree::Proof, check);
            return Note::TestsUnclear { check: check.check.name.clone(), said };
        }
        if is_in(&[CheckState::Green]).is_some() { Note::TestsPassWithoutWork { files } } else { Note::TestsNotRun { files } }
    }
}

fn is_test_command(command: &CommandSpec) -> bool {
    match command {
        CommandSpec::Shell(line) => simple_commands(line).iter().any(|words| runs_tests(words)),
        CommandSpec::Argv(words) => runs_tests(words),
    }
}
