//! Edits lists and objects as text: detects their layout, inserts members at the front and cuts members out.

use std::ops::Range;

use verdone_text::json::{Node, Value};

use super::entry::Mark;

/// The layout inside a list or object.
#[derive(Debug)]
pub(super) struct Layout {
    /// The position after the opening bracket.
    at: usize,
    is_empty: bool,
    /// The text before each member.
    lead: String,
    /// The line ending and indentation of the members; `None` if all are on one line.
    line: Option<(String, String)>,
    /// The text before the closing bracket, if the container was empty.
    trail: String,
    unit: String,
    /// Without spaces after colons, commas and brackets.
    tight: bool,
}

impl Layout {
    pub(super) fn of_own_file() -> Self {
        let line = Some(("\n".to_owned(), "  ".to_owned()));
        Self { at: 0, is_empty: true, lead: "\n  ".into(), line, trail: "\n".into(), unit: "  ".into(), tight: false }
    }

    /// The layout of the existing members of `container`, or one that matches the rest of the file.
    pub(super) fn inside(text: &str, root: &Node<'_>, container: &Node<'_>) -> Self {
        let at = container.span.start + 1;
        let elements = contents(container);
        let (unit, tight) = habits(text, root);
        if let Some(first) = elements.first() {
            let lead = text[at..first.start].to_owned();
            let line = lead.contains('\n').then(|| (line_end(&lead).to_owned(), after_last_line(&lead).to_owned()));
            return Self { at, is_empty: false, lead, line, trail: String::new(), unit, tight };
        }
        let on_one_line = !text.trim().contains('\n') && !root.members().is_empty();
        if on_one_line {
            return Self { at, is_empty: true, lead: String::new(), line: None, trail: String::new(), unit, tight };
        }
        let (end, outer) = (line_end(text), indentation(text, at));
        let line = Some((end.to_owned(), format!("{outer}{unit}")));
        Self { at, is_empty: true, lead: format!("{end}{outer}{unit}"), line, trail: format!("{end}{outer}"), unit, tight }
    }

    /// The layout one level deeper.
    pub(super) fn deeper(&self) -> Self {
        let line = self.line.as_ref().map(|(end, indent)| (end.clone(), format!("{indent}{}", self.unit)));
        let lead = line.as_ref().map_or_else(String::new, |(end, indent)| format!("{end}{indent}"));
        Self { at: 0, is_empty: true, lead, line, trail: String::new(), unit: self.unit.clone(), tight: self.tight }
    }

    pub(super) fn member(&self, key: &str, value: &str) -> String {
        format!("\"{key}\":{}{value}", if self.tight { "" } else { " " })
    }

    /// An object on one line.
    pub(super) fn line(&self, members: &[String]) -> String {
        if self.tight { format!("{{{}}}", members.join(",")) } else { format!("{{ {} }}", members.join(", ")) }
    }

    /// An object as the value of a member, with one member per line if the file uses several lines.
    pub(super) fn block(&self, members: &[String]) -> String {
        let Some((end, indent)) = &self.line else { return self.line(members) };
        let inner = format!("{end}{indent}{}", self.unit);
        format!("{{{inner}{}{end}{indent}}}", members.join(&format!(",{inner}")))
    }

    /// The position and text that insert members at the front.
    pub(super) fn insert(&self, members: Vec<String>) -> (usize, String) {
        let mut out = String::new();
        let count = members.len();
        for (n, member) in members.into_iter().enumerate() {
            out.push_str(&self.lead);
            out.push_str(&member);
            if n + 1 < count || !self.is_empty {
                out.push(',');
            }
        }
        out.push_str(&self.trail);
        (self.at, out)
    }
}

/// What happens to a node when our hooks are removed.
#[derive(Debug)]
pub(super) enum Fate {
    Stays,
    /// Only these bytes are removed.
    Parts(Vec<Range<usize>>),
    /// It contains nothing but our hooks.
    Goes {
        mark: Mark,
        /// The range to cut if the node must stay but become empty.
        emptied: Range<usize>,
    },
}

