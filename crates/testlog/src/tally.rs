//! Counts the tests of an output: the sum over the summaries of all runs in it.
//!
//! A failure in any summary counts. Work that ends the runner's process may print a good summary after a bad one, and an exit code
//! may get lost on the way. Tests of a test tool that print failing reports therefore need a report in a file.

use std::collections::HashSet;

use super::command::{self, Ran};
use super::lines::{self, Lines};
use super::reader::{self, Reading, Says};
use super::script_summary;
use super::{Framework, TestCounts, TestNames, borrowed};

/// The number of tests that ran, according to the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub some: SomeRan,
    /// `None` if no summary contains a number.
    pub counts: Option<TestCounts>,
    pub names: Option<TestNames>,
    /// The number of requested tests that the runner could not find, if it counts them as failures. Not included in `counts`.
    pub missing: u64,
    /// A summary reports a failure outside the tests.
    pub is_bad: bool,
}

/// Whether any test was completed. Ordered from unknown to certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SomeRan {
    /// There is no summary.
    #[default]
    Unsaid,
    /// Every summary says that no test was completed.
    No,
    Yes,
}

/// Reads all summaries that these commands may have printed; `commands` as for [`super::read`].
pub fn tally<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], output: &str) -> Tally {
    let words = borrowed(commands);
    let lines = lines::split(output);
    let of_frameworks = |frameworks: &[Framework]| {
        sum(both(&lines, |lines, text| frameworks.iter().flat_map(|one| tally_for(*one, lines, text)).collect()))
    };
    match source(&words) {
        // A reporter may use a format that only other readers understand.
        Source::Frameworks(frameworks) => of_frameworks(&frameworks).or_some(&lines),
        Source::Anything => {
            let tally = sum(both(&lines, any));
            if tally.some == SomeRan::Yes || tally.is_bad { tally } else { of_script(&lines).unwrap_or(tally) }
        }
        // If the program is not known to run tests, its output counts only against it.
        Source::Unknown => {
            let tally = sum(both(&lines, any));
            let fails = tally.counts.is_some_and(|counts| counts.failed > Some(0));
            if fails { tally } else { Tally::default().or_some(&lines) }
        }
        Source::Text => Tally::default().or_some(&lines),
    }
}

impl Tally {
    /// If no summary was found, checks whether a summary of any kind says that tests ran.
    fn or_some(mut self, lines: &Lines<'_>) -> Self {
        let said = |tally: Tally| tally.some == SomeRan::Yes;
        if self.some == SomeRan::Unsaid && !self.is_bad && (said(sum(both(lines, any))) || of_script(lines).is_some_and(said)) {
            self.some = SomeRan::Yes;
        }
        self
    }
}

/// Whether an output contains no summary of any kind.
pub(super) fn is_silent(output: &str) -> bool {
    let lines = lines::split(output);
    both(&lines, any).is_empty() && of_script(&lines).is_none()
}

fn of_script(lines: &Lines<'_>) -> Option<Tally> {
    let counts = script_summary::counts(lines)?;
    let ran = counts.passed.unwrap_or(0) > 0 || counts.failed.unwrap_or(0) > 0;
    Some(Tally { some: if ran { SomeRan::Yes } else { SomeRan::No }, counts: Some(counts), ..Tally::default() })
}

/// The possible sources of the summaries in an output.
enum Source {
    /// Only these frameworks: a test printed any other summaries.
    Frameworks(Vec<Framework>),
    Anything,
    Unknown,
    /// Programs that only display existing text.
    Text,
}

fn source(commands: &[Vec<&str>]) -> Source {
    if command::wraps(commands) {
        return Source::Anything;
    }
    let mut frameworks = Ran::from_commands(commands).map(|ran| ran.frameworks()).unwrap_or_default();
    // A framework's reader covers all of its runs at once.
    let mut known = HashSet::new();
    frameworks.retain(|framework| known.insert(*framework));
    match frameworks.as_slice() {
        [] if commands.iter().all(|words| command::only_shows_text(words)) => Source::Text,
        [] => Source::Unknown,
        [_, ..] => Source::Frameworks(frameworks),
    }
}

/// Readings of the lines without the prefixes of other tools, or else of the unchanged lines.
fn both(lines: &Lines<'_>, read: impl Fn(&Lines<'_>, &str) -> Vec<Reading>) -> Vec<Reading> {
    let stripped = lines::without_prefixes(lines).map(|lines| read(&lines, &lines.join("\n"))).unwrap_or_default();
    if stripped.is_empty() { read(lines, &lines.join("\n")) } else { stripped }
}

/// The readings of a framework in any format. A partial summary is better than none.
fn tally_for(framework: Framework, lines: &Lines<'_>, text: &str) -> Vec<Reading> {
    let mut readings = reader::for_framework(framework, lines, text);
    readings.retain(|reading| reading.concluded.is_some());
    if readings.iter().any(|reading| !reading.is_partial) {
        readings.retain(|reading| !reading.is_partial);
    }
    without_repetition(readings)
}

/// The complete summaries of all frameworks.
fn any(lines: &Lines<'_>, text: &str) -> Vec<Reading> {
    let mut readings = reader::all(lines, text);
    readings.retain(|reading| reading.concluded.is_some() && !reading.is_partial);
    without_repetition(readings)
}

/// Removes duplicates. If two readers read the same line, the more specific one comes first. A machine-readable report repeats a run
/// that already has a summary, unless only the report counts a failure.
fn without_repetition(mut readings: Vec<Reading>) -> Vec<Reading> {
    let mut ends = HashSet::new();
    readings.retain(|reading| ends.insert(reading.concluded));
    let failed = |reading: &Reading| reading.counts.plus(reading.earlier).failed.unwrap_or(0);
    let told: Vec<u64> = readings.iter().filter(|reading| !reading.is_report).map(failed).collect();
    let is_good = told.iter().all(|failed| *failed == 0);
    readings.retain(|reading| !reading.is_report || told.is_empty() || is_good && failed(reading) > 0);
    readings
}

fn sum(readings: Vec<Reading>) -> Tally {
    let mut all = Tally::default();
    let is_one = readings.len() == 1;
    for reading in readings {
        let mut counts = reading.counts.plus(reading.earlier);
        counts.failed = counts.failed.map(|failed| failed.saturating_sub(reading.missing));
        let ran = counts.passed.unwrap_or(0) > 0 || counts.failed.unwrap_or(0) > 0;
        all.some = match reading.says {
            // Frameworks that report a pass without a number do so only if tests ran.
            Says::Passed => SomeRan::Yes,
            _ if ran => SomeRan::Yes,
            Says::NothingRan => all.some.max(SomeRan::No),
            Says::Failed | Says::Broken if reading.missing > 0 => all.some.max(SomeRan::No),
            Says::Failed | Says::Broken | Says::Unfinished => {
                all.is_bad = true;
                all.some
            }
        };
        if is_one && reading.earlier == TestCounts::default() && reading.missing == 0 {
            all.names = reading.names.complete(counts);
        }
        let has_number = counts.passed.or(counts.failed).or(counts.skipped).is_some();
        all.counts = if has_number { Some(all.counts.unwrap_or_default().plus(counts)) } else { all.counts };
        all.missing += reading.missing;
    }
    if all.is_bad && all.some == SomeRan::No {
        all.some = SomeRan::Unsaid;
    }
    all
}
