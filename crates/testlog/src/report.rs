//! Parses a `JUnit` XML test report that a gate wrote. A report is accepted as a whole or not at all: if it is truncated or not XML,
//! it says nothing about the tests it lists.
//!
//! It rejects document types, because no report needs one; so there are no entities that could grow.

use quick_xml::errors::SyntaxError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader};

use super::reader::junit::{attribute, scan};
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
    let text = text.trim_start_matches('\u{feff}');
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
    if text.trim().is_empty() {
        return Err(ReportFault::Empty);
    }
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    (config.allow_dangling_amp, config.expand_empty_elements) = (true, true);
    // For each enclosing element: whether it gave its number of tests.
    let mut open: Vec<bool> = Vec::new();
    let (mut sum, mut has_root) = (TestCounts { passed: Some(0), failed: Some(0), skipped: Some(0) }, false);
    loop {
        match reader.read_event().map_err(|error| fault(&error))? {
            Event::Start(tag) if !is_well_formed(&tag) => return Err(ReportFault::NotXml),
            Event::Start(_) if open.is_empty() && has_root => return Err(ReportFault::NotXml),
            Event::Start(tag) => {
                let is_suite = matches!(tag.local_name().as_ref(), "testsuite" | "testsuites");
                if !is_suite && !has_root {
                    return Err(ReportFault::NoSuite);
                }
                has_root = true;
                let is_part = open.contains(&true);
                open.push(is_suite && !is_part && add(&mut sum, &tag));
                if open.len() > DEEPEST {
                    return Err(ReportFault::TooDeep);
                }
            }
            Event::End(_) => {
                open.pop();
            }
            Event::Text(text) if open.is_empty() && !text.trim().is_empty() => return Err(ReportFault::NotXml),
            Event::CData(_) | Event::GeneralRef(_) if open.is_empty() => return Err(ReportFault::NotXml),
            Event::DocType(_) => return Err(ReportFault::DocumentType),
            Event::Eof if !open.is_empty() => return Err(ReportFault::CutOff),
            Event::Eof if !has_root => return Err(ReportFault::NotXml),
            Event::Eof => return Ok(sum),
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::Empty(_) => {}
        }
    }
}

fn fault(error: &Error) -> ReportFault {
    match error {
        Error::Syntax(SyntaxError::InvalidBangMarkup | SyntaxError::UnclosedDoctype) => ReportFault::DocumentType,
        Error::Syntax(_) => ReportFault::CutOff,
        _ => ReportFault::NotXml,
    }
}

/// What the parser does not check itself.
fn is_well_formed(tag: &BytesStart<'_>) -> bool {
    let is_named = tag.name().as_ref().starts_with(|c: char| c.is_alphabetic() || c == '_');
    // Without the check for duplicates, whose work is quadratic.
    is_named && !tag.contains('<') && tag.attributes().with_checks(false).all(|attribute| attribute.is_ok())
}

/// Adds the counts in a suite's tag, if it has any.
fn add(sum: &mut TestCounts, tag: &BytesStart<'_>) -> bool {
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
        let utf16 = "\u{feff}<?xml version='1.0' encoding='utf-16'?><testsuite tests='1'/>";
        assert_eq!(counts(utf16), (1, 0, 0), "text is Unicode already, whatever its file declared");
        let prefixed = "<j:testsuites xmlns:j='urn:j'><j:testsuite tests='2'/></j:testsuites>";
        assert_eq!(counts(prefixed), (2, 0, 0));
        let misleading = "<testsuite name=\"3 tests='9' failed\" tests='1'><properties/></testsuite>";
        assert_eq!(counts(misleading), (1, 0, 0), "the value of another attribute");
        let mixed = "<testsuite><!-- > --><?pi > ?><testcase name='a'><failure>a & b</failure></testcase ></testsuite >";
        assert_eq!(counts(mixed), (0, 1, 0));
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
            ("<testsuite tests=1/>", ReportFault::NotXml),
            ("<testsuite>< a></ a></testsuite>", ReportFault::NotXml),
            ("<![CDATA[x]]><testsuite/>", ReportFault::NotXml),
            ("<!-- only -->", ReportFault::NotXml),
            // A file in UTF-16, as the caller decodes it.
            ("\u{fffd}\u{fffd}<\0t\0e\0s\0t\0s\0u\0i\0t\0e\0/\0>\0", ReportFault::NotXml),
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
