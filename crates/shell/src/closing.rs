//! Finds the end of a quote, a brace or a parenthesis.

use std::ops::Range;

/// The number of bytes before the closing double quote; substitutions inside may contain quotes.
pub(super) fn closing_quote(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at,
            b'$' if bytes.get(at + 1) == Some(&b'(') => at += closing_paren(&text[at + 2..]).map_or(1, |end| end + 2),
            b'$' if bytes.get(at + 1) == Some(&b'{') => at += closing_brace(&text[at + 2..], true) + 2,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The number of bytes before the parenthesis that ends a substitution.
pub(super) fn closing_paren(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    closing(text, true, |byte| match byte {
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

/// The number of bytes before the closing brace. In double quotes, single quotes inside the braces are plain text.
pub(super) fn closing_brace(text: &str, quoted: bool) -> usize {
    let mut depth = 0_usize;
    let end = closing(text, !quoted, |byte| match byte {
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

fn closing(text: &str, single_quotes: bool, mut is_end: impl FnMut(u8) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut single, mut double) = (0, false, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' if !double && single_quotes => single = !single,
            b'"' if !single => double = !double,
            b'\\' if !single => at += 1,
            byte if !single && !double && is_end(byte) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Command substitutions in a text, including delimiters, outside the known ranges. `quoted` for the body of a here-document, where
/// quotes are plain text.
pub(super) fn commands_in(source: &str, range: Range<usize>, known: &[Range<usize>], quoted: bool) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let (mut at, mut double, mut out) = (range.start, quoted, Vec::new());
    let mut known = known.iter().peekable();
    while at < range.end {
        while known.next_if(|known| known.start < at).is_some() {}
        if let Some(known) = known.next_if(|known| known.start == at) {
            at = known.end.max(at + 1);
            continue;
        }
        let rest = &bytes[at..range.end];
        let end = match rest {
            [b'`', ..] => Some(closing_backquote(&rest[1..]).map(|end| end + 2)),
            [b'$', b'(', b'(', ..] => None,
            [b'$', b'(', ..] => Some(source.get(at + 2..range.end).and_then(closing_paren).map(|end| end + 3)),
            _ => None,
        };
        match (end, rest) {
            (Some(Some(length)), _) => {
                out.push(at..at + length);
                at += length;
            }
            // Otherwise an unclosed one would be searched for again at each of its bytes.
            (Some(None), _) => break,
            (None, [b'\\', ..]) => at += 2,
            (None, [b'$', b'\'', ..]) if !double => at += source.get(at + 2..range.end).map_or(1, ansi_end) + 3,
            (None, [b'\'', ..]) if !double => {
                at += rest[1..].iter().position(|byte| *byte == b'\'').unwrap_or(rest.len()) + 2;
            }
            (None, [b'"', ..]) if !quoted => {
                double = !double;
                at += 1;
            }
            (None, _) => at += 1,
        }
    }
    out
}

fn closing_backquote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'`' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The number of bytes before the quote that ends `$'...'`.
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

/// The number of bytes of a bracket pattern; a bracket right after the first one does not end it.
pub(super) fn bracket_end(text: &str) -> Option<usize> {
    text.char_indices().skip(2).find(|(_, c)| *c == ']').map(|(at, _)| at + 1)
}
