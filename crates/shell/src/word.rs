//! One word of a command after quote removal: text, with wildcards for unknown parts.

use std::fmt;

/// Part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Any text, including none.
    Any(Origin),
    /// A file name pattern: any text without a slash.
    Glob,
    /// Exactly one character of a file name pattern.
    One,
}

/// The origin of computed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Unknown,
    /// Downloaded from the network.
    Network,
    /// An argument of a function that is only being defined. Each call is analysed separately, so it matches nothing here.
    Argument,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
    /// Has an unknown part outside quotes: it may expand to no word, or to several.
    pub loose: bool,
}

impl Word {
    pub fn text(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Text(text.into())], loose: false }
    }

    /// A completely unknown word.
    pub fn any(loose: bool) -> Self {
        Self { pieces: vec![Piece::Any(Origin::Unknown)], loose }
    }

    /// The text, if the whole word is known.
    pub fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The known text at the start.
    pub fn prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Any(_) | Piece::Glob | Piece::One) | None => "",
        }
    }

    /// Whether the whole word is unknown.
    pub fn is_computed(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|piece| matches!(piece, Piece::Any(_)))
    }

    pub fn comes_from_network(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Any(Origin::Network)))
    }

    /// Whether the word may expand to this text.
    pub fn could_be(&self, text: &str) -> bool {
        !self.pieces.contains(&Piece::Any(Origin::Argument)) && matches(&self.pieces, text)
    }

    /// The part after the last slash: a program's name.
    #[must_use]
    pub fn base(&self) -> Self {
        let cut = self.pieces.iter().rposition(|piece| matches!(piece, Piece::Text(text) if text.contains('/')));
        let Some(at) = cut else { return self.clone() };
        let mut pieces = self.pieces[at..].to_vec();
        if let Some(Piece::Text(text)) = pieces.first_mut() {
            *text = text.rsplit('/').next().unwrap_or_default().to_owned();
        }
        if matches!(pieces.first(), Some(Piece::Text(text)) if text.is_empty()) && pieces.len() > 1 {
            pieces.remove(0);
        }
        Self { pieces, loose: self.loose }
    }

    /// The word without this prefix, if it has it.
    #[must_use]
    pub fn without_prefix(&self, prefix: &str) -> Option<Self> {
        let Some(Piece::Text(text)) = self.pieces.first() else { return None };
        let rest = text.strip_prefix(prefix)?.to_owned();
        let mut pieces = vec![Piece::Text(rest)];
        pieces.extend_from_slice(&self.pieces[1..]);
        if matches!(pieces.first(), Some(Piece::Text(text)) if text.is_empty()) && pieces.len() > 1 {
            pieces.remove(0);
        }
        Some(Self { pieces, loose: self.loose })
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Any(_) => f.write_str("…"),
            Piece::Glob => f.write_str("*"),
            Piece::One => f.write_str("?"),
        })
    }
}

/// Wildcard matching with at most one backtracking point, so the time is at most the product of the lengths.
fn matches(pieces: &[Piece], text: &str) -> bool {
    let pattern: Vec<Step> = pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Text(text) => text.chars().map(Step::Char).collect(),
            Piece::Any(_) | Piece::Glob => vec![Step::Many],
            Piece::One => vec![Step::One],
        })
        .collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut step, mut back) = (0, 0, None);
    while at < text.len() {
        match pattern.get(step) {
            Some(Step::Many) => {
                back = Some((step, at));
                step += 1;
            }
            Some(Step::One) => {
                at += 1;
                step += 1;
            }
            Some(Step::Char(c)) if *c == text[at] => {
                at += 1;
                step += 1;
            }
            Some(Step::Char(_)) | None => {
                let Some((many, start)) = back else { return false };
                back = Some((many, start + 1));
                at = start + 1;
                step = many + 1;
            }
        }
    }
    pattern[step..].iter().all(|step| matches!(step, Step::Many))
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Char(char),
    One,
    Many,
}
