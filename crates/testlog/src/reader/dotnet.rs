//! `dotnet test`: one line of sums per assembly, or one summary for all.

use super::super::lines::Lines;
use super::{Framework, Reading, Says, labelled};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Dotnet);
    let mut nothing = None;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(summary) = line.strip_prefix("Test summary: ") {
            let of = |label| labelled(summary, label).unwrap_or(0);
            // It already includes the assemblies.
            reading.counts = super::TestCounts::default();
            reading.count(of("succeeded: "), of("failed: "), of("skipped: "));
            reading.concluded = Some(at);
        } else if let Some(sums) = sums(line) {
            reading.count(sums.0, sums.1, sums.2);
            reading.concluded = Some(at);
        } else if let Some(name) = failed(line) {
            reading.failures.add(name, None, None, "");
        } else if line.starts_with("No test is available in ") || line.starts_with("No test matches the given testcase filter") {
            nothing = Some(at);
        }
    }
    if reading.concluded.is_none() {
        reading.concluded = Some(nothing?);
        reading.says = Says::NothingRan;
        return Some(reading);
    }
    reading.judge();
    Some(reading)
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 9 ms - app.dll (net8.0)`.
fn sums(line: &str) -> Option<(u64, u64, u64)> {
    let (_, rest) = line.split_once("!  - ").filter(|(word, _)| matches!(*word, "Passed" | "Failed" | "Skipped"))?;
    labelled(rest, "Total:")?;
    Some((labelled(rest, "Passed:")?, labelled(rest, "Failed:")?, labelled(rest, "Skipped:")?))
}

/// `Failed App.Tests.Adds [12 ms]`.
fn failed(line: &str) -> Option<&str> {
    let (name, time) = line.strip_prefix("Failed ")?.rsplit_once(" [")?;
    time.ends_with("s]").then_some(name)
}

#[cfg(test)]
mod tests {
    use crate::{TestState, read_line};

    #[test]
    fn assemblies_are_added_up() {
        let output = "\
  Failed App.Tests.Adds [12 ms]
  Error Message:
   Assert.Equal() Failure

Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 9 ms - app.dll (net8.0)
Passed!  - Failed:     0, Passed:     4, Skipped:     1, Total:     5, Duration: 9 ms - lib.dll (net8.0)
";
        let seen = read_line("dotnet test", Some(1), output).unwrap();
        assert_eq!((seen.counts.passed, seen.counts.failed, seen.counts.skipped), (Some(6), Some(1), Some(1)));
        assert_eq!((seen.state, seen.failures[0].name.as_str()), (TestState::Failed, "App.Tests.Adds"));
    }

    #[test]
    fn the_short_summary_counts_too() {
        let output = "Build succeeded in 4.2s\nTest summary: total: 3, failed: 0, succeeded: 2, skipped: 1, duration: 1.1s\n";
        let seen = read_line("dotnet test", Some(0), output).unwrap();
        assert_eq!((seen.state, seen.counts.passed, seen.counts.skipped), (TestState::Passed, Some(2), Some(1)));
    }

    #[test]
    fn a_filter_that_fits_nothing_ran_nothing() {
        let output = "No test matches the given testcase filter `Name~Nope` in /src/app.dll\n";
        assert_eq!(read_line("dotnet test --filter Name~Nope", Some(0), output).unwrap().state, TestState::NothingRan);
    }
}
