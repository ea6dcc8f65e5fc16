//! Removes secrets from text that is kept or sent: exact values of secret variables, and common token formats.
//!
//! A literal search runs over everything; the regexes are only compiled when it finds something. Never reads the environment.

mod line;
mod shape;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

pub use line::LineRedactor;

/// The beginning of the text that replaces a secret.
pub const MARK: &str = "[redacted:";

/// Removes secrets from text. Cheap if there are none.
#[derive(Default)]
pub struct Redactor {
    values: Option<AhoCorasick>,
    /// The variable's name for each pattern of `values`.
    names: Vec<String>,
    longest: usize,
}

impl Redactor {
    /// Takes all variables of an environment and picks those that contain secrets, by name and by value.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut patterns: Vec<(String, String)> = Vec::new();
        for (name, value) in variables {
            if !is_secret(&name, &value) {
                continue;
            }
            // Output is often redacted line by line, so a multi-line value never matches as a whole.
            patterns.extend(value.lines().map(str::trim).filter(|l| l.len() >= 16).map(|l| (name.clone(), l.to_owned())));
            patterns.push((name, value.trim().to_owned()));
        }
        patterns.sort();
        patterns.dedup_by(|a, b| a.1 == b.1);
        let longest = patterns.iter().map(|(_, value)| value.len()).max().unwrap_or(0);
        let (names, found): (Vec<String>, Vec<String>) = patterns.into_iter().unzip();
        // Building fails only for sets of many megabytes. Token formats are still found without the values.
        let values = (!found.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(found).ok())
            .flatten();
        Self { values, names, longest }
    }

    /// Whether a text cannot contain a secret. A quick test for many texts at once.
    pub fn finds_nothing(&self, text: &str) -> bool {
        self.values.is_none() && !shape::has_hint(text)
    }

    /// The text without its secrets. Borrowed if there are none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for Secret { range, label } in found {
            out.push_str(&text[done..range.start]);
            out.push_str(MARK);
            out.push_str(label);
            out.push(']');
            done = range.end;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// Where to split a text that is too long to wait for its end, without splitting a secret.
    ///
    /// Everything before that position can be redacted on its own; the rest may contain the beginning of a secret.
    pub fn safe_cut(&self, text: &str) -> usize {
        let margin = self.longest.max(shape::LONGEST).min(text.len() / 2);
        let mut cut = text.floor_char_boundary(text.len() - margin);
        if let Some(torn) = self.find(text).into_iter().find(|s| s.range.start < cut && cut < s.range.end) {
            cut = torn.range.start;
        }
        if cut == 0 { text.len() } else { cut }
    }

    /// All secrets in order. Overlapping ones are merged into one, named after the wider one.
    fn find<'s>(&'s self, text: &str) -> Vec<Secret<'s>> {
        let mut found: Vec<Secret<'s>> = shape::find(text).collect();
        if let Some(values) = &self.values {
            for hit in values.find_iter(text) {
                let mut range = hit.start()..hit.end();
                let mut label = self.names[hit.pattern().as_usize()].as_str();
                found.retain(|other| {
                    let apart = other.range.end <= range.start || range.end <= other.range.start;
                    let within = range.start <= other.range.start && other.range.end <= range.end;
                    if !apart && !within {
                        range = range.start.min(other.range.start)..range.end.max(other.range.end);
                        label = other.label;
                    }
                    apart
                });
                found.push(Secret { range, label });
            }
        }
        found.sort_by_key(|secret| secret.range.start);
        found
    }
}

/// Never shows values.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Secret<'s> {
    range: Range<usize>,
    label: &'s str,
}

const SECRET_WORDS: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "SIGNING_KEY",
    "CREDENTIAL",
    "CONNECTION_STRING",
];

/// Suffixes of names that refer to a secret instead of containing it.
const POINTERS: [&str; 6] = ["_FILE", "_PATH", "_DIR", "_SOCK", "_SOCKET", "_NAME"];

/// Common placeholder values from tutorials. Redacting them would only garble the output.
const PLACEHOLDERS: [&str; 9] =
    ["password", "postgres", "changeme", "disabled", "enabled", "required", "localhost", "development", "undefined"];

