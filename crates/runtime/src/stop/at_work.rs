//! The story at work when a turn ends: its verification, what is asked for beyond its checks, and the mark, or what is still missing.

use std::path::PathBuf;

use verdone_core::check::{Check, CheckOrigin, CheckRun};
use verdone_core::id::StoryId;
use verdone_core::plan::{Plan, Progress, Selection, Status, Story, select};
use verdone_core::proof::AsBefore;
use verdone_core::stop::{BlockCause, Current, Marked, Open, Work, survey};
use verdone_core::tamper::Response;
use verdone_core::verdict::{Red, RedPolicy};
use verdone_core::verify::Proof;

use crate::plan_file::PlanFile;
use crate::step::red_of;

use super::commit::{CommitAsk, Committed, red_proofs};
use super::look::{Looked, Looker, add_failures, gone, source};
use super::tree::Tree;
use super::verify::{Ask, Seen, Verdict};
use super::{StopError, tree};

/// The story to verify, and by what.
struct AtWork {
    story: Story,
    current: Current,
    /// Its own, then the gates.
    checks: Vec<Check>,
    has_own: bool,
    /// There is something that could be its work.
    changed: bool,
    /// The story that is taken for the next one, whose checks are tried.
    next: Option<StoryId>,
}

/// What was seen of it.
struct Judged {
    seen: Seen,
    /// Nothing is missing that is asked for beyond its checks.
    holds: bool,
}

/// It is done, and what that is worth.
struct Passed {
    worth: Proof,
    verdict: Verdict,
    source: &'static str,
}

