//! Foreign text made harmless for a terminal: no escape sequence, no control character, no reordering of what is read.

use std::borrow::Cow;

/// Line ends and tabs become spaces; escape sequences, other control characters and direction marks go.
pub(crate) fn sanitise(text: &str) -> Cow<'_, str> {
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\t' | '\n' => out.push(' '),
            c if harmless(c) => out.push(c),
            _ => {}
        }
    }
    Cow::Owned(out)
}

fn harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some(' '..='/') => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some('0'..='~') => {
            chars.next();
        }
        Some(_) | None => {}
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Up to BEL, ST or the end of the line: an unclosed one must not eat the rest of the text.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        for (text, expected) in [
            ("plain", "plain"),
            ("red \x1b[31mtext\x1b[0m", "red text"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b[2J\x1b[Hgone", "gone"),
            ("\x1bcreset", "reset"),
            ("\x1b(Bset", "set"),
            ("\u{9b}31mc1", "c1"),
            ("a\rb\x08\x7fc", "abc"),
            ("tab\there\nline", "tab here line"),
            ("abc\u{202e}cba\u{2066}", "abccba"),
            ("\x1b", ""),
            ("\x1b]never closed\nnext", " next"),
            ("é 漢字 👩‍👩‍👧", "é 漢字 👩‍👩‍👧"),
        ] {
            assert_eq!(sanitise(text), expected, "{text:?}");
        }
    }
}
