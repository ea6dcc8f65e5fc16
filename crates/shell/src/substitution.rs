//! Commands inside words, and guesses for parts that do not parse.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use super::Why;
use super::closing::commands_in;
use super::fragment::Bit;
use super::lexer::Substituted;
use super::scope::{Scope, Value};
use super::tree::{fields, is_broken, named, segments, trimmed};
use super::unwrap::Call;
use super::walk::{Frame, MAX_DEPTH, Walker, lexer};
use super::word::Word;

/// The maximum number of commands guessed in one part that does not parse.
const MAX_GUESSES: usize = 200;
/// Words after which another command starts.
const OPENING: [&str; 10] = ["{", "}", "!", "if", "then", "elif", "else", "while", "until", "do"];

impl Walker {
    pub(super) fn all_substitutions(&mut self, frame: &Frame<'_>, nodes: &[Node<'_>], scope: &Scope) -> Vec<Substituted> {
        let mut all: Vec<_> = nodes.iter().flat_map(|node| self.substitutions(frame, *node, scope)).collect();
        all.sort_by_key(|found| found.range.start);
        all
    }

    /// Analyses the outermost substitutions below a node.
    pub(super) fn substitutions(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope) -> Vec<Substituted> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match node.kind() {
                "command_substitution" | "process_substitution" => found.push(node),
                // A here-document inside these is handled with its own command.
                "heredoc_redirect" => open.extend(named(node).into_iter().filter(|child| child.kind() == "file_redirect")),
                _ => open.extend(named(node)),
            }
        }
        found.sort_by_key(Node::start_byte);
        let known: Vec<_> = found.iter().map(|node| trimmed(frame.source, *node)).collect();
        let mut all: Vec<_> = found.into_iter().map(|node| self.substitution(frame, node, scope)).collect();
        if !matches!(node.kind(), "heredoc_redirect" | "command_substitution" | "process_substitution") {
            let document = node.kind() == "heredoc_body";
            for range in commands_in(frame.source, trimmed(frame.source, node), &known, document) {
                all.push(self.overlooked(frame, range, scope));
            }
        }
        all
    }

    /// A substitution that the parser treats as text, such as backquotes in here-documents and in `${x:-...}`.
    fn overlooked(&mut self, frame: &Frame<'_>, range: Range<usize>, scope: &Scope) -> Substituted {
        let outer = frame.outer.clone().unwrap_or_else(|| range.clone());
        if self.depth >= MAX_DEPTH {
            return Substituted { range, output: self.give_up(outer, Why::TooDeep) };
        }
        let text = &frame.source[range.clone()];
        let text = match text.strip_prefix('`') {
            Some(inner) => unescaped(inner.strip_suffix('`').unwrap_or(inner)),
            None => text[2..text.len() - 1].to_owned(),
        };
        self.depth += 1;
        let output = self.source(&text, &mut scope.clone(), None, Some(outer), frame.certain);
        self.depth -= 1;
        Substituted { range, output: without_last_newline(output) }
    }

    pub(super) fn substitution(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope) -> Substituted {
        let range = trimmed(frame.source, node);
        let text = &frame.source[range.clone()];
        let mut inside = scope.clone();
        let escaped = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).filter(|text| text.contains('\\'));
        let output = match escaped {
            // Remove the backslashes of nested backquotes before parsing the inner text.
            Some(text) if self.depth < MAX_DEPTH => {
                let unescaped = unescaped(text);
                self.depth += 1;
                let output = self.source(&unescaped, &mut inside, None, Some(frame.range(node)), frame.certain);
                self.depth -= 1;
                output
            }
            Some(_) | None => self.statement(frame, node, &mut inside, None),
        };
        let output = if node.kind() == "process_substitution" {
            self.files.push(output);
            vec![Bit::Text { text: format!("/dev/fd/sub-{}", self.files.len() - 1), quoted: true }]
        } else {
            without_last_newline(output)
        };
        Substituted { range, output }
    }

    /// Lists text that looks like a command, in parts that do not parse, as guesses.
    pub(super) fn guesses(&mut self, source: &str, root: Node<'_>, scope: &Scope, outer: Option<&Range<usize>>) {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if !is_broken(source, node) {
                open.extend(named(node).into_iter().filter(Node::has_error));
                continue;
            }
            for range in segments(source, trimmed(source, node)).into_iter().take(MAX_GUESSES) {
                let frame = Frame { source, outer: outer.cloned(), certain: false, attached: None };
                let fields = fields(source, range.clone()).into_iter();
                let words = fields.flat_map(|field| lexer(&frame, &[], scope, &HashMap::new()).words_in(field));
                // `{ {git,push}; }` is a group in bash, but not for the parser.
                let opens = |word: &Word| word.literal().is_some_and(|text| OPENING.contains(&text));
                let words = words.skip_while(opens).collect();
                let call = Call {
                    words,
                    assignments: Vec::new(),
                    redirects: Vec::new(),
                    range: outer.cloned().unwrap_or_else(|| range.clone()),
                    text: frame.text(range),
                    certain: false,
                    input: None,
                };
                self.run(call, &mut scope.clone());
            }
        }
    }
}

fn unescaped(text: &str) -> String {
    text.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
}

fn without_last_newline(mut output: Value) -> Value {
    if let Some(Bit::Text { text, .. }) = output.last_mut() {
        text.truncate(text.trim_end_matches('\n').len());
    }
    output
}
