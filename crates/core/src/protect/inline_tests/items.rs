//! The items of a Rust file: which of them are tests, and where each ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::Unreadable;
use super::lexer::{Kind, Token, tokens};

/// Deeper nesting does not occur in practice, and would exhaust the stack.
const DEEPEST: usize = 16;
/// How much of an item's text to use as its label if it has no name.
const LONGEST_LABEL: usize = 200;

#[derive(Debug, Default)]
pub(super) struct File {
    /// The file begins with `#![cfg(test)]`.
    pub(super) only_tests: bool,
    pub(super) tests: Vec<Item>,
    /// `mod name;` lines that are not only for tests.
    pub(super) modules: Vec<Item>,
    /// All modules that are not only for tests.
    pub(super) declared: BTreeSet<Key>,
    /// Where each module or block that can contain items ends, by its path. The path of the file itself is empty.
    pub(super) ends: BTreeMap<Arc<str>, usize>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) key: Key,
    /// Including its attributes and doc comments.
    pub(super) range: Range<usize>,
}

/// Identifies an item: two versions of an item have the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The path of its module or block.
    pub(super) container: Arc<str>,
    name: String,
    /// Distinguishes items of the same name.
    number: usize,
}

pub(super) fn read(text: &str) -> Result<File, Unreadable> {
    let tokens = tokens(text)?;
    let mut reader = Reader { text, tokens: &tokens, file: File::default(), numbers: BTreeMap::new() };
    let top = Arc::from("");
    reader.file.ends.insert(Arc::clone(&top), text.len());
    reader.items(0..tokens.len(), &top, 0)?;
    Ok(reader.file)
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    file: File,
    /// Number of items per name so far, separately for tests and others.
    numbers: BTreeMap<(Arc<str>, String, bool), usize>,
}

