//! Simple commands in the tree: their words, assignments, redirections and standard input.

use std::collections::HashMap;

use tree_sitter::Node;

use super::Assignment;
use super::declare;
use super::fragment::{join, pieces};
use super::lexer::{Lexer, Mode};
use super::redirect::{children_of, is_descriptor_name, last_of, late_words};
use super::scope::{Scope, Value, text};
use super::tree::{joined, named, trimmed};
use super::unwrap::Call;
use super::walk::{Frame, Input, Walker, append, lexer};
use super::word::Word;

/// The maximum number of variants of one command, if its variables may have several values.
const MAX_READINGS: usize = 16;

impl Walker {
    pub(super) fn redirected(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut cursor = node.walk();
        let redirects: Vec<_> = node.children_by_field_name("redirect", &mut cursor).collect();
        let body = node.child_by_field_name("body");
        let last = body.map(last_of);
        let mut output = match (body, last) {
            (Some(body), Some(last)) if last.kind() == "command" => {
                let frame = Frame { outer: frame.outer.clone(), attached: Some((last.id(), &redirects)), ..*frame };
                self.statement(&frame, body, scope, input)
            }
            (Some(body), last) => {
                let given = self.input_text(frame, &redirects, scope);
                let output = self.statement(frame, body, scope, given.as_ref().or(input));
                self.bare(frame, node, &redirects, scope);
                self.late_words(frame, node, last.and_then(|last| last.child(0)), &redirects, scope);
                output
            }
            (None, _) => {
                self.bare(frame, node, &redirects, scope);
                Value::new()
            }
        };
        // The rest of a here-document's first line is inside its node.
        let documents: Vec<_> = redirects.iter().filter(|redirect| redirect.kind() == "heredoc_redirect").collect();
        let arguments: Vec<_> = documents.iter().flat_map(|document| children_of(**document, "argument")).collect();
        for child in documents.iter().flat_map(|document| named(**document)) {
            match child.kind() {
                "pipeline" => output = self.statement(frame, child, scope, Some(&output)),
                "heredoc_start" | "heredoc_body" | "heredoc_end" | "file_redirect" | "herestring_redirect" => {}
                _ if arguments.contains(&child) => {}
                _ => append(&mut output, self.statement(frame, child, scope, None)),
            }
        }
        output
    }

    /// The redirections of a whole group, listed as a command without a program.
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

    /// Words after a redirection of `export` and similar commands.
    fn late_words(
        &mut self,
        frame: &Frame<'_>,
        node: Node<'_>,
        keyword: Option<Node<'_>>,
        redirects: &[Node<'_>],
        scope: &mut Scope,
    ) {
        let late = late_words(frame.source, redirects);
        let Some(keyword) = keyword.filter(|keyword| !keyword.is_named() && !late.is_empty()) else { return };
        let substituted = self.all_substitutions(frame, redirects, scope);
        let mut words = vec![Word::text(keyword.kind())];
        let choice = HashMap::new();
        words.extend(late.into_iter().flat_map(|range| lexer(frame, &substituted, scope, &choice).words_in(range)));
        let call = Call {
            words,
            assignments: Vec::new(),
            redirects: Vec::new(),
            range: frame.range(node),
            text: frame.text(trimmed(frame.source, node)),
            certain: frame.certain,
            input: None,
        };
        self.run(call, scope);
    }

    pub(super) fn command(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let outside = frame.attached.filter(|(owner, _)| *owner == node.id()).map_or(&[][..], |(_, redirects)| redirects);
        let (mut assigned, mut redirected, mut word_nodes) = (Vec::new(), outside.to_vec(), Vec::new());
        for child in named(node) {
            match child.kind() {
                "variable_assignment" if word_nodes.is_empty() => assigned.push(child),
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => redirected.push(child),
                "comment" => {}
                _ => word_nodes.push(child),
            }
        }
        let given = self.input_text(frame, &redirected, scope);
        let all: Vec<_> = [assigned.as_slice(), &redirected, &word_nodes].concat();
        let substituted = self.all_substitutions(frame, &all, scope);
        let mut words = joined(frame.source, &word_nodes);
        // `{fd}>file` stores the descriptor in a variable.
        let opens: Vec<usize> = redirected.iter().map(|redirect| trimmed(frame.source, *redirect).start).collect();
        words.retain(|word| !(opens.contains(&word.end) && is_descriptor_name(&frame.source[word.clone()])));
        words.extend(late_words(frame.source, &redirected));
        words.sort_by_key(|word| word.start);
        let texts: Vec<&str> = all.iter().map(|part| &frame.source[trimmed(frame.source, *part)]).collect();
        let mut output = Value::new();
        for choice in readings(scope, &texts) {
            let lexer = lexer(frame, &substituted, scope, &choice);
            let words: Vec<Word> = words.iter().flat_map(|range| lexer.words_in(range.clone())).collect();
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

    /// Assignments, `export` and similar commands: stores the values and lists the command for rules about variables.
    pub(super) fn declaration(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope) -> Value {
        let substituted = self.all_substitutions(frame, &[node], scope);
        let children = if node.kind() == "variable_assignment" { vec![node] } else { named(node) };
        let mut assignments = Vec::new();
        let options: String = children
            .iter()
            .map(|child| &frame.source[trimmed(frame.source, *child)])
            .filter(|text| text.starts_with('-'))
            .collect();
        let keyword = node.child(0).filter(|first| !first.is_named()).map(|first| Word::text(first.kind()));
        let name = keyword.as_ref().map_or("", Word::prefix);
        for child in children {
            let choice = HashMap::new();
            let lexer = lexer(frame, &substituted, scope, &choice);
            match (child.kind(), node.kind()) {
                ("variable_assignment", _) => {
                    let Some(known) = assignment(&lexer, child) else { continue };
                    let value = assigned_value(&lexer, child);
                    let append = frame.source[trimmed(frame.source, child)].starts_with(&format!("{}+=", known.name));
                    scope.assign(&known.name, value, append);
                    declare::mark(name, &options, &known, scope);
                    assignments.push(known);
                }
                _ if node.kind() == "variable_assignments" => {}
                _ => {
                    let words = lexer.words_in(trimmed(frame.source, child));
                    assignments.extend(declare::declared_words(name, &options, &words, scope));
                }
            }
        }
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

    /// The text that a here-document or here-string passes to standard input.
    pub(super) fn input_text(&mut self, frame: &Frame<'_>, redirects: &[Node<'_>], scope: &mut Scope) -> Option<Value> {
        let mut given = None;
        for redirect in redirects {
            given = self.one_input(frame, *redirect, scope).or(given);
        }
        given
    }

    fn one_input(&mut self, frame: &Frame<'_>, source: Node<'_>, scope: &Scope) -> Option<Value> {
        let children = named(source);
        if source.kind() == "herestring_redirect" {
            let text = *children.first()?;
            let substituted = self.all_substitutions(frame, &[text], scope);
            return Some(lexer(frame, &substituted, scope, &HashMap::new()).value(trimmed(frame.source, text)));
        }
        if source.kind() == "file_redirect" {
            return self.file_input(frame, source, scope);
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
}

/// All combinations of values of the variables in these texts.
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
            let words: Vec<Word> = named(array).iter().flat_map(|item| lexer.words_in(trimmed(lexer.source, *item))).collect();
            join(&words)
        }
        Some(value) => lexer.value(trimmed(lexer.source, value).start..trimmed(lexer.source, node).end),
        None => Value::new(),
    }
}
