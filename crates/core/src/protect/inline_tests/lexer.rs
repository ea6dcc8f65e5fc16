//! Splits Rust source into tokens: just enough to find items, their attributes and their ends.

use std::ops::Range;

use super::Unreadable;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
    /// For an opening bracket: the index of the closing token.
    pub(super) close: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A string, a character, a number or a lifetime.
    Literal,
    /// A doc comment, which the compiler treats as an attribute of the next item.
    Doc,
    Open(u8),
    Close(u8),
    Sign(u8),
}

/// Splits the text into tokens, without comments and whitespace.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Unreadable> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = first_byte(text);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let (kind, length) = match byte {
            _ if byte.is_ascii_whitespace() => (None, 1),
            b'/' if rest.starts_with(b"//") => line_comment(rest),
            b'/' if rest.starts_with(b"/*") => block_comment(rest)?,
            b'"' => (Some(Kind::Literal), string(rest)?),
            b'\'' => (Some(Kind::Literal), quote(&text[at..])?),
            _ if is_word(byte) => word(rest)?,
            b'(' | b'[' | b'{' => (Some(Kind::Open(byte)), 1),
            b')' | b']' | b'}' => (Some(Kind::Close(byte)), 1),
            _ => (Some(Kind::Sign(byte)), 1),
        };
        if let Some(kind) = kind {
            match kind {
                Kind::Open(_) => open.push(tokens.len()),
                Kind::Close(close) => {
                    let place = open.pop().ok_or(Unreadable::Brackets)?;
                    if !matches!(
                        (tokens[place].kind, close),
                        (Kind::Open(b'('), b')') | (Kind::Open(b'['), b']') | (Kind::Open(b'{'), b'}')
                    ) {
                        return Err(Unreadable::Brackets);
                    }
                    tokens[place].close = tokens.len();
                }
                Kind::Word | Kind::Literal | Kind::Doc | Kind::Sign(_) => {}
            }
            tokens.push(Token { kind, range: at..at + length, close: 0 });
        }
        at += length;
    }
    if open.is_empty() { Ok(tokens) } else { Err(Unreadable::Brackets) }
}

/// The position after a byte order mark and a `#!` line.
fn first_byte(text: &str) -> usize {
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    let rest = &text[mark..];
    let is_script = rest.strip_prefix("#!").is_some_and(|rest| !rest.trim_start().starts_with('['));
    mark + if is_script { rest.find('\n').unwrap_or(rest.len()) } else { 0 }
}

fn line_comment(rest: &[u8]) -> (Option<Kind>, usize) {
    let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let is_doc = rest.starts_with(b"///") && !rest.starts_with(b"////");
    (is_doc.then_some(Kind::Doc), length)
}

fn block_comment(rest: &[u8]) -> Result<(Option<Kind>, usize), Unreadable> {
    let (mut at, mut depth) = (2, 1_usize);
    while depth > 0 {
        match rest.get(at..).unwrap_or_default() {
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [_, ..] => at += 1,
            [] => return Err(Unreadable::NotClosed),
        }
    }
    let is_doc = at > 4 && rest.starts_with(b"/**") && !rest.starts_with(b"/***");
    Ok((is_doc.then_some(Kind::Doc), at))
}

/// The length of a string literal with possible escapes.
fn string(rest: &[u8]) -> Result<usize, Unreadable> {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return Ok(at + 1),
            Some(_) => at += 1,
            None => return Err(Unreadable::NotClosed),
        }
    }
}

/// The length of a character literal or a lifetime.
fn quote(rest: &str) -> Result<usize, Unreadable> {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.take(10).find(|(_, c)| *c == '\'').map(|(at, _)| at + 1).ok_or(Unreadable::NotClosed)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => Ok(at + 1),
            Some(_) | None => Ok(1 + rest[1..].bytes().take_while(|byte| is_word(*byte)).count()),
        },
        None => Err(Unreadable::NotClosed),
    }
}

/// A word, a number, or a literal with a prefix: `r#"…"#`, `b'x'`, `r#type`.
fn word(rest: &[u8]) -> Result<(Option<Kind>, usize), Unreadable> {
    let length = rest.iter().take_while(|byte| is_word(**byte)).count();
    let (prefix, after) = rest.split_at(length);
    if rest[0].is_ascii_digit() {
        return Ok((Some(Kind::Literal), length));
    }
    match (prefix, after.first()) {
        (b"b" | b"c", Some(b'"')) => Ok((Some(Kind::Literal), length + string(after)?)),
        (b"b", Some(b'\'')) => {
            let end = if after.get(1) == Some(&b'\\') { 3 } else { 2 };
            // `b'\x41'`
            let close = after.iter().skip(end).take(4).position(|byte| *byte == b'\'').ok_or(Unreadable::NotClosed)?;
            Ok((Some(Kind::Literal), length + end + close + 1))
        }
        (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => {
            let hashes = after.iter().take_while(|byte| **byte == b'#').count();
            match after.get(hashes) {
                Some(b'"') => Ok((Some(Kind::Literal), length + raw_string(after, hashes)?)),
                Some(byte) if prefix == b"r" && hashes == 1 && is_word(*byte) => {
                    Ok((Some(Kind::Word), length + 1 + after[1..].iter().take_while(|byte| is_word(**byte)).count()))
                }
                Some(_) | None => Ok((Some(Kind::Word), length)),
            }
        }
        _ => Ok((Some(Kind::Word), length)),
    }
}

fn raw_string(after: &[u8], hashes: usize) -> Result<usize, Unreadable> {
    let mut at = hashes + 1;
    loop {
        at += after.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'"')).ok_or(Unreadable::NotClosed)? + 1;
        let closing = after[at..].iter().take(hashes).take_while(|byte| **byte == b'#').count();
        if closing == hashes {
            return Ok(at + hashes);
        }
        at += closing;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
