//! Which checks run, and in which order.

use super::{Check, CheckOrigin, Stage};

/// The checks that have to run for these changes and this complexity; see [`super::When::matches`].
pub fn due_checks(checks: &[Check], changed: Option<&[String]>, complexity: u32) -> Vec<Check> {
    checks.iter().filter(|check| check.terms.when.matches(changed, complexity)).cloned().collect()
}

/// The checks grouped by stage, in the order in which they run: first the stories' own, then the built-in stages, then custom
/// stages in the order in which they first appear. The order within a stage is kept.
pub fn stages<'c>(checks: impl IntoIterator<Item = &'c Check>) -> Vec<Vec<&'c Check>> {
    stages_by(checks, |check| check)
}

/// The same for items that refer to a check.
pub fn stages_by<'c, T>(items: impl IntoIterator<Item = T>, check_of: impl Fn(&T) -> &'c Check) -> Vec<Vec<T>> {
    let mut found: Vec<(Option<&Stage>, Vec<T>)> = Vec::new();
    for item in items {
        let stage = stage_of(check_of(&item));
        match found.iter_mut().find(|(other, _)| *other == stage) {
            Some((_, group)) => group.push(item),
            None => found.push((stage, vec![item])),
        }
    }
    // The sort is stable, and all custom stages have the same rank.
    found.sort_by_key(|(stage, _)| rank(*stage));
    found.into_iter().map(|(_, group)| group).collect()
}

fn stage_of(check: &Check) -> Option<&Stage> {
    match &check.origin {
        CheckOrigin::Story | CheckOrigin::AgentTest => None,
        CheckOrigin::Gate(stage) => Some(stage),
    }
}

fn rank(stage: Option<&Stage>) -> usize {
    match stage {
        None => 0,
        Some(Stage::Correctness) => 1,
        Some(Stage::Quality) => 2,
        Some(Stage::Security) => 3,
        Some(Stage::Adversarial) => 4,
        Some(Stage::Own(_)) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::span::Span;
    use crate::check::{CommandSpec, Gate};

    #[test]
    fn own_stages_run_after_the_built_in_ones_as_the_config_names_them() {
        let gate = |name: &str, stage: &str| {
            Gate::new(name, stage.to_owned().into(), CommandSpec::Shell("true".to_owned())).check(Span::from_secs(1))
        };
        let checks = [
            gate("smoke", "zeta"),
            gate("lint", "quality"),
            gate("load", "alpha"),
            Check::own(CommandSpec::Shell("own".to_owned()), Span::from_secs(1)),
            gate("test", "correctness"),
            gate("attack", "adversarial"),
            gate("fmt", "quality"),
            gate("more smoke", "zeta"),
        ];
        let names: Vec<Vec<&str>> =
            stages(&checks).into_iter().map(|group| group.into_iter().map(|check| check.name.as_str()).collect()).collect();
        let expected: [&[&str]; 6] = [&["own"], &["test"], &["lint", "fmt"], &["attack"], &["smoke", "more smoke"], &["load"]];
        assert_eq!(names, expected);
    }
}
