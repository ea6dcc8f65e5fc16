//! `JUnit` XML, a report format that nearly every framework can write.
//!
//! Here it is part of a command's output: other text may stand around it, and its end or a part in the middle may be missing.
//! A report in a file must be complete: see [`report`](crate::report). Nothing can grow: declarations of entities are ignored.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader};

use super::super::lines::Lines;
use super::entities::decode;
use super::{End, Framework, Reading, Says};

/// How many times over a text is parsed if quotes are not closed. Each of them may hide all of the text after it.
const MOST_PASSES: usize = 8;

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let start = lines.iter().position(|line| line.contains("<testsuite"))?;
    let end = lines.iter().rposition(|line| line.contains("</testsuite") || line.contains("<testsuite"))?;
    let mut reading = scan(&lines[start..=end].join("\n"));
    (reading.concluded, reading.is_report) = (Some(end), true);
    Some(reading)
}

pub(in super::super) fn scan(text: &str) -> Reading {
    let mut cases = Cases::new();
    let mut work = text.len().saturating_mul(MOST_PASSES);
    let mut rest = text;
    while let Some(broken) = cases.read(rest) {
        let Some(left) = work.checked_sub(broken.searched) else { break };
        work = left;
        rest = &rest[broken.next..];
    }
    cases.into_reading()
}

/// The value of an attribute; `None` also if it has no quotes.
pub(in super::super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    // Without the check for duplicates, whose work is quadratic.
    let mut attributes = tag.attributes();
    let mut whole = attributes.with_checks(false).flatten();
    whole.find(|attribute| attribute.key.as_ref() == name).map(|attribute| decode(&attribute.value))
}

/// A tag with an unclosed quote or without an end.
struct Broken {
    /// Where to resume: no tag contains a `<`, so the next tag begins there.
    next: usize,
    /// How many bytes after `next` were searched for the tag's end.
    searched: usize,
}

struct Cases {
    reading: Reading,
    open: Option<Case>,
    /// Failures because a test file could not be loaded.
    loading: u64,
}

impl Cases {
    fn new() -> Self {
        Self { reading: Reading::new(Framework::JunitXml), open: None, loading: 0 }
    }

