//! The end of a loop: before it is called complete, every story that it marked is verified once more on the tree as it is now. One
//! that later work broke is opened again, once; one that is broken a second time only holds. A check that nobody can tell anything from
//! (it did not end, or could not start) holds too, and takes no mark back.

use verdone_core::check::{Check, CheckRun};
use verdone_core::config::Config;
use verdone_core::id::StoryId;
use verdone_core::plan::Status;
use verdone_core::span::Span;
use verdone_core::stop::{BlockCause, Current, LoopState, Open, Survey, Work, survey};
use verdone_core::tamper::Response;
use verdone_core::verdict::Red;
use verdone_core::verify::Proof;

use crate::plan_file::PlanFile;
use crate::site::own_checks;
use crate::step::red_of;

use super::StopError;
use super::commit::red_proofs;
use super::look::{Looked, Looker, add_failures, source};
use super::tree::Tree;
use super::verify::{Ask, Seen, Verdict};

impl Looker<'_> {
    /// No story is left to work on. `marked` is the one that was verified just now.
    pub(super) fn completion(
        &mut self,
        plan: PlanFile,
        tree: Tree,
        found: &Survey,
        marked: Option<(StoryId, Proof)>,
    ) -> Result<Looked, StopError> {
        let view = plan.plan().clone();
        match self.without_story(&view, found) {
            Work::Complete { .. } => {}
            Work::Open(open) => return Ok(Looked::of(Work::Open(Open { marked, ..open }), tree, None, Some(plan))),
            other @ (Work::Unknown | Work::Nothing { .. } | Work::Verifying { .. }) => {
                return Ok(Looked::of(other, tree, None, Some(plan)));
            }
        }
        let own = self.checks_of_marked();
        let checks = self.with_gates(own.clone());
        let mut open = Open { marked: marked.clone(), ..self.open() };
        // What was compared when the last story was marked is not compared again.
        let as_marked = self.state.marked.last().is_some_and(|last| last.tree == tree.key);
        let same = self.same_asks_of_marked(as_marked);
        // Trees are compared only where git is known to see the files as it did.
        let alarms = if as_marked && same.is_empty() { None } else { self.alarm_ask(None) };
        let looks_for_alarms = alarms.is_some();
        let deadline = self.deadline_of_all();
        let ask = Ask { deadline, alarms, same, ..self.ask(&tree, &checks, plan.protected_paths()) };
        let (verdict, source) = match self.verify(&ask)? {
            Seen::Running { seconds } => {
                return Ok(Looked::of(self.verifying(&checks, seconds), tree, Some("running"), Some(plan)));
            }
            Seen::Ended { verdict, cached } => (*verdict, source(cached)),
        };
        self.follow(&tree, &verdict);
        if !verdict.green {
            return self.broken(plan, tree, &own, &verdict, open, source);
        }
        self.doubt_marked(&verdict);
        if looks_for_alarms {
            self.after_the_last(&mut open, &verdict);
        }
        if marked.is_none() && open.missing.is_empty() && self.asks_more() {
            let last = self.state.marked.last().map(|marked| marked.story.clone());
            let about = last.as_ref().map(|story| (plan.path(), story));
            self.add_conditions(&mut open, about, None, &verdict.runs)?;
        }
        let (verified, unproven) = self.state.counted();
        let work = if open.missing.is_empty() { Work::Complete { verified, unproven } } else { Work::Open(open) };
        Ok(Looked::of(work, tree, Some(source), Some(plan)))
    }

    /// As long as all of the stories may take one by one.
    fn deadline_of_all(&self) -> Span {
        let stories = u32::try_from(self.state.marked.len()).unwrap_or(u32::MAX).max(1);
        self.gate.config.stop.verify_deadline.times(stories)
    }

    /// Something changed after the last story was marked.
    fn after_the_last(&mut self, open: &mut Open, verdict: &Verdict) {
        let response = self.heed(open, None, &verdict.alarms);
        if response == Response::Ask
            && let Some(last) = self.state.marked.last_mut()
        {
            last.verdict = last.verdict.min(Proof::Untested);
        }
    }

    pub(super) fn checks_of_marked(&self) -> Vec<Check> {
        checks_of_marked(self.state, self.gate.config)
    }

    fn broken(
        &mut self,
        mut plan: PlanFile,
        tree: Tree,
        own: &[Check],
        verdict: &Verdict,
        mut open: Open,
        source: &'static str,
    ) -> Result<Looked, StopError> {
        add_failures(&mut open, verdict, self.deadline_of_all());
        // A story's own checks come first, and all of them run.
        let is_red = |run: &CheckRun| !verdict.timed_out && red_of(std::slice::from_ref(run)) == Red::Red;
        let failing: Vec<&Check> = own.iter().zip(&verdict.runs).filter(|(_, run)| is_red(run)).map(|(check, _)| check).collect();
        let is_broken = |story: &StoryId| self.own_checks(story).iter().any(|check| failing.contains(&check));
        let broken: Vec<StoryId> =
            self.state.marked.iter().map(|marked| marked.story.clone()).filter(|story| is_broken(story)).collect();
        let mut at_work = None;
        for story in &broken {
            // One that is gone from the plan has no mark to take back.
            if self.state.reopened.contains(story) || plan.plan().place(story).is_none() {
                let why =
                    format!("Story {story} was verified and is broken again. The loop is not complete before its checks pass.");
                open.missing.push((BlockCause::CheckFailed, why));
                continue;
            }
            self.open_again(&mut plan, story)?;
            let worth = self.state.marked.iter().find(|marked| marked.story == *story).map(|marked| marked.verdict);
            self.state.at_most.extend(worth.map(|worth| (story.clone(), worth)));
            self.state.marked.retain(|marked| marked.story != *story);
            self.state.reopened.push(story.clone());
            let why = format!("Story {story} was verified before, and later work broke it; Verdone took its mark back.");
            open.missing.push((BlockCause::CheckFailed, why));
            at_work.get_or_insert(story);
        }
        if let Some(story) = at_work {
            self.state.current = Some(Current { story: story.clone(), base: tree.base(), was_red: true });
            let its_own = self.own_checks(story);
            let seen: Vec<CheckRun> =
                own.iter().zip(&verdict.runs).filter(|(check, _)| its_own.contains(check)).map(|(_, run)| run.clone()).collect();
            self.state.red.insert(story.clone(), red_proofs(&seen));
        }
        let mut view = plan.plan().clone();
        survey(&mut view, self.state);
        let named = at_work.or(broken.first()).and_then(|story| view.story(story)).cloned();
        debug_assert!(at_work.is_none() || named.as_ref().is_some_and(|story| story.status != Status::Done));
        self.name_work(&mut open, &view, named.as_ref());
        Ok(Looked::of(Work::Open(open), tree, Some(source), Some(plan)))
    }
}

/// The checks of the stories that a loop marked, each command once, however many stories have it.
pub(crate) fn checks_of_marked(state: &LoopState, config: &Config) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    let frozen = state.marked.iter().filter_map(|marked| state.open.get(&marked.story));
    for check in frozen.flat_map(|frozen| own_checks(frozen.checks.clone(), config)) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks
}
