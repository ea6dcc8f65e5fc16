//! Turns an event into the lines that people read while a run is active: the same on a terminal and in a log file.

use verdone_core::agent::{SessionUse, TurnOutcome};
use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::verdict::Red;
use verdone_core::check::CheckRun;
use verdone_core::done::{JudgeFact, JudgeRecord};
use verdone_core::journal::agent_tools::ClaimStatus;
use verdone_core::journal::control::Request;
use verdone_core::journal::event::{Event, Place, Rejection, Verified};
use verdone_core::journal::view::RunView;
use verdone_core::lifecycle::{ScriptEffect, ScriptExit};
use verdone_core::verify::{Failure, Outcome, Reason, StoryResult, Tree, VerifyReport};
use verdone_text::sentence::capitalise;

use crate::guard::{guard_failed, guard_file};
use crate::landing::{landed, listed_hosts, not_landed, weak_seal};
use crate::result_text::{argument, changed_label, committed_as, first_of, result_mark};
use crate::style::{Mark, Style, Tone};
use crate::width::{clean, clean_line, fit, wrap};
use crate::wording::{
    because, check_mark, checks, compacted, context, duration, ended, facts, given_up, plural, red, usage, wait_cause, wait_words,
};

/// How many lines of a failed check are shown. Its output file has the rest.
const TAIL_LINES: usize = 5;
/// Sentences that need more rows than this are cut.
const MOST_ROWS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// A finding, with its mark.
    Finding { mark: Mark, indent: usize, text: String },
    /// Text written by someone else.
    Quote { indent: usize, text: String },
}

impl Line {
    pub(crate) fn top(mark: Mark, text: impl Into<String>) -> Self {
        Self::Finding { mark, indent: 0, text: text.into() }
    }

    fn under(mark: Mark, text: impl Into<String>) -> Self {
        Self::Finding { mark, indent: 2, text: text.into() }
    }

    /// One line of agent output.
    pub(crate) fn quote(text: &str) -> Self {
        Self::Quote { indent: 2, text: clean_line(text) }
    }

    /// One line of output from a lifecycle script. It starts in the first column, where agent output never starts.
    pub(crate) fn script(name: &str, text: &str) -> Self {
        Self::Quote { indent: 0, text: format!("{name}: {}", clean_line(text)) }
    }

    /// Whether `--quiet` still shows this line.
    pub(crate) fn is_problem(&self) -> bool {
        match self {
            Self::Finding { mark: Mark::Bad | Mark::Warn | Mark::Back | Mark::Unproven, .. } | Self::Quote { .. } => true,
            Self::Finding { mark: Mark::Good | Mark::Info | Mark::Story, .. } => false,
        }
    }

    /// The same line for a page without headings: it names its story.
    pub(crate) fn without_heading(self, story: Option<&str>) -> Self {
        match (self, story) {
            (Self::Finding { mark, indent, text }, Some(story)) if indent > 0 => Self::top(mark, format!("{story}: {text}")),
            (line, _) => line,
        }
    }

    /// Rows of at most `width` columns; without a width, one row.
    pub(crate) fn rows(&self, style: &Style, width: Option<usize>) -> Vec<String> {
        match self {
            Self::Quote { indent, text } => {
                let bar = if style.unicode { "│" } else { "|" };
                let row = format!("{}{bar} {text}", " ".repeat(*indent));
                let row = width.map_or(row.clone(), |width| fit(&row, width, style.unicode));
                vec![style.paint(Tone::Dim, &row)]
            }
            Self::Finding { mark, indent, text } => {
                let lead = indent + 2;
                let rows = match width {
                    Some(width) => wrap(text, width.saturating_sub(lead), MOST_ROWS, style.unicode),
                    None => vec![text.clone()],
                };
                let tone = if *mark == Mark::Story { Tone::Strong } else { Tone::Plain };
                let first = format!("{}{} ", " ".repeat(*indent), style.mark(*mark));
                let next = " ".repeat(lead);
                rows.iter()
                    .enumerate()
                    .map(|(at, row)| format!("{}{}", if at == 0 { &first } else { &next }, style.paint(tone, row)))
                    .collect()
            }
        }
    }
}

