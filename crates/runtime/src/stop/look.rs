//! What a held session has to show at the end of a turn: the story at work by its plan, else its gates; and what is still open.

use std::path::{Path, PathBuf};

use verdone_core::check::{Check, CheckRun};
use verdone_core::done::{GitFact, judge as judge_facts};
use verdone_core::id::StoryId;
use verdone_core::plan::{Plan, Story};
use verdone_core::sanitise::sanitise_line;
use verdone_core::span::Span;
use verdone_core::stop::{BlockCause, LoopState, Open, StoryToDo, Survey, Work, remaining};
use verdone_core::tamper::Response;

use crate::done::{self, Checked};
use crate::plan_file::{PlanFile, PlanLocation};
use crate::ralph_state;
use crate::signal::Signals;
use crate::site::{gates, own_checks};

use super::commit::CommitAsk;
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
                let unproven = usize::from(response == Response::Ask);
                return Ok(looked(Work::Complete { verified: 0, unproven }, Some(source)));
            }
            if !changed {
                let why =
                    "Every gate is green, but nothing has changed since the loop was started, so that proves nothing.".to_owned();
                open.missing.push((BlockCause::NothingChanged, why));
            }
        } else {
            self.state.gates_were_red = true;
            self.follow(tree, &verdict);
            add_failures(&mut open, &verdict, self.gate.config.stop.verify_deadline);
        }
        Ok(looked(Work::Open(open), Some(source)))
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
            checked: Some(Checked { runs, passed: true, gates_only: false }),
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
}

pub(super) fn source(cached: bool) -> &'static str {
    if cached { "cached" } else { "ran" }
}

/// `limit` is how long the verification could take.
pub(super) fn add_failures(open: &mut Open, verdict: &Verdict, limit: Span) {
    open.failed = verdict.runs.iter().filter(|run| run.blocks()).cloned().collect();
    if verdict.timed_out {
        open.missing.insert(0, (BlockCause::CheckFailed, format!("The verification did not end within {limit}.")));
    } else if open.failed.is_empty() && !verdict.settled {
        let why =
            "The work does not settle: files change while it is verified, by its checks or by something else. A report or cache \
                   that a check writes each time belongs into .gitignore."
                .to_owned();
        open.missing.insert(0, (BlockCause::CheckFailed, why));
    }
}

pub(super) fn gone(story: &StoryId) -> (BlockCause, String) {
    let why = format!(
        "Story {} was in the plan when the loop was started, and is not any more. Put it back: only the user takes stories out, with a \
         new `verdone loop start`.",
        sanitise_line(story.as_str())
    );
    (BlockCause::StoryGone, why)
}
