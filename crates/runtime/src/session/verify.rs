//! Verifies the current story with the same engine as a run: compares the current files with those at the start of the story.

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::verdict::{Red, RedPolicy};
use verdone_core::check::Check;
use verdone_core::done::{Facts, GitFact, JudgeFact, JudgedCondition, Prover, complexity, judge, stated_complexity};
use verdone_core::engine::run::{self, Input};
use verdone_core::engine::session::{BlockCause, Open, Work};
use verdone_core::policy::OnScope;
use verdone_core::protect::{check_scripts, files_read_by};
use verdone_core::verify::{
    FeedbackTurn, JobGate, JobStory, Outcome, Proof, SeenCondition, Surface, Tree, VerifyJob, VerifyReport, changes_of,
};

use crate::project::plan_file::PlanFile;
use crate::project::ralph_state;
use crate::session::done::{self, Checked};
use crate::verify::checks::seen_conditions;
use crate::verify::checks::{gates, in_project};
use crate::verify::{Pause, Trees, TreesRequest, Verification, earlier_checks, may_weaken_checks, other_checks};

use super::drive::{Driver, Quiet, Step};
use super::plan::TASK;
use super::{StopError, plan_messages};

/// What to judge.
pub(super) struct Attempt<'a> {
    /// `None` for work after the last story.
    pub(super) story: Option<&'a StoryId>,
    pub(super) base: &'a Oid,
    pub(super) tree: &'a Oid,
    pub(super) feedback: FeedbackTurn,
    pub(super) allow_unchanged: bool,
    /// Whether to ask the conditions and the judge, too.
    pub(super) whole: bool,
}

impl Driver {
    pub(super) fn verify(&mut self) -> Result<Step, StopError> {
        let Some((story, base)) = self.at_work() else { return Err(StopError::NoVerdict) };
        if self.own_checks(&story).is_empty() && gates(&self.config).is_empty() {
            return Ok(self.unverifiable(&story));
        }
        // What is verified is what is committed, so mark the plan tentatively if it is part of the commit.
        if self.held.checkpoint.is_some() {
            self.plan.mark(&story)?;
        }
        let step = self.verify_from(&story, &base);
        if !matches!(&step, Ok(Step::Input(Input::Verified(found))) if found.report.outcome == Outcome::Done) {
            self.unmark(&story)?;
        }
        step
    }

    fn verify_from(&mut self, story: &StoryId, base: &Oid) -> Result<Step, StopError> {
        let before = self.key()?;
        let tree = self.snapshot()?;
        let told = self.state().attempt.as_ref().is_some_and(|attempt| attempt.doubt_told);
        let feedback = if told { FeedbackTurn::Given } else { FeedbackTurn::Left };
        let allow_unchanged = self.allows_unchanged(story, base);
        let attempt = Attempt { story: Some(story), base, tree: &tree, feedback, allow_unchanged, whole: true };
        let report = self.judge(&attempt)?;
        self.tree = Some(tree.clone());
        if report.was_interrupted() {
            return Err(StopError::CalledOff);
        }
        if self.key()? != before {
            let why = "Files changed during verification, so the result does not apply to them".to_owned();
            let missing = vec![(BlockCause::CheckFailed, why)];
            return Ok(Step::Hold { work: Work::Open(Open { missing, ..self.open() }), stands: false });
        }
        let changed = self.changed(base, &tree)?.len() as u32;
        self.report = Some(report.clone());
        Ok(Input::Verified(Box::new(run::Verification { changed, restored: Vec::new(), report, judge: None })).into())
    }

    fn unmark(&mut self, story: &StoryId) -> Result<(), StopError> {
        if self.held.checkpoint.is_some() {
            let marks = self.frozen(story).marks;
            self.plan.take_back(story, &marks)?;
        }
        Ok(())
    }

