//! Back to the checkpoint. First everything as it is now is kept, twice over: as a snapshot that `undo` can return to, and as a
//! commit with a real tree that people can look at.

use verdone_core::id::Oid;
use verdone_core::machine::{Input, State};
use verdone_core::update::{Reporter, Update};

use super::verify::{put_back, put_settings_back, refs_moved};
use super::{StepError, attempt_of};
use crate::site::Site;

pub fn roll_back(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "rollback")?;
    let checkpoint = attempt.checkpoint.as_ref().ok_or(StepError::NoAttempt("rollback"))?;
    site.candidate = None;
    site.claude.rolled_back();
    put_settings_back(site, attempt, "rollback")?;
    // A turn that crashed was not verified, so nobody has told this yet.
    for told in refs_moved(site, attempt)? {
        reporter.report(Update::Notice { text: &format!("left as it is: {told}") });
    }
    let place = &attempt.place;
    let label = format!("{} attempt {}, before its rollback", place.story, place.attempt);
    let before = site.keep().checkpoint_before_restore(&label, &site.plan.protected_paths())?;
    let label = format!("{} attempt {}, rejected", place.story, place.attempt);
    let candidate = site.git.candidate(checkpoint, &site.candidate_rules())?;
    let kept = site.git.keep_attempt(&site.run, &candidate, &label)?;
    put_back(site, attempt, "rollback")?;
    let restored = site.keep().restore(checkpoint)?;
    site.plan.refresh()?;
    // A branch that was set back has no commits of the attempt.
    let made = |head: &Oid| match &checkpoint.head {
        Some(base) => head != base && !site.git.is_part_of(head, base).unwrap_or(false),
        None => true,
    };
    if let Some(head) = candidate.head.filter(made) {
        let text = format!("commits made during the attempt were taken off the branch; they are kept: git log {}", head.short());
        reporter.report(Update::Notice { text: &text });
    }
    Ok(Input::RolledBack { kept, before, files: restored.files })
}
