//! Splits an output into the lines that readers see: without colours, carriage returns and the prefixes of parallel runners.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::sanitise::sanitise_line;

/// Longer output is cut in the middle: reports come at the end, and the work stays bounded.
const HEAD_BYTES: usize = 256 << 10;
const TAIL_BYTES: usize = 768 << 10;
const HEAD_LINES: usize = 10_000;
const TAIL_LINES: usize = 30_000;
/// A sample of the lines is enough to detect prefixes.
const SAMPLE: usize = 300;

pub(super) type Lines<'a> = Vec<Cow<'a, str>>;

/// The lines of an output. If it is too long, its start and its end.
pub(super) fn split(output: &str) -> Lines<'_> {
    let (head, tail) = cut(output);
    let mut lines: Vec<&str> = head.lines().take(HEAD_LINES).collect();
    let mut end: Vec<&str> = tail.lines().rev().take(TAIL_LINES).collect();
    end.reverse();
    lines.append(&mut end);
    lines.into_iter().map(plain).collect()
}

/// The lines without the prefix that most of them have (`web:test: `, `[0] `, `12:00:01 `), grouped by prefix;
/// `None` if there is no such prefix.
pub(super) fn without_prefixes<'a>(lines: &'a Lines<'_>) -> Option<Lines<'a>> {
    let stamps = share(lines, |line| timestamp(line).is_some());
    let bare: Vec<&str> =
        lines.iter().map(|line| if stamps { timestamp(line).map_or(&**line, |n| &line[n..]) } else { line }).collect();
    let kind = [Prefix::Bracket, Prefix::Pipe, Prefix::Task, Prefix::Label]
        .into_iter()
        .find(|kind| share(&bare, |line| kind.matches(line).is_some()));
    let Some(kind) = kind else { return stamps.then(|| bare.into_iter().map(Cow::Borrowed).collect()) };
    // Group stably, so that packages that ran at the same time no longer interleave.
    let mut order: HashMap<&str, usize> = HashMap::new();
    let mut grouped: Vec<(usize, &str)> = Vec::with_capacity(bare.len());
    let mut last = 0;
    for line in bare {
        if let Some((key, rest)) = kind.matches(line) {
            let next = order.len() + 1;
            last = *order.entry(key).or_insert(next);
            grouped.push((last, rest));
        } else {
            // A line from the tool itself, or the rest of a broken line.
            grouped.push((if line.trim().is_empty() { last } else { usize::MAX }, line));
        }
    }
    grouped.sort_by_key(|(group, _)| *group);
    Some(grouped.into_iter().map(|(_, line)| Cow::Borrowed(line)).collect())
}

fn cut(output: &str) -> (&str, &str) {
    if output.len() <= HEAD_BYTES + TAIL_BYTES {
        return ("", output);
    }
    let head = output.floor_char_boundary(HEAD_BYTES);
    let tail = output.floor_char_boundary(output.len() - TAIL_BYTES);
    let head = output[..head].rfind('\n').map_or(head, |at| at + 1);
    let tail = output[tail..].find('\n').map_or(tail, |at| tail + at + 1);
    (&output[..head], &output[tail..])
}

/// The line as a terminal shows it: the text after the last carriage return, without escape sequences.
fn plain(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    let line = match line.rfind('\r') {
        Some(at) => &line[at + 1..],
        None => line,
    };
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let line = after_column(line);
    if line.bytes().all(|byte| (byte >= b' ' && byte != 0x7f && byte < 0x80) || byte == b'\t') {
        return Cow::Borrowed(line);
    }
    // Tabs are significant in the output of Go, so sanitise only the text between them.
    if line.contains('\t') {
        return Cow::Owned(line.split('\t').map(|part| sanitise_line(part).into_owned()).collect::<Vec<_>>().join("\t"));
    }
    sanitise_line(line)
}

/// The text after the cursor last jumped back to the start of the line, as progress reports do.
fn after_column(line: &str) -> &str {
    let mut rest = line;
    let mut shown = line;
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if after.as_bytes().get(digits) == Some(&b'G') && matches!(&after[..digits], "" | "0" | "1" | "2") {
            // Bats leaves room for its mark and jumps to the second column.
            shown = &after[digits + 1..];
        }
        rest = after;
    }
    if shown.is_empty() { line } else { shown }
}

/// Whether at least half of the non-empty lines match.
fn share<S: AsRef<str>>(lines: &[S], is_so: impl Fn(&str) -> bool) -> bool {
    let (mut with, mut all) = (0_usize, 0_usize);
    let step = lines.len() / SAMPLE + 1;
    for line in lines.iter().step_by(step).map(AsRef::as_ref).filter(|line| !line.trim().is_empty()) {
        all += 1;
        with += usize::from(is_so(line));
    }
    with >= 3 && with * 2 >= all
}

#[derive(Clone, Copy)]
enum Prefix {
    /// `[web] text`, `[web]: text`: concurrently, yarn.
    Bracket,
    /// `web-1  | text`: compose and foremen.
    Pipe,
    /// `packages/web test: text`: pnpm.
    Task,
    /// `web:test: text`, `@scope/web: text`: turbo, lerna.
    Label,
}

