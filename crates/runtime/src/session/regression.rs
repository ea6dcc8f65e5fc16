//! Before a loop is complete: work done after its last story must pass as well, and the
//! checks that proved its stories run again on the current files.

use std::collections::BTreeMap;

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::check::{Check, CheckRun};
use verdone_core::engine::run::{Input, RegressionReport};
use verdone_core::engine::session::{Work, stands};
use verdone_core::verify::{CheckState, FeedbackTurn, Outcome, PlannedCheck};

use crate::verify::BenchPlace;

use super::StopError;
use super::drive::{Driver, Step, Until};
use super::verify::Attempt;

impl Driver {
    pub(super) fn regression(&mut self, until: Until) -> Result<Step, StopError> {
        let (mut tree, last) = (self.snapshot()?, self.journal.last_verified().cloned());
        let is_same = last.as_ref().map_or(Ok(false), |last| self.changed(last, &tree).map(|changed| changed.is_empty()))?;
        if let Some(last) = last.as_ref().filter(|_| is_same) {
            // Only the plan's marks have changed since.
            tree.clone_from(last);
        } else if let Some(last) = last {
            let attempt = Attempt {
                story: None,
                base: &last,
                tree: &tree,
                feedback: FeedbackTurn::Left,
                allow_unchanged: true,
                whole: false,
            };
            let report = self.judge(&attempt)?;
            if report.was_interrupted() {
                return Err(StopError::CalledOff);
            }
            if report.outcome != Outcome::Done {
                let mut open = self.open();
                open.add_verify_report(&report);
                self.report = Some(report.clone());
                return Ok(Step::Hold { work: Work::Open(open), stands: stands(&report) });
            }
        }
        let report = self.look_again(&tree)?;
        self.tree = Some(tree);
        if report.broken.is_empty() && until == (Until::Turn { held_open: true }) {
            return Ok(Step::Hold { work: self.complete(), stands: true });
        }
        Ok(Input::Regressed(report).into())
    }

    /// Runs the checks of every done story, identical commands once.
    fn look_again(&mut self, tree: &Oid) -> Result<RegressionReport, StopError> {
        let results = &self.state().results;
        let done: Vec<StoryId> =
            results.iter().filter(|(_, result)| result.is_checked()).map(|(story, _)| story.clone()).collect();
        let mut due: Vec<(Check, Vec<StoryId>)> = Vec::new();
        for story in &done {
            for check in self.own_checks(story) {
                // It just passed on exactly these files.
                if self.memory.results.was_green(tree, &PlannedCheck::new(&check, false).digest) {
                    continue;
                }
                match due.iter_mut().find(|(known, _)| known.command == check.command) {
                    Some((_, stories)) => stories.push(story.clone()),
                    None => due.push((check, vec![story.clone()])),
                }
            }
        }
        let checks: Vec<Check> = due.iter().map(|(check, _)| check.clone()).collect();
        // Start without a cache: what earlier checks built must not prove anything.
        let runs = self.run_checks_in(BenchPlace::cold(), tree, &checks)?;
        let mut broken: BTreeMap<StoryId, Vec<CheckRun>> = BTreeMap::new();
        for ((_, stories), run) in due.iter().zip(&runs).filter(|(_, run)| CheckState::from_run(run) != CheckState::Green) {
            for story in stories {
                broken.entry(story.clone()).or_default().push(run.clone());
            }
        }
        let held = done.len().saturating_sub(broken.len()) as u32;
        Ok(RegressionReport { held, runs, broken: broken.into_iter().collect(), not_checked: Vec::new() })
    }
}
