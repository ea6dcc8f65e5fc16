//! What is left of a run that died, before the next one begins: its workspaces go, and its journal gets an end. The run's branch
//! says which stories were committed, so nothing has to be repaired.

mod record;
mod salvage;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::agent::claude::{self, Resumable};
use verdone_core::base::finish::Finish;
use verdone_core::base::id::RunId;
use verdone_core::config::Limits;
use verdone_core::engine::run::{Attempt, Phase, State, apply};
use verdone_core::evidence::Evidence;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::Outcome;

use crate::base::atomic::sweep_drafts;
use crate::base::fault::{self, Point};
use crate::base::text::plural;
use crate::git::{Git, GitError, InterruptedLanding, Landing};
use crate::process;
use crate::process::signal::Signals;
use crate::project::Project;
use crate::store::{Journal, JournalError, JournalReader, Store, StoredRun, When};
use crate::workspace;

/// What the journal of a run that died says about its end.
const DIED: &str = "the run died; the next one found it";

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Nobody can work in this repository: that is not the last run's fault.
    #[error(transparent)]
    Open(GitError),
    #[error("cannot recover the last run: {0}")]
    Journal(#[from] JournalError),
    #[error("cannot recover the last run: {0}")]
    Git(#[from] GitError),
    #[error("cannot recover the last run: {doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// The last run of a project, where it died and was not recovered yet.
pub fn unfinished(root: &Path) -> Result<Option<RunId>, JournalError> {
    let Some(stored) = Store::of(root).latest_run()? else { return Ok(None) };
    let state = stored.last_state()?;
    Ok((!ended(&state)).then_some(stored.id))
}

fn ended(state: &State) -> bool {
    matches!(state.phase, Phase::Stopped { .. } | Phase::New)
}

/// Ends the last run of a project where it died. Killed halfway, it is done again.
pub fn recover(project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let store = Store::of(&project.root);
    let git = Git::open(&project.root).map_err(RecoverError::Open)?;
    git.remove_leftovers()?;
    workspace::sweep(&project.git_top);
    sweep_drafts(store.path()).map_err(io_error("tidying .verdone/runs/"))?;
    let Some(stored) = salvage::latest(&store, reporter)? else { return Ok(()) };
    clear_locks(&git, &stored, &stored.last_state()?, reporter)?;
    finish_landing(&git, &store, reporter)?;
    let mut state = stored.last_state()?;
    write_notes_again(&git, &stored, reporter)?;
    if ended(&state) {
        if matches!(state.phase, Phase::Stopped { finish: _, exit_code } if exit_code == Finish::Error.exit_code()) {
            progress(&git, project, &stored, &[], reporter);
        }
        return Ok(());
    }
    fault::pass(Point::RecoverBegin);
    begin(&stored.id, signals, reporter);
    sweep(project, &stored)?;
    git.drop_ci_commit(&stored.id)?;
    let mut journal = Journal::reopen(&stored.dir)?;
    let mut events = Vec::new();
    if let Some(attempt) = state.open_attempt() {
        events.push(settle(&git, project, &stored, &state, attempt, reporter)?);
    }
    if state.phase == Phase::Landing {
        events.extend(landed(&git, &stored)?);
    }
    progress(&git, project, &stored, &events, reporter);
    fault::pass(Point::RecoverSettled);
    let finish = Finish::Error;
    if !matches!(state.phase, Phase::Stopping { .. }) {
        events.push(Event::RunStopping { finish, reason: DIED.to_owned() });
    }
    events.push(Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms: state.active.ms() });
    for recorded in journal.append(events, When { at: Timestamp::now(), active_ms: Some(state.active.ms()) })? {
        apply(&mut state, &recorded);
    }
    Ok(())
}

/// Entries of the progress file that the run did not get to commit.
fn progress(git: &Git, project: &Project, stored: &StoredRun, settled: &[Event], reporter: &mut dyn Reporter) {
    if let Err(error) = record::commit_progress(git, project, stored, settled) {
        reporter.report(Update::Notice { text: &format!("the progress file could not be updated: {error}") });
    }
}

/// The session of the run before this one, where that one died between two stories of the same plan.
pub fn left_session(store: &Store, this: &RunId, plan: &str) -> Result<Option<Resumable>, JournalError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    let Some(stored) = ids.into_iter().rev().filter(|id| id < this).map(|id| store.run(id)).find(|run| !run.is_loop()) else {
        return Ok(None);
    };
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

/// Locks of git processes that were killed: those of the run, or of a landing that began and did not end.
fn clear_locks(git: &Git, stored: &StoredRun, state: &State, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let of_landing = git.interrupted_landing().map(|landing| landing.since);
    let of_run = state.started_at.filter(|_| !ended(state)).map(Into::into);
    let Some(since) = of_landing.into_iter().chain(of_run).min() else { return Ok(()) };
    for lock in git.remove_stale_locks(since, &stored.id, branch_of(stored)?.as_deref())? {
        let text = format!("removed {}: a killed git process had left it", lock.display());
        reporter.report(Update::Notice { text: &text });
    }
    Ok(())
}

/// A landing that was cut off is finished first: its files may be half there. The run whose commits they are records it.
fn finish_landing(git: &Git, store: &Store, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let Some(InterruptedLanding { branch, to, .. }) = git.interrupted_landing() else { return Ok(()) };
    let (text, event) = match git.land_files(Some(&branch), &to)? {
        Landing::Landed { from } => {
            let from = from.unwrap_or_else(|| to.clone());
            let text = format!("finished the landing of {} on {branch}", to.short());
            (text, Event::Landed { branch: branch.clone(), from, to: to.clone(), left: 0 })
        }
        Landing::Refused(refusal) => {
            let text = format!("an interrupted landing on {branch} cannot be finished: {refusal}");
            (text, Event::LandingRefused { reason: refusal.to_string() })
        }
    };
    reporter.report(Update::Notice { text: &text });
    let ends_there = git.branches_at(&to)?;
    let ids = store.ids().map_err(io_error("reading .verdone/runs/"))?;
    let stored = ids.into_iter().rev().map(|id| store.run(id)).find(|stored| {
        // A journal that cannot be read names no branch.
        stored.branches().ok().flatten().is_some_and(|(own, _)| own != branch && ends_there.contains(&own))
    });
    if let Some(stored) = stored {
        Journal::reopen(&stored.dir)?.append(vec![event], Timestamp::now())?;
    }
    Ok(())
}

/// The end of a landing that the run did not get to record.
fn landed(git: &Git, stored: &StoredRun) -> Result<Option<Event>, RecoverError> {
    let Some((own, Some(branch))) = stored.branches()? else { return Ok(None) };
    let (Some(to), Some(tip)) = (git.branch_tip(&own)?, git.branch_tip(&branch)?) else { return Ok(None) };
    let is_landed = git.is_part_of(&to, &tip)?;
    Ok(is_landed.then(|| Event::Landed { branch, from: to.clone(), to, left: 0 }))
}

/// Evidence that could not be attached to its commit is made again from the journal, now that whatever stood in the way may be gone.
fn write_notes_again(git: &Git, stored: &StoredRun, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    match write_missing_notes(git, stored, reporter) {
        // What can wait stands in nobody's way.
        Err(error @ (JournalError::Broken { .. } | JournalError::Newer { .. })) => {
            let text = format!("missing evidence notes cannot be written: {error}");
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
        if let (Event::Committed { commit, tree, noted: false, .. }, Phase::Committing { tree: verified, proof, outcome }, Some(attempt)) =
            (&recorded.event, &state.phase, &state.attempt)
            // What a git hook made of it was checked again, and of that the journal has only the outcome.
            && tree == verified
            && let Some(report) = &attempt.report
        {
            let evidence = Evidence::of(&state, attempt, (*proof, *outcome), report);
            let missing = git.read_note(commit).is_ok_and(|note| note.is_none());
            if missing && git.note(commit, &evidence.to_note()).is_ok() {
                let text = format!("wrote the missing evidence note of {}", attempt.place.story);
                reporter.report(Update::Notice { text: &text });
            }
        }
        apply(&mut state, &recorded);
    }
    Ok(())
}

fn begin(run: &RunId, signals: &Signals, reporter: &mut dyn Reporter) {
    reporter.report(Update::Notice { text: &format!("run {run} did not end properly; cleaning up") });
    let strays = process::end_strays(&[run], Limits::default().grace.duration(), signals);
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

fn branch_of(stored: &StoredRun) -> Result<Option<String>, JournalError> {
    Ok(stored.beginning()?.into_iter().find_map(|line| match line.event {
        Event::RunStarted { branch, .. } => branch,
        _ => None,
    }))
}

/// What became of the attempt that was in progress: committed, where the branch has its commit on the base; else dropped. A recovery
/// that was killed may have put progress on top of it. Its commit has the verified tree, or, where a git hook rewrote files, a note
/// that was written before the branch moved: any other commit is the user's.
fn settle(
    git: &Git,
    project: &Project,
    stored: &StoredRun,
    state: &State,
    attempt: &Attempt,
    reporter: &mut dyn Reporter,
) -> Result<Event, RecoverError> {
    let place = attempt.place.clone();
    if let (Phase::Committing { tree: verified, proof, outcome }, Some(base), Some(branch), Some(report)) =
        (&state.phase, &attempt.base, branch_of(stored)?, &attempt.report)
        && let Some(tip) = git.branch_tip(&branch)?
        && let Some(commit) = git.commits_to_land(&tip, base)?.into_iter().next()
        && git.commit_before_it(&commit)?.as_ref() == Some(base)
        && let tree = git.tree_of(&commit)?
        && let is_ours = (|note: &Evidence| note.run == stored.id && note.story == place.story && note.tree == tree)
        && let note = git.read_note(&commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok()).filter(is_ours)
        && (note.is_some() || tree == *verified)
    {
        // The same evidence that the run itself would have written, so its digest is the one in the commit's trailer.
        let again = || Evidence::of(state, attempt, (*proof, *outcome), report);
        let (evidence, noted) = match note {
            Some(evidence) => (evidence, true),
            None => (again(), git.note(&commit, &again().to_note()).is_ok()),
        };
        if *outcome == Outcome::Done
            && let Err(error) = record::mark_done(git, project, stored, &evidence, &commit)
        {
            let text = format!("the plan could not be updated for {}: {error}", place.story);
            reporter.report(Update::Notice { text: &text });
        }
        let files = git.changed_paths(Some(base), &commit)?.len() as u32;
        let text = format!("{} had been committed as {}", place.story, commit.short());
        reporter.report(Update::Notice { text: &text });
        return Ok(Event::Committed {
            place,
            commit,
            tree,
            proof: *proof,
            outcome: *outcome,
            base: Some(base.clone()),
            files,
            evidence: Some(evidence.digest()),
            criteria: report.criteria.clone(),
            noted,
        });
    }
    let text = format!("the unfinished attempt at {} is gone with its workspace; the story is tried again", place.story);
    reporter.report(Update::Notice { text: &text });
    Ok(Event::AttemptDropped { place, reason: "the run died".to_owned() })
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |source| RecoverError::Io { doing: doing.to_owned(), source }
}
