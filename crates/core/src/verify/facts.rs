//! A job together with its observations: the facts that both the next step and the judgement depend on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{self, CheckState, CountChange, TestNames};
use super::job::{Baseline, ChangeKind, JobGate, PlannedCheck, ProtectedChange, ProtectedKind, Tree, VerifyJob};
use super::observed::{BuiltTree, CheckResult, Observed, ResultId};
use crate::base::id::Oid;
use crate::base::proof::Proof;
use crate::check::{CheckOutcome, CommandSpec, TestCount};
use crate::protect::{check_scripts, deciding_programs};
use verdone_testlog::simple_commands;

#[derive(Debug)]
pub(super) struct JobFacts<'a> {
    pub(super) job: &'a VerifyJob,
    pub(super) observed: &'a Observed,
    /// The checks that have to run, the story's own first.
    pub(super) checks: Vec<PlannedCheck>,
}

/// The result of a story's own check before the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum OwnCheckBefore {
    Red,
    Green,
    Unknown {
        why: String,
    },
    /// It names a test file that only the attempt has.
    Missing {
        file: String,
    },
    /// It failed, but it runs a file that the attempt changed, so the agent's code decides the result.
    RunsWork {
        file: String,
    },
    NotRun,
}

impl fmt::Display for OwnCheckBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Red => f.write_str("failed before the work and passes now"),
            Self::Green => f.write_str("already passed before the work, so it proves nothing"),
            Self::Unknown { why } => write!(f, "gave no answer before the work: {why}"),
            Self::Missing { file } => write!(f, "needs {file}, which the attempt added, so it counts as the agent's test"),
            Self::RunsWork { file } => write!(f, "depends on {file}, which the attempt changed, so it proves nothing"),
            Self::NotRun => f.write_str("was not run before the work"),
        }
    }
}

impl<'a> JobFacts<'a> {
    pub(super) fn new(job: &'a VerifyJob, observed: &'a Observed) -> Self {
        Self { job, observed, checks: job.checks() }
    }

    pub(super) fn own(&self) -> impl Iterator<Item = &PlannedCheck> {
        self.checks.iter().filter(|check| check.is_own())
    }

    pub(super) fn required(&self) -> impl Iterator<Item = &PlannedCheck> {
        self.checks.iter().filter(|check| check.is_required())
    }

    pub(super) fn tree(&self, tree: Tree) -> Option<&Oid> {
        match tree {
            Tree::Base => self.job.base.as_ref(),
            Tree::Attempt => Some(&self.job.attempt),
            Tree::Pristine => built(self.observed.pristine.as_ref()),
            Tree::Proof => built(self.observed.proof.as_ref()),
        }
    }

    pub(super) fn result(&self, tree: Tree, check: &PlannedCheck) -> Option<&CheckResult> {
        let id = ResultId { tree: self.tree(tree)?.clone(), command: check.digest.clone() };
        self.observed.results.get(&id)
    }

    pub(super) fn state(&self, tree: Tree, check: &PlannedCheck) -> CheckState {
        self.result(tree, check).map_or(CheckState::NotRun, |result| CheckState::from_run(&result.run))
    }

    /// How a check ended on a tree, as text.
    pub(super) fn describe(&self, tree: Tree, check: &PlannedCheck) -> String {
        self.result(tree, check).map_or_else(|| "was not run".to_owned(), |result| CheckState::describe(&result.run))
    }

    pub(super) fn was_interrupted(&self) -> bool {
        let is_cut = |tree: Tree| self.checks.iter().any(|check| self.state(tree, check) == CheckState::Interrupted);
        self.observed.interrupted || Tree::ALL.into_iter().any(is_cut)
    }

