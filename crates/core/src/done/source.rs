//! Splits source text into code, comments and strings. Light lexers, one per language, that never fail.
//!
//! They know just enough to distinguish the three: nested comments, raw strings, templates with embedded code, here-documents, and
//! regular expressions (by what precedes them). Time is linear and memory is one byte per byte of text, whatever the input. If a
//! text is malformed, they make a guess and continue.

mod go;
mod javascript;
mod lexer;
mod python;
mod ruby;
mod rust;
mod shell;

use lexer::Lexer;

/// The supported languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    Rust,
    /// Includes TypeScript and JSX.
    JavaScript,
    Python,
    Go,
    Ruby,
    Shell,
}

/// The part that a byte belongs to. Quotes belong to their string, comment markers to their comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Code,
    Comment,
    Text,
}

/// A text with the part of each byte.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    text: &'a str,
    parts: Vec<Part>,
}

impl Language {
    /// Detects the language by file name, else by the `#!` line.
    pub fn from_path(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let by_name = match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
            "rs" => Some(Self::Rust),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Some(Self::JavaScript),
            "py" | "pyi" => Some(Self::Python),
            "go" => Some(Self::Go),
            "rb" | "rake" | "gemspec" => Some(Self::Ruby),
            "sh" | "bash" | "zsh" | "ksh" | "bats" => Some(Self::Shell),
            _ => None,
        };
        by_name.or_else(|| by_first_line(text))
    }
}

fn by_first_line(text: &str) -> Option<Language> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let words = line.split([' ', '/', '\t']).map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    words.rev().find_map(|word| match word {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "bats" => Some(Language::Shell),
        "python" => Some(Language::Python),
        "node" | "deno" | "bun" | "tsx" => Some(Language::JavaScript),
        "ruby" => Some(Language::Ruby),
        _ => None,
    })
}

impl<'a> Source<'a> {
    pub fn read(language: Language, text: &'a str) -> Self {
        let mut lexer = Lexer::new(text.as_bytes());
        let step = match language {
            Language::Rust => rust::step,
            Language::JavaScript => javascript::step,
            Language::Python => python::step,
            Language::Go => go::step,
            Language::Ruby => ruby::step,
            Language::Shell => shell::step,
        };
        Self { text, parts: lexer.run(step) }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The part of the byte at this offset; code beyond the end.
    pub fn part(&self, at: usize) -> Part {
        self.parts.get(at).copied().unwrap_or(Part::Code)
    }

    /// Only the code: everything else is replaced by spaces, so that offsets and lines stay the same.
    pub fn code(&self) -> String {
        self.masked(|part| part == Part::Code)
    }

    /// Code and strings; comments are replaced by spaces.
    pub fn without_comments(&self) -> String {
        self.masked(|part| part != Part::Comment)
    }

    /// Only the comments.
    pub fn comments(&self) -> String {
        self.masked(|part| part == Part::Comment)
    }

    fn masked(&self, keep: impl Fn(Part) -> bool) -> String {
        let pairs = self.text.bytes().zip(&self.parts);
        let bytes: Vec<u8> =
            pairs.map(|(byte, part)| if keep(*part) || matches!(byte, b'\n' | b'\r') { byte } else { b' ' }).collect();
        // Parts begin and end at ASCII bytes, so characters stay intact.
        String::from_utf8(bytes).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).replace('\u{fffd}', " "))
    }
}

#[cfg(test)]
mod tests;
