//! What proves a story: kept in the journal, as a git note on the story's commit, and by digest in the commit's trailers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec};
use crate::event::SCHEMA_VERSION;
use crate::id::{Oid, RunId, StoryId, digest};
use crate::machine::{Attempt, State};
use crate::proof::{AgentTest, ProvenCriterion};
use crate::verdict::{Red, StoryVerdict};

/// The evidence of one story. Digests instead of output: a note travels further than a log should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    pub v: u32,
    pub run: RunId,
    pub story: StoryId,
    pub title: String,
    pub verdict: StoryVerdict,
    /// The tree that was checked, which is the tree of the commit.
    pub tree: Oid,
    /// Where the branch stood before: the evidence covers base..commit.
    pub base: Option<Oid>,
    pub attempt: u32,
    pub turns: u32,
    pub red: Red,
    /// The story's own checks before the work.
    pub before: Vec<Proof>,
    /// Every check on the committed tree.
    pub after: Vec<Proof>,
    /// Each criterion of the story with what proved it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<ProvenCriterion>,
}

/// One check as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub outcome: CheckOutcome,
    pub duration_ms: u64,
    pub output_digest: String,
}

impl From<&CheckRun> for Proof {
    fn from(run: &CheckRun) -> Self {
        Self {
            name: run.name.clone(),
            origin: run.origin.clone(),
            command: run.command.clone(),
            outcome: run.outcome.clone(),
            duration_ms: run.duration_ms,
            output_digest: run.output_digest.clone(),
        }
    }
}

impl Evidence {
    /// The evidence for the attempt that is about to be committed as `tree`, proven by `runs`.
    pub fn of(state: &State, attempt: &Attempt, verdict: StoryVerdict, tree: &Oid, runs: &[CheckRun]) -> Self {
        // Tests of the attempt's own are both: red before, green after.
        let tests = attempt.agent_test.as_ref();
        let before = attempt.red_runs.iter().chain(tests.iter().flat_map(|tests| &tests.before));
        let after = runs.iter().chain(tests.iter().flat_map(|tests| &tests.after));
        let red = match attempt.red {
            Some(Red::Absent) | None if tests.is_some_and(AgentTest::proves) => Red::Red,
            other => other.unwrap_or(Red::Absent),
        };
        Self {
            v: SCHEMA_VERSION,
            run: state.run.clone().unwrap_or_else(|| RunId::from("")),
            story: attempt.place.story.clone(),
            title: attempt.title.clone(),
            verdict,
            tree: tree.clone(),
            base: attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.head.clone()),
            attempt: attempt.place.attempt,
            turns: attempt.place.turn,
            red,
            before: before.map(Proof::from).collect(),
            after: after.map(Proof::from).collect(),
            criteria: attempt.criteria.clone(),
        }
    }

    /// The text of the note: one JSON object, stable for the same evidence.
    pub fn to_note(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("evidence holds nothing that JSON cannot");
        text.push('\n');
        text
    }

    /// The subject line from its template.
    pub fn subject(&self, template: &str) -> String {
        let subject = template.replace("{id}", &one_line(self.story.as_str())).replace("{title}", &one_line(&self.title));
        if subject.trim().is_empty() { self.story.to_string() } else { subject.trim().to_owned() }
    }

    /// The commit's message: the subject from the template, then trailers.
    pub fn commit_message(&self, subject: &str) -> String {
        let verified = if self.verdict > StoryVerdict::Unverified { "yes" } else { "no" };
        format!(
            "{}\n\nVerdone-Story: {}\nVerdone-Run: {}\nVerdone-Verdict: {}\nVerdone-Verified: {verified}\nVerdone-Evidence: sha256:{}\n",
            self.subject(subject),
            one_line(self.story.as_str()),
            self.run,
            self.verdict.words(),
            digest(self.to_note().as_bytes()),
        )
    }
}

/// Plan text on one line of a commit message: a title must not be able to write trailers of its own.
fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    flat.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(story: &str, title: &str) -> Evidence {
        Evidence {
            v: 1,
            run: RunId::from("r1"),
            story: StoryId::from(story),
            title: title.to_owned(),
            verdict: StoryVerdict::Verified,
            tree: Oid::from("t"),
            base: None,
            attempt: 1,
            turns: 1,
            red: Red::Red,
            before: Vec::new(),
            after: Vec::new(),
            criteria: Vec::new(),
        }
    }

    #[test]
    fn the_message_names_story_run_verdict_and_evidence() {
        let message = evidence("US-001", "Add login").commit_message("feat({id}): {title}");
        assert!(message.starts_with("feat(US-001): Add login\n\nVerdone-Story: US-001\nVerdone-Run: r1\n"), "{message}");
        assert!(message.contains("Verdone-Verdict: verified\nVerdone-Verified: yes\nVerdone-Evidence: sha256:"), "{message}");
    }

    #[test]
    fn a_title_cannot_forge_trailers() {
        let message =
            evidence("a\nVerdone-Verified: no", "x\n\nVerdone-Verdict: verified\u{1b}[2J").commit_message("{id} {title}");
        assert_eq!(message.lines().filter(|line| line.starts_with("Verdone-Verdict:")).count(), 1, "{message}");
        assert_eq!(message.lines().filter(|line| line.starts_with("Verdone-Verified:")).count(), 1, "{message}");
        assert!(!message.contains('\u{1b}'));
    }
}
