//! Leftovers in added lines: notes to self, placeholder bodies and debugging statements.
//!
//! Comments and strings are recognised: a TODO counts in a comment, `console.log` counts in code, and neither counts in a string.
//! Intended output cannot be distinguished from debugging output, so prints are reported but never block.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::done::source::{Language, Source};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebrisKind {
    /// TODO, FIXME, XXX.
    Note,
    /// A placeholder instead of an implementation.
    Placeholder,
    /// A breakpoint or debugging macro: `debugger`, `dbg!`, `breakpoint()`.
    Trap,
    /// Output that looks like debugging output.
    Print,
}

impl DebrisKind {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Note => "note to self",
            Self::Placeholder => "placeholder",
            Self::Trap => "debugger",
            Self::Print => "debug output",
        }
    }

    /// Whether it is left over from debugging rather than from writing the code.
    pub fn is_debugging(self) -> bool {
        match self {
            Self::Trap | Self::Print => true,
            Self::Note | Self::Placeholder => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Debris {
    pub kind: DebrisKind,
    /// Counted from 1.
    pub line: u32,
    /// The line, trimmed and truncated.
    pub text: String,
    /// Whether it keeps the work from being done; otherwise it is only reported.
    pub blocking: bool,
}

/// Checks the added lines of a file (numbered from 1). Files in unsupported languages have no debris.
pub fn debris(path: &str, new: &str, added: &[u32]) -> Vec<Debris> {
    let Some(language) = Language::from_path(path, new) else { return Vec::new() };
    let source = Source::read(language, new);
    let (code, comments, said) = (source.code(), source.comments(), source.without_comments());
    let wanted: BTreeSet<u32> = added.iter().copied().collect();
    let mut found = Vec::new();
    let lines = code.lines().zip(comments.lines()).zip(said.lines()).zip(new.lines());
    for (number, (((code, comment), said), raw)) in (1_u32..).zip(lines) {
        if !wanted.contains(&number) {
            continue;
        }
        let kinds = [
            is_note(comment).then_some(DebrisKind::Note),
            is_placeholder(language, code, comment, said).then_some(DebrisKind::Placeholder),
            is_trap(language, code).then_some(DebrisKind::Trap),
            is_print(language, path, code).then_some(DebrisKind::Print),
        ];
        for kind in kinds.into_iter().flatten() {
            let text = raw.trim().chars().take(120).collect();
            found.push(Debris { kind, line: number, text, blocking: kind != DebrisKind::Print });
        }
    }
    found
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}

/// Only as a word in capitals, so that prose about todo lists does not match.
fn is_note(comment: &str) -> bool {
    static NOTE: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:TODO|FIXME|XXX)\b(?:[:(!\s]|$)"));
    NOTE.is_match(comment)
}

fn is_placeholder(language: Language, code: &str, comment: &str, said: &str) -> bool {
    static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\b(?:your code here|implement(?:ation)? (?:me|goes here|here)|placeholder(?: implementation)?|not (?:yet )?implemented|stub implementation|rest of (?:the )?(?:code|implementation))\b",
        )
    });
    static THROWN: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"\b(?:throw\s+new\s+\w*error|raise\s+\w*error|panic!?|raise|unreachable!|die|fail)\s*\(?\s*["'`](?:\w+ )?(?:is )?(?:not (?:yet )?implemented|todo|unimplemented)"#,
        )
    });
    static RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:todo|unimplemented)!"));
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"\braise\s+NotImplementedError\b"));
    static RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"\braise\s+NotImplementedError\b"));
    let by_language = match language {
        Language::Rust => RUST.is_match(code),
        Language::Python => PYTHON.is_match(code),
        Language::Ruby => RUBY.is_match(code),
        Language::JavaScript | Language::Go | Language::Shell => false,
    };
    by_language || COMMENT.is_match(&comment.to_lowercase()) || (THROWN.is_match(&said.to_lowercase()) && !code.trim().is_empty())
}

fn is_trap(language: Language, code: &str) -> bool {
    static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[;{}\s])debugger\s*(?:;|$)"));
    static RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"\bdbg!\s*[(\[{]"));
    static PYTHON: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?:^|[;:\s])breakpoint\s*\(\s*\)|\bi?pdb\.set_trace\s*\(|^\s*import\s+i?pdb\b"));
    static GO: LazyLock<Regex> = LazyLock::new(|| regex(r"\bruntime\.Breakpoint\s*\(|\bspew\.Dump\s*\("));
    static RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"\bbinding\.(?:pry|irb|b)\b|^\s*byebug\b|^\s*debugger\s*$"));
    static SHELL: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*set\s+-[a-z]*x[a-z]*\s*$"));
    match language {
        Language::JavaScript => JAVASCRIPT.is_match(code),
        Language::Rust => RUST.is_match(code),
        Language::Python => PYTHON.is_match(code),
        Language::Go => GO.is_match(code),
        Language::Ruby => RUBY.is_match(code),
        Language::Shell => SHELL.is_match(code),
    }
}

/// Only in languages whose programs normally print by other means. Output of command-line tools is intended.
fn is_print(language: Language, path: &str, code: &str) -> bool {
    static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| regex(r"\bconsole\.(?:log|debug|trace|dir|table)\s*\("));
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[;:\s])p?print\s*\("));
    static GO: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[;{\s])println\s*\("));
    static RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:pp|p)\s+[\w:@\[{(]"));
    let tool = path.split('/').any(|part| matches!(part, "bin" | "cli" | "scripts" | "tools" | "examples"));
    match language {
        Language::JavaScript => JAVASCRIPT.is_match(code) && !tool,
        Language::Python => PYTHON.is_match(code) && !tool,
        Language::Go => GO.is_match(code),
        Language::Ruby => RUBY.is_match(code),
        Language::Rust | Language::Shell => false,
    }
}

#[cfg(test)]
mod tests;
