//! What a simple command runs in turn: wrappers, scripts given as text, functions, aliases. And what it leaves behind for the
//! commands after it: the directory, variables.

use std::ops::Range;
use std::rc::Rc;

use super::lexer::{ANY, Bit, NETWORK, bits_of, join, origin, render};
use super::scope::{Scope, Value, text, unknown};
use super::walk::Walker;
use super::word::{Origin, Piece, Word};
use super::wrapper::{Wrapper, find as find_wrapper, is_download, is_reserved, is_shell};
use super::{Assignment, Redirect, Runs, Simple, Unknown, Why, git, output};

const MAX_NESTING: usize = 60;

/// A simple command about to be looked into.
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
    /// The same place and input with other words: what a wrapper runs.
    fn inner(&self, words: Vec<Word>) -> Self {
        Self { words, redirects: Vec::new(), ..self.clone() }
    }

    fn uncertain(mut self) -> Self {
        self.certain = false;
        self
    }
}

impl Walker {
    /// Lists a command, follows what it runs, and gives what it would print.
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

    /// Lists a command and gives its place in the list.
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
        self.script.commands.len() - 1
    }

    fn follow(&mut self, call: &Call<'_>, index: usize, scope: &mut Scope) -> Value {
        let Some(first) = call.words.first() else { return Value::new() };
        if first.loose && first.is_computed() && call.words.len() > 1 {
            // An unset variable leaves no word behind: then the next word is the program.
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
                Value::new()
            }
            "source" | "." => match arguments.first().and_then(|file| self.file_text(file, call.input)) {
                Some(script) => self.script_text(call, index, &script, scope),
                None => unknown(),
            },
            "xargs" => self.xargs(call, scope),
            "find" | "fd" | "fdfind" => self.find_exec(call, scope),
            "git" => self.git(call, scope),
            _ if is_shell(name) => self.shell(call, index, scope),
            _ if is_download(name) => vec![Bit::Any { origin: Origin::Network, quoted: false }],
            _ => match find_wrapper(name) {
                Some(wrapper) => self.unwrap(call, index, wrapper, scope),
                None => output::of(name, arguments, call.input, &self.files, scope),
            },
        }
    }

    /// A function that calls itself shows nothing new the second time, so it is unknown inside its own body.
    fn call_function(&mut self, call: &Call<'_>, name: &str, body: &str, scope: &mut Scope) -> Value {
        let functions = scope.functions.clone();
        Rc::make_mut(&mut scope.functions).remove(name);
        let caller = scope.positional.replace(call.words[1..].to_vec());
        let output = self.source(body, scope, call.input, Some(call.range.clone()), call.certain);
        scope.positional = caller;
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

    /// Runs text as a script in this scope and notes what kind of text it was.
    fn script_text(&mut self, call: &Call<'_>, index: usize, script: &Value, scope: &mut Scope) -> Value {
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
        if from_text && let Some(zero) = rest.next() {
            inside.zero = bits_of(zero);
        }
        inside.positional = Some(rest.cloned().collect());
        self.script_text(call, index, &script, &mut inside)
    }

    /// What a file holds, where the line itself makes it.
    fn file_text(&self, file: &Word, input: Option<&Value>) -> Option<Value> {
        match file.literal() {
            Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-") => input.cloned(),
            Some(path) => output::substituted(path, &self.files).cloned(),
            None if file.comes_from_network() => Some(bits_of(file)),
            None => None,
        }
    }

    fn unwrap(&mut self, call: &Call<'_>, index: usize, wrapper: &Wrapper, scope: &mut Scope) -> Value {
        let mut words = call.words[1..].to_vec();
        if !wrapper.subcommands.is_empty() {
            let Some(at) = words.iter().position(|word| word.literal().is_some_and(|text| wrapper.subcommands.contains(&text)))
            else {
                return unknown();
            };
            words.drain(..=at);
        }
        let mut assignments = call.assignments.clone();
        let mut operands = wrapper.operands;
        let mut scripts = Vec::new();
        let mut directory = None;
        while let Some(word) = words.first() {
            let prefix = word.prefix().to_owned();
            let glued = |option: &&str| match option.strip_prefix("--") {
                Some(_) => word.without_prefix(&format!("{option}=")),
                None => word.without_prefix(option).filter(|rest| rest.literal() != Some("")),
            };
            if prefix == "--" {
                words.remove(0);
                if operands == 0 {
                    break;
                }
            } else if word.literal().is_some() && takes_script(wrapper, &prefix) {
                words.remove(0);
                if !words.is_empty() {
                    scripts.push(words.remove(0));
                }
            } else if let Some(script) = wrapper.scripts.iter().find_map(glued) {
                words.remove(0);
                scripts.push(script);
            } else if wrapper.valued.contains(&prefix.as_str()) && word.literal().is_some() {
                words.remove(0);
                if !words.is_empty() {
                    let value = words.remove(0);
                    if matches!(prefix.as_str(), "-C" | "--chdir" | "-D") && matches!(wrapper.name, "env" | "sudo") {
                        directory = Some(value);
                    }
                }
            } else if prefix.starts_with(['-', '+']) && prefix.len() > 1 {
                words.remove(0);
            } else if wrapper.assignments && is_assignment(&prefix) {
                let (name, _) = prefix.split_once('=').unwrap_or((&prefix, ""));
                let value = word.without_prefix(&format!("{name}=")).unwrap_or_else(|| Word::any(false));
                assignments.push(Assignment { name: name.to_owned(), value });
                words.remove(0);
            } else if operands > 0 {
                operands -= 1;
                words.remove(0);
            } else {
                break;
            }
        }
        let mut inside = scope.clone();
        if let Some(directory) = directory {
            inside.change_directory(directory.literal());
        }
        let mut output = unknown();
        for script in scripts {
            let mut script = bits_of(&script);
            if wrapper.name == "env" {
                // The text is split into words and the rest of the line follows it.
                script.push(Bit::Split);
                script.extend(join(&words));
            }
            output = self.script_text(call, index, &script, &mut inside);
        }
        if words.is_empty() {
            return output;
        }
        let mut inner = call.inner(words);
        inner.assignments = assignments;
        if wrapper.name == "parallel" {
            inner.words.retain(|word| word.literal() != Some(":::"));
        }
        match wrapper.name {
            // These hand one line to a shell.
            "watch" | "parallel" | "entr" | "hyperfine" if inner.words.first().is_some_and(|word| word.prefix().contains(' ')) => {
                let line = join(&inner.words);
                self.script_text(call, index, &line, &mut inside)
            }
            "coproc" if inner.words.get(1).and_then(Word::literal) == Some("{") => {
                inner.words.remove(0);
                self.run(inner, &mut inside)
            }
            // What runs in this shell itself changes it.
            "command" | "builtin" | "exec" | "time" | "noglob" | "nocorrect" => self.run(inner, scope),
            _ => self.run(inner, &mut inside),
        }
    }

    fn xargs(&mut self, call: &Call<'_>, scope: &Scope) -> Value {
        const VALUED: &[&str] =
            &["-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file"];
        let mut words = call.words[1..].to_vec();
        let mut placeholder: Option<String> = None;
        // With a separator of its own it does not split at blanks.
        let whole = words.iter().any(|word| matches!(word.prefix(), "-0" | "--null") || word.prefix().starts_with("-d"));
        while let Some(word) = words.first() {
            let prefix = word.prefix().to_owned();
            if !prefix.starts_with('-') {
                break;
            }
            words.remove(0);
            match prefix.as_str() {
                "--" => break,
                "-I" | "--replace" | "-J" if !words.is_empty() => placeholder = Some(words.remove(0).to_string()),
                "-i" => placeholder = Some("{}".to_owned()),
                option if VALUED.contains(&option) && !words.is_empty() => {
                    words.remove(0);
                }
                option if option.starts_with("-I") || option.starts_with("-i") => placeholder = Some(option[2..].to_owned()),
                option if option.starts_with("--replace=") => placeholder = Some(option["--replace=".len()..].to_owned()),
                _ => {}
            }
        }
        let given = call.input.map(|input| render(input)).filter(|text| !text.contains([ANY, NETWORK]));
        let mut scope = scope.clone();
        let Some(placeholder) = placeholder else {
            match given {
                Some(text) if whole => words.push(Word::text(text)),
                Some(text) => words.extend(text.split_whitespace().take(64).map(Word::text)),
                None => words.push(Word::any(true)),
            }
            return self.run(Call { input: None, ..call.inner(words) }, &mut scope);
        };
        let values: Vec<Word> = match given {
            Some(text) => text.lines().take(16).map(Word::text).collect(),
            None => vec![Word::any(false)],
        };
        for value in values {
            let filled = words.iter().map(|word| fill(word, &placeholder, &value)).collect();
            self.run(Call { input: None, ..call.inner(filled) }, &mut scope);
        }
        unknown()
    }

    /// Commands after `-exec` and the like.
    fn find_exec(&mut self, call: &Call<'_>, scope: &Scope) -> Value {
        let mut rest = call.words.as_slice();
        while let Some(at) = rest.iter().position(|word| {
            matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"))
        }) {
            rest = &rest[at + 1..];
            let end = rest.iter().position(|word| matches!(word.literal(), Some(";" | "+"))).unwrap_or(rest.len());
            let words = rest[..end].iter().map(|word| fill(word, "{}", &Word::any(false))).collect();
            self.run(call.inner(words), &mut scope.clone());
            rest = &rest[end..];
        }
        unknown()
    }

    /// Aliases given on git's own command line, and git's commands that run others.
    fn git(&mut self, call: &Call<'_>, scope: &mut Scope) -> Value {
        let Some(parsed) = git::git_call(&call.words) else { return unknown() };
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
    /// The graver of two kinds of text.
    fn runs_or(&self, other: Runs) -> Runs {
        match (self.runs, other) {
            (Runs::Downloaded, _) | (_, Runs::Downloaded) => Runs::Downloaded,
            (Runs::Computed, _) | (_, Runs::Computed) => Runs::Computed,
            (Runs::Known, _) | (_, Runs::Known) => Runs::Known,
            (Runs::Nothing, Runs::Nothing) => Runs::Nothing,
        }
    }
}

fn read(arguments: &[Word], input: Option<&Value>, scope: &mut Scope) -> Value {
    let names: Vec<&str> = arguments.iter().filter_map(Word::literal).filter(|name| !name.starts_with('-')).collect();
    match (names.as_slice(), input) {
        ([name], Some(input)) => scope.assign(name, text(render(input).trim()), false),
        _ => names.iter().for_each(|name| scope.forget(name)),
    }
    Value::new()
}

/// Puts a value where the placeholder stands in a word.
fn fill(word: &Word, placeholder: &str, value: &Word) -> Word {
    let pieces = word.pieces.iter().flat_map(|piece| match piece {
        Piece::Text(text) if !placeholder.is_empty() && text.contains(placeholder) => {
            let mut out = Vec::new();
            for (index, part) in text.split(placeholder).enumerate() {
                if index > 0 {
                    out.extend(value.pieces.iter().cloned());
                }
                if !part.is_empty() {
                    out.push(Piece::Text(part.to_owned()));
                }
            }
            out
        }
        other => vec![other.clone()],
    });
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (merged.last_mut(), piece) {
            (Some(Piece::Text(last)), Piece::Text(more)) => last.push_str(&more),
            (_, piece) => merged.push(piece),
        }
    }
    Word { pieces: merged, loose: word.loose || value.loose }
}

/// An option whose value is a script, alone or at the end of a cluster such as `-qc`.
fn takes_script(wrapper: &Wrapper, option: &str) -> bool {
    wrapper.scripts.iter().any(|script| {
        let cluster = option.starts_with('-') && option[1..].bytes().all(|b| b.is_ascii_alphabetic());
        option == *script || (script.len() == 2 && cluster && option.ends_with(&script[1..]))
    })
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

