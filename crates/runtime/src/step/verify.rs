//! What is verified is what is committed: tick the plan tentatively, take the tree, check it, and make sure that the checks
//! left it as it was.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun};
use verdone_core::event::{Checkpoint, VerifyOutcome};
use verdone_core::machine::{Attempt, Input, State, Verification};
use verdone_core::plan::Status;
use verdone_core::proof::criteria;
use verdone_core::update::Reporter;

use super::agent_test::agent_test;
use super::as_before::as_before;
use super::brief::outside_scope;
use super::done::hold_to_conditions;
use super::{RUNNING, StepError, attempt_of, io_error};
use crate::gate_cache;
use crate::git::{Candidate, ChangedPath, History};
use crate::pipes::remove_pipes;
use crate::site::Site;
use crate::store::Store;
use crate::tamper;

/// Checks may change what they check (formatters, snapshots) this often before they have to settle.
const ROUNDS: usize = 3;

pub fn verify(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "verification")?;
    let mut restored = put_back(site, attempt, "turn")?;
    site.plan.mark(&attempt.place.story, Status::Done)?;
    let mut verification = look(site, state, attempt, &mut restored, reporter)?;
    restored.sort();
    restored.dedup();
    verification.restored = restored;
    // Before anybody is asked who costs money.
    tamper::look(site, attempt, &mut verification)?;
    hold_to_conditions(site, state, attempt, &mut verification, reporter)?;
    verification.refs_moved = refs_moved(site, attempt)?;
    if verification.outcome != VerifyOutcome::Passed {
        site.candidate = None;
        site.plan.unmark()?;
    }
    Ok(Input::Verified(verification))
}

/// What happened to refs that are none of the story's.
pub(super) fn refs_moved(site: &mut Site, attempt: &Attempt) -> Result<Vec<String>, StepError> {
    let branch = attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.branch.clone());
    Ok(site.refs_moved(branch.as_deref())?)
}

/// What a turn, a check or a git hook did to files that are not the agent's: kept beside the run, told, undone. `when` keeps the
/// copies of one turn apart.
pub(super) fn put_back(site: &mut Site, attempt: &Attempt, when: &str) -> Result<Vec<String>, StepError> {
    site.mend_home().map_err(io_error("putting .verdone/ back"))?;
    let aside = aside(site, attempt, when);
    let mut restored = std::mem::take(&mut site.mended);
    restored.extend(site.protected.put_back(&aside).map_err(io_error("putting .verdone/ back"))?);
    restored.extend(put_settings_back(site, attempt, when)?);
    let runs = Store::of(&site.root).put_back(&site.known_runs, &aside.join("runs"));
    restored.extend(runs.map_err(io_error("putting .verdone/runs/ back"))?);
    Store::of(&site.root).hide().map_err(io_error("hiding the runs from git"))?;
    // One that the agent made is not hidden yet. What is in it proves nothing; that it shows up in git is no reason to stop.
    if fs::symlink_metadata(site.root.join(".verdone/cache")).is_ok_and(|meta| meta.is_dir()) {
        let _ = gate_cache::hide(&site.root);
    }
    for edit in site.plan.foreign_edits()? {
        if let Some(bytes) = &edit.bytes_on_disk {
            let file = edit.path.file_name().unwrap_or_default();
            keep(&aside, Path::new(file), bytes).map_err(io_error("keeping an edit of the plan"))?;
        }
        if fs::symlink_metadata(&edit.path).is_ok_and(|meta| meta.is_dir()) {
            move_folder(&aside, &edit.path).map_err(io_error("keeping a folder in the plan's place"))?;
        }
        restored.push(crate::site::shown(&edit.path, &site.root));
    }
    site.plan.put_back()?;
    Ok(restored)
}

/// Git's settings, which say where the work tree is and what a commit does, and fresher's.
pub(super) fn put_settings_back(site: &Site, attempt: &Attempt, when: &str) -> Result<Vec<String>, StepError> {
    let mut restored = Vec::new();
    for (number, settings) in site.settings.iter().enumerate() {
        // Each has a place of its own: they have files of the same names.
        let aside = aside(site, attempt, when).join(format!("settings-{number}"));
        restored.extend(settings.put_back(&aside).map_err(io_error("putting settings back"))?);
    }
    let pipes = remove_pipes(site.git.top(), &[site.git.common_dir(), site.git.git_dir()]);
    let pipes = pipes.map_err(io_error("removing a pipe"))?;
    restored.extend(pipes.iter().map(|pipe| crate::site::shown(pipe, &site.root)));
    // An agent that had to be killed may have been in the middle of a commit.
    let branch = attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.branch.as_deref());
    let locks = site.git.remove_stale_locks(site.attempt_since, &site.run, branch)?;
    restored.extend(locks.iter().map(|lock| crate::site::shown(lock, &site.root)));
    Ok(restored)
}

fn aside(site: &Site, attempt: &Attempt, when: &str) -> PathBuf {
    let place = &attempt.place;
    let name = format!("{}-{}-{}-{when}", verdone_core::id::encode_component(place.story.as_str()), place.attempt, place.turn);
    site.run_dir.join("undone").join(name)
}

fn keep(aside: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(aside)?;
    fs::write(aside.join(file), bytes)
}

/// A folder that was put in a file's place.
fn move_folder(aside: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(aside)?;
    fs::rename(folder, aside.join(folder.file_name().unwrap_or_default()))
}