    pub(super) fn before(&self, own: &PlannedCheck) -> OwnCheckBefore {
        let Some(result) = self.result(Tree::Base, own) else { return OwnCheckBefore::NotRun };
        match CheckState::from_red_check(&result.run) {
            CheckState::Green => OwnCheckBefore::Green,
            CheckState::Red => match self.added_test_named_by(&own.check.command) {
                // If tests pass, the check exists on the base.
                Some(file) if result.run.tests.is_none_or(|tests| tests.passed == 0) => OwnCheckBefore::Missing { file },
                Some(_) | None => {
                    self.changed_program_of(own).map_or(OwnCheckBefore::Red, |file| OwnCheckBefore::RunsWork { file })
                }
            },
            CheckState::Unknown if result.run.outcome.passed() => OwnCheckBefore::Unknown { why: "ran no tests".to_owned() },
            CheckState::Unknown => OwnCheckBefore::Unknown { why: result.run.outcome.describe() },
            CheckState::Interrupted | CheckState::NotRun => OwnCheckBefore::NotRun,
        }
    }

    /// Whether the base cannot answer this check: a test written first belongs to the attempt.
    pub(super) fn exists_only_in_attempt(&self, check: &PlannedCheck) -> bool {
        let is_absent = matches!(self.before(check), OwnCheckBefore::Unknown { .. } | OwnCheckBefore::Missing { .. });
        check.is_own() && is_absent && !self.ran_out_of_time(Tree::Base, check)
    }

    /// Whether the check existed but timed out without an answer.
    fn ran_out_of_time(&self, tree: Tree, check: &PlannedCheck) -> bool {
        self.result(tree, check).is_some_and(|result| matches!(result.run.outcome, CheckOutcome::TimedOut { .. }))
    }

    /// The changed work file whose exit code decides the check.
    fn changed_program_of(&self, own: &PlannedCheck) -> Option<String> {
        let changed = self.job.changed.as_ref()?;
        deciding_programs(&own.check.command).find(|file| changed.contains(file))
    }

    fn added_test_named_by(&self, command: &CommandSpec) -> Option<String> {
        let scripts = check_scripts([command]);
        let is_named = |change: &&ProtectedChange| match change.kind {
            ProtectedKind::Test => endings(&change.path).any(|path| command_names(command, path)),
            ProtectedKind::CheckScript => endings(&change.path).any(|path| scripts.contains(path)),
            ProtectedKind::InlineTest | ProtectedKind::Config | ProtectedKind::Ci => false,
        };
        let mut added = self.job.protected.iter().filter(|change| change.change == ChangeKind::Added);
        added.find(is_named).map(|change| change.path.clone())
    }

    pub(super) fn needs_pristine(&self) -> bool {
        self.job.protected.iter().any(|change| !change.released)
    }

    /// The checks that have to pass with the protected files from before the work.
    pub(super) fn pristine_checks(&self) -> Vec<PlannedCheck> {
        self.required().filter(|check| !self.exists_only_in_attempt(check)).cloned().collect()
    }

    /// Whether a check speaks against the work on the pristine tree. A gate that had no result on the base either (such as in a project
    /// without tests so far) has lost nothing.
    pub(super) fn fails_on_pristine(&self, check: &PlannedCheck) -> bool {
        match self.state(Tree::Pristine, check) {
            CheckState::Green => false,
            CheckState::Unknown if self.ran_out_of_time(Tree::Pristine, check) => true,
            CheckState::Unknown => self.baseline(check).is_none_or(|base| base.state != CheckState::Unknown),
            CheckState::Red | CheckState::Interrupted | CheckState::NotRun => true,
        }
    }

    /// A check's tests on the base, from this verification or from the start of the run.
    pub(super) fn baseline(&self, check: &PlannedCheck) -> Option<Baseline> {
        if let Some(result) = self.result(Tree::Base, check) {
            return Some(Baseline::from(result));
        }
        let same = |gate: &&JobGate| PlannedCheck::new(&gate.check, gate.hidden).digest == check.digest;
        self.job.due_gates().filter(same).find_map(|gate| gate.baseline.clone())
    }