    /// Reads up to the end or to a broken tag, whose name and first attributes count.
    fn read(&mut self, text: &str) -> Option<Broken> {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        (config.check_end_names, config.allow_unmatched_ends) = (false, true);
        (config.allow_dangling_amp, config.expand_empty_elements) = (true, true);
        loop {
            let start = reader.buffer_position() as usize;
            let event = reader.read_event();
            let end = reader.buffer_position() as usize;
            let is_tag = match &event {
                Ok(Event::Start(_) | Event::End(_)) => true,
                Ok(_) => false,
                Err(error) => !is_unclosed_aside(error),
            };
            let inside = text.get(start + 1..end).unwrap_or_default();
            if is_tag && (event.is_err() || inside.contains('<')) {
                let tag = text[start + 1..].split('<').next().unwrap_or_default();
                let name = tag.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(tag.len());
                self.start(&BytesStart::from_content(tag, name));
                let next = start + 1 + tag.len();
                return (next < text.len()).then_some(Broken { next, searched: end.saturating_sub(next) });
            }
            match event {
                Ok(Event::Start(tag)) => self.start(&tag),
                Ok(Event::End(tag)) => self.end(tag.local_name().as_ref()),
                Ok(Event::Text(text)) => self.add_text(&text),
                Ok(Event::CData(text)) => self.add_text(&text),
                Ok(Event::GeneralRef(name)) => self.add_text(&decode(&format!("&{};", &*name))),
                Ok(Event::Eof) | Err(_) => return None,
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Empty(_)) => {}
            }
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        match (tag.local_name().as_ref(), &mut self.open) {
            ("testcase", open) => *open = Some(Case::from_tag(tag)),
            ("failure" | "error", Some(case)) => case.fail(tag),
            ("skipped", Some(case)) => case.skipped = true,
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match (name, &mut self.open) {
            ("failure" | "error", Some(case)) => case.in_message = false,
            ("testcase", open) => {
                if let Some(case) = open.take() {
                    self.add(&case);
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(case) = self.open.as_mut().filter(|case| case.in_message) {
            case.message.push_str(text);
        }
    }

    fn add(&mut self, case: &Case) {
        let end = match (case.skipped, case.failed) {
            (true, _) => {
                self.reading.count(0, 0, 1);
                End::Skipped
            }
            (false, true) => {
                self.reading.count(0, 1, 0);
                self.loading += u64::from(case.message.contains("collection failure"));
                let message = case.message.trim().lines().next().unwrap_or_default();
                self.reading.failures.add(&case.full_name(), case.file.as_deref(), case.line, message);
                End::Failed
            }
            (false, false) => {
                self.reading.count(1, 0, 0);
                End::Passed
            }
        };
        self.reading.names.add(&case.full_name(), end);
    }

    fn into_reading(mut self) -> Reading {
        self.reading.count(0, 0, 0);
        self.reading.judge();
        if self.loading > 0 && Some(self.loading) == self.reading.counts.failed {
            self.reading.says = Says::Broken;
        }
        self.reading
    }
}

/// Whether the text ends in a comment, CDATA section or other part that may contain tags that are none.
fn is_unclosed_aside(error: &Error) -> bool {
    use quick_xml::errors::SyntaxError::{UnclosedCData, UnclosedComment, UnclosedDoctype, UnclosedPI, UnclosedXmlDecl};
    matches!(error, Error::Syntax(UnclosedCData | UnclosedComment | UnclosedDoctype | UnclosedPI | UnclosedXmlDecl))
}

#[derive(Default)]
struct Case {
    name: String,
    class: String,
    file: Option<String>,
    line: Option<u32>,
    message: String,
    /// The text at this point belongs to the message.
    in_message: bool,
    failed: bool,
    skipped: bool,
}

impl Case {
    fn from_tag(tag: &BytesStart<'_>) -> Self {
        Self {
            name: attribute(tag, "name").unwrap_or_default(),
            class: attribute(tag, "classname").unwrap_or_default(),
            file: attribute(tag, "file"),
            line: attribute(tag, "line").and_then(|line| line.parse().ok()),
            ..Self::default()
        }
    }

    fn fail(&mut self, tag: &BytesStart<'_>) {
        self.failed = true;
        if self.message.trim().is_empty() {
            self.message = attribute(tag, "message").unwrap_or_default();
            self.in_message = self.message.trim().is_empty();
        }
    }

    fn full_name(&self) -> String {
        let plain = self.class.is_empty() || self.class == "test" || self.name.starts_with(&self.class);
        if plain { self.name.clone() } else { format!("{} {}", self.class, self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::split;
    use super::*;

    #[test]
    fn cases_are_counted_and_named() {
        let text = "<testsuite><testcase classname=\"a.B\" name=\"x &gt; y\" file=\"t.py\" line=\"3\"><failure message=\"1 &lt; 2\"/></testcase>\n\
                    <testcase name='ok'/><testcase name=\"s\"><skipped/></testcase><testcase name=\"c\"><error><![CDATA[boom <b>\nmore]]></error></testcase></testsuite>";
        let reading = read(&split(text)).unwrap();
        assert_eq!((reading.counts.passed, reading.counts.failed, reading.counts.skipped), (Some(1), Some(2), Some(1)));
        let failures = reading.failures.into_list();
        assert_eq!((failures[0].name.as_str(), failures[0].line, failures[0].message.as_str()), ("a.B x > y", Some(3), "1 < 2"));
        assert_eq!((failures[1].name.as_str(), failures[1].message.as_str()), ("c", "boom <b>"));
    }

    #[test]
    fn markup_is_read_as_xml_defines_it() {
        let cases = |text: &str| {
            let reading = scan(text);
            let counts = [reading.counts.passed, reading.counts.failed, reading.counts.skipped].map(Option::unwrap_or_default);
            let failures = reading.failures.into_list();
            (counts, failures.first().map(|failure| format!("{}: {}", failure.name, failure.message)).unwrap_or_default())
        };
        for (text, counts, failure) in [
            // Values that look like attributes.
            ("<testcase message=\"its name='a'\" name='b'><failure/></testcase>", [0, 1, 0], "b: "),
            (
                "<testcase name='say \"&apos;hi&apos;\" > x'><failure message=\"it's\"/></testcase>",
                [0, 1, 0],
                "say \"'hi'\" > x: it's",
            ),
            // A message in several pieces.
            ("<testcase name='a'><failure>1 &lt;<!-- no --> <![CDATA[2 &lt;]]></failure></testcase>", [0, 1, 0], "a: 1 < 2 &lt;"),
            // Text that is not the failure's.
            ("<testcase name='a'><failure/><system-out>hello</system-out></testcase>", [0, 1, 0], "a: "),
            // Tags that are none.
            ("<testcase name='a'/><?pi <testcase name='b'/> ?>", [1, 0, 0], ""),
            ("<!DOCTYPE x [<!ENTITY a \"<testcase name='b'/>\">]><testcase name='a'/>", [1, 0, 0], ""),
            ("<!-- <testcase name='b'/> --><testcase name='a'/>", [1, 0, 0], ""),
            ("<testcases><testcase name='a'><skipped/></testcases></testcase>", [0, 0, 1], ""),
            // Prefixes and nested suites.
            (
                "<j:testsuite><j:testsuite><j:testcase name='a'><j:error message='x'/></j:testcase></j:testsuite></j:testsuite>",
                [0, 1, 0],
                "a: x",
            ),
        ] {
            assert_eq!(cases(text), (counts, failure.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_broken_tag_hides_no_other_and_counts_itself() {
        for (text, passed, failed) in [
            ("<testcase name=\"cut ... <testcase name=\"a\"/><testcase name=\"b\"/>", 2, 0),
            ("1 < 2 <testcase name='a'/>", 1, 0),
            ("<!x <testcase name='a'/>", 1, 0),
            ("<testcase name='a'><failure message='1 <b> 2'/></testcase><testcase name='c'/>", 1, 1),
            ("<testcase name='a'/><!-- <testcase name='b'/>", 1, 0),
        ] {
            let counts = scan(text).counts;
            assert_eq!((counts.passed, counts.failed), (Some(passed), Some(failed)), "{text}");
        }
        // Every quote is searched for until the end: without a limit this would take hours.
        scan(&"<testcase name='".repeat(100_000));
    }

    #[test]
    fn hostile_xml_ends_and_expands_nothing() {
        let bomb =
            "<!DOCTYPE x [<!ENTITY a \"&b;&b;\">]><testsuite><testcase name=\"&a;&#x41;&#0;\"><failure>&a;</failure></testcase>";
        let failures = read(&split(bomb)).unwrap().failures.into_list();
        assert_eq!(failures[0].name, "&a;A&#0;");
        for text in [
            "<testsuite",
            "<testsuite><testcase name=\"x",
            "<testsuite a='><testcase name=\"é\"><failure>&",
            "<testsuite><![CDATA[",
            "<testsuite><!--",
        ] {
            read(&split(text));
        }
    }
}
