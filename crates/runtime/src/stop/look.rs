//! What a held session has to show at the end of a turn: the story at work by the plan, its verification, the mark, what is still open.

use std::path::{Path, PathBuf};

use verdone_core::check::{Check, CheckOrigin, CheckRun};
use verdone_core::done::{GitFact, judge as judge_facts};
use verdone_core::event::VerifyOutcome;
use verdone_core::id::StoryId;
use verdone_core::plan::{Plan, Progress, Selection, Status, Story, select};
use verdone_core::sanitise::sanitise_line;
use verdone_core::stop::{BlockCause, Current, LoopState, Marked, Open, StoryToDo, Survey, Work, remaining, survey};
use verdone_core::tamper::Response;
use verdone_core::verdict::{Red, RedPolicy, StoryVerdict};

use crate::done::{self, Checked};
use crate::plan_file::{PlanFile, PlanLocation};
use crate::ralph_state;
use crate::signal::Signals;
use crate::site::{gates, own_checks};
use crate::step::red_of;

use super::commit::{CommitAsk, Committed, red_proofs};
use super::tree::Tree;
use super::verify::{Ask, Seen, Verdict, verdict};
use super::{Gate, StopError, tree};

/// More are counted, not listed.
const MOST_STORIES: usize = 1_000;

pub(super) struct Looker<'a> {
    pub(super) gate: &'a Gate<'a>,
    pub(super) state: &'a mut LoopState,
    /// What other tools say.
    pub(super) other: Vec<(BlockCause, String)>,
    /// What should be known, whatever is decided; and tamper alarms of what is judged.
    pub(super) notes: Vec<String>,
    pub(super) alarms: Vec<String>,
    /// What was red is run again: the user may have put something right outside the tree.
    pub(super) renew: bool,
    pub(super) signals: &'a Signals,
}

pub(super) struct Looked {
    pub(super) work: Work,
    pub(super) tree: Tree,
    pub(super) verdict: Option<&'static str>,
    pub(super) plan: Option<PlanFile>,
    /// What should be known, whatever is decided.
    pub(super) notes: Vec<String>,
    /// Tamper alarms of what was judged.
    pub(super) alarms: Vec<String>,
}

impl Looked {
    pub(super) fn of(work: Work, tree: Tree, verdict: Option<&'static str>, plan: Option<PlanFile>) -> Self {
        Self { work, tree, verdict, plan, notes: Vec::new(), alarms: Vec::new() }
    }
}

/// A story whose checks are green, with all that was seen about it.
struct Green {
    story: Story,
    was_red: bool,
    has_own: bool,
    verdict: Verdict,
    /// The story that was taken for the next one when its checks were tried.
    next: Option<StoryId>,
    source: &'static str,
}

