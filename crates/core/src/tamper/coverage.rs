//! Coverage thresholds: numbers under names that stand for one, before and after.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// What was lowered, in words.
pub(super) fn lowered(old: &str, new: &str) -> Option<String> {
    let (before, after) = (thresholds(old), thresholds(new));
    before.iter().find_map(|(name, value)| match after.get(name) {
        Some(now) if now < value => Some(format!("{name} from {value} to {now}")),
        // One that is gone with all others is a file that holds none any more.
        None => Some(format!("{name} {value} is gone")),
        Some(_) => None,
    })
}

/// The lowest of each name: what has several holds for several parts.
fn thresholds(text: &str) -> BTreeMap<String, f64> {
    static SURE: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"(?:\b|--)(fail[_-]under(?:[_-]lines)?|cov-fail-under|minimum_coverage|coverage_?[tT]hreshold|min_coverage|fail_under)["']?\s*[:= ]\s*["']?(\d+(?:\.\d+)?)"#;
        Regex::new(pattern).expect("a fixed pattern compiles")
    });
    static IN_TABLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\b(branches|functions|lines|statements)["']?\s*:\s*(\d+(?:\.\d+)?)"#).expect("a fixed pattern compiles")
    });
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |name: &str, value: &str| {
        let value: f64 = value.parse().unwrap_or(0.0);
        found.entry(name.to_owned()).and_modify(|least| *least = least.min(value)).or_insert(value);
    };
    for one in SURE.captures_iter(text) {
        add(&one[1], &one[2]);
    }
    let table = ["coverageThreshold", "thresholds", "check-coverage", "checkCoverage"].iter().any(|sign| text.contains(sign));
    if table {
        for one in IN_TABLE.captures_iter(text) {
            add(&one[1], &one[2]);
        }
    }
    found
}