fn look(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    restored: &mut Vec<String>,
    reporter: &mut dyn Reporter,
) -> Result<Verification, StepError> {
    let checkpoint = attempt.checkpoint.as_ref().ok_or(StepError::NoAttempt("verification"))?;
    site.forget_changed_debris();
    let mut left_out = left_out(site, checkpoint)?;
    let mut runs = Vec::new();
    for round in 1..=ROUNDS {
        let candidate = site.git.candidate(checkpoint, &site.candidate_rules())?;
        let by_agent = changed_by_agent(site, &candidate)?;
        let changed = by_agent.len() as u32;
        if round == 1 {
            left_out.extend(site.git.hidden_by_rules(checkpoint, &candidate)?.iter().map(ToString::to_string));
        }
        let answer = |outcome, reason: Option<String>, runs: Vec<CheckRun>, site: &Site| Verification {
            outcome,
            tree: Some(candidate.tree.clone()),
            changed,
            runs,
            reason,
            restored: Vec::new(),
            debris: names(site),
            left_out: left_out.clone(),
            refs_moved: Vec::new(),
            alarms: Vec::new(),
            agent_test: None,
            as_before: None,
            judge: None,
            criteria: Vec::new(),
        };
        if let History::Moved { reason } = &candidate.history {
            return Ok(answer(VerifyOutcome::HistoryMoved, Some(reason.clone()), Vec::new(), site));
        }
        if let Some(obstacle) = candidate.obstacles.first() {
            return Ok(answer(VerifyOutcome::Refused, Some(obstacle.to_string()), Vec::new(), site));
        }
        if let Some(reason) = outside_scope(site, attempt, &by_agent) {
            return Ok(answer(VerifyOutcome::Refused, Some(reason), Vec::new(), site));
        }
        if changed == 0 && attempt.place.turn > 0 {
            return Ok(answer(VerifyOutcome::NothingChanged, None, Vec::new(), site));
        }
        let checks = site.checks_of(&attempt.place.story, &candidate.changes);
        runs = site.run_checks_on(Some(&candidate.tree), &checks, reporter).map_err(io_error(RUNNING))?;
        let green = runs.len() == checks.len() && !runs.iter().any(CheckRun::blocks);
        let tested = if green { agent_test(site, attempt, &candidate.tree, &by_agent, reporter)? } else { None };
        let before = if green { as_before(site, state, attempt, &candidate.tree, &by_agent, reporter)? } else { None };
        // Checks run code that the agent wrote: it may not tick boxes or loosen settings either.
        restored.extend(put_back(site, attempt, &format!("checks-{round}"))?);
        let tests = || tested.iter().flat_map(|tested| tested.tests.before.iter().chain(&tested.tests.after));
        let same = || before.iter().flat_map(|before| &before.runs);
        if runs.iter().chain(tests()).chain(same()).any(|run| run.outcome == CheckOutcome::Interrupted) {
            return Ok(answer(VerifyOutcome::Interrupted, None, runs, site));
        }
        let drift = site.git.unchanged_since(&candidate)?;
        site.add_debris(drift.new_untracked.iter().cloned());
        if drift.is_none() {
            site.memory.note(&candidate.tree, &checks, &runs);
            let wrong = tested.as_ref().filter(|tested| tested.wrong);
            runs.extend(wrong.iter().flat_map(|tested| tested.tests.after.iter().cloned()));
            let outcome = if green && wrong.is_none() { VerifyOutcome::Passed } else { VerifyOutcome::Failed };
            let mut verification = answer(outcome, None, runs, site);
            verification.agent_test = tested.map(|tested| tested.tests);
            verification.as_before = before;
            if let Some(story) = site.plan.plan().story(&attempt.place.story) {
                let doubted = verification.as_before.as_ref().is_some_and(|before| !before.holds());
                let proves = |run: &&CheckRun| !(doubted && run.origin == CheckOrigin::Story);
                let runs: Vec<CheckRun> = verification.runs.iter().filter(proves).cloned().collect();
                verification.criteria = criteria(story, &runs, verification.agent_test.as_ref());
            }
            site.candidate = Some(candidate);
            return Ok(verification);
        }
        if runs.iter().any(CheckRun::blocks) {
            return Ok(answer(VerifyOutcome::Failed, None, runs, site));
        }
    }
    let reason = "checks do not settle: they change files each time they run".to_owned();
    let outcome = VerifyOutcome::Unsettled;
    Ok(Verification {
        outcome,
        tree: None,
        changed: 1,
        runs,
        reason: Some(reason),
        restored: Vec::new(),
        debris: names(site),
        left_out,
        refs_moved: Vec::new(),
        alarms: Vec::new(),
        agent_test: None,
        as_before: None,
        judge: None,
        criteria: Vec::new(),
    })
}

/// What the turn did to files that were untracked before: checks see it, the commit will not have it.
fn left_out(site: &Site, checkpoint: &Checkpoint) -> Result<Vec<String>, StepError> {
    let ours = site.plan_paths();
    let changed = site.git.changed_untracked(checkpoint)?.into_iter();
    let theirs = changed.filter(|path| !ours.contains(path) && !site.untracked_before.contains(path));
    Ok(theirs.map(|path| path.to_string()).collect())
}

/// The files that the attempt changed, the plan's tick and the red check's own traces left out.
fn changed_by_agent(site: &Site, candidate: &Candidate) -> Result<Vec<ChangedPath>, StepError> {
    let ours = site.plan_paths();
    let changes = match &site.before_turn {
        Some(before) => site.git.changed_paths(Some(before), &candidate.tree)?,
        None => candidate.changes.clone(),
    };
    Ok(changes.into_iter().filter(|change| !ours.contains(&change.path)).collect())
}

fn names(site: &Site) -> Vec<String> {
    site.debris.keys().map(ToString::to_string).collect()
}
