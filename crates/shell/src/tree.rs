//! The parser's tree, and the positions of its nodes in the source.

use std::ops::Range;

use tree_sitter::Node;

/// The text passed to the parser; words are read from the source itself.
///
/// Replaces every non-ASCII byte with a letter, because the parser's scanner asks the C library about characters and crashes on those
/// missing from its tables. Also replaces a backslash at the start of a line, which would make the parser append the line to the last
/// command.
pub(super) fn ascii(source: &str) -> Vec<u8> {
    let mut out: Vec<u8> = source.bytes().map(|byte| if byte.is_ascii() { byte } else { b'u' }).collect();
    let (mut escaped, mut starts_line) = (false, false);
    for at in 0..out.len() {
        match (out[at], out.get(at + 1)) {
            (b'\\', Some(b'\n')) if starts_line => out[at] = b' ',
            (b'\\', Some(next)) if starts_line && (next.is_ascii_alphanumeric() || b"._/~-".contains(next)) => out[at] = b'u',
            _ => {}
        }
        starts_line = out[at] == b'\n' && !escaped;
        escaped = out[at] == b'\\' && !escaped;
    }
    out
}

pub(super) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// The node's range without the leading whitespace that the parser includes in some nodes.
pub(super) fn trimmed(source: &str, node: Node<'_>) -> Range<usize> {
    let range = node.byte_range();
    // The parser saw single letters in place of multi-byte characters.
    let (start, end) = (source.floor_char_boundary(range.start), source.floor_char_boundary(range.end));
    let text = &source[start..end];
    end - text.trim_start_matches([' ', '\t', '\n']).len()..end
}

/// Merges adjacent words into one.
pub(super) fn joined(source: &str, nodes: &[Node<'_>]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for node in nodes {
        let range = trimmed(source, *node);
        match out.last_mut() {
            Some(last) if source.get(last.end..range.start).is_some_and(is_one_word) => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

/// Whether the node itself, not only something below it, fails to parse.
pub(super) fn is_broken(source: &str, node: Node<'_>) -> bool {
    // Two consecutive subshells look like arithmetic.
    let text = &source[trimmed(source, node)];
    let arithmetic = node.kind() == "arithmetic_expansion" || (node.kind() == "compound_statement" && text.starts_with("(("));
    let mut cursor = node.walk();
    node.is_error() || arithmetic || node.children(&mut cursor).any(|child| child.is_missing())
}

/// The parts of a text between the operators that separate commands.
pub(super) fn segments(source: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut out = split(source, range, |c| matches!(c, ';' | '|' | '&' | '(' | ')' | '\n' | '`' | '<' | '>'));
    out.retain(|range| !source[range.clone()].trim().is_empty());
    out
}

/// The words of such a part, as written. Braces do not extend beyond a word.
pub(super) fn fields(source: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut out = split(source, range, |c| matches!(c, ' ' | '\t'));
    out.retain(|range| !range.is_empty());
    out
}

/// Splits a text at characters that are neither quoted nor escaped.
fn split(source: &str, range: Range<usize>, cuts: fn(char) -> bool) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut quote, mut escaped) = (range.start, None, false);
    for (at, c) in source[range.clone()].char_indices().map(|(at, c)| (range.start + at, c)) {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if cuts(c) => {
                out.push(start..at);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(start..range.end);
    out
}

/// Nothing, or line continuations alone, between two parts of a word.
fn is_one_word(between: &str) -> bool {
    between.replace("\\\n", "").is_empty()
}
