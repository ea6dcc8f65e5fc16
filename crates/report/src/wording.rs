//! Formats numbers, checks and results for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_core::agent::{SessionUse, TokenKinds};
pub use verdone_core::base::plural::plural;
use verdone_core::base::verdict::Red;
use verdone_core::check::{CheckRun, TestCount};
use verdone_core::journal::event::{Rejection, WaitCause};
use verdone_core::journal::view::{AttemptView, WaitView};
use verdone_core::verify::Proof;

use crate::style::Mark;
use crate::width::clean;

/// `40ms`, `0.4s`, `12s`, `3m 05s`, `1h 02m`, `2d 03h`.
pub fn duration(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0 if (1..100).contains(&ms) => format!("{ms}ms"),
        0..10 if !ms.is_multiple_of(1000) => format!("{secs}.{}s", ms % 1000 / 100),
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m {:02}s", secs / 60, secs % 60),
        3600..86_400 => format!("{}h {:02}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d {:02}h", secs / 86_400, secs / 3600 % 24),
    }
}

/// About a criterion that no check names, of a story whose own check verified it.
pub(crate) const WITH_STORY: &str = "not checked separately; the story is verified";

pub(crate) fn is_verified(attempt: &AttemptView) -> bool {
    attempt.result.is_some_and(|result| result.proof == Some(Proof::Verified))
}

/// A running clock of constant width: `03:12`, `1:02:03`.
pub(crate) fn clock(ms: u64) -> String {
    let secs = ms / 1000;
    if secs < 3600 {
        format!("{:02}:{:02}", secs / 60, secs % 60)
    } else {
        format!("{}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
    }
}

pub(crate) fn moment(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Small amounts get more digits.
pub fn cost(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("{usd:.4} USD") } else { format!("{usd:.2} USD") }
}

/// `12,345`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Cost and tokens, if known.
pub(crate) fn usage(cost_usd: Option<f64>, tokens: Option<u64>) -> Option<String> {
    let tokens = tokens.map(|n| format!("{} {}", thousands(n), if n == 1 { "token" } else { "tokens" }));
    let parts: Vec<String> = cost_usd.map(cost).into_iter().chain(tokens).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `345 input, 1,000 output, 10,000 cache read, 1,000 cache write`.
pub(crate) fn token_kinds(kinds: TokenKinds) -> String {
    let TokenKinds { input, output, cache_read, cache_write } = kinds;
    let all = [(input, "input"), (output, "output"), (cache_read, "cache read"), (cache_write, "cache write")];
    all.map(|(number, kind)| format!("{} {kind}", thousands(number))).join(", ")
}

/// `context 12,345 of 200,000 tokens (6%)`, if known.
pub(crate) fn context(session: &SessionUse) -> Option<String> {
    let tokens = session.tokens?;
    Some(match session.window.filter(|window| *window > 0) {
        Some(window) => {
            let share = u128::from(tokens) * 100 / u128::from(window);
            format!("context {} of {} tokens ({share}%)", thousands(tokens), thousands(window))
        }
        None => format!("context {} tokens", thousands(tokens)),
    })
}

/// Commands that were still running in the background when the turn ended.
pub(crate) fn cut_commands(session: &SessionUse) -> Option<String> {
    let number = session.cut_commands as usize;
    (number > 0).then(|| format!("{} in the background ended with the turn", plural(number, "command", "commands")))
}

/// How often the client compacted its own context.
pub(crate) fn compacted(session: &SessionUse) -> Option<String> {
    let often = match session.compactions {
        0 => return None,
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    Some(format!("the agent's context was compacted {often}"))
}

pub(crate) fn red(red: Red) -> &'static str {
    match red {
        Red::Red => "check fails before the work (expected)",
        Red::Green => "check passes before the work, so it proves nothing",
        Red::Unknown => "check gave no clear result before the work",
        Red::Absent => "no check for this story",
    }
}

fn rejection(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::ChecksFailed => "the checks did not pass",
        Rejection::NothingChanged => "claimed done, but nothing changed",
        Rejection::NoProgress => "no progress",
        Rejection::TurnFailed => "the agent's turn failed",
        Rejection::TestsFailed => "the agent's own tests failed",
        Rejection::CommitRefused => "the commit was refused",
        Rejection::AlreadyGreen => "its checks passed before any work",
        Rejection::NeedsReview => "needs a review",
        Rejection::Unfinished => "the agent did not finish it",
        Rejection::Blocked => "waits for an answer",
        Rejection::UsageLimit => "a usage limit was reached",
        Rejection::ServiceError => "the agent's service failed",
        Rejection::Stopped => "the run was stopped",
        Rejection::Crashed => "the run crashed",
    }
}

pub(crate) fn wait_cause(why: WaitCause) -> &'static str {
    match why {
        WaitCause::UsageLimit => "Usage limit",
        WaitCause::ServiceError => "The agent's service failed",
    }
}

/// Why the run waits and, after several errors, how often the service has failed.
pub(crate) fn wait_words(wait: &WaitView) -> String {
    let times = if wait.errors > 1 { format!(" {} times", wait.errors) } else { String::new() };
    format!("{}{times}", wait_cause(wait.why))
}

