//! The end of a run on one screen: what is done, what is only claimed, what failed, where the commits are, and what to do next.

use verdone_core::journal::view::{FalseClaims, RunView, StoryView};
use verdone_core::verify::{Outcome, StoryResult};

use crate::event_lines::files;
use crate::guard::guard_told;
use crate::landing::{commits, finished, next_step, weak_seal};
use crate::questions::open_questions;
use crate::result_text::{first_of, result_mark, result_words, results};
use crate::style::{Mark, Style, Tone};
use crate::width::{clean, columns, fit, pad, wrap};
use crate::wording::{because, cost, duration, plural, token_kinds, usage};

pub fn summary(view: &RunView, style: &Style) -> String {
    let mut out = String::new();
    let now = view.active_ms();
    if !view.touched.is_empty() {
        out.push_str(&table(view, now, style));
        out.push('\n');
    }
    for (tone, text) in totals(view, now) {
        for (at, row) in wrap(&text, style.width.saturating_sub(2).max(1), 6, style.unicode).iter().enumerate() {
            let indent = if at == 0 { "" } else { "  " };
            out.push_str(&style.paint(tone, &format!("{indent}{row}")));
            out.push('\n');
        }
    }
    out
}

/// The story's result, worded the same in the summary, in `status` and in the report.
pub(crate) fn result_of(view: &RunView, story: &StoryView) -> &'static str {
    match story.result {
        Some(result) => result_words(result),
        None if story.undone => "undone",
        None if view.ended.is_none() && view.current.as_ref().is_some_and(|current| current.story == story.id) => "in progress",
        None => "not done",
    }
}

pub(crate) fn story_mark(story: &StoryView) -> Mark {
    match story.result {
        Some(result) => result_mark(result),
        None if story.undone => Mark::Back,
        None => Mark::Info,
    }
}

/// Counts each kind of result separately.
pub(crate) fn tally(view: &RunView) -> String {
    let done = format!("{} of {} done in the plan", view.done(), plural(view.stories, "story", "stories"));
    match results(view) {
        results if results.is_empty() => done,
        results => format!("{results}; {done}"),
    }
}

pub(crate) fn false_claims(claims: FalseClaims) -> Option<String> {
    let parts: Vec<String> = [(claims.nothing_changed, "changed nothing"), (claims.checks_failed, "failed the checks")]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    let caught = plural(claims.total() as usize, "false claim", "false claims");
    (!parts.is_empty()).then(|| format!("Caught {caught} of done: {}", parts.join(", ")))
}

pub(crate) fn work(view: &RunView, now: u64) -> String {
    let parts = [
        plural(view.iterations as usize, "iteration", "iterations"),
        plural(view.commits as usize, "commit", "commits"),
        plural(view.counts.kept_attempts, "attempt kept", "attempts kept"),
    ];
    format!("{} in {}", parts.join(", "), duration(view.elapsed_ms(now)))
}

/// Changed tests and configuration. Normal if stories ask for tests, but always worth a look.
pub(crate) fn protected(view: &RunView) -> Option<String> {
    let names: Vec<String> = view.protected.iter().cloned().collect();
    (!names.is_empty()).then(|| format!("Changed tests or configuration: {}", files(&names)))
}

/// One line per story that needs review.
pub(crate) fn reviews(view: &RunView) -> Vec<String> {
    const MOST: usize = 5;
    let waiting: Vec<&StoryView> = awaited(view).collect();
    let line = |story: &&StoryView| {
        let reasons = story.review.as_ref().map(|review| first_of(&review.reasons)).unwrap_or_default();
        because(&format!("Needs review: {}", clean(story.id.as_str())), &reasons)
    };
    let mut lines: Vec<String> = waiting.iter().take(MOST).map(line).collect();
    if waiting.len() > MOST {
        lines.push(format!("and {} more to review", waiting.len() - MOST));
    }
    lines
}

/// Stories that need review.
pub(crate) fn awaited(view: &RunView) -> impl Iterator<Item = &StoryView> {
    view.with_result(Some(Outcome::NeedsReview.name()))
}

/// Includes the cost of failed stories.
pub(crate) fn cost_per_verified(view: &RunView) -> Option<String> {
    let all = view.cost_usd.filter(|_| view.counts.verified > 0)?;
    Some(format!("{} per verified story", cost(all / view.counts.verified as f64)))
}