/// The lines for an event. `view` already contains it.
pub(crate) fn lines(view: &RunView, event: &Event, style: &Style) -> Vec<Line> {
    let dot = style.dot();
    match event {
        Event::RunStarted { .. } => started(view, dot),
        Event::BaselineChecked { green, runs } => baseline(*green, runs, dot),
        Event::StorySelected { place, title, number, of, .. } => vec![selected(place, title, *number, *of, dot)],
        Event::RedChecked { red: found, .. } => vec![Line::under(red_mark(*found), capitalise(red(*found)))],
        Event::TurnStarted { place } if place.turn > 1 => {
            vec![Line::under(Mark::Info, format!("Turn {}: retry with feedback", place.turn))]
        }
        Event::TurnEnded { outcome, duration_ms, usage: used, leftovers, session, .. } => {
            let used = [usage(used.cost_usd, used.tokens), session.as_ref().and_then(context)];
            let used = used.into_iter().flatten().reduce(|one, other| format!("{one}{dot}{other}"));
            let mut lines = vec![turn_ended(outcome, *duration_ms, used, dot)];
            lines.extend(session.iter().flat_map(|session| session_told(view, session)));
            lines.extend(left_behind(*leftovers));
            lines
        }
        Event::WaitStarted { reason, until, ahead: true, .. } => {
            vec![Line::under(Mark::Warn, format!("{}{dot}waiting until {until:.0}", clean(reason)))]
        }
        // The preceding line says what happened.
        Event::WaitStarted { why, until, ahead: false, .. } => {
            let cause = view.waiting.as_ref().map_or_else(|| wait_cause(*why).to_owned(), wait_words);
            vec![Line::under(Mark::Warn, format!("{cause}{dot}waiting until {until:.0}"))]
        }
        Event::WaitEnded { .. } => vec![Line::under(Mark::Info, "Continuing after the wait")],
        Event::Verified(seen) => verified(view, seen, dot),
        Event::Committed { commit, proof, outcome, files, noted, .. } => {
            let files = plural(*files as usize, "file", "files");
            let result = StoryResult { outcome: *outcome, proof: Some(*proof) };
            let text = format!("Committed {}{dot}{}{dot}{files}", clean(commit.short()), committed_as(result));
            let mut lines = vec![Line::under(result_mark(result), text)];
            if !noted {
                lines.push(Line::under(Mark::Warn, "Could not write the evidence note; the evidence is in the journal"));
            }
            lines
        }
        Event::Marked { proof, files, reason, .. } => {
            let files = plural(*files as usize, "file", "files");
            let result = StoryResult::done(*proof);
            let mut lines = vec![Line::under(result_mark(result), format!("Done{dot}{}{dot}{files}", committed_as(result)))];
            lines.extend(reason.iter().map(|reason| Line::under(Mark::Warn, because("Not committed", reason))));
            lines
        }
        Event::CommitRefused { message, .. } => vec![Line::under(Mark::Bad, because("Commit refused", message))],
        // The line about the review says why.
        Event::AttemptRejected { rejection: Rejection::NeedsReview, .. } => Vec::new(),
        Event::AttemptRejected { place, rejection: why, reason } => {
            let why = given_up(why, reason);
            vec![Line::under(Mark::Bad, format!("Gave up attempt {}: {why}", place.attempt))]
        }
        Event::AttemptKept { kept: commit, files, .. } => vec![Line::under(Mark::Back, kept(commit, *files))],
        Event::AttemptDropped { reason, .. } => vec![Line::under(Mark::Warn, because("Dropped the attempt", reason))],
        Event::Landed { branch, from, to, .. } => vec![Line::top(Mark::Good, landed(view, branch, from, to))],
        Event::LandingRefused { reason } => vec![Line::top(Mark::Warn, not_landed(reason))],
        Event::RegressionChecked { held, runs, not_checked, .. } => regression(*held, runs, not_checked, dot),
        Event::Regressed { story, runs, again } => regressed(story, runs, *again),
        Event::StoryFailed { story, reason } => {
            vec![Line::top(Mark::Bad, because(&format!("{} failed", clean(story.as_str())), reason))]
        }
        Event::ReviewNeeded { place, work, reasons, .. } => review_needed(&place.story, work, reasons),
        Event::Accepted { story, commit, proof, by, .. } => {
            let (story, commit, by) = (clean(story.as_str()), clean(commit.short()), clean(by));
            vec![Line::top(Mark::Good, format!("Accepted {story} as {commit}{dot}{proof}{dot}by {by}"))]
        }
        Event::Refused { story, by } => {
            vec![Line::top(Mark::Bad, format!("{} was rejected by {}", clean(story.as_str()), clean(by)))]
        }
        Event::ScriptRan { script, exit, meaning, .. } if *exit != ScriptExit::Code(0) => {
            vec![Line::top(script_mark(*meaning), format!("Script {}: {}", script.name(), clean(&exit.describe())))]
        }
        Event::GuardFailed { failures, denied, cause, file, .. } => {
            let mut lines = vec![Line::under(Mark::Warn, capitalise(&guard_failed(u64::from(*failures), u64::from(*denied), cause)))];
            lines.extend(guard_file(view, file).map(|path| Line::under(Mark::Info, format!("details in {path}"))));
            lines
        }
        Event::IterationSkipped { place } => {
            vec![Line::top(Mark::Info, format!("Skipped {}, as the script asked", clean(place.story.as_str())))]
        }
        Event::Asked { request } => vec![Line::top(Mark::Info, format!("Requested: {}", asked(request)))],
        Event::StopRequested { signal } => {
            vec![Line::top(Mark::Warn, format!("{}: cleaning up, then stopping", signal_name(*signal)))]
        }
        Event::RunStopping { finish, reason } => {
            vec![Line::top(Mark::Info, because(&format!("Stopping ({})", finish.name()), reason))]
        }
        Event::Undone { what, .. } => vec![Line::top(Mark::Back, format!("Undone: {}", clean(what)))],
        Event::TurnStarted { .. }
        | Event::AttemptStarted { .. }
        | Event::LandingStarted { .. }
        | Event::Reapplied { .. }
        | Event::Retired
        | Event::CommitStarted { .. }
        | Event::RegressionStarted { .. }
        // The preceding line says what is broken.
        | Event::Reopened { .. }
        // Its output was shown already and is in the log.
        | Event::ScriptRan { .. }
        | Event::RunStopped { .. } => Vec::new(),
    }
}

