//! The journal for people: one line per event.

use jiff::tz::TimeZone;
use verdone_core::journal::event::{Event, Place, Recorded};
use verdone_core::verify::StoryResult;
use verdone_text::sentence::capitalise;

use crate::event_lines::{asked, files, kept, passes, script_mark, signal_name};
use crate::guard::guard_failed;
use crate::landing::not_landed;
use crate::result_text::{committed_as, report_mark, report_words, result_mark};
use crate::style::{Mark, Style};
use crate::width::clean;
use crate::wording::{because, checks, duration, moment, plural, red, rejected, wait_cause};

/// Always exactly one line, never cut, so that the log can be searched.
pub fn log_line(recorded: &Recorded, zone: &TimeZone, style: &Style) -> String {
    let (mark, text) = said(&recorded.event);
    let text = match place(&recorded.event) {
        Some(place) => format!("{} {}.{} {text}", clean(place.story.as_str()), place.attempt, place.turn),
        None => text,
    };
    format!("{} {} {text}", moment(recorded.at, zone), style.mark(mark))
}

fn place(event: &Event) -> Option<&Place> {
    match event {
        Event::StorySelected { place, .. }
        | Event::AttemptStarted { place, .. }
        | Event::RedChecked { place, .. }
        | Event::TurnStarted { place }
        | Event::TurnEnded { place, .. }
        | Event::WaitStarted { place, .. }
        | Event::WaitEnded { place }
        | Event::CommitStarted { place, .. }
        | Event::Committed { place, .. }
        | Event::Marked { place, .. }
        | Event::CommitRefused { place, .. }
        | Event::AttemptRejected { place, .. }
        | Event::IterationSkipped { place }
        | Event::AttemptKept { place, .. }
        | Event::ReviewNeeded { place, .. }
        | Event::AttemptDropped { place, .. } => Some(place),
        Event::Verified(seen) => Some(&seen.place),
        Event::GuardFailed { place, .. } => place.as_ref(),
        Event::RunStarted { .. }
        | Event::RegressionStarted { .. }
        | Event::RegressionChecked { .. }
        | Event::Regressed { .. }
        | Event::Reopened { .. }
        | Event::BaselineChecked { .. }
        | Event::StoryFailed { .. }
        | Event::Accepted { .. }
        | Event::Refused { .. }
        | Event::StopRequested { .. }
        | Event::ScriptRan { .. }
        | Event::Asked { .. }
        | Event::RunStopping { .. }
        | Event::RunStopped { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::Reapplied { .. }
        | Event::Undone { .. }
        | Event::Retired => None,
    }
}

fn said(event: &Event) -> (Mark, String) {
    use verdone_core::agent::TurnOutcome;
    match event {
        Event::RunStarted { run, plan, agent, stories, open, .. } => {
            let stories = plural(*stories, "story", "stories");
            let (run, plan, agent) = (clean(run.as_str()), clean(plan), clean(agent));
            (Mark::Info, format!("Run {run} started: {plan}, {stories}, {open} open, agent {agent}"))
        }
        Event::BaselineChecked { green, runs } => {
            (if *green { Mark::Good } else { Mark::Bad }, format!("Baseline: {}", checks(runs)))
        }
        Event::StorySelected { iteration, title, number, of, .. } => {
            (Mark::Story, format!("Iteration {iteration}: story {number} of {of}, {}", clean(title)))
        }
        Event::AttemptStarted { base, .. } => {
            let from = base.as_ref().map_or_else(String::new, |base| format!(" from {}", clean(base.short())));
            (Mark::Info, format!("Attempt started{from}"))
        }
        Event::RedChecked { red: found, .. } => (Mark::Info, capitalise(red(*found))),
        Event::TurnStarted { .. } => (Mark::Info, "Turn started".to_owned()),
        Event::TurnEnded { outcome, duration_ms, .. } => {
            let (mark, words) = match outcome {
                TurnOutcome::Ended => (Mark::Info, format!("stopped after {}", duration(*duration_ms))),
                TurnOutcome::Crashed { .. }
                | TurnOutcome::TimedOut { .. }
                | TurnOutcome::Idle { .. }
                | TurnOutcome::Looping { .. }
                | TurnOutcome::Interrupted
                | TurnOutcome::NotRunnable { .. }
                | TurnOutcome::ApiError { .. }
                | TurnOutcome::UsageLimit { .. }
                | TurnOutcome::Auth { .. }
                | TurnOutcome::Billing { .. }
                | TurnOutcome::UnknownModel { .. }
                | TurnOutcome::MaxTurns { .. }
                | TurnOutcome::Budget { .. }
                | TurnOutcome::Refused { .. }
                | TurnOutcome::GuardDead { .. } => (Mark::Bad, clean(&outcome.describe())),
            };
            (mark, format!("Agent {words}"))
        }
        Event::WaitStarted { why, reason, until, .. } => {
            (Mark::Warn, format!("{}, waiting until {until:.0}", because(wait_cause(*why), reason)))
        }
        Event::WaitEnded { .. } => (Mark::Info, "Continuing after the wait".to_owned()),
        Event::Verified(seen) => {
            let (report, runs) = (&seen.report, seen.runs());
            let why = match report.problems().as_slice() {
                [] if runs.is_empty() => String::new(),
                [] => checks(runs),
                problems => problems.join("; "),
            };
            (report_mark(report), because(&format!("Verification: {}", report_words(report)), &why))
        }
        Event::CommitStarted { tree, proof, outcome, .. } => {
            let result = StoryResult { outcome: *outcome, proof: Some(*proof) };
            (Mark::Info, format!("Committing tree {} as {}", clean(tree.short()), committed_as(result)))
        }
        Event::Committed { commit, proof, outcome, .. } => {
            let result = StoryResult { outcome: *outcome, proof: Some(*proof) };
            (result_mark(result), format!("Committed {}, {}", clean(commit.short()), committed_as(result)))
        }
        Event::Marked { proof, reason, .. } => {
            let result = StoryResult::done(*proof);
            let text = format!("Done, {}", committed_as(result));
            let why = reason.as_ref().map(|why| because("not committed", why)).unwrap_or_default();
            (result_mark(result), because(&text, &why))
        }
        Event::ReviewNeeded { work, reasons, .. } => {
            let what = format!("Needs review ({})", clean(work.short()));
            (Mark::Warn, because(&what, &reasons.join("; ")))
        }
        Event::Accepted { story, commit, proof, by, reasons, .. } => {
            let (story, commit, by) = (clean(story.as_str()), clean(commit.short()), clean(by));
            (Mark::Good, because(&format!("Accepted {story} as {commit}, {proof}, by {by}"), &reasons.join("; ")))
        }
        Event::Refused { story, by } => (Mark::Bad, format!("{} was rejected by {}", clean(story.as_str()), clean(by))),
        Event::CommitRefused { message, .. } => (Mark::Bad, because("Commit refused", message)),
        Event::AttemptRejected { rejection: why, reason, .. } => rejected(why, reason),
        Event::AttemptKept { kept: commit, files, .. } => (Mark::Back, kept(commit, *files)),
        Event::AttemptDropped { reason, .. } => (Mark::Warn, because("Dropped the attempt", reason)),
        Event::Reapplied { story, was, commit, .. } => {
            let (was, commit) = (clean(was.short()), clean(commit.short()));
            (Mark::Good, format!("Re-applied {} as {commit}, which was {was}", clean(story.as_str())))
        }
        Event::LandingStarted { to } => (Mark::Info, format!("Landing {}", clean(to.short()))),
        Event::Landed { branch, from, to, .. } => {
            (Mark::Good, format!("Landed {}..{} on {}", clean(from.short()), clean(to.short()), clean(branch)))
        }
        Event::LandingRefused { reason } => (Mark::Warn, not_landed(reason)),
        Event::RegressionStarted { .. } => (Mark::Info, "Checking proven stories again".to_owned()),
        Event::RegressionChecked { held, runs, not_checked, .. } => {
            let mark = if runs.iter().all(|run| run.outcome.passed()) { Mark::Good } else { Mark::Bad };
            let left = if not_checked.is_empty() { String::new() } else { format!(", {} not checked", not_checked.len()) };
            (
                mark,
                format!(
                    "Regression check: {} still {}{left}",
                    plural(*held as usize, "proven story", "proven stories"),
                    passes(*held)
                ),
            )
        }
        Event::Regressed { story, runs, .. } => {
            (Mark::Bad, format!("{} was done and fails now: {}", clean(story.as_str()), checks(runs)))
        }
        Event::Reopened { stories, commit } => {
            let names = files(&stories.iter().map(ToString::to_string).collect::<Vec<_>>());
            let commit = commit.as_ref().map_or_else(String::new, |commit| format!(", commit {}", clean(commit.short())));
            (Mark::Back, format!("Reopened {names}{commit}"))
        }
        Event::StoryFailed { story, reason } => (Mark::Bad, because(&format!("{} failed", clean(story.as_str())), reason)),
        Event::ScriptRan { script, exit, meaning, duration_ms, .. } => {
            let text = format!("Script {}: {}, {}", script.name(), clean(&exit.describe()), duration(*duration_ms));
            (script_mark(*meaning), text)
        }
        Event::GuardFailed { failures, denied, cause, .. } => {
            (Mark::Warn, capitalise(&guard_failed(u64::from(*failures), u64::from(*denied), cause)))
        }
        Event::IterationSkipped { .. } => (Mark::Info, "Skipped, as the script asked".to_owned()),
        Event::Asked { request } => (Mark::Info, format!("Requested: {}", asked(request))),
        Event::StopRequested { signal } => (Mark::Warn, format!("Stop requested by {}", signal_name(*signal))),
        Event::RunStopping { finish, reason } => (Mark::Info, because(&format!("Stopping, {}", finish.name()), reason)),
        Event::RunStopped { finish, exit_code, duration_ms } => {
            (Mark::Info, format!("Run ended, {} (exit code {exit_code}) after {}", finish.name(), duration(*duration_ms)))
        }
        Event::Undone { what, tip, .. } => {
            let tip = tip.as_ref().map_or_else(String::new, |tip| format!("; the branch is at {}", clean(tip.short())));
            (Mark::Back, format!("Undone: {}{tip}", clean(what)))
        }
        Event::Retired => (Mark::Info, "Event from an older version of Verdone".to_owned()),
    }
}
