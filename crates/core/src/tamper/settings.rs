//! What each severity of an alarm does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Alarm, Severity};

/// What an alarm does, from mildest to gravest: the gravest of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Response {
    /// It is told and kept with the evidence.
    Report,
    /// The attempt is kept and not committed, and the story waits for a human.
    Ask,
    /// The verification fails; the agent is told and may mend it in its next turn.
    Refuse,
}

/// What happens when an attempt touched what judges it: tests, gates, their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TamperSettings {
    /// Worth knowing: a lock file or a snapshot that changed, a test that was rewritten, whatever the story's scope expects.
    pub low: Response,
    /// Honest or not, a machine cannot tell: a gate's script that changed, a test that is skipped under a condition.
    pub medium: Response,
    /// Hardly ever honest: a test that is gone, skipped or asserts nothing any more, `|| true` in what a gate runs.
    pub high: Response,
}

impl Default for TamperSettings {
    fn default() -> Self {
        Self { low: Response::Report, medium: Response::Ask, high: Response::Refuse }
    }
}

impl TamperSettings {
    pub fn response(&self, severity: Severity) -> Response {
        match severity {
            Severity::Low => self.low,
            Severity::Medium => self.medium,
            Severity::High => self.high,
        }
    }

    /// The gravest response, and the alarms that ask for it or for more than a report.
    pub fn gravest<'a>(&self, alarms: &'a [Alarm]) -> (Response, Vec<&'a Alarm>) {
        let response = alarms.iter().map(|alarm| self.response(alarm.severity)).max().unwrap_or(Response::Report);
        let grave = alarms.iter().filter(|alarm| self.response(alarm.severity) > Response::Report).collect();
        (response, grave)
    }

    /// Why a tree with these alarms is not committed; nothing where it may be.
    pub fn refusal(&self, alarms: &[Alarm]) -> Option<String> {
        const NAMED: usize = 3;
        let (response, grave) = self.gravest(alarms);
        let named: Vec<String> = grave.iter().take(NAMED).map(|alarm| alarm.sentence()).collect();
        let more = if grave.len() > NAMED { format!(" (and {} more)", grave.len() - NAMED) } else { String::new() };
        let list = named.join("; ");
        match response {
            Response::Report => None,
            Response::Ask => {
                Some(format!("a human has to look at this: {list}{more}; if it is meant, name the file in the story's scope"))
            }
            Response::Refuse => {
                Some(format!("this looks like tampering: {list}{more}; take it back, and make the code right instead"))
            }
        }
    }
}