/// Returns no lines if no check had to run.
fn regression(held: u32, runs: &[CheckRun], not_checked: &[StoryId], dot: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    if !runs.is_empty() {
        let took = duration(runs.iter().map(|run| run.duration_ms).sum());
        let mark = if runs.iter().all(|run| run.outcome.passed()) { Mark::Good } else { Mark::Bad };
        let stories = plural(held as usize, "proven story", "proven stories");
        lines.push(Line::top(mark, format!("Regression check: {stories} still {}{dot}{took}", passes(held))));
    }
    if !not_checked.is_empty() {
        let names: Vec<String> = not_checked.iter().map(ToString::to_string).collect();
        lines.push(Line::top(
            Mark::Warn,
            format!("Not checked again (no time left, or the tests could not run): {}", files(&names)),
        ));
    }
    lines
}

fn regressed(story: &StoryId, runs: &[CheckRun], again: bool) -> Vec<Line> {
    let what = if again { "fails again" } else { "was done and fails now; reopened" };
    let mut lines = vec![Line::top(Mark::Bad, format!("{} {what}: {}", clean(story.as_str()), checks(runs)))];
    lines.extend(runs.iter().filter(|run| !run.outcome.passed()).flat_map(tail));
    lines
}

/// What to review, why, and which command to type next.
fn review_needed(story: &StoryId, work: &Oid, reasons: &[String]) -> Vec<Line> {
    let why = because(&format!("Needs review: {}", clean(story.as_str())), &first_of(reasons));
    let id = argument(story);
    let next = format!("git show {}, then verdone accept {id} or verdone reject {id}", clean(work.short()));
    vec![Line::top(Mark::Warn, why), Line::under(Mark::Info, next)]
}

