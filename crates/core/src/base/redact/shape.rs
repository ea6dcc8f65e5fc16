//! Common token formats, for secrets that are not in the environment.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::Secret;

/// In practice no token is longer, except for private keys.
pub(super) const LONGEST: usize = 2048;

const HINTS: [&str; 25] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "sk-",
    "sk_live_",
    "rk_live_",
    "AKIA",
    "ASIA",
    "xox",
    "eyJ",
    "-----BEGIN ",
    "bearer",
    "Bearer",
    "BEARER",
    "uthorization",
    "npm_",
    "glpat-",
    "AIza",
    "hf_",
    "pypi-",
    "UTHORIZATION",
    "://",
];

static HINTS_AT_ONCE: LazyLock<AhoCorasick> = LazyLock::new(|| AhoCorasick::new(HINTS).expect("a short list of literals builds"));

/// Building the automaton costs more than everything else a hook does, so a short text is searched without it.
const SHORT: usize = 2_048;

pub(super) fn has_hint(text: &str) -> bool {
    if text.len() <= SHORT { HINTS.iter().any(|hint| text.contains(hint)) } else { HINTS_AT_ONCE.is_match(text) }
}

/// The named group that matches is the secret.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let token = [
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        r"github_pat_[A-Za-z0-9_]{22,}",
        r"sk-ant-[A-Za-z0-9_-]{20,}",
        r"sk-(?:[a-z]+-)*[A-Za-z0-9_]{20,}[A-Za-z0-9_-]*",
        r"[sr]k_live_[A-Za-z0-9]{20,}",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
        r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        r"npm_[A-Za-z0-9]{36}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"AIza[A-Za-z0-9_-]{35}",
        r"hf_[A-Za-z0-9]{30,}",
        r"pypi-[A-Za-z0-9_-]{50,}",
    ]
    .join("|");
    let header = r"(?i-u:bearer|authorization:[ \t]*(?:basic|token))[ \t]+(?<header>[A-Za-z0-9._~+/=-]{20,})";
    let url = r"://[^\s/:@]*:(?<url>[^\s/@]{3,})@";
    let key = r"(?<key>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*))";
    Regex::new(&format!(r"{key}|{header}|{url}|(?-u:\b)(?<token>{token})")).expect("a constant pattern compiles")
});

pub(super) fn find(text: &str) -> impl Iterator<Item = Secret<'static>> {
    let shapes = has_hint(text).then(|| SHAPES.captures_iter(text));
    shapes.into_iter().flatten().filter_map(|hit| {
        if let Some(key) = hit.name("key") {
            return Some(Secret { range: key.range(), label: "private-key" });
        }
        let secret = match hit.name("header") {
            // In prose about bearer authentication, the next word has no digits.
            Some(header) if !header.as_str().bytes().any(|b| b.is_ascii_digit()) => return None,
            Some(header) => header,
            None => hit.name("url").or_else(|| hit.name("token"))?,
        };
        Some(Secret { range: secret.range(), label: "token" })
    })
}

#[cfg(test)]
mod tests {
    use crate::base::redact::Redactor;

    #[test]
    fn token_shapes_are_replaced() {
        let a36 = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for (text, expected) in [
            (format!("token ghp_{a36}."), "token [redacted:token]."),
            (format!("https://ghs_{a36}@host/x"), "https://[redacted:token]@host/x"),
            ("github_pat_11ABCDEFG0abcdefghijklmnop_x".to_owned(), "[redacted:token]"),
            (format!("key=sk-ant-api03-{a36}-x_y"), "key=[redacted:token]"),
            (format!("key=sk-{a36}"), "key=[redacted:token]"),
            (format!("key=sk-proj-{a36}-{a36}"), "key=[redacted:token]"),
            ("id AKIAIOSFODNN7EXAMPLE end".to_owned(), "id [redacted:token] end"),
            ("xoxb-123456789012-abcdefghijkl".to_owned(), "[redacted:token]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl ok".to_owned(), "[redacted:token] ok"),
            (format!("//registry/:_authToken=npm_{a36}"), "//registry/:_authToken=[redacted:token]"),
            ("glpat-abcdefghij1234567890".to_owned(), "[redacted:token]"),
            ("Authorization: Bearer abc123abc123abc123abc123==".to_owned(), "Authorization: Bearer [redacted:token]"),
            ("authorization: basic dXNlcjpwYXNzd29yZDEyMw==".to_owned(), "authorization: basic [redacted:token]"),
            ("postgres://me:s3cret!@db/x".to_owned(), "postgres://me:[redacted:token]@db/x"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\nxyz=\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                "a\n[redacted:private-key]\nb",
            ),
            (r#"{"k":"-----BEGIN PRIVATE KEY-----\nMIIB\nxyz"}"#.to_owned(), r#"{"k":"[redacted:private-key]"}"#),
        ] {
            assert_eq!(Redactor::default().redact(&text), expected);
        }
    }

    #[test]
    fn a_token_is_found_in_short_and_in_long_text() {
        for filler in [0, 3_000] {
            let text = format!("{}AKIAIOSFODNN7EXAMPLE", "x ".repeat(filler));
            assert!(Redactor::default().redact(&text).ends_with("[redacted:token]"), "{filler}");
        }
    }

    #[test]
    fn ordinary_text_is_untouched() {
        for text in [
            "commit d0f8c6159f1b7d6c0e4a5b3c2d1e0f9a8b7c6d5e",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "123e4567-e89b-12d3-a456-426614174000",
            "risk-management-and-task-scheduling-for-everybody",
            "class=\"sk-spinner sk-three-bounce\"",
            "Bearer authentication-is-described-below in words",
            "the bearer of bad news",
            "https://example.org:8080/a@b and http://localhost:3000/x",
            "git@github.com:me/repo.git",
            "npm_config_registry npm_lifecycle_event",
            "AKIA is a prefix; eyJ too",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "tests::ghp_tokens_are_found ... ok",
            "überraschend – 日本語 🎉 xoxo",
        ] {
            assert_eq!(Redactor::default().redact(text), text);
        }
    }
}
