//! One turn: what the client reports while it works, and how its answer to the prompt is to be understood.

use serde_json::Value;

use super::Acp;
use crate::agent::TurnOutcome;
use crate::agent::acp::announced::{Announced, AskState};
use crate::agent::acp::call::{Client, describe, normalise, unasked};
use crate::agent::acp::failure::classify;
use crate::agent::acp::wire::RpcError;
use crate::agent::acp::{FailureSign, OnDenial};
use crate::agent::protocol::{CallFailure, FinishedCall, Step, TurnEnd};

/// The turn under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// The agent's latest message.
    message: String,
    /// How much of it was shown.
    shown: usize,
    /// A tool call came after the message, so the next text begins another one.
    message_over: bool,
    denied: bool,
    /// Anything followed the last denial.
    went_on: bool,
    /// The agent said or did anything.
    active: bool,
    pub(super) interrupted: bool,
}

impl Turn {
    pub(super) fn denied(&mut self) {
        (self.denied, self.went_on) = (true, false);
    }

    pub(super) fn acts(&mut self) {
        (self.active, self.went_on) = (true, true);
    }

    fn says(&mut self, text: &str) {
        if std::mem::take(&mut self.message_over) {
            (self.message, self.shown) = (String::new(), 0);
        }
        self.message.push_str(text);
        self.acts();
    }

    /// The lines that are complete and were not shown yet; with `all`, also the beginning of a line.
    fn unshown(&mut self, all: bool) -> Option<String> {
        let rest = self.message.get(self.shown..).unwrap_or_default();
        let end = if all { rest.len() } else { rest.rfind('\n').map_or(0, |at| at + 1) };
        let text = rest[..end].trim_end().to_owned();
        self.shown += end;
        (!text.is_empty()).then_some(text)
    }
}

impl Acp {
    pub(super) fn notified(&mut self, method: &str, params: &Value) -> Vec<Step> {
        match method {
            // A loaded session repeats its history.
            "session/update" if !self.is_loading() => self.updated(&params["update"]),
            // Qwen's own word for it.
            "qwen/notify/session/mode-update" => self.mode_changed(params),
            _ => Vec::new(),
        }
    }

    fn updated(&mut self, update: &Value) -> Vec<Step> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.chunk(update),
            "tool_call" | "tool_call_update" => self.call_reported(update),
            "plan" => Self::planned(update),
            "usage_update" => self.usage_reported(update),
            "current_mode_update" => self.mode_changed(update),
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<Step> {
        self.meter.chunk(update, self.profile.tokens);
        let text = update["content"]["text"].as_str().unwrap_or_default();
        let Some(turn) = self.turn.as_mut().filter(|_| !text.is_empty()) else { return Vec::new() };
        turn.says(text);
        turn.unshown(false).map(Step::Said).into_iter().collect()
    }

