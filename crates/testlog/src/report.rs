//! Parses a `JUnit` XML test report that a gate wrote. A report is accepted as a whole or not at all: if it is truncated or not XML,
//! it says nothing about the tests it lists.
//!
//! It matches tags and expands no entities, so nothing can grow. It rejects document types, because no report needs one.

use super::reader::junit::{attribute, scan, tag_end};
use super::{TestCounts, TestFailure, TestNames};

/// Reports nest suites a few levels deep.
const DEEPEST: usize = 100;

/// The content of a complete report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub counts: TestCounts,
    /// The first ones, if there are very many. Empty if the report only counts.
    pub failures: Vec<TestFailure>,
    /// The names of all tests; `None` if the report does not list them or the names are not unique.
    pub names: Option<TestNames>,
}

/// Why a text is not a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportFault {
    #[error("it is empty")]
    Empty,
    #[error("it is truncated")]
    CutOff,
    #[error("it is not XML")]
    NotXml,
    #[error("it has a DOCTYPE, which a test report does not need")]
    DocumentType,
    #[error("it has no test suite")]
    NoSuite,
    #[error("its elements nest too deeply")]
    TooDeep,
}

/// Parses a complete report.
pub fn report(text: &str) -> Result<Report, ReportFault> {
    let summed = checked(text)?;
    let mut reading = scan(text);
    let listed = reading.counts;
    let lists = [listed.passed, listed.failed, listed.skipped].into_iter().flatten().any(|number| number > 0);
    if lists {
        // A suite may count a failure it does not list: one outside all tests.
        reading.counts.failed = listed.failed.max(summed.failed);
    } else {
        reading.counts = summed;
    }
    let names = reading.names.complete(reading.counts);
    Ok(Report { counts: reading.counts, failures: reading.failures.into_list(), names })
}

/// Validates the whole text and sums up the counts of the outermost suites, which include the inner ones.
fn checked(text: &str) -> Result<TestCounts, ReportFault> {
    let mut rest = text.trim_start_matches('\u{feff}');
    if rest.trim().is_empty() {
        return Err(ReportFault::Empty);
    }
    // The enclosing elements, and whether each gave its number of tests.
    let mut open: Vec<(&str, bool)> = Vec::new();
    let (mut sum, mut roots) = (TestCounts { passed: Some(0), failed: Some(0), skipped: Some(0) }, 0_usize);
    while let Some(at) = rest.find('<') {
        if open.is_empty() && !rest[..at].trim().is_empty() {
            return Err(ReportFault::NotXml);
        }
        rest = &rest[at + 1..];
        let aside = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")].into_iter().find(|(begin, _)| rest.starts_with(begin));
        if let Some((begin, end)) = aside {
            let inner = &rest[begin.len()..];
            rest = inner.find(end).map(|at| &inner[at + end.len()..]).ok_or(ReportFault::CutOff)?;
            continue;
        }
        if rest.starts_with('!') {
            return Err(ReportFault::DocumentType);
        }
        let end = tag_end(rest);
        let tag = &rest[..end];
        match rest.as_bytes().get(end) {
            Some(b'>') => rest = &rest[end + 1..],
            Some(_) => return Err(ReportFault::NotXml),
            None => return Err(ReportFault::CutOff),
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop().is_none_or(|(opened, _)| opened != name.trim_end()) {
                return Err(ReportFault::NotXml);
            }
            continue;
        }
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Err(ReportFault::NotXml);
        }
        if open.is_empty() {
            roots += 1;
            match (roots, name) {
                (1, "testsuite" | "testsuites") => {}
                (1, _) => return Err(ReportFault::NoSuite),
                (_, _) => return Err(ReportFault::NotXml),
            }
        }
        let is_part = open.iter().any(|(_, counted)| *counted);
        let counted = matches!(name, "testsuite" | "testsuites") && !is_part && add(&mut sum, tag);
        if !tag.ends_with('/') {
            open.push((name, counted));
        }
        if open.len() > DEEPEST {
            return Err(ReportFault::TooDeep);
        }
    }
    if !open.is_empty() {
        return Err(ReportFault::CutOff);
    }
    if roots == 0 || !rest.trim().is_empty() { Err(ReportFault::NotXml) } else { Ok(sum) }
}

