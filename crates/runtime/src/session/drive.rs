//! A running loop: the same state machine as a run, with effects for sessions that Verdone did not start. The agent's turn happens between
//! two Stops, and the machine waits there. Everything else is done here, by the worker or `verdone loop start`, never by a hook.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use verdone_core::agent::{SessionUse, TurnOutcome, Usage};
use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::redact::Redactor;
use verdone_core::check::{Check, CheckOutcome, CheckRun};
use verdone_core::config::Config;
use verdone_core::engine::run::{Choice, Effect, Input, Phase, State, TurnReport, decide};
use verdone_core::engine::session::{BlockCause, Frozen, HeldLoop, Open, StoryToDo, Work, remaining, rules};
use verdone_core::journal::event::{Event, TurnTests};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::lifecycle::Script;
use verdone_core::verify::VerifyReport;
use verdone_plan::{Selection, Status, select};

use crate::base::active_clock::Stopwatch;
use crate::base::digest_cache::KnownFiles;
use crate::git::{Git, PathSet};
use crate::process::redactor_from_environment;
use crate::process::signal::Signals;
use crate::project::Project;
use crate::verify::check_runner::Guarded;
use crate::verify::checks::own_checks;
use crate::verify::checks::red_of;
use crate::verify::{Bench, BenchPlace, Results};
use crate::workspace::{WorkspaceRequest, Workspaces};

use super::StopError;
use super::files::file_error;
use super::journal::LoopJournal;
use super::memory::Memory;
use super::plan::LoopPlan;
use super::plan_messages;
use super::tree::{self, not_work};

/// More stories are counted, not listed.
const MOST_STORIES: usize = 1_000;

/// The components of a driver.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) project: Project,
    pub(super) session: String,
    pub(super) held: HeldLoop,
    pub(super) journal: LoopJournal,
    pub(super) memory: Memory,
    pub(super) plan: LoopPlan,
    pub(super) signals: Signals,
}

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) project: Project,
    pub(super) session: String,
    pub(super) held: HeldLoop,
    pub(super) config: Config,
    pub(super) journal: LoopJournal,
    pub(super) memory: Memory,
    pub(super) plan: LoopPlan,
    pub(super) git: Git,
    pub(super) signals: Signals,
    pub(super) redactor: Redactor,
    /// Additional notes for the agent and the user.
    pub(super) notes: Vec<String>,
    /// The tree of the last step.
    pub(super) tree: Option<Oid>,
    /// The last verification.
    pub(super) report: Option<VerifyReport>,
    /// The agent had a turn that is not in the journal yet.
    had_turn: bool,
    guarded: Guarded,
    /// Opened for the first check.
    spaces: Option<Workspaces>,
    clock: Stopwatch,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// When the agent must work, or work must be verified.
    Verification,
    /// When the agent must work. `held_open` prevents the loop from ending.
    Turn { held_open: bool },
}

/// The result of a step.
#[derive(Debug)]
pub(super) enum Step {
    Input(Input),
    /// It cannot continue now; the work says why.
    Hold {
        work: Work,
        stands: bool,
    },
}

impl From<Input> for Step {
    fn from(input: Input) -> Self {
        Self::Input(input)
    }
}

impl Driver {
    pub(super) fn new(parts: Parts) -> Result<Self, StopError> {
        let Parts { project, session, held, journal, memory, plan, signals } = parts;
        let config = (*held.settings.config).clone();
        let guarded = Guarded::begin(config.limits.grace.duration());
        let git = guarded.git(Git::open(&project.root)?);
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if real(git.top()) != real(&project.git_top) {
            return Err(StopError::Elsewhere { top: git.top().to_owned() });
        }
        let redactor = redactor_from_environment(&[]);
        let (notes, tree, report, spaces, clock) = (Vec::new(), None, None, None, Stopwatch::start());
        Ok(Self {
            project,
            session,
            held,
            config,
            journal,
            memory,
            plan,
            git,
            signals,
            redactor,
            notes,
            tree,
            report,
            had_turn: false,
            guarded,
            spaces,
            clock,
        })
    }

    pub(super) fn state(&self) -> &State {
        self.journal.state()
    }

    /// Starts the loop and runs it up to the agent's first turn.
    pub(super) fn start(&mut self, event: Event) -> Result<Option<Step>, StopError> {
        let effect = self.feed(&Input::Start(Box::new(event)))?;
        self.go_on(effect, Until::Verification)
    }

