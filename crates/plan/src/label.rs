//! Labels in front of parts of a story: `Acceptance:`, `**Verification:**`, `#### Notes`.

use verdone_text::suggest::distance;

/// The meaning of the text after a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Acceptance,
    Verification,
    /// One command. Only has a meaning under Verification.
    Command,
    Dependencies,
    Priority,
    /// Paths that the story may change.
    Scope,
    /// How hard it is.
    Complexity,
    Proof,
    /// What kind of change it is.
    Kind,
    /// A known label whose text is only for the reader.
    Prose,
}

/// Splits `Label: value`, bold or not. A label without a value has to be bold or end with a colon.
pub(crate) fn split(text: &str) -> Option<(Label, &str)> {
    let text = text.trim();
    let inner = text.trim_start_matches(['*', '_']);
    let bold = inner.len() + 1 < text.len();
    match inner.find(':') {
        Some(colon) => {
            let label = word(&inner[..colon])?;
            let rest = inner[colon + 1..].trim_start();
            // `**Label:** value` leaves its asterisks after the colon.
            let rest = if bold { rest.trim_start_matches(['*', '_']) } else { rest };
            Some((label, rest.trim()))
        }
        None if bold => word(inner).map(|label| (label, "")),
        None => None,
    }
}

/// The label that a heading stands for.
pub(crate) fn heading(text: &str) -> Option<Label> {
    word(text.trim().trim_end_matches(':'))
}

/// The word before a colon, if it is one or two letters away from a meaningful label, and that label.
pub(crate) fn misspelt(text: &str) -> Option<(&str, &'static str)> {
    const LONGEST: usize = 24;
    let (written, _) = text.split_once(':')?;
    let written = bare(written);
    if written.len() > LONGEST || !written.chars().all(|c| c.is_alphabetic() || c == ' ') || word(written).is_some() {
        return None;
    }
    let farthest = if written.chars().count() < 8 { 1 } else { 2 };
    // "Comments:" is not a typo of "Commands:", which only has a meaning under Verification.
    let known = WORDS.iter().filter(|(_, label)| !matches!(label, Label::Prose | Label::Command)).flat_map(|(words, _)| *words);
    let near = known.map(|known| (distance(&written.to_lowercase(), known), *known)).filter(|(far, _)| *far <= farthest);
    near.min().map(|(_, known)| (written, known))
}

fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c == '*' || c == '_' || c.is_whitespace())
}

fn word(text: &str) -> Option<Label> {
    let text = bare(text);
    WORDS.iter().find(|(words, _)| words.iter().any(|word| word.eq_ignore_ascii_case(text))).map(|(_, label)| *label)
}

const WORDS: [(&[&str], Label); 10] = [
    (&["acceptance", "acceptance criteria", "acceptance criterion", "criteria"], Label::Acceptance),
    (
        &["verification", "verification commands", "verify", "validation", "validation commands", "checks", "check"],
        Label::Verification,
    ),
    (&["command", "commands"], Label::Command),
    (&["dependencies", "dependency", "depends on", "depends", "blocked by"], Label::Dependencies),
    (&["priority"], Label::Priority),
    (&["scope"], Label::Scope),
    (&["complexity"], Label::Complexity),
    (&["proof"], Label::Proof),
    (&["kind"], Label::Kind),
    (
        &[
            "notes",
            "note",
            "description",
            "files",
            "refs",
            "status",
            "tasks",
            "estimate",
            "open questions",
            "open question",
            "questions",
            "question",
            "answer",
        ],
        Label::Prose,
    ),
];

/// Splits `US-001: Title` into id and title. `None` if the text does not begin with an id.
pub(crate) fn split_id(text: &str) -> Option<(String, String)> {
    cut_id(text).map(|(id, title)| (id.to_owned(), plain(title)))
}

/// Whether a text begins with an id.
pub(crate) fn has_id(text: &str) -> bool {
    cut_id(text).is_some()
}

fn cut_id(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let inner = text.trim_start_matches(['*', '_']);
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(inner.len());
    let (id, rest) = match numbered(inner) {
        Some(end) => inner.split_at(end),
        None => inner.split_at(end),
    };
    if !looks_like_id(id) && numbered(inner).is_none() {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '_']);
    let title = match rest.strip_prefix(':') {
        Some(title) => title,
        None => dashed(rest).filter(|_| upper_id(id))?,
    };
    Some((id, title))
}

