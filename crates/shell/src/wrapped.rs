//! Determines the command that a wrapper runs from its arguments.

use super::Assignment;
use super::fragment::{ANY, Bit, NETWORK, bits_of, join, render};
use super::scope::{Scope, Value, unknown};
use super::unwrap::Call;
use super::walk::Walker;
use super::word::{Piece, Word};
use super::wrapper::Wrapper;

impl Walker {
    pub(super) fn unwrap(&mut self, call: &Call<'_>, index: usize, wrapper: &Wrapper, scope: &mut Scope) -> Value {
        let mut words = call.words[1..].to_vec();
        if !wrapper.subcommands.is_empty() {
            let Some(at) = words.iter().position(|word| word.literal().is_some_and(|text| wrapper.subcommands.contains(&text)))
            else {
                return unknown();
            };
            words.drain(..=at);
        }
        // `command -v` only prints where a program is.
        if wrapper.name == "command"
            && words.first().is_some_and(|word| word.prefix().starts_with('-') && word.prefix().contains(['v', 'V']))
        {
            return unknown();
        }
        let mut assignments = call.assignments.clone();
        let mut operands = wrapper.operands;
        // Without `-u`, `runuser` parses its words like `su`.
        if wrapper.name == "runuser" && !words.iter().any(|word| matches!(word.literal(), Some("-u" | "--user"))) {
            operands = 9;
        }
        let mut scripts = Vec::new();
        let mut directory = None;
        while let Some(word) = words.first() {
            let prefix = word.prefix().to_owned();
            let glued = |option: &&str| match option.strip_prefix("--") {
                Some(_) => word.without_prefix(&format!("{option}=")),
                None => glued_to_cluster(word, option),
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
            } else if prefix == "-" || prefix.starts_with(['-', '+']) {
                words.remove(0);
                if ends_in_valued(wrapper, &prefix) && !words.is_empty() {
                    words.remove(0);
                }
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
                // The text is split into words, followed by the rest of the line.
                script = script.into_iter().map(spaced).collect();
                script.push(Bit::Split);
                script.extend(join(&words));
            }
            output = self.script_text(call, index, &script, &mut inside);
        }
        if words.is_empty() {
            // A shell that reads commands from standard input, or a program that runs one line per job.
            let reads = match wrapper.name {
                "sudo" => call.words[1..].iter().any(|word| matches!(word.literal(), Some("-s" | "-i" | "--shell" | "--login"))),
                "parallel" | "su" | "ssh" | "newgrp" => true,
                _ => false,
            };
            return match call.input.filter(|_| reads) {
                Some(input) => self.script_text(call, index, input, &mut inside),
                None => output,
            };
        }
        if wrapper.name == "capsh" {
            words.insert(0, Word::text("bash"));
        }
        let mut inner = call.inner(words);
        inner.assignments = assignments;
        if wrapper.name == "parallel" {
            inner.words.retain(|word| word.literal() != Some(":::"));
        }
        match wrapper.name {
            // These pass one line to a shell.
            "watch" | "parallel" | "entr" | "hyperfine" | "tmux" | "ssh" | "sg" | "watchexec"
                if inner.words.first().is_some_and(|word| word.prefix().contains(' ')) =>
            {
                let line = join(&inner.words);
                self.script_text(call, index, &line, &mut inside)
            }
            "coproc" if inner.words.get(1).and_then(Word::literal) == Some("{") => {
                inner.words.remove(0);
                self.run(inner, &mut inside)
            }
            // These run in the current shell and can change it.
            "command" | "builtin" | "exec" | "time" | "noglob" | "nocorrect" => self.run(inner, scope),
            _ => self.run(inner, &mut inside),
        }
    }

    pub(super) fn xargs(&mut self, call: &Call<'_>, scope: &Scope) -> Value {
        const VALUED: &[&str] =
            &["-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file"];
        let mut words = call.words[1..].to_vec();
        let mut placeholder: Option<String> = None;
        // With a custom separator, it does not split at spaces.
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
                option if !option.starts_with("--") && option.contains('I') => {
                    let (_, glued) = option.split_once('I').unwrap_or_default();
                    placeholder = match glued {
                        "" if !words.is_empty() => Some(words.remove(0).to_string()),
                        glued => Some(glued.to_owned()),
                    };
                }
                option if option.starts_with("-i") => placeholder = Some(option[2..].to_owned()),
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

    /// The commands after `-exec` and similar options.
    pub(super) fn find_exec(&mut self, call: &Call<'_>, scope: &Scope) -> Value {
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
}

/// `env -S` has its own escape for a space.
fn spaced(bit: Bit) -> Bit {
    match bit {
        Bit::Text { text, quoted } => Bit::Text { text: text.replace("\\_", " "), quoted },
        Bit::Any { .. } | Bit::Glob | Bit::One | Bit::Brace(_) | Bit::Split => bit,
    }
}

/// Replaces the placeholder in a word with a value.
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

/// An option that takes a script, alone or at the end of a cluster such as `-qc`.
fn takes_script(wrapper: &Wrapper, option: &str) -> bool {
    wrapper.scripts.iter().any(|script| {
        let cluster = option.starts_with('-') && option[1..].bytes().all(|b| b.is_ascii_alphabetic());
        option == *script || (script.len() == 2 && cluster && option.ends_with(&script[1..]))
    })
}

/// The value after a short option in the same word: `-cTEXT`, `-qcTEXT`.
fn glued_to_cluster(word: &Word, option: &str) -> Option<Word> {
    let letters = word.prefix().strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let at = letters.find(&option[1..])?;
    let flags = &letters[..at];
    let value = word.without_prefix(&format!("-{flags}{}", &option[1..]))?;
    (flags.len() <= 3 && flags.bytes().all(|b| b.is_ascii_alphabetic()) && value.literal() != Some("")).then_some(value)
}

/// A cluster of short options whose last one takes the next word, such as sudo's `-iu`.
fn ends_in_valued(wrapper: &Wrapper, cluster: &str) -> bool {
    let takes = |letter: char| wrapper.valued.iter().any(|option| option.len() == 2 && option.ends_with(letter));
    let letters = cluster.strip_prefix('-').filter(|rest| rest.len() > 1 && !rest.starts_with('-')).unwrap_or_default();
    letters.find(takes).is_some_and(|at| at + 1 == letters.len())
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}
