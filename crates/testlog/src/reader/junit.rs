//! `JUnit` XML, a report format that nearly every framework can write.
//!
//! A tag scanner, not an XML parser: it supports no document types and only the five predefined and numeric entities, so nothing can grow.

use super::super::lines::Lines;
use super::{End, Framework, Reading, Says};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let start = lines.iter().position(|line| line.contains("<testsuite"))?;
    let end = lines.iter().rposition(|line| line.contains("</testsuite") || line.contains("<testsuite"))?;
    let mut reading = scan(&lines[start..=end].join("\n"));
    (reading.concluded, reading.is_report) = (Some(end), true);
    Some(reading)
}

pub(in super::super) fn scan(text: &str) -> Reading {
    let mut reading = Reading::new(Framework::JunitXml);
    let mut case: Option<Case> = None;
    let (mut passed, mut failed, mut skipped, mut loading) = (0, 0, 0, 0);
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let between = &rest[..open];
        if let Some(case) = case.as_mut().filter(|case| case.failed && case.message.is_empty()) {
            let inner = between.trim().lines().next().unwrap_or_default();
            case.message = decode(inner);
        }
        rest = &rest[open + 1..];
        if let Some(data) = rest.strip_prefix("![CDATA[") {
            let end = data.find("]]>").unwrap_or(data.len());
            if let Some(case) = case.as_mut().filter(|case| case.failed && case.message.is_empty()) {
                data[..end].trim().lines().next().unwrap_or_default().clone_into(&mut case.message);
            }
            rest = data.get(end + 3..).unwrap_or_default();
            continue;
        }
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let end = tag_end(rest);
        let tag = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        let closed = tag.ends_with('/');
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        match name {
            "testcase" => {
                let line = attribute(tag, "line").and_then(|line| line.parse().ok());
                case = Some(Case {
                    name: attribute(tag, "name").unwrap_or_default(),
                    class: attribute(tag, "classname").unwrap_or_default(),
                    file: attribute(tag, "file"),
                    line,
                    ..Case::default()
                });
            }
            "failure" | "error" => {
                if let Some(case) = &mut case {
                    case.failed = true;
                    if case.message.is_empty() {
                        case.message = attribute(tag, "message").unwrap_or_default();
                    }
                }
            }
            "skipped" => {
                if let Some(case) = &mut case {
                    case.skipped = true;
                }
            }
            _ => {}
        }
        let ends = tag.starts_with("/testcase") || name == "testcase" && closed;
        if let Some(case) = case.take_if(|_| ends) {
            let end = match (case.failed && !case.skipped, case.skipped) {
                (true, _) => {
                    failed += 1;
                    loading += usize::from(case.message.contains("collection failure"));
                    reading.failures.add(&case.full_name(), case.file.as_deref(), case.line, first_line(&case.message));
                    End::Failed
                }
                (false, true) => {
                    skipped += 1;
                    End::Skipped
                }
                (false, false) => {
                    passed += 1;
                    End::Passed
                }
            };
            reading.names.add(&case.full_name(), end);
        }
    }
    reading.count(passed, failed, skipped);
    reading.judge();
    if loading > 0 && loading as u64 == failed {
        reading.says = Says::Broken;
    }
    reading
}

#[derive(Default)]
struct Case {
    name: String,
    class: String,
    file: Option<String>,
    line: Option<u32>,
    message: String,
    failed: bool,
    skipped: bool,
}

impl Case {
    fn full_name(&self) -> String {
        let plain = self.class.is_empty() || self.class == "test" || self.name.starts_with(&self.class);
        if plain { self.name.clone() } else { format!("{} {}", self.class, self.name) }
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// The end of a tag; a `>` inside quotes does not end it.
pub(in super::super) fn tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            // An unclosed quote must not swallow the rest of the report.
            (None, b'>') | (Some(_), b'<') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

pub(in super::super) fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start();
        if let Some(value) = after.strip_prefix('=').map(str::trim_start)
            && before.is_some_and(char::is_whitespace)
        {
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let value = &value[1..];
            return Some(decode(&value[..value.find(quote)?]));
        }
        rest = &rest[at + name.len()..];
    }
}

pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let decoded = end.and_then(|end| match &rest[1..end] {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            number => {
                let number = number.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code).filter(|c| !c.is_control() || *c == '\n')
            }
        });
        if let (Some(c), Some(end)) = (decoded, end) {
            out.push(c);
            rest = &rest[end + 1..];
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
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
