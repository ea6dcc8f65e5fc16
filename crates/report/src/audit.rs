//! What an audit found, for `verdone audit`: on a terminal, and as Markdown for a pull request.

use std::fmt::Write as _;

use schemars::schema_for;
use verdone_core::audit::{Audit, Audited, Finding, Rerun, RerunOutcome};

use crate::event_lines::{name, verdict_mark};
use crate::markdown::escape::{code, text};
use crate::style::{Mark, Style, Tone};
use crate::width::{clean, wrap};
use crate::words::{cost, duration, last_words, plural, short_digest};

/// What brings notes over from where they were pushed to.
const FETCH: &str = "git fetch origin refs/notes/verdone:refs/notes/verdone";

/// One story after the other, then how many hold.
pub fn audit(found: &Audit, style: &Style) -> String {
    let mut out = String::new();
    let mut put = |indent: usize, mark: Option<Mark>, tone: Tone, text: &str| {
        let sign = mark.map_or_else(|| " ".to_owned(), |mark| style.mark(mark));
        let width = style.width.saturating_sub(indent + 2).max(1);
        for (at, row) in wrap(text, width, 8, style.unicode).iter().enumerate() {
            let sign = if at == 0 { sign.as_str() } else { " " };
            let line = format!("{}{sign} {}", " ".repeat(indent), style.paint(tone, row));
            out.push_str(line.trim_end());
            out.push('\n');
        }
    };
    for story in &found.stories {
        let mark = if story.holds() { story.verdict.map_or(Mark::Unproven, verdict_mark) } else { Mark::Bad };
        put(0, Some(mark), Tone::Strong, &title(story));
        put(2, None, Tone::Dim, &facts(story).join(style.dot()));
        if let Some(claim) = &story.claim {
            put(2, None, Tone::Dim, &format!("claimed: {}", last_words(claim)));
        }
        for problem in &story.problems {
            put(2, Some(Mark::Bad), Tone::Plain, &sentence(problem));
        }
        for remark in &story.remarks {
            put(2, Some(Mark::Warn), Tone::Plain, &sentence(remark));
        }
        for run in story.reruns.iter().filter(|run| run.outcome == RerunOutcome::Passed) {
            put(2, Some(Mark::Good), Tone::Plain, &again(run));
        }
    }
    for line in summary(found) {
        put(0, None, Tone::Plain, &line);
    }
    out
}

/// The same as Markdown: a table of the stories, then what does not hold.
pub fn audit_markdown(found: &Audit) -> String {
    let mut out = String::from("# Verdone audit\n\n");
    for (at, line) in summary(found).iter().enumerate() {
        let line = text(line);
        let _ = if at == 0 { writeln!(out, "**{line}**\n") } else { writeln!(out, "{line}\n") };
    }
    if found.stories.is_empty() {
        return out;
    }
    out.push_str("| holds | story | verdict | checks | commit | evidence |\n|---|---|---|---|---|---|\n");
    for story in &found.stories {
        let digest = story.evidence.as_deref().map_or_else(|| "none".to_owned(), |digest| cell(&short_digest(digest)));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {digest} |",
            if story.holds() { "yes" } else { "**no**" },
            text(&title(story)),
            story.verdict.map_or("unknown", |verdict| verdict.words()),
            text(&checks(story)),
            cell(story.commit.short()),
        );
    }
    list(&mut out, "What does not hold", found, |story| &story.problems);
    list(&mut out, "To know", found, |story| &story.remarks);
    let ran: Vec<(&Audited, &Rerun)> =
        found.stories.iter().flat_map(|story| story.reruns.iter().map(move |run| (story, run))).collect();
    if !ran.is_empty() {
        out.push_str("\n## Run again\n\n| story | check | outcome | time |\n|---|---|---|---|\n");
        for (story, run) in ran {
            let (name, check, time) = (text(story.name()), text(&run.name), duration(run.duration_ms));
            let _ = writeln!(out, "| {name} | {check} | {} | {time} |", rerun_words(run.outcome));
        }
    }
    out
}