    /// The work for a story with checks may have been done together with an earlier story.
    fn allows_unchanged(&self, story: &StoryId, base: &Oid) -> bool {
        let attempt = self.state().attempt.as_ref();
        let was_green = attempt.is_some_and(|attempt| attempt.red == Some(Red::Green));
        let is_later = self.journal.first_tree().is_some_and(|start| start != base);
        let together = is_later && !self.own_checks(story).is_empty();
        was_green && (self.config.red_check == RedPolicy::Accept || together)
    }

    /// Judges one tree.
    pub(super) fn judge(&mut self, attempt: &Attempt<'_>) -> Result<VerifyReport, StopError> {
        let facts = if attempt.whole { self.asked_for(attempt)? } else { None };
        let mut verification = self.job(attempt, facts.as_ref())?;
        loop {
            match self.on_bench(|bench, results| verification.advance(bench, results, &mut Quiet))?? {
                Pause::Conditions => {
                    verification.observed.conditions = Some(self.conditions(attempt, &verification.report())?);
                }
                Pause::Judge => verification.observed.judge = Some(self.refute(attempt, &verification.report())?),
                Pause::Done => return Ok(verification.report()),
            }
            verification.observed.interrupted |= self.signals.requested().is_some();
        }
    }

    fn job(&self, attempt: &Attempt<'_>, facts: Option<&Facts>) -> Result<Verification, StopError> {
        let Attempt { story, base, tree, feedback, allow_unchanged, .. } = *attempt;
        let frozen = story.map(|story| self.frozen(story)).unwrap_or_default();
        let own: Vec<Check> = story.map(|story| self.own_checks(story)).unwrap_or_default();
        let mut gates = gates(&self.config);
        let folder = self.git.repo_path(&self.project.root).map(|folder| folder.to_string()).unwrap_or_default();
        let all = self.held.stories.values().chain(self.memory.later.values()).flat_map(|story| &story.checks);
        let commands: Vec<_> = all.chain(gates.iter().map(|check| &check.command)).collect();
        let trees = Trees::compare(&TreesRequest {
            git: &self.git,
            settings: &self.config.protect,
            folder: &folder,
            scope: &frozen.scope,
            check_scripts: &check_scripts(commands),
            subjects: &files_read_by(own.iter().map(|check| &check.command)),
            start: None,
            base,
            attempt: tree,
            ours: &self.ours(),
        })?;
        let (protected, autorun) = changes_of(trees.plan());
        if may_weaken_checks(&protected) {
            let done = self.state().results.iter().filter(|(id, result)| result.is_checked() && Some(*id) != story);
            gates.extend(earlier_checks(&own, done.map(|(id, _)| (id, self.own_checks(id)))));
        }
        let open = self.plan.view.open().filter(|other| Some(&other.id) != story);
        let others = other_checks(&protected, &folder, open.map(|other| (&other.id, self.own_checks(&other.id))));
        let settings = &self.config.done;
        let listed = facts.map(|facts| judge(settings, facts).conditions).unwrap_or_default();
        let wanted = facts.is_some_and(|facts| settings.wants_judge(complexity(settings, facts).value));
        // If a judge is asked, its answer is a separate step of the verification. If not, its condition stays open. Tasks and other tools'
        // files hold the session at every Stop, but no story.
        let is_due = |one: &JudgedCondition| match one.prover {
            Prover::Judge => one.required && !wanted,
            Prover::Record | Prover::State => false,
            _ => one.required,
        };
        let conditions = listed.into_iter().filter(is_due).map(|one| one.name);
        // Without a plan there are only the gates.
        let story = story.filter(|story| story.as_str() != TASK || self.held.plan.is_some());
        let job = VerifyJob {
            surface: Surface::Loop,
            story: story.map(|story| JobStory {
                id: story.clone(),
                checks: own,
                criteria: frozen.criteria,
                scope: frozen.scope,
                minimum: frozen.proof,
                complexity: self.complexity(story, frozen.complexity).into(),
            }),
            gates: gates.into_iter().map(JobGate::from).collect(),
            base: Some(base.clone()),
            attempt: tree.clone(),
            changed: Some(in_project(&folder, &self.changed(base, tree)?)),
            obstacle: None,
            protected,
            autorun,
            others,
            // Work after the last story proves no story.
            minimum: if attempt.story.is_some() { settings.minimum } else { Proof::Unchecked },
            at_most: None,
            enforce_scope: self.config.policy.on_scope() == OnScope::Enforced,
            allow_unchanged,
            stop_at_failing_stage: self.config.gates.stop_at_failing_stage,
            feedback,
            judge: wanted,
            conditions: conditions.collect(),
        };
        Ok(Verification::new(job, Some(trees), &self.memory.results))
    }

