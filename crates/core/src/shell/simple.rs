//! Simple commands in the tree: their words, assignments and redirections, and what is put into their standard input.

use std::collections::HashMap;

use tree_sitter::Node;

use super::bit::{join, pieces};
use super::lexer::{Lexer, Mode, Substituted};
use super::scope::{Scope, Value, text};
use super::tree::{joined, named, trimmed};
use super::unwrap::Call;
use super::walk::{Frame, Input, Walker, append, lexer};
use super::word::Word;
use super::{Assignment, Redirect, RedirectKind};

/// Readings of one command with variables of several values.
const MAX_READINGS: usize = 16;

impl Walker {
    pub(super) fn redirected(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut cursor = node.walk();
        let redirects: Vec<_> = node.children_by_field_name("redirect", &mut cursor).collect();
        let given = self.input_text(frame, &redirects, scope);
        let input = given.as_ref().or(input);
        let body = node.child_by_field_name("body");
        let mut output = match body {
            Some(body) if body.kind() == "command" => self.command(frame, body, &redirects, scope, input),
            Some(body) => {
                let output = self.statement(frame, body, scope, input);
                self.bare(frame, node, &redirects, scope);
                output
            }
            None => {
                self.bare(frame, node, &redirects, scope);
                Value::new()
            }
        };
        // What follows a here-document on its first line is inside its node.
        for child in
            redirects.iter().filter(|redirect| redirect.kind() == "heredoc_redirect").flat_map(|redirect| named(*redirect))
        {
            match child.kind() {
                "pipeline" => output = self.statement(frame, child, scope, Some(&output)),
                "heredoc_start" | "heredoc_body" | "heredoc_end" | "file_redirect" | "herestring_redirect" | "word" => {}
                _ => append(&mut output, self.statement(frame, child, scope, None)),
            }
        }
        output
    }

    /// Redirections of a whole group, as a command without a program.
    pub(super) fn bare(&mut self, frame: &Frame<'_>, node: Node<'_>, redirects: &[Node<'_>], scope: &mut Scope) {
        let substituted = self.all_substitutions(frame, redirects, scope);
        let redirects = Self::redirects(frame, redirects, &substituted, scope, &HashMap::new());
        if redirects.is_empty() {
            return;
        }
        let call = Call {
            words: Vec::new(),
            assignments: Vec::new(),
            redirects,
            range: frame.range(node),
            text: frame.text(trimmed(frame.source, node)),
            certain: frame.certain,
            input: None,
        };
        self.run(call, scope);
    }

    pub(super) fn command(
        &mut self,
        frame: &Frame<'_>,
        node: Node<'_>,
        outside: &[Node<'_>],
        scope: &mut Scope,
        input: Input<'_>,
    ) -> Value {
        let (mut assigned, mut redirected, mut word_nodes) = (Vec::new(), outside.to_vec(), Vec::new());
        for child in named(node) {
            match child.kind() {
                "variable_assignment" if word_nodes.is_empty() => assigned.push(child),
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => redirected.push(child),
                "comment" => {}
                _ => word_nodes.push(child),
            }
        }
        for document in outside.iter().filter(|redirect| redirect.kind() == "heredoc_redirect") {
            word_nodes.extend(named(*document).into_iter().filter(|child| child.kind() == "word"));
        }
        let given = self.input_text(frame, &redirected, scope);
        let all: Vec<_> = [assigned.as_slice(), &redirected, &word_nodes].concat();
        let substituted = self.all_substitutions(frame, &all, scope);
        let words = joined(frame.source, &word_nodes);
        let texts: Vec<&str> = all.iter().map(|part| &frame.source[trimmed(frame.source, *part)]).collect();
        let mut output = Value::new();
        for choice in readings(scope, &texts) {
            let lexer = lexer(frame, &substituted, scope, &choice);
            let words: Vec<Word> = words.iter().flat_map(|range| lexer.words(range.clone())).collect();
            let assignments: Vec<Assignment> = assigned.iter().filter_map(|node| assignment(&lexer, *node)).collect();
            let redirects = Self::redirects(frame, &redirected, &substituted, scope, &choice);
            let call = Call {
                words,
                assignments,
                redirects,
                range: frame.range(node),
                text: frame.text(trimmed(frame.source, node)),
                certain: frame.certain,
                input: given.as_ref().or(input),
            };
            output = self.run(call, scope);
        }
        output
    }

    /// Assignments, `export` and the like: values are kept, and the command is listed for rules about variables.
    pub(super) fn declaration(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope) -> Value {
        let substituted = self.all_substitutions(frame, &[node], scope);
        let children = if node.kind() == "variable_assignment" { vec![node] } else { named(node) };
        let mut assignments = Vec::new();
        for child in children {
            let choice = HashMap::new();
            let lexer = lexer(frame, &substituted, scope, &choice);
            match (child.kind(), node.kind()) {
                ("variable_assignment", _) => {
                    let Some(known) = assignment(&lexer, child) else { continue };
                    let value = assigned_value(&lexer, child);
                    let append = frame.source[trimmed(frame.source, child)].starts_with(&format!("{}+=", known.name));
                    scope.assign(&known.name, value, append);
                    assignments.push(known);
                }
                ("variable_name", "unset_command") => scope.unset(&frame.source[trimmed(frame.source, child)]),
                _ => {}
            }
        }
        let keyword = node.child(0).filter(|first| !first.is_named()).map(|first| Word::text(first.kind()));
        let call = Call {
            words: keyword.into_iter().collect(),
            assignments,
            redirects: Vec::new(),
            range: frame.range(node),
            text: frame.text(trimmed(frame.source, node)),
            certain: frame.certain,
            input: None,
        };
        self.list_only(&call, scope);
        Value::new()
    }

    /// What a here-document or here-string gives to standard input.
    pub(super) fn input_text(&mut self, frame: &Frame<'_>, redirects: &[Node<'_>], scope: &mut Scope) -> Option<Value> {
        let source =
            redirects.iter().rev().find(|redirect| matches!(redirect.kind(), "heredoc_redirect" | "herestring_redirect"))?;
        let children = named(*source);
        if source.kind() == "herestring_redirect" {
            let text = *children.first()?;
            let substituted = self.all_substitutions(frame, &[text], scope);
            return Some(lexer(frame, &substituted, scope, &HashMap::new()).value(trimmed(frame.source, text)));
        }
        let start = children.iter().find(|child| child.kind() == "heredoc_start")?;
        let body = children.iter().find(|child| child.kind() == "heredoc_body")?;
        let range = frame.source.floor_char_boundary(body.start_byte())..frame.source.floor_char_boundary(body.end_byte());
        if frame.source[trimmed(frame.source, *start)].contains(['\'', '"', '\\']) {
            return Some(text(&frame.source[range]));
        }
        let substituted = self.all_substitutions(frame, &[*body], scope);
        Some(lexer(frame, &substituted, scope, &HashMap::new()).bits(range, Mode::Document))
    }

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
            let source = &frame.source[trimmed(frame.source, node)];
            let kind = redirect_kind(source.trim_start_matches(|c: char| c.is_ascii_digit()));
            let mut cursor = node.walk();
            let targets: Vec<_> = node.children_by_field_name("destination", &mut cursor).collect();
            let lexer = lexer(frame, substituted, scope, choice);
            let words: Vec<Word> = targets.iter().flat_map(|target| lexer.words(trimmed(frame.source, *target))).collect();
            let is_descriptor =
                |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
            let copies = source.contains(">&") || source.contains("<&");
            words.into_iter().filter(move |word| !(copies && is_descriptor(word))).map(move |target| Redirect { kind, target })
        })
        .collect()
    }
}

