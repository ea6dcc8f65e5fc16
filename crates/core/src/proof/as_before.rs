//! A check whose own files the work changed, asked once more with those files as they were: only the same check proves anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::CheckRun;
use crate::id::StoryId;

/// Files that one sentence names.
const NAMED: usize = 3;

/// A story's own checks as they were before the work, on the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AsBefore {
    /// Files that decide the checks and that the work changed, relative to the top of the work tree.
    pub files: Vec<String>,
    /// Earlier stories of the run that changed them, where it was not the attempt itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<StoryId>,
    /// The checks with these files as they were, in a clean tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<CheckRun>,
    /// Why they could not be run, where they could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
}

impl AsBefore {
    /// Asks the runs themselves.
    pub fn holds(&self) -> bool {
        self.unproven.is_none() && !self.runs.is_empty() && self.runs.iter().all(|run| run.outcome.passed())
    }

    /// Why the story is not proven, where the checks as they were do not pass.
    pub fn doubt(&self) -> Option<String> {
        if self.holds() {
            return None;
        }
        if self.files.is_empty() {
            let why = self.unproven.as_deref().unwrap_or("nothing was compared");
            return Some(format!("nobody can tell whether its own check is as it was: {why}"));
        }
        let changed = format!("{} changed{}, which its own check runs", self.names(), by(&self.by));
        let red = self.runs.iter().find(|run| !run.outcome.passed());
        Some(match (&self.unproven, red) {
            (Some(why), _) => format!("{changed}; with it as it was, the check could not be run: {why}"),
            (None, Some(run)) => format!("{changed}; with it as it was, {} {} on this work", run.name, run.outcome.words()),
            (None, None) => format!("{changed}; with it as it was, the check was not run"),
        })
    }

    /// The changed files in a few words.
    pub fn names(&self) -> String {
        let listed = self.files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.files.len().saturating_sub(NAMED) {
            0 => listed,
            more => format!("{listed} and {more} more"),
        }
    }
}

/// A story that was proven by a check that is another one by now: as it was when it proved the story, it does not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubted {
    pub story: StoryId,
    /// The later stories that changed the check's files, as far as their commits tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<StoryId>,
    pub seen: AsBefore,
}

impl Doubted {
    pub fn reason(&self) -> String {
        if let Some(doubt) = self.seen.doubt().filter(|_| self.seen.files.is_empty()) {
            return doubt;
        }
        let by = by(&self.by);
        let red = self.seen.runs.iter().find(|run| !run.outcome.passed());
        let what = match (&self.seen.unproven, red) {
            (Some(why), _) => format!("could not be run: {why}"),
            (None, Some(run)) => run.outcome.words(),
            (None, None) => "was not run".to_owned(),
        };
        let check = red.map_or("its check", |run| run.name.as_str());
        format!("broken, or its check was: {} changed{by} since it was proven; as it was then, {check} {what}", self.seen.names())
    }
}

/// ` by US-001, US-002`, or nothing.
fn by(stories: &[StoryId]) -> String {
    let names: Vec<&str> = stories.iter().take(NAMED).map(StoryId::as_str).collect();
    if names.is_empty() { String::new() } else { format!(" by {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckOutcome;
    use crate::check::tests::ran;

    fn run(outcome: CheckOutcome) -> CheckRun {
        ran("sh own.sh", outcome)
    }

    #[test]
    fn only_a_check_that_ran_and_passed_as_it_was_proves_anything() {
        let files = vec!["own.sh".to_owned()];
        let with = |runs| AsBefore { files: files.clone(), runs, ..AsBefore::default() };
        assert!(with(vec![run(CheckOutcome::Passed)]).holds());
        for (runs, said) in [
            (vec![run(CheckOutcome::Passed), run(CheckOutcome::Failed { code: 1 })], "failed"),
            (vec![run(CheckOutcome::TimedOut { after_ms: 5 })], "did not end"),
            (Vec::new(), "was not run"),
        ] {
            let doubt = with(runs).doubt().unwrap();
            assert!(doubt.starts_with("own.sh changed") && doubt.contains(said), "{doubt}");
        }
        let broken = AsBefore { unproven: Some("no place".to_owned()), ..with(vec![run(CheckOutcome::Passed)]) };
        assert!(!broken.holds() && broken.doubt().unwrap().contains("no place"));
        let many = AsBefore { files: (1..6).map(|n| format!("f{n}")).collect(), ..AsBefore::default() };
        assert_eq!(many.names(), "f1, f2, f3 and 2 more");
    }

    #[test]
    fn a_doubt_names_what_changed_and_by_whom() {
        let seen = AsBefore {
            files: vec!["own.sh".to_owned()],
            runs: vec![run(CheckOutcome::Failed { code: 1 })],
            ..AsBefore::default()
        };
        let doubted = Doubted { story: StoryId::from("A"), by: vec![StoryId::from("B")], seen };
        let said = "own.sh changed by B since it was proven; as it was then, sh own.sh failed with exit code 1";
        assert!(doubted.reason().ends_with(said), "{}", doubted.reason());
        let nobody = Doubted { by: Vec::new(), ..doubted };
        assert!(nobody.reason().contains("own.sh changed since"), "{}", nobody.reason());
    }
}
