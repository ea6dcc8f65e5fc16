//! Follows what a simple command runs: wrappers, scripts given as text, functions, aliases. Also applies its effects on later
//! commands: the directory and variables.

use std::ops::Range;
use std::rc::Rc;

use super::fragment::{ANY, Bit, NETWORK, bits_of, join, origin, render};
use super::scope::{Scope, Value, text, unknown};
use super::walk::Walker;
use super::word::{Origin, Piece, Word};
use super::wrapper::{find as find_wrapper, is_download, is_interpreter, is_reserved, is_shell};
use super::{Assignment, Redirect, Runs, Simple, Unknown, Why, declare, git, output};

const MAX_NESTING: usize = 60;

/// A simple command to analyse.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) words: Vec<Word>,
    pub(super) assignments: Vec<Assignment>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) range: Range<usize>,
    pub(super) text: String,
    pub(super) certain: bool,
    pub(super) input: Option<&'a Value>,
}

impl Call<'_> {
    /// The command that a wrapper runs: the same position and input with other words.
    pub(super) fn inner(&self, words: Vec<Word>) -> Self {
        Self { words, redirects: Vec::new(), ..self.clone() }
    }

    fn uncertain(mut self) -> Self {
        self.certain = false;
        self
    }
}

impl Walker {
    /// Lists a command, follows what it runs, and returns its output.
    pub(super) fn run(&mut self, mut call: Call<'_>, scope: &mut Scope) -> Value {
        if self.depth >= MAX_NESTING {
            return self.give_up(call.range, Why::TooDeep);
        }
        while call.words.first().and_then(Word::literal).is_some_and(is_reserved) {
            call.words.remove(0);
        }
        self.depth += 1;
        let index = self.list_only(&call, scope);
        let output = self.follow(&call, index, scope);
        self.depth -= 1;
        output
    }

    /// Lists a command and returns its index.
    pub(super) fn list_only(&mut self, call: &Call<'_>, scope: &Scope) -> usize {
        self.script.commands.push(Simple {
            words: call.words.clone(),
            assignments: call.assignments.clone(),
            redirects: call.redirects.clone(),
            range: call.range.clone(),
            text: call.text.clone(),
            directory: scope.directory.clone(),
            certain: call.certain,
            runs: Runs::Nothing,
        });
        let index = self.script.commands.len() - 1;
        self.follow_variables(call, scope);
        index
    }