fn is_secret(name: &str, value: &str) -> bool {
    let (name, value) = (name.to_ascii_uppercase(), value.trim());
    SECRET_WORDS.iter().any(|word| name.contains(word))
        && !POINTERS.iter().any(|end| name.ends_with(end))
        && value.chars().count() >= 8
        && !PLACEHOLDERS.contains(&value.to_ascii_lowercase().as_str())
        && !value.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-')
        && !is_path(value)
}

fn is_path(value: &str) -> bool {
    let rooted = ["/", "~/", "./", "../"].iter().any(|start| value.starts_with(start));
    // Base64 may begin with a slash too.
    rooted && value.matches('/').count() >= 2 && !value.contains(['+', '=', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let variables = [
            ("DEPLOY_TOKEN", "hunter2-hunter2"),
            ("DB_PASSWORD", "pässwörd mit Leerzeichen"),
            ("SHORT_SECRET", "1234567"),
            ("PIN_SECRET", "123456789012"),
            ("TOKENIZERS_PARALLELISM", "true"),
            ("SSH_PRIVATE_KEY_FILE", "/home/me/.ssh/id"),
            ("TOKEN_CACHE", "/var/cache/token/store"),
            ("ADMIN_PASSWORD", "password"),
            ("EDITOR", "not-a-secret-editor"),
            ("SIGNING_PRIVATE_KEY", "-----BEGIN X-----\nbGluZSBvbmUgb2YgdGhlIGtleQ\nbGluZSB0d28gb2YgdGhlIGtleQ\n-----END X-----"),
        ];
        Redactor::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn known_values_are_replaced_by_their_name() {
        let redactor = redactor();
        for (text, expected) in [
            ("login hunter2-hunter2!", "login [redacted:DEPLOY_TOKEN]!"),
            ("hunter2-hunter2hunter2-hunter2", "[redacted:DEPLOY_TOKEN][redacted:DEPLOY_TOKEN]"),
            ("p=pässwörd mit Leerzeichen", "p=[redacted:DB_PASSWORD]"),
            ("  bGluZSB0d28gb2YgdGhlIGtleQ", "  [redacted:SIGNING_PRIVATE_KEY]"),
            ("Bearer hunter2-hunter2", "Bearer [redacted:DEPLOY_TOKEN]"),
            ("Bearer xx-hunter2-hunter2-and-more", "Bearer [redacted:token]"),
            ("p=pässwörd mit Leerzeichenhunter2-hunter2", "p=[redacted:DB_PASSWORD][redacted:DEPLOY_TOKEN]"),
        ] {
            assert_eq!(redactor.redact(text), expected);
        }
    }

    #[test]
    fn values_that_are_no_secrets_are_left_alone() {
        let redactor = redactor();
        for text in
            ["1234567", "123456789012", "true", "/home/me/.ssh/id", "/var/cache/token/store", "password", "not-a-secret-editor"]
        {
            assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn a_cut_never_tears_a_known_value() {
        let redactor = redactor();
        for before in 0..40 {
            let text = format!("{}hunter2-hunter2{}", "é".repeat(before), "y".repeat(20));
            let cut = redactor.safe_cut(&text);
            let joined = format!("{}{}", redactor.redact(&text[..cut]), redactor.redact(&text[cut..]));
            assert!(joined.contains("[redacted:DEPLOY_TOKEN]"), "{before}: {joined}");
            assert!(cut > 0);
        }
    }

    static REDACTOR: std::sync::LazyLock<Redactor> = std::sync::LazyLock::new(redactor);

    proptest::proptest! {
        #[test]
        fn a_known_value_never_survives(before in "[\\PC:/@ .-]{0,40}", after in "[\\PC:/@ .-]{0,40}") {
            let text = format!("{before}hunter2-hunter2{after}");
            let redacted = REDACTOR.redact(&text).into_owned();
            proptest::prop_assert!(!redacted.contains("hunter2-hunter2"), "{}", redacted);
        }

        #[test]
        fn any_text_is_taken(text in "(\\PC|\n|-----BEGIN PRIVATE KEY-----|Bearer |sk-|://a:){0,20}") {
            let _ = REDACTOR.redact(&text);
            let cut = REDACTOR.safe_cut(&text);
            proptest::prop_assert!(text.is_char_boundary(cut) && (cut > 0 || text.is_empty()));
        }
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert!(!format!("{:?}", redactor()).contains("hunter2"));
    }
}