/// The JSON Schema of `verdone audit --json`.
pub fn audit_schema() -> serde_json::Value {
    let mut schema = schema_for!(Audit).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "Verdone audit".into());
    }
    schema
}

fn list(out: &mut String, heading: &str, found: &Audit, of: impl Fn(&Audited) -> &Vec<Finding>) {
    if found.stories.iter().all(|story| of(story).is_empty()) {
        return;
    }
    let _ = write!(out, "\n## {heading}\n\n");
    for story in &found.stories {
        for finding in of(story) {
            let _ = writeln!(out, "- **{}** ({}): {}", text(story.name()), code(story.commit.short()), text(&finding.text));
        }
    }
}

fn summary(found: &Audit) -> Vec<String> {
    let all = found.stories.len();
    let hold = found.stories.iter().filter(|story| story.holds()).count();
    let mut lines = vec![match all {
        0 => "No story's commit is in this range.".to_owned(),
        _ if hold == all => format!("{} {}.", plural(all, "story", "stories"), if all == 1 { "holds" } else { "hold" }),
        1 => "The story does not hold.".to_owned(),
        _ => format!("{hold} of {all} stories hold; {} not.", does(all - hold)),
    }];
    if found.others > 0 {
        let (commits, are) = (plural(found.others, "commit", "commits"), if found.others == 1 { "is" } else { "are" });
        lines.push(format!("{commits} in between {are} not Verdone's."));
    }
    let without = found.stories.iter().filter(|story| !story.journal).count();
    if without > 0 {
        let of = if without == all { "their runs".to_owned() } else { format!("{without} of them") };
        lines.push(format!("No journal of {of} is here: commits and notes were compared with each other."));
    }
    if all > 0 && found.notes == 0 {
        lines.push(format!("No evidence notes are here; to get them: {FETCH}"));
    }
    lines
}

fn does(number: usize) -> String {
    if number == 1 { "1 does".to_owned() } else { format!("{number} do") }
}

fn title(story: &Audited) -> String {
    match (&story.story, &story.title) {
        (Some(id), Some(title)) => name(id.as_str(), title),
        (Some(id), None) => clean(id.as_str()),
        (None, _) => clean(&story.subject),
    }
}

fn facts(story: &Audited) -> Vec<String> {
    let mut facts = vec![format!("commit {}", clean(story.commit.short()))];
    facts.push(story.verdict.map_or("verdict unknown", |verdict| verdict.words()).to_owned());
    facts.push(checks(story));
    facts.extend(story.cost_usd.map(cost));
    facts.extend(story.evidence.as_deref().map(short_digest));
    facts
}

fn checks(story: &Audited) -> String {
    let passed = story.checks.iter().filter(|proof| proof.outcome.passed()).count();
    match story.checks.len() {
        0 => "no checks".to_owned(),
        all if all == passed => format!("{} passed", plural(all, "check", "checks")),
        all => format!("{passed} of {} passed", plural(all, "check", "checks")),
    }
}

fn again(run: &Rerun) -> String {
    format!("Run again on a clean checkout, {} {} ({})", clean(&run.name), clean(&run.text), duration(run.duration_ms))
}

fn rerun_words(outcome: RerunOutcome) -> &'static str {
    match outcome {
        RerunOutcome::Passed => "passed",
        RerunOutcome::Flaky => "flaky",
        RerunOutcome::NotAllowed => "not run",
        RerunOutcome::Interrupted => "interrupted",
        RerunOutcome::Failed => "**failed**",
    }
}

fn sentence(finding: &Finding) -> String {
    crate::words::sentence(&clean(&finding.text))
}

/// Code in a table: there, a bar ends the cell even inside of code.
fn cell(foreign: &str) -> String {
    code(foreign).replace('|', "\\|")
}
