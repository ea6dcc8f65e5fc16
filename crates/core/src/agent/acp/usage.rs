//! Counts what turns use. Each client counts differently, so the profile says what its numbers mean.

use serde_json::Value;

use super::TokenCount;
use crate::agent::Usage;
use crate::agent::claude::ContextUse;

/// The counts of one session and its current turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    /// Of the session so far, as the client last said.
    session_tokens: u64,
    session_cost: Option<f64>,
    /// Of the session when the turn began.
    cost_before: f64,
    /// Of the current turn.
    turn_tokens: Option<u64>,
    context: Option<ContextUse>,
}

impl Meter {
    /// Forgets the last turn. A turn may have several prompts.
    pub(super) fn begin_turn(&mut self) {
        self.turn_tokens = None;
        self.cost_before = self.session_cost.unwrap_or(0.0);
    }

    /// Reads a `usage_update`.
    pub(super) fn updated(&mut self, update: &Value) {
        if let Some(tokens) = update["used"].as_u64() {
            self.context = Some(ContextUse { tokens, window: update["size"].as_u64().filter(|size| *size > 0) });
        }
        let cost = &update["cost"];
        if let (Some(amount), Some("USD")) = (cost["amount"].as_f64(), cost["currency"].as_str()) {
            self.session_cost = Some(amount);
        }
    }

    /// Reads a message chunk, which has counts in some clients.
    pub(super) fn chunk(&mut self, update: &Value, count: TokenCount) {
        if count == TokenCount::PerMessage {
            self.add(tokens(&update["_meta"]["usage"]));
        }
    }

    /// Reads the answer to a prompt. Returns whether it had token counts.
    pub(super) fn answered(&mut self, result: &Value, count: TokenCount) -> bool {
        let usage = tokens(&result["usage"]);
        match count {
            TokenCount::PerTurn => self.add(usage),
            TokenCount::Session => {
                self.add(usage.map(|total| total.saturating_sub(self.session_tokens)));
                self.session_tokens = usage.unwrap_or(self.session_tokens);
            }
            TokenCount::Quota => self.add(tokens(&result["_meta"]["quota"]["token_count"])),
            TokenCount::LastRequest | TokenCount::PerMessage | TokenCount::Unknown => {}
        }
        usage.is_some() || self.turn_tokens.is_some()
    }

    pub(super) fn usage(&self) -> Usage {
        let cost_usd = self.session_cost.map(|cost| (cost - self.cost_before).max(0.0));
        Usage { cost_usd, tokens: self.turn_tokens, by_kind: None }
    }

    pub(super) fn context(&self) -> Option<ContextUse> {
        self.context
    }

    fn add(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.turn_tokens = Some(self.turn_tokens.unwrap_or(0).saturating_add(tokens));
        }
    }
}

/// The sum of all tokens, under the names that clients use.
fn tokens(usage: &Value) -> Option<u64> {
    if let Some(total) = usage["totalTokens"].as_u64() {
        return Some(total);
    }
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64());
    let input = count(["inputTokens", "input_tokens"])?;
    Some(input.saturating_add(count(["outputTokens", "output_tokens"]).unwrap_or(0)))
}