impl Prefix {
    fn matches(self, line: &str) -> Option<(&str, &str)> {
        match self {
            Self::Bracket => {
                let (key, rest) = line.strip_prefix('[')?.split_once(']')?;
                if key.is_empty() || key.len() > 60 || is_level(key) || !key.chars().all(is_label) {
                    return None;
                }
                Some((key, blank(rest.strip_prefix(':').unwrap_or(rest))?))
            }
            Self::Pipe => {
                let (key, rest) = line.split_once('|')?;
                let key = key.trim_end();
                (!key.is_empty() && key.len() <= 60 && key.chars().all(is_label)).then_some(())?;
                Some((key, blank(rest)?))
            }
            Self::Task => {
                let end = line.find([':', '$'])?;
                let (key, rest) = (&line[..end], &line[end + 1..]);
                let (place, task) = key.split_once(' ')?;
                (!place.is_empty() && !task.is_empty() && key.len() <= 120).then_some(())?;
                (place.chars().all(is_label) && task.chars().all(is_label)).then_some(())?;
                Some((key, blank(rest)?))
            }
            Self::Label => {
                let end = match line.find(": ") {
                    Some(end) => end,
                    None => line.strip_suffix(':')?.len(),
                };
                let key = &line[..end];
                (!is_level(key) && !key.is_empty() && key.len() <= 120 && key.chars().all(|c| is_label(c) || c == ':'))
                    .then_some(())?;
                // `src/cart.py:4: ` is a location, not a prefix.
                let place = key.rsplit_once(':').is_some_and(|(_, last)| last.bytes().all(|byte| byte.is_ascii_digit()));
                (!place).then_some((key, line.get(end + 2..).unwrap_or("")))
            }
        }
    }
}

/// Words that give the severity of a line, not its source.
fn is_level(key: &str) -> bool {
    let levels =
        ["info", "error", "warning", "warn", "debug", "fatal", "fail", "failed", "pass", "ok", "note", "e", "w", "tests"];
    levels.iter().any(|level| key.eq_ignore_ascii_case(level))
}

fn is_label(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '@' | '/' | '_' | '.' | '-' | '#')
}

fn blank(rest: &str) -> Option<&str> {
    if rest.is_empty() { Some("") } else { rest.strip_prefix(' ') }
}

/// The length of a timestamp at the start of a line, including the space after it.
fn timestamp(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let open = usize::from(bytes.first() == Some(&b'['));
    let digits =
        bytes[open..].iter().take_while(|b| matches!(b, b'0'..=b'9' | b':' | b'-' | b'.' | b',' | b'T' | b'Z' | b'+')).count();
    let text = &line[open..open + digits];
    let mut end = open + digits;
    let mut clock = text;
    // A date and a time separated by a space.
    if text.len() == 10 && text.matches('-').count() == 2 && bytes.get(end) == Some(&b' ') {
        let more = bytes[end + 1..].iter().take_while(|b| matches!(b, b'0'..=b'9' | b':' | b'.' | b',' | b'Z' | b'+')).count();
        clock = &line[end + 1..end + 1 + more];
        end += 1 + more;
    }
    (clock.len() >= 8 && clock.matches(':').count() >= 2).then_some(())?;
    if open == 1 {
        (bytes.get(end) == Some(&b']')).then_some(())?;
        end += 1;
    }
    match bytes.get(end) {
        None => Some(end),
        Some(b' ') => Some(end + 1),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> Vec<String> {
        without_prefixes(&split(text)).map(|lines| lines.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }

    #[test]
    fn prefixes_go_and_the_lines_of_each_package_stay_together() {
        assert_eq!(stripped("web:test: a\napi:test: x\nweb:test: b\napi:test: y"), ["a", "b", "x", "y"]);
        assert_eq!(stripped("packages/a test: one\npackages/a test$ jest\npackages/a test: two"), ["one", "jest", "two"]);
        assert_eq!(stripped("[0] a\n[0]   ● b\n[0] c"), ["a", "  ● b", "c"]);
        assert_eq!(stripped("web-1  | a\nweb-1  |   b\nweb-1  | c"), ["a", "  b", "c"]);
        assert_eq!(stripped("2026-01-01T10:00:00.123Z a\n2026-01-01T10:00:01Z   b\n2026-01-01T10:00:02Z c"), ["a", "  b", "c"]);
        assert_eq!(stripped("[10:00:00] a\n[10:00:01] b\n[10:00:02] c"), ["a", "b", "c"]);
        assert_eq!(stripped("2026-01-01 10:00:00,123 a\n2026-01-01 10:00:00,123 b\n2026-01-01 10:00:00,123 c"), ["a", "b", "c"]);
        assert!(stripped("[INFO] a\n[ERROR] b\n[INFO] c\n[INFO] d").is_empty());
        assert!(stripped("a.rs:1:5: error: x\na.rs:2:1: error: y\na.rs:3:1: error: z").is_empty());
        assert!(stripped("plain\nlines\nwithout: any\nof them").is_empty());
    }

    #[test]
    fn colours_and_carriage_returns_go() {
        let lines = split("\u{1b}[31mred\u{1b}[0m\r\n1/4 \r2/4 \rdone\n\tok  \tpkg é");
        assert_eq!(lines, ["red", "done", "\tok  \tpkg é"]);
    }
}
