//! Audit results for `verdone audit`: on a terminal, and as Markdown for a pull request.

use std::fmt::Write as _;

use schemars::schema_for;
use verdone_core::base::id::Oid;
use verdone_core::evidence::FETCH_NOTES;
use verdone_core::evidence::audit::{Audit, Audited, Finding, Rerun, RerunOutcome, Squashed};
use verdone_core::verify::{Outcome, Proof, StoryResult};
use verdone_text::sentence::capitalise;

use crate::event_lines::name;
use crate::markdown::escape::{code, text};
use crate::result_text::{result_mark, result_words};
use crate::style::{Mark, Style, Tone};
use crate::width::{clean, wrap};
use crate::wording::{cost, duration, last_words, plural, short_digest};

/// Lists each story, then how many of them hold up.
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
        let mark = match standing(story) {
            Standing::Holds => result(story).map_or(Mark::Unproven, result_mark),
            Standing::Open => Mark::Unproven,
            Standing::Fails => Mark::Bad,
        };
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
    for gone in &found.missing {
        put(0, Some(Mark::Bad), Tone::Strong, &clean(gone.story.as_str()));
        put(2, None, Tone::Dim, &facts_of(&gone.commit, gone.proof, gone.evidence.as_deref()).join(style.dot()));
        put(2, Some(Mark::Bad), Tone::Plain, &sentence(&gone.problem));
    }
    for story in &found.squashed {
        put(0, Some(result_mark(StoryResult::done(story.proof))), Tone::Strong, &clean(story.story.as_str()));
        put(2, None, Tone::Dim, &facts_of(&story.commit, story.proof, story.evidence.as_deref()).join(style.dot()));
        put(2, Some(Mark::Info), Tone::Plain, &capitalise(&squashed(story)));
    }
    for line in summary(found) {
        put(0, None, Tone::Plain, &line);
    }
    out
}

/// The same as Markdown: a table of the stories, then the problems.
pub fn audit_markdown(found: &Audit) -> String {
    let mut out = String::from("# Verdone audit\n\n");
    for (at, line) in summary(found).iter().enumerate() {
        let line = text(line);
        let _ = if at == 0 { writeln!(out, "**{line}**\n") } else { writeln!(out, "{line}\n") };
    }
    if found.stories.is_empty() && found.missing.is_empty() && found.squashed.is_empty() {
        return out;
    }
    out.push_str("| ok | story | result | checks | commit | evidence |\n|---|---|---|---|---|---|\n");
    for story in &found.stories {
        let digest = story.evidence.as_deref().map_or_else(|| "none".to_owned(), |digest| cell(&short_digest(digest)));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {digest} |",
            match standing(story) {
                Standing::Holds => "yes",
                Standing::Open => "not run again",
                Standing::Fails => "**no**",
            },
            text(&title(story)),
            result(story).map_or("unknown", result_words),
            text(&checks(story)),
            cell(story.commit.short()),
        );
    }
    for gone in &found.missing {
        let digest = gone.evidence.as_deref().map_or_else(|| "none".to_owned(), |digest| cell(&short_digest(digest)));
        let (story, proof, commit) = (text(gone.story.as_str()), gone.proof, cell(gone.commit.short()));
        let _ = writeln!(out, "| **no** | {story} | {proof} | missing | {commit} | {digest} |");
    }
    for story in &found.squashed {
        let digest = story.evidence.as_deref().map_or_else(|| "none".to_owned(), |digest| cell(&short_digest(digest)));
        let (name, proof, into) = (text(story.story.as_str()), story.proof, cell(story.into.short()));
        let _ = writeln!(out, "| yes | {name} | {proof} | squashed into {into} | {} | {digest} |", cell(story.commit.short()));
    }
    let problems = found.stories.iter().flat_map(|story| story.problems.iter().map(|told| (story.name(), &story.commit, told)));
    let gone = found.missing.iter().map(|gone| (gone.story.as_str(), &gone.commit, &gone.problem));
    list(&mut out, "Problems", problems.chain(gone));
    let remarks = found.stories.iter().flat_map(|story| story.remarks.iter().map(|told| (story.name(), &story.commit, told)));
    list(&mut out, "Notes", remarks);
    let ran: Vec<(&Audited, &Rerun)> =
        found.stories.iter().flat_map(|story| story.reruns.iter().map(move |run| (story, run))).collect();
    if !ran.is_empty() {
        out.push_str("\n## Reruns\n\n| story | check | outcome | time |\n|---|---|---|---|\n");
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

fn list<'a>(out: &mut String, heading: &str, told: impl Iterator<Item = (&'a str, &'a Oid, &'a Finding)>) {
    for (at, (name, commit, finding)) in told.enumerate() {
        if at == 0 {
            let _ = write!(out, "\n## {heading}\n\n");
        }
        let _ = writeln!(out, "- **{}** ({}): {}", text(name), code(commit.short()), text(&finding.text));
    }
}