impl Looker<'_> {
    pub(super) fn by_plan(&mut self, mut plan: PlanFile, tree: Tree, ours: Vec<PathBuf>) -> Result<Looked, StopError> {
        self.admit(&plan);
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        self.take_back(&mut plan, &found, found.current.map(|index| view.stories[index].id.clone()).as_ref())?;
        let Some(index) = found.current else { return self.completion(plan, tree, &found, None) };
        let mut at_work = self.at_work(&mut view, index, &tree);
        if at_work.checks.is_empty() {
            if found.claimed.contains(&at_work.story.id) {
                self.open_again(&mut plan, &at_work.story.id)?;
            }
            self.state.current = Some(at_work.current);
            return Ok(Looked::of(self.unverifiable(&view, &at_work.story), tree, None, Some(plan)));
        }
        let mut open = self.open();
        open.missing.extend(found.gone.iter().map(gone));
        let Judged { seen, holds } = self.judged(&plan, &tree, ours, &at_work, &mut open)?;
        let (verdict, source) = match seen {
            Seen::Running { seconds } => {
                self.state.current = Some(at_work.current);
                return Ok(Looked::of(self.verifying(&at_work.checks, seconds), tree, Some("running"), Some(plan)));
            }
            Seen::Ended { verdict, cached } => (*verdict, source(cached)),
        };
        if at_work.current.base.key == tree.key {
            at_work.current.base.key.clone_from(&verdict.tree);
        }
        self.follow(&tree, &verdict);
        let response = self.heed(&mut open, Some(&at_work.story.id), &verdict.alarms);
        let refused = matches!(verdict.commit, Some(Committed::Refused(_)));
        if verdict.green && at_work.changed && holds && !refused && response < Response::Refuse {
            let worth = self.worth(&at_work, &verdict, response);
            return self.done(plan, open, tree, at_work, Passed { worth, verdict, source });
        }
        self.add_what_is_missing(&mut open, &mut at_work, &verdict);
        let story = at_work.story;
        if found.claimed.contains(&story.id) {
            self.open_again(&mut plan, &story.id)?;
            let why = format!("Story {} was marked as done without a verification; Verdone took the mark back.", story.id);
            open.missing.push((BlockCause::CheckFailed, why));
        }
        self.name_work(&mut open, &view, Some(&story));
        self.state.current = Some(at_work.current);
        Ok(Looked::of(Work::Open(open), tree, Some(source), Some(plan)))
    }

    fn at_work(&self, view: &mut Plan, index: usize, tree: &Tree) -> AtWork {
        let story = view.stories[index].clone();
        let current = match &self.state.current {
            Some(current) if current.story == story.id => current.clone(),
            Some(_) | None => Current { story: story.id.clone(), base: tree.base(), was_red: false },
        };
        let own = self.own_checks(&story.id);
        let has_own = !own.is_empty();
        // Work for a story with checks of its own may have been done together with an earlier one.
        let changed = if has_own {
            current.was_red || self.gate.config.red_check == RedPolicy::Accept || tree.differs(&self.state.base)
        } else {
            tree.differs(&current.base)
        };
        let checks = self.with_gates(own);
        AtWork { story, current, checks, has_own, changed, next: after(view, index) }
    }

    /// Its verification, and where that is green, the conditions of `[done]` and the commit. What is missing is added.
    fn judged(
        &mut self,
        plan: &PlanFile,
        tree: &Tree,
        ours: Vec<PathBuf>,
        at_work: &AtWork,
        open: &mut Open,
    ) -> Result<Judged, StopError> {
        let AtWork { story, current, .. } = at_work;
        // What was not worth more before does not become it by being opened again.
        let was_red = current.was_red && self.state.at_most(&story.id) == Proof::Verified;
        let current = &Current { was_red, ..current.clone() };
        let about = Some((plan.path(), &story.id));
        let next = at_work.next.as_ref().map(|next| (next.clone(), self.own_checks(next)));
        let (alarms, same) = (self.alarm_ask(Some(&story.id)), self.same_asks(&story.id));
        let whole = Ask { alarms, same, next, ..self.ask(tree, &at_work.checks, ours) };
        let commit = at_work.changed.then(|| CommitAsk::of(self.gate, self.state, story, current, plan.path())).flatten();
        if !self.asks_more() {
            return Ok(Judged { seen: self.verify(&Ask { commit, ..whole })?, holds: true });
        }
        let mut seen = self.verify(&whole)?;
        let before = open.missing.len();
        // Where more is asked for than checks, nothing is committed before it was judged.
        if let Some(verdict) = self.passed(&seen).filter(|_| at_work.changed) {
            self.add_conditions(open, about, commit.as_ref(), &verdict.runs)?;
            if commit.is_some() && open.missing.len() == before {
                seen = self.verify(&Ask { commit, ..whole })?;
            }
        }
        // What counted as committed before it was is judged once more where it is not.
        if let Seen::Ended { verdict, .. } = &seen
            && let Some(Committed::Without(why)) = &verdict.commit
        {
            self.add_conditions(open, about, None, &verdict.runs)?;
            if open.missing.len() > before {
                open.missing.push((BlockCause::Condition, format!("The story was not committed: {why}")));
            }
        }
        Ok(Judged { seen, holds: open.missing.len() == before })
    }

    fn passed<'v>(&self, seen: &'v Seen) -> Option<&'v Verdict> {
        match seen {
            Seen::Ended { verdict, .. } => {
                Some(&**verdict).filter(|verdict| verdict.green && self.response(&verdict.alarms) < Response::Refuse)
            }
            Seen::Running { .. } => None,
        }
    }

    /// What a story that passed is worth.
    fn worth(&mut self, at_work: &AtWork, verdict: &Verdict, response: Response) -> Proof {
        let id = &at_work.story.id;
        let doubt = verdict.as_before(id).and_then(AsBefore::doubt);
        self.notes.extend(doubt.iter().map(|doubt| format!("story {id} is unproven at best: {doubt}.")));
        let proven = at_work.has_own && at_work.current.was_red && response < Response::Ask && doubt.is_none();
        if proven { self.state.at_most(id) } else { Proof::Untested }
    }

    /// Why the story is not done.
    fn add_what_is_missing(&mut self, open: &mut Open, at_work: &mut AtWork, verdict: &Verdict) {
        let AtWork { story, current, .. } = at_work;
        if !verdict.green {
            let own: Vec<CheckRun> = verdict.runs.iter().filter(|run| run.origin == CheckOrigin::Story).cloned().collect();
            if red_of(&own) == Red::Red {
                current.was_red = true;
                self.state.red.insert(story.id.clone(), red_proofs(&own));
            }
            add_failures(open, verdict, self.gate.config.stop.verify_deadline);
        } else if !at_work.changed {
            let since = if at_work.has_own { "the loop was started" } else { "it became the story at work" };
            let why =
                format!("The checks of story {} pass, but nothing has changed since {since}, so that proves nothing.", story.id);
            open.missing.push((BlockCause::NothingChanged, why));
        }
        if let Some(Committed::Refused(why)) = &verdict.commit {
            let why = format!("The story's checks pass, but its commit was refused: {why}");
            open.missing.push((BlockCause::CheckFailed, why));
        }
    }

    fn done(
        &mut self,
        mut plan: PlanFile,
        mut open: Open,
        tree: Tree,
        at_work: AtWork,
        passed: Passed,
    ) -> Result<Looked, StopError> {
        let Passed { worth, verdict, source } = passed;
        let story = at_work.story;
        self.mark(&mut plan, &story.id, worth, &verdict)?;
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        // Checks may have made files, and a commit is another tree of the same ones.
        let after = tree::look(self.gate.root, self.gate.top, &plan.protected_paths())?;
        let Some(index) = found.current else {
            return self.completion(plan, after, &found, Some((story.id, worth)));
        };
        let at_work = view.stories[index].clone();
        let tried = verdict.next.filter(|(next, _)| *next == at_work.id).map(|(_, runs)| runs).unwrap_or_default();
        let red = red_of(&tried);
        let was_red = red == Red::Red;
        if was_red {
            self.state.red.insert(at_work.id.clone(), red_proofs(&tried));
        }
        self.state.saw_before(&at_work.id, red);
        self.state.current = Some(Current { story: at_work.id.clone(), base: after.base(), was_red });
        open.marked = Some((story.id, worth));
        self.name_work(&mut open, &view, Some(&at_work));
        Ok(Looked::of(Work::Open(open), tree, Some(source), Some(plan)))
    }

    /// In the plan, unless its commit did that, and in the loop's memory.
    fn mark(&mut self, plan: &mut PlanFile, story: &StoryId, worth: Proof, verdict: &Verdict) -> Result<(), StopError> {
        let (commit, told) = match &verdict.commit {
            Some(Committed::Commit { id, told }) => {
                plan.refresh()?;
                (Some(id.clone()), told.clone())
            }
            Some(Committed::Without(why)) => {
                plan.mark(story, Status::Done)?;
                (None, Some(format!("it was not committed: {why}")))
            }
            Some(Committed::Refused(_)) | None => {
                plan.mark(story, Status::Done)?;
                (None, None)
            }
        };
        self.state.marked.retain(|marked| marked.story != *story);
        self.state.marked.push(Marked {
            story: story.clone(),
            verdict: worth,
            tree: verdict.tree.clone(),
            work: verdict.work.clone(),
            at: jiff::Timestamp::now().to_string(),
            commit,
            told: told.clone(),
        });
        self.notes.extend(told.map(|told| format!("about story {story}: {told}.")));
        self.state.current = None;
        if let Some(work) = &verdict.work {
            self.state.tree = Some(work.clone());
        }
        Ok(())
    }
}

/// The story that would come after this one.
fn after(view: &mut Plan, index: usize) -> Option<StoryId> {
    let before = std::mem::replace(&mut view.stories[index].status, Status::Done);
    let next = match select(view, &Progress::default(), None) {
        Selection::Story { index } => Some(view.stories[index].id.clone()),
        Selection::AllDone | Selection::NothingRunnable { .. } => None,
    };
    view.stories[index].status = before;
    next
}