    /// Continues from the end of the journal, after a turn ended or an earlier worker was killed.
    pub(super) fn resume(&mut self, held_open: bool) -> Result<Option<Step>, StopError> {
        // The start skipped the first red check, so a turn has ended since.
        self.had_turn = self.state().phase == Phase::RedChecking && self.state().iteration == 1;
        let effect = match &self.state().phase {
            Phase::Turn => {
                let ended = self.turn_ended();
                self.feed(&ended)?
            }
            Phase::Preparing => Some(Effect::Script(Script::Started)),
            Phase::Selecting => Some(Effect::Script(Script::PostIteration)),
            Phase::Beginning => Some(Effect::Script(Script::NextIteration)),
            Phase::RedChecking => Some(Effect::RedCheck),
            Phase::Verifying => Some(Effect::Verify),
            Phase::Committing { .. } => Some(Effect::Commit),
            Phase::Keeping { .. } => Some(Effect::Keep),
            Phase::Regressing { .. } => Some(Effect::Regression),
            Phase::Reopening { .. } => Some(Effect::Reopen),
            Phase::Stopping { .. } => Some(Effect::Finish),
            // These phases do not occur in a loop.
            Phase::New | Phase::Waiting { .. } | Phase::Landing | Phase::Stopped { .. } => None,
        };
        self.go_on(effect, Until::Turn { held_open })
    }

    /// Returns the step that stopped it.
    fn go_on(&mut self, mut next: Option<Effect>, until: Until) -> Result<Option<Step>, StopError> {
        while let Some(effect) = next {
            let step = match effect {
                Effect::Turn if std::mem::take(&mut self.had_turn) => self.turn_ended().into(),
                Effect::Turn => return Ok(None),
                Effect::Verify if until == Until::Verification => return Ok(None),
                Effect::Script(_) | Effect::Land | Effect::Wait => Input::ScriptRan(None).into(),
                Effect::Prepare => Input::Prepared { baseline: Vec::new() }.into(),
                Effect::Select => self.select(until)?,
                Effect::Reset => self.begin()?.into(),
                Effect::RedCheck => self.red_check(until)?,
                Effect::Verify => self.verify()?,
                Effect::Commit => self.commit()?.into(),
                Effect::Keep => self.keep()?.into(),
                Effect::Regression => self.regression(until)?,
                Effect::Reopen => self.reopen()?.into(),
                Effect::Finish => Input::Finished { landed: None, script: None }.into(),
            };
            if self.signals.requested().is_some() {
                return Err(StopError::CalledOff);
            }
            match step {
                Step::Input(input) => next = self.feed(&input)?,
                hold @ Step::Hold { .. } => return Ok(Some(hold)),
            }
        }
        Ok(None)
    }

    fn feed(&mut self, input: &Input) -> Result<Option<Effect>, StopError> {
        let now = Duration::from_millis(self.journal.elapsed_ms(Timestamp::now()));
        let decision = decide(self.state(), &rules(&self.config), now, input);
        self.journal.append(decision.events)?;
        Ok(decision.effect)
    }

    fn turn_ended(&self) -> Input {
        let at = Timestamp::now();
        let began = self.journal.last_at().unwrap_or(at);
        let session =
            SessionUse { id: self.session.clone(), fresh: None, tokens: None, window: None, compactions: 0, cut_commands: 0 };
        Input::TurnEnded(TurnReport {
            at,
            outcome: TurnOutcome::Ended,
            duration_ms: u64::try_from(at.duration_since(began).as_millis()).unwrap_or(0),
            usage: Usage::default(),
            exit_code: None,
            prompt: None,
            output: None,
            leftovers: 0,
            tests: TurnTests::default(),
            session: Some(session),
            allowance: None,
            claim: None,
        })
    }

    /// Inspects the plan for new stories and for marks that someone else set.
    pub(super) fn look_at_plan(&mut self) -> Result<(), StopError> {
        let unaccepted = self.plan.admit(&self.held, self.journal.state(), &mut self.memory.later, &self.project.root);
        let root = &self.project.root;
        self.notes.extend(unaccepted.iter().map(|story| plan_messages::not_run(story, self.held.plan.as_deref(), root)));
        self.survey();
        let claimed = self.plan.found.claimed.clone();
        for story in &claimed {
            let marks = self.frozen(story).marks;
            self.plan.take_back(story, &marks)?;
        }
        self.notes.extend(plan_messages::taken_back(&claimed));
        Ok(())
    }

    /// Rereads marks that were set in the meantime.
    pub(super) fn refresh(&mut self) -> Result<(), StopError> {
        self.plan.refresh()?;
        self.survey();
        Ok(())
    }

    fn survey(&mut self) {
        let stories = self.stories();
        self.plan.survey(&stories, self.journal.state());
    }

    /// All stories of the loop, as frozen.
    fn stories(&self) -> BTreeMap<StoryId, Frozen> {
        let later = self.memory.later.iter();
        self.held.stories.iter().chain(later).map(|(id, frozen)| (id.clone(), frozen.clone())).collect()
    }

    pub(super) fn frozen(&self, story: &StoryId) -> Frozen {
        self.held.stories.get(story).or_else(|| self.memory.later.get(story)).cloned().unwrap_or_default()
    }

