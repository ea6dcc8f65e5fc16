//! How many tests an output speaks of, whatever the command was: the summaries of all frameworks that are known, together.

use super::TestCounts;
use super::lines::{self, Lines};
use super::reader::{self, Reading, Says};

/// What an output says of how many tests ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// There is no summary in it.
    Silent,
    /// Every summary says that no test ran.
    Zero,
    /// At least one test ran. The counts are those of the last summary that has some.
    Ran(TestCounts),
}

/// Reads all summaries. Only where each of them is about no test, none ran.
pub fn tally(output: &str) -> Tally {
    let lines = lines::split(output);
    let mut readings = concluded(&lines);
    if let Some(stripped) = lines::without_prefixes(&lines) {
        readings.extend(concluded(&stripped));
    }
    readings.sort_by_key(|reading| reading.concluded);
    let ran = |reading: &&Reading| {
        let TestCounts { passed, failed, .. } = reading.counts;
        passed.unwrap_or(0) > 0 || failed.unwrap_or(0) > 0
    };
    if let Some(last) = readings.iter().rev().find(ran) {
        return Tally::Ran(last.counts);
    }
    // Frameworks that pass without a number: each says so only of tests that ran.
    if readings.iter().any(|reading| reading.says == Says::Passed) {
        return Tally::Ran(TestCounts::default());
    }
    match (readings.iter().any(|reading| reading.says == Says::NothingRan), plain(&lines)) {
        (_, Some(number)) if number > 0 => Tally::Ran(TestCounts { passed: Some(number), ..TestCounts::default() }),
        (true, _) | (false, Some(_)) => Tally::Zero,
        (false, None) => Tally::Silent,
    }
}

fn concluded(lines: &Lines<'_>) -> Vec<Reading> {
    let readings = reader::all(lines, &lines.join("\n"));
    readings.into_iter().filter(|reading| reading.concluded.is_some()).collect()
}

/// The sum of what tools of no known framework print: `12 tests passed`, `3 passing`, `# PASS:  4`, `0 tests failed out of 7`.
fn plain(lines: &Lines<'_>) -> Option<u64> {
    lines
        .iter()
        .filter_map(|line| plain_line(line.trim()))
        .fold(None, |sum, number| Some(sum.unwrap_or(0_u64).saturating_add(number)))
}

fn plain_line(line: &str) -> Option<u64> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'))
        .filter(|word| !word.is_empty())
        .take(20)
        .collect();
    let number = |at: usize| words.get(at).and_then(|word| word.trim_end_matches(['.', '!', ':']).parse::<u64>().ok());
    let word = |at: usize| words.get(at).map(|word| word.trim_end_matches(['.', '!', ':']).to_ascii_lowercase());
    let is = |at: usize, any: &[&str]| word(at).is_some_and(|word| any.contains(&word.as_str()));
    // ctest: the first number is that of the failed ones.
    if let Some(at) =
        (0..words.len()).find(|at| is(*at, &["out"]) && is(at + 1, &["of"])).filter(|_| line.contains("tests failed"))
    {
        return number(at + 2);
    }
    let things = ["test", "tests", "spec", "specs", "example", "examples", "case", "cases", "scenario", "scenarios"];
    for at in 0..words.len() {
        let Some(found) = number(at) else { continue };
        let done = ["passed", "passing", "ok", "run", "succeeded"];
        if is(at + 1, &["passed", "passing"]) || is(at + 1, &things) && is(at + 2, &done) {
            return Some(found);
        }
    }
    // Automake and its kin: a label, then the number.
    let label = words.iter().position(|word| *word != "#")?;
    let labelled = words.get(label).is_some_and(|word| word.ends_with(':')) && is(label, &["pass", "passed"]);
    number(label + 1).filter(|_| labelled && words.len() == label + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(output: &str) -> Option<u64> {
        match tally(output) {
            Tally::Silent => None,
            Tally::Zero => Some(0),
            Tally::Ran(counts) => Some(counts.passed.unwrap_or(0) + counts.failed.unwrap_or(0)),
        }
    }

    #[test]
    fn summaries_of_any_tool_are_read_and_only_all_zero_is_zero() {
        let empty = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
        let full = empty.replace("0 passed", "3 passed");
        let jest_none = "No tests found, exiting with code 0\n";
        let pytest_none = "===== test session starts =====\ncollected 0 items\n\n===== no tests ran in 0.01s =====\n";
        let pytest = "===== test session starts =====\ncollected 2 items\n\n===== 2 passed in 0.01s =====\n";
        for (output, expected) in [
            (empty.repeat(3), Some(0)),
            ([empty, &full, empty].concat(), Some(3)),
            (jest_none.to_owned(), Some(0)),
            (pytest_none.to_owned(), Some(0)),
            ([&full, pytest_none].concat(), Some(3)),
            ([pytest, empty].concat(), Some(2)),
            ([pytest_none, empty, jest_none].concat(), Some(0)),
            ("Test Suites: 0 total\nTests:       0 total\nTime: 1 s\n".to_owned(), Some(0)),
            ("100% tests passed, 0 tests failed out of 7\n".to_owned(), Some(7)),
            ("# TOTAL: 4\n# PASS:  4\n# SKIP:  0\n".to_owned(), Some(4)),
            ("# TOTAL: 0\n# PASS:  0\n".to_owned(), Some(0)),
            ("all good: 12 tests passed\n".to_owned(), Some(12)),
            ("0 tests passed\n5 tests passed\n".to_owned(), Some(5)),
            ("0 tests run, 0 failed\n".to_owned(), Some(0)),
            ("everything is fine\n".to_owned(), None),
            ("linted 12 files\n12 tests skipped\nPASS: nothing\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(ran(&output), expected, "{output}");
        }
    }
}
