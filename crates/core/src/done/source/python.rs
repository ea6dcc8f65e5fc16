//! Python: strings with single and triple quotes. Their prefixes count as code.

use super::lexer::Lexer;

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match lexer.byte(0) {
        b'#' => lexer.line_comment(),
        quote @ (b'"' | b'\'') if lexer.starts(&[quote; 3]) => lexer.raw(3, &[quote; 3], true),
        quote @ (b'"' | b'\'') => lexer.quoted(1, quote, true, false),
        _ => lexer.code(),
    }
}
