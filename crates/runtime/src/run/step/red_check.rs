//! Runs the story's own checks before any work: a later pass proves something only if they fail now.

use verdone_core::base::verdict::Red;
use verdone_core::check::CheckRun;
use verdone_core::engine::run::{Input, State};
use verdone_core::journal::update::Reporter;
use verdone_core::verify::CheckState;

use super::{StepError, attempt_of};
use crate::run::site::Site;

pub fn red_check(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "red check")?;
    let checks = site.own_checks(&attempt.place.story).to_vec();
    let runs = site.run_checks(&site.tip_tree()?, &checks, reporter)?;
    Ok(Input::RedChecked { red: red_of(&runs), runs })
}

pub(crate) fn red_of(runs: &[CheckRun]) -> Red {
    let states: Vec<CheckState> = runs.iter().map(CheckState::before_the_work).collect();
    if states.is_empty() {
        Red::Absent
    } else if states.contains(&CheckState::Red) {
        Red::Red
    } else if states.iter().all(|state| *state == CheckState::Green) {
        Red::Green
    } else {
        Red::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::span::Span;
    use verdone_core::check::{Check, CheckOutcome, CommandSpec};

    fn run(outcome: CheckOutcome) -> CheckRun {
        CheckRun { outcome, ..CheckRun::of(&Check::own(CommandSpec::Shell("x".to_owned()), Span::from_secs(1))) }
    }

    #[test]
    fn only_a_real_failure_is_red() {
        let unknown = || run(CheckOutcome::Unknown { reason: String::new() });
        let failed = || run(CheckOutcome::Failed { code: 1 });
        let passed = || run(CheckOutcome::Passed);
        let timed_out = || run(CheckOutcome::TimedOut { after_ms: 1 });
        assert_eq!(red_of(&[]), Red::Absent);
        assert_eq!(red_of(&[passed(), passed()]), Red::Green);
        assert_eq!(red_of(&[passed(), failed()]), Red::Red);
        assert_eq!(red_of(&[unknown(), failed()]), Red::Red);
        assert_eq!(red_of(&[unknown(), passed()]), Red::Unknown);
        assert_eq!(red_of(&[timed_out()]), Red::Unknown);
    }
}
