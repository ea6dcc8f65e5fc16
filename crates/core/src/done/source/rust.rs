//! Rust: nested comments, raw strings, and quotes that belong to lifetimes.

use super::lexer::{Lexer, is_word};

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match (lexer.byte(0), lexer.byte(1)) {
        (b'/', b'/') => lexer.line_comment(),
        (b'/', b'*') => lexer.block_comment(true),
        (b'"', _) => lexer.quoted(1, b'"', true, true),
        (b'r' | b'b' | b'c', _) if !is_word(lexer.before()) => prefixed(lexer),
        (b'\'', _) => quote(lexer),
        _ => lexer.code(),
    }
}

/// `r"`, `br#"`, `c"`, `b'`; anything else is a name.
fn prefixed(lexer: &mut Lexer<'_>) {
    let letters = lexer.word(0).len();
    let raw = lexer.byte(letters.saturating_sub(1)) == b'r';
    if letters > 2 || !raw {
        return lexer.skip(letters.max(1));
    }
    let hashes = lexer.hashes(letters);
    if lexer.byte(letters + hashes) != b'"' {
        return lexer.skip(letters);
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    lexer.raw(letters + hashes + 1, &close, false);
}

/// A character literal, or the beginning of a lifetime.
fn quote(lexer: &mut Lexer<'_>) {
    if lexer.byte(1) == b'\\' {
        return lexer.quoted(1, b'\'', true, false);
    }
    // A character has at most four bytes.
    match (2..=5).find(|ahead| lexer.byte(*ahead) == b'\'') {
        Some(2) => lexer.quoted(1, b'\'', false, false),
        Some(_) if lexer.byte(1) >= 0x80 => lexer.quoted(1, b'\'', false, false),
        Some(_) | None => lexer.code(),
    }
}
