//! Expands one word of the source like bash: quotes, escapes, variables and patterns.
//!
//! The parser gives the start and end of a word and the output of its substitutions. The bytes in between are read here, because the
//! parser's nodes for the inside of words do not preserve every byte.

use std::collections::HashMap;
use std::ops::Range;

use super::closing::{ansi_end, bracket_end, closing_brace, closing_paren, closing_quote};
use super::fragment::{ANY, Bit, NETWORK, bits_of, extend, first_field, join, origin, pieces, plain, push, push_marked, render};
use super::scope::{Scope, Value};
use super::word::{Origin, Word};
use super::{ansi, brace};

/// The maximum nesting of strings and expansions.
const MAX_DEPTH: usize = 40;

/// A substitution found by the parser, and its output.
#[derive(Debug, Clone)]
pub(super) struct Substituted {
    pub(super) range: Range<usize>,
    pub(super) output: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Bare,
    /// In double quotes.
    Double,
    /// In a here-document, where quotes are plain text.
    Document,
}

pub(super) struct Lexer<'a> {
    pub(super) source: &'a str,
    /// In source order.
    pub(super) substituted: &'a [Substituted],
    pub(super) scope: &'a Scope,
    /// Which candidate to use for a variable with several.
    pub(super) choice: &'a HashMap<String, usize>,
}

