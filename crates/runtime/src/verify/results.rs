//! Check results by tree: the same command need not run twice on the same tree.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::Oid;
use verdone_core::check::{Check, CheckOrigin, CheckOutcome};
use verdone_core::verify::{CheckResult, CheckState, ResultId};

use super::result_cache::ResultCache;

/// The results of one process, of a run, or of a loop (which stores them sealed), plus earlier results on disk if they may be used.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Results {
    #[serde(with = "as_list")]
    known: BTreeMap<ResultId, CheckResult>,
    /// Checks that failed at some time: a pass on the same tree is flaky.
    red: BTreeSet<ResultId>,
    #[serde(skip)]
    kept: Option<ResultCache>,
}

impl Results {
    /// Results that are stored on disk.
    pub fn with_kept(kept: Option<ResultCache>) -> Self {
        Self { kept, ..Self::default() }
    }

    /// The result from an earlier process.
    pub fn kept(&self, question: &ResultId, check: &Check) -> Option<CheckResult> {
        self.kept.as_ref()?.answer(question, check)
    }

    /// Why results cannot be stored on disk, although they should be.
    pub fn trouble(&self) -> Option<std::io::Error> {
        self.kept.as_ref()?.trouble()
    }

    /// Stores a result, on disk too if enabled.
    pub(super) fn keep(&mut self, question: &ResultId, check: &Check, result: CheckResult) -> CheckResult {
        let result = self.note(question.clone(), result);
        match &self.kept {
            Some(kept) => kept.store_result(question, check, result),
            None => result,
        }
    }

    /// The results known before an attempt is verified. On the attempt's own tree only
    /// passed gates count: failed checks and the story's own checks run again.
    pub fn before(&self, attempt: &Oid) -> BTreeMap<ResultId, CheckResult> {
        let counts = |(id, result): &(&ResultId, &CheckResult)| {
            let is_green = CheckState::from_run(&result.run) == CheckState::Green && result.run.origin != CheckOrigin::Story;
            id.tree != *attempt || is_green
        };
        let cached = |(id, result): (&ResultId, &CheckResult)| {
            let mut result = result.clone();
            result.run.cached = true;
            (id.clone(), result)
        };
        self.known.iter().filter(counts).map(cached).collect()
    }

    /// Stores a result and marks it as flaky if it passes but failed before.
    pub fn note(&mut self, question: ResultId, mut result: CheckResult) -> CheckResult {
        match CheckState::from_run(&result.run) {
            CheckState::Green => result.run.flaky |= self.red.contains(&question),
            CheckState::Red => {
                self.red.insert(question.clone());
            }
            CheckState::Unknown | CheckState::Interrupted | CheckState::NotRun => {}
        }
        if CheckState::from_run(&result.run) != CheckState::Interrupted {
            self.known.insert(question, result.clone());
        }
        result
    }

    /// Whether a command passed on exactly this tree.
    pub fn was_green(&self, tree: &Oid, command: &str) -> bool {
        let question = ResultId { tree: tree.clone(), command: command.to_owned() };
        self.known.get(&question).is_some_and(|result| CheckState::from_run(&result.run) == CheckState::Green)
    }

    /// Drops timeouts of checks whose time limit was cut short.
    pub fn forget_timeouts(&mut self) {
        self.known.retain(|_, result| !matches!(result.run.outcome, CheckOutcome::TimedOut { .. }));
    }

    /// Drops the results of all other trees.
    pub fn keep_only(&mut self, tree: &Oid) {
        self.known.retain(|id, _| id.tree == *tree);
        self.red.retain(|id| id.tree == *tree);
    }
}

/// JSON keys must be strings, so the map is stored as a list.
mod as_list {
    use super::{BTreeMap, CheckResult, Deserialize, ResultId, Serialize};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(known: &BTreeMap<ResultId, CheckResult>, to: S) -> Result<S::Ok, S::Error> {
        known.iter().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<ResultId, CheckResult>, D::Error> {
        Ok(Vec::<(ResultId, CheckResult)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::span::Span;
    use verdone_core::check::{Check, CheckRun, CommandSpec, Stage};

    fn result(origin: CheckOrigin, outcome: CheckOutcome) -> CheckResult {
        let check = Check::own(CommandSpec::Shell("x".to_owned()), Span::from_secs(1));
        CheckResult::from(CheckRun { origin, outcome, ..CheckRun::pending(&check) })
    }

    #[test]
    fn a_green_gate_stands_and_a_red_one_is_asked_again() {
        let (base, attempt) = (Oid::from("base"), Oid::from("attempt"));
        let id = |tree: &Oid, command: &str| ResultId { tree: tree.clone(), command: command.to_owned() };
        let gate = || CheckOrigin::Gate(Stage::Correctness);
        let mut results = Results::default();
        results.note(id(&base, "own"), result(CheckOrigin::Story, CheckOutcome::Failed { code: 1 }));
        results.note(id(&attempt, "own"), result(CheckOrigin::Story, CheckOutcome::Passed));
        results.note(id(&attempt, "green"), result(gate(), CheckOutcome::Passed));
        results.note(id(&attempt, "red"), result(gate(), CheckOutcome::Failed { code: 1 }));
        results.note(id(&attempt, "cut"), result(gate(), CheckOutcome::Interrupted));
        let known: Vec<ResultId> = results.before(&attempt).into_keys().collect();
        assert_eq!(known, [id(&attempt, "green"), id(&base, "own")]);
        assert!(results.before(&attempt).values().all(|result| result.run.cached));
        assert!(results.note(id(&attempt, "red"), result(gate(), CheckOutcome::Passed)).run.flaky);
        results.keep_only(&attempt);
        assert_eq!(results.before(&base).len(), 3);
    }
}