/// Who was asked to refute the work, and the answer. The findings are in the verification's reason.
pub(crate) fn judged(judge: &JudgeRecord, dot: &str) -> (Mark, String) {
    let (mark, what) = match &judge.said {
        JudgeFact::Holds => (Mark::Good, "found no problem"),
        JudgeFact::Refuted { .. } => (Mark::Bad, "refuted it"),
        JudgeFact::Unknown { .. } | JudgeFact::Off => (Mark::Unproven, "gave no clear answer"),
    };
    let took = (judge.duration_ms > 0).then(|| duration(judge.duration_ms));
    let used = usage(judge.usage.cost_usd, judge.usage.tokens);
    let said = format!("Judge ({}): {what}", clean(&judge.agent));
    (mark, [Some(said), took, used].into_iter().flatten().collect::<Vec<_>>().join(dot))
}

/// Where to find rejected work.
pub(crate) fn kept(commit: &Oid, files: u32) -> String {
    let changed = if files == 0 { "no files changed".to_owned() } else { plural(files as usize, "file", "files") };
    format!("Kept the attempt: git show {} ({changed})", clean(commit.short()))
}

pub(crate) fn passes(stories: u32) -> &'static str {
    if stories == 1 { "passes" } else { "pass" }
}

pub(crate) fn script_mark(meaning: ScriptEffect) -> Mark {
    match meaning {
        ScriptEffect::GoOn => Mark::Good,
        ScriptEffect::Warning | ScriptEffect::Skip => Mark::Warn,
        ScriptEffect::Error | ScriptEffect::Abort => Mark::Bad,
    }
}

/// A request from another terminal, or from the agent.
pub(crate) fn asked(request: &Request) -> String {
    match request {
        Request::Stop => "stop now".to_owned(),
        Request::StopAfterStory => "stop after this story".to_owned(),
        Request::Pause => "pause".to_owned(),
        Request::Resume => "resume".to_owned(),
        Request::Skip { story, now: false } => format!("skip {}", clean(story.as_str())),
        Request::Skip { story, now: true } => format!("skip {} now", clean(story.as_str())),
        Request::Retry { story } => format!("retry {}", clean(story.as_str())),
        Request::Note { text } => format!("note to the agent: {}", clean(text)),
        Request::Claim { story, status, .. } => format!("the agent says that {} is {}", clean(story.as_str()), claimed(*status)),
        Request::Question { story, question, .. } => format!("question about {}: {}", clean(story.as_str()), clean(question)),
        Request::Answer { story, text } => format!("answer about {}: {}", clean(story.as_str()), clean(text)),
        Request::Merge { story, .. } => format!("prepare {} for review", clean(story.as_str())),
    }
}

fn claimed(status: ClaimStatus) -> &'static str {
    match status {
        ClaimStatus::Success => "done",
        ClaimStatus::Partial => "not finished",
        ClaimStatus::Blocked => "blocked",
    }
}

pub(crate) fn signal_name(signal: StopSignal) -> &'static str {
    match signal {
        StopSignal::Sigint => "SIGINT",
        StopSignal::Sigterm => "SIGTERM",
        StopSignal::Sighup => "SIGHUP",
    }
}

fn started(view: &RunView, dot: &str) -> Vec<Line> {
    let mut facts = vec![format!("Run {}", view.run.as_ref().map_or_else(String::new, |run| clean(run.as_str())))];
    facts.push(clean(&view.plan));
    facts.push(format!("{}, {} open", plural(view.stories, "story", "stories"), view.open));
    facts.push(format!("agent {}", clean(&view.agent)));
    facts.extend(view.branch.as_ref().map(|branch| format!("branch {}", clean(branch))));
    let mut lines = vec![Line::top(Mark::Info, facts.join(dot))];
    lines.extend(weak_seal(view.seal.as_ref()).map(|text| Line::top(Mark::Warn, text)));
    lines.extend(listed_hosts(view.seal.as_ref()).map(|text| Line::top(Mark::Info, text)));
    if view.unchecked {
        lines.push(Line::top(Mark::Warn, "Stories without checks are committed, too (--unchecked)"));
    }
    lines
}

