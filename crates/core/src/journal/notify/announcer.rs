//! Turns the events of one journal into notifications: a fold that remembers what their texts need.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::outage::Outage;
use super::{Notification, NotifyKind, kind_of};
use crate::base::finish::Finish;
use crate::base::id::StoryId;
use crate::base::plural::plural;
use crate::journal::control::Request;
use crate::journal::event::{Event, WaitCause};
use crate::verify::Outcome;

/// One run or session loop.
#[derive(Debug)]
pub struct Announcer {
    project: String,
    zone: TimeZone,
    run: Option<String>,
    plan: Option<String>,
    is_loop: bool,
    titles: BTreeMap<StoryId, String>,
    /// Outcomes of the stories so far.
    outcomes: BTreeMap<StoryId, Outcome>,
    outage: Outage,
    /// Why it ends.
    reason: String,
}

impl Announcer {
    /// The zone is the user's, for times in texts.
    pub fn new(project: &str, zone: TimeZone) -> Self {
        Self {
            project: project.to_owned(),
            zone,
            run: None,
            plan: None,
            is_loop: false,
            titles: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            outage: Outage::default(),
            reason: String::new(),
        }
    }

    /// Remembers an event. Returns the notification that it deserves, which is not yet redacted.
    pub fn observe(&mut self, event: &Event) -> Option<(NotifyKind, Notification)> {
        self.remember(event);
        let is_outage = self.outage.observe(event);
        let kind = kind_of(event).filter(|kind| *kind != NotifyKind::Outage || is_outage)?;
        let mut notification = Notification::new(kind, &self.project, &self.sentence(kind, event));
        notification.run.clone_from(&self.run);
        notification.plan.clone_from(&self.plan);
        match event {
            Event::ReviewNeeded { place, .. } | Event::WaitStarted { place, .. } | Event::AttemptRejected { place, .. } => {
                notification.story = Some(place.story.to_string());
            }
            Event::Asked { request: Request::Question { story, .. } } | Event::Regressed { story, .. } => {
                notification.story = Some(story.to_string());
            }
            Event::RunStopped { finish, exit_code, .. } => {
                (notification.finish_type, notification.exit_code) = (Some(finish.name().to_owned()), Some(*exit_code));
            }
            _ => {}
        }
        Some((kind, notification))
    }

    fn remember(&mut self, event: &Event) {
        match event {
            Event::RunStarted { run, plan, session, .. } => {
                self.run = Some(run.to_string());
                self.plan = Some(plan.clone()).filter(|plan| !plan.is_empty());
                self.is_loop = session.is_some();
            }
            Event::StorySelected { place, title, .. } => {
                self.titles.insert(place.story.clone(), title.clone());
            }
            Event::Committed { place, outcome, .. } => {
                self.outcomes.insert(place.story.clone(), *outcome);
            }
            Event::Marked { place, .. } => {
                self.outcomes.insert(place.story.clone(), Outcome::Done);
            }
            Event::ReviewNeeded { place, .. } => {
                self.outcomes.insert(place.story.clone(), Outcome::NeedsReview);
            }
            Event::StoryFailed { story, .. } => {
                self.outcomes.insert(story.clone(), Outcome::Failed);
            }
            Event::Regressed { story, .. } => {
                self.outcomes.remove(story);
            }
            Event::RunStopping { reason, .. } => self.reason.clone_from(reason),
            _ => {}
        }
    }

    fn sentence(&self, kind: NotifyKind, event: &Event) -> String {
        match event {
            Event::RunStopped { finish: Finish::Complete, .. } => format!("the {} is complete{}", self.noun(), self.results()),
            Event::RunStopped { finish, .. } => {
                let reason = if self.reason.is_empty() { finish.cause() } else { &self.reason };
                format!("the {} ended ({}): {reason}{}", self.noun(), finish.name(), self.results())
            }
            Event::ReviewNeeded { place, reasons, .. } => {
                let why = reasons.first().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{} needs a review{why}", self.story(&place.story))
            }
            Event::WaitStarted { why: WaitCause::ServiceError, reason, .. } => {
                format!("the agent's service has been failing for minutes; the run keeps trying: {reason}")
            }
            Event::WaitStarted { until, ahead: true, .. } => {
                format!("a usage limit is near; the run waits until {}", self.time(*until))
            }
            Event::WaitStarted { until, .. } => format!("usage limit reached; the run waits until {}", self.time(*until)),
            Event::Regressed { story, runs, .. } => {
                let checks: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
                format!("{} was done and fails now: {}", self.story(story), checks.join(", "))
            }
            Event::Asked { request: Request::Question { story, question, .. } } => {
                format!("{} waits for your answer: {question}", self.story(story))
            }
            Event::AttemptRejected { reason, .. } => format!("usage limit reached, and the run does not wait: {reason}"),
            _ => kind.summary().to_owned(),
        }
    }

    fn noun(&self) -> &'static str {
        if self.is_loop { "session loop" } else { "run" }
    }

    fn story(&self, id: &StoryId) -> String {
        match self.titles.get(id).filter(|title| !title.is_empty() && *title != id.as_str()) {
            Some(title) => format!("{id} ({title})"),
            None => id.to_string(),
        }
    }

    /// `; 2 stories done, 1 needs a review`
    fn results(&self) -> String {
        let count = |wanted: &[Outcome]| self.outcomes.values().filter(|outcome| wanted.contains(outcome)).count();
        let (done, review, failed) =
            (count(&[Outcome::Done, Outcome::Accepted]), count(&[Outcome::NeedsReview]), count(&[Outcome::Failed]));
        let mut parts = vec![format!("{} done", plural(done, "story", "stories"))];
        parts.extend((review > 0).then(|| format!("{review} {} a review", if review == 1 { "needs" } else { "need" })));
        parts.extend((failed > 0).then(|| format!("{failed} failed")));
        format!("; {}", parts.join(", "))
    }

    fn time(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }
}
