//! `verdone policy test`: tests every rule on its own examples.

use verdone_core::policy::check_examples;
use verdone_report::plural;

use super::{Context, Outcome, in_force};
use crate::error::{CliError, Kind};
use crate::terminal::print;

pub(super) fn run(context: &Context) -> Outcome {
    let policy = in_force(context)?;
    if let Some(problem) = check_examples(&policy.rules).first() {
        return Err(CliError::new(Kind::Usage, problem.to_string()));
    }
    let examples =
        policy.rules.iter().map(|rule| rule.examples.matches.iter().chain(rule.examples.not_matches.iter()).count()).sum();
    let rules = plural(policy.rules.len(), "rule", "rules");
    print(&format!("{rules}, {}: all as expected\n", plural(examples, "example", "examples")))?;
    Ok(0)
}
