//! The story's own checks before any work: what passes later proves something only if it failed now.

use verdone_core::check::{CheckOutcome, CheckRun};
use verdone_core::machine::{Input, State};
use verdone_core::update::Reporter;
use verdone_core::verdict::Red;

use super::{StepError, attempt_of};
use crate::site::Site;

pub fn red_check(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "red check")?;
    let checks = site.own_checks(&attempt.place.story).to_vec();
    let runs = site.run_checks(&site.tip_tree()?, &checks, reporter)?;
    Ok(Input::RedChecked { red: red_of(&runs), runs })
}

pub(crate) fn red_of(runs: &[CheckRun]) -> Red {
    let failed = |run: &CheckRun| matches!(run.outcome, CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. });
    if runs.is_empty() {
        Red::Absent
    } else if runs.iter().any(failed) {
        Red::Red
    } else if runs.iter().all(|run| run.outcome.passed()) {
        Red::Green
    } else {
        Red::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::check::{CheckOrigin, CommandSpec};

    fn run(outcome: CheckOutcome) -> CheckRun {
        CheckRun {
            name: String::new(),
            origin: CheckOrigin::Story,
            command: CommandSpec::Shell(String::new()),
            outcome,
            duration_ms: 0,
            output_digest: String::new(),
            output: None,
            tail: String::new(),
            cached: false,
            flaky: false,
            advisory: false,
            tests: None,
        }
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
