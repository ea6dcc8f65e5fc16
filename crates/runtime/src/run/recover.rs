//! Cleans up after a run that died, before the next one starts: removes its workspaces and ends its journal. The run's branch shows which
//! stories were committed, so nothing needs to be repaired.

mod record;
mod repair_journal;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::finish::Finish;
use verdone_core::base::id::RunId;
use verdone_core::base::plural::plural;
use verdone_core::config::Limits;
use verdone_core::engine::run::{Attempt, Phase, State, apply};
use verdone_core::evidence::Evidence;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::left_session::{self, Resumable};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::Outcome;

use crate::base::atomic::sweep_drafts;
use crate::base::fault::{self, Point};
use crate::git::{Git, GitError, InterruptedLanding, Landing};
use crate::process;
use crate::process::signal::Signals;
use crate::project::Project;
use crate::store::{Journal, JournalError, JournalReader, Store, StoredRun, When};
use crate::workspace;

/// The reason that is recorded in the journal of a run that died.
const DIED: &str = "the run died; the next run found it";

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The repository cannot be used at all; the last run did not cause that.
    #[error(transparent)]
    Open(GitError),
    #[error("cannot recover the last run: {0}")]
    Journal(#[from] JournalError),
    #[error("cannot recover the last run: {0}")]
    Git(#[from] GitError),
    #[error("cannot recover the last run: {doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// The last run of a project, if it died and was not recovered yet.
pub fn unfinished(root: &Path) -> Result<Option<RunId>, JournalError> {
    let Some(stored) = Store::new(root).latest_run()? else { return Ok(None) };
    let state = stored.last_state()?;
    Ok((!ended(&state)).then_some(stored.id))
}

fn ended(state: &State) -> bool {
    matches!(state.phase, Phase::Stopped { .. } | Phase::New)
}

/// Ends the last run of a project if it died. Can be repeated if killed midway.
pub fn recover(project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let store = Store::new(&project.root);
    let git = Git::open(&project.root).map_err(RecoverError::Open)?;
    git.remove_leftovers()?;
    workspace::sweep(&project.git_top);
    sweep_drafts(store.path()).map_err(io_error("tidying .verdone/runs/"))?;
    let Some(stored) = repair_journal::latest(&store, reporter)? else { return Ok(()) };
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
        events.push(recover_attempt(&git, project, &stored, &state, attempt, reporter)?);
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

/// Writes progress entries that the run could not commit.
fn progress(git: &Git, project: &Project, stored: &StoredRun, settled: &[Event], reporter: &mut dyn Reporter) {
    if let Err(error) = record::commit_progress(git, project, stored, settled) {
        reporter.report(Update::Notice { text: &format!("the progress file could not be updated: {error}") });
    }
}

/// The session of the previous run, if that run died or reached its number of iterations between two stories of the same plan.
pub fn left_session(store: &Store, this: &RunId, plan: &str) -> Result<Option<Resumable>, JournalError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    let Some(stored) = ids.into_iter().rev().filter(|id| id < this).map(|id| store.run(id)).find(|run| !run.is_loop()) else {
        return Ok(None);
    };
    let same = |line: &Recorded| matches!(&line.event, Event::RunStarted { plan: of, .. } if of == plan);
    if stored.find_from_end(leaves_session)? != Some(true) || !stored.beginning()?.iter().any(same) {
        return Ok(None);
    }
    Ok(stored.find_from_end(left_session::left_session)?.flatten())
}

/// Whether the work of an ended run was to be continued. After any other end, the user may have changed plan and code.
fn leaves_session(events: &[Recorded]) -> Option<bool> {
    events.iter().rev().find_map(|line| match &line.event {
        Event::RunStopping { finish: Finish::MaxIterations, .. } => Some(true),
        Event::RunStopping { reason, .. } => Some(reason == DIED),
        _ => None,
    })
}

/// Removes locks of killed git processes: of the run, or of an interrupted landing.
fn clear_locks(git: &Git, stored: &StoredRun, state: &State, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let of_landing = git.interrupted_landing().map(|landing| landing.since);
    let of_run = state.started_at.filter(|_| !ended(state)).map(Into::into);
    let Some(since) = of_landing.into_iter().chain(of_run).min() else { return Ok(()) };
    for lock in git.remove_stale_locks(since, &stored.id, branch_of(stored)?.as_deref())? {
        let text = format!("removed {}, left by a killed git process", lock.display());
        reporter.report(Update::Notice { text: &text });
    }
    Ok(())
}

/// Finishes an interrupted landing first, because only some of its files may be in place. The run that made the commits records it.
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
        // An unreadable journal names no branch.
        stored.branches().ok().flatten().is_some_and(|(own, _)| own != branch && ends_there.contains(&own))
    });
    if let Some(stored) = stored {
        Journal::reopen(&stored.dir)?.append(vec![event], Timestamp::now())?;
    }
    Ok(())
}

