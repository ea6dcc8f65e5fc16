//! Pieces of expanded text before field splitting, and operations on them.

use super::scope::Value;
use super::word::{Origin, Piece, Word};

/// Marks unknown text in a script that is parsed again, as in `bash -c "$x"`. Private use characters.
pub const ANY: char = '\u{F8FF}';

pub(super) const NETWORK: char = '\u{F8FE}';

/// A piece of a word before field splitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bit {
    Text {
        text: String,
        quoted: bool,
    },
    Any {
        origin: Origin,
        quoted: bool,
    },
    Glob,
    One,
    /// An unquoted `{`, `,` or `}`.
    Brace(char),
    /// A boundary between two fields.
    Split,
}

pub(super) fn pieces(bits: &[Bit]) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for bit in bits {
        match bit {
            Bit::Text { text, .. } => add_text(&mut out, text),
            Bit::Brace(c) => add_text(&mut out, c.encode_utf8(&mut [0; 4])),
            Bit::Split => add_text(&mut out, " "),
            Bit::Any { origin, .. } => out.push(Piece::Any(*origin)),
            Bit::Glob => out.push(Piece::Glob),
            Bit::One => out.push(Piece::One),
        }
    }
    out
}

/// Converts a word to a value that can be expanded again.
pub(super) fn bits_of(word: &Word) -> Value {
    word.pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Bit::Text { text: text.clone(), quoted: false },
            Piece::Any(origin) => Bit::Any { origin: *origin, quoted: false },
            Piece::Glob => Bit::Glob,
            Piece::One => Bit::One,
        })
        .collect()
}

/// Joins words to the fields of one value.
pub(super) fn join(words: &[Word]) -> Value {
    let mut out = Value::new();
    for word in words {
        if !out.is_empty() {
            out.push(Bit::Split);
        }
        out.extend(bits_of(word));
    }
    out
}

/// The text of a value for parsing again, with marks for unknown parts.
pub(super) fn render(bits: &[Bit]) -> String {
    bits.iter().fold(String::new(), |mut out, bit| {
        match bit {
            Bit::Text { text, .. } => out.push_str(text),
            Bit::Any { origin: Origin::Unknown | Origin::Argument, .. } => out.push(ANY),
            Bit::Any { origin: Origin::Network, .. } => out.push(NETWORK),
            Bit::Glob => out.push('*'),
            Bit::One => out.push('?'),
            Bit::Brace(c) => out.push(*c),
            Bit::Split => out.push(' '),
        }
        out
    })
}

pub(super) fn origin(bits: &[Bit]) -> Origin {
    let network = bits.iter().any(|bit| matches!(bit, Bit::Any { origin: Origin::Network, .. }));
    if network { Origin::Network } else { Origin::Unknown }
}

/// Adds the value of an expansion; outside quotes, separators split it into fields.
pub(super) fn extend(out: &mut Vec<Bit>, value: &[Bit], quoted: bool, separators: &str) {
    for bit in value {
        match bit {
            Bit::Text { text, .. } if quoted => push(out, text, true),
            Bit::Text { text, .. } => {
                for (index, field) in text.split(|c: char| separators.contains(c)).enumerate() {
                    if index > 0 {
                        out.push(Bit::Split);
                    }
                    if !field.is_empty() {
                        push(out, field, false);
                    }
                }
            }
            Bit::Any { origin, .. } => out.push(Bit::Any { origin: *origin, quoted }),
            Bit::Glob if quoted => push(out, "*", true),
            Bit::One if quoted => push(out, "?", true),
            Bit::Brace(c) => push(out, c.encode_utf8(&mut [0; 4]), quoted),
            Bit::Glob | Bit::One | Bit::Split => out.push(bit.clone()),
        }
    }
}

/// The bit without field splitting, patterns and braces.
pub(super) fn plain(bit: Bit) -> Bit {
    match bit {
        Bit::Text { text, .. } => Bit::Text { text, quoted: false },
        Bit::Any { origin, .. } => Bit::Any { origin, quoted: false },
        Bit::Brace(c) => Bit::Text { text: c.to_string(), quoted: false },
        Bit::Split => Bit::Text { text: " ".to_owned(), quoted: false },
        Bit::Glob | Bit::One => bit,
    }
}

pub(super) fn first_field(mut value: Value) -> Value {
    if let Some(end) = value.iter().position(|bit| *bit == Bit::Split) {
        value.truncate(end);
    }
    value
}

pub(super) fn push(out: &mut Vec<Bit>, more: &str, quoted: bool) {
    match out.last_mut() {
        Some(Bit::Text { text, quoted: same }) if *same == quoted => text.push_str(more),
        _ => out.push(Bit::Text { text: more.to_owned(), quoted }),
    }
}

/// Adds text that may contain marks for unknown parts.
pub(super) fn push_marked(out: &mut Vec<Bit>, text: &str, quoted: bool) {
    push(out, "", quoted);
    for part in text.split_inclusive([ANY, NETWORK]) {
        let known = part.trim_end_matches([ANY, NETWORK]);
        if !known.is_empty() {
            push(out, known, quoted);
        }
        if part.ends_with(ANY) {
            out.push(Bit::Any { origin: Origin::Unknown, quoted });
        } else if part.ends_with(NETWORK) {
            out.push(Bit::Any { origin: Origin::Network, quoted });
        }
    }
}

fn add_text(out: &mut Vec<Piece>, text: &str) {
    match out.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        Some(Piece::Any(_) | Piece::Glob | Piece::One) | None => {
            if !text.is_empty() {
                out.push(Piece::Text(text.to_owned()));
            }
        }
    }
}
