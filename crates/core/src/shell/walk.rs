//! Walks the syntax tree and hands every simple command, with its words expanded, to `unwrap`.
//!
//! Depth, size and count are bounded: hostile input must neither hang nor overflow the stack, so what is beyond the bounds is
//! reported as unknown instead of being read.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use tree_sitter::{Node, Parser};

use super::lexer::{Bit, Lexer, Mode, Substituted};
use super::scope::{Scope, Value, unknown};
use super::unwrap::Call;
use super::word::Word;
use super::{Assignment, MAX_SOURCE, Redirect, RedirectKind, Script, Unknown, Variables, Why};

/// Nesting of syntax and of scripts in scripts. Each level takes a few frames of the stack.
const MAX_DEPTH: usize = 60;
const MAX_COMMANDS: usize = 4_000;
/// Scripts in scripts, calls of functions among them.
const MAX_SOURCES: usize = 1_000;
/// Bytes of scripts in scripts, in all.
const MAX_NESTED: usize = 2 * MAX_SOURCE;
/// Commands guessed in one part that does not parse.
const MAX_GUESSES: usize = 200;
/// Readings of one command with variables of several values.
const MAX_READINGS: usize = 16;

pub(super) fn script(source: &str, variables: &Variables) -> Script {
    let mut walker = Walker { script: Script::default(), depth: 0, nested: 0, sources: 0, files: Vec::new() };
    let mut scope = Scope::new(variables);
    walker.source(source, &mut scope, None, None, true);
    walker.script
}

pub(super) struct Walker {
    pub(super) script: Script,
    pub(super) depth: usize,
    nested: usize,
    sources: usize,
    /// What the files of process substitutions hold; `/dev/fd/sub-N` is their name in words.
    pub(super) files: Vec<Value>,
}

/// The text being walked.
struct Frame<'s> {
    source: &'s str,
    /// Where the text was given, if it is a script inside a command.
    outer: Option<Range<usize>>,
    certain: bool,
}

impl Frame<'_> {
    fn range(&self, node: Node<'_>) -> Range<usize> {
        self.outer.clone().unwrap_or_else(|| trimmed(self.source, node))
    }

    fn text(&self, range: Range<usize>) -> String {
        const SHOWN: usize = 200;
        let text = self.source[range].trim();
        match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.to_owned(),
        }
    }
}

/// Standard input of a statement, where it is known to be something.
type Input<'a> = Option<&'a Value>;

