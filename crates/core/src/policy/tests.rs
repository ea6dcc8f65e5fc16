//! Rules over calls, in tables.

use super::*;

#[test]
fn every_built_in_rule_keeps_its_own_examples() {
    let problems = check_examples(&built_in());
    assert!(problems.is_empty(), "{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}