    fn follow(&mut self, call: &Call<'_>, index: usize, scope: &mut Scope) -> Value {
        let Some(first) = call.words.first() else { return Value::new() };
        if first.loose && first.is_computed() && call.words.len() > 1 {
            // An unset variable expands to no word: then the next word is the program.
            self.run(call.inner(call.words[1..].to_vec()).uncertain(), &mut scope.clone());
        }
        let program = first.base();
        let Some(name) = program.literal() else {
            if !first.pieces.contains(&Piece::Any(Origin::Argument)) {
                self.script.unknown.push(Unknown { range: call.range.clone(), why: Why::Program });
            }
            return vec![Bit::Any { origin: call.input.map_or(Origin::Unknown, |input| origin(input)), quoted: false }];
        };
        let arguments = &call.words[1..];
        if let Some(body) = scope.functions.get(name).cloned() {
            return self.call_function(call, name, &body, scope);
        }
        if let Some(value) = scope.aliases.get(name).cloned() {
            let line = format!("{} {}", render(&value), render(&join(arguments)));
            Rc::make_mut(&mut scope.aliases).remove(name);
            return self.source(&line, scope, call.input, Some(call.range.clone()), call.certain);
        }
        match name {
            "cd" | "pushd" => self.change_directory(arguments, scope),
            "popd" => {
                scope.change_directory(None);
                Value::new()
            }
            "set" | "shift" => set_positional(name, arguments, scope),
            "at" | "batch" => {
                let script = call.input.cloned().unwrap_or_default();
                self.script_text(call, index, &script, &mut scope.clone())
            }
            "alias" => {
                for word in arguments {
                    if let Some((name, _)) = word.prefix().split_once('=') {
                        let value = word.without_prefix(&format!("{name}="));
                        Rc::make_mut(&mut scope.aliases).insert(name.to_owned(), value.as_ref().map(bits_of).unwrap_or_default());
                    }
                }
                Value::new()
            }
            "read" | "mapfile" | "readarray" => read(arguments, call.input, scope),
            "eval" => self.script_text(call, index, &join(arguments), scope),
            "trap" => {
                let script = arguments.iter().find(|word| !word.prefix().starts_with('-')).map(bits_of).unwrap_or_default();
                let mut later = scope.clone();
                self.script_text(call, index, &script, &mut later);
                // From now on, the trap may run between any two commands.
                for name in scope.differing(&later) {
                    scope.make_wild(&name);
                }
                Value::new()
            }
            "source" | "." => {
                if let Some(script) = arguments.first().and_then(|file| self.file_text(file, call.input)) {
                    self.script_text(call, index, &script, scope)
                } else {
                    scope.doubt_all();
                    unknown()
                }
            }
            "return" => {
                scope.returned = true;
                Value::new()
            }
            _ if declare::is_declaration(name) => {
                let options: String = arguments.iter().map(Word::prefix).filter(|text| text.starts_with('-')).collect();
                declare::declared_words(name, &options, arguments, scope);
                Value::new()
            }
            "xargs" => self.xargs(call, scope),
            "find" | "fd" | "fdfind" => self.find_exec(call, scope),
            "git" => self.git(call, scope),
            _ if is_shell(name) => self.shell(call, index, scope),
            _ if is_interpreter(name) && !runs_package(name, arguments) => self.interpreter(call, index),
            _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
                let words = arguments.iter().skip_while(|word| word.prefix().starts_with('-')).cloned().collect();
                self.run(call.inner(words), &mut scope.clone())
            }
            _ if is_download(name) => vec![Bit::Any { origin: Origin::Network, quoted: false }],
            _ => match find_wrapper(name) {
                Some(wrapper) => self.unwrap(call, index, wrapper, scope),
                None => output::output_of(name, arguments, call.input, &self.files, scope),
            },
        }
    }

    /// A recursive call shows nothing new, so a function is undefined inside its own body.
    fn call_function(&mut self, call: &Call<'_>, name: &str, body: &str, scope: &mut Scope) -> Value {
        let functions = scope.functions.clone();
        Rc::make_mut(&mut scope.functions).remove(name);
        let caller = scope.positional.replace(call.words[1..].to_vec());
        let returned = scope.returned;
        let output = self.source(body, scope, call.input, Some(call.range.clone()), call.certain);
        scope.positional = caller;
        scope.returned = returned;
        scope.functions = functions;
        output
    }

    #[expect(clippy::unused_self, reason = "one arm among the others of `follow`")]
    fn change_directory(&mut self, arguments: &[Word], scope: &mut Scope) -> Value {
        let target = arguments.iter().find(|word| word.literal() == Some("-") || !word.prefix().starts_with('-'));
        let home = scope.candidates("HOME").first().map(|home| render(home));
        let target = match target.map(Word::literal) {
            None => home,
            Some(Some("-") | None) => None,
            Some(Some(path)) => Some(path.to_owned()),
        };
        scope.change_directory(target.as_deref());
        Value::new()
    }

    /// Runs text as a script in this scope and records the kind of text.
    pub(super) fn script_text(&mut self, call: &Call<'_>, index: usize, script: &Value, scope: &mut Scope) -> Value {
        let line = render(script);
        let runs = match line.trim_start() {
            "" => Runs::Nothing,
            _ if line.lines().any(|line| line.trim_start().starts_with(NETWORK)) => Runs::Downloaded,
            trimmed if trimmed.starts_with(ANY) => Runs::Computed,
            _ => Runs::Known,
        };
        if let Some(simple) = self.script.commands.get_mut(index) {
            simple.runs = simple.runs_or(runs);
        }
        match runs {
            Runs::Computed => self.script.unknown.push(Unknown { range: call.range.clone(), why: Why::Text }),
            Runs::Nothing | Runs::Known | Runs::Downloaded => {}
        }
        self.source(&line, scope, None, Some(call.range.clone()), call.certain)
    }

    /// `sh FILE`, `sh -c TEXT`, or text on standard input.
    fn shell(&mut self, call: &Call<'_>, index: usize, scope: &mut Scope) -> Value {
        let mut rest = call.words[1..].iter();
        let (mut from_text, mut from_input) = (false, false);
        let mut first = None;
        while let Some(word) = rest.next() {
            let prefix = word.prefix();
            match prefix {
                "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => {
                    rest.next();
                }
                "-" | "--" => {
                    first = rest.next();
                    break;
                }
                _ if prefix.starts_with("--") => {}
                _ if prefix.starts_with(['-', '+']) => {
                    from_text |= prefix.starts_with('-') && prefix.contains('c');
                    from_input |= prefix.contains('s');
                    if prefix.ends_with('o') {
                        rest.next();
                    }
                }
                _ => {
                    first = Some(word);
                    break;
                }
            }
        }
        let script = match first {
            Some(script) if from_text => Some(bits_of(script)),
            Some(_) if from_input => call.input.cloned(),
            Some(file) => self.file_text(file, call.input),
            None => call.input.cloned(),
        };
        let Some(script) = script else { return unknown() };
        let mut inside = scope.clone();
        if from_input && let Some(first) = first {
            inside.positional = Some(std::iter::once(first).chain(rest).cloned().collect());
            return self.script_text(call, index, &script, &mut inside);
        }
        if from_text && let Some(zero) = rest.next() {
            inside.zero = bits_of(zero);
        }
        inside.positional = Some(rest.cloned().collect());
        self.script_text(call, index, &script, &mut inside)
    }

    /// A program in another language: only whether its code comes from the network is determined.
    fn interpreter(&mut self, call: &Call<'_>, index: usize) -> Value {
        let arguments = &call.words[1..];
        let is_text = |option: &Word| matches!(option.literal(), Some("-c" | "-e" | "-r" | "--eval"));
        let text = arguments.windows(2).find(|pair| is_text(&pair[0])).map(|pair| bits_of(&pair[1]));
        let file = arguments.iter().find(|word| word.literal() == Some("-") || !word.prefix().starts_with('-'));
        let runs = match (text, file) {
            (Some(text), _) => Some(text),
            // With an option such as `-m`, the option determines the code, and standard input is data.
            (None, None) if arguments.is_empty() => call.input.cloned(),
            (None, None) => None,
            (None, Some(file)) => self.file_text(file, call.input),
        };
        let downloaded = runs.is_some_and(|runs| render(&runs).trim_start().starts_with(NETWORK));
        if let Some(simple) = self.script.commands.get_mut(index).filter(|_| downloaded) {
            simple.runs = Runs::Downloaded;
        }
        unknown()
    }

    /// The content of a file, if the line itself creates it.
    fn file_text(&self, file: &Word, input: Option<&Value>) -> Option<Value> {
        match file.literal() {
            Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-") => input.cloned(),
            Some(path) => output::substituted(path, &self.files).cloned(),
            None if file.comes_from_network() => Some(bits_of(file)),
            None => None,
        }
    }

    /// Follows aliases defined on git's command line, and git commands that run other commands.
    fn git(&mut self, call: &Call<'_>, scope: &mut Scope) -> Value {
        let Some(parsed) = git::git_call(&call.words) else { return unknown() };
        self.follow_git_settings(call, &parsed, scope);
        let (Some(command), rest) = (parsed.command.literal(), parsed.arguments) else { return unknown() };
        if let Some(value) = parsed.alias(command) {
            let value = value.to_string();
            let mut inside = scope.clone();
            if let Some(line) = value.strip_prefix('!') {
                let line = format!("{line} {}", render(&join(rest)));
                return self.source(&line, &mut inside, None, Some(call.range.clone()), call.certain);
            }
            let mut words = vec![Word::text("git")];
            words.extend(value.split_whitespace().map(|word| Word::text(word.trim_matches(['"', '\'']))));
            words.extend_from_slice(rest);
            return self.run(call.inner(words), &mut inside);
        }
        match (command, rest.first().and_then(Word::literal)) {
            ("submodule", Some("foreach")) => {
                let words: Vec<Word> = rest[1..].iter().skip_while(|word| word.prefix().starts_with('-')).cloned().collect();
                let line = render(&join(&words));
                self.source(&line, &mut scope.clone(), None, Some(call.range.clone()), call.certain);
            }
            ("bisect", Some("run")) => {
                self.run(call.inner(rest[1..].to_vec()), &mut scope.clone());
            }
            _ => {}
        }
        unknown()
    }
}