    /// An agent may raise the complexity in the plan, but never lower it.
    fn complexity(&self, story: &StoryId, frozen: Option<u8>) -> u8 {
        let now = self.plan.view.story(story).and_then(|story| story.complexity);
        let stated = |planned| stated_complexity(&self.config.done, planned).value;
        stated(frozen).max(if now.is_some() { stated(now) } else { 0 })
    }

    /// Facts known before the checks ran. `None` if the settings require only checks.
    fn asked_for(&self, attempt: &Attempt<'_>) -> Result<Option<Facts>, StopError> {
        if !self.config.done.asks_more_than_a_run() {
            return Ok(None);
        }
        self.facts(attempt, Checked { runs: &[], passed: true, gates_only: false }).map(Some)
    }

    /// Evaluates the conditions after the checks passed.
    fn conditions(&self, attempt: &Attempt<'_>, report: &VerifyReport) -> Result<Vec<SeenCondition>, StopError> {
        let checked = Checked { runs: report.runs_on(Tree::Attempt), passed: true, gates_only: false };
        let facts = self.facts(attempt, checked)?;
        let wanted = self.config.done.wants_judge(complexity(&self.config.done, &facts).value);
        let facts = Facts { judge: if wanted { JudgeFact::Holds } else { JudgeFact::Off }, ..facts };
        Ok(seen_conditions(judge(&self.config.done, &facts)))
    }

    /// The first clear answer about a tree is final.
    fn refute(&self, attempt: &Attempt<'_>, report: &VerifyReport) -> Result<JudgeFact, StopError> {
        let checked = Checked { runs: report.runs_on(Tree::Attempt), passed: true, gates_only: false };
        done::ask(&self.ask(attempt, checked), &self.signals).map_err(Box::new)?;
        Ok(self.facts(attempt, checked)?.judge)
    }

    fn facts(&self, attempt: &Attempt<'_>, checked: Checked<'_>) -> Result<Facts, StopError> {
        let mut facts = done::facts(&self.ask(attempt, checked)).map_err(Box::new)?;
        // Files that the story's commit will include count as committed.
        if let (GitFact::Seen { uncommitted, .. }, Some(_)) = (&mut facts.git, &self.held.checkpoint) {
            uncommitted.clear();
        }
        Ok(facts)
    }

    fn ask<'a>(&'a self, attempt: &Attempt<'a>, checked: Checked<'a>) -> done::ConditionRequest<'a> {
        let about = self.plan.file().map(PlanFile::path).zip(attempt.story);
        done::ConditionRequest {
            root: &self.project.root,
            session: &self.session,
            config: &self.config,
            checked: Some(checked),
            about,
            story: None,
            state_home: ralph_state::home(),
        }
    }

    /// A story that no check or gate verifies. If an agent may have added it, it does not release the session.
    fn unverifiable(&self, story: &StoryId) -> Step {
        let root = &self.project.root;
        if self.frozen(story).unaccepted {
            let why = plan_messages::unverifiable(story, self.held.plan.as_deref(), root);
            let open = Open { missing: vec![(BlockCause::Unaccepted, why)], ..self.open() };
            return Step::Hold { work: Work::Open(open), stands: false };
        }
        let why = match &self.held.plan {
            Some(_) => format!("story {story} has no check, and there is no gate"),
            None => "there is no plan and no gate".to_owned(),
        };
        Step::Hold { work: Work::Nothing { why }, stands: false }
    }
}