impl Walker {
    /// Reads a script and gives what it would print.
    pub(super) fn source(
        &mut self,
        source: &str,
        scope: &mut Scope,
        input: Input<'_>,
        outer: Option<Range<usize>>,
        certain: bool,
    ) -> Value {
        let range = outer.clone().unwrap_or(0..source.len());
        self.nested += if outer.is_some() { source.len() } else { 0 };
        if source.len() > MAX_SOURCE || self.nested > MAX_NESTED {
            return self.give_up(range, Why::TooLong);
        }
        self.sources += 1;
        if self.sources > MAX_SOURCES {
            return self.give_up(range, Why::TooMany);
        }
        let mut parser = Parser::new();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(ascii(source), None),
            Err(_) => None,
        };
        let Some(tree) = tree else { return self.give_up(range, Why::Syntax) };
        let root = tree.root_node();
        if root.has_error() && source.contains("((") {
            // Where `((` is no arithmetic, bash takes it for two subshells; the parser does not.
            let apart = source.replace("((", "( ( ");
            self.depth += 1;
            let output = self.source(&apart, scope, input, Some(range), certain);
            self.depth -= 1;
            return output;
        }
        if root.has_error() {
            self.script.unknown.push(Unknown { range, why: Why::Syntax });
            self.guesses(source, root, scope, outer.as_ref());
        }
        let frame = Frame { source, outer, certain };
        self.statement(&frame, root, scope, input)
    }

    pub(super) fn give_up(&mut self, range: Range<usize>, why: Why) -> Value {
        if !self.script.unknown.iter().any(|known| known.why == why) {
            self.script.unknown.push(Unknown { range, why });
        }
        unknown()
    }

    fn statement(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        if self.depth >= MAX_DEPTH {
            return self.give_up(frame.range(node), Why::TooDeep);
        }
        if self.script.commands.len() >= MAX_COMMANDS {
            return self.give_up(frame.range(node), Why::TooMany);
        }
        self.depth += 1;
        let output = match node.kind() {
            "program" | "compound_statement" | "do_group" | "negated_command" => self.sequence(frame, node, scope, input),
            "subshell" | "command_substitution" | "process_substitution" => self.isolated(frame, node, scope, input),
            "list" => self.list(frame, node, scope, input),
            "pipeline" => self.pipeline(frame, node, scope, input),
            "redirected_statement" => self.redirected(frame, node, scope, input),
            "command" => self.command(frame, node, &[], scope, input),
            "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command" => {
                self.declaration(frame, node, scope)
            }
            "if_statement" | "elif_clause" | "else_clause" | "while_statement" | "case_statement" | "case_item"
            | "c_style_for_statement" => self.branch(frame, node, scope, input),
            "for_statement" => self.for_loop(frame, node, scope, input),
            "function_definition" => self.function(frame, node, scope),
            "ERROR" => self.isolated(&Frame { certain: false, outer: frame.outer.clone(), ..*frame }, node, scope, input),
            "comment" => Value::new(),
            _ => {
                self.substitutions(frame, node, scope);
                Value::new()
            }
        };
        self.depth -= 1;
        output
    }

    fn sequence(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut output = Value::new();
        for child in named(node) {
            append(&mut output, self.statement(frame, child, scope, input));
        }
        output
    }

    fn isolated(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope, input: Input<'_>) -> Value {
        self.sequence(frame, node, &mut scope.clone(), input)
    }

    /// Lists lean to the left, one level for each `&&`: they are taken apart without recursion.
    fn list(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut parts = Vec::new();
        let mut open = node;
        loop {
            let mut children = named(open);
            let left = (!children.is_empty()).then(|| children.remove(0));
            parts.extend(children.into_iter().rev());
            match left {
                Some(left) if left.kind() == "list" => open = left,
                Some(left) => {
                    parts.push(left);
                    break;
                }
                None => break,
            }
        }
        let before = scope.conditional;
        let mut output = Value::new();
        for part in parts.into_iter().rev() {
            append(&mut output, self.statement(frame, part, scope, input));
            scope.conditional = true;
        }
        scope.conditional = before;
        output
    }

    fn pipeline(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut output: Option<Value> = None;
        for stage in named(node) {
            let given = output.take();
            output = Some(self.statement(frame, stage, &mut scope.clone(), given.as_ref().or(input)));
        }
        output.unwrap_or_default()
    }

    fn branch(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let (before, directory) = (scope.conditional, scope.directory.clone());
        scope.conditional = true;
        let output = self.sequence(frame, node, scope, input);
        scope.conditional = before;
        if scope.directory != directory {
            scope.change_directory(None);
        }
        output
    }

    fn for_loop(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
        let mut values = Vec::new();
        let mut cursor = node.walk();
        let items: Vec<_> = node.children_by_field_name("value", &mut cursor).collect();
        let substituted = self.all_substitutions(frame, &items, scope);
        for item in &items {
            let words = lexer(frame, &substituted, scope, &HashMap::new()).words(trimmed(frame.source, *item));
            values.extend(words.iter().map(super::lexer::bits_of));
        }
        if let Some(variable) = node.child_by_field_name("variable") {
            scope.assign_all(&frame.source[trimmed(frame.source, variable)], values);
        }
        match node.child_by_field_name("body") {
            Some(body) => self.branch(frame, body, scope, input),
            None => Value::new(),
        }
    }

    fn function(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope) -> Value {
        let Some(body) = node.child_by_field_name("body") else { return Value::new() };
        let mut inside = scope.clone();
        inside.positional = None;
        inside.conditional = true;
        self.statement(frame, body, &mut inside, None);
        let mut cursor = node.walk();
        let redirects: Vec<_> = node.children_by_field_name("redirect", &mut cursor).collect();
        self.bare(frame, node, &redirects, &mut inside);
        if let Some(name) = node.child_by_field_name("name") {
            Rc::make_mut(&mut scope.functions).insert(frame.source[trimmed(frame.source, name)].to_owned(), frame.source[trimmed(frame.source, body)].to_owned());
        }
        Value::new()
    }

    fn redirected(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
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
        for child in redirects.iter().filter(|redirect| redirect.kind() == "heredoc_redirect").flat_map(|redirect| named(*redirect)) {
            match child.kind() {
                "pipeline" => output = self.statement(frame, child, scope, Some(&output)),
                "heredoc_start" | "heredoc_body" | "heredoc_end" | "file_redirect" | "herestring_redirect" | "word" => {}
                _ => append(&mut output, self.statement(frame, child, scope, None)),
            }
        }
        output
    }

    /// Redirections of a whole group, as a command without a program.
    fn bare(&mut self, frame: &Frame<'_>, node: Node<'_>, redirects: &[Node<'_>], scope: &mut Scope) {
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

    fn command(
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
    fn declaration(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope) -> Value {
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

    /// Parts that do not parse: what looks like a command in them is listed as a guess.
    fn guesses(&mut self, source: &str, root: Node<'_>, scope: &Scope, outer: Option<&Range<usize>>) {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if !is_broken(source, node) {
                open.extend(named(node).into_iter().filter(Node::has_error));
                continue;
            }
            for range in segments(source, trimmed(source, node)).into_iter().take(MAX_GUESSES) {
                let frame = Frame { source, outer: outer.cloned(), certain: false };
                let words = lexer(&frame, &[], scope, &HashMap::new()).words(range.clone());
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

    /// What a here-document or here-string gives to standard input.
    fn input_text(&mut self, frame: &Frame<'_>, redirects: &[Node<'_>], scope: &mut Scope) -> Option<Value> {
        let source = redirects.iter().rev().find(|redirect| matches!(redirect.kind(), "heredoc_redirect" | "herestring_redirect"))?;
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
            return Some(super::scope::text(&frame.source[range]));
        }
        let substituted = self.all_substitutions(frame, &[*body], scope);
        Some(lexer(frame, &substituted, scope, &HashMap::new()).bits(range, Mode::Document))
    }

    fn redirects(
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
            let is_descriptor = |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
            let copies = source.contains(">&") || source.contains("<&");
            words.into_iter().filter(move |word| !(copies && is_descriptor(word))).map(move |target| Redirect { kind, target })
        })
        .collect()
    }

    fn all_substitutions(&mut self, frame: &Frame<'_>, nodes: &[Node<'_>], scope: &Scope) -> Vec<Substituted> {
        let mut all: Vec<_> = nodes.iter().flat_map(|node| self.substitutions(frame, *node, scope)).collect();
        all.sort_by_key(|found| found.range.start);
        all
    }

    /// Reads the outermost substitutions below a node.
    fn substitutions(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope) -> Vec<Substituted> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match node.kind() {
                "command_substitution" | "process_substitution" => found.push(node),
                // A here-document inside these is read with its own command.
                "heredoc_redirect" => open.extend(named(node).into_iter().filter(|child| child.kind() == "file_redirect")),
                _ => open.extend(named(node)),
            }
        }
        found.sort_by_key(Node::start_byte);
        found.into_iter().map(|node| self.substitution(frame, node, scope)).collect()
    }

    fn substitution(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope) -> Substituted {
        let range = trimmed(frame.source, node);
        let text = &frame.source[range.clone()];
        let mut inside = scope.clone();
        let escaped = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).filter(|text| text.contains('\\'));
        let output = match escaped {
            // Backquotes inside backquotes have backslashes that go away before the inner text is read.
            Some(text) if self.depth < MAX_DEPTH => {
                let unescaped = text.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
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
}

/// Whether a node itself, not only something below it, does not parse.
fn is_broken(source: &str, node: Node<'_>) -> bool {
    // Two subshells in a row look like arithmetic.
    let text = &source[trimmed(source, node)];
    let arithmetic = node.kind() == "arithmetic_expansion" || (node.kind() == "compound_statement" && text.starts_with("(("));
    let mut cursor = node.walk();
    node.is_error() || arithmetic || node.children(&mut cursor).any(|child| child.is_missing())
}

fn lexer<'a>(
    frame: &Frame<'a>,
    substituted: &'a [Substituted],
    scope: &'a Scope,
    choice: &'a HashMap<String, usize>,
) -> Lexer<'a> {
    Lexer { source: frame.source, substituted, scope, choice }
}