/// The event for a landing that succeeded but was not recorded.
fn landed(git: &Git, stored: &StoredRun) -> Result<Option<Event>, RecoverError> {
    let Some((own, Some(branch))) = stored.branches()? else { return Ok(None) };
    let (Some(to), Some(tip)) = (git.branch_tip(&own)?, git.branch_tip(&branch)?) else { return Ok(None) };
    let is_landed = git.is_part_of(&to, &tip)?;
    Ok(is_landed.then(|| Event::Landed { branch, from: to.clone(), to, left: 0 }))
}

/// Rewrites evidence that could not be attached to its commit, from the journal: the obstacle may be gone by now.
fn write_notes_again(git: &Git, stored: &StoredRun, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    match write_missing_notes(git, stored, reporter) {
        // Missing notes can wait and must not block the user.
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
            // A tree rewritten by a git hook was verified again, and the journal has only the outcome of that.
            && tree == verified
            && let Some(report) = &attempt.report
        {
            let evidence = Evidence::for_attempt(&state, attempt, (*proof, *outcome), report);
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
    let strays = process::end_strays(&[run], Limits::default().grace.duration(), signals) as usize;
    if strays > 0 {
        let text = format!("ended {} it left behind", plural(strays, "process", "processes"));
        reporter.report(Update::Notice { text: &text });
    }
}

/// Removes partially written files next to the plan and in our folder.
fn sweep(project: &Project, stored: &StoredRun) -> Result<(), RecoverError> {
    let home = project.root.join(".verdone");
    let beside = plan_of(project, stored)?.and_then(|plan| Some(plan.parent()?.to_owned()));
    let dirs = [Some(home.clone()), Some(home.join("runs")), Some(home.join("hooks")), Some(stored.dir.clone()), beside];
    dirs.into_iter().flatten().try_for_each(|dir| sweep_drafts(&dir).map_err(io_error(&format!("tidying {}", dir.display()))))
}

/// The plan of the run.
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

/// Settles the attempt in progress: committed if the branch has its commit on top of the base, else dropped. An interrupted recovery may
/// have added a progress commit on top of it. The commit must have the verified tree or, if a git hook rewrote files, a note written before
/// the branch moved. Any other commit is the user's.
fn recover_attempt(
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
        && git.first_parent(&commit)?.as_ref() == Some(base)
        && let tree = git.tree_of(&commit)?
        && let is_ours = (|note: &Evidence| note.run == stored.id && note.story == place.story && note.tree == tree)
        && let note = git.read_note(&commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok()).filter(is_ours)
        && (note.is_some() || tree == *verified)
    {
        // The same evidence that the run itself would have written, so its digest matches the commit's trailer.
        let again = || Evidence::for_attempt(state, attempt, (*proof, *outcome), report);
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
        let text = format!("{} was already committed as {}", place.story, commit.short());
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
    let text = format!("the unfinished attempt at {} was lost with its workspace; the story will be retried", place.story);
    reporter.report(Update::Notice { text: &text });
    Ok(Event::AttemptDropped { place, reason: "the run died".to_owned() })
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |source| RecoverError::Io { doing: doing.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_was_cut_short_leaves_its_session_to_the_next() {
        let ended = |finish, reason: &str| {
            let event = Event::RunStopping { finish, reason: reason.to_owned() };
            leaves_session(&[Recorded { v: 1, seq: 1, at: Timestamp::UNIX_EPOCH, active_ms: None, event }])
        };
        assert_eq!(ended(Finish::Error, DIED), Some(true));
        assert_eq!(ended(Finish::MaxIterations, "the iteration limit of 1 was reached"), Some(true));
        for finish in [Finish::Complete, Finish::Manual, Finish::Error, Finish::Budget] {
            assert_eq!(ended(finish, "why"), Some(false), "{finish:?}");
        }
        assert_eq!(leaves_session(&[]), None, "more of the journal must be read");
    }
}
