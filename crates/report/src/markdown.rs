//! The Markdown report for the morning after: what is done, what is only claimed, what failed, what to review.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use verdone_core::base::id::StoryId;
use verdone_core::journal::view::{AttemptView, RunView, StoryView};
use verdone_core::verify::{Outcome, Proof, StoryResult, Tree};

use crate::event_lines::{judged, name};
use crate::guard::guard_told;
use crate::landing::{commits, finished, listed_hosts, next_step, weak_seal};
use crate::result_text::{argument, changed_label};
use crate::summary::{awaited, cost_per_verified, false_claims, flaky, tally, work};
use crate::wording::{
    WITH_STORY, checks, duration, given_up, is_verified, last_words, moment, plural, red, short_digest, token_kinds, usage,
};
use escape::{code, text};

pub(crate) mod escape;

/// Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        let _ = write!($out, $($arg)*);
    }};
}

/// Information that is not in the journal.
#[derive(Debug, Clone)]
pub struct Extra {
    /// Stories that the plan marks as done but that have no evidence.
    pub claimed: Vec<ListedStory>,
    /// Stories that are still open.
    pub open: Vec<ListedStory>,
    /// Where prompts and outputs are.
    pub run_dir: Option<String>,
    pub zone: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedStory {
    pub id: StoryId,
    pub title: String,
}

/// Longer lists are cut, and the rest is counted.
const LONGEST_LIST: usize = 200;

/// The sections of finished stories, best proof first.
const TAKEN: [(StoryResult, &str, &str); 5] = [
    (
        StoryResult::done(Proof::Verified),
        "Done and verified",
        "Their checks failed before the work and pass now; every gate passes.",
    ),
    (
        StoryResult::done(Proof::AgentTested),
        "Done and agent-tested",
        "Tests that the agent wrote fail without the work and pass with it; every gate passes with the old tests, too.",
    ),
    (
        StoryResult::done(Proof::Untested),
        "Done, but untested",
        "All checks pass, but none of them is known to fail without the work. Please review.",
    ),
    (StoryResult::done(Proof::Unchecked), "Done, but unchecked", "Committed without any check. Please review."),
    (StoryResult { outcome: Outcome::Accepted, proof: None }, "Accepted", "Accepted by a person after a review."),
];

pub fn markdown(view: &RunView, extra: &Extra) -> String {
    let now = view.active_ms();
    let mut out = head(view, extra, now);
    for (kind, title, meaning) in TAKEN {
        let stories: Vec<&StoryView> = view.with_result(Some(kind.name())).collect();
        section(&mut out, title, meaning, &stories, |out, story| committed(out, story, now));
    }
    let awaited: Vec<&StoryView> = awaited(view).collect();
    let meaning = "All checks pass, but a person must review them before they can land.";
    section(&mut out, "Needs review", meaning, &awaited, |out, story| to_review(out, story, now));
    let claimed = "Marked as done in the plan, without evidence.";
    listed(&mut out, "Claimed", claimed, &extra.claimed);
    let failed: Vec<&StoryView> = view.with_result(Some(StoryResult::FAILED.name())).collect();
    let kept = "Not committed. Each attempt is kept as a commit.";
    section(&mut out, "Failed", kept, &failed, |out, story| rejected(out, story, now));
    let unfinished: Vec<&StoryView> = view.with_result(None).collect();
    section(&mut out, "Not finished", "Started, but neither done nor failed.", &unfinished, |out, story| {
        rejected(out, story, now);
    });
    let touched = |listed: &&ListedStory| view.story(&listed.id).is_none();
    let open: Vec<ListedStory> = extra.open.iter().filter(touched).cloned().collect();
    listed(&mut out, "Still open", "Not started in this run.", &open);
    review(&mut out, view);
    out
}

fn head(view: &RunView, extra: &Extra, now: u64) -> String {
    let run = view.run.as_ref().map_or("unknown", |run| run.as_str());
    let mut out = format!("# Verdone report: run {}\n\n", text(run));
    put!(out, "**{}.**\n\n", text(&tally(view)));
    let mut facts = vec![("Plan", code(&view.plan)), ("Agent", code(&view.agent))];
    facts.extend(view.branch.as_ref().map(|branch| ("Branch", code(branch))));
    if let Some(started) = view.started {
        let until = view.ended.map_or_else(|| "still running".to_owned(), |ended| format!("to {}", moment(ended, &extra.zone)));
        facts.push(("Time", format!("{} {until} ({})", moment(started, &extra.zone), duration(view.elapsed_ms(now)))));
    }
    facts.push(("Work", text(&work(view, now))));
    let used = usage(view.cost_usd, view.tokens).unwrap_or_else(|| "not reported by the agent".to_owned());
    let each = cost_per_verified(view).map_or_else(String::new, |each| format!("; {each}"));
    facts.push(("Cost", format!("{used}{each}")));
    facts.extend(view.tokens_by_kind.map(|kinds| ("Tokens", token_kinds(kinds))));
    facts.extend(finished(view).map(|said| ("Finish", text(&said))));
    facts.extend(commits(view).into_iter().map(|(_, said)| ("Commits", text(&said))));
    facts.extend(next_step(view).map(|step| ("Next", text(&step))));
    facts.extend(weak_seal(view.seal.as_ref()).map(|said| ("Seal", text(&said))));
    facts.extend(listed_hosts(view.seal.as_ref()).map(|said| ("Network", text(&said))));
    facts.extend(extra.run_dir.as_ref().map(|dir| ("Files", code(dir))));
    for (name, value) in facts {
        put!(out, "- {name}: {value}\n");
    }
    out
}

fn section(out: &mut String, title: &str, meaning: &str, stories: &[&StoryView], mut each: impl FnMut(&mut String, &StoryView)) {
    if stories.is_empty() {
        return;
    }
    put!(out, "\n## {title} ({})\n\n{meaning}\n\n", stories.len());
    for story in stories {
        each(out, story);
    }
}

fn listed(out: &mut String, title: &str, meaning: &str, stories: &[ListedStory]) {
    if stories.is_empty() {
        return;
    }
    put!(out, "\n## {title} ({})\n\n{meaning}\n\n", stories.len());
    for story in stories.iter().take(LONGEST_LIST) {
        put!(out, "- {}\n", heading(&story.id, &story.title));
    }
    if stories.len() > LONGEST_LIST {
        put!(out, "- and {} more\n", stories.len() - LONGEST_LIST);
    }
}

/// Bold keeps foreign text away from the start of the line, where most Markdown syntax is recognised.
fn heading(id: &StoryId, title: &str) -> String {
    format!("**{}**", text(&name(id.as_str(), title)))
}

fn story_line(story: &StoryView, now: u64) -> String {
    let mut facts = vec![
        plural(story.attempts.len(), "attempt", "attempts"),
        plural(story.turns(), "turn", "turns"),
        duration(story.duration_ms(now)),
    ];
    facts.extend(usage(story.cost_usd, story.tokens));
    format!("- {}: {}\n", heading(&story.id, &story.title), facts.join(", "))
}

fn committed(out: &mut String, story: &StoryView, now: u64) {
    out.push_str(&story_line(story, now));
    let Some(attempt) = story.committed() else { return };
    if let Some(commit) = &attempt.commit {
        let files = plural(attempt.files as usize, "file", "files");
        put!(out, "  - commit {}, {files}: {}\n", code(commit.short()), code(&format!("git show {}", commit.short())));
    }
    if let Some(seen) = attempt.verifications.last() {
        put!(out, "  - evidence: {}\n", text(&checks(seen.report.runs_on(Tree::Attempt))));
    }
    if let Some(by) = story.review.as_ref().and_then(|review| review.settled_by.as_ref()) {
        put!(out, "  - accepted by {}\n", text(by));
    }
    reasons(out, story, attempt);
    if let Some(digest) = &attempt.evidence {
        put!(out, "  - note: {}\n", code(&short_digest(digest)));
    }
    if let Some(claim) = attempt.turns.last().and_then(|turn| turn.claim.as_ref()) {
        put!(out, "  - claimed: {}\n", text(&last_words(claim)));
    }
    // Newer journals list it among the reasons.
    if let Some(found) = attempt.red.filter(|_| attempt.verifications.last().is_none_or(|seen| seen.report.reasons.is_empty())) {
        put!(out, "  - {}\n", red(found));
    }
    if let Some(judge) = attempt.verifications.last().and_then(|seen| seen.judge.as_ref()) {
        put!(out, "  - {}\n", text(&judged(judge, ", ").1));
    }
    for each in attempt.criteria.iter().take(LONGEST_LIST) {
        let prover = match &each.prover {
            Some(prover) => format!("proven by {}", text(prover)),
            None if is_verified(attempt) => WITH_STORY.to_owned(),
            None => "**not proven**".to_owned(),
        };
        put!(out, "  - criterion: {}: {prover}\n", text(&each.text));
    }
    for earlier in story.attempts.iter().filter(|attempt| attempt.kept.is_some()) {
        kept(out, earlier);
    }
}

/// Why it has this proof, or why a person had to review it, and which tests and configuration it changed.
fn reasons(out: &mut String, story: &StoryView, attempt: &AttemptView) {
    let report = attempt.verifications.last().map(|seen| &seen.report);
    let seen = || report.iter().flat_map(|report| &report.reasons).map(ToString::to_string).collect::<Vec<_>>();
    let told = story.review.as_ref().map_or_else(seen, |review| review.reasons.clone());
    for reason in told.iter().take(LONGEST_LIST) {
        put!(out, "  - {}\n", text(reason));
    }
    if let Some(label) = report.and_then(|report| changed_label(&report.protected)) {
        put!(out, "  - {}\n", text(&label));
    }
}

fn to_review(out: &mut String, story: &StoryView, now: u64) {
    out.push_str(&story_line(story, now));
    let Some(attempt) = story.attempts.last() else { return };
    if let Some(proof) = story.result.and_then(|result| result.proof) {
        put!(out, "  - proof so far: {proof}\n");
    }
    reasons(out, story, attempt);
    if let Some(review) = &story.review {
        let place = if review.stacked { ", which later stories build on" } else { "" };
        put!(out, "  - the work: {}{place}\n", code(&format!("git show {}", review.work.short())));
    }
    let id = argument(&story.id);
    put!(out, "  - then {} or {}\n", code(&format!("verdone accept {id}")), code(&format!("verdone reject {id}")));
}

fn rejected(out: &mut String, story: &StoryView, now: u64) {
    out.push_str(&story_line(story, now));
    if let Some(reason) = &story.reason {
        put!(out, "  - reason: {}\n", text(reason));
    }
    for attempt in &story.attempts {
        kept(out, attempt);
    }
}

fn kept(out: &mut String, attempt: &AttemptView) {
    let why = match (&attempt.rejection, &attempt.reason) {
        (Some(why), reason) => given_up(why, reason.as_deref().unwrap_or_default()),
        (None, _) => "not decided".to_owned(),
    };
    put!(out, "  - attempt {}: {}\n", attempt.attempt, text(&why));
    if let Some(kept) = &attempt.kept {
        put!(out, "    - kept as {}: {}\n", code(kept.short()), code(&format!("git show {}", kept.short())));
        if let Some(base) = &attempt.base {
            put!(out, "    - all changes: {}\n", code(&format!("git diff {} {}", base.short(), kept.short())));
        }
    }
}

fn review(out: &mut String, view: &RunView) {
    let mut points: Vec<String> = Vec::new();
    points.extend(false_claims(view.false_claims).map(|said| format!("{said}.")));
    let weak = [
        (view.counts.untested, "whose checks are not known to fail without the work"),
        (view.counts.unchecked, "without any check"),
    ];
    for (number, what) in weak.into_iter().filter(|(number, _)| *number > 0) {
        points.push(format!("{} to review, {what}.", plural(number, "commit", "commits")));
    }
    let files = |names: &std::collections::BTreeSet<String>| {
        let more = names.len().saturating_sub(LONGEST_LIST);
        let mut list = names.iter().take(LONGEST_LIST).map(|name| code(name)).collect::<Vec<_>>().join(", ");
        if more > 0 {
            put!(list, " and {more} more");
        }
        list
    };
    if !view.restored.is_empty() {
        points.push(format!("Ignored the agent's changes to files that only Verdone may change: {}.", files(&view.restored)));
    }
    if !view.protected.is_empty() {
        points.push(format!("Attempts changed tests or configuration: {}.", files(&view.protected)));
    }
    if view.leftovers > 0 {
        points.push(format!("Stopped {} that the agent left running.", plural(view.leftovers as usize, "process", "processes")));
    }
    points.extend(flaky(view).map(|said| format!("{}.", text(&said))));
    points.extend(view.guard.as_ref().map(|guard| format!("{}.", text(&guard_told(view, guard)))));
    for story in view.touched.iter().filter(|story| story.regressions > 0) {
        let times = plural(story.regressions as usize, "time", "times");
        points.push(format!("{} was done, but later work broke it ({times}).", heading(&story.id, &story.title)));
    }
    if !view.not_checked_again.is_empty() {
        let names: Vec<String> = view.not_checked_again.iter().take(LONGEST_LIST).map(|id| code(id.as_str())).collect();
        points.push(format!(
            "Proven earlier, but not checked again (no time left, or the tests could not run): {}.",
            names.join(", ")
        ));
    }
    points.extend(view.undone.iter().map(|what| format!("Undone: {}.", text(what))));
    if points.is_empty() {
        return;
    }
    out.push_str("\n## To review\n\n");
    for point in points {
        put!(out, "- {point}\n");
    }
}
