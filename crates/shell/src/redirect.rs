//! Redirections of a command: the operator, the target, and the command's words that the parser attaches to them.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use super::lexer::Substituted;
use super::scope::{Scope, Value};
use super::tree::{joined, named, trimmed};
use super::walk::{Frame, Walker, lexer};
use super::word::Word;
use super::{Redirect, RedirectKind, output};

impl Walker {
    pub(super) fn redirects(
        frame: &Frame<'_>,
        nodes: &[Node<'_>],
        substituted: &[Substituted],
        scope: &Scope,
        choice: &HashMap<String, usize>,
    ) -> Vec<Redirect> {
        let inner = nodes.iter().filter(|node| node.kind() == "heredoc_redirect").flat_map(|node| named(*node));
        let all = nodes.iter().copied().chain(inner).filter(|node| node.kind() == "file_redirect");
        all.flat_map(|node| {
            let (operator, target, _) = parts_of(frame.source, node);
            let kind = redirect_kind(operator);
            let lexer = lexer(frame, substituted, scope, choice);
            let words: Vec<Word> = target.into_iter().flat_map(|target| lexer.words_in(target)).collect();
            let is_descriptor =
                |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
            let copies = operator.contains(">&") || operator.contains("<&");
            words.into_iter().filter(move |word| !(copies && is_descriptor(word))).map(move |target| Redirect { kind, target })
        })
        .collect()
    }

    /// The text that `< <(...)` and `< file` pass to standard input.
    pub(super) fn file_input(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope) -> Option<Value> {
        let (operator, target, _) = parts_of(frame.source, node);
        let target = target.filter(|_| operator == "<" || operator == "0<")?;
        let first = *children_of(node, "destination").first()?;
        if first.kind() != "process_substitution" {
            return None;
        }
        let substituted = self.all_substitutions(frame, &[first], scope);
        let words = lexer(frame, &substituted, scope, &HashMap::new()).words_in(target);
        words.first().and_then(Word::literal).and_then(|path| output::substituted(path, &self.files)).cloned()
    }
}

/// The last command of a list or pipeline: redirections after it belong to it.
pub(super) fn last_of(mut node: Node<'_>) -> Node<'_> {
    while matches!(node.kind(), "list" | "pipeline" | "negated_command") {
        match named(node).pop() {
            Some(last) => node = last,
            None => break,
        }
    }
    node
}

pub(super) fn children_of<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor).collect()
}

/// The operator of a redirection, its target, and the words after that. The parser treats all of these words as targets.
fn parts_of<'s>(source: &'s str, node: Node<'_>) -> (&'s str, Option<Range<usize>>, Vec<Range<usize>>) {
    let whole = trimmed(source, node);
    let mut words = joined(source, &children_of(node, "destination"));
    let end = words.first().map_or(whole.end, |first| first.start.max(whole.start));
    let operator = source[whole.start..end].trim();
    if operator.ends_with("&-") || words.is_empty() {
        return (operator, None, words);
    }
    let target = words.remove(0);
    (operator, Some(target), words)
}

/// Words of a command that follow one of its redirections.
pub(super) fn late_words(source: &str, redirects: &[Node<'_>]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    for redirect in redirects {
        match redirect.kind() {
            "file_redirect" => out.extend(parts_of(source, *redirect).2),
            "heredoc_redirect" => {
                out.extend(joined(source, &children_of(*redirect, "argument")));
                for inner in named(*redirect).into_iter().filter(|inner| inner.kind() == "file_redirect") {
                    out.extend(parts_of(source, inner).2);
                }
            }
            _ => {}
        }
    }
    out
}

pub(super) fn is_descriptor_name(word: &str) -> bool {
    let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

fn redirect_kind(operator: &str) -> RedirectKind {
    match operator.trim_start_matches(|c: char| c.is_ascii_digit()) {
        text if text.starts_with("<>") => RedirectKind::ReadWrite,
        text if text.starts_with('<') => RedirectKind::Read,
        text if text.starts_with(">>") || text.starts_with("&>>") => RedirectKind::Append,
        _ => RedirectKind::Write,
    }
}
