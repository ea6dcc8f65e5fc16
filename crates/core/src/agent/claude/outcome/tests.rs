use super::*;

#[derive(Debug, PartialEq)]
enum Kind {
    Ended,
    Api { retryable: bool },
    Spent,
    Limit,
    Auth,
    Billing,
    Model,
    MaxTurns,
    Budget,
    Refused,
    Interrupted,
    Crashed,
    Lost,
}

fn kind(ended: &Ended) -> Kind {
    match (&ended.outcome, ended.spent) {
        (TurnOutcome::Ended, _) => Kind::Ended,
        (TurnOutcome::ApiError { retryable: false, .. }, true) => Kind::Spent,
        (TurnOutcome::ApiError { retryable, .. }, _) => Kind::Api { retryable: *retryable },
        (TurnOutcome::UsageLimit { .. }, _) => Kind::Limit,
        (TurnOutcome::Auth { .. }, _) => Kind::Auth,
        (TurnOutcome::Billing { .. }, _) => Kind::Billing,
        (TurnOutcome::UnknownModel { .. }, _) => Kind::Model,
        (TurnOutcome::MaxTurns { .. }, _) => Kind::MaxTurns,
        (TurnOutcome::Budget { .. }, _) => Kind::Budget,
        (TurnOutcome::Refused { .. }, _) => Kind::Refused,
        (TurnOutcome::Interrupted, _) => Kind::Interrupted,
        (TurnOutcome::Crashed { .. }, true) => Kind::Lost,
        (TurnOutcome::Crashed { .. }, false) => Kind::Crashed,
        (
            TurnOutcome::TimedOut { .. }
            | TurnOutcome::Idle { .. }
            | TurnOutcome::Looping { .. }
            | TurnOutcome::NotRunnable { .. }
            | TurnOutcome::GuardDead { .. },
            _,
        ) => panic!("no result says this: {ended:?}"),
    }
}

fn now() -> Timestamp {
    "2026-11-15T00:35:41Z".parse().unwrap()
}

fn facts(api_error: Option<&str>) -> Facts<'_> {
    Facts { api_error, rejected: false, resets_at: None, interrupting: false, now: now() }
}