impl Lexer<'_> {
    /// The words that a word of the source expands to.
    pub(super) fn words_in(&self, range: Range<usize>) -> Vec<Word> {
        brace::expand(self.bits(range, Mode::Bare)).iter().flat_map(|bits| fields(bits)).collect()
    }

    /// The value of an assignment, without field splitting, patterns and braces.
    pub(super) fn value(&self, range: Range<usize>) -> Value {
        self.bits(range, Mode::Bare).into_iter().map(plain).collect()
    }

    pub(super) fn bits(&self, range: Range<usize>, mode: Mode) -> Vec<Bit> {
        let mut out = Vec::new();
        self.scan(range, mode, 0, &mut out);
        out
    }

    fn scan(&self, range: Range<usize>, mode: Mode, depth: usize, out: &mut Vec<Bit>) {
        let quoted = mode != Mode::Bare;
        if depth > MAX_DEPTH {
            out.push(Bit::Any { origin: Origin::Unknown, quoted });
            return;
        }
        let mut at = range.start;
        if mode == Mode::Bare && self.source[range.clone()].starts_with('~') {
            at = self.tilde(&range, out);
        }
        while at < range.end {
            if let Some(found) = self.substitution(at).filter(|found| found.range.end <= range.end) {
                self.extend(out, &found.output, quoted);
                at = found.range.end;
                continue;
            }
            let rest = &self.source[at..range.end];
            let Some(c) = rest.chars().next() else { break };
            at += match (c, mode) {
                ('\\', _) => escape(rest, mode, out),
                ('\'', Mode::Bare) => {
                    let inner = rest[1..].split('\'').next().unwrap_or_default();
                    push_marked(out, inner, true);
                    (inner.len() + 2).min(rest.len())
                }
                ('"', Mode::Bare) => {
                    let inner = closing_quote(&rest[1..]);
                    push(out, "", true);
                    self.scan(at + 1..at + 1 + inner, Mode::Double, depth + 1, out);
                    (inner + 2).min(rest.len())
                }
                ('$', _) => self.dollar(at, rest, mode, depth, out),
                ('`', _) => {
                    out.push(Bit::Any { origin: Origin::Unknown, quoted });
                    rest[1..].find('`').map_or(rest.len(), |end| end + 2)
                }
                ('*', Mode::Bare) => {
                    out.push(Bit::Glob);
                    1
                }
                ('?', Mode::Bare) => {
                    out.push(Bit::One);
                    1
                }
                ('[', Mode::Bare) if bracket_end(rest).is_some() => {
                    out.push(Bit::One);
                    bracket_end(rest).unwrap_or(rest.len())
                }
                ('{' | ',' | '}', Mode::Bare) => {
                    out.push(Bit::Brace(c));
                    1
                }
                ('<' | '>', Mode::Bare) if rest[1..].starts_with('(') => {
                    out.push(Bit::Any { origin: Origin::Unknown, quoted: true });
                    rest.len()
                }
                (ANY | NETWORK, _) => {
                    push_marked(out, &rest[..c.len_utf8()], quoted);
                    c.len_utf8()
                }
                (' ' | '\t' | '\n', Mode::Bare) => {
                    out.push(Bit::Split);
                    1
                }
                _ => {
                    push(out, &rest[..c.len_utf8()], quoted);
                    c.len_utf8()
                }
            };
        }
    }

    fn substitution(&self, at: usize) -> Option<&Substituted> {
        let index = self.substituted.binary_search_by_key(&at, |found| found.range.start).ok()?;
        self.substituted.get(index)
    }

    fn tilde(&self, range: &Range<usize>, out: &mut Vec<Bit>) -> usize {
        let rest = &self.source[range.start + 1..range.end];
        let name = rest.split('/').next().unwrap_or_default();
        match (name, self.scope.candidates("HOME")) {
            ("", [home]) => out.extend(home.iter().cloned().map(plain)),
            ("+", _) => self.extend(out, &self.lookup("PWD"), true),
            // Another user's home: the exact path makes no difference to the rules.
            (user, _) if user.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') => {
                out.push(Bit::Text { text: format!("/home/{user}"), quoted: true });
            }
            _ => out.push(Bit::Any { origin: Origin::Unknown, quoted: true }),
        }
        range.start + 1 + name.len()
    }

    /// Reads an expansion that starts with `$` and returns its length.
    fn dollar(&self, at: usize, rest: &str, mode: Mode, depth: usize, out: &mut Vec<Bit>) -> usize {
        let quoted = mode != Mode::Bare;
        let after = &rest[1..];
        match after.chars().next() {
            Some('\'') if mode == Mode::Bare => {
                let inner = ansi_end(&after[1..]);
                push_marked(out, &ansi::decode(&after[1..][..inner]), true);
                (inner + 3).min(rest.len())
            }
            Some('"') if mode == Mode::Bare => 1,
            Some('{') => {
                let inner = closing_brace(&after[1..], quoted);
                self.parameter(at + 2..at + 2 + inner, mode, depth, out);
                (inner + 3).min(rest.len())
            }
            Some('(') => {
                out.push(Bit::Any { origin: Origin::Unknown, quoted });
                closing_paren(&after[1..]).map_or(rest.len(), |end| end + 3)
            }
            Some('[') => {
                out.push(Bit::Any { origin: Origin::Unknown, quoted });
                after.find(']').map_or(rest.len(), |end| end + 2)
            }
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let name = after.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next().unwrap_or_default();
                self.extend(out, &self.lookup(name), quoted);
                name.len() + 1
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.extend(out, &self.special(&after[..1]), quoted);
                2
            }
            Some(_) | None => {
                push(out, "$", quoted);
                1
            }
        }
    }

    /// `${...}`: names, arrays and defaults are evaluated; anything that cuts or replaces text is unknown.
    fn parameter(&self, range: Range<usize>, mode: Mode, depth: usize, out: &mut Vec<Bit>) {
        let quoted = mode != Mode::Bare;
        let inner = &self.source[range.clone()];
        let mut name_len = inner.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
        if name_len == 0 && (inner == "@" || inner == "*") {
            name_len = 1;
        }
        let (name, operation) = inner.split_at(name_len);
        let value = if name.starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c)) {
            self.special(name)
        } else {
            self.lookup(name)
        };
        let (value, operation) = match operation {
            rest if rest.starts_with("[@]") || rest.starts_with("[*]") => (value, &rest[3..]),
            rest if rest.starts_with("[0]") => (first_field(value), &rest[3..]),
            rest => (first_field(value), rest),
        };
        let known = !value.iter().any(|bit| matches!(bit, Bit::Any { .. }));
        let alternative = |sign: usize| range.end - operation.len() + sign..range.end;
        let set = known && !self.scope.candidates(name).is_empty();
        match operation {
            _ if name.is_empty() => out.push(Bit::Any { origin: Origin::Unknown, quoted }),
            "" => self.extend(out, &value, quoted),
            rest if rest.starts_with(":-") || rest.starts_with(":=") => {
                if set && !value.is_empty() {
                    self.extend(out, &value, quoted);
                } else {
                    self.scan(alternative(2), mode, depth + 1, out);
                }
            }
            rest if rest.starts_with(['-', '=']) => {
                if set {
                    self.extend(out, &value, quoted);
                } else {
                    self.scan(alternative(1), mode, depth + 1, out);
                }
            }
            rest if rest.starts_with(":+") => self.scan(alternative(2), mode, depth + 1, out),
            rest if rest.starts_with('+') => self.scan(alternative(1), mode, depth + 1, out),
            rest if rest.starts_with([':', '?']) && rest.trim_start_matches(':').starts_with('?') => {
                self.extend(out, &value, quoted);
            }
            _ => out.push(Bit::Any { origin: origin(&value), quoted }),
        }
    }

    /// Adds a value; outside quotes it is split at the characters of `IFS`.
    fn extend(&self, out: &mut Vec<Bit>, value: &[Bit], quoted: bool) {
        let mut separators: String = self.scope.candidates("IFS").iter().map(|value| render(value)).collect();
        if separators.contains(' ') {
            separators.push_str("\t\n");
        }
        extend(out, value, quoted, &separators);
    }

    fn lookup(&self, name: &str) -> Value {
        let candidates = self.scope.candidates(name);
        let chosen = self.choice.get(name).copied().unwrap_or_default();
        candidates.get(chosen).cloned().unwrap_or_else(super::scope::unknown)
    }

    fn special(&self, name: &str) -> Value {
        if name == "0" {
            return self.scope.zero.clone();
        }
        let Some(positional) = &self.scope.positional else {
            return vec![Bit::Any { origin: Origin::Argument, quoted: false }];
        };
        match name {
            "@" | "*" => join(positional),
            _ => match name.parse::<usize>() {
                Ok(number) if number > 0 => positional.get(number - 1).map(bits_of).unwrap_or_default(),
                Ok(_) | Err(_) => super::scope::unknown(),
            },
        }
    }
}

/// The fields of an unquoted word; empty ones are dropped unless they are quoted.
fn fields(bits: &[Bit]) -> Vec<Word> {
    bits.split(|bit| *bit == Bit::Split)
        .filter(|field| !field.is_empty())
        .map(|field| {
            let loose = field.iter().any(|bit| matches!(bit, Bit::Any { quoted: false, .. }));
            Word { pieces: pieces(field), loose }
        })
        .collect()
}

fn escape(rest: &str, mode: Mode, out: &mut Vec<Bit>) -> usize {
    let Some(next) = rest[1..].chars().next() else {
        push(out, "\\", true);
        return 1;
    };
    let special = match mode {
        Mode::Bare => true,
        Mode::Double => "$`\"\\\n".contains(next),
        Mode::Document => "$`\\\n".contains(next),
    };
    if special && next != '\n' {
        push(out, &rest[1..=next.len_utf8()], true);
    } else if !special {
        push(out, &rest[..=next.len_utf8()], true);
    }
    1 + next.len_utf8()
}
