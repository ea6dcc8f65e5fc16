//! Where a quote, a brace or a parenthesis is closed.

/// Bytes before the double quote that ends a string; substitutions inside may have quotes of their own.
pub(super) fn closing_quote(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at,
            b'$' if bytes.get(at + 1) == Some(&b'(') => at += closing_paren(&text[at + 2..]).map_or(1, |end| end + 2),
            b'$' if bytes.get(at + 1) == Some(&b'{') => at += closing_brace(&text[at + 2..]) + 2,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Bytes before the parenthesis that ends a substitution.
pub(super) fn closing_paren(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    closing(text, |byte| match byte {
        b'(' => {
            depth += 1;
            false
        }
        b')' if depth == 0 => true,
        b')' => {
            depth -= 1;
            false
        }
        _ => false,
    })
}

pub(super) fn closing_brace(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = closing(text, |byte| match byte {
        b'{' => {
            depth += 1;
            false
        }
        b'}' if depth == 0 => true,
        b'}' => {
            depth -= 1;
            false
        }
        _ => false,
    });
    end.unwrap_or(text.len())
}

fn closing(text: &str, mut is_end: impl FnMut(u8) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut single, mut double) = (0, false, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' if !double => single = !single,
            b'"' if !single => double = !double,
            b'\\' if !single => at += 1,
            byte if !single && !double && is_end(byte) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Bytes before the quote that ends `$'...'`.
pub(super) fn ansi_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Bytes of a bracket pattern; a bracket right after the first one does not end it.
pub(super) fn bracket_end(text: &str) -> Option<usize> {
    text.char_indices().skip(2).find(|(_, c)| *c == ']').map(|(at, _)| at + 1)
}