/// Every combination of values of the variables that these texts use.
fn readings(scope: &Scope, texts: &[&str]) -> Vec<HashMap<String, usize>> {
    let mut out = vec![HashMap::new()];
    let mut seen: Vec<&str> = Vec::new();
    for after in texts.iter().flat_map(|text| text.split('$').skip(1)) {
        let after = after.trim_start_matches('{');
        let name = after.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let count = scope.candidates(name).len();
        if count < 2 || seen.contains(&name) || out.len() * count > MAX_READINGS {
            continue;
        }
        seen.push(name);
        out = out
            .iter()
            .flat_map(|reading| {
                (0..count).map(move |index| {
                    let mut reading: HashMap<String, usize> = reading.clone();
                    reading.insert(name.to_owned(), index);
                    reading
                })
            })
            .collect();
    }
    out
}

fn assignment(lexer: &Lexer<'_>, node: Node<'_>) -> Option<Assignment> {
    let name = node.child_by_field_name("name")?;
    let text = &lexer.source[trimmed(lexer.source, name)];
    let name = text.split('[').next().unwrap_or_default().to_owned();
    let bits = assigned_value(lexer, node);
    Some(Assignment { name, value: Word { pieces: pieces(&bits), loose: false } })
}

fn assigned_value(lexer: &Lexer<'_>, node: Node<'_>) -> Value {
    match node.child_by_field_name("value") {
        Some(array) if array.kind() == "array" => {
            let words: Vec<Word> = named(array).iter().flat_map(|item| lexer.words(trimmed(lexer.source, *item))).collect();
            join(&words)
        }
        Some(value) => lexer.value(trimmed(lexer.source, value).start..trimmed(lexer.source, node).end),
        None => Value::new(),
    }
}

fn redirect_kind(operator: &str) -> RedirectKind {
    match operator {
        text if text.starts_with("<>") => RedirectKind::ReadWrite,
        text if text.starts_with('<') => RedirectKind::Read,
        text if text.starts_with(">>") || text.starts_with("&>>") => RedirectKind::Append,
        _ => RedirectKind::Write,
    }
}
