//! Go: raw strings in backticks, runes.

use super::lexer::Lexer;

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match (lexer.byte(0), lexer.byte(1)) {
        (b'/', b'/') => lexer.line_comment(),
        (b'/', b'*') => lexer.block_comment(false),
        (quote @ (b'"' | b'\''), _) => lexer.quoted(1, quote, true, false),
        (b'`', _) => lexer.quoted(1, b'`', false, true),
        _ => lexer.code(),
    }
}
