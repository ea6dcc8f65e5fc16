//! Ruby: strings with embedded code, `%` literals, here-documents, `=begin` comments.

use super::lexer::{Lexer, Quote, is_word};

pub(super) fn step(lexer: &mut Lexer<'_>) {
    match (lexer.byte(0), lexer.byte(1)) {
        (b'=', _) if lexer.at_line_start() && lexer.starts(b"=begin") => lexer.comment_until(b"\n=end"),
        (b'_', _) if lexer.at_line_start() && lexer.starts(b"__END__\n") => lexer.text_until(usize::MAX),
        (b'#', _) => lexer.line_comment(),
        (b'\'', _) => lexer.quoted(1, b'\'', true, true),
        // `?"` is a character literal.
        (b'?', b'"' | b'\'' | b'#') if !is_word(lexer.before()) && lexer.before() != b')' => lexer.skip(2),
        (close @ (b'"' | b'`'), _) => lexer.template(1, Quote { close, opens: b"#{", ends: b'}' }),
        (b'<', b'<') => document(lexer),
        (b'%', _) if begins_value(lexer) => percent(lexer),
        (b'/', _) if begins_value(lexer) && lexer.regex() => {}
        _ => lexer.code(),
    }
}

/// Whether a value can begin here, so that `/` and `%` are not operators.
fn begins_value(lexer: &Lexer<'_>) -> bool {
    match lexer.last() {
        None => true,
        Some(byte) if b"(,=:[!&|?{;+-*<>~^".contains(&byte) => true,
        Some(byte) if is_word(byte) => {
            let call = lexer.before() == b' ' && lexer.byte(1) != b' ' && lexer.byte(1) != b'=';
            call || matches!(lexer.last_word(), b"if" | b"unless" | b"when" | b"and" | b"or" | b"not" | b"return" | b"while")
        }
        Some(_) => false,
    }
}

fn percent(lexer: &mut Lexer<'_>) {
    let letters = usize::from(lexer.byte(1).is_ascii_alphabetic());
    let close = match lexer.byte(1 + letters) {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        b'<' => b'>',
        byte @ (b'|' | b'!' | b'/') => byte,
        _ => return lexer.code(),
    };
    if letters == 1 && !b"qQwWiIrxs".contains(&lexer.byte(1)) {
        return lexer.code();
    }
    lexer.quoted(2 + letters, close, true, true);
}

/// `<<~NAME`, `<<-'NAME'`, `<<NAME`.
fn document(lexer: &mut Lexer<'_>) {
    let indented = matches!(lexer.byte(2), b'~' | b'-');
    let mut ahead = 2 + usize::from(indented);
    let quote = Some(lexer.byte(ahead)).filter(|byte| b"'\"`".contains(byte));
    ahead += usize::from(quote.is_some());
    let name = lexer.word(ahead).to_vec();
    let plain = name.first().is_some_and(u8::is_ascii_uppercase) && !is_word(lexer.before());
    if name.is_empty() || !(indented || quote.is_some() || plain) {
        return lexer.skip(2);
    }
    lexer.document(&name, true);
    lexer.skip(ahead + name.len() + usize::from(quote.is_some()));
}