    /// The rest of the message, when something else begins.
    pub(super) fn end_of_text(&mut self) -> Vec<Step> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        turn.message_over = true;
        turn.unshown(true).map(Step::Said).into_iter().collect()
    }

    fn usage_reported(&mut self, update: &Value) -> Vec<Step> {
        self.meter.updated(update);
        self.meter.context().map(Step::Context).into_iter().collect()
    }

    fn planned(update: &Value) -> Vec<Step> {
        let entries = update["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        let done = entries.iter().filter(|entry| entry["status"].as_str() == Some("completed")).count();
        vec![Step::Said(format!("plan: {done} of {} steps done", entries.len()))]
    }

    /// An agent that leaves the mode in which it asks is not guarded any more.
    fn mode_changed(&mut self, update: &Value) -> Vec<Step> {
        let now = update["currentModeId"].as_str();
        match (self.profile.mode, now) {
            (Some(mode), Some(now)) if mode != now && self.turn.is_some() => {
                let reason = format!("{} switched to the mode \"{now}\", in which it does not ask", self.profile.title);
                self.turn = None;
                let end = TurnEnd { usage: self.meter.usage(), ..TurnEnd::with_outcome(TurnOutcome::GuardDead { reason }) };
                vec![Step::TurnOver(Box::new(end))]
            }
            (Some(_) | None, _) => Vec::new(),
        }
    }

    fn call_reported(&mut self, update: &Value) -> Vec<Step> {
        let status = update["status"].as_str().unwrap_or_default();
        let mut steps = self.end_of_text();
        let call = self.calls.add(update);
        let id = call.id.clone();
        if let Some(turn) = self.turn.as_mut().filter(|_| call.verdict != Some(AskState::Denied)) {
            turn.acts();
        }
        if !matches!(status, "completed" | "failed") {
            return steps;
        }
        let Some(call) = self.calls.remove(&id) else { return steps };
        match call.verdict {
            // It did not run.
            Some(AskState::Denied | AskState::Waiting) => return steps,
            Some(AskState::Allowed) => {}
            None => {
                let calls = unasked(&call, self.client());
                if !calls.is_empty() {
                    steps.push(Step::Said(describe(&call, self.client())));
                }
                steps.extend(calls.into_iter().map(Step::Unasked));
            }
        }
        steps.extend(self.finished(call, update).map(Step::Finished));
        steps
    }

    fn client(&self) -> Client<'_> {
        Client { profile: self.profile, cwd: &self.cwd }
    }

    fn finished(&self, call: Announced, update: &Value) -> Option<FinishedCall> {
        let first = normalise(&call, self.client()).ok()?.into_iter().next()?;
        let raw = &update["rawOutput"];
        let words = raw["output"].as_str().or(raw["message"].as_str()).or(raw.as_str());
        let output = words.map_or(call.text, str::to_owned);
        let exit_code = raw["metadata"]["exit"].as_i64().or(raw["exitCode"].as_i64()).and_then(|code| i32::try_from(code).ok());
        let failed = update["status"].as_str() == Some("failed") || exit_code.is_some_and(|code| code != 0);
        let result = if failed { Err(CallFailure { exit_code, output, interrupted: false }) } else { Ok(output) };
        Some(FinishedCall { call: first, result, duration_ms: 0 })
    }

    pub(super) fn prompt_answered(&mut self, result: &Result<Value, RpcError>) -> Vec<Step> {
        let Some(mut turn) = self.turn.take() else { return Vec::new() };
        let mut steps: Vec<Step> = turn.unshown(true).map(Step::Said).into_iter().collect();
        let outcome = match result {
            _ if turn.interrupted => TurnOutcome::Interrupted,
            Ok(result) => self.outcome(&turn, result),
            Err(error) => error.outcome(),
        };
        let by_denial = outcome == TurnOutcome::Ended
            && turn.denied
            && match self.profile.on_denial {
                OnDenial::EndsTurn => true,
                OnDenial::Unknown => !turn.went_on,
                OnDenial::TurnGoesOn => false,
            };
        let spent = is_too_long(&outcome);
        let usage = self.meter.usage();
        steps.push(Step::TurnOver(Box::new(TurnEnd { outcome, usage, said: turn.message, spent, by_denial })));
        steps
    }

    fn outcome(&mut self, turn: &Turn, result: &Value) -> TurnOutcome {
        let counted = self.meter.answered(result, self.profile.tokens);
        let reason = || format!("{} stopped: {}", self.profile.title, result["stopReason"].as_str().unwrap_or("no reason given"));
        match result["stopReason"].as_str().unwrap_or_default() {
            "end_turn" if !counted && self.profile.failure == FailureSign::NoTokens => classify(None, &turn.message),
            "end_turn" if !counted && !turn.active => {
                let reason = "the client ended the turn without an answer".to_owned();
                TurnOutcome::ApiError { reason, status: None, retryable: true }
            }
            "end_turn" => TurnOutcome::Ended,
            "max_turn_requests" | "max_tokens" => TurnOutcome::MaxTurns { reason: reason() },
            "refusal" => TurnOutcome::Refused { reason: reason() },
            // Some clients cancel the turn after a denial.
            "cancelled" if turn.denied => TurnOutcome::Ended,
            _ => TurnOutcome::Crashed { reason: reason() },
        }
    }
}

/// Whether the conversation does not fit into the model's context any more.
fn is_too_long(outcome: &TurnOutcome) -> bool {
    let TurnOutcome::ApiError { reason, .. } = outcome else { return false };
    let reason = reason.to_lowercase();
    reason.contains("context") && ["length", "window", "too long", "exceed"].iter().any(|word| reason.contains(word))
}