fn baseline(green: bool, runs: &[CheckRun], dot: &str) -> Vec<Line> {
    if !green {
        let mut lines = vec![Line::top(Mark::Bad, format!("Baseline: {}", checks(runs)))];
        lines.extend(runs.iter().filter(|run| run.blocks()).flat_map(tail));
        return lines;
    }
    if runs.is_empty() {
        return Vec::new();
    }
    let took = duration(runs.iter().map(|run| run.duration_ms).sum());
    let odd = runs.iter().any(|run| check_mark(run) != Mark::Good);
    let mark = if odd { Mark::Warn } else { Mark::Good };
    vec![Line::top(mark, format!("Baseline: {}{dot}{took}", checks(runs)))]
}

fn selected(place: &Place, title: &str, number: usize, of: usize, dot: &str) -> Line {
    let again = if place.attempt > 1 { format!("{dot}attempt {}", place.attempt) } else { String::new() };
    let name = name(place.story.as_str(), title);
    Line::top(Mark::Story, format!("Story {number} of {of}{dot}{name}{again}"))
}

/// Id and title. They are the same in plans without ids.
pub(crate) fn name(id: &str, title: &str) -> String {
    let (id, title) = (clean(id), clean(title));
    if title.is_empty() || title == id { id } else { format!("{id} {title}") }
}

fn red_mark(red: Red) -> Mark {
    match red {
        Red::Red | Red::Absent => Mark::Info,
        Red::Green | Red::Unknown => Mark::Unproven,
    }
}

fn turn_ended(outcome: &TurnOutcome, duration_ms: u64, usage: Option<String>, dot: &str) -> Line {
    let (mark, text) = match outcome {
        TurnOutcome::Ended => (Mark::Info, format!("Agent stopped after {}", duration(duration_ms))),
        TurnOutcome::Interrupted => (Mark::Warn, "Agent was interrupted".to_owned()),
        TurnOutcome::Crashed { .. }
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::Looping { .. }
        | TurnOutcome::NotRunnable { .. }
        | TurnOutcome::ApiError { .. }
        | TurnOutcome::UsageLimit { .. }
        | TurnOutcome::Auth { .. }
        | TurnOutcome::Billing { .. }
        | TurnOutcome::UnknownModel { .. }
        | TurnOutcome::MaxTurns { .. }
        | TurnOutcome::Budget { .. }
        | TurnOutcome::Refused { .. }
        | TurnOutcome::GuardDead { .. } => (Mark::Bad, format!("Agent {}", clean(&outcome.describe()))),
    };
    Line::under(mark, usage.map_or_else(|| text.clone(), |used| format!("{text}{dot}{used}")))
}

/// What changed since the previous turn: a fresh session (unless it is the first one), or a compacted conversation.
fn session_told(view: &RunView, session: &SessionUse) -> Vec<Line> {
    let turns = || view.touched.iter().flat_map(|story| &story.attempts).flat_map(|attempt| &attempt.turns);
    let first = || turns().filter_map(|turn| turn.session.as_ref()).all(|other| other.id == session.id);
    let fresh = session.fresh.as_ref().filter(|_| !first());
    let mut lines: Vec<Line> =
        fresh.map(|why| Line::under(Mark::Info, format!("Fresh session: {}", clean(why)))).into_iter().collect();
    lines.extend(compacted(session).map(|text| Line::under(Mark::Warn, capitalise(&text))));
    lines
}

fn left_behind(leftovers: u32) -> Option<Line> {
    let text = format!("Stopped {} that the agent left running", plural(leftovers as usize, "process", "processes"));
    (leftovers > 0).then(|| Line::under(Mark::Warn, text))
}

