//! A page of the manual for a terminal: Markdown without its marks, wrapped to the width.
//!
//! It reads what the pages in `docs/` use: headings, paragraphs, lists, tables, fenced code, links and comments.

use crate::style::{Style, Tone};
use crate::width::columns;

/// Code and the text of list items are indented by this much.
const CODE_INDENT: &str = "    ";
/// A table column is not made narrower than this.
const NARROWEST_COLUMN: usize = 8;
const BETWEEN_COLUMNS: usize = 2;

/// The page as text. `name_link` says what to show after the text of a link to this target.
pub fn markdown_to_terminal(markdown: &str, style: &Style, name_link: &dyn Fn(&str) -> Option<String>) -> String {
    let mut page = Page { out: String::new(), style, name_link };
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if text.starts_with("```") {
            let fence: String = text.chars().take_while(|c| *c == '`').collect();
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.trim_start().starts_with(&fence)).collect();
            page.code(&code);
        } else if text.is_empty() {
            page.gap();
        } else if text.starts_with("<!--") {
            // Comments of the pages take one line each.
        } else if text.starts_with('#') {
            page.heading(text.trim_start_matches('#').trim());
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                rows.push(cells(row.trim_start()));
            }
            page.table(&rows);
        } else {
            let mut paragraph = line.trim_end().to_owned();
            while let Some(more) = lines.next_if(|line| continues(line)) {
                paragraph.push(' ');
                paragraph.push_str(more.trim());
            }
            page.paragraph(&paragraph);
        }
    }
    let mut out = page.out;
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

struct Page<'p> {
    out: String,
    style: &'p Style,
    name_link: &'p dyn Fn(&str) -> Option<String>,
}

impl Page<'_> {
    /// One empty line, never two.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        let text = self.inline(text);
        self.out.push_str(&self.style.paint(Tone::Strong, &text));
        self.out.push_str("\n\n");
    }

    fn code(&mut self, lines: &[&str]) {
        self.gap();
        for line in lines {
            self.out.push_str(format!("{CODE_INDENT}{line}").trim_end());
            self.out.push('\n');
        }
        self.gap();
    }

    fn paragraph(&mut self, text: &str) {
        // A table of contents leads nowhere on a terminal.
        if text.starts_with("- [") && text.contains("](#") && text.ends_with(')') {
            return;
        }
        let indent = text.len() - text.trim_start().len();
        let (marker, text) = text.trim_start().split_at(item_marker(text.trim_start()).unwrap_or(0));
        let hanging = indent + marker.len();
        let text = self.inline(text);
        for (at, line) in wrap_words(&text, self.style.width.saturating_sub(hanging)).iter().enumerate() {
            let before = if at == 0 { format!("{:indent$}{marker}", "") } else { " ".repeat(hanging) };
            self.out.push_str(&before);
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    fn table(&mut self, rows: &[Vec<String>]) {
        let is_rule = |row: &[String]| row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')));
        let rows: Vec<Vec<String>> =
            rows.iter().filter(|row| !is_rule(row)).map(|row| row.iter().map(|cell| self.inline(cell)).collect()).collect();
        let Some((head, body)) = rows.split_first() else { return };
        self.gap();
        match column_widths(&rows, self.style.width) {
            Some(widths) => self.columns(head, body, &widths),
            None => self.records(head, body),
        }
        self.gap();
    }

    fn columns(&mut self, head: &[String], body: &[Vec<String>], widths: &[usize]) {
        for (at, row) in std::iter::once(head).chain(body.iter().map(Vec::as_slice)).enumerate() {
            let wrapped: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap_words(cell, *width)).collect();
            for line in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
                let mut text = String::new();
                for (cell, width) in wrapped.iter().zip(widths) {
                    let part = cell.get(line).map_or("", String::as_str);
                    text.push_str(part);
                    text.push_str(&" ".repeat(width.saturating_sub(columns(part)) + BETWEEN_COLUMNS));
                }
                let tone = if at == 0 { Tone::Dim } else { Tone::Plain };
                self.out.push_str(&self.style.paint(tone, text.trim_end()));
                self.out.push('\n');
            }
        }
    }

    /// A table that is too wide for its terminal: each row as a short list.
    fn records(&mut self, head: &[String], body: &[Vec<String>]) {
        for row in body {
            self.gap();
            for (at, (name, cell)) in head.iter().zip(row).enumerate() {
                let text = if at == 0 { cell.clone() } else { format!("{name}: {cell}") };
                let indent = if at == 0 { 0 } else { 2 };
                for line in wrap_words(&text, self.style.width.saturating_sub(indent)) {
                    self.out.push_str(&" ".repeat(indent));
                    self.out.push_str(&line);
                    self.out.push('\n');
                }
            }
        }
    }

    /// Text without the marks of links and bold; code keeps its single backticks.
    fn inline(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some((code, after)) = double_quoted(rest) {
                out.push_str(code);
                rest = after;
            } else if c == '`' {
                let end = rest[1..].find('`').map_or(rest.len(), |end| end + 2);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            } else if let Some((label, target, after)) = link(rest) {
                out.push_str(&self.inline(label));
                if let Some(name) = (self.name_link)(target) {
                    out.push_str(&format!(" ({name})"));
                }
                rest = after;
            } else if let Some(after) = rest.strip_prefix("**") {
                rest = after;
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }
}