    /// Every required check whose tests can be compared with those of the base.
    pub(super) fn count_changes(&self) -> Vec<CountChange> {
        if self.job.surface.is_reviewed() {
            return Vec::new();
        }
        let allowed = self.job.may_lower_counts();
        let mut changes = Vec::new();
        for check in self.required().filter(|check| !self.exists_only_in_attempt(check)) {
            let Some(before) = self.baseline(check) else { continue };
            for tree in [Tree::Attempt, Tree::Pristine] {
                let Some(after) = self.result(tree, check) else { continue };
                let (old, new) = (before.tests, after.run.tests);
                let fall = counts::compare(&before, after);
                if old.is_some() || new.is_some() {
                    let allowed = allowed && fall.is_some();
                    changes.push(CountChange { check: check.check.name.clone(), tree, before: old, after: new, fall, allowed });
                }
            }
        }
        changes
    }

    /// Whether the proof is limited to `untested` or weaker.
    pub(super) fn is_limited_to_untested(&self) -> bool {
        self.job.at_most.is_some_and(|most| most <= Proof::Untested)
    }

    pub(super) fn tests(&self, tree: Tree, check: &PlannedCheck) -> Option<TestCount> {
        self.result(tree, check).and_then(|result| result.run.tests)
    }

    pub(super) fn names(&self, tree: Tree, check: &PlannedCheck) -> Option<&TestNames> {
        self.result(tree, check).and_then(|result| result.names.as_ref())
    }
}

fn built(tree: Option<&BuiltTree>) -> Option<&Oid> {
    match tree {
        Some(BuiltTree::Built(id)) => Some(id),
        Some(BuiltTree::Failed { .. }) | None => None,
    }
}

/// The path relative to each of its parent folders, because a project need not be at the top of its repository.
fn endings(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]))
}

/// Whether a command names a file: as a script that it runs, or as one of its words.
pub fn command_names(command: &CommandSpec, path: &str) -> bool {
    let commands = match command {
        CommandSpec::Shell(line) => simple_commands(line),
        CommandSpec::Argv(words) => vec![words.clone()],
    };
    commands.iter().any(|words| names_file(words, path))
}

/// Whether a command names a file itself: by its path, as one of its tests (`path::test`), as a unittest module, or with `cargo test
/// --test`. A plain word is not a path: a new file `test` must not match `make test`.
fn names_file(words: &[String], path: &str) -> bool {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let is_below = |word: &str, name: &str, separator: char| {
        word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
    };
    let by_path = |word: &String| is_below(word.strip_prefix("./").unwrap_or(word), path, ':');
    let by_module = |word: &String| is_below(word, &stem.replace('/', "."), '.');
    let is_python = path.ends_with(".py") && words.iter().any(|word| word == "unittest");
    let target = |name: &str| stem == format!("tests/{name}") || stem == format!("tests/{name}/main");
    path.contains(['/', '.']) && words.iter().any(by_path)
        || is_python && words.iter().any(by_module)
        || words.windows(2).any(|pair| pair[0] == "--test" && target(&pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_test_file_by_path_test_module_or_target_and_by_nothing_else() {
        for (command, path, expected) in [
            ("pytest tests/test_a.py", "tests/test_a.py", true),
            ("pytest ./tests/test_a.py::test_x -q", "tests/test_a.py", true),
            ("python -m unittest tests.test_a.Case.test_x", "tests/test_a.py", true),
            ("cargo test --test login", "tests/login.rs", true),
            ("cargo test --test login", "tests/login/main.rs", true),
            ("npx jest a.test.js", "a.test.js", true),
            ("pytest tests", "tests/test_a.py", false),
            ("pytest tests/test_a.py2", "tests/test_a.py", false),
            ("python -m unittest tests.test_ab", "tests/test_a.py", false),
            ("cargo test login", "tests/login.rs", false),
            ("make test", "Makefile", false),
            ("make test", "test", false),
            ("npm test", "test.py", false),
            ("python -m pytest test", "test.py", false),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(names_file(&words, path), expected, "{command} {path}");
        }
    }
}
