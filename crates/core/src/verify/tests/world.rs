//! An invented project with the result of every check on every tree. The engine's steps are executed against it.

use std::collections::BTreeMap;

use crate::base::id::{Oid, StoryId};
use crate::base::span::Span;
use crate::check::{Check, CheckOutcome, CheckRun, CommandSpec, Gate, Stage, TestCount};
use crate::done::JudgeFact;
use crate::verify::{
    AutorunChange, BuiltTree, ChangeKind, CheckResult, FeedbackTurn, JobGate, JobStory, Observed, Proof, ProtectedChange,
    ProtectedKind, ResultId, SeenCondition, Step, Surface, Tree, VerifyJob, VerifyReport, judge, next_step,
};

pub(super) const OWN: &str = "./own";
pub(super) const TEST: &str = "test";

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) job: VerifyJob,
    /// The result of a check on a tree; others pass.
    pub(super) said: BTreeMap<(Tree, String), CheckResult>,
    pub(super) unbuildable: Vec<Tree>,
    pub(super) conditions: Vec<SeenCondition>,
    pub(super) judge: JudgeFact,
}

pub(super) fn own_check(command: &str) -> Check {
    Check::own(CommandSpec::Shell(command.to_owned()), Span::from_secs(1))
}

pub(super) fn gate(name: &str) -> JobGate {
    let gate = Gate::new(name, Stage::Correctness, CommandSpec::Shell(format!("make {name}")));
    JobGate { check: gate.check(Span::from_secs(1)), hidden: false, baseline: None }
}

pub(super) fn failed() -> CheckOutcome {
    CheckOutcome::Failed { code: 1 }
}

pub(super) fn unknown() -> CheckOutcome {
    CheckOutcome::Unknown { reason: "ran no tests".to_owned() }
}

#[expect(clippy::unnecessary_wraps, reason = "counts are optional everywhere")]
pub(super) fn count(passed: u64, failed: u64, skipped: u64) -> Option<TestCount> {
    Some(TestCount { ran: passed + failed, passed, failed, skipped })
}

pub(super) fn change(path: &str, kind: ProtectedKind, change: ChangeKind) -> ProtectedChange {
    ProtectedChange { path: path.to_owned(), kind, change, released: false }
}

impl World {
    /// A run whose story has one check that fails before the work, and one gate. Everything passes after the work.
    pub(super) fn new() -> Self {
        let story = JobStory {
            id: StoryId::from("US-1"),
            checks: vec![own_check(OWN)],
            criteria: Vec::new(),
            scope: Vec::new(),
            minimum: None,
            complexity: 5,
        };
        let job = VerifyJob {
            surface: Surface::Run,
            story: Some(story),
            gates: vec![gate(TEST)],
            base: Some(Oid::from("base")),
            attempt: Oid::from("attempt"),
            changed: Some(vec!["src/a.rs".to_owned()]),
            obstacle: None,
            protected: Vec::new(),
            autorun: Vec::new(),
            others: Vec::new(),
            minimum: Proof::Untested,
            at_most: None,
            enforce_scope: false,
            allow_unchanged: false,
            stop_at_failing_stage: true,
            feedback: FeedbackTurn::Given,
            judge: false,
            conditions: Vec::new(),
        };
        let world = Self { job, said: BTreeMap::new(), unbuildable: Vec::new(), conditions: Vec::new(), judge: JudgeFact::Holds };
        world.says(Tree::Base, OWN, failed())
    }

    /// The same, but the story has no check.
    pub(super) fn without_own() -> Self {
        Self::new().with(|job| job.story.as_mut().unwrap().checks.clear())
    }

    pub(super) fn with(mut self, edit: impl FnOnce(&mut VerifyJob)) -> Self {
        edit(&mut self.job);
        self
    }

    pub(super) fn left(self) -> Self {
        self.with(|job| job.feedback = FeedbackTurn::Left)
    }

    pub(super) fn on(self, surface: Surface) -> Self {
        self.with(|job| job.surface = surface)
    }

    pub(super) fn says(self, tree: Tree, check: &str, outcome: CheckOutcome) -> Self {
        let tests = self.said.get(&(tree, check.to_owned())).and_then(|result| result.run.tests);
        self.result(tree, check, outcome, tests)
    }

