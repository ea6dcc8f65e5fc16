//! A run that died is put in order before the next one begins: what it left in the work tree is kept, and the tree goes back to
//! the attempt's checkpoint, or the story's commit is recorded where it was made already.

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use verdone_core::config::Limits;
use verdone_core::event::{Event, Recorded, Rejection};
use verdone_core::evidence::Evidence;
use verdone_core::finish::Finish;
use verdone_core::id::RunId;
use verdone_core::machine::{Attempt, Phase, PutBack, State, apply};
use verdone_core::update::{Reporter, Update};

use crate::git::{Git, GitError};
use crate::keep::Keep;
use crate::process;
use crate::project::Project;
use crate::protected::Protected;
use crate::signal::Signals;
use crate::store::{Journal, JournalError, Store, StoredRun, When};

/// Long enough for a process to get from its start to its own environment.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// How many names a message lists; the journal has all of them.
const SHOWN: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("the last run cannot be put in order: {0}")]
    Journal(#[from] JournalError),
    #[error("the last run cannot be put in order: {0}")]
    Git(#[from] GitError),
    #[error("the last run cannot be put in order: {0}")]
    Io(#[from] io::Error),
}

/// The last run of a project, where it died and was not put in order yet.
pub fn unfinished(root: &Path) -> Result<Option<RunId>, JournalError> {
    let Some(stored) = Store::of(root).latest()? else { return Ok(None) };
    Ok((!ended(&stored.last_state()?)).then_some(stored.id))
}

fn ended(state: &State) -> bool {
    matches!(state.phase, Phase::Stopped { .. } | Phase::New) && state.open_attempt().is_none()
}

/// Puts the last run in order where it died. Nothing of the project is read before: the dead run's agent may have changed the
/// plan, the settings or both.
pub fn recover(git: &Git, project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let Some(stored) = Store::of(&project.root).latest()? else { return Ok(()) };
    let mut state = stored.last_state()?;
    if ended(&state) {
        return Ok(());
    }
    let text = format!("run {} did not end properly; putting things in order", stored.id);
    reporter.report(Update::Notice { text: &text });
    let mut strays = process::end_strays(&stored.id, Limits::default().grace.duration(), signals);
    // A process that was only just started shows no environment for a moment, so it is not found at the first look.
    std::thread::sleep(SECOND_LOOK);
    strays += process::end_strays(&stored.id, Limits::default().grace.duration(), signals);
    if strays > 0 {
        reporter.report(Update::Notice { text: &format!("ended {strays} processes that it had left behind") });
    }
    git.sweep()?;
    let mut journal = Journal::reopen(&stored.dir)?;
    let mut left = false;
    if let Some(attempt) = state.open_attempt() {
        put_settings_back(project, &stored, reporter)?;
        let events = settle(git, &project.root, &stored, &state, attempt)?;
        left = events.iter().any(|event| matches!(event, Event::AttemptLeft { .. }));
        record(&mut journal, &mut state, events, reporter)?;
    }
    let mut events: Vec<Event> = bring_back(git, &project.root, &stored, &state, left).into_iter().collect();
    let (mut finish, mut code) = (Finish::Error, Finish::Error.exit_code());
    if let Phase::PuttingBack { finish: reached, exit_code } = state.phase {
        (finish, code) = (reached, exit_code);
    } else {
        let reason = "the run died; found and put in order by the next one".to_owned();
        events.push(Event::RunStopping { finish, reason });
    }
    events.push(Event::RunStopped { finish, exit_code: code, duration_ms: state.active.ms() });
    Ok(record(&mut journal, &mut state, events, reporter)?)
}

fn record(journal: &mut Journal, state: &mut State, events: Vec<Event>, reporter: &mut dyn Reporter) -> Result<(), JournalError> {
    for recorded in journal.append(events, When { at: Timestamp::now(), active_ms: Some(state.active.ms()) })? {
        apply(state, &recorded);
        tell(&recorded, reporter);
    }
    Ok(())
}

/// The user's own changes, where the run had set them aside: also when it died while it did that, or while it brought them back.
fn bring_back(git: &Git, root: &Path, stored: &StoredRun, state: &State, left: bool) -> Option<Event> {
    let aside = state.aside.as_ref()?;
    // Whatever is wrong is said about the changes; it does not stand in the way of other runs.
    let limits = git.limits_of(&aside.checkpoint).unwrap_or_default();
    let keep = Keep { git, root, run: &stored.id, run_dir: &stored.dir, limits };
    let outcome = if left {
        let reason = "the branch has moved since the run began its last attempt".to_owned();
        PutBack::Refused { reason, overlap: Vec::new() }
    } else {
        keep.bring_back(aside, &git.extra_paths(&aside.checkpoint).unwrap_or_default())
    };
    Some(match outcome {
        PutBack::Done { files } => Event::ChangesPutBack { files },
        PutBack::Refused { reason, overlap } => Event::ChangesKept { reason, overlap, command: aside.command() },
    })
}

/// The settings as the run began with them; what is there now is kept beside the run.
fn put_settings_back(project: &Project, stored: &StoredRun, reporter: &mut dyn Reporter) -> Result<(), RecoverError> {
    let Some(protected) = Protected::saved(&project.root, &stored.dir)? else { return Ok(()) };
    let aside = stored.dir.join("undone/as-found");
    let changed = protected.put_back(&aside)?;
    if !changed.is_empty() {
        let text =
            format!("put back as it was when that run began: {}; what was there is in {}", changed.join(", "), aside.display());
        reporter.report(Update::Notice { text: &text });
    }
    Ok(())
}

fn tell(recorded: &Recorded, reporter: &mut dyn Reporter) {
    if let Event::ChangesPutBack { files } = &recorded.event {
        let count = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let text = format!("your changes that it had set aside are back ({count})");
        reporter.report(Update::Notice { text: &text });
    }
    if let Event::ChangesKept { reason, overlap, command } = &recorded.event {
        let names: Vec<&str> = overlap.iter().map(String::as_str).take(SHOWN).collect();
        let overlap = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
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
fn settle(git: &Git, root: &Path, stored: &StoredRun, state: &State, attempt: &Attempt) -> Result<Vec<Event>, RecoverError> {
    let Some(checkpoint) = &attempt.checkpoint else { return Ok(Vec::new()) };
    if let Phase::Committing { tree, verdict } = &state.phase
        && let Some(commit) = git.commit_made_since(checkpoint, tree)?
    {
        let (place, base) = (attempt.place.clone(), checkpoint.head.clone());
        // The same evidence that the run itself would have written, so its digest is the one in the commit's trailer.
        let evidence = Evidence::of(state, attempt, *verdict, tree, &attempt.proof);
        let noted = git.note(&commit, &evidence.to_note()).is_ok();
        let (tree, verdict) = (tree.clone(), *verdict);
        return Ok(vec![Event::Committed { place, commit, tree, verdict, base, files: 0, noted }]);
    }
    let place = attempt.place.clone();
    let extra = git.extra_paths(checkpoint)?;
    let limits = git.limits_of(checkpoint)?;
    let keep = Keep { git, root, run: &stored.id, run_dir: &stored.dir, limits };
    let label = format!("{} attempt {}, as the dead run left it", place.story, place.attempt);
    let before = keep.checkpoint_before_restore(&label, &extra)?;
    let kept = git.keep_attempt(&stored.id, &git.candidate(checkpoint, &keep.candidate_rules())?, &label)?;
    if (&before.head, &before.branch) != (&checkpoint.head, &checkpoint.branch) {
        let reason = "the branch has moved since the run began this attempt".to_owned();
        return Ok(vec![Event::AttemptLeft { place, kept, reason }]);
    }
    let restored = keep.restore(checkpoint)?;
    let rejection = Rejection::Crashed;
    Ok(vec![
        Event::AttemptRejected { place: place.clone(), rejection, reason: "the run died".to_owned() },
        Event::RolledBack { place, kept, before, files: restored.files },
    ])
}
