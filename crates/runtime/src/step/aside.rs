//! The user's own changes: out of the work tree before the run begins, and back when it has ended.

use verdone_core::machine::{Input, State};

use super::StepError;
use crate::site::Site;

/// Keeps the changes. The work tree is not touched before the journal says where they are.
pub fn keep_changes(site: &Site) -> Result<Input, StepError> {
    let aside = site.keep().keep_changes(&site.plan.protected_paths(), site.plan_paths())?;
    Ok(Input::ChangesKept(aside.map(Box::new)))
}

/// Takes the kept changes out of the work tree and the index.
pub fn set_aside(site: &Site, state: &State) -> Result<Input, StepError> {
    if let Some(aside) = &state.aside {
        site.keep().set_aside(aside)?;
    }
    Ok(Input::SetAside)
}

/// Brings them back, or says why not: whatever is wrong, the run ends with a word about them.
pub fn bring_back(site: &Site, state: &State) -> Result<Input, StepError> {
    let aside = state.aside.as_ref().ok_or(StepError::NoAttempt("the return of changes"))?;
    Ok(Input::PutBack(site.keep().bring_back(aside, &site.plan.protected_paths())))
}