/// Adds the counts in a suite's tag, if it has any.
fn add(sum: &mut TestCounts, tag: &str) -> bool {
    let number = |name: &str| attribute(tag, name).and_then(|value| value.trim().parse::<u64>().ok());
    let Some(tests) = number("tests") else { return false };
    let failed = number("failures").unwrap_or(0).saturating_add(number("errors").unwrap_or(0));
    let skipped = number("skipped").or_else(|| number("disabled")).unwrap_or(0);
    let passed = tests.saturating_sub(failed).saturating_sub(skipped);
    for (all, more) in [(&mut sum.passed, passed), (&mut sum.failed, failed), (&mut sum.skipped, skipped)] {
        *all = Some(all.unwrap_or(0).saturating_add(more));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> (u64, u64, u64) {
        let TestCounts { passed, failed, skipped } = report(text).unwrap().counts;
        (passed.unwrap(), failed.unwrap(), skipped.unwrap())
    }

    #[test]
    fn tests_are_counted_as_listed_and_failures_also_where_they_are_only_counted() {
        let listed = "<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"a\"><testcase name=\"a\"/><testcase name=\"b\"><skipped/>\
                      </testcase><testcase name=\"c\"><failure message=\"x\"/></testcase></testsuite></testsuites>\n";
        assert_eq!(counts(listed), (1, 1, 1));
        assert_eq!(report(listed).unwrap().failures[0].name, "c");
        assert_eq!(counts("<testsuite tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"2\"/>"), (1, 2, 2));
        let nested = "<testsuites tests='3' failures='1'><testsuite tests='3' failures='1'/></testsuites>";
        assert_eq!(counts(nested), (2, 1, 0), "a suite inside is part of the one around it");
        assert_eq!(counts("<testsuites><testsuite tests='1'/><testsuite tests='2'/></testsuites>"), (3, 0, 0));
        let outside = "<testsuite tests='1' errors='1'><testcase name='a'/><system-err>boom</system-err></testsuite>";
        assert_eq!(counts(outside), (1, 1, 0), "an error outside of all tests");
        let quoted = "<testsuite tests='1'><testcase name='a > b'/><system-out><![CDATA[<testsuite tests='9' failures='9'>]]></system-out>\
                      <!-- <testsuite failures='9' tests='9'> --></testsuite>";
        assert_eq!(counts(quoted), (1, 0, 0), "what a test printed is no suite");
        assert_eq!(counts("\u{feff}<testsuite/>"), (0, 0, 0));
    }

    #[test]
    fn a_report_that_is_not_whole_is_none() {
        let whole =
            "<testsuite tests=\"2\"><testcase name=\"a\"/><testcase name=\"b\"><failure>x</failure></testcase></testsuite>";
        assert!(report(whole).is_ok());
        for end in 1..whole.len() {
            assert!(report(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
        for (text, fault) in [
            ("", ReportFault::Empty),
            (" \n", ReportFault::Empty),
            ("not XML", ReportFault::NotXml),
            ("<testsuite></testcase></testsuite>", ReportFault::NotXml),
            ("<testsuite/><testsuite/>", ReportFault::NotXml),
            ("<testsuite/>trailing", ReportFault::NotXml),
            ("3 passed <testsuite/>", ReportFault::NotXml),
            ("<testsuite name=\"a<b\"/>", ReportFault::NotXml),
            ("<testsuite><![CDATA[ </testsuite>", ReportFault::CutOff),
            ("<testsuite><!-- </testsuite>", ReportFault::CutOff),
            ("<html><testsuite/></html>", ReportFault::NoSuite),
            ("<!DOCTYPE x [<!ENTITY a \"&b;&b;\">]><testsuite/>", ReportFault::DocumentType),
            ("<testsuite><!ENTITY a 'b'></testsuite>", ReportFault::DocumentType),
        ] {
            assert_eq!(report(text), Err(fault), "{text}");
        }
        let deep = format!("<testsuite>{}", "<a>".repeat(100_000));
        assert_eq!(report(&deep), Err(ReportFault::TooDeep));
        let wide = format!("<testsuite tests='18446744073709551615' failures='{}'/>", "9".repeat(100_000));
        assert_eq!(counts(&wide).1, 0, "a number that is none");
    }
}
