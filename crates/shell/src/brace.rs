//! Brace expansion of `{a,b}` and `{1..3}`, as in bash.

use super::fragment::Bit;
use super::word::Origin;

/// If a word expands to more words than this, it is treated as unknown.
const MAX_WORDS: usize = 64;

/// Limits the quadratic search for matching braces.
const MAX_BRACES: usize = 400;

/// All words that one word with braces expands to, without brace markers.
pub(super) fn expand(bits: Vec<Bit>) -> Vec<Vec<Bit>> {
    let braces = bits.iter().filter(|bit| matches!(bit, Bit::Brace(_))).count();
    if braces == 0 {
        return vec![bits];
    }
    if braces > MAX_BRACES {
        return vec![vec![Bit::Any { origin: Origin::Unknown, quoted: false }]];
    }
    let mut done: Vec<Vec<Bit>> = Vec::new();
    let mut open = vec![bits];
    while let Some(word) = open.pop() {
        if done.len() + open.len() > MAX_WORDS {
            return vec![vec![Bit::Any { origin: Origin::Unknown, quoted: false }]];
        }
        match first_group(&word) {
            Some((before, choices, after)) => {
                let all = choices.into_iter().map(|choice| [before.clone(), choice, after.clone()].concat());
                open.extend(all.rev());
            }
            None => done.push(word.into_iter().map(as_text).collect()),
        }
    }
    done
}

type Group = (Vec<Bit>, Vec<Vec<Bit>>, Vec<Bit>);

/// The first brace group that contains a comma or a range.
fn first_group(word: &[Bit]) -> Option<Group> {
    word.iter().enumerate().filter(|(_, bit)| **bit == Bit::Brace('{')).find_map(|(start, _)| {
        let mut depth = 0_usize;
        let mut commas = Vec::new();
        for (at, bit) in word.iter().enumerate().skip(start + 1) {
            match bit {
                Bit::Brace('{') => depth += 1,
                Bit::Brace('}') if depth > 0 => depth -= 1,
                Bit::Brace(',') if depth == 0 => commas.push(at),
                Bit::Brace('}') => {
                    let choices =
                        if commas.is_empty() { range(&word[start + 1..at])? } else { between(word, start, &commas, at) };
                    return Some((word[..start].to_vec(), choices, word[at + 1..].to_vec()));
                }
                Bit::Text { .. } | Bit::Any { .. } | Bit::Glob | Bit::One | Bit::Brace(_) => {}
                Bit::Split => return None,
            }
        }
        None
    })
}

fn between(word: &[Bit], start: usize, commas: &[usize], end: usize) -> Vec<Vec<Bit>> {
    let starts = std::iter::once(start).chain(commas.iter().copied());
    let ends = commas.iter().copied().chain([end]);
    starts.zip(ends).map(|(from, to)| word[from + 1..to].to_vec()).collect()
}

fn range(inside: &[Bit]) -> Option<Vec<Vec<Bit>>> {
    let [Bit::Text { text, quoted: false }] = inside else { return None };
    let (from, to) = text.split_once("..")?;
    let words: Vec<String> = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(from), Ok(to)) if (to.saturating_sub(from)).unsigned_abs() < MAX_WORDS as u64 => {
            let mut all: Vec<_> = (from.min(to)..=from.max(to)).map(|number| number.to_string()).collect();
            if from > to {
                all.reverse();
            }
            all
        }
        _ => {
            let (mut from, mut to) = (from.chars(), to.chars());
            let (Some(first), None, Some(last), None) = (from.next(), from.next(), to.next(), to.next()) else { return None };
            (first.min(last)..=first.max(last)).take(MAX_WORDS).map(String::from).collect()
        }
    };
    Some(words.into_iter().map(|text| vec![Bit::Text { text, quoted: false }]).collect())
}

fn as_text(bit: Bit) -> Bit {
    match bit {
        Bit::Brace(c) => Bit::Text { text: c.to_string(), quoted: false },
        Bit::Text { .. } | Bit::Any { .. } | Bit::Glob | Bit::One | Bit::Split => bit,
    }
}
