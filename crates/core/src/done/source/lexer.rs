//! Shared by all lexers: a position in the text, the parts found so far, and the strings with embedded code.

use super::Part;

/// Maximum length of a regular expression. Without a limit, a hostile line would be scanned again for each of its slashes.
const LONGEST_REGEX: usize = 1_000;

pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    parts: Vec<Part>,
    /// The position of the last byte that is neither whitespace nor comment.
    last: Option<usize>,
    /// The strings that enclose the current code, outermost first.
    inside: Vec<Inside>,
    documents: Vec<Document>,
}

/// A string with embedded code, and the current bracket depth of that code.
#[derive(Clone, Copy)]
struct Inside {
    quote: Quote,
    depth: u32,
}

/// A string that may contain code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    /// The closing quote.
    pub(super) close: u8,
    /// What starts embedded code, such as `${`.
    pub(super) opens: &'static [u8],
    /// The bracket that ends that code.
    pub(super) ends: u8,
}

/// A here-document whose body begins on the next line.
struct Document {
    end: Vec<u8>,
    indented: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, parts: vec![Part::Code; bytes.len()], last: None, inside: Vec::new(), documents: Vec::new() }
    }

    pub(super) fn run(&mut self, step: fn(&mut Self)) -> Vec<Part> {
        while self.at < self.bytes.len() {
            let before = self.at;
            if !self.leave_code() {
                step(self);
            }
            if self.at <= before {
                self.at = before + 1;
            }
        }
        std::mem::take(&mut self.parts)
    }

    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn starts(&self, with: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(with)
    }

    /// The previous byte; a line end at the beginning of the text.
    pub(super) fn before(&self) -> u8 {
        self.at.checked_sub(1).map_or(b'\n', |at| self.bytes[at])
    }

    /// The last byte of code or string so far.
    pub(super) fn last(&self) -> Option<u8> {
        self.last.map(|at| self.bytes[at])
    }

    /// The word that ends at the last byte of code.
    pub(super) fn last_word(&self) -> &'a [u8] {
        let Some(last) = self.last else { return b"" };
        let start = (0..=last).rev().take(12).take_while(|at| is_word(self.bytes[*at])).last();
        start.map_or(b"", |start| &self.bytes[start..=last])
    }

    pub(super) fn at_line_start(&self) -> bool {
        self.before() == b'\n'
    }

    /// Reads one byte of code.
    pub(super) fn code(&mut self) {
        let byte = self.byte(0);
        if !byte.is_ascii_whitespace() {
            self.last = Some(self.at);
        }
        self.at += 1;
        if byte == b'\n' {
            self.read_documents();
        }
    }

    /// Reads several bytes of code.
    pub(super) fn skip(&mut self, count: usize) {
        let end = (self.at + count).min(self.bytes.len());
        while self.at < end {
            self.code();
        }
    }

    pub(super) fn line_comment(&mut self) {
        let end = self.line_end();
        self.mark(end, Part::Comment);
    }

    pub(super) fn block_comment(&mut self, nested: bool) {
        let (mut end, mut depth) = (self.at + 2, 1_u32);
        while end < self.bytes.len() && depth > 0 {
            match &self.bytes[end..] {
                [b'*', b'/', ..] => (end, depth) = (end + 2, depth - 1),
                [b'/', b'*', ..] if nested => (end, depth) = (end + 2, depth + 1),
                _ => end += 1,
            }
        }
        self.mark(end, Part::Comment);
    }

    /// Marks everything up to and including `end` as comment.
    pub(super) fn comment_until(&mut self, end: &[u8]) {
        let to = self.find(self.at + 1, end);
        self.mark(to, Part::Comment);
    }

    /// A string that ends at this byte, or at the end of the line unless it may span lines. `lead` is the length of its opening quote.
    pub(super) fn quoted(&mut self, lead: usize, close: u8, escapes: bool, lines: bool) {
        let mut end = self.at + lead;
        while end < self.bytes.len() {
            match self.bytes[end] {
                b'\\' if escapes => end += 2,
                b'\n' if !lines => break,
                byte if byte == close => {
                    end += 1;
                    break;
                }
                _ => end += 1,
            }
        }
        self.text_until(end);
    }

    /// A string that ends with these bytes.
    pub(super) fn raw(&mut self, lead: usize, close: &[u8], escapes: bool) {
        let mut end = self.at + lead;
        while end < self.bytes.len() {
            if escapes && self.bytes[end] == b'\\' {
                end += 2;
            } else if self.bytes[end..].starts_with(close) {
                end += close.len();
                break;
            } else {
                end += 1;
            }
        }
        self.text_until(end);
    }

    /// A string that may contain code, from its opening quote.
    pub(super) fn template(&mut self, lead: usize, quote: Quote) {
        let from = self.at;
        self.at += lead;
        self.go_on(from, quote);
    }

    /// At the bracket that ends embedded code, returns to the enclosing string.
    fn leave_code(&mut self) -> bool {
        let byte = self.byte(0);
        let Some(inside) = self.inside.last_mut() else { return false };
        let opening = if inside.quote.ends == b')' { b'(' } else { b'{' };
        if byte == opening {
            inside.depth += 1;
        } else if byte == inside.quote.ends {
            if inside.depth == 0 {
                let quote = inside.quote;
                self.inside.pop();
                let from = self.at;
                self.at += 1;
                self.go_on(from, quote);
                return true;
            }
            inside.depth -= 1;
        }
        false
    }

    fn go_on(&mut self, from: usize, quote: Quote) {
        let mut end = self.at;
        while end < self.bytes.len() {
            if self.bytes[end] == b'\\' {
                end += 2;
            } else if self.bytes[end..].starts_with(quote.opens) {
                end += quote.opens.len();
                self.inside.push(Inside { quote, depth: 0 });
                break;
            } else if self.bytes[end] == quote.close {
                end += 1;
                break;
            } else {
                end += 1;
            }
        }
        self.at = from;
        self.text_until(end);
    }

    /// A regular expression from its slash. Returns `false` if it is not closed on the same line.
    pub(super) fn regex(&mut self) -> bool {
        let (mut end, mut in_class) = (self.at + 1, false);
        let most = self.bytes.len().min(self.at + LONGEST_REGEX);
        while end < most {
            match self.bytes[end] {
                b'\n' => return false,
                b'\\' => end += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.text_until(end + 1);
                    return true;
                }
                _ => {}
            }
            end += 1;
        }
        false
    }

    /// A here-document that begins on the next line.
    pub(super) fn document(&mut self, end: &[u8], indented: bool) {
        self.documents.push(Document { end: end.to_vec(), indented });
    }

    fn read_documents(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            let from = self.at;
            let mut line = self.at;
            while line < self.bytes.len() {
                let end = self.bytes[line..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |at| line + at);
                let text = self.bytes[line..end].trim_ascii_end();
                let text = if document.indented { text.trim_ascii_start() } else { text };
                line = (end + 1).min(self.bytes.len());
                if text == document.end || end == self.bytes.len() {
                    break;
                }
            }
            self.at = from;
            self.text_until(line);
        }
    }

    pub(super) fn text_until(&mut self, end: usize) {
        self.mark(end, Part::Text);
        self.last = self.at.checked_sub(1);
    }

    fn mark(&mut self, end: usize, part: Part) {
        let end = end.min(self.bytes.len()).max(self.at);
        self.parts[self.at..end].fill(part);
        self.at = end;
    }

    fn line_end(&self) -> usize {
        self.bytes[self.at..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |at| self.at + at)
    }

    /// The position after the next occurrence of these bytes, or the end of the text.
    fn find(&self, from: usize, wanted: &[u8]) -> usize {
        let from = from.min(self.bytes.len());
        let found = self.bytes[from..].windows(wanted.len()).position(|window| window == wanted);
        found.map_or(self.bytes.len(), |at| from + at + wanted.len())
    }

    /// The word at this distance.
    pub(super) fn word(&self, ahead: usize) -> &'a [u8] {
        let rest = &self.bytes[(self.at + ahead).min(self.bytes.len())..];
        &rest[..rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len())]
    }

    pub(super) fn hashes(&self, ahead: usize) -> usize {
        let rest = &self.bytes[(self.at + ahead).min(self.bytes.len())..];
        rest.iter().take_while(|byte| **byte == b'#').count()
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
