//! Escapes foreign text for Markdown: shown literally, never interpreted as Markdown, HTML or a link.

use crate::width::clean;

/// Escapes text inside a paragraph. Not safe at the start of a line.
pub(crate) fn text(foreign: &str) -> String {
    let clean = clean(foreign);
    let mut out = String::with_capacity(clean.len());
    let mut before = "";
    for (at, c) in clean.char_indices() {
        let rest = &clean[at + c.len_utf8()..];
        let special = match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '#' | '$' | '!' | '@' => true,
            // Markdown turns bare addresses into links.
            ':' => rest.starts_with("//"),
            '.' => before.to_ascii_lowercase().ends_with("www"),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
        before = &clean[..at + c.len_utf8()];
    }
    out
}

/// Formats a code span with a fence that the text cannot close.
pub(crate) fn code(foreign: &str) -> String {
    let clean = clean(foreign);
    if clean.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = clean.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{clean}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_become_markup() {
        for (foreign, expected) in [
            ("plain title (v1.2) - ok", "plain title (v1.2) - ok"),
            ("a | b", "a \\| b"),
            ("`rm -rf`", "\\`rm -rf\\`"),
            ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
            ("[click](javascript:x)", "\\[click\\](javascript:x)"),
            ("![img](http://x)", "\\!\\[img\\](http\\://x)"),
            ("www.evil.example", "www\\.evil.example"),
            ("**bold** _it_ ~~no~~", "\\*\\*bold\\*\\* \\_it\\_ \\~\\~no\\~\\~"),
            ("line\n# heading", "line \\# heading"),
            ("back\\slash &amp;", "back\\\\slash \\&amp;"),
        ] {
            assert_eq!(text(foreign), expected);
        }
    }

    #[test]
    fn code_spans_cannot_be_closed_from_inside() {
        for (foreign, expected) in
            [("plain", "`plain`"), ("a`b", "`` a`b ``"), ("```x", "```` ```x ````"), ("", "(empty)"), ("a\n\n# b", "`a  # b`")]
        {
            assert_eq!(code(foreign), expected);
        }
    }
}
