//! JavaScript and TypeScript: templates with embedded code, and regular expressions recognised by what precedes them.

use super::lexer::{Lexer, Quote};

const TEMPLATE: Quote = Quote { close: b'`', opens: b"${", ends: b'}' };

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match (lexer.byte(0), lexer.byte(1)) {
        (b'#', b'!') if lexer.at == 0 => lexer.line_comment(),
        (b'/', b'/') => lexer.line_comment(),
        (b'/', b'*') => lexer.block_comment(false),
        (quote @ (b'"' | b'\''), _) => lexer.quoted(1, quote, true, false),
        (b'`', _) => lexer.template(1, TEMPLATE),
        (b'/', _) if may_be_regex(lexer) && lexer.regex() => {}
        _ => lexer.code(),
    }
}

/// After a value, a slash is a division. In JSX it closes a tag.
fn may_be_regex(lexer: &Lexer<'_>) -> bool {
    match lexer.last() {
        None => true,
        Some(byte) if b"(,=:[!&|?{;+-*%>~^".contains(&byte) => true,
        Some(byte) if byte.is_ascii_alphabetic() => {
            matches!(lexer.last_word(), b"return" | b"typeof" | b"case" | b"in" | b"of" | b"throw" | b"await" | b"yield")
        }
        Some(_) => false,
    }
}
