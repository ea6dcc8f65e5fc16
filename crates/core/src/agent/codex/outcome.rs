//! Maps Codex's typed errors to outcomes of a turn.

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::TurnOutcome;

/// How a turn ended, and whether its session can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) outcome: TurnOutcome,
    pub(super) spent: bool,
}

/// Errors without a status that a later request may not have.
const LOST_CONNECTION: [&str; 4] =
    ["httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts"];

/// The outcome of an error of the client. `resets_at` is when the fullest window of the allowance resets.
pub(super) fn failure(error: &Value, resets_at: Option<Timestamp>) -> Failure {
    let reason = reason(error);
    let info = &error["codexErrorInfo"];
    let (name, detail) = match info {
        Value::String(name) => (name.as_str(), &Value::Null),
        Value::Object(fields) => fields.iter().next().map_or(("", &Value::Null), |(name, detail)| (name.as_str(), detail)),
        _ => ("", &Value::Null),
    };
    let status = detail["httpStatusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    let api = |retryable| TurnOutcome::ApiError { reason: reason.clone(), status, retryable };
    let alive = |outcome| Failure { outcome, spent: false };
    match (name, status) {
        ("usageLimitExceeded" | "sessionBudgetExceeded", _) => alive(TurnOutcome::UsageLimit { reason, resets_at }),
        ("unauthorized", _) | (_, Some(401 | 403)) => {
            alive(TurnOutcome::Auth { reason: format!("{reason}; run `codex login`, or set the key of its model provider") })
        }
        ("contextWindowExceeded", _) => Failure { outcome: api(false), spent: true },
        ("cyberPolicy", _) => alive(TurnOutcome::Refused { reason }),
        ("modelNotFound" | "badRequest" | "sandboxError" | "threadRollbackFailed", _) => alive(api(false)),
        ("serverOverloaded" | "internalServerError", _) => alive(api(true)),
        (_, Some(status)) => alive(api(status >= 500 || matches!(status, 408 | 409 | 429))),
        (kind, None) if LOST_CONNECTION.contains(&kind) => alive(api(true)),
        // `other`: a request that the API refused, or something new.
        (_, None) => alive(api(false)),
    }
}

/// The client's message, in one line.
pub(super) fn reason(error: &Value) -> String {
    const LONGEST: usize = 500;
    let message = error["message"].as_str().unwrap_or_default();
    let details = error["additionalDetails"].as_str().unwrap_or_default();
    let text = if details.is_empty() || message.contains(details) { message.to_owned() } else { format!("{message}: {details}") };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if text.is_empty() { "the client gave no reason".to_owned() } else { text };
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(info: &Value) -> TurnOutcome {
        failure(&json!({ "message": "m", "codexErrorInfo": info }), None).outcome
    }

    #[test]
    fn errors_are_told_apart_by_type_and_status() {
        let retried = |info: &Value| matches!(outcome(info), TurnOutcome::ApiError { retryable: true, .. });
        for info in [
            json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } }),
            json!({ "httpConnectionFailed": { "httpStatusCode": 502 } }),
            json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
            json!("serverOverloaded"),
            json!("internalServerError"),
        ] {
            assert!(retried(&info), "{info}");
        }
        for info in [json!("modelNotFound"), json!("other"), json!(null), json!(7), json!({})] {
            assert!(!retried(&info), "{info}");
            assert!(matches!(outcome(&info), TurnOutcome::ApiError { .. }), "{info}");
        }
        assert!(matches!(outcome(&json!({ "httpConnectionFailed": { "httpStatusCode": 401 } })), TurnOutcome::Auth { .. }));
        assert!(matches!(outcome(&json!("usageLimitExceeded")), TurnOutcome::UsageLimit { .. }));
        assert!(failure(&json!({ "codexErrorInfo": "contextWindowExceeded" }), None).spent);
    }
}