fn verified(view: &RunView, seen: &Verified, dot: &str) -> Vec<Line> {
    let report = &seen.report;
    let mut lines = Vec::new();
    if !seen.restored.is_empty() {
        lines.push(Line::under(Mark::Warn, format!("Ignored the agent's changes to {}", files(&seen.restored))));
    }
    for run in seen.runs() {
        lines.push(checked(run, dot));
        if !run.outcome.passed() {
            lines.extend(tail(run));
        }
    }
    lines.extend(changed_label(&report.protected).map(|label| Line::under(Mark::Info, capitalise(&label))));
    lines.extend(seen.judge.as_ref().map(|judge| judged(judge, dot)).map(|(mark, text)| Line::under(mark, text)));
    let claimed = view
        .story(&seen.place.story)
        .and_then(|story| story.attempts.last())
        .and_then(|attempt| attempt.verifications.last())
        .is_some_and(|seen| seen.false_claim);
    lines.extend(judgement(report, claimed));
    lines
}

fn judgement(report: &VerifyReport, claimed: bool) -> Vec<Line> {
    match (report.outcome, report.proof) {
        (Outcome::Done | Outcome::Accepted, Some(proof)) => {
            let why = report.reasons.first().map(ToString::to_string).unwrap_or_default();
            vec![Line::under(result_mark(StoryResult::done(proof)), because(&capitalise(proof.name()), &why))]
        }
        // The commit, or the line about the review, tells the rest.
        (Outcome::Done | Outcome::Accepted, None) | (Outcome::NeedsReview, _) => Vec::new(),
        (Outcome::Failed, _) if report.was_interrupted() => vec![Line::under(Mark::Warn, "Checks were interrupted")],
        (Outcome::Failed, _) if report.is_doubted() => doubted(report),
        (Outcome::Failed, _) => failed(report, claimed),
    }
}

/// All checks pass, but the agent gets another turn to resolve the doubts.
fn doubted(report: &VerifyReport) -> Vec<Line> {
    let mut lines = vec![Line::under(Mark::Warn, because("Not done yet", &first_of(&report.problems())))];
    lines.extend(report.runs_on(Tree::Pristine).iter().filter(|run| run.blocks()).flat_map(tail));
    lines
}

fn failed(report: &VerifyReport, claimed: bool) -> Vec<Line> {
    let failures = || {
        report.reasons.iter().filter_map(|reason| match reason {
            Reason::Failure(failure) => Some(failure),
            Reason::Doubt(_) | Reason::Note(_) => None,
        })
    };
    let nothing_changed = failures().any(|failure| *failure == Failure::NothingChanged);
    // Failed checks already have a line.
    let is_shown = |failure: &&Failure| {
        matches!(failure, Failure::CheckFailed { .. } | Failure::CheckUnknown { .. } | Failure::NothingChanged)
    };
    let others = failures().filter(|failure| !is_shown(failure));
    let mut lines: Vec<Line> = others.map(|failure| Line::under(Mark::Bad, capitalise(&clean(&failure.to_string())))).collect();
    match (claimed, nothing_changed) {
        (true, true) => lines.push(Line::under(Mark::Bad, "Claimed done, but nothing changed")),
        (true, false) => lines.push(Line::under(Mark::Bad, "Claimed done, but the checks fail")),
        (false, true) => lines.push(Line::under(Mark::Bad, "Nothing changed")),
        (false, false) => {}
    }
    lines
}

pub(crate) fn checked(run: &CheckRun, dot: &str) -> Line {
    checked_as(check_mark(run), run, dot)
}

pub(crate) fn checked_as(mark: Mark, run: &CheckRun, dot: &str) -> Line {
    Line::under(mark, format!("{} {}{}", clean(&run.name), ended(run), facts(run, dot)))
}

/// The first error of a failed check, and the end of its output.
pub(crate) fn tail(run: &CheckRun) -> Vec<Line> {
    run.excerpt_lines(TAIL_LINES).into_iter().map(|line| Line::Quote { indent: 4, text: clean_line(line) }).collect()
}

/// The first few names, and how many more.
pub(crate) fn files(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(|name| clean(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}
