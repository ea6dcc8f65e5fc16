//! Executes a verification: builds the trees that the core asks for, runs checks on them, and collects the results.
//!
//! `verdone_core::verify` decides what comes next and what the results mean. Every surface (runs, session loops, `verdone verify`,
//! `audit --rerun`, `accept`, landing) uses this module.

mod bench;
pub mod check_runner;
pub mod checks;
mod listing;
pub mod on_demand;
mod other_stories;
mod referenced_files;
mod result_cache;
mod results;
mod trees;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use verdone_core::base::id::Oid;
use verdone_core::check::Check;
use verdone_core::journal::update::Reporter;
use verdone_core::verify::{
    BuiltTree, CheckState, Observed, PlannedCheck, ResultId, Step, Tree, VerifyJob, VerifyReport, judge, next_step,
};

use crate::git::{Git, GitError};
use crate::workspace::WorkspaceError;

pub use bench::{Bench, BenchPlace};
pub use listing::{ListedFile, ListedRole, Listing, ListingRequest, listing};
pub use other_stories::{earlier_checks, may_weaken_checks, other_checks};
pub use result_cache::ResultCache;
pub use results::Results;
pub use trees::{Trees, TreesRequest};

/// A failure of Verdone itself: it says nothing about the work.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("cannot save the output of a check: {0}")]
    Output(std::io::Error),
}

/// What the caller must find out before the verification can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Whether the required conditions are met; goes into `observed.conditions`.
    Conditions,
    /// The answer of a second agent; goes into `observed.judge`.
    Judge,
    Done,
}

/// One verification in progress.
#[derive(Debug)]
pub struct Verification {
    pub job: VerifyJob,
    pub observed: Observed,
    /// How long the checks of each tree took, including setting up the workspace.
    pub took: BTreeMap<Tree, Duration>,
    /// `None` if there is no base to compare with.
    trees: Option<Trees>,
}

impl Verification {
    /// Known results are reused.
    pub fn new(job: VerifyJob, trees: Option<Trees>, results: &Results) -> Self {
        let observed = Observed { results: results.before(&job.attempt), ..Observed::default() };
        Self { job, observed, took: BTreeMap::new(), trees }
    }

    /// Continues until it is done or the caller must provide something.
    pub fn advance(
        &mut self,
        bench: &mut Bench<'_>,
        results: &mut Results,
        reporter: &mut dyn Reporter,
    ) -> Result<Pause, VerifyError> {
        bench.place.want_built(&self.job.attempt);
        loop {
            match next_step(&self.job, &self.observed) {
                Step::Build(tree) => self.build(bench.git, tree),
                Step::Run { tree, checks } => self.run(tree, &checks, bench, results, reporter)?,
                Step::AskConditions => return Ok(Pause::Conditions),
                Step::AskJudge => return Ok(Pause::Judge),
                Step::Done => return Ok(Pause::Done),
            }
        }
    }

    /// Whether earlier results answer everything. Runs no check.
    pub fn is_known(&mut self, git: &Git, results: &Results) -> bool {
        loop {
            match next_step(&self.job, &self.observed) {
                Step::Build(tree) => self.build(git, tree),
                Step::Run { tree, checks } => {
                    if !self.recall(tree, checks, results).is_empty() {
                        return false;
                    }
                }
                Step::AskConditions | Step::AskJudge => return false,
                Step::Done => return true,
            }
        }
    }

    /// Drops results that did not pass on trees with the work, so that those checks run again. Returns whether there were any.
    pub fn forget_failures(&mut self) -> bool {
        let trees: Vec<Oid> = [Tree::Attempt, Tree::Pristine].into_iter().filter_map(|tree| self.tree_id(tree)).collect();
        let before = self.observed.results.len();
        self.observed.results.retain(|id, result| {
            let has_failed = matches!(CheckState::from_run(&result.run), CheckState::Red | CheckState::Unknown);
            !(has_failed && trees.contains(&id.tree))
        });
        self.observed.results.len() < before
    }

    pub fn report(&self) -> VerifyReport {
        judge(&self.job, &self.observed)
    }

    fn build(&mut self, git: &Git, tree: Tree) {
        let built = match &self.trees {
            Some(trees) => trees.build(git, tree).map_err(|error| error.to_string()),
            None => Err("there is nothing to compare it with".to_owned()),
        };
        let built = match built {
            Ok(id) => BuiltTree::Built(id),
            Err(why) => BuiltTree::Failed { why },
        };
        match tree {
            Tree::Pristine => self.observed.pristine = Some(built),
            Tree::Proof => self.observed.proof = Some(built),
            // These exist before a verification starts.
            Tree::Base | Tree::Attempt => {}
        }
    }

    fn run(
        &mut self,
        tree: Tree,
        planned: &[PlannedCheck],
        bench: &mut Bench<'_>,
        results: &mut Results,
        reporter: &mut dyn Reporter,
    ) -> Result<(), VerifyError> {
        let Some(id) = self.tree_id(tree) else { return Ok(()) };
        let began = Instant::now();
        let planned = self.recall(tree, planned.to_vec(), results);
        let checks: Vec<Check> = planned.iter().map(|planned| planned.check.clone()).collect();
        let ran = bench.run(&id, &checks, reporter)?;
        for (planned, result) in planned.iter().zip(ran) {
            let question = ResultId { tree: id.clone(), command: planned.digest.clone() };
            let result = results.keep(&question, &planned.check, result);
            self.observed.results.insert(question, result);
        }
        *self.took.entry(tree).or_default() += began.elapsed();
        Ok(())
    }

    /// Reuses results of an earlier process. Returns the checks that have none.
    fn recall(&mut self, tree: Tree, planned: Vec<PlannedCheck>, results: &Results) -> Vec<PlannedCheck> {
        let Some(id) = self.tree_id(tree) else { return planned };
        let mut unknown = Vec::new();
        for planned in planned {
            let question = ResultId { tree: id.clone(), command: planned.digest.clone() };
            match results.kept(&question, &planned.check) {
                Some(known) => drop(self.observed.results.insert(question, known)),
                None => unknown.push(planned),
            }
        }
        unknown
    }

    fn tree_id(&self, tree: Tree) -> Option<Oid> {
        let built = |tree: &Option<BuiltTree>| match tree {
            Some(BuiltTree::Built(id)) => Some(id.clone()),
            Some(BuiltTree::Failed { .. }) | None => None,
        };
        match tree {
            Tree::Base => self.job.base.clone(),
            Tree::Attempt => Some(self.job.attempt.clone()),
            Tree::Pristine => built(&self.observed.pristine),
            Tree::Proof => built(&self.observed.proof),
        }
    }
}