/// A result with the given columns of the table.
fn result(subtype: &'static str, is_error: bool, terminal_reason: &'static str, said: &'static str) -> ResultLine<'static> {
    ResultLine {
        subtype: Some(subtype.into()),
        is_error,
        terminal_reason: (!terminal_reason.is_empty()).then(|| terminal_reason.into()),
        result: Some(said.into()),
        ..ResultLine::default()
    }
}

#[test]
fn every_terminal_reason_has_its_outcome() {
    const OK: &str = "success";
    const DURING: &str = "error_during_execution";
    let cases = [
        (OK, false, "completed", Kind::Ended),
        (OK, false, "", Kind::Ended),
        // A hook answered `continue: false`, a priority message arrived, a tool was deferred, or a turn moved to the background.
        (OK, false, "stop_hook_prevented", Kind::Ended),
        (OK, false, "hook_stopped", Kind::Ended),
        (OK, false, "tool_deferred", Kind::Ended),
        (OK, false, "background_requested", Kind::Ended),
        // We did not ask for it, so it counts.
        (OK, false, "aborted_tools", Kind::Crashed),
        (DURING, true, "aborted_tools", Kind::Crashed),
        (DURING, true, "aborted_streaming", Kind::Crashed),
        ("error_max_turns", true, "max_turns", Kind::MaxTurns),
        ("error_max_turns", true, "", Kind::MaxTurns),
        ("error_max_budget_usd", true, "budget_exhausted", Kind::Budget),
        ("error_max_budget_usd", true, "", Kind::Budget),
        (OK, true, "prompt_too_long", Kind::Spent),
        (OK, true, "image_error", Kind::Spent),
        (OK, true, "blocking_limit", Kind::Spent),
        (OK, true, "rapid_refill_breaker", Kind::Spent),
        (OK, true, "malformed_tool_use_exhausted", Kind::Spent),
        (OK, true, "model_error", Kind::Api { retryable: true }),
        (OK, true, "api_error", Kind::Api { retryable: true }),
        (OK, true, "turn_setup_failed", Kind::Api { retryable: false }),
        (OK, true, "structured_output_retry_exhausted", Kind::Api { retryable: false }),
        (OK, true, "tool_deferred_unavailable", Kind::Api { retryable: false }),
        // A session id that cannot be resumed.
        (DURING, true, "", Kind::Lost),
        // From a client newer than this table.
        (OK, false, "brand_new", Kind::Ended),
        (OK, true, "brand_new", Kind::Crashed),
        ("error_brand_new", true, "", Kind::Crashed),
        ("", true, "", Kind::Crashed),
    ];
    for (subtype, is_error, terminal_reason, expected) in cases {
        let ended = map(&result(subtype, is_error, terminal_reason, ""), &facts(None));
        assert_eq!(kind(&ended), expected, "{subtype} {is_error} {terminal_reason}");
    }
}

#[test]
fn an_unknown_reason_is_kept_in_words() {
    let ended = map(&result("success", true, "brand_new", "It broke."), &facts(None));
    assert_eq!(ended.outcome, TurnOutcome::Crashed { reason: "It broke. (brand_new)".to_owned() });
}

#[test]
fn every_error_of_the_api_has_its_outcome() {
    let retry = || Kind::Api { retryable: true };
    let never = || Kind::Api { retryable: false };
    let cases = [
        (Some(400), Some("invalid_request"), "API Error: 400", never()),
        (Some(401), Some("authentication_failed"), "Invalid API key", Kind::Auth),
        (Some(403), None, "Forbidden", Kind::Auth),
        (Some(400), Some("billing_error"), "Credit balance is too low", Kind::Billing),
        (Some(400), Some("invalid_request"), "Your credit balance is too low to access the API", Kind::Billing),
        (Some(402), None, "Payment required", Kind::Billing),
        (Some(404), Some("model_not_found"), "API Error: 404", Kind::Model),
        (Some(404), None, "There's an issue with the selected model", Kind::Model),
        (Some(408), None, "timeout", retry()),
        (Some(413), None, "too large", never()),
        (Some(429), Some("rate_limit"), "API Error: Request rejected (429) · slow down", retry()),
        (Some(429), Some("rate_limit"), "You've hit your 5-hour limit · resets 1:35am (UTC)", Kind::Limit),
        (Some(429), None, "Claude AI usage limit reached|1794706541", Kind::Limit),
        (Some(500), Some("server_error"), "API Error: 500", retry()),
        (Some(529), Some("overloaded"), "API Error: 529 Overloaded", retry()),
        (None, Some("server_error"), "API Error: Connection refused", retry()),
        (None, Some("unknown"), "API Error: Request timed out", retry()),
        (None, None, "Not logged in · Please run /login", Kind::Auth),
        (None, Some("authentication_failed"), "", Kind::Auth),
        (None, Some("oauth_org_not_allowed"), "", Kind::Auth),
        (None, Some("account_on_hold"), "", Kind::Auth),
        (None, Some("verification_required"), "", Kind::Auth),
        (None, Some("billing_error"), "Credit balance is too low", Kind::Billing),
        (None, None, "Credit balance is too low", Kind::Billing),
        (None, Some("cloud_credential_error"), "", Kind::Auth),
        (None, Some("invalid_request"), "", never()),
        (None, Some("model_not_found"), "", Kind::Model),
        (None, Some("max_output_tokens"), "", never()),
        (None, Some("brand_new"), "", retry()),
    ];
    for (status, error, said, expected) in cases {
        let line = ResultLine { api_error_status: status, ..result("success", true, "api_error", said) };
        assert_eq!(kind(&map(&line, &facts(error))), expected, "{status:?} {error:?} {said}");
        // Older clients give no reason.
        if status.is_some() || error.is_some() {
            let bare = ResultLine { terminal_reason: None, ..line };
            assert_eq!(kind(&map(&bare, &facts(error))), expected, "{status:?} {error:?} {said}");
        }
    }
}

#[test]
fn the_reset_time_comes_from_the_event_and_else_from_the_words() {
    let line = ResultLine {
        api_error_status: Some(429),
        ..result("success", true, "api_error", "You've hit your 5-hour limit · resets 1:35am (UTC)")
    };
    let until =
        |rejected: bool, resets_at: Option<u64>| match map(&line, &Facts { rejected, resets_at, ..facts(Some("rate_limit")) })
            .outcome
        {
            TurnOutcome::UsageLimit { resets_at, .. } => resets_at.map(|at| at.to_string()),
            other => panic!("{other:?}"),
        };
    assert_eq!(until(true, Some(1_794_706_541)).as_deref(), Some("2026-11-15T01:35:41Z"));
    assert_eq!(until(true, None).as_deref(), Some("2026-11-15T01:35:00Z"));
    assert_eq!(until(false, None).as_deref(), Some("2026-11-15T01:35:00Z"));
    let wordless = ResultLine { result: Some("rejected".into()), ..line.clone() };
    let ended = map(&wordless, &Facts { rejected: true, resets_at: Some(1_794_706_541), ..facts(None) });
    assert_eq!(kind(&ended), Kind::Limit);
    let overloaded = ResultLine { api_error_status: Some(529), ..wordless };
    let ended = map(&overloaded, &Facts { rejected: true, resets_at: Some(1_794_706_541), ..facts(None) });
    assert_eq!(kind(&ended), Kind::Api { retryable: true }, "another error in the same turn");
}

#[test]
fn a_setup_that_cannot_work_comes_with_what_to_do() {
    let outcome = |error: &'static str| map(&result("success", true, "api_error", "No."), &facts(Some(error))).outcome.describe();
    for (error, words) in [
        ("billing_error", ["has no credit: No.; add credit", "/login"]),
        ("model_not_found", ["cannot use its model: No.;", "agent.claude.model"]),
        ("authentication_failed", ["could not log in: No.;", "/login"]),
    ] {
        let described = outcome(error);
        assert!(words.iter().all(|words| described.contains(words)), "{described}");
    }
}

#[test]
fn a_refusal_of_the_model_is_told_apart() {
    let line = ResultLine { stop_reason: Some("refusal".into()), ..result("success", true, "api_error", "I cannot") };
    assert_eq!(kind(&map(&line, &facts(None))), Kind::Refused);
}

#[test]
fn a_turn_that_we_ended_was_interrupted_whatever_the_client_calls_it() {
    let asked = Facts { interrupting: true, ..facts(None) };
    for line in [
        result("success", false, "stop_hook_prevented", ""),
        result("success", false, "completed", "x"),
        result("error_during_execution", true, "aborted_tools", ""),
    ] {
        assert_eq!(kind(&map(&line, &asked)), Kind::Interrupted);
    }
    let budget = result("error_max_budget_usd", true, "budget_exhausted", "");
    assert_eq!(kind(&map(&budget, &asked)), Kind::Budget, "money that is gone is gone");
}