/// The positions of the members or items of a container.
fn contents(container: &Node<'_>) -> Vec<Range<usize>> {
    match &container.value {
        Value::Object(members) => members.iter().map(|member| member.key_span.start..member.node.span.end).collect(),
        Value::List(items) => items.iter().map(|item| item.span.clone()).collect(),
        Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::Unread => Vec::new(),
    }
}

/// Derives the fate of a container from the fates of its elements.
pub(super) fn cut(text: &str, root: &Node<'_>, container: &Node<'_>, fates: Vec<Fate>) -> Fate {
    let elements = contents(container);
    let goes = |fate: &Fate| matches!(fate, Fate::Goes { .. });
    if fates.iter().all(goes)
        && let (Some(Fate::Goes { mark, .. }), Some(last)) = (fates.first(), elements.last())
    {
        return Fate::Goes { mark: *mark, emptied: emptied(text, root, container, elements[0].start..last.end) };
    }
    let comma_after = |n: usize| elements[n].end + text[elements[n].end..].find(',').unwrap_or_default();
    let mut parts = Vec::new();
    let mut n = 0;
    while n < fates.len() {
        let first = n;
        while n < fates.len() && goes(&fates[n]) {
            n += 1;
        }
        match (first, n) {
            (first, end) if first == end => n += 1,
            (0, end) => parts.push(container.span.start + 1..comma_after(end - 1) + 1),
            (first, end) if end < fates.len() => parts.push(comma_after(first - 1) + 1..comma_after(end - 1) + 1),
            (first, end) => parts.push(comma_after(first - 1)..elements[end - 1].end),
        }
    }
    for fate in fates {
        if let Fate::Parts(inner) = fate {
            parts.extend(inner);
        }
    }
    if parts.is_empty() { Fate::Stays } else { Fate::Parts(parts) }
}

/// The text without these parts, which do not overlap.
pub(super) fn without(text: &str, mut parts: Vec<Range<usize>>) -> String {
    parts.sort_by_key(|part| part.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for part in parts {
        out.push_str(&text[from..part.start]);
        from = part.end;
    }
    out.push_str(&text[from..]);
    out
}

/// The range to cut so that a container is empty again. The user's whitespace stays. If the file was reformatted since, the original
/// whitespace is unknown, and all of it is cut.
fn emptied(text: &str, root: &Node<'_>, container: &Node<'_>, contents: Range<usize>) -> Range<usize> {
    let start = container.span.start + 1;
    let lead = &text[start..contents.start];
    // Derived from the lead, not from the bracket's line, because hooks inserted before the bracket may have broken that line.
    let outer = after_last_line(lead).strip_suffix(&habits(text, root).0).unwrap_or_default();
    let trail = if lead.contains('\n') { format!("{}{outer}", line_end(lead)) } else { String::new() };
    let rest = &text[contents.end..container.span.end - 1];
    start..if rest.starts_with(&trail) { contents.end + trail.len() } else { container.span.end - 1 }
}

/// The indentation unit, and whether the file uses no spaces, judging by its first member.
fn habits(text: &str, root: &Node<'_>) -> (String, bool) {
    let Some(first) = root.members().first() else { return ("  ".to_owned(), false) };
    let lead = &text[root.span.start + 1..first.key_span.start];
    let unit = after_last_line(lead);
    let unit = unit.strip_prefix(indentation(text, root.span.start)).unwrap_or(unit);
    let is_unit = lead.contains('\n') && !unit.is_empty();
    let tight = &text[first.key_span.end..first.node.span.start] == ":";
    (if is_unit { unit } else { "  " }.to_owned(), tight)
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn after_last_line(space: &str) -> &str {
    space.rsplit('\n').next().unwrap_or_default()
}

/// The indentation of the line at a position.
fn indentation(text: &str, at: usize) -> &str {
    let line = after_last_line(&text[..at]).trim_start_matches('\u{feff}');
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