impl Looker<'_> {
    pub(super) fn look(mut self) -> Result<Looked, StopError> {
        let plan = self.state.plan.as_ref().map(|plan| PlanFile::open(PlanLocation::of(PathBuf::from(plan)))).transpose()?;
        let ours = plan.as_ref().map(PlanFile::protected_paths).unwrap_or_default();
        let tree = tree::look(self.gate.root, self.gate.top, &ours)?;
        let looked = match plan {
            None => self.by_gates(&tree)?,
            Some(plan) => self.by_plan(plan, tree, ours)?,
        };
        Ok(Looked { notes: self.notes, alarms: self.alarms, ..looked })
    }

    /// Without a plan the gates alone say whether the task is done.
    fn by_gates(&mut self, tree: &Tree) -> Result<Looked, StopError> {
        let looked = |work, verdict| Looked::of(work, tree.clone(), verdict, None);
        let checks = gates(self.gate.config);
        if checks.is_empty() {
            return Ok(looked(Work::Nothing { why: "there is no plan and no gate".to_owned() }, None));
        }
        let seen = self.verify(&Ask { alarms: self.alarm_ask(None), ..self.ask(tree, &checks, Vec::new()) })?;
        let (verdict, source) = match seen {
            Seen::Running { seconds } => return Ok(looked(self.verifying(&checks, seconds), Some("running"))),
            Seen::Ended { verdict, cached } => (*verdict, source(cached)),
        };
        let mut open = self.open();
        if verdict.green {
            let changed = self.state.gates_were_red || tree.differs(&self.state.base);
            self.follow(tree, &verdict);
            let response = self.heed(&mut open, None, &verdict.alarms);
            if changed && response < Response::Refuse {
                self.add_conditions(&mut open, None, None, &verdict.runs)?;
            }
            if changed && open.missing.is_empty() && open.tasks.is_empty() {
                return Ok(looked(Work::Complete { verified: 0, unproven: 0 }, Some(source)));
            }
            if !changed {
                let why =
                    "Every gate is green, but nothing has changed since the loop was started, so that proves nothing.".to_owned();
                open.missing.push((BlockCause::NothingChanged, why));
            }
        } else {
            self.state.gates_were_red = true;
            self.follow(tree, &verdict);
            self.add_failures(&mut open, &verdict);
        }
        Ok(looked(Work::Open(open), Some(source)))
    }

    fn by_plan(&mut self, mut plan: PlanFile, tree: Tree, ours: Vec<PathBuf>) -> Result<Looked, StopError> {
        self.admit(&plan);
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        let story = found.current.map(|index| view.stories[index].clone());
        self.take_back(&mut plan, &found, story.as_ref().map(|story| &story.id))?;
        let (Some(index), Some(story)) = (found.current, story) else {
            return self.completion(plan, tree, &found, None);
        };
        let mut current = match &self.state.current {
            Some(current) if current.story == story.id => current.clone(),
            Some(_) | None => Current { story: story.id.clone(), base: tree.base(), was_red: false },
        };
        let own = self.own_checks(&story.id);
        let has_own = !own.is_empty();
        let checks = self.with_gates(own);
        if checks.is_empty() {
            self.state.current = Some(current);
            return Ok(Looked::of(self.unverifiable(&view, &story), tree, None, Some(plan)));
        }
        // Work for a story with checks of its own may have been done together with an earlier one.
        let changed = if has_own {
            current.was_red || self.gate.config.red_check == RedPolicy::Accept || tree.differs(&self.state.base)
        } else {
            tree.differs(&current.base)
        };
        let next = after(&mut view, index);
        let alarms = self.alarm_ask(Some(&story.id));
        let checks_of_next = next.as_ref().map(|next| self.own_checks(next)).unwrap_or_default();
        let whole = Ask { alarms, next: checks_of_next, ..self.ask(&tree, &checks, ours) };
        let commit = changed.then(|| CommitAsk::of(self.gate, self.state, &story, &current, plan.path())).flatten();
        // Where more is asked for than checks, nothing is committed before it was judged.
        let (commit, later) = if self.asks_more() { (None, commit) } else { (commit, None) };
        let mut open = self.open();
        open.missing.extend(found.gone.iter().map(gone));
        let mut seen = self.verify(&Ask { commit, ..whole.clone() })?;
        let mut holds = true;
        if let Seen::Ended { verdict, .. } = &seen
            && verdict.green
            && changed
            && self.response(&verdict.alarms) < Response::Refuse
        {
            let before = open.missing.len();
            self.add_conditions(&mut open, Some((plan.path(), &story.id)), later.as_ref(), &verdict.runs)?;
            holds = open.missing.len() == before;
            if holds && later.is_some() {
                seen = self.verify(&Ask { commit: later, ..whole })?;
            }
        }
        // What counted as committed before it was is judged once more where it is not.
        if let Seen::Ended { verdict, .. } = &seen
            && let (true, Some(Committed::Without(why))) = (self.asks_more(), &verdict.commit)
        {
            let before = open.missing.len();
            self.add_conditions(&mut open, Some((plan.path(), &story.id)), None, &verdict.runs)?;
            holds = open.missing.len() == before;
            let told = || (BlockCause::Condition, format!("The story was not committed: {why}"));
            open.missing.extend((!holds).then(told));
        }
        let (verdict, source) = match seen {
            Seen::Running { seconds } => {
                self.state.current = Some(current);
                return Ok(Looked::of(self.verifying(&checks, seconds), tree, Some("running"), Some(plan)));
            }
            Seen::Ended { verdict, cached } => (*verdict, source(cached)),
        };
        if current.base.key == tree.key {
            current.base.key.clone_from(&verdict.tree);
        }
        self.follow(&tree, &verdict);
        let response = self.heed(&mut open, Some(&story.id), &verdict.alarms);
        let refused = match &verdict.commit {
            Some(Committed::Refused(why)) => Some(format!("The story's checks pass, but its commit was refused: {why}")),
            Some(Committed::Commit { .. } | Committed::Without(_)) | None => None,
        };
        if verdict.green && changed && holds && refused.is_none() && response < Response::Refuse {
            let was_red = current.was_red && response < Response::Ask && verdict.own_files.is_empty();
            if has_own && !verdict.own_files.is_empty() {
                let files = verdict.own_files.join(", ");
                self.notes.push(format!(
                    "the work changed what the checks of story {} run ({files}): it is unproven at best.",
                    story.id
                ));
            }
            return self.done(plan, open, tree, Green { story, was_red, has_own, verdict, next, source });
        }
        if !verdict.green {
            let own: Vec<CheckRun> = verdict.runs.iter().filter(|run| run.origin == CheckOrigin::Story).cloned().collect();
            if red_of(&own) == Red::Red {
                current.was_red = true;
                self.state.red.insert(story.id.clone(), red_proofs(&own));
            }
            self.add_failures(&mut open, &verdict);
        } else if !changed {
            let since = if has_own { "the loop was started" } else { "it became the story at work" };
            let why =
                format!("The checks of story {} pass, but nothing has changed since {since}, so that proves nothing.", story.id);
            open.missing.push((BlockCause::NothingChanged, why));
        }
        open.missing.extend(refused.map(|why| (BlockCause::CheckFailed, why)));
        if found.claimed.contains(&story.id) {
            self.open_again(&mut plan, &story.id)?;
            let why = format!("Story {} was marked as done without a verification; Verdone took the mark back.", story.id);
            open.missing.push((BlockCause::CheckFailed, why));
        }
        self.name_work(&mut open, &view, Some(&story));
        self.state.current = Some(current);
        Ok(Looked::of(Work::Open(open), tree, Some(source), Some(plan)))
    }

    fn done(&mut self, mut plan: PlanFile, mut open: Open, tree: Tree, green: Green) -> Result<Looked, StopError> {
        let Green { story, was_red, has_own, verdict, next, source } = green;
        let (commit, told) = match &verdict.commit {
            Some(Committed::Commit { id, told }) => {
                plan.refresh()?;
                (Some(id.clone()), told.clone())
            }
            Some(Committed::Without(why)) => {
                plan.mark(&story.id, Status::Done)?;
                (None, Some(format!("it was not committed: {why}")))
            }
            Some(Committed::Refused(_)) | None => {
                plan.mark(&story.id, Status::Done)?;
                (None, None)
            }
        };
        let worth = if has_own && was_red { StoryVerdict::Verified } else { StoryVerdict::Unproven };
        self.state.marked.retain(|marked| marked.story != story.id);
        self.state.marked.push(Marked {
            story: story.id.clone(),
            verdict: worth,
            tree: verdict.tree.clone(),
            at: jiff::Timestamp::now().to_string(),
            commit,
            told: told.clone(),
        });
        self.notes.extend(told.map(|told| format!("about story {}: {told}.", story.id)));
        self.state.current = None;
        self.state.tree = verdict.work.or(self.state.tree.take());
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        // Checks may have made files, and a commit is another tree of the same ones.
        let after = tree::look(self.gate.root, self.gate.top, &plan.protected_paths())?;
        let Some(index) = found.current else {
            return self.completion(plan, after, &found, Some((story.id, worth)));
        };
        let at_work = view.stories[index].clone();
        let was_red = red_of(&verdict.next) == Red::Red && next.as_ref() == Some(&at_work.id);
        if was_red {
            self.state.red.insert(at_work.id.clone(), red_proofs(&verdict.next));
        }
        self.state.current = Some(Current { story: at_work.id.clone(), base: after.base(), was_red });
        open.marked = Some((story.id, worth));
        self.name_work(&mut open, &view, Some(&at_work));
        Ok(Looked::of(Work::Open(open), tree, Some(source), Some(plan)))
    }

    /// No story can be worked on: all are done, or what is left waits for something.
    pub(super) fn without_story(&self, view: &Plan, found: &Survey) -> Work {
        let mut open = self.open();
        open.missing.extend(found.gone.iter().map(gone));
        if let Some(why) = found.stuck.as_ref().filter(|_| open.missing.is_empty()) {
            return Work::Nothing { why: format!("no story can be worked on: {why}") };
        }
        if open.missing.is_empty() && open.tasks.is_empty() {
            let (verified, unproven) = self.state.counted();
            return Work::Complete { verified, unproven };
        }
        self.name_work(&mut open, view, None);
        Work::Open(open)
    }

    pub(super) fn asks_more(&self) -> bool {
        self.gate.config.done.asks_more_than_a_run()
    }

    /// What `[done]` asks for beyond green checks, which ran on the tree as it is. What `commit` takes in is as good as committed.
    pub(super) fn add_conditions(
        &self,
        open: &mut Open,
        story: Option<(&Path, &StoryId)>,
        commit: Option<&CommitAsk>,
        runs: &[CheckRun],
    ) -> Result<(), StopError> {
        if !self.asks_more() {
            return Ok(());
        }
        let ask = done::Ask {
            root: self.gate.root,
            session: self.gate.session,
            config: self.gate.config,
            checked: Some(Checked { runs, verdict: &VerifyOutcome::Passed, gates_only: false }),
            about: story,
            story: None,
            state_home: ralph_state::home(),
        };
        let mut facts = done::facts(&ask).map_err(Box::new)?;
        if let (GitFact::Seen { uncommitted, .. }, Some(_)) = (&mut facts.git, commit) {
            uncommitted.clear();
        }
        open.add_conditions(&judge_facts(&self.gate.config.done, &facts));
        Ok(())
    }

    pub(super) fn open(&self) -> Open {
        Open { missing: self.other.clone(), tasks: self.gate.files.open_tasks(None), ..Open::default() }
    }

    pub(super) fn name_work(&self, open: &mut Open, view: &Plan, story: Option<&Story>) {
        open.story = story.map(|story| StoryToDo {
            id: story.id.to_string(),
            title: story.title.clone(),
            steps: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
            checks: self.own_checks(&story.id).iter().map(|check| check.name.clone()).collect(),
        });
        let others = remaining(view, story.map(|story| &story.id));
        open.stories = others.take(MOST_STORIES).map(|story| (story.id.clone(), story.title.clone())).collect();
    }

    /// As they were when the loop began, or the user accepted them: what was written into the plan since is not run.
    pub(super) fn own_checks(&self, story: &StoryId) -> Vec<Check> {
        let frozen = self.state.open.get(story).map(|frozen| frozen.checks.clone()).unwrap_or_default();
        own_checks(frozen, self.gate.config)
    }

    /// What is verified: checks of stories, then every gate.
    pub(super) fn with_gates(&self, own: Vec<Check>) -> Vec<Check> {
        own.into_iter().chain(gates(self.gate.config)).collect()
    }

    pub(super) fn ask(&self, tree: &Tree, checks: &[Check], ours: Vec<PathBuf>) -> Ask {
        Ask::of(self.gate.config, (self.gate.root, self.gate.top), tree, checks, ours)
    }

    pub(super) fn verify(&self, ask: &Ask) -> Result<Seen, StopError> {
        verdict(&self.gate.files.dir, ask, self.renew, self.gate.config.stop.wait.duration(), self.signals)
    }

    pub(super) fn verifying(&self, checks: &[Check], seconds: u64) -> Work {
        Work::Verifying { checks: checks.iter().map(|check| check.name.clone()).collect(), seconds, waits: self.state.waits }
    }

    /// Files that the checks themselves made are no work of the agent's.
    pub(super) fn follow(&mut self, tree: &Tree, verdict: &Verdict) {
        if self.state.base.key == tree.key {
            self.state.base.key.clone_from(&verdict.tree);
        }
    }

    pub(super) fn add_failures(&self, open: &mut Open, verdict: &Verdict) {
        open.failed = verdict.runs.iter().filter(|run| run.blocks()).cloned().collect();
        if verdict.timed_out {
            let limit = self.gate.config.stop.verify_deadline;
            open.missing.insert(0, (BlockCause::CheckFailed, format!("The verification did not end within {limit}.")));
        } else if open.failed.is_empty() && !verdict.settled {
            let why = "The checks do not settle: they change files each time they run.".to_owned();
            open.missing.insert(0, (BlockCause::CheckFailed, why));
        }
    }
}

pub(super) fn source(cached: bool) -> &'static str {
    if cached { "cached" } else { "ran" }
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

fn gone(story: &StoryId) -> (BlockCause, String) {
    let why = format!(
        "Story {} was in the plan when the loop was started, and is not any more. Put it back: only the user takes stories out, with a \
         new `verdone loop start`.",
        sanitise_line(story.as_str())
    );
    (BlockCause::StoryGone, why)
}