impl Simple {
    /// The more severe of two kinds of text.
    fn runs_or(&self, other: Runs) -> Runs {
        match (self.runs, other) {
            (Runs::Downloaded, _) | (_, Runs::Downloaded) => Runs::Downloaded,
            (Runs::Computed, _) | (_, Runs::Computed) => Runs::Computed,
            (Runs::Known, _) | (_, Runs::Known) => Runs::Known,
            (Runs::Nothing, Runs::Nothing) => Runs::Nothing,
        }
    }
}

/// `bun x PACKAGE` runs a program like `npx`; any other argument of `bun` is code.
fn runs_package(name: &str, arguments: &[Word]) -> bool {
    name == "bun" && arguments.first().and_then(Word::literal) == Some("x")
}

/// `set -- a b` and `shift 2`.
fn set_positional(name: &str, arguments: &[Word], scope: &mut Scope) -> Value {
    if name == "set" {
        if let Some(at) = arguments.iter().position(|word| word.literal() == Some("--")) {
            scope.positional = Some(arguments[at + 1..].to_vec());
        }
    } else if let Some(positional) = &mut scope.positional {
        let count = arguments.first().and_then(Word::literal).and_then(|count| count.parse().ok()).unwrap_or(1);
        positional.drain(..positional.len().min(count));
    }
    Value::new()
}

fn read(arguments: &[Word], input: Option<&Value>, scope: &mut Scope) -> Value {
    if arguments.iter().any(|word| word.literal().is_none()) {
        scope.doubt_all();
    }
    let names: Vec<&str> = arguments.iter().filter_map(Word::literal).filter(|name| !name.starts_with('-')).collect();
    match (names.as_slice(), input) {
        ([name], Some(input)) => scope.assign(name, text(render(input).trim()), false),
        ([names @ .., last], Some(input)) if !names.is_empty() => {
            let line = render(input);
            let mut rest = line.lines().next().unwrap_or_default().trim();
            for name in names {
                let (first, more) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
                scope.assign(name, text(first), false);
                rest = more.trim_start();
            }
            scope.assign(last, text(rest), false);
        }
        _ => names.iter().for_each(|name| scope.forget(name)),
    }
    Value::new()
}
