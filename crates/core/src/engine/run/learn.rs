//! What the end of an attempt teaches, from the facts of its verification.

use std::path::Path;

use super::State;
use crate::check::CheckRun;
use crate::check::lessons::{Kind, Lesson, Origin};
use crate::engine::session::{meaningful, places};
use crate::journal::event::{Event, Rejection};
use crate::verify::{Doubt, Failure, Outcome, Reason, VerifyReport};

/// What to do with lessons after an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Teaching {
    /// The attempt failed or needs a review.
    Learn { lesson: Lesson, origin: Origin },
    /// The attempt passed, so the lessons in its prompts helped or did no harm.
    Passed,
}

/// Where an attempt works, for its lessons.
#[derive(Debug, Clone, Copy)]
pub struct Taught<'a> {
    /// The project's root, as checks see it.
    pub root: &'a Path,
    /// A check of the story that its agent may see, for failures that are not about one.
    pub check: Option<&'a str>,
}

/// What an event teaches; `state` is the one before it.
pub fn teaching(state: &State, event: &Event, taught: Taught<'_>) -> Option<Teaching> {
    let lesson = match end_of_attempt(event)? {
        End::Passed => return Some(Teaching::Passed),
        End::Doubted => from_report(state, taught),
        End::Rejected(rejection) => from_rejection(rejection, state, taught),
    }?;
    let place = &state.attempt.as_ref()?.place;
    let run = state.run.as_ref().map(ToString::to_string).unwrap_or_default();
    let origin = Origin::Attempt { run, story: place.story.to_string(), attempt: place.attempt };
    Some(Teaching::Learn { lesson, origin })
}

enum End<'e> {
    Passed,
    /// Committed, but a person has to review it.
    Doubted,
    Rejected(&'e Rejection),
}

fn end_of_attempt(event: &Event) -> Option<End<'_>> {
    if let Event::Committed { outcome, .. } = event {
        return Some(if *outcome == Outcome::NeedsReview { End::Doubted } else { End::Passed });
    }
    if let Event::Marked { .. } = event {
        return Some(End::Passed);
    }
    if let Event::AttemptRejected { rejection, .. } = event { Some(End::Rejected(rejection)) } else { None }
}

fn from_rejection(rejection: &Rejection, state: &State, taught: Taught<'_>) -> Option<Lesson> {
    match rejection {
        Rejection::ChecksFailed | Rejection::NoProgress | Rejection::NeedsReview => from_report(state, taught),
        Rejection::NothingChanged => about_story(Kind::NothingChanged, taught),
        Rejection::TurnFailed => about_story(Kind::TurnFailed, taught),
        Rejection::TestsFailed => about_story(Kind::TestsFailed, taught),
        Rejection::CommitRefused => about_story(Kind::CommitRefused, taught),
        // The agent could do nothing about it, or said so itself.
        Rejection::AlreadyGreen
        | Rejection::UsageLimit
        | Rejection::ServiceError
        | Rejection::Unfinished
        | Rejection::Blocked
        | Rejection::Stopped
        | Rejection::Crashed => None,
    }
}

/// A lesson without a file or a check would never be used.
fn about_story(kind: Kind, taught: Taught<'_>) -> Option<Lesson> {
    taught.check.map(|check| Lesson::new(kind).with_check(check))
}

fn from_report(state: &State, taught: Taught<'_>) -> Option<Lesson> {
    let report = state.attempt.as_ref()?.report.as_ref()?;
    let reason = report.problem()?;
    let hidden = reason.failing_check().filter(|name| report.is_hidden(name));
    match (hidden, reason) {
        // The name is all that an agent may know of it.
        (Some(name), _) => Some(Lesson::new(Kind::HiddenCheckFailed).with_check(name)),
        (None, Reason::Failure(failure)) => from_failure(failure, report, taught),
        (None, Reason::Doubt(doubt)) => from_doubt(doubt, taught),
        (None, Reason::Note(_)) => None,
    }
}

fn from_failure(failure: &Failure, report: &VerifyReport, taught: Taught<'_>) -> Option<Lesson> {
    match failure {
        Failure::CheckFailed { check, .. } => {
            let lesson = Lesson::new(Kind::CheckFailed).with_check(check);
            let run = report.all_runs().map(|(_, run)| run).find(|run| run.name == *check && run.blocks());
            Some(run.map_or(lesson.clone(), |run| with_output(lesson, run, taught.root)))
        }
        Failure::CheckUnknown { check, .. } | Failure::CheckNotRun { check } => {
            Some(Lesson::new(Kind::CheckUnclear).with_check(check))
        }
        Failure::Interrupted => None,
        Failure::NothingChanged => about_story(Kind::NothingChanged, taught),
        Failure::CannotCommit { .. } => about_story(Kind::CommitRefused, taught),
        Failure::OutOfScope { files } => about_files(Kind::OutOfScope, files),
        Failure::ConditionMissing { name, .. } => Some(Lesson::new(Kind::ConditionMissing).with_check(name)),
    }
}

fn from_doubt(doubt: &Doubt, taught: Taught<'_>) -> Option<Lesson> {
    match doubt {
        Doubt::PristineFailed { check, files, .. } => {
            let lesson = Lesson::new(Kind::ChangedTests).with_check(check);
            Some(files.first().map_or(lesson.clone(), |file| lesson.with_file(file)))
        }
        Doubt::PristineNotBuilt { .. } => about_story(Kind::ChangedTests, taught),
        Doubt::CountsFell { check, .. } => Some(Lesson::new(Kind::FewerTests).with_check(check)),
        Doubt::OtherCheckChanged { files, .. } => about_files(Kind::OtherStorysCheck, files),
        Doubt::AutorunChanged { files } => about_files(Kind::Autorun, files),
        Doubt::BelowMinimum { .. } => about_story(Kind::WeakProof, taught),
        Doubt::ConditionUnknown { name, .. } => Some(Lesson::new(Kind::ConditionMissing).with_check(name)),
        // A judge is an agent: its words are not facts.
        Doubt::JudgeRefuted { .. } => about_story(Kind::JudgeRefuted, taught),
        Doubt::JudgeUnknown { .. } => None,
    }
}

fn about_files(kind: Kind, files: &[String]) -> Option<Lesson> {
    files.first().map(|file| Lesson::new(kind).with_file(file))
}

/// Adds the first error and its file.
fn with_output(lesson: Lesson, run: &CheckRun, root: &Path) -> Lesson {
    let first = run.first_error.lines().map(str::trim).find(|line| line.contains(char::is_alphanumeric));
    let error = first.map(str::to_owned).or_else(|| meaningful(&run.tail).pop()).unwrap_or_default();
    let from_error = places(&run.first_error).into_iter();
    let file = from_error.chain(places(&run.tail)).find_map(|place| in_project(&place, root)).unwrap_or_default();
    lesson.with_file(&file).with_error(&error)
}

/// The path of a `file:line` relative to the project; `None` for files elsewhere.
fn in_project(place: &str, root: &Path) -> Option<String> {
    let (path, _) = place.rsplit_once(':')?;
    let path = Path::new(path);
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let path = path.strip_prefix(".").unwrap_or(path);
    let is_inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_inside.then(|| path.to_string_lossy().into_owned())
}
