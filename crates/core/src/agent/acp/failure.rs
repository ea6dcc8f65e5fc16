//! What a failed turn means: clients only give a text, sometimes with a number in it.

use super::wire::RpcError;
use crate::agent::TurnOutcome;

/// Of ACP: the client needs a login first.
const AUTH_REQUIRED: i64 = -32000;

const NO_LOGIN: &[&str] =
    &["authentication", "unauthenticated", "unauthorized", "api key", "api_key", "bad key", "log in", "login", "not signed in"];
const USED_UP: &[&str] = &["quota exceeded", "usage limit", "usage_limit", "exceeded your current quota", "resource_exhausted"];
const PASSING: &[&str] = &[
    "overloaded",
    "high demand",
    "timeout",
    "timed out",
    "econn",
    "enotfound",
    "eai_again",
    "fetch failed",
    "network",
    "connection",
    "socket",
    "temporarily",
    "rate limit",
    "too many requests",
    "unavailable",
];

impl RpcError {
    pub(super) fn outcome(&self) -> TurnOutcome {
        classify(self.code, &self.message)
    }
}

/// The outcome of a turn that the model's API failed. `code` is that of a JSON-RPC error, which some clients set to the HTTP status.
pub(super) fn classify(code: Option<i64>, text: &str) -> TurnOutcome {
    let reason = text.trim().to_owned();
    let status = code.and_then(|code| u16::try_from(code).ok()).filter(|code| is_failure(*code)).or_else(|| status_in(text));
    let lower = text.to_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| lower.contains(needle));
    match status {
        _ if code == Some(AUTH_REQUIRED) => TurnOutcome::Auth { reason },
        Some(401 | 403) => TurnOutcome::Auth { reason },
        Some(402) => TurnOutcome::UsageLimit { reason, resets_at: None },
        Some(429) if has(USED_UP) => TurnOutcome::UsageLimit { reason, resets_at: None },
        Some(408 | 409 | 429 | 500..=599) => TurnOutcome::ApiError { reason, status, retryable: true },
        Some(_) => TurnOutcome::ApiError { reason, status, retryable: false },
        None if has(NO_LOGIN) => TurnOutcome::Auth { reason },
        None if has(USED_UP) => TurnOutcome::UsageLimit { reason, resets_at: None },
        None => TurnOutcome::ApiError { reason, status, retryable: has(PASSING) },
    }
}

fn is_failure(status: u16) -> bool {
    (400..600).contains(&status)
}

/// The last number in the text that can be a status of HTTP.
fn status_in(text: &str) -> Option<u16> {
    let numbers = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() == 3);
    numbers.filter_map(|word| word.parse().ok()).rfind(|status| is_failure(*status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: Option<i64>, text: &str) -> String {
        match classify(code, text) {
            TurnOutcome::Auth { .. } => "login".to_owned(),
            TurnOutcome::UsageLimit { .. } => "limit".to_owned(),
            TurnOutcome::ApiError { status, retryable, .. } => format!("{} {retryable}", status.unwrap_or(0)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failures_are_told_apart_by_what_clients_really_say() {
        for (code, text, expected) in [
            // Gemini.
            (Some(401), r#"{"error":{"message":"bad key","status":"UNAUTHENTICATED"}}"#, "login"),
            // Copilot.
            (
                None,
                "Error: Authentication failed with provider at http://127.0.0.1:4141/v1 (HTTP 401).\n  Check your key.",
                "login",
            ),
            (
                None,
                "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 14.73 seconds) Last error: 500 boom",
                "500 true",
            ),
            // opencode.
            (Some(-32603), "Internal error: bad key", "login"),
            // Qwen.
            (Some(-32603), "Internal error: 401 bad key", "login"),
            // codex-acp.
            (Some(-32000), "Authentication required", "login"),
            (None, "exceeded retry limit, last status: 429 Too Many Requests", "429 true"),
            (None, "We're currently experiencing high demand, which may cause temporary errors.", "0 true"),
            (None, "429 Quota exceeded for quota metric", "limit"),
            (None, "404 model not found", "404 false"),
            (Some(-32603), "Internal error", "0 false"),
        ] {
            assert_eq!(kind(code, text), expected, "{text}");
        }
    }
}
