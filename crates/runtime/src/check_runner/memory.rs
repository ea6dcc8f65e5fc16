//! What gates of this run said about trees: a green of the same run, tree and gate need not be asked for again, and a gate that was
//! red on a tree and is green on it now is flaky.

use std::collections::{HashMap, HashSet};

use verdone_core::check::{Check, CheckOrigin, CheckRun};
use verdone_core::id::{Oid, digest};

#[derive(Debug, Default)]
pub struct Memory {
    green: HashMap<(Oid, String), CheckRun>,
    red: HashSet<(Oid, String)>,
}

impl Memory {
    /// What a gate said about this tree, if it passed. A story's own checks are always run.
    pub fn recall(&self, tree: &Oid, check: &Check) -> Option<CheckRun> {
        let run = self.green.get(&question(tree, check)?)?;
        Some(CheckRun { cached: true, ..run.clone() })
    }

    /// Marks the runs that passed now and had failed on the same tree.
    pub fn mark_flaky(&self, tree: &Oid, checks: &[Check], runs: &mut [CheckRun]) {
        for (check, run) in pairs(checks, runs.iter_mut()) {
            let was_red = question(tree, check).is_some_and(|question| self.red.contains(&question));
            run.flaky |= was_red && run.outcome.passed() && !run.cached;
        }
    }

    /// Remembers what was said about a tree that the checks left as it was.
    pub fn note(&mut self, tree: &Oid, checks: &[Check], runs: &[CheckRun]) {
        for (check, run) in pairs(checks, runs.iter()) {
            let Some(question) = question(tree, check) else { continue };
            if !run.outcome.passed() {
                self.red.insert(question);
            } else if !run.flaky {
                self.green.insert(question, run.clone());
            }
        }
    }
}

fn question(tree: &Oid, check: &Check) -> Option<(Oid, String)> {
    match check.origin {
        CheckOrigin::Story | CheckOrigin::AgentTest => None,
        CheckOrigin::Gate(_) => Some((tree.clone(), digest(&serde_json::to_vec(check).unwrap_or_default()))),
    }
}

/// Runs come in the order of their stages, and perhaps not all of them; stages keep the order of their gates.
fn pairs<R>(checks: &[Check], runs: impl Iterator<Item = R>) -> impl Iterator<Item = (&Check, R)> {
    verdone_core::check::stages(checks).into_iter().flatten().zip(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::check::{CheckOutcome, CommandSpec, Gate, Stage};
    use verdone_core::span::Span;

    #[test]
    fn a_green_is_recalled_for_the_same_tree_and_gate_alone_and_a_change_of_mind_is_flaky() {
        let gate =
            |command: &str| Gate::new("g", Stage::Quality, CommandSpec::Shell(command.to_owned())).check(Span::from_secs(1));
        let own = Check::own(CommandSpec::Shell("own".to_owned()), Span::from_secs(1));
        let checks = [gate("a"), own];
        let ended = |check: &Check, outcome| CheckRun { outcome, ..CheckRun::of(check) };
        let (one, other) = (Oid::from("1"), Oid::from("2"));
        let mut memory = Memory::default();
        let green = [ended(&checks[1], CheckOutcome::Passed), ended(&checks[0], CheckOutcome::Passed)];
        memory.note(&one, &checks, &green);
        assert!(memory.recall(&one, &checks[0]).is_some_and(|run| run.cached && run.name == "g"));
        assert!(memory.recall(&other, &checks[0]).is_none() && memory.recall(&one, &gate("b")).is_none());
        assert!(memory.recall(&one, &checks[1]).is_none(), "own checks are always run");

        let red = [ended(&checks[1], CheckOutcome::Passed), ended(&checks[0], CheckOutcome::Failed { code: 1 })];
        memory.note(&other, &checks, &red);
        assert!(memory.recall(&other, &checks[0]).is_none());
        let mut now = green;
        memory.mark_flaky(&other, &checks, &mut now);
        assert!(now[1].flaky && !now[0].flaky);
        memory.note(&other, &checks, &now);
        assert!(memory.recall(&other, &checks[0]).is_none(), "a flaky green is never reused");
    }
}