/// The text with every byte outside ASCII as a letter: the parser's scanner asks the C library about characters, and crashes on
/// those that its tables do not hold. Words are read from the source itself.
fn ascii(source: &str) -> Vec<u8> {
    source.bytes().map(|byte| if byte.is_ascii() { byte } else { b'u' }).collect()
}

/// Pieces of a text between the operators that separate commands.
fn segments(source: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut quote, mut escaped) = (range.start, None, false);
    for (at, c) in source[range.clone()].char_indices().map(|(at, c)| (range.start + at, c)) {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ';' | '|' | '&' | '(' | ')' | '\n' | '`' | '<' | '>') => {
                out.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(start..range.end);
    out.retain(|range| !source[range.clone()].trim().is_empty());
    out
}

fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// The node without the blanks that the parser counts to the beginning of some.
fn trimmed(source: &str, node: Node<'_>) -> Range<usize> {
    let range = node.byte_range();
    // The parser saw letters where the source has longer characters.
    let (start, end) = (source.floor_char_boundary(range.start), source.floor_char_boundary(range.end));
    let text = &source[start..end];
    end - text.trim_start_matches([' ', '\t', '\n']).len()..end
}

/// Words that touch are one word.
fn joined(source: &str, nodes: &[Node<'_>]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for node in nodes {
        let range = trimmed(source, *node);
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
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
    Some(Assignment { name, value: Word { pieces: super::lexer::pieces(&bits), loose: false } })
}

fn assigned_value(lexer: &Lexer<'_>, node: Node<'_>) -> Value {
    match node.child_by_field_name("value") {
        Some(array) if array.kind() == "array" => {
            let words: Vec<Word> = named(array).iter().flat_map(|item| lexer.words(trimmed(lexer.source, *item))).collect();
            super::lexer::join(&words)
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

/// Output of one statement after another. Two unknowns in a row say no more than one.
fn append(output: &mut Value, more: Value) {
    const MAX_BITS: usize = 4096;
    for bit in more {
        let repeats = matches!((output.last(), &bit), (Some(Bit::Any { origin: a, .. }), Bit::Any { origin: b, .. }) if a == b);
        if !repeats && output.len() < MAX_BITS {
            output.push(bit);
        }
    }
}

fn without_last_newline(mut output: Value) -> Value {
    if let Some(Bit::Text { text, .. }) = output.last_mut() {
        text.truncate(text.trim_end_matches('\n').len());
    }
    output
}

