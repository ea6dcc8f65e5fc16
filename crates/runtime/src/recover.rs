//! A run that died is put in order before the next one begins: what it left in the work tree is kept, and the tree goes back to
//! the attempt's checkpoint, or the story's commit is recorded where it was made already. Killed halfway, it is done again.

mod salvage;
mod settings;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::agent::claude::{self, Resumable};
use verdone_core::config::Limits;
use verdone_core::event::{Event, Recorded, Rejection};
use verdone_core::evidence::Evidence;
use verdone_core::finish::Finish;
use verdone_core::id::{Oid, RunId, StoryId};
use verdone_core::machine::{Attempt, Phase, PutBack, State, apply, stash_command};
use verdone_core::plan::Status;
use verdone_core::update::{Reporter, Update};

use crate::atomic::sweep_drafts;
use crate::clean_tree;
use crate::fault::{self, Point};
use crate::git::{Git, GitError, PathSet};
use crate::keep::Keep;
use crate::plan_file::{PlanFile, PlanFileError, PlanLocation};
use crate::process::{self, RUN_VARIABLE};
use crate::project::Project;
use crate::protected::Protected;
use crate::signal::Signals;
use crate::step;
use crate::store::{Journal, JournalError, JournalReader, Store, StoredRun, When};
use crate::undo::{self, TakenBack};
use crate::words::{listed, plural};

