//! What a held session has to show at the end of a turn: the story at work by the plan, its verification, the mark, what is still open.

use std::path::{Path, PathBuf};

use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun};
use verdone_core::done::{GitFact, judge as judge_facts};
use verdone_core::event::VerifyOutcome;
use verdone_core::evidence::Proof;
use verdone_core::id::StoryId;
use verdone_core::plan::{Plan, Status, Story};
use verdone_core::sanitise::sanitise_line;
use verdone_core::stop::{BlockCause, Current, LoopState, Marked, Open, StoryToDo, Survey, Work, remaining, survey};
use verdone_core::verdict::{RedPolicy, StoryVerdict};

use crate::done::{self, Checked};
use crate::plan_file::{PlanFile, PlanLocation};
use crate::ralph_state;
use crate::signal::Signals;
use crate::site::{gates, own_checks};

use super::commit::{CommitAsk, Committed};
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
    /// What was red is run again: the user may have put something right outside the tree.
    pub(super) renew: bool,
    pub(super) signals: &'a Signals,
}

pub(super) struct Looked {
    pub(super) work: Work,
    pub(super) tree: Tree,
    pub(super) verdict: Option<&'static str>,
    pub(super) plan: Option<PlanFile>,
}

impl Looker<'_> {
    pub(super) fn look(mut self) -> Result<Looked, StopError> {
        let plan = self.state.plan.as_ref().map(|plan| PlanFile::open(PlanLocation::of(PathBuf::from(plan)))).transpose()?;
        let ours = plan.as_ref().map(PlanFile::protected_paths).unwrap_or_default();
        let tree = tree::look(self.gate.root, self.gate.top, &ours)?;
        match plan {
            None => self.by_gates(&tree),
            Some(plan) => self.by_plan(plan, tree, ours),
        }
    }

    /// Without a plan the gates alone say whether the task is done.
    fn by_gates(&mut self, tree: &Tree) -> Result<Looked, StopError> {
        let looked = |work, verdict| Looked { work, tree: tree.clone(), verdict, plan: None };
        let checks = gates(self.gate.config);
        if checks.is_empty() {
            return Ok(looked(Work::Nothing { why: "there is no plan and no gate".to_owned() }, None));
        }
        let seen = self.verify(tree, &checks, Vec::new(), None)?;
        let (verdict, source) = match seen {
            Seen::Running { seconds } => return Ok(looked(self.verifying(&checks, seconds), Some("running"))),
            Seen::Ended { verdict, cached } => (verdict, source(cached)),
        };
        let mut open = self.open();
        if verdict.green {
            let changed = self.state.gates_were_red || tree.differs(&self.state.base);
            self.follow(tree, &verdict);
            if changed {
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
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        let Some(index) = found.current else {
            let (work, verdict) = match self.without_story(&view, &found) {
                Work::Complete { verified, unproven } if self.asks_more() => {
                    self.held_to_conditions(&plan, &tree, ours, Work::Complete { verified, unproven })?
                }
                other => (other, None),
            };
            return Ok(Looked { work, tree, verdict, plan: Some(plan) });
        };
        let story = view.stories[index].clone();
        let mut current = match &self.state.current {
            Some(current) if current.story == story.id => current.clone(),
            Some(_) | None => Current { story: story.id.clone(), base: tree.base(), was_red: false },
        };
        let own = self.own_checks(&story);
        let has_own = !own.is_empty();
        let checks: Vec<Check> = own.into_iter().chain(gates(self.gate.config)).collect();
        if checks.is_empty() {
            let why = format!("story {} has no check of its own, and there is no gate", sanitise_line(story.id.as_str()));
            self.state.current = Some(current);
            return Ok(Looked { work: Work::Nothing { why }, tree, verdict: None, plan: Some(plan) });
        }
        // Work for a story with checks of its own may have been done together with an earlier one.
        let changed = if has_own {
            current.was_red || self.gate.config.red_check == RedPolicy::Accept || tree.differs(&self.state.base)
        } else {
            tree.differs(&current.base)
        };
        let asked = changed.then(|| CommitAsk::of(self.gate, self.state, &story, &current, plan.path()));
        let mut commit = asked.flatten();
        // Where more is asked for than checks, nothing is committed before it was judged.
        let later = if self.asks_more() { commit.take() } else { None };
        let mut open = self.open();
        open.missing.extend(found.gone.iter().map(gone));
        let mut seen = self.verify(&tree, &checks, ours.clone(), commit)?;
        let mut holds = true;
        if let Seen::Ended { verdict, .. } = &seen
            && verdict.green
            && changed
        {
            let before = open.missing.len();
            self.add_conditions(&mut open, Some((plan.path(), &story.id)), later.as_ref(), &verdict.runs)?;
            holds = open.missing.len() == before;
            if holds && later.is_some() {
                seen = self.verify(&tree, &checks, ours, later)?;
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
                return Ok(Looked { work: self.verifying(&checks, seconds), tree, verdict: Some("running"), plan: Some(plan) });
            }
            Seen::Ended { verdict, cached } => (verdict, source(cached)),
        };
        if current.base.key == tree.key {
            current.base.key.clone_from(&verdict.tree);
        }
        self.follow(&tree, &verdict);
        let refused = match &verdict.commit {
            Some(Committed::Refused(why)) => Some(format!("The story's checks pass, but its commit was refused: {why}")),
            Some(Committed::Commit { .. } | Committed::Without(_)) | None => None,
        };
        if verdict.green && changed && holds && refused.is_none() {
            return self.done(plan, &story, &current, &verdict, has_own, open, tree, source);
        }
        if !verdict.green {
            let is_red = |outcome: &CheckOutcome| match outcome {
                CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } | CheckOutcome::TimedOut { .. } => true,
                CheckOutcome::Passed | CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted => false,
            };
            let red = || verdict.runs.iter().filter(|run| run.origin == CheckOrigin::Story && is_red(&run.outcome));
            if red().next().is_some() {
                current.was_red = true;
                self.state.red.insert(story.id.clone(), red().map(Proof::from).collect());
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
            plan.mark(&story.id, Status::Open)?;
            let why = format!("Story {} was marked as done without a verification; Verdone took the mark back.", story.id);
            open.missing.push((BlockCause::CheckFailed, why));
        }
        self.name_work(&mut open, &view, Some(&story));
        self.state.current = Some(current);
        Ok(Looked { work: Work::Open(open), tree, verdict: Some(source), plan: Some(plan) })
    }

    #[expect(clippy::too_many_arguments, reason = "all of what was seen about one story")]
    fn done(
        &mut self,
        mut plan: PlanFile,
        story: &Story,
        current: &Current,
        verdict: &Verdict,
        has_own: bool,
        mut open: Open,
        tree: Tree,
        source: &'static str,
    ) -> Result<Looked, StopError> {
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
        let worth = if has_own && current.was_red { StoryVerdict::Verified } else { StoryVerdict::Unproven };
        self.state.marked.push(Marked {
            story: story.id.clone(),
            verdict: worth,
            tree: verdict.tree.clone(),
            at: jiff::Timestamp::now().to_string(),
            commit,
            told,
        });
        self.state.current = None;
        let mut view = plan.plan().clone();
        let found = survey(&mut view, self.state);
        let Some(index) = found.current else {
            let work = self.without_story(&view, &found);
            let work = match work {
                Work::Open(open) => Work::Open(Open { marked: Some((story.id.clone(), worth)), ..open }),
                other => other,
            };
            return Ok(Looked { work, tree, verdict: Some(source), plan: Some(plan) });
        };
        // Checks may have made files, and a commit is another tree of the same ones.
        let base = tree::look(self.gate.root, self.gate.top, &plan.protected_paths())?.base();
        let next = view.stories[index].clone();
        self.state.current = Some(Current { story: next.id.clone(), base, was_red: false });
        open.marked = Some((story.id.clone(), worth));
        self.name_work(&mut open, &view, Some(&next));
        Ok(Looked { work: Work::Open(open), tree, verdict: Some(source), plan: Some(plan) })
    }

    /// No story can be worked on: all are done, or what is left waits for something.
    fn without_story(&self, view: &Plan, found: &Survey) -> Work {
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

    /// All stories are done. Gates say whether the tree still is as good as it was when they became so, the conditions the rest.
    fn held_to_conditions(
        &self,
        plan: &PlanFile,
        tree: &Tree,
        ours: Vec<PathBuf>,
        complete: Work,
    ) -> Result<(Work, Option<&'static str>), StopError> {
        let checks = gates(self.gate.config);
        let mut open = self.open();
        let (runs, from) = if checks.is_empty() {
            (Vec::new(), None)
        } else {
            match self.verify(tree, &checks, ours, None)? {
                Seen::Running { seconds } => return Ok((self.verifying(&checks, seconds), Some("running"))),
                Seen::Ended { verdict, cached } if verdict.green => (verdict.runs, Some(source(cached))),
                Seen::Ended { verdict, cached } => {
                    self.add_failures(&mut open, &verdict);
                    return Ok((Work::Open(open), Some(source(cached))));
                }
            }
        };
        let last = self.state.marked.last().map(|marked| &marked.story);
        self.add_conditions(&mut open, last.map(|story| (plan.path(), story)), None, &runs)?;
        Ok((if open.missing.is_empty() { complete } else { Work::Open(open) }, from))
    }

    fn asks_more(&self) -> bool {
        self.gate.config.done.asks_more_than_a_run()
    }

    /// What `[done]` asks for beyond green checks, which ran on the tree as it is. What `commit` takes in is as good as committed.
    fn add_conditions(
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

    fn open(&self) -> Open {
        Open { missing: self.other.clone(), tasks: self.gate.files.open_tasks(None), ..Open::default() }
    }

    fn name_work(&self, open: &mut Open, view: &Plan, story: Option<&Story>) {
        open.story = story.map(|story| StoryToDo {
            id: story.id.to_string(),
            title: story.title.clone(),
            steps: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
            checks: self.own_checks(story).iter().map(|check| check.name.clone()).collect(),
        });
        let others = remaining(view, story.map(|story| &story.id));
        open.stories = others.take(MOST_STORIES).map(|story| (story.id.clone(), story.title.clone())).collect();
    }

    /// As they were when the loop began: what was written into the plan since is not run.
    fn own_checks(&self, story: &Story) -> Vec<Check> {
        let frozen = self.state.open.get(&story.id).map(|frozen| frozen.checks.clone()).unwrap_or_default();
        own_checks(frozen, self.gate.config)
    }

    fn verify(&self, tree: &Tree, checks: &[Check], ours: Vec<PathBuf>, commit: Option<CommitAsk>) -> Result<Seen, StopError> {
        let config = self.gate.config;
        let ask = ask(self.gate, tree, checks, ours, commit);
        verdict(&self.gate.files.dir, &ask, self.renew, config.stop.wait.duration(), self.signals)
    }

    fn verifying(&self, checks: &[Check], seconds: u64) -> Work {
        Work::Verifying { checks: checks.iter().map(|check| check.name.clone()).collect(), seconds, waits: self.state.waits }
    }

    /// Files that the checks themselves made are no work of the agent's.
    fn follow(&mut self, tree: &Tree, verdict: &Verdict) {
        if self.state.base.key == tree.key {
            self.state.base.key.clone_from(&verdict.tree);
        }
    }

    fn add_failures(&self, open: &mut Open, verdict: &Verdict) {
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

pub(super) fn ask(gate: &Gate<'_>, tree: &Tree, checks: &[Check], ours: Vec<PathBuf>, commit: Option<CommitAsk>) -> Ask {
    let config = gate.config;
    Ask {
        root: gate.root.to_owned(),
        top: gate.top.to_owned(),
        ours,
        tree: tree.key.clone(),
        checks: checks.to_vec(),
        deadline: config.stop.verify_deadline,
        grace: config.limits.grace,
        output_bytes: config.limits.output_bytes,
        gates: config.gates.clone(),
        clean: config.clean.clone(),
        largest_file: config.limits.snapshot_file_bytes,
        commit,
    }
}

pub(super) fn source(cached: bool) -> &'static str {
    if cached { "cached" } else { "ran" }
}

fn gone(story: &StoryId) -> (BlockCause, String) {
    let why = format!(
        "Story {} was in the plan when the loop was started, and is not any more. Put it back: only the user takes stories out, with a \
         new `verdone loop start`.",
        sanitise_line(story.as_str())
    );
    (BlockCause::StoryGone, why)
}