fn summary(found: &Audit) -> Vec<String> {
    let all = found.stories.len();
    let hold = found.stories.iter().filter(|story| story.holds()).count();
    let gone = found.missing.len();
    let mut lines = vec![match all {
        0 if gone > 0 => format!("{} missing.", are(gone, "story", "stories")),
        0 if found.squashed.is_empty() => "No story's commit is in this range.".to_owned(),
        0 => "No story has a separate commit in this range.".to_owned(),
        _ if found.interrupted => "Interrupted: not every check was run again, so the result is incomplete.".to_owned(),
        _ if gone > 0 => {
            format!(
                "{hold} of {} passed the audit; {} missing.",
                plural(all + gone, "story", "stories"),
                are(gone, "story", "stories")
            )
        }
        _ if hold == all => format!("{} passed the audit.", plural(all, "story", "stories")),
        1 => "The story failed the audit.".to_owned(),
        _ => format!("{hold} of {all} stories passed the audit; {} failed.", all - hold),
    }];
    lines.extend(results(found));
    if found.interrupted {
        let left = found.stories.iter().filter(|story| was_interrupted(story));
        let names: Vec<String> = left.map(|story| clean(story.name())).collect();
        lines.push(format!("Not run again: {}.", names.join(", ")));
    }
    if !found.squashed.is_empty() {
        let stories = plural(found.squashed.len(), "story was", "stories were");
        lines.push(format!("{stories} squashed into a commit with exactly the files that were verified."));
    }
    if found.elsewhere > 0 {
        lines.push(format!(
            "{}.",
            plural(
                found.elsewhere,
                "story from local runs is on another branch",
                "stories from local runs are on other branches"
            )
        ));
    }
    if found.beyond > 0 {
        let stories = plural(found.beyond, "story", "stories");
        lines.push(format!("{stories} from local runs could not be checked: the history is incomplete (shallow clone)."));
    }
    if found.bookkeeping > 0 {
        let commits = plural(found.bookkeeping, "commit", "commits");
        lines.push(format!(
            "{commits} in between only {} marks and progress.",
            if found.bookkeeping == 1 { "records" } else { "record" }
        ));
    }
    if found.others > 0 {
        let (commits, are) = (plural(found.others, "commit", "commits"), if found.others == 1 { "is" } else { "are" });
        lines.push(format!("{commits} in between {are} not Verdone's."));
    }
    // Sessions have no journal. A run's journal exists only where the run took place.
    let without = found.stories.iter().filter(|story| !story.journal && story.session.is_none()).count();
    if without > 0 {
        let of = if without == all { "their runs".to_owned() } else { format!("{without} of them") };
        lines.push(format!("No journal of {of} was found: commits and notes were only compared with each other."));
    }
    if all > 0 && found.notes == 0 {
        lines.push(format!("No evidence notes found; to fetch them: {FETCH_NOTES}"));
    }
    lines
}

/// Counts stories by result, best first.
fn results(found: &Audit) -> Option<String> {
    let of = |kind: &StoryResult| found.stories.iter().filter_map(result).filter(|result| result.name() == kind.name()).count();
    let counted = StoryResult::KINDS.iter().map(|kind| (of(kind), *kind)).filter(|(number, _)| *number > 0);
    let parts: Vec<String> = counted.map(|(number, kind)| format!("{number} {}", result_words(kind))).collect();
    (!parts.is_empty()).then(|| format!("By their evidence: {}.", parts.join(", ")))
}

fn result(story: &Audited) -> Option<StoryResult> {
    let proof = story.proof?;
    Some(StoryResult { outcome: story.outcome.unwrap_or(Outcome::Done), proof: Some(proof) })
}

fn are(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", plural(number, one, many), if number == 1 { "is" } else { "are" })
}

/// Whether a story's evidence holds up, or is still unknown.
enum Standing {
    Holds,
    Open,
    Fails,
}

fn standing(story: &Audited) -> Standing {
    if !story.holds() {
        Standing::Fails
    } else if was_interrupted(story) {
        Standing::Open
    } else {
        Standing::Holds
    }
}

fn was_interrupted(story: &Audited) -> bool {
    story.reruns.iter().any(|run| run.outcome == RerunOutcome::Interrupted)
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
    facts.push(result(story).map_or("proof unknown", result_words).to_owned());
    facts.push(checks(story));
    facts.extend(story.session.as_deref().map(|session| format!("session {}", clean(session))));
    facts.extend(story.cost_usd.map(cost));
    facts.extend(story.evidence.as_deref().map(short_digest));
    facts
}

fn facts_of(commit: &Oid, proof: Proof, evidence: Option<&str>) -> Vec<String> {
    let mut facts = vec![format!("commit {}", clean(commit.short())), proof.to_string()];
    facts.extend(evidence.map(short_digest));
    facts
}

fn squashed(story: &Squashed) -> String {
    let into = clean(story.into.short());
    let with = if story.with_later { ", with the stories that were built on it" } else { ", which has the same files" };
    format!("squashed into {into}{with}")
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
    format!("Run again, {} {} ({})", clean(&run.name), clean(&run.text), duration(run.duration_ms))
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
    capitalise(&clean(&finding.text))
}

/// Formats code for a table cell. In a table, a bar ends the cell even inside a code span.
fn cell(foreign: &str) -> String {
    code(foreign).replace('|', "\\|")
}