    /// The checks as of the start of the loop or of the user's approval. Checks added to the plan since then are not run.
    pub(super) fn own_checks(&self, story: &StoryId) -> Vec<Check> {
        own_checks(self.frozen(story).checks, &self.config)
    }

    fn select(&mut self, until: Until) -> Result<Step, StopError> {
        self.refresh()?;
        let view = &self.plan.view;
        let choice = match select(view, &self.state().progress, None) {
            Selection::Story { index } => {
                let story = &view.stories[index];
                let open = view.stories.iter().filter(|story| story.status != Status::Done).count();
                let (story, title) = (story.id.clone(), story.title.clone());
                return Ok(
                    Input::Selected(Choice::Story { story, title, number: index + 1, of: view.stories.len(), open }).into()
                );
            }
            Selection::AllDone => Choice::AllDone,
            Selection::NothingRunnable { reason } => Choice::NothingRunnable { reason },
        };
        if !self.plan.found.gone.is_empty() {
            return Ok(Step::Hold { work: Work::Open(self.open()), stands: true });
        }
        let ends = choice == Choice::AllDone && self.state().since_regression == 0;
        if ends && until == (Until::Turn { held_open: true }) {
            return Ok(Step::Hold { work: self.complete(), stands: true });
        }
        Ok(Input::Selected(choice).into())
    }

    fn begin(&mut self) -> Result<Input, StopError> {
        let base = self.git.head_commit()?.map(|(head, _)| head);
        let tree = match &self.tree {
            Some(tree) => tree.clone(),
            None => self.snapshot()?,
        };
        // Results for other trees say nothing about this story.
        self.memory.results.keep_only(&tree);
        Ok(Input::Ready { base, tree: Some(tree) })
    }

    /// A person waits while a loop starts, so a slow check is skipped there. It runs after the first turn.
    fn red_check(&mut self, until: Until) -> Result<Step, StopError> {
        let Some((story, tree)) = self.at_work() else { return Err(StopError::NoVerdict) };
        let mut checks = self.own_checks(&story);
        let patience = self.config.stop.wait;
        for check in checks.iter_mut().filter(|_| until == Until::Verification) {
            check.timeout = if check.timeout.limit().is_some() { check.timeout.min(patience) } else { patience };
        }
        let runs = self.run_checks(&tree, &checks)?;
        let timed_out = |run: &CheckRun| matches!(run.outcome, CheckOutcome::TimedOut { .. });
        if until == Until::Verification && runs.iter().any(timed_out) {
            self.memory.results.forget_timeouts();
            return Ok(Step::Hold { work: Work::Unknown, stands: false });
        }
        Ok(Input::RedChecked { red: red_of(&runs), runs }.into())
    }

    /// The current story, and the tree it started with.
    pub(super) fn at_work(&self) -> Option<(StoryId, Oid)> {
        let attempt = self.state().attempt.as_ref()?;
        Some((attempt.place.story.clone(), attempt.tree.clone()?))
    }

    /// Work that needs review stays in the work tree, and a commit keeps it.
    fn keep(&mut self) -> Result<Input, StopError> {
        let Some(attempt) = self.state().attempt.clone() else { return Err(StopError::NoVerdict) };
        let tree = match attempt.report.as_ref() {
            Some(report) => report.trees.attempt.clone(),
            None => self.snapshot()?,
        };
        let (place, run) = (&attempt.place, &self.held.run);
        let message = format!("{} attempt {}, not accepted\n\nVerdone-Run: {run}\n", place.story, place.attempt);
        let base = attempt.base.as_ref();
        let kept = self.git.keep_attempt_commit(run, &place.story, place.attempt, &tree, base, &message)?;
        let files = attempt.tree.as_ref().map_or(Ok(0), |base| self.changed(base, &tree).map(|changed| changed.len()))?;
        Ok(Input::Kept { kept, files: files as u32 })
    }

    fn reopen(&mut self) -> Result<Input, StopError> {
        let Phase::Reopening { stories } = self.state().phase.clone() else { return Err(StopError::NoVerdict) };
        for story in &stories {
            let marks = self.frozen(story).marks;
            self.plan.take_back(story, &marks)?;
            self.notes.push(format!("story {story} was verified before, but later work broke it; Verdone reopened it."));
        }
        Ok(Input::Reopened { commit: None })
    }

    /// The work tree as a git tree, with everything that is not ignored.
    pub(super) fn snapshot(&self) -> Result<Oid, StopError> {
        let known = &mut KnownFiles::open(&self.project.root, &self.project.git_top);
        Ok(self.git.tree_now(self.config.limits.largest_file(), known)?.tree)
    }