/// What the journal of a run that died says about its end.
const DIED: &str = "the run died; found and put in order by the next one";

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Nobody can work in this repository: that is not the last run's fault.
    #[error(transparent)]
    Open(GitError),
    #[error("the last run cannot be put in order: {0}")]
    Journal(#[from] JournalError),
    #[error("the last run cannot be put in order: {0}")]
    Git(#[from] GitError),
    #[error("the last run cannot be put in order: {doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// The last run of a project, where it died and was not put in order yet.
pub fn unfinished(root: &Path) -> Result<Option<RunId>, JournalError> {
    let Some(stored) = Store::of(root).latest()? else { return Ok(None) };
    let state = stored.last_state()?;
    Ok((!ended(&state) || state.undoing.is_some()).then_some(stored.id))
}

fn ended(state: &State) -> bool {
    matches!(state.phase, Phase::Stopped { .. } | Phase::New) && state.open_attempt().is_none()
}

/// Puts the last run in order where it died. Nothing of the project is read before: the dead run's agent may have changed the
/// plan, the settings or both.
pub fn recover(project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let store = Store::of(&project.root);
    let told = settings::put_back(project, &store, signals, reporter)?;
    let git = Git::open(&project.root).map_err(RecoverError::Open)?;
    git.remove_leftovers()?;
    clean_tree::remove_leftovers(&git);
    sweep_drafts(store.path()).map_err(io_error("tidying .verdone/runs/"))?;
    let Some(salvaged) = salvage::latest(&git, project, &store, reporter)? else { return Ok(()) };
    let stored = salvaged.stored;
    note_again(&git, &stored, reporter)?;
    let mut state = stored.last_state()?;
    take_undo_back(&git, project, &stored, &state, reporter)?;
    // A journal with a hole may only seem to have left an attempt open: a run that said it had ended is believed.
    if ended(&state) || (salvaged.mended && matches!(state.phase, Phase::Stopped { .. })) {
        Protected::forget(&stored.dir);
        return Ok(());
    }
    fault::pass(Point::RecoverBegin);
    if !told {
        begin(&stored.id, signals, reporter);
    }
    // A recovery that is killed leaves git processes behind, too. Under another name than the run's: its watchdog may still be at work.
    let git = git.marked(RUN_VARIABLE, recovery_of(&stored.id).as_str());
    git.remove_leftovers()?;
    if let Some(begun) = state.started_at {
        let branch = state.open_attempt().and_then(|attempt| attempt.checkpoint.as_ref()?.branch.as_deref());
        for lock in git.remove_stale_locks(begun.into(), &stored.id, branch)? {
            let text = format!("removed {}, which a git process of that run had left", lock.display());
            reporter.report(Update::Notice { text: &text });
        }
    }
    sweep(project, &stored)?;
    let mut journal = Journal::reopen(&stored.dir)?;
    if let Some(attempt) = state.open_attempt() {
        let events = settle(&git, project, &stored, &state, attempt, reporter)?;
        record(&mut journal, &mut state, events, reporter)?;
    }
    fault::pass(Point::RecoverSettled);
    let mut events: Vec<Event> = bring_back(&git, &project.root, &stored, &state)?.into_iter().collect();
    let (mut finish, mut code) = (Finish::Error, Finish::Error.exit_code());
    if let Phase::PuttingBack { finish: reached, exit_code } = state.phase {
        (finish, code) = (reached, exit_code);
    } else {
        events.push(Event::RunStopping { finish, reason: DIED.to_owned() });
    }
    events.push(Event::RunStopped { finish, exit_code: code, duration_ms: state.active.ms() });
    record(&mut journal, &mut state, events, reporter)?;
    Protected::forget(&stored.dir);
    Ok(())
}

fn record(journal: &mut Journal, state: &mut State, events: Vec<Event>, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    for recorded in journal.append(events, When { at: Timestamp::now(), active_ms: Some(state.active.ms()) })? {
        apply(state, &recorded);
        tell(&recorded, reporter);
    }
    Ok(())
}

/// The user's own changes, where the run had set them aside: also when it died while it did that, or while it brought them back.
fn bring_back(git: &Git, root: &Path, stored: &StoredRun, state: &State) -> Result<Option<Event>, RecoverError> {
    let Some(aside) = &state.aside else { return forgotten(git, stored) };
    // Whatever is wrong is said about the changes; it does not stand in the way of other runs.
    let limits = git.limits_of(&aside.checkpoint).unwrap_or_default();
    let keep = Keep { git, root, run: &stored.id, run_dir: &stored.dir, limits };
    let outcome = if state.left {
        let reason = "the branch has moved since the run began its last attempt".to_owned();
        PutBack::Refused { reason, overlap: Vec::new() }
    } else {
        keep.bring_back(aside, &git.extra_paths(&aside.checkpoint).unwrap_or_default())
    };
    Ok(Some(match outcome {
        PutBack::Done { files } => Event::ChangesPutBack { files },
        PutBack::Refused { reason, overlap } => Event::ChangesKept { reason, overlap, command: aside.command() },
    }))
}

/// Changes of the user's that only the run's ref knows about: the journal has a hole where it said so.
fn forgotten(git: &Git, stored: &StoredRun) -> Result<Option<Event>, RecoverError> {
    let stash = if stored.forgot_changes()? { git.stash_of(&stored.id)? } else { None };
    let reason = "the journal is damaged, and does not say which they are".to_owned();
    Ok(stash.map(|stash| Event::ChangesKept { reason, overlap: Vec::new(), command: stash_command(&stash) }))
}

fn take_undo_back(
    git: &Git,
    project: &Project,
    stored: &StoredRun,
    state: &State,
    reporter: &mut dyn Reporter,
) -> Result<(), RecoverError> {
    let text = match undo::take_back::<RecoverError>(git, &project.root, stored, state)? {
        TakenBack::Nothing => return Ok(()),
        TakenBack::Done { found } => {
            let found = found.id.short();
            format!("an undo was interrupted; the work tree is as it was before it, and what was found is kept as {found}")
        }
        TakenBack::Left { before, reason } => {
            let before = before.id.short();
            format!("an undo was interrupted, and {reason}: left as it is; the work tree from before it is kept as {before}")
        }
    };
    reporter.report(Update::Notice { text: &text });
    Ok(())
}

/// The session of the run before this one, where that one died between two stories of the same plan.
pub fn left_session(store: &Store, this: &RunId, plan: &str) -> Result<Option<Resumable>, JournalError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    let Some(stored) = ids.into_iter().rev().find(|id| id < this).map(|id| store.run(id)) else { return Ok(None) };
    let same = |line: &Recorded| matches!(&line.event, Event::RunStarted { plan: of, .. } if of == plan);
    if stored.find_from_end(died)? != Some(true) || !stored.beginning()?.iter().any(same) {
        return Ok(None);
    }
    Ok(stored.find_from_end(claude::left_session)?.flatten())
}

fn died(events: &[Recorded]) -> Option<bool> {
    events.iter().rev().find_map(|line| match &line.event {
        Event::RunStopping { reason, .. } => Some(reason == DIED),
        _ => None,
    })
}

/// Whether runs that died before this one left progress of committed stories for it to commit.
pub fn owes_progress(store: &Store, this: &RunId) -> Result<bool, JournalError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    for id in ids.into_iter().rev().filter(|id| id < this) {
        let stored = store.run(id);
        // One without an end was killed before it began.
        if stored.find_from_end(died)? == Some(false) {
            return Ok(false);
        }
        if stored.has(b"committed", |_| true)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Evidence that could not be attached to its commit is made again from the journal, now that whatever stood in the way may be gone.
fn note_again(git: &Git, stored: &StoredRun, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    match write_missing_notes(git, stored, reporter) {
        // What can wait stands in nobody's way.
        Err(error @ (JournalError::Broken { .. } | JournalError::Newer { .. })) => {
            let text = format!("evidence notes that are missing cannot be made again: {error}");
            reporter.report(Update::Notice { text: &text });
            Ok(())
        }
        done @ (Ok(()) | Err(JournalError::Io { .. })) => done,
    }
}

fn write_missing_notes(git: &Git, stored: &StoredRun, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    if !stored.has(b"committed", |line| line.ends_with(b"\"noted\":false}\n"))? {
        return Ok(());
    }
    let mut state = State::default();
    for recorded in JournalReader::open(&stored.journal())? {
        let recorded = recorded?;
        if let (Event::Committed { commit, tree, noted: false, .. }, Phase::Committing { tree: verified, verdict }, Some(attempt)) =
            (&recorded.event, &state.phase, &state.attempt)
            // What a git hook made of it was checked again, and of that the journal has only the outcome.
            && tree == verified
        {
            let evidence = Evidence::of(&state, attempt, *verdict, tree, &attempt.proof);
            let missing = git.read_note(commit).is_ok_and(|note| note.is_none());
            if missing && git.note(commit, &evidence.to_note()).is_ok() {
                let text = format!("the evidence note of {}, which could not be written then, is written", attempt.place.story);
                reporter.report(Update::Notice { text: &text });
            }
        }
        apply(&mut state, &recorded);
    }
    Ok(())
}

fn recovery_of(run: &RunId) -> RunId {
    RunId(format!("{run}-recovery"))
}

fn begin(run: &RunId, signals: &Signals, reporter: &mut dyn Reporter) {
    let text = format!("run {run} did not end properly; putting things in order");
    reporter.report(Update::Notice { text: &text });
    end_strays(run, signals, reporter);
}

fn end_strays(run: &RunId, signals: &Signals, reporter: &mut dyn Reporter) {
    let strays = process::end_strays(&[run, &recovery_of(run)], Limits::default().grace.duration(), signals);
    if strays > 0 {
        let text = format!("ended {} that it had left behind", plural(strays, "process", "processes"));
        reporter.report(Update::Notice { text: &text });
    }
}

/// Half-written files: beside the plan, and in our own folder.
fn sweep(project: &Project, stored: &StoredRun) -> Result<(), RecoverError> {
    let home = project.root.join(".verdone");
    let beside = plan_of(project, stored)?.and_then(|plan| Some(plan.parent()?.to_owned()));
    let dirs = [Some(home.clone()), Some(home.join("runs")), Some(home.join("hooks")), Some(stored.dir.clone()), beside];
    dirs.into_iter().flatten().try_for_each(|dir| sweep_drafts(&dir).map_err(io_error(&format!("tidying {}", dir.display()))))
}

/// The plan that the run worked on.
fn plan_of(project: &Project, stored: &StoredRun) -> Result<Option<PathBuf>, JournalError> {
    Ok(stored.beginning()?.iter().find_map(|line| match &line.event {
        Event::RunStarted { plan, .. } => Some(project.root.join(plan)),
        _ => None,
    }))
}

fn tell(recorded: &Recorded, reporter: &mut dyn Reporter) {
    if let Event::ChangesPutBack { files } = &recorded.event {
        let text = format!("your changes that it had set aside are back ({})", plural(*files, "file", "files"));
        reporter.report(Update::Notice { text: &text });
    }
    if let Event::ChangesKept { reason, overlap, command } = &recorded.event {
        let overlap = if overlap.is_empty() { String::new() } else { format!(": {}", listed(overlap)) };
        let text = format!("your changes that it had set aside were not put back ({reason}{overlap}); get them with: {command}");
        reporter.report(Update::Notice { text: &text });
    }
    if let Event::AttemptLeft { place, kept, reason } = &recorded.event {
        let text = format!("the unfinished attempt at {} was left as it is ({reason}); a copy is {}", place.story, kept.short());
        reporter.report(Update::Notice { text: &text });
    }
    if let Event::RolledBack { place, kept, .. } = &recorded.event {
        let text = format!(
            "the unfinished attempt at {}, and whatever else was changed since it began, the plan included, is kept as {}",
            place.story,
            kept.short()
        );
        reporter.report(Update::Notice { text: &text });
    }
}

/// What became of the attempt that was under way.
fn settle(
    git: &Git,
    project: &Project,
    stored: &StoredRun,
    state: &State,
    attempt: &Attempt,
    reporter: &mut dyn Reporter,
) -> Result<Vec<Event>, RecoverError> {
    let Some(checkpoint) = &attempt.checkpoint else { return Ok(Vec::new()) };
    if let Phase::Committing { tree, verdict } = &state.phase
        && let Some(commit) = git.commit_made_since(checkpoint, tree)?
    {
        let (place, base) = (attempt.place.clone(), checkpoint.head.clone());
        // The same evidence that the run itself would have written, so its digest is the one in the commit's trailer.
        let evidence = Evidence::of(state, attempt, *verdict, tree, &attempt.proof);
        let noted = git.note(&commit, &evidence.to_note()).is_ok();
        for path in git.put_back_deleted(checkpoint, &PathSet::default())? {
            reporter.report(Update::Notice { text: &format!("{path} is not in git and was deleted; it was put back") });
        }
        if let Err(error) = record_progress(git, project, stored, &evidence, &commit) {
            reporter.report(Update::Notice { text: &format!("the progress file could not be written: {error}") });
        }
        let (tree, verdict) = (tree.clone(), *verdict);
        let (evidence, criteria) = (Some(evidence.digest()), attempt.criteria.clone());
        return Ok(vec![Event::Committed { place, commit, tree, verdict, base, files: 0, evidence, criteria, noted }]);
    }
    let place = attempt.place.clone();
    let extra = git.extra_paths(checkpoint)?;
    let limits = git.limits_of(checkpoint)?;
    let keep = Keep { git, root: &project.root, run: &stored.id, run_dir: &stored.dir, limits };
    let label = format!("{} attempt {}, as the dead run left it", place.story, place.attempt);
    let before = keep.checkpoint_before_restore(&label, &extra)?;
    fault::pass(Point::RecoverSaved);
    let kept = git.keep_attempt(&stored.id, &git.candidate(checkpoint, &keep.candidate_rules())?, &label)?;
    fault::pass(Point::RecoverKept);
    let moved = (&before.head, &before.branch) != (&checkpoint.head, &checkpoint.branch);
    if moved && !git.moved_by(&stored.id, checkpoint.head.as_ref(), before.head.as_ref())? {
        let reason = "the branch has moved since the run began this attempt".to_owned();
        take_tick_back(project, stored, &place.story, reporter);
        return Ok(vec![Event::AttemptLeft { place, kept, reason }]);
    }
    let restored = keep.restore(checkpoint)?;
    let rejection = Rejection::Crashed;
    Ok(vec![
        Event::AttemptRejected { place: place.clone(), rejection, reason: "the run died".to_owned() },
        Event::RolledBack { place, kept, before, files: restored.files },
    ])
}

/// The run ticks a story before it verifies it. Where everything else is left as it is, that tick would be a claim of ours.
fn take_tick_back(project: &Project, stored: &StoredRun, story: &StoryId, reporter: &mut dyn Reporter) {
    let open = || -> Result<bool, RecordError> {
        let Some(plan) = plan_of(project, stored)? else { return Ok(false) };
        let mut plan = PlanFile::open(PlanLocation::of(plan))?;
        let ticked = plan.plan().story(story).is_some_and(|story| story.status == Status::Done);
        if ticked {
            plan.mark(story, Status::Open)?;
        }
        Ok(ticked)
    };
    let text = match open() {
        Ok(false) => return,
        Ok(true) => format!("{story} was ticked in the plan and never verified; the tick was taken back"),
        Err(error) => format!("whether {story} is ticked in the plan could not be seen ({error}); it was not verified"),
    };
    reporter.report(Update::Notice { text: &text });
}

/// The entry that the run would have written after the commit, if it did not get to it.
fn record_progress(
    git: &Git,
    project: &Project,
    stored: &StoredRun,
    evidence: &Evidence,
    commit: &Oid,
) -> Result<(), RecordError> {
    let Some(plan) = plan_of(project, stored)? else { return Ok(()) };
    let mut plan = PlanFile::open(PlanLocation::of(plan))?;
    if plan.progress_names(commit) {
        return Ok(());
    }
    Ok(plan.record_story(&step::entry(&stored.dir, &project.root, evidence, commit, &git.subject(commit)?))?)
}

#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |source| RecoverError::Io { doing: doing.to_owned(), source }
}
