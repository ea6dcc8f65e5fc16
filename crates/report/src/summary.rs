//! The end of a run on one screen: what is done, what is only claimed, what failed, where the commits are, and what to do next.

use verdone_core::tamper::Severity;
use verdone_core::verify::Proof;
use verdone_core::view::{FalseClaims, RunView, StoryView};

use crate::event_lines::{files, verdict_mark};
use crate::guard::guard_told;
use crate::landing::{commits, next_step, weak_seal};
use crate::style::{Mark, Style, Tone};
use crate::width::{clean, columns, fit, pad, wrap};
use crate::words::{cost, duration, plural, sentence, usage};

/// Verified first and apart from everything that is worth less.
const GROUPS: [Option<Proof>; 5] = [
    Some(Proof::Verified),
    Some(Proof::Untested),
    Some(Proof::Unchecked),
    Some(Proof::Failed),
    None,
];

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

/// The same words in the summary, in `status` and in the report.
pub(crate) fn verdict_words(view: &RunView, story: &StoryView) -> &'static str {
    match story.verdict {
        Some(verdict) => verdict.words(),
        None if story.undone => "undone",
        None if view.ended.is_none() && view.current.as_ref().is_some_and(|current| current.story == story.id) => "in progress",
        None => "not done",
    }
}

pub(crate) fn story_mark(story: &StoryView) -> Mark {
    match story.verdict {
        Some(verdict) => verdict_mark(verdict),
        None if story.undone => Mark::Back,
        None => Mark::Info,
    }
}

pub(crate) fn tally(view: &RunView) -> String {
    let counts = view.counts;
    let mut parts = vec![format!("{} verified", counts.verified)];
    let rest = [(counts.unproven, "unproven"), (counts.unverified, "unverified"), (counts.failed, "failed")];
    parts.extend(rest.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    format!("{}; {} of {} done in the plan", parts.join(", "), view.done(), plural(view.stories, "story", "stories"))
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

/// Unexpected changes to what judges the work, by severity.
pub(crate) fn alarms(view: &RunView) -> Option<String> {
    let count =
        |severity| view.alarms.iter().filter(|alarm| alarm.severity == severity && !alarm.expected && !alarm.is_undone()).count();
    let all = [Severity::High, Severity::Medium, Severity::Low].map(|severity| (count(severity), severity.words()));
    let parts: Vec<String> = all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    (!parts.is_empty()).then(|| format!("Changes to tests, gates or their configuration: {}", parts.join(", ")))
}

/// Failed stories are part of the price.
pub(crate) fn cost_per_verified(view: &RunView) -> Option<String> {
    let all = view.cost_usd.filter(|_| view.counts.verified > 0)?;
    Some(format!("{} per verified story", cost(all / view.counts.verified as f64)))
}

fn totals(view: &RunView, now: u64) -> Vec<(Tone, String)> {
    let mut rows = vec![(Tone::Strong, tally(view))];
    rows.extend(false_claims(view.false_claims).map(|text| (Tone::Warn, text)));
    let used = usage(view.cost_usd, view.tokens).map_or_else(String::new, |used| format!("; {used}"));
    rows.push((Tone::Plain, format!("{}{used}", work(view, now))));
    rows.extend(cost_per_verified(view).map(|each| (Tone::Plain, each)));
    if !view.restored.is_empty() {
        let files = plural(view.restored.len(), "file", "files");
        rows.push((Tone::Warn, format!("Ignored the agent's changes to {files} that only Verdone may change")));
    }
    rows.extend(alarms(view).map(|text| (Tone::Warn, text)));
    if view.leftovers > 0 {
        let processes = plural(view.leftovers as usize, "process", "processes");
        rows.push((Tone::Plain, format!("Stopped {processes} that the agent left running")));
    }
    rows.extend(flaky(view).map(|text| (Tone::Warn, text)));
    rows.extend(view.guard.as_ref().map(|guard| (Tone::Warn, guard_told(view, guard))));
    rows.extend(weak_seal(view.seal.as_ref()).map(|text| (Tone::Warn, text)));
    rows.extend(commits(view));
    if let Some(finish) = view.finish {
        let code = view.exit_code.map_or_else(String::new, |code| format!(" (exit code {code})"));
        let reason = sentence(&clean(view.reason.as_deref().unwrap_or_default()));
        rows.push((Tone::Plain, format!("Finished: {}{code}. {reason}", finish.name())));
    }
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
const HEADINGS: [&str; COLUMNS] = ["Story", "Title", "Verdict", "Attempts", "Time", "Commit"];
const TITLE: usize = 1;
/// Given up in this order when the screen is narrow; id and verdict stay.
const LEAST_WANTED: [usize; 4] = [TITLE, 3, 5, 4];
const LEAST_TITLE: usize = 8;
const WIDEST_ID: usize = 20;

fn table(view: &RunView, now: u64, style: &Style) -> String {
    let groups: Vec<Vec<Row>> =
        GROUPS.iter().map(|verdict| view.with_verdict(*verdict).map(|story| row(view, story, now)).collect()).collect();
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
    let commit = match (story.verdict, story.committed().and_then(|attempt| attempt.commit.as_ref()), story.kept()) {
        (Some(Proof::Verified | Proof::Untested | Proof::Unchecked), Some(commit), _) => {
            clean(commit.short())
        }
        (_, _, Some(kept)) => format!("kept {}", clean(kept.short())),
        (_, _, None) => String::new(),
    };
    let (id, title) = (clean(story.id.as_str()), clean(&story.title));
    let title = if title == id { String::new() } else { title };
    let attempts = story.attempts.len().to_string();
    let cells = [id, title, verdict_words(view, story).to_owned(), attempts, duration(story.duration_ms(now)), commit];
    Row { mark: story_mark(story), cells }
}

/// Which columns fit, and how wide the title may be.
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
