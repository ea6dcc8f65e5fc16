//! Maps a result to the outcome of its turn. Every value observed or found in the client has its own row. Unknown values are kept in the
//! reason, and only `is_error` decides.

use jiff::Timestamp;

use super::reset::{from_number, reset_in};
use super::wire_in::ResultLine;
use crate::agent::TurnOutcome;

/// The facts known besides the result.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The `error` of the last message that the client wrote instead of the model.
    pub api_error: Option<&'a str>,
    /// The client reported in this turn that the allowance is used up.
    pub rejected: bool,
    /// When the allowance resets, in seconds since 1970, if reported.
    pub resets_at: Option<u64>,
    /// We asked the client to end the turn.
    pub interrupting: bool,
    pub now: Timestamp,
}

/// How a turn ended, and whether its session can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub outcome: TurnOutcome,
    /// The session is the problem: the next turn needs a fresh one.
    pub spent: bool,
}

/// Maps one result.
pub fn map(result: &ResultLine<'_>, facts: &Facts<'_>) -> Ended {
    let ended = |outcome| Ended { outcome, spent: false };
    let reason = || reason(result);
    if result.stop_reason.as_deref() == Some("refusal") && result.is_error {
        return ended(TurnOutcome::Refused { reason: reason() });
    }
    match (result.subtype.as_deref().unwrap_or_default(), result.terminal_reason.as_deref().unwrap_or_default()) {
        ("error_max_turns", _) | (_, "max_turns") => ended(TurnOutcome::MaxTurns { reason: reason() }),
        ("error_max_budget_usd", _) | (_, "budget_exhausted") => ended(TurnOutcome::Budget { reason: reason() }),
        _ if facts.interrupting => ended(TurnOutcome::Interrupted),
        // We did not ask for it, so it must count: otherwise a story interrupted again and again would never end.
        (_, "aborted_tools" | "aborted_streaming") => ended(TurnOutcome::Crashed { reason: reason() }),
        // Our hooks or messages can end a turn without an error; an empty answer is one such case.
        _ if !result.is_error => ended(TurnOutcome::Ended),
        (_, "prompt_too_long" | "image_error" | "blocking_limit" | "rapid_refill_breaker" | "malformed_tool_use_exhausted") => {
            Ended { outcome: api_error(result, false), spent: true }
        }
        (_, "model_error") => ended(api_error(result, true)),
        (_, "turn_setup_failed" | "structured_output_retry_exhausted" | "tool_deferred_unavailable") => {
            ended(api_error(result, false))
        }
        (_, "api_error") => ended(of_api(result, facts)),
        // The client reports a session that cannot be resumed this way.
        ("error_during_execution", _) => Ended { outcome: TurnOutcome::Crashed { reason: reason() }, spent: true },
        (_, "") if result.api_error_status.is_some() || facts.api_error.is_some() => ended(of_api(result, facts)),
        _ => ended(TurnOutcome::Crashed { reason: reason() }),
    }
}

/// The outcome of an API error, by its status and the client's error code.
fn of_api(result: &ResultLine<'_>, facts: &Facts<'_>) -> TurnOutcome {
    let said = result.result.as_deref().unwrap_or_default();
    let lower = said.to_ascii_lowercase();
    let error = facts.api_error.unwrap_or_default();
    let resets = facts.resets_at.filter(|_| facts.rejected).and_then(|number| from_number(number, facts.now));
    let limit = || TurnOutcome::UsageLimit { reason: reason(result), resets_at: resets.or_else(|| reset_in(said, facts.now)) };
    let in_words = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let about_limits = matches!(result.api_error_status, Some(429) | None) || error == "rate_limit";
    if about_limits && (facts.rejected || in_words(&["hit your", "usage limit", "limit reached"]) && lower.contains("limit")) {
        return limit();
    }
    // The status of this answer is 400, as that of a malformed request.
    if error == "billing_error" || in_words(&["credit balance is too low"]) {
        return billing(result);
    }
    match error {
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "account_on_hold"
        | "verification_required"
        | "cloud_credential_error" => return auth(result),
        "model_not_found" => return unknown_model(result),
        _ => {}
    }
    match result.api_error_status {
        Some(401 | 403) => auth(result),
        Some(402) => billing(result),
        Some(404) => unknown_model(result),
        Some(408 | 409 | 429) => api_error(result, true),
        Some(status) => api_error(result, status >= 500),
        None if in_words(&["not logged in", "please run /login", "invalid api key"]) => auth(result),
        // No response at all: the network, a timeout, a broken stream.
        None => api_error(result, !matches!(error, "invalid_request" | "max_output_tokens")),
    }
}

fn auth(result: &ResultLine<'_>) -> TurnOutcome {
    TurnOutcome::Auth { reason: format!("{}; start claude and type /login, or set ANTHROPIC_API_KEY", reason(result)) }
}

fn billing(result: &ResultLine<'_>) -> TurnOutcome {
    let advice =
        "add credit to the account, or use another one: start claude and type /login (ANTHROPIC_API_KEY takes precedence)";
    TurnOutcome::Billing { reason: format!("{}; {advice}", reason(result)) }
}

/// Another path of the API does not exist either, for example behind a wrong address.
fn unknown_model(result: &ResultLine<'_>) -> TurnOutcome {
    let advice =
        "set agent.claude.model in .verdone/config.toml to a model of your account, and check ANTHROPIC_BASE_URL if you use it";
    TurnOutcome::UnknownModel { reason: format!("{}; {advice}", reason(result)) }
}

fn api_error(result: &ResultLine<'_>, retryable: bool) -> TurnOutcome {
    let status = result.api_error_status.and_then(|status| u16::try_from(status).ok());
    TurnOutcome::ApiError { reason: reason(result), status, retryable }
}

/// The client's message, with its reason code if the message alone is not clear.
fn reason(result: &ResultLine<'_>) -> String {
    const LONGEST: usize = 500;
    let words = result.text();
    let named = result.terminal_reason.as_deref().or(result.subtype.as_deref()).filter(|name| *name != "api_error");
    let text = match (words, named) {
        (Some(words), Some(name)) if !words.contains(name) => format!("{words} ({name})"),
        (Some(words), _) => words,
        (None, Some(name)) => name.to_owned(),
        (None, None) => "the client gave no reason".to_owned(),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests;
