//! Checks and gates from the settings, ready to run.

use verdone_core::base::id::digest;
use verdone_core::base::verdict::Red;
use verdone_core::check::{Check, CheckRun, CommandSpec, GateSettings, stages};
use verdone_core::config::Config;
use verdone_core::done::{ConditionOutcome, DoneReport, JudgedCondition};
use verdone_core::verify::{CheckState, SeenCondition};

use super::check_runner::Scheduling;
use crate::git::ChangedPath;

/// The checks of a story, ready to run.
pub fn own_checks(commands: Vec<CommandSpec>, config: &Config) -> Vec<Check> {
    commands.into_iter().map(|command| Check::own(command, config.limits.check_time)).collect()
}

/// The gates from the config and `--check`, ready to run, ordered by stage.
pub fn gates(config: &Config) -> Vec<Check> {
    let gates: Vec<Check> = config.gate.iter().map(|gate| gate.check(config.limits.check_time)).collect();
    stages(&gates).into_iter().flatten().cloned().collect()
}

/// How the settings schedule gates.
pub(crate) fn scheduling_from(settings: &GateSettings) -> Scheduling {
    const MOST: usize = 4;
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let parallel = if settings.parallel == 0 { processors() } else { settings.parallel as usize };
    Scheduling { parallel, keep_going: !settings.stop_at_failing_stage }
}

/// Part of every story's evidence: a gate with another definition proved something else.
pub(crate) fn gates_digest(config: &Config) -> String {
    let defined = serde_json::to_vec(&config.gate).unwrap_or_default();
    format!("sha256:{}", digest(&defined))
}

pub(crate) fn red_of(runs: &[CheckRun]) -> Red {
    let states: Vec<CheckState> = runs.iter().map(CheckState::from_red_check).collect();
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

/// The required conditions in the form that a verification uses.
pub(crate) fn seen_conditions(report: DoneReport) -> Vec<SeenCondition> {
    let seen = |one: JudgedCondition| match one.outcome {
        ConditionOutcome::Held { .. } | ConditionOutcome::NotNeeded { .. } => SeenCondition::Met { name: one.name },
        ConditionOutcome::Missing { why, todo } => SeenCondition::Missing { name: one.name, why, todo },
        ConditionOutcome::Unknown { why } => SeenCondition::Unknown { name: one.name, why },
    };
    report.conditions.into_iter().filter(|one| one.required).map(seen).collect()
}

/// Changed paths relative to a folder of the repository.
pub(crate) fn in_project(folder: &str, changed: &[ChangedPath]) -> Vec<String> {
    changed.iter().map(|change| seen_from(folder, &change.path.to_string())).collect()
}

/// A repository path relative to one of its folders.
pub(crate) fn seen_from(folder: &str, path: &str) -> String {
    match path.strip_prefix(folder).map(|rest| rest.strip_prefix('/')) {
        _ if folder.is_empty() => path.to_owned(),
        Some(Some(rest)) => rest.to_owned(),
        Some(None) | None => format!("../{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::span::Span;
    use verdone_core::check::{Check, CheckOutcome, CommandSpec};

    fn run(outcome: CheckOutcome) -> CheckRun {
        CheckRun { outcome, ..CheckRun::pending(&Check::own(CommandSpec::Shell("x".to_owned()), Span::from_secs(1))) }
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
