//! Shell: comments at the beginning of words, strings with embedded commands, here-documents.

use super::lexer::{Lexer, Quote};

const DOUBLE: Quote = Quote { close: b'"', opens: b"$(", ends: b')' };

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match (lexer.byte(0), lexer.byte(1)) {
        (b'#', _) if begins_word(lexer.before()) => lexer.line_comment(),
        (b'\\', _) => lexer.skip(2),
        (b'$', b'\'') => lexer.quoted(2, b'\'', true, true),
        (b'\'', _) => lexer.quoted(1, b'\'', false, true),
        (b'"', _) => lexer.template(1, DOUBLE),
        (b'<', b'<') if lexer.byte(2) == b'<' => lexer.skip(3),
        (b'<', b'<') => document(lexer),
        _ => lexer.code(),
    }
}

fn begins_word(before: u8) -> bool {
    before.is_ascii_whitespace() || b";&|()".contains(&before)
}

fn document(lexer: &mut Lexer<'_>) {
    let indented = lexer.byte(2) == b'-';
    let mut ahead = 2 + usize::from(indented);
    while lexer.byte(ahead) == b' ' {
        ahead += 1;
    }
    let quoted = usize::from(matches!(lexer.byte(ahead), b'\'' | b'"' | b'\\'));
    let name = lexer.word(ahead + quoted).to_vec();
    // `1 << 2` is arithmetic.
    if !name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
        return lexer.skip(2);
    }
    lexer.document(&name, indented);
    lexer.skip(ahead);
    if quoted == 1 && lexer.byte(0) != b'\\' {
        let quote = lexer.byte(0);
        return lexer.quoted(1, quote, false, false);
    }
    lexer.skip(quoted + name.len());
}