/// The code of ``` ``a `b` `` ```, which Markdown needs two backticks for and a terminal none.
fn double_quoted(text: &str) -> Option<(&str, &str)> {
    let (code, after) = text.strip_prefix("``")?.split_once("``")?;
    Some((code.trim(), after))
}

/// `[label](target)`: its parts and what follows.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    (!label.contains('[')).then_some((label, target, after))
}

/// Whether a line belongs to the paragraph or list item above it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    !text.is_empty()
        && !text.starts_with(['#', '|'])
        && !text.starts_with("```")
        && !text.starts_with("<!--")
        && item_marker(text).is_none()
}

/// The length of `- `, `* ` or `1. ` at the start of a list item.
fn item_marker(text: &str) -> Option<usize> {
    if text.starts_with("- ") || text.starts_with("* ") {
        return Some(2);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(digits + 2)
}

/// The cells of a table row. A pipe after a backslash is text.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut chars = row.trim().trim_start_matches('|').chars().peekable();
    while let Some(c) = chars.next() {
        match (c, cells.last_mut()) {
            ('\\', Some(cell)) if chars.next_if_eq(&'|').is_some() => cell.push('|'),
            ('|', _) => cells.push(String::new()),
            (_, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    // The row ends with a pipe.
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// A width for each column, the widest ones made narrower until the table fits; `None` if it cannot fit.
fn column_widths(rows: &[Vec<String>], width: usize) -> Option<Vec<usize>> {
    let count = rows.iter().map(Vec::len).max()?;
    let most =
        |at: usize, size: fn(&str) -> usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| size(cell)).max().unwrap_or(0);
    let longest_word = |text: &str| text.split(' ').map(columns).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(|at| most(at, columns)).collect();
    let least: Vec<usize> = (0..count).map(|at| most(at, longest_word).max(NARROWEST_COLUMN)).collect();
    let room = width.saturating_sub(BETWEEN_COLUMNS * count.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let widest = (0..count).filter(|at| widths[*at] > least[*at]).max_by_key(|at| widths[*at])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

/// Wraps at spaces. A word that is too long gets a line to itself: cutting a command or an address would make it useless.
fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(markdown: &str, width: usize) -> String {
        let name = |target: &str| target.starts_with("plans.md").then(|| "verdone help plans".to_owned());
        markdown_to_terminal(markdown, &Style { width, ..Style::default() }, &name)
    }

    #[test]
    fn marks_go_and_text_stays() {
        for (markdown, expected) in [
            ("# Title\ntext\n", "Title\n\ntext\n"),
            ("- [A](#a)\n- [B](#b)\n\nText.\n", "Text.\n"),
            ("<!-- generated -->\nText.\n", "Text.\n"),
            ("a **bold** word, `code **kept**`\n", "a bold word, `code **kept**`\n"),
            ("see [plans](plans.md#x) and [it](y.md)\n", "see plans (verdone help plans) and it\n"),
            ("```sh\nverdone run   # go\n```\n", "    verdone run   # go\n"),
            ("| ``Check: `x` `` | b |\n|---|---|\n| 1 \\| 2 | 3 |\n", "Check: `x`  b\n1 | 2       3\n"),
        ] {
            assert_eq!(render(markdown, 80), expected, "{markdown}");
        }
    }

    #[test]
    fn paragraphs_lists_and_tables_are_wrapped() {
        assert_eq!(render("one two three\nfour five\n", 13), "one two three\nfour five\n");
        assert_eq!(render("- one two three\n  four\n- five\n", 9), "- one two\n  three\n  four\n- five\n");
        assert_eq!(
            render("| key | meaning |\n|---|---|\n| aaaaaaaa | one two three four |\n", 20),
            "key       meaning\naaaaaaaa  one two\n          three four\n"
        );
    }

    #[test]
    fn a_table_that_cannot_fit_becomes_a_list() {
        let table = "| key | one | two |\n|---|---|---|\n| aaaaaaaa | bbbbbbbb | cccccccc |\n";
        assert_eq!(render(table, 20), "aaaaaaaa\n  one: bbbbbbbb\n  two: cccccccc\n");
    }
}
