//! The live line at the bottom that shows current activity. Pure: the same view, clock and width give the same line.

use jiff::Timestamp;
use verdone_core::journal::active::millis_between;
use verdone_core::journal::view::{Current, Phase, RunView};

use crate::pending::pending_words;
use crate::style::{Style, Tone};
use crate::width::{clean, columns, fit};
use crate::wording::{clock, cost, wait_words};

/// What the line contains, from wide to narrow. Each level reserves a fixed width for the
/// activity, so that the line does not jump when the agent's text gets shorter.
struct Level {
    bar: usize,
    words: bool,
    id: usize,
    title: usize,
    attempt: bool,
    clock: bool,
    totals: bool,
    activity: usize,
}

const LEVELS: [Level; 6] = [
    Level { bar: 24, words: true, id: 24, title: 40, attempt: true, clock: true, totals: true, activity: 40 },
    Level { bar: 16, words: true, id: 20, title: 0, attempt: true, clock: true, totals: true, activity: 24 },
    Level { bar: 8, words: true, id: 16, title: 0, attempt: true, clock: true, totals: false, activity: 16 },
    Level { bar: 6, words: false, id: 12, title: 0, attempt: false, clock: true, totals: false, activity: 12 },
    Level { bar: 0, words: false, id: 8, title: 0, attempt: false, clock: true, totals: false, activity: 0 },
    Level { bar: 0, words: false, id: 8, title: 0, attempt: false, clock: false, totals: false, activity: 0 },
];

/// `now` is the active time of the run. At most `style.width - 1` columns: the last one stays free, because some terminals wrap on it.
pub(crate) fn live_line(view: &RunView, activity: &Activity, now: u64, style: &Style) -> String {
    let limit = style.width.saturating_sub(1);
    for level in &LEVELS {
        let parts = parts(view, level, now, style);
        let room = limit.saturating_sub(measure(&parts, style));
        let wanted = if level.activity == 0 { 0 } else { level.activity + columns(style.dot()) };
        if measure(&parts, style) + wanted <= limit {
            let mut line = join(&parts, style);
            if level.activity > 0 {
                line.push_str(activity.lead(style));
                line.push_str(&fit(activity.text(), room - columns(style.dot()), style.unicode));
            }
            return line;
        }
    }
    fit(activity.text(), limit, style.unicode)
}

/// The current activity. Agent text is set off by a bar, as in the lines above, so that it cannot be mistaken for ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Ours(String),
    Quoted(String),
}

impl Activity {
    fn text(&self) -> &str {
        match self {
            Self::Ours(text) | Self::Quoted(text) => text,
        }
    }

    /// As wide as the dot separator.
    fn lead(&self, style: &Style) -> &'static str {
        match self {
            Self::Ours(_) => style.dot(),
            Self::Quoted(_) if style.unicode => " │ ",
            Self::Quoted(_) => " | ",
        }
    }
}

/// The current activity, with the last output.
pub(crate) fn activity(view: &RunView, heard: Option<&Heard>, wall: Option<Timestamp>) -> Activity {
    let phase = view.phase.describe();
    let checking = |heard: Option<&Heard>| match heard {
        Some(Heard::Check { name }) => Activity::Ours(format!("{phase}: {}", clean(name))),
        Some(Heard::Agent { .. }) | None => Activity::Ours(phase.to_owned()),
    };
    match view.phase {
        Phase::Working => match heard {
            Some(Heard::Agent { line }) => Activity::Quoted(line.clone()),
            Some(Heard::Check { .. }) | None => Activity::Ours(phase.to_owned()),
        },
        Phase::Baseline | Phase::RedChecking | Phase::Verifying | Phase::Regressing => checking(heard),
        Phase::Waiting => Activity::Ours(waiting(view, wall)),
        Phase::Starting
        | Phase::Selecting
        | Phase::Resetting
        | Phase::Prompting
        | Phase::Committing
        | Phase::Keeping
        | Phase::Landing
        | Phase::Stopping
        | Phase::Stopped => Activity::Ours(phase.to_owned()),
    }
}

/// The remaining wait. The time comes first, because the end of the line is cut on most screens.
pub(crate) fn waiting(view: &RunView, wall: Option<Timestamp>) -> String {
    let (Some(wait), Some(now)) = (&view.waiting, wall) else { return view.phase.describe().to_owned() };
    format!("{} to wait: {}", clock(millis_between(now, wait.until)), wait_words(wait).to_lowercase())
}

/// The last output in this phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Agent { line: String },
    Check { name: String },
}

type Part = (Tone, String);

fn parts(view: &RunView, level: &Level, now: u64, style: &Style) -> Vec<Part> {
    let mut parts = Vec::new();
    let position = match &view.current {
        Some(Current { number, of, .. }) if level.words => format!("story {number} of {of}"),
        Some(Current { number, of, .. }) => format!("{number}/{of}"),
        None if level.words => format!("{} of {} done", view.done(), view.stories),
        None => format!("{}/{}", view.done(), view.stories),
    };
    // Bar and position belong together, so there is no dot between them.
    let bar = bar(view, level.bar, style);
    parts.push((Tone::Plain, if bar.is_empty() { position } else { format!("{bar} {position}") }));
    parts.extend(pending_words(view).filter(|_| level.words).map(|words| (Tone::Strong, words)));
    if let Some(current) = &view.current {
        parts.push((Tone::Strong, fit(&clean(current.story.as_str()), level.id, style.unicode)));
        let title = clean(&current.title);
        if level.title > 0 && !title.is_empty() && title != clean(current.story.as_str()) {
            parts.push((Tone::Plain, fit(&title, level.title, style.unicode)));
        }
        if level.attempt {
            parts.push((Tone::Plain, format!("attempt {}, turn {}", current.attempt, current.turn.max(1))));
        }
    }
    let run_ms = view.elapsed_ms(now);
    if level.clock {
        parts.push((Tone::Plain, clock(view.current.as_ref().map_or(run_ms, |current| now.saturating_sub(current.started_ms)))));
    }
    if level.totals {
        if view.current.is_some() {
            parts.push((Tone::Dim, format!("run {}", clock(run_ms))));
        }
        parts.extend(view.cost_usd.map(|usd| (Tone::Dim, cost(usd))));
    }
    parts
}

fn bar(view: &RunView, width: usize, style: &Style) -> String {
    let (full, empty) = if style.unicode { ("█", "░") } else { ("#", "-") };
    let filled = (view.done() * width).checked_div(view.stories).unwrap_or(0).min(width);
    format!("{}{}", full.repeat(filled), empty.repeat(width - filled))
}

fn measure(parts: &[Part], style: &Style) -> usize {
    let text: usize = parts.iter().map(|(_, text)| columns(text)).sum();
    text + parts.len().saturating_sub(1) * columns(style.dot())
}

fn join(parts: &[Part], style: &Style) -> String {
    parts.iter().map(|(tone, text)| style.paint(*tone, text)).collect::<Vec<_>>().join(style.dot())
}
