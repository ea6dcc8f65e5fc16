//! Text measured in terminal columns: cutting, padding and wrapping.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use verdone_core::base::sanitise::sanitise_line;

/// The most bytes of a foreign line that are processed: enough for any terminal, and a bound for hostile input.
const LONGEST_LINE: usize = 16 * 1024;
/// How many combining marks one letter may have. More would flood the screen.
const MOST_COMBINING: usize = 3;

/// The most columns that a text can take. Terminals disagree about joined emoji, so the larger value is used.
pub(crate) fn columns(text: &str) -> usize {
    let single: usize = text.chars().map(|c| c.width().unwrap_or(0)).sum();
    single.max(text.width())
}

/// Foreign text as one sanitised line without surrounding white space.
pub(crate) fn clean(text: &str) -> String {
    clean_line(text).trim_start().to_owned()
}

/// Foreign text as one sanitised line that keeps its indentation.
pub(crate) fn clean_line(text: &str) -> String {
    let end = if text.len() > LONGEST_LINE { text.floor_char_boundary(LONGEST_LINE) } else { text.len() };
    let mut stacked = 0;
    let tame = |c: &char| {
        stacked = if c.width() == Some(0) { stacked + 1 } else { 0 };
        stacked <= MOST_COMBINING
    };
    sanitise_line(&text[..end]).trim_end().chars().filter(tame).collect()
}

/// Cuts to `limit` columns and marks the cut.
pub(crate) fn fit(text: &str, limit: usize, unicode: bool) -> String {
    if columns(text) <= limit {
        return text.to_owned();
    }
    let ellipsis = match (unicode, limit) {
        (_, 0) => return String::new(),
        (true, _) => "…",
        (false, 1..=5) => "",
        (false, _) => "...",
    };
    let mut out = String::new();
    let mut used = columns(ellipsis);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > limit {
            break;
        }
        out.push(c);
    }
    while !out.is_empty() && columns(&out) + columns(ellipsis) > limit {
        out.pop();
    }
    out.truncate(out.trim_end().len());
    out.push_str(ellipsis);
    out
}

/// Cuts or pads to `width` columns.
pub(crate) fn pad(text: &str, width: usize, unicode: bool) -> String {
    let mut out = fit(text, width, unicode);
    out.push_str(&" ".repeat(width.saturating_sub(columns(&out))));
    out
}

/// Wraps at spaces into at most `most` lines of at most `width` columns, and cuts the rest.
pub(crate) fn wrap(text: &str, width: usize, most: usize, unicode: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
    let mut line = String::new();
    while let Some(word) = words.next() {
        let fits = columns(&line) + usize::from(!line.is_empty()) + columns(word) <= width;
        if !fits && !line.is_empty() {
            if lines.len() + 1 >= most {
                let rest: Vec<&str> = std::iter::once(word).chain(words).take(width).collect();
                line = fit(&format!("{line} {}", rest.join(" ")), width, unicode);
                break;
            }
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&fit(word, width, unicode));
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Breaks lines that are wider than the terminal at spaces and indents what follows. Colours do not count, and a long word stays whole.
pub fn fold_lines(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        fold_line(line, width, &mut out);
    }
    out
}

fn fold_line(line: &str, width: usize, out: &mut String) {
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    let indent = text.len() - text.trim_start_matches(' ').len();
    let hanging = if indent + 2 < width / 2 { indent + 2 } else { 0 };
    let (mut used, mut gap, mut has_word) = (0, 0, false);
    for (at, word) in text.split(' ').enumerate() {
        gap += usize::from(at > 0);
        if word.is_empty() {
            continue;
        }
        let columns = visible_columns(word);
        if has_word && used + gap + columns > width {
            out.push('\n');
            (used, gap) = (0, hanging);
        }
        out.push_str(&" ".repeat(gap));
        out.push_str(word);
        (used, gap, has_word) = (used + gap + columns, 0, true);
    }
    // A question ends with a space.
    out.push_str(&" ".repeat(gap.min(width.saturating_sub(used))));
    out.push_str(end);
}

/// The columns of a text without its colours.
fn visible_columns(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, columns);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, shown)| columns(shown))).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces_and_keep_their_indentation() {
        for (text, width, expected) in [
            ("short\n", 10, "short\n"),
            ("one two three\n", 8, "one two\n  three\n"),
            ("  one two three four", 12, "  one two\n    three\n    four"),
            ("unbreakableword and more\n", 8, "unbreakableword\n  and\n  more\n"),
            ("a    b    c\n", 6, "a    b\n  c\n"),
            ("\u{1b}[1;31mred\u{1b}[0m and blue\n", 8, "\u{1b}[1;31mred\u{1b}[0m and\n  blue\n"),
            ("漢字 漢字 漢字", 9, "漢字 漢字\n  漢字"),
            ("one two\nthree four\n", 7, "one two\nthree\n  four\n"),
            ("", 5, ""),
            ("Land it? [y/N] ", 20, "Land it? [y/N] "),
        ] {
            assert_eq!(fold_lines(text, width), expected, "{text:?} in {width}");
        }
    }

    proptest! {
        #[test]
        fn folding_changes_only_white_space(text in "[a-zé漢 \n]{0,80}", width in 1..40_usize) {
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let folded = fold_lines(&text, width);
            prop_assert_eq!(letters(&folded), letters(&text));
            for line in folded.lines().filter(|line| columns(line.trim_end()) > width) {
                let is_one_word = line.trim().split(' ').filter(|word| !word.is_empty()).count() <= 1;
                prop_assert!(is_one_word, "{:?} in {}", line, width);
            }
        }
    }

    #[test]
    fn cutting_counts_columns_and_shows_the_cut() {
        for (text, limit, expected) in [
            ("short", 10, "short"),
            ("exactly", 7, "exactly"),
            ("one too long", 11, "one too lo…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("x", 0, ""),
            ("xy", 1, "…"),
        ] {
            assert_eq!(fit(text, limit, true), expected, "{text} {limit}");
        }
        assert_eq!(fit("one too long", 9, false), "one to...");
    }

    #[test]
    fn stacked_marks_are_tamed() {
        let zalgo = format!("a{}b", "\u{301}".repeat(1000));
        assert_eq!(clean(&zalgo), "a\u{301}\u{301}\u{301}b");
    }

    #[test]
    fn wrapped_text_ends_with_a_cut_when_lines_run_out() {
        assert_eq!(wrap("one two three four", 9, 2, true), ["one two", "three fo…"]);
        assert_eq!(wrap("", 9, 2, true), [""]);
    }

    proptest! {
        #[test]
        fn no_piece_is_wider_than_asked(text in "\\PC{0,60}", limit in 0_usize..30, unicode: bool) {
            let text = clean(&text);
            prop_assert!(columns(&fit(&text, limit, unicode)) <= limit);
            prop_assert_eq!(columns(&pad(&text, limit, unicode)), limit);
            for line in wrap(&text, limit, 3, unicode) {
                prop_assert!(columns(&line) <= limit, "{:?}", line);
            }
        }
    }
}