fn totals(view: &RunView, now: u64) -> Vec<(Tone, String)> {
    let mut rows = vec![(Tone::Strong, tally(view))];
    rows.extend(reviews(view).into_iter().map(|text| (Tone::Warn, text)));
    rows.extend(open_questions(view).into_iter().map(|text| (Tone::Warn, format!("Question about {text}"))));
    rows.extend(false_claims(view.false_claims).map(|text| (Tone::Warn, text)));
    let used = usage(view.cost_usd, view.tokens).map_or_else(String::new, |used| format!("; {used}"));
    rows.push((Tone::Plain, format!("{}{used}", work(view, now))));
    rows.extend(view.tokens_by_kind.map(|kinds| (Tone::Plain, format!("Tokens: {}", token_kinds(kinds)))));
    rows.extend(cost_per_verified(view).map(|each| (Tone::Plain, each)));
    if !view.restored.is_empty() {
        let files = plural(view.restored.len(), "file", "files");
        rows.push((Tone::Warn, format!("Ignored the agent's changes to {files} that only Verdone may change")));
    }
    rows.extend(protected(view).map(|text| (Tone::Plain, text)));
    if view.leftovers > 0 {
        let processes = plural(view.leftovers as usize, "process", "processes");
        rows.push((Tone::Plain, format!("Stopped {processes} that the agent left running")));
    }
    rows.extend(flaky(view).map(|text| (Tone::Warn, text)));
    rows.extend(view.guard.as_ref().map(|guard| (Tone::Warn, guard_told(view, guard))));
    rows.extend(weak_seal(view.seal.as_ref()).map(|text| (Tone::Warn, text)));
    rows.extend(commits(view));
    rows.extend(finished(view).map(|text| (Tone::Plain, format!("Finished: {text}"))));
    rows.extend(next_step(view).map(|step| (Tone::Strong, format!("Next: {step}"))));
    rows
}

/// Checks that both failed and passed.
pub(crate) fn flaky(view: &RunView) -> Option<String> {
    let names: Vec<String> = view.flaky.iter().cloned().collect();
    (!names.is_empty()).then(|| format!("Flaky checks (failed and passed on the same tree): {}", files(&names)))
}

struct Row {
    mark: Mark,
    cells: [String; COLUMNS],
}

const COLUMNS: usize = 6;
const HEADINGS: [&str; COLUMNS] = ["Story", "Title", "Result", "Attempts", "Time", "Commit"];
const TITLE: usize = 1;
/// The order in which columns are dropped on a narrow screen. Id and result always stay.
const LEAST_WANTED: [usize; 4] = [TITLE, 3, 5, 4];
const LEAST_TITLE: usize = 8;
const WIDEST_ID: usize = 20;

fn table(view: &RunView, now: u64, style: &Style) -> String {
    // Best results first, each kind in its own group; undecided stories last.
    let names = StoryResult::KINDS.iter().map(|kind| Some(kind.name())).chain([None]);
    let groups: Vec<Vec<Row>> = names.map(|name| view.with_result(name).map(|story| row(view, story, now)).collect()).collect();
    let mut widths = HEADINGS.map(columns);
    for row in groups.iter().flatten() {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(columns(cell));
        }
    }
    widths[0] = widths[0].min(WIDEST_ID);
    let shown = choose(&mut widths, style.width);
    let mut out = line(None, &HEADINGS.map(str::to_owned), &widths, &shown, style);
    for (at, group) in groups.iter().filter(|group| !group.is_empty()).enumerate() {
        if at > 0 {
            out.push('\n');
        }
        for row in group {
            out.push_str(&line(Some(row.mark), &row.cells, &widths, &shown, style));
        }
    }
    out
}

fn row(view: &RunView, story: &StoryView, now: u64) -> Row {
    let commit = match (story.committed().and_then(|attempt| attempt.commit.as_ref()), story.kept()) {
        (Some(commit), _) if story.is_on_branch() => clean(commit.short()),
        (_, Some(kept)) => format!("kept {}", clean(kept.short())),
        (_, None) => String::new(),
    };
    let (id, title) = (clean(story.id.as_str()), clean(&story.title));
    let title = if title == id { String::new() } else { title };
    let attempts = story.attempts.len().to_string();
    let cells = [id, title, result_of(view, story).to_owned(), attempts, duration(story.duration_ms(now)), commit];
    Row { mark: story_mark(story), cells }
}

/// Chooses the columns that fit and the width of the title.
fn choose(widths: &mut [usize; COLUMNS], room: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..COLUMNS).collect();
    let total = |shown: &[usize], widths: &[usize; COLUMNS]| 2 + shown.iter().map(|at| widths[*at] + 2).sum::<usize>() - 2;
    let wanted = widths[TITLE];
    widths[TITLE] = LEAST_TITLE.min(wanted);
    for drop in LEAST_WANTED {
        if total(&shown, widths) <= room {
            break;
        }
        shown.retain(|at| *at != drop);
    }
    let over = total(&shown, widths).saturating_sub(room);
    widths[0] = widths[0].saturating_sub(over).max(1);
    let free = room.saturating_sub(total(&shown, widths));
    widths[TITLE] = wanted.min(widths[TITLE] + free);
    shown
}

fn line(mark: Option<Mark>, cells: &[String; COLUMNS], widths: &[usize; COLUMNS], shown: &[usize], style: &Style) -> String {
    let text = shown.iter().map(|at| pad(&cells[*at], widths[*at], style.unicode)).collect::<Vec<_>>().join("  ");
    let text = fit(text.trim_end(), style.width.saturating_sub(2), style.unicode);
    let sign = mark.map_or_else(|| " ".to_owned(), |mark| style.mark(mark));
    let tone = if mark.is_none() { Tone::Dim } else { Tone::Plain };
    format!("{sign} {}\n", style.paint(tone, &text))
}
