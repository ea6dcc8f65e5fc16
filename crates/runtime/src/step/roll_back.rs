//! Back to the checkpoint. First everything as it is now is kept, twice over: as a snapshot that `undo` can return to, and as a
//! commit with a real tree that people can look at.

use verdone_core::machine::{Input, State};

use super::verify::put_back;
use super::{StepError, attempt_of};
use crate::site::Site;

pub fn roll_back(site: &mut Site, state: &State) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "rollback")?;
    let checkpoint = attempt.checkpoint.as_ref().ok_or(StepError::NoAttempt("rollback"))?;
    site.candidate = None;
    let place = &attempt.place;
    let label = format!("{} attempt {}, before its rollback", place.story, place.attempt);
    let before = site.keep().checkpoint_before_restore(&label, &site.plan.protected_paths())?;
    let label = format!("{} attempt {}, rejected", place.story, place.attempt);
    let candidate = site.git.candidate(checkpoint, &site.candidate_rules())?;
    let kept = site.git.keep_attempt(&site.run, &candidate, &label)?;
    put_back(site, attempt, "rollback")?;
    let restored = site.keep().restore(checkpoint)?;
    site.plan.refresh()?;
    Ok(Input::RolledBack { kept, before, files: restored.files })
}
