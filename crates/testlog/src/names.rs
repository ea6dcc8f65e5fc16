//! The names of tests by how they ended, if a runner lists all of them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TestCounts;
use crate::sanitise::sanitise_line;

/// Longer lists are dropped: counts serve as well, and every tree stores its own results.
const MOST: usize = 20_000;
const MOST_BYTES: usize = 1 << 20;
const LONGEST: usize = 500;

/// Names of tests by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestNames {
    pub passed: BTreeSet<String>,
    pub failed: BTreeSet<String>,
    pub skipped: BTreeSet<String>,
}

impl TestNames {
    pub fn contains(&self, name: &str) -> bool {
        [&self.passed, &self.failed, &self.skipped].iter().any(|names| names.contains(name))
    }

    /// Merges several lists, if all are known and no name occurs twice.
    pub fn joined<'n>(lists: impl Iterator<Item = Option<&'n Self>>) -> Option<Self> {
        let (mut all, mut sum) = (Self::default(), 0);
        for names in lists {
            let names = names?;
            sum += names.len();
            all.passed.extend(names.passed.iter().cloned());
            all.failed.extend(names.failed.iter().cloned());
            all.skipped.extend(names.skipped.iter().cloned());
        }
        let is_twice = all.passed.iter().any(|name| all.failed.contains(name) || all.skipped.contains(name));
        (!is_twice && all.failed.is_disjoint(&all.skipped) && all.len() == sum && sum <= MOST).then_some(all)
    }

    fn len(&self) -> usize {
        self.passed.len() + self.failed.len() + self.skipped.len()
    }

    fn has(&self, name: &str) -> bool {
        [&self.passed, &self.failed, &self.skipped].iter().any(|names| names.contains(name))
    }
}

/// How a listed test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    Failed,
    Skipped,
}

/// The names listed so far. A duplicate, empty or overlong name spoils the list, because names no longer identify tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    names: TestNames,
    bytes: usize,
    is_spoilt: bool,
}

impl Listed {
    pub(super) fn add(&mut self, name: &str, end: End) {
        let name = sanitise_line(name.trim());
        self.bytes += name.len();
        let is_too_much = self.names.len() >= MOST || self.bytes > MOST_BYTES || name.len() > LONGEST;
        if self.is_spoilt || is_too_much || name.is_empty() || self.names.has(&name) {
            self.is_spoilt = true;
            self.names = TestNames::default();
            return;
        }
        let names = match end {
            End::Passed => &mut self.names.passed,
            End::Failed => &mut self.names.failed,
            End::Skipped => &mut self.names.skipped,
        };
        names.insert(name.into_owned());
    }

    pub(super) fn spoil(&mut self) {
        *self = Self { is_spoilt: true, ..Self::default() };
    }

    /// The names, if they account for all tests in `counts`.
    pub(super) fn complete(self, counts: TestCounts) -> Option<TestNames> {
        let is = |names: &BTreeSet<String>, count: Option<u64>| Some(names.len() as u64) == count;
        let TestNames { passed, failed, skipped } = &self.names;
        let is_all = is(passed, counts.passed) && is(failed, counts.failed) && is(skipped, counts.skipped);
        (is_all && !self.is_spoilt).then_some(self.names)
    }
}