    /// The gate's key for the work tree.
    pub(super) fn key(&self) -> Result<String, StopError> {
        Ok(tree::fingerprint(&self.project.root, &self.project.git_top, &self.plan.files())?.key)
    }

    /// Files that are not part of the work: the plan, Verdone's folder, and files written by the client.
    pub(super) fn ours(&self) -> PathSet {
        not_work(&self.git, &self.project.root, &self.project.git_top, &self.plan.files())
    }

    pub(super) fn changed(&self, base: &Oid, tree: &Oid) -> Result<Vec<crate::git::ChangedPath>, StopError> {
        let ours = self.ours();
        let changes = self.git.changed_paths(Some(base), tree)?;
        Ok(changes.into_iter().filter(|change| !ours.contains(&change.path)).collect())
    }

    /// Provides everything that a verification needs.
    pub(super) fn on_bench<T>(&mut self, work: impl FnOnce(&mut Bench<'_>, &mut Results) -> T) -> Result<T, StopError> {
        let head = self.head()?;
        self.open_spaces()?;
        let Some(spaces) = &mut self.spaces else { return Err(StopError::NoVerdict) };
        let Memory { results, checks_run, .. } = &mut self.memory;
        let mut bench = Bench {
            git: &self.git,
            spaces,
            head: &head,
            config: &self.config,
            run_dir: self.journal.run_dir(),
            number: checks_run,
            mark: self.guarded.mark(),
            redactor: &self.redactor,
            signals: &self.signals,
            clock: self.clock,
            place: BenchPlace::default(),
        };
        Ok(work(&mut bench, results))
    }

    /// Runs checks on a tree outside a verification, and stores the results.
    fn run_checks(&mut self, tree: &Oid, checks: &[Check]) -> Result<Vec<CheckRun>, StopError> {
        self.run_checks_in(BenchPlace::default(), tree, checks)
    }

    /// The same in the given workspace.
    pub(super) fn run_checks_in(&mut self, place: BenchPlace, tree: &Oid, checks: &[Check]) -> Result<Vec<CheckRun>, StopError> {
        if checks.is_empty() {
            return Ok(Vec::new());
        }
        self.on_bench(|bench, results| {
            bench.place = place;
            Ok(bench.run_and_note(results, tree, checks, &mut Quiet)?)
        })?
    }

    /// The commit that checks see as HEAD. Before the first commit, one that only they see.
    fn head(&self) -> Result<Oid, StopError> {
        if let Some((head, _)) = self.git.head_commit()? {
            return Ok(head);
        }
        let tree = self.snapshot()?;
        Ok(self.git.keep_attempt_commit(&self.held.run, &StoryId::from("start"), 0, &tree, None, "the files at the start\n")?)
    }

    fn open_spaces(&mut self) -> Result<(), StopError> {
        if self.spaces.is_some() {
            return Ok(());
        }
        let run_dir = self.journal.run_dir();
        let outputs: PathBuf = run_dir.join("checks");
        std::fs::create_dir_all(&outputs).map_err(|source| file_error(&outputs, source))?;
        let name = format!("loop-{}-{}", self.held.run, std::process::id());
        let objects = self.git.object_folders()?;
        let request = WorkspaceRequest { project: &self.project, config: &self.config, run: &name, run_dir, objects };
        let mut spaces = Workspaces::new(&request);
        spaces.open(&self.git)?;
        self.spaces = Some(spaces);
        Ok(())
    }

    /// What is still open, with the current story.
    pub(super) fn open(&self) -> Open {
        let mut open = Open::default();
        open.missing.extend(self.plan.found.gone.iter().map(|story| (BlockCause::StoryGone, plan_messages::gone(story))));
        let story = self.state().attempt.as_ref().map(|attempt| attempt.place.story.clone());
        if self.held.plan.is_some() {
            open.story = story.as_ref().and_then(|story| self.plan.view.story(story)).map(|story| StoryToDo {
                id: story.id.to_string(),
                title: story.title.clone(),
                steps: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
                checks: self.own_checks(&story.id).iter().map(|check| check.name.clone()).collect(),
            });
            let is_settled = |id: &StoryId| self.state().progress.review.contains_key(id);
            let others = remaining(&self.plan.view, story.as_ref()).filter(|story| !is_settled(&story.id));
            open.stories = others.take(MOST_STORIES).map(|story| (story.id.clone(), story.title.clone())).collect();
        }
        open
    }

    pub(super) fn complete(&self) -> Work {
        let proofs = self.state().results.values().filter(|result| result.is_taken()).filter_map(|result| result.proof);
        Work::Complete { proofs: if self.held.plan.is_some() { proofs.collect() } else { Vec::new() } }
    }
}

/// A worker has no audience.
#[derive(Debug)]
pub(super) struct Quiet;

impl Reporter for Quiet {
    fn report(&mut self, _: Update<'_>) {}
}
