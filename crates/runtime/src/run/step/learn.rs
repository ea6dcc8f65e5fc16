//! Lessons in a run: what the end of an attempt teaches, and which lessons a prompt gets.

use jiff::Timestamp;
use verdone_core::check::Check;
use verdone_core::check::lessons::{Chosen, Lesson, Origin, Topics, choose, prompt_text, story_names_file};
use verdone_core::engine::run::{State, Taught, Teaching, teaching};
use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::Story;
use verdone_plan::scope::ScopeMatcher;

use crate::project::lessons::{LessonStore, LessonsError};
use crate::run::context::RunContext;

/// The guardrails of a prompt: the user's text and the lessons for the story.
pub(super) struct StoryGuardrails {
    pub(super) text: String,
    chosen: Vec<Chosen>,
}

/// Records what an event teaches; `state` is the one before it. A lesson that cannot be written never stops a run.
pub fn learn(context: &RunContext, state: &State, event: &Event, reporter: &mut dyn Reporter) {
    let own = state.attempt.as_ref().map_or(&[][..], |attempt| context.own_checks(&attempt.place.story));
    let check = own.iter().chain(&context.setup.gates).find(|check| !check.terms.advisory).map(|check| check.name.as_str());
    let taught = Taught { root: &context.setup.root, check };
    let Some(teaching) = teaching(state, event, taught) else { return };
    let settings = &context.setup.config.learn;
    if !settings.enabled {
        return;
    }
    let ids = &context.attempt.lessons;
    let done = match teaching {
        Teaching::Learn { lesson, origin } => {
            store(context).update(|memory| memory.learn(lesson, origin, settings, Timestamp::now()))
        }
        Teaching::Passed if ids.is_empty() => return,
        Teaching::Passed => store(context).update(|memory| memory.note_pass(ids)),
    };
    if let Err(error) = done {
        reporter.report(Update::Notice { text: &format!("the lesson of this attempt was not saved: {error}") });
    }
}

/// What became of an agent's note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    Added,
    AlreadyThere,
    /// Lessons are turned off, or the user deleted this one.
    NotWanted,
}

/// Adds what an agent wants later sessions to know. It becomes a lesson like others, and never one of the user's lines.
pub fn add_note(context: &RunContext, state: &State, text: &str) -> Result<Noted, LessonsError> {
    let (Some(note), Some(attempt)) = (Lesson::of_agent(text), &state.attempt) else { return Ok(Noted::NotWanted) };
    let (story, attempt) = (attempt.place.story.to_string(), attempt.place.attempt);
    let origin = Origin::Attempt { run: context.setup.run.to_string(), story, attempt };
    let mut noted = Noted::NotWanted;
    store(context).update(|memory| {
        let was_there = memory.has(&note);
        memory.learn(note.clone(), origin, &context.setup.config.learn, Timestamp::now());
        noted = match (was_there, memory.has(&note)) {
            (true, _) => Noted::AlreadyThere,
            (false, true) => Noted::Added,
            (false, false) => Noted::NotWanted,
        };
    })?;
    Ok(noted)
}

/// Chooses the lessons for a story's prompt.
pub(super) fn guardrails_for(context: &RunContext, story: &Story) -> StoryGuardrails {
    let memory = store(context).read();
    let names = |checks: &'_ [Check]| checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
    let (own, gates) = (names(context.own_checks(&story.id)), names(&context.setup.gates));
    let scope = ScopeMatcher::new(&story.scope, false).ok().filter(|_| !story.scope.is_empty());
    let topics = Topics {
        own_checks: own.iter().map(String::as_str).collect(),
        gates: gates.iter().map(String::as_str).collect(),
        has_file: Box::new(|file| scope.as_ref().is_some_and(|scope| scope.has(file)) || story_names_file(story, file)),
        is_session: false,
    };
    let chosen = choose(&memory.text, &memory.history, &topics);
    StoryGuardrails { text: prompt_text(&memory.text, &chosen), chosen }
}

/// Remembers which lessons the attempt's prompts had.
pub(super) fn note_use(context: &mut RunContext, guardrails: &StoryGuardrails, reporter: &mut dyn Reporter) {
    let known = &context.attempt.lessons;
    let ids = guardrails.chosen.iter().map(|chosen| chosen.id.clone()).filter(|id| !known.contains(id));
    let ids: Vec<String> = ids.collect();
    if ids.is_empty() || !context.setup.config.learn.enabled {
        return;
    }
    if let Err(error) = store(context).update(|memory| memory.note_use(&ids, Timestamp::now())) {
        reporter.report(Update::Notice { text: &format!("the use of lessons was not recorded: {error}") });
    }
    context.attempt.lessons.extend(ids);
}

fn store(context: &RunContext) -> LessonStore {
    LessonStore::new(&context.setup.root, context.git.top())
}