/// A title without asterisks for bold text and without comments.
pub(crate) fn plain(title: &str) -> String {
    let mut parts = title.split("<!--");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| bare.push_str(part.split_once("-->").map_or("", |(_, rest)| rest)));
    let title = bare.trim();
    let stars = title.matches("**").count();
    let title = if stars == 2 || stars == 1 { title.trim_start_matches("**").trim_end_matches("**") } else { title };
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `US-001`, `T12`, `FEAT-1.2`: begins with a letter and has a digit.
pub(crate) fn looks_like_id(id: &str) -> bool {
    id.len() <= 64
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.ends_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().any(|byte| byte.is_ascii_digit())
}

/// `US-001`: capital letters, a dash and digits only.
pub(crate) fn is_story_id(id: &str) -> bool {
    let digits = |text: &str| text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
    upper_id(id) && id.split_once('-').is_some_and(|(_, number)| digits(number))
}

fn upper_id(id: &str) -> bool {
    id.split_once('-').is_some_and(|(letters, _)| !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// The text after ` - ` or another dash.
fn dashed(rest: &str) -> Option<&str> {
    let trimmed = rest.strip_prefix([' ', '\t'])?.trim_start();
    let after = trimmed.strip_prefix(['-', '–', '—'])?;
    after.starts_with([' ', '\t']).then_some(after)
}

/// The length of `Task 3`, `Iteration 2a` or `Story 2.5` before a colon.
fn numbered(text: &str) -> Option<usize> {
    let kind = ["Task ", "Iteration ", "Story "].into_iter().find(|kind| text.starts_with(kind))?;
    let rest = &text[kind.len()..];
    let number = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
    (rest.starts_with(|c: char| c.is_ascii_digit()) && rest[number..].trim_start_matches('*').starts_with(':'))
        .then_some(kind.len() + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_prose() {
        let table = [
            ("US-001: Title", Some(("US-001", "Title"))),
            ("**US-001: Title**", Some(("US-001", "Title"))),
            ("**US-001**: The *title*", Some(("US-001", "The *title*"))),
            ("US-001 - Title", Some(("US-001", "Title"))),
            ("US-001 — Title", Some(("US-001", "Title"))),
            ("US-001:", Some(("US-001", ""))),
            ("T12: Title <!-- no-rollback -->", Some(("T12", "Title"))),
            ("Task 2.5: Title", Some(("Task 2.5", "Title"))),
            ("Task 3", None),
            ("Note: something", None),
            ("HTTP/2: something", None),
            ("v2 - something", None),
            ("Wait 5 minutes: then go", None),
            ("", None),
            ("***", None),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(id, title): (&str, &str)| (id.to_owned(), title.to_owned()));
            assert_eq!(split_id(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_slip_in_a_label_is_told_from_another_word() {
        let table = [
            ("Verificaton: pytest", Some(("Verificaton", "verification"))),
            ("**Verfication:** `pytest`", Some(("Verfication", "verification"))),
            ("Dependancies: US-001", Some(("Dependancies", "dependencies"))),
            ("Prooof: verified", Some(("Prooof", "proof"))),
            ("Depend on: US-001", Some(("Depend on", "depends on"))),
            ("Verification: pytest", None),
            ("Comments: none", None),
            ("Checked: by hand", None),
            ("Design: plain", None),
            ("it verifies: nothing", None),
            ("verificaton without a colon", None),
        ];
        for (text, expected) in table {
            assert_eq!(misspelt(text), expected, "{text:?}");
        }
    }

    #[test]
    fn labels_are_read_however_bold() {
        let table = [
            ("Acceptance: it works", Some((Label::Acceptance, "it works"))),
            ("**Verification:** `make test`", Some((Label::Verification, "`make test`"))),
            ("**Verification**: `make test`", Some((Label::Verification, "`make test`"))),
            ("**Acceptance Criteria:**", Some((Label::Acceptance, ""))),
            ("**Acceptance Criteria**", Some((Label::Acceptance, ""))),
            ("Depends on: US-001", Some((Label::Dependencies, "US-001"))),
            ("**Scope:** `src/`", Some((Label::Scope, "`src/`"))),
            ("Acceptance", None),
            ("the check: is it there", None),
            ("https://example.org", None),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
