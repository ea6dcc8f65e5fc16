//! What the proof tree shows: whether a test that the attempt brought along fails without the work and passes with it.

use super::counts::CheckState;
use super::job::{PlannedCheck, Tree};
use super::reason::Reason;
use super::seen::{OwnBefore, Seen};
use crate::check::CommandSpec;
use crate::test_outcome::{runs_tests, simple_commands};

impl Seen<'_> {
    /// Whether the proof tree can make a difference.
    pub(super) fn needs_proof_tree(&self) -> bool {
        let is_open = |own: &PlannedCheck| match self.before(own) {
            OwnBefore::Red | OwnBefore::Unknown { .. } | OwnBefore::Missing { .. } => true,
            OwnBefore::Green | OwnBefore::NotRun => false,
        };
        let has_question = !self.job.brought_tests().is_empty() || self.own().any(is_open);
        !self.job.protected.is_empty() && has_question && !self.is_limited_to_untested()
    }

    /// The checks that can show something there.
    pub(super) fn proof_checks(&self) -> Vec<PlannedCheck> {
        let may_show = |check: &&PlannedCheck| {
            check.is_own() || self.tests(Tree::Attempt, check).is_some() || is_test_command(&check.check.command)
        };
        self.required().filter(may_show).cloned().collect()
    }

    /// The first check by which tests of the attempt are proven to test the work.
    pub(super) fn shown_by_tests(&self) -> Option<&PlannedCheck> {
        self.required().find(|check| self.shows_a_test(check))
    }

    fn shows_a_test(&self, check: &PlannedCheck) -> bool {
        let is_difference =
            self.state(Tree::Proof, check) == CheckState::Red && self.state(Tree::Attempt, check) == CheckState::Green;
        if !is_difference {
            return false;
        }
        if check.is_own() {
            match self.before(check) {
                // Nothing but the work lies between red and green.
                OwnBefore::Red | OwnBefore::Unknown { .. } | OwnBefore::Missing { .. } => return true,
                OwnBefore::Green | OwnBefore::NotRun => {}
            }
        }
        !self.job.brought_tests().is_empty() && self.shows_more_than_the_base(check)
    }

    /// Whether tests fail on the proof tree that do not fail on the base, or tests pass on the attempt that the base does not have.
    fn shows_more_than_the_base(&self, check: &PlannedCheck) -> bool {
        let Some(base) = self.baseline(check) else { return false };
        let failed_before = base.tests.map(|tests| tests.failed).or(base.passed.then_some(0));
        let failed = self.tests(Tree::Proof, check).map_or(0, |tests| tests.failed);
        if let (Some(proof), Some(attempt), Some(base)) =
            (self.names(Tree::Proof, check), self.names(Tree::Attempt, check), base.names.as_ref())
            && failed > 0
        {
            return proof.failed.intersection(&attempt.passed).any(|name| !base.failed.contains(name));
        }
        let fails_more = failed_before.is_some_and(|before| failed > before);
        // A build or import error counts no failed test. It is red if the attempt passes tests that the base does not have.
        let passed_before = base.tests.map(|tests| tests.passed);
        let passed = self.tests(Tree::Attempt, check).map_or(0, |tests| tests.passed);
        fails_more || passed_before.is_some_and(|before| passed > before)
    }

    /// Why no test of the attempt proves anything.
    pub(super) fn not_shown_because(&self) -> Reason {
        let files = self.job.brought_tests();
        if files.is_empty() {
            return Reason::NoTests;
        }
        if let Some(super::BuiltTree::Failed { why }) = &self.observed.proof {
            return Reason::ProofTreeFailed { why: why.clone() };
        }
        let checks = self.proof_checks();
        let is_in = |states: &[CheckState]| checks.iter().find(|check| states.contains(&self.state(Tree::Proof, check)));
        if let Some(check) = is_in(&[CheckState::Red, CheckState::Unknown, CheckState::Interrupted]) {
            let said = self.words(Tree::Proof, check);
            return Reason::TestsUnclear { check: check.check.name.clone(), said };
        }
        if is_in(&[CheckState::Green]).is_some() { Reason::TestsPassWithoutWork { files } } else { Reason::TestsNotRun { files } }
    }
}

fn is_test_command(command: &CommandSpec) -> bool {
    match command {
        CommandSpec::Shell(line) => simple_commands(line).iter().any(|words| runs_tests(words)),
        CommandSpec::Argv(words) => runs_tests(words),
    }
}
