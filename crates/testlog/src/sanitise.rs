//! Makes text from agents, plans, tools and branches safe for a terminal: no colours, no cursor movement, no hidden text.

use std::borrow::Cow;

/// Removes escape sequences, control characters and characters that reorder text. Keeps line ends and tabs.
pub fn sanitise(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c) || c == '\n' || c == '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => out.push('\n'),
            c if is_plain(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    Cow::Owned(out)
}

/// The same for one line: line ends and tabs become spaces.
pub fn sanitise_line(text: &str) -> Cow<'_, str> {
    match sanitise(text) {
        Cow::Borrowed(same) if !same.contains(['\n', '\t']) => Cow::Borrowed(same),
        safe => Cow::Owned(safe.trim_end_matches('\n').replace(['\n', '\t'], " ")),
    }
}

fn is_plain(c: char) -> bool {
    let reorders = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // Line and paragraph separators, and tag characters, which terminals do not show but a model reads.
    let invisible = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !reorders && !invisible
}

fn skip_escape(rest: &mut std::str::Chars<'_>) {
    let mut after = rest.clone();
    match after.next() {
        Some('[') => {
            *rest = after;
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = after;
            skip_string(rest);
        }
        // Intermediate bytes (such as charset selection), then one final character.
        Some(' '..='/') => {
            *rest = after;
            while rest.as_str().starts_with(|c| matches!(c, ' '..='/')) {
                rest.next();
            }
            if rest.as_str().starts_with(|c| matches!(c, '0'..='~')) {
                rest.next();
            }
        }
        Some('0'..='~') => *rest = after,
        Some(_) | None => {}
    }
}

/// Skips parameters and intermediate bytes, then one final character. Anything else ends the sequence, as in terminals.
fn skip_control_sequence(rest: &mut std::str::Chars<'_>) {
    while rest.as_str().starts_with(|c| matches!(c, ' '..='?')) {
        rest.next();
    }
    if rest.as_str().starts_with(|c| matches!(c, '@'..='~')) {
        rest.next();
    }
}

/// Skips OSC, DCS and similar, up to BEL or ST. An unterminated one ends at the end of the line, so that it cannot hide the rest.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    loop {
        let mut after = rest.clone();
        match after.next() {
            Some('\u{7}' | '\u{9c}') => {
                *rest = after;
                return;
            }
            Some('\u{1b}') => {
                if after.as_str().starts_with('\\') {
                    after.next();
                    *rest = after;
                }
                return;
            }
            Some('\n' | '\r') | None => return,
            Some(_) => *rest = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_go_and_text_stays() {
        for (text, expected) in [
            ("plain text, tabs\tand\nlines", "plain text, tabs\tand\nlines"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[1;1Hgone?", "gone?"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\after dcs", "after dcs"),
            ("\u{9b}31mc1", "c1"),
            ("\u{1b}(Bcharset", "charset"),
            ("\u{1b}creset", "reset"),
            ("\u{1b}]never ends\nnext", "\nnext"),
            ("a\u{8}b\u{7f}c", "a\u{fffd}b\u{fffd}c"),
            ("over\rwritten\r\nnext", "over\nwritten\nnext"),
            ("user\u{202e}txt.exe", "user\u{fffd}txt.exe"),
            ("日本語 – é 👩‍💻 🇩🇪", "日本語 – é 👩‍💻 🇩🇪"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
        ] {
            assert_eq!(sanitise(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(sanitise_line("feat: a\n\tb\u{1b}[1m\n"), "feat: a  b");
        assert!(matches!(sanitise_line("same"), Cow::Borrowed("same")));
    }

    proptest! {
        #[test]
        fn nothing_but_line_ends_and_tabs_controls_the_terminal(text in "(\u{1b}|\u{9b}|\u{9d}|\\[|\\]|[0-9;]|\\PC|\\pC|\n|\r){0,40}") {
            let safe = sanitise(&text);
            prop_assert!(safe.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{safe:?}");
            let again = sanitise(&safe);
            prop_assert_eq!(&again, &safe);
            prop_assert!(!sanitise_line(&text).contains('\n'));
        }
    }
}
