//! One notification: a title, a text and the facts behind it.

use serde::{Deserialize, Serialize};

use super::NotifyKind;
use crate::base::redact::Redactor;
use crate::base::sanitise::sanitise_line;

/// The longest text, in bytes. Reasons can quote an agent.
const LONGEST: usize = 600;

/// The JSON of webhooks and commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The name of its [`NotifyKind`], or `test`.
    pub kind: String,
    pub title: String,
    /// The whole message in one line.
    pub text: String,
    /// The name of the project's folder.
    pub project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
}

impl Notification {
    pub fn new(kind: NotifyKind, project: &str, sentence: &str) -> Self {
        Self { kind: kind.name().to_owned(), ..Self::plain(title(kind), project, sentence) }
    }

    /// What `verdone notify test` sends.
    pub fn test(project: &str) -> Self {
        Self { kind: "test".to_owned(), ..Self::plain("Verdone: test", project, "this is a test notification") }
    }

    /// The text begins with our name, so it is never taken for an option of a command.
    fn plain(title: &str, project: &str, sentence: &str) -> Self {
        let text = format!("Verdone, {project}: {sentence}");
        Self { title: title.to_owned(), text, project: project.to_owned(), ..Self::default() }
    }

    /// Without secrets and control characters, on one line, and not too long.
    #[must_use]
    pub fn cleaned(self, redactor: &Redactor) -> Self {
        let clean = |text: String| {
            let line = sanitise_line(&redactor.redact(&text)).into_owned();
            if line.len() <= LONGEST { line } else { format!("{}…", &line[..line.floor_char_boundary(LONGEST)]) }
        };
        Self {
            kind: self.kind,
            title: clean(self.title),
            text: clean(self.text),
            project: clean(self.project),
            run: self.run.map(clean),
            plan: self.plan.map(clean),
            story: self.story.map(clean),
            finish_type: self.finish_type,
            exit_code: self.exit_code,
        }
    }

    /// The facts as environment variables. All are set, so that none is inherited from elsewhere.
    pub fn variables(&self) -> [(&'static str, String); 9] {
        let given = |fact: &Option<String>| fact.clone().unwrap_or_default();
        [
            ("VERDONE_NOTIFY_KIND", self.kind.clone()),
            ("VERDONE_NOTIFY_TITLE", self.title.clone()),
            ("VERDONE_NOTIFY_TEXT", self.text.clone()),
            ("VERDONE_NOTIFY_PROJECT", self.project.clone()),
            ("VERDONE_NOTIFY_RUN", given(&self.run)),
            ("VERDONE_NOTIFY_PLAN", given(&self.plan)),
            ("VERDONE_NOTIFY_STORY", given(&self.story)),
            ("VERDONE_NOTIFY_FINISH_TYPE", given(&self.finish_type)),
            ("VERDONE_NOTIFY_EXIT_CODE", self.exit_code.map(|code| code.to_string()).unwrap_or_default()),
        ]
    }
}

fn title(kind: NotifyKind) -> &'static str {
    match kind {
        NotifyKind::Finish => "Verdone: finished",
        NotifyKind::NeedsReview => "Verdone: needs a review",
        NotifyKind::Blocked => "Verdone: blocked",
        NotifyKind::UsageLimit => "Verdone: usage limit",
        NotifyKind::Outage => "Verdone: service outage",
        NotifyKind::Regression => "Verdone: regression",
        NotifyKind::Question => "Verdone: question",
    }
}
