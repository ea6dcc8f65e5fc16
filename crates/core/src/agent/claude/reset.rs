//! Determines when a usage limit resets: from the client's number, or else from its message.

use std::sync::LazyLock;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use regex::Regex;

/// Allowances last hours or a week. A time further ahead, or long past, was misread.
const FURTHEST: SignedDuration = SignedDuration::from_hours(32 * 24);
const PAST: SignedDuration = SignedDuration::from_hours(24);
/// Times in messages are rounded down to the minute, and messages arrive with a delay.
const SLACK: SignedDuration = SignedDuration::from_mins(10);

/// Converts seconds or milliseconds since 1970 to a plausible time.
pub(super) fn from_number(number: u64, now: Timestamp) -> Option<Timestamp> {
    let seconds = if number > 100_000_000_000 { number / 1000 } else { number };
    plausible(Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?, now)
}

/// The time in a message such as `You've hit your 5-hour limit · resets 1:35am (UTC)`. `None` if it has no time, or one in an unknown
/// time zone: Verdone would wait for a wrong time, but it retries if the time is unknown.
pub fn reset_in(message: &str, now: Timestamp) -> Option<Timestamp> {
    // Fixed patterns, tested below.
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\|\s*(\d{10,13})\b").expect("a valid pattern"));
    static RELATIVE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?ix) resets? \s+ in \s+
              (?: (\d{1,6}) \s* d(?:ays?)? \s* )?
              (?: (\d{1,6}) \s* h(?:(?:ou)?rs?)? \s* )?
              (?: (\d{1,6}) \s* m(?:in(?:ute)?s?)? \b )?
              (?: \s* (\d{1,6}) \s* s(?:ec(?:ond)?s?)? \b )?",
        )
        .expect("a valid pattern")
    });
    static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?ix) resets? \s+ (?: at \s+ | on \s+ )?
              (?:
                (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) [a-z]* \.? \s+
                (\d{1,2}) (?:st|nd|rd|th)? ,? \s+ (?: at \s+ )?
              )?
              (\d{1,2}) (?: : (\d{2}) )? \s* (am|pm)? \s* \(? (?: UTC | GMT | Etc/UTC | Z ) \)? (?: [^+\w-] | $ )",
        )
        .expect("a valid pattern")
    });
    let number = |text: regex::Match<'_>| text.as_str().parse::<i64>().ok();
    if let Some(found) = NUMBER.captures(message) {
        return from_number(found.get(1)?.as_str().parse().ok()?, now);
    }
    if let Some(found) = RELATIVE.captures(message) {
        let part = |n: usize| found.get(n).and_then(number);
        let parts = [(1, 86_400), (2, 3_600), (3, 60), (4, 1)];
        if parts.iter().any(|(n, _)| found.get(*n).is_some()) {
            let seconds =
                parts.iter().fold(0_i64, |sum, (n, unit)| sum.saturating_add(part(*n).unwrap_or(0).saturating_mul(*unit)));
            return plausible(now.checked_add(SignedDuration::from_secs(seconds)).ok()?, now);
        }
    }
    let found = CLOCK.captures(message)?;
    let time = time(number(found.get(3)?)?, found.get(4).and_then(number).unwrap_or(0), found.get(5).map(|half| half.as_str()))?;
    let today = now.to_zoned(TimeZone::UTC).date();
    let at = |date: Date| Some(date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp());
    let named = if let (Some(month), Some(day)) = (found.get(1), found.get(2).and_then(number)) {
        let date = |year: i16| Date::new(year, month_of(month.as_str())?, i8::try_from(day).ok()?).ok();
        let this_year = at(date(today.year())?)?;
        // In December, a date in January is in the next year.
        if this_year < now - PAST { at(date(today.year() + 1)?)? } else { this_year }
    } else {
        let next = at(today)?;
        if next < now - SLACK { at(today.tomorrow().ok()?)? } else { next }
    };
    plausible(named, now)
}

fn plausible(at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let ahead = at.duration_since(now);
    (ahead <= FURTHEST && ahead >= -PAST).then_some(at)
}

fn time(hour: i64, minute: i64, half: Option<&str>) -> Option<Time> {
    let hour = match half.map(str::to_ascii_lowercase).as_deref() {
        Some("am") if (1..=12).contains(&hour) => hour % 12,
        Some("pm") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) => return None,
        None => hour,
    };
    Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()
}

fn month_of(name: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn messages_say_when_a_limit_ends() {
        let now = at("2026-11-15T00:35:41Z");
        for (message, expected) in [
            ("You've hit your 5-hour limit · resets 1:35am (UTC)", "2026-11-15T01:35:00Z"),
            ("limit reached, resets at 11pm (UTC)", "2026-11-15T23:00:00Z"),
            ("resets 12am (UTC)", "2026-11-16T00:00:00Z"),
            ("resets 12:30am (UTC)", "2026-11-15T00:30:00Z"),
            ("resets 12pm UTC.", "2026-11-15T12:00:00Z"),
            ("resets 15:00 (GMT)", "2026-11-15T15:00:00Z"),
            ("Weekly limit · resets Nov 20, 3pm (UTC)", "2026-11-20T15:00:00Z"),
            ("resets on November 20th at 3:05 PM (UTC)", "2026-11-20T15:05:00Z"),
            ("Claude AI usage limit reached|1794706541", "2026-11-15T01:35:41Z"),
            ("resets in 2h 10m", "2026-11-15T02:45:41Z"),
            ("resets in 45 minutes", "2026-11-15T01:20:41Z"),
            ("resets in 3 days", "2026-11-18T00:35:41Z"),
            ("resets in 3s", "2026-11-15T00:35:44Z"),
        ] {
            assert_eq!(reset_in(message, now), Some(at(expected)), "{message}");
        }
        assert_eq!(reset_in("resets Jan 2, 3am (UTC)", at("2026-12-31T10:00:00Z")), Some(at("2027-01-02T03:00:00Z")));
        assert_eq!(reset_in("resets 11:58pm (UTC)", at("2026-11-15T23:59:30Z")), Some(at("2026-11-15T23:58:00Z")), "just passed");
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        let now = at("2026-11-15T00:35:41Z");
        for message in [
            "",
            "resets",
            "resets soon",
            "resets 3pm (Europe/Berlin)",
            "resets 3pm",
            "resets 25:00 (UTC)",
            "resets 13pm (UTC)",
            "resets 3pm (UTC+2)",
            "resets Feb 30, 3pm (UTC)",
            "resets Jul 1, 3pm (UTC)",
            "limit reached|17947065410000000",
            "resets in 99999999999999999999 days",
            "resets in 400 days",
        ] {
            assert_eq!(reset_in(message, now), None, "{message}");
        }
        assert_eq!(from_number(u64::MAX, now), None);
        assert_eq!(from_number(1_794_706_541_000, now), Some(at("2026-11-15T01:35:41Z")));
    }

    proptest::proptest! {
        #[test]
        fn no_message_panics(message in "resets? (in |at )?[0-9a-zA-Z:,() |+-]{0,40}", now in -300_000_000_000_i64..250_000_000_000) {
            if let Ok(now) = Timestamp::from_second(now) {
                let _ = reset_in(&message, now);
            }
        }
    }
}