/// `2 checks passed`, or the first check that blocks; then advisory failures and flaky checks.
pub(crate) fn checks(runs: &[CheckRun]) -> String {
    let names = |wanted: fn(&&CheckRun) -> bool| runs.iter().filter(wanted).map(|run| clean(&run.name)).collect::<Vec<_>>();
    let mut text = match runs.iter().find(|run| run.blocks()) {
        Some(run) => format!("{} {}", clean(&run.name), clean(&run.outcome.describe())),
        None if runs.is_empty() => "no checks".to_owned(),
        None => {
            let passed = runs.iter().filter(|run| run.outcome.passed()).count();
            format!("{} passed", plural(passed, "check", "checks"))
        }
    };
    let odd = [("advisory, not passed", names(|run| run.advisory && !run.outcome.passed())), ("flaky", names(|run| run.flaky))];
    for (what, names) in odd.iter().filter(|(_, names)| !names.is_empty()) {
        text.push_str(&format!(" ({what}: {})", names.join(", ")));
    }
    text
}

/// How a check ended, without its name and duration: `passed`, `passed after a failure (flaky)`, `failed … (advisory)`.
pub(crate) fn ended(run: &CheckRun) -> String {
    let flaky = if run.flaky { " after a failure on the same tree (flaky)" } else { "" };
    let advisory = if run.advisory { " (advisory)" } else { "" };
    format!("{}{flaky}{advisory}", clean(&run.outcome.describe()))
}

/// A check's test counts, and its duration or that the result is cached.
pub(crate) fn facts(run: &CheckRun, dot: &str) -> String {
    let tests = run.tests.filter(|tests| *tests != TestCount::default()).map(|tests| {
        let count = |number: u64, word: &str| if number > 0 { format!(", {number} {word}") } else { String::new() };
        let ran = plural(usize::try_from(tests.ran).unwrap_or(usize::MAX), "test", "tests");
        format!("{dot}{ran}{}{}", count(tests.failed, "failed"), count(tests.skipped, "skipped"))
    });
    let time = if run.cached { "cached".to_owned() } else { duration(run.duration_ms) };
    format!("{}{dot}{time}", tests.unwrap_or_default())
}

/// The mark for a check.
pub(crate) fn check_mark(run: &CheckRun) -> Mark {
    match (run.outcome.passed(), run.advisory) {
        (true, _) if run.flaky => Mark::Warn,
        (true, _) => Mark::Good,
        (false, true) => Mark::Warn,
        (false, false) => Mark::Bad,
    }
}

/// A short text and its reason, unless the two are the same.
pub(crate) fn because(short: &str, reason: &str) -> String {
    let reason = clean(reason);
    if reason.is_empty() || reason.eq_ignore_ascii_case(short) { short.to_owned() } else { format!("{short}: {reason}") }
}

/// The outcome of an attempt without a commit.
pub(crate) fn rejected(kind: &Rejection, reason: &str) -> (Mark, String) {
    match kind {
        // The reasons are shown with the review itself.
        Rejection::NeedsReview => (Mark::Warn, "Set aside for review".to_owned()),
        Rejection::Blocked => (Mark::Warn, format!("Set aside: {}", given_up(kind, reason))),
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::TestsFailed
        | Rejection::CommitRefused
        | Rejection::AlreadyGreen
        | Rejection::Unfinished
        | Rejection::UsageLimit
        | Rejection::ServiceError
        | Rejection::Stopped
        | Rejection::Crashed => (Mark::Bad, format!("Gave up: {}", given_up(kind, reason))),
    }
}

/// Why an attempt was given up: the recorded reason, or else its kind.
pub(crate) fn given_up(kind: &Rejection, reason: &str) -> String {
    let reason = clean(reason);
    if reason.is_empty() { rejection(kind).to_owned() } else { reason }
}

/// The end of an agent's claim on one line. The evidence note has all of it.
pub(crate) fn last_words(claim: &str) -> String {
    const LONGEST: usize = 160;
    let line = clean(claim);
    let skip = line.chars().count().saturating_sub(LONGEST);
    if skip == 0 { line } else { format!("… {}", line.chars().skip(skip).collect::<String>()) }
}

/// A shortened digest for people: `sha256:` and twelve digits.
pub(crate) fn short_digest(digest: &str) -> String {
    clean(digest).chars().take(19).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_and_sorted_by_size() {
        for (ms, expected) in [
            (0, "0s"),
            (7, "7ms"),
            (400, "0.4s"),
            (1_000, "1s"),
            (9_950, "9.9s"),
            (12_345, "12s"),
            (185_000, "3m 05s"),
            (3_720_000, "1h 02m"),
            (183_600_000, "2d 03h"),
        ] {
            assert_eq!(duration(ms), expected, "{ms}");
        }
        assert_eq!((clock(192_000).as_str(), clock(3_723_000).as_str()), ("03:12", "1:02:03"));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!((thousands(999), thousands(1_000), thousands(1_234_567)), ("999".into(), "1,000".into(), "1,234,567".into()));
        assert_eq!((cost(0.0123), cost(1.5)), ("0.0123 USD".into(), "1.50 USD".into()));
    }
}
