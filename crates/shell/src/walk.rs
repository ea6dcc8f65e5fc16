//! Walks the syntax tree and passes every simple command, with its words expanded, to `unwrap`.
//!
//! Depth, size and count are bounded, because hostile input must neither hang nor overflow the stack. Everything beyond the bounds is
//! reported as unknown.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use tree_sitter::{Node, Parser};

use super::fragment::{Bit, bits_of};
use super::lexer::{Lexer, Substituted};
use super::scope::{Scope, Value, unknown};
use super::tree::{ascii, named, trimmed};
use super::{MAX_SOURCE, Script, Unknown, Variables, Why};

/// The maximum nesting of syntax and of scripts inside scripts. Each level uses a few stack frames.
pub(super) const MAX_DEPTH: usize = 60;
const MAX_COMMANDS: usize = 4_000;
/// The maximum number of nested scripts, including function calls.
const MAX_SOURCES: usize = 1_000;
/// The maximum total size of nested scripts, in bytes.
const MAX_NESTED: usize = 2 * MAX_SOURCE;
/// For every here-document, the parser searches for its end, at worst through the whole text: this bounds their count times its length.
const MAX_HERE: usize = 64 << 20;
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
    /// The content of the process substitutions' files; words refer to them as `/dev/fd/sub-N`.
    pub(super) files: Vec<Value>,
}

/// The text being walked.
pub(super) struct Frame<'s> {
    pub(super) source: &'s str,
    /// The range where the text was given, if it is a script inside a command.
    pub(super) outer: Option<Range<usize>>,
    pub(super) certain: bool,
    /// Redirections that the parser attaches above their command, with that command's node.
    pub(super) attached: Option<(usize, &'s [Node<'s>])>,
}

impl Frame<'_> {
    pub(super) fn range(&self, node: Node<'_>) -> Range<usize> {
        self.outer.clone().unwrap_or_else(|| trimmed(self.source, node))
    }

    pub(super) fn text(&self, range: Range<usize>) -> String {
        const SHOWN: usize = 200;
        let text = self.source[range].trim();
        match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.to_owned(),
        }
    }
}

/// The standard input of a statement, if known.
pub(super) type Input<'a> = Option<&'a Value>;

impl Walker {
    /// Analyses a script and returns its output.
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
        if source.matches("<<").count() * source.len() > MAX_HERE {
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
            // If `((` is not arithmetic, bash treats it as two subshells; the parser does not.
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
        let frame = Frame { source, outer, certain, attached: None };
        self.statement(&frame, root, scope, input)
    }

    pub(super) fn give_up(&mut self, range: Range<usize>, why: Why) -> Value {
        if !self.script.unknown.iter().any(|known| known.why == why) {
            self.script.unknown.push(Unknown { range, why });
        }
        unknown()
    }

    pub(super) fn statement(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &mut Scope, input: Input<'_>) -> Value {
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
            "command" => self.command(frame, node, scope, input),
            "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command" => {
                self.declaration(frame, node, scope)
            }
            "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "case_statement"
            | "case_item"
            | "c_style_for_statement" => self.branch(frame, node, scope, input),
            "for_statement" => self.for_loop(frame, node, scope, input),
            "function_definition" => self.function(frame, node, scope),
            "ERROR" => self.isolated(&Frame { certain: false, outer: frame.outer.clone(), ..*frame }, node, scope, input),
            "comment" => Value::new(),
            // `$(<file)`.
            "file_redirect" => {
                self.bare(frame, node, &[node], scope);
                unknown()
            }
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
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        for (index, child) in children.iter().enumerate().filter(|(_, child)| child.is_named()) {
            let in_background = children.get(index + 1).is_some_and(|next| next.kind() == "&");
            let printed = if in_background {
                self.statement(frame, *child, &mut scope.clone(), input)
            } else {
                self.statement(frame, *child, scope, input)
            };
            append(&mut output, printed);
        }
        output
    }

    fn isolated(&mut self, frame: &Frame<'_>, node: Node<'_>, scope: &Scope, input: Input<'_>) -> Value {
        self.sequence(frame, node, &mut scope.clone(), input)
    }

    /// Lists nest to the left, one level per `&&`, so this flattens them without recursion.
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
            let words = lexer(frame, &substituted, scope, &HashMap::new()).words_in(trimmed(frame.source, *item));
            values.extend(words.iter().map(bits_of));
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
            Rc::make_mut(&mut scope.functions).insert(
                frame.source[trimmed(frame.source, name)].to_owned(),
                frame.source[trimmed(frame.source, body)].to_owned(),
            );
        }
        Value::new()
    }
}

pub(super) fn lexer<'a>(
    frame: &Frame<'a>,
    substituted: &'a [Substituted],
    scope: &'a Scope,
    choice: &'a HashMap<String, usize>,
) -> Lexer<'a> {
    Lexer { source: frame.source, substituted, scope, choice }
}

/// Appends the output of a statement. Consecutive unknowns are merged.
pub(super) fn append(output: &mut Value, more: Value) {
    const MAX_BITS: usize = 4096;
    for bit in more {
        let repeats = matches!((output.last(), &bit), (Some(Bit::Any { origin: a, .. }), Bit::Any { origin: b, .. }) if a == b);
        if !repeats && output.len() < MAX_BITS {
            output.push(bit);
        }
    }
}