    pub(super) fn counts(self, tree: Tree, check: &str, tests: Option<TestCount>) -> Self {
        let known = self.said.get(&(tree, check.to_owned())).map(|result| result.run.outcome.clone());
        self.result(tree, check, known.unwrap_or(CheckOutcome::Passed), tests)
    }

    pub(super) fn result(mut self, tree: Tree, check: &str, outcome: CheckOutcome, tests: Option<TestCount>) -> Self {
        let run = CheckRun { outcome, tests, ..CheckRun::pending(&own_check(check)) };
        self.said.insert((tree, check.to_owned()), run.into());
        self
    }

    pub(super) fn protected(self, path: &str, kind: ProtectedKind, what: ChangeKind) -> Self {
        self.with(|job| job.protected.push(change(path, kind, what)))
    }

    pub(super) fn added_test(self) -> Self {
        self.protected("tests/new.rs", ProtectedKind::Test, ChangeKind::Added)
    }

    pub(super) fn changed_test(self) -> Self {
        self.protected("tests/old.rs", ProtectedKind::Test, ChangeKind::Modified)
    }

    pub(super) fn released(self) -> Self {
        self.with(|job| job.protected.iter_mut().for_each(|change| change.released = true))
    }

    pub(super) fn autorun(self, released: bool) -> Self {
        self.with(|job| job.autorun.push(AutorunChange { path: ".envrc".to_owned(), released }))
    }

    /// The id of a tree. If there is nothing to restore, the pristine tree is the attempt.
    pub(super) fn tree(&self, tree: Tree) -> Oid {
        match tree {
            Tree::Base => self.job.base.clone().unwrap_or_else(|| Oid::from(tree.name())),
            Tree::Attempt => self.job.attempt.clone(),
            Tree::Pristine if self.job.protected.iter().all(|change| change.released) => self.job.attempt.clone(),
            Tree::Pristine | Tree::Proof => Oid::from(tree.name()),
        }
    }

    pub(super) fn answer(&self, tree: Tree, check: &Check) -> CheckResult {
        let said = self.said.get(&(tree, check.name.clone())).cloned();
        let mut result = said.unwrap_or_else(|| CheckRun { outcome: CheckOutcome::Passed, ..CheckRun::pending(check) }.into());
        result.run = CheckRun { name: check.name.clone(), command: check.command.clone(), ..result.run };
        result
    }

    /// Performs one step.
    pub(super) fn perform(&self, step: &Step, observed: &mut Observed) {
        let build = |tree: Tree| {
            if self.unbuildable.contains(&tree) {
                BuiltTree::Failed { why: "no".to_owned() }
            } else {
                BuiltTree::Built(self.tree(tree))
            }
        };
        match step {
            Step::Build(Tree::Pristine) => observed.pristine = Some(build(Tree::Pristine)),
            Step::Build(Tree::Proof) => observed.proof = Some(build(Tree::Proof)),
            Step::Build(tree @ (Tree::Base | Tree::Attempt)) => panic!("{tree:?} exists"),
            Step::Run { tree, checks } => {
                for check in checks {
                    let id = ResultId { tree: self.tree(*tree), command: check.digest.clone() };
                    let earlier = observed.results.insert(id, self.answer(*tree, &check.check));
                    assert_eq!(earlier, None, "asked twice: {tree:?} {}", check.check.name);
                }
            }
            Step::AskConditions => observed.conditions = Some(self.conditions.clone()),
            Step::AskJudge => observed.judge = Some(self.judge.clone()),
            Step::Done => {}
        }
    }

    /// Performs all steps. Returns them with the observations.
    pub(super) fn play(&self) -> (Vec<Step>, Observed) {
        let (mut steps, mut observed) = (Vec::new(), Observed::default());
        loop {
            let step = next_step(&self.job, &observed);
            if step == Step::Done {
                return (steps, observed);
            }
            self.perform(&step, &mut observed);
            steps.push(step);
            assert!(steps.len() < 200, "it does not end: {steps:?}");
        }
    }

    pub(super) fn report(&self) -> VerifyReport {
        judge(&self.job, &self.play().1)
    }
}
