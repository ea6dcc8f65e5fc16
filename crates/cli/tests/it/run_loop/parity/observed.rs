//! The result of the work on one surface, and whether it matches the table.

use std::fmt;

use serde_json::Value;
use verdone_core::verify::Proof;
use verdone_testkit::Output;

use super::project::{Project, STORY};
use super::rules::{Cell, Rule};

/// The result in the terms of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done(Proof),
    Failed,
    NeedsReview,
    /// The agent first got one turn to fix it.
    NeedsReviewAfterFeedback,
    Accepted(Proof),
    /// The command refuses with a reason, and changes nothing.
    Refused,
    /// It passed, but was not committed.
    NoCommit,
}

impl Fate {
    fn is_taken(self) -> bool {
        match self {
            Self::Done(_) | Self::Accepted(_) => true,
            Self::Failed | Self::NeedsReview | Self::NeedsReviewAfterFeedback | Self::Refused | Self::NoCommit => false,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(proof) => write!(f, "{proof}"),
            Self::Failed => f.write_str("failed"),
            Self::NeedsReview => f.write_str("needs-review"),
            Self::NeedsReviewAfterFeedback => f.write_str("feedback, then needs-review"),
            Self::Accepted(proof) => write!(f, "accepted, {proof}"),
            Self::Refused => f.write_str("refused"),
            Self::NoCommit => f.write_str("no commit"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) fate: Fate,
    /// The names of the reasons; `None` if the surface has only sentences.
    pub(crate) reasons: Option<Vec<String>>,
    /// All output about it.
    pub(crate) words: String,
}

impl Observed {
    /// Reads a report of the engine.
    pub(crate) fn of_report(report: &Value) -> Self {
        let fate = match report["outcome"].as_str() {
            Some("done") => Fate::Done(proof(&report["proof"])),
            Some("failed") => Fate::Failed,
            Some("needs-review") => Fate::NeedsReview,
            other => panic!("no outcome of a verification: {other:?}"),
        };
        let reasons = report["reasons"].as_array().unwrap();
        let names = reasons.iter().map(|reason| reason["reason"].as_str().unwrap().to_owned()).collect();
        Self { fate, reasons: Some(names), words: report["reasons"].to_string() }
    }

    pub(crate) fn refused(output: &Output) -> Self {
        Self { fate: Fate::Refused, reasons: None, words: output.transcript() }
    }

    /// What the journal of a run or a loop says about the story.
    pub(crate) fn in_journal(project: &Project<'_>) -> Option<Self> {
        let events = project.events();
        let has = |name: &str| events.iter().any(|event| event["event"] == name);
        let verified = events.iter().filter(|event| event["event"] == "verified").map(|event| &event["report"]);
        let reports: Vec<&Value> = verified.filter(|report| report["story"] == STORY).collect();
        let mut seen = Self::of_report(reports.last()?);
        let earlier = &reports[..reports.len() - 1];
        let told = |report: &&Value| report["outcome"] == "failed" && report["feedback"]["advice"].is_array();
        if seen.fate == Fate::NeedsReview && earlier.iter().any(told) {
            seen.fate = Fate::NeedsReviewAfterFeedback;
        }
        if has("commit_refused") && !has("committed") {
            seen.fate = Fate::NoCommit;
            let refusals = events.iter().filter(|event| event["event"] == "commit_refused");
            seen.words = refusals.map(Value::to_string).collect();
            seen.reasons = None;
        }
        Some(seen)
    }

    /// How it differs from the table, if it does.
    pub(crate) fn differs_from(&self, rule: &Rule, cell: &Cell) -> Option<String> {
        let expected = cell.fate()?;
        if self.fate != expected {
            return Some(format!("it is {}, and not {expected}: {}", self.fate, self.words));
        }
        let Cell::Is(_) = cell else { return None };
        let is_explained = match &self.reasons {
            Some(reasons) => reasons.iter().any(|reason| reason == rule.reason),
            // Nothing is said about accepted work.
            None => self.fate.is_taken() || self.words.contains(rule.says),
        };
        (!is_explained).then(|| format!("it is {expected}, but not because of {} {:?}: {}", rule.reason, rule.says, self.words))
    }
}

pub(crate) fn proof(value: &Value) -> Proof {
    serde_json::from_value(value.clone()).unwrap_or_else(|_| panic!("{value} is no proof"))
}