impl Reader<'_> {
    fn items(&mut self, range: Range<usize>, container: &Arc<str>, depth: usize) -> Result<(), Unreadable> {
        if depth > DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        let mut at = range.start;
        while at < range.end {
            at = self.item(at, range.end, container, depth)?;
        }
        Ok(())
    }

    /// Reads one item and returns the position after it.
    fn item(&mut self, first: usize, end: usize, container: &Arc<str>, depth: usize) -> Result<usize, Unreadable> {
        let (mut at, mut is_test) = (first, false);
        while at < end {
            match self.tokens[at].kind {
                Kind::Doc => at += 1,
                Kind::Sign(b'#') if self.is_open(at + 1, b'[') => {
                    let close = self.tokens[at + 1].close;
                    is_test |= self.is_test_attribute(at + 2..close, 0);
                    at = close + 1;
                }
                Kind::Sign(b'#') if self.is_sign(at + 1, b'!') && self.is_open(at + 2, b'[') => {
                    let close = self.tokens[at + 2].close;
                    self.file.only_tests |= container.is_empty() && self.is_test_attribute(at + 3..close, 0);
                    return Ok(close + 1);
                }
                Kind::Word | Kind::Literal | Kind::Open(_) | Kind::Close(_) | Kind::Sign(_) => break,
            }
        }
        if at >= end {
            // Attributes without an item, at the end of a block.
            return Ok(end);
        }
        let (keyword, named) = self.keyword(at, end);
        let (keyword, name) = (keyword.to_owned(), self.word(named + 1).to_owned());
        let (last, body) = self.end_of_item(&keyword, named, end)?;
        let bang = (named..last).find(|at| self.word(*at).is_empty() && !self.is_sign(*at, b':'));
        let is_macro = bang.is_some_and(|at| self.is_sign(at, b'!'));
        is_test |= is_macro && keyword != "macro_rules" && self.has_test_attribute(named..last);
        let label = match keyword.as_str() {
            "mod" | "fn" | "struct" | "enum" | "union" | "trait" | "type" | "static" | "const" => format!("{keyword} {name}"),
            _ if is_macro => self.written(named..bang.unwrap_or(last)),
            // No unique name: use the text before the body.
            _ => self.written(named..body.unwrap_or(last)),
        };
        let range = self.tokens[first].range.start..self.tokens[last].range.end;
        match (keyword.as_str(), body) {
            _ if is_test => {
                let key = self.key(container, label, true);
                self.file.tests.push(Item { key, range });
            }
            ("mod" | "impl" | "trait", Some(open)) => {
                let key = self.key(container, label, false);
                let inside: Arc<str> = Arc::from(format!("{container}{}#{}/", key.name, key.number));
                self.file.ends.insert(Arc::clone(&inside), self.tokens[last].range.start);
                self.file.declared.insert(key);
                self.items(open + 1..last, &inside, depth + 1)?;
            }
            ("mod", None) => {
                let key = self.key(container, label, false);
                self.file.declared.insert(key.clone());
                self.file.modules.push(Item { key, range });
            }
            _ => {}
        }
        Ok(last + 1)
    }

    fn key(&mut self, container: &Arc<str>, name: String, is_test: bool) -> Key {
        let count = self.numbers.entry((Arc::clone(container), name.clone(), is_test)).or_default();
        *count += 1;
        Key { container: Arc::clone(container), name, number: *count }
    }

    /// The keyword that determines the kind of an item, and its position.
    fn keyword(&self, mut at: usize, end: usize) -> (&str, usize) {
        while at + 1 < end {
            let next = self.word(at + 1);
            match self.word(at) {
                "pub" if self.is_open(at + 1, b'(') => at = self.tokens[at + 1].close + 1,
                "pub" | "default" | "async" | "unsafe" | "safe" if !next.is_empty() => at += 1,
                "const" if matches!(next, "fn" | "unsafe" | "async" | "extern") => at += 1,
                "extern" if self.tokens[at + 1].kind == Kind::Literal && self.word(at + 2) == "fn" => at += 2,
                "extern" if next == "fn" => at += 1,
                _ => break,
            }
        }
        (self.word(at), at)
    }

    /// The last token of an item, and the opening brace of its body.
    fn end_of_item(&self, keyword: &str, from: usize, end: usize) -> Result<(usize, Option<usize>), Unreadable> {
        let needs_semicolon = matches!(keyword, "use" | "type" | "static" | "const" | "let");
        let mut at = from;
        while at < end {
            match self.tokens[at].kind {
                Kind::Sign(b';') => return Ok((at, None)),
                Kind::Open(b'{') if !needs_semicolon => {
                    let close = self.tokens[at].close;
                    // `Array<{ N }>` and `Array<{ N }, T>` are not bodies.
                    if !(self.is_sign(close + 1, b'>') || self.is_sign(close + 1, b',')) {
                        return Ok((close, Some(at)));
                    }
                    at = close + 1;
                }
                Kind::Open(_) => at = self.tokens[at].close + 1,
                Kind::Word | Kind::Literal | Kind::Doc | Kind::Close(_) | Kind::Sign(_) => at += 1,
            }
        }
        Err(Unreadable::NoEnd)
    }

    /// Whether the tokens of an attribute make its item a test: `test`, `tokio::test(…)`, `cfg(test)`, `cfg(all(test, unix))`,
    /// `cfg_attr(unix, test)`.
    fn is_test_attribute(&self, range: Range<usize>, depth: usize) -> bool {
        const TESTS: [&str; 8] =
            ["test", "rstest", "test_case", "wasm_bindgen_test", "quickcheck", "bench", "gtest", "test_matrix"];
        let mut at = range.start;
        while at < range.end && !matches!(self.tokens[at].kind, Kind::Open(_)) {
            at += 1;
        }
        let path = range.start..at;
        let name = path.clone().rev().map(|at| self.word(at)).find(|word| !word.is_empty()).unwrap_or_default();
        match name {
            "cfg" if path.len() == 1 => self.asks_for_test(at..range.end),
            "cfg_attr" | "unsafe" if depth > DEEPEST => true,
            "cfg_attr" if path.len() == 1 => {
                let inner = at + 1..range.end.saturating_sub(1);
                self.split_at_commas(inner).into_iter().skip(1).any(|attribute| self.is_test_attribute(attribute, depth + 1))
            }
            "unsafe" if path.len() == 1 => self.is_test_attribute(at + 1..range.end.saturating_sub(1), depth + 1),
            name => TESTS.contains(&name),
        }
    }

    /// Whether a condition contains `test` outside a `not(…)`.
    fn asks_for_test(&self, range: Range<usize>) -> bool {
        // Where each enclosing `not(…)` ends, outermost first.
        let mut negations: Vec<usize> = Vec::new();
        for at in range {
            while negations.last().is_some_and(|close| *close <= at) {
                negations.pop();
            }
            match self.word(at) {
                "not" if self.is_open(at + 1, b'(') => negations.push(self.tokens[at + 1].close),
                "test" if negations.len().is_multiple_of(2) && !self.is_sign(at + 1, b'=') => return true,
                _ => {}
            }
        }
        false
    }

    fn split_at_commas(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut start, mut at) = (Vec::new(), range.start, range.start);
        while at < range.end {
            match self.tokens[at].kind {
                Kind::Open(_) => at = self.tokens[at].close,
                Kind::Sign(b',') => {
                    parts.push(start..at);
                    start = at + 1;
                }
                Kind::Word | Kind::Literal | Kind::Doc | Kind::Close(_) | Kind::Sign(_) => {}
            }
            at += 1;
        }
        parts.push(start..range.end.max(start));
        parts
    }

    /// Whether a macro's body contains a test attribute: `proptest! { #[test] fn … }`.
    fn has_test_attribute(&self, range: Range<usize>) -> bool {
        let mut at = range.start;
        while at < range.end {
            if self.is_sign(at, b'#') && self.is_open(at + 1, b'[') {
                let close = self.tokens[at + 1].close;
                if self.is_test_attribute(at + 2..close, 0) {
                    return true;
                }
                at = close;
            }
            at += 1;
        }
        false
    }

    fn written(&self, range: Range<usize>) -> String {
        let (mut out, count) = (String::new(), range.len());
        for at in range {
            out.push_str(&self.text[self.tokens[at].range.clone()]);
            out.push(' ');
            if out.len() > LONGEST_LABEL {
                return format!("{}… ({count})", out.chars().take(LONGEST_LABEL).collect::<String>());
            }
        }
        out
    }

    fn word(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Word => &self.text[token.range.clone()],
            Some(_) | None => "",
        }
    }

    fn is_open(&self, at: usize, bracket: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Open(bracket))
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Sign(sign))
    }
}
