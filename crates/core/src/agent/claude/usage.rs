//! Computes usage from results. Their totals cover the whole process, restart at a clear, and include an earlier process's usage if the
//! session was resumed. Only differences can be added up.

use super::wire_in::{ModelUsage, ResultLine};
use crate::agent::TokenKinds;

/// Token counts by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
}

impl Tokens {
    pub fn all(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }

    fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
    }
}

/// A turn's usage, including subagents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TurnUsage {
    pub cost_usd: f64,
    pub tokens: Tokens,
}

impl TurnUsage {
    pub fn add(&mut self, other: &Self) {
        self.cost_usd += other.cost_usd;
        self.tokens.add(other.tokens);
    }

    /// The form stored in events.
    pub fn usage(&self) -> crate::agent::Usage {
        let Tokens { input, output, cache_read, cache_creation: cache_write } = self.tokens;
        crate::agent::Usage {
            cost_usd: Some(self.cost_usd),
            tokens: Some(self.tokens.all()),
            by_kind: Some(TokenKinds { input, output, cache_read, cache_write }),
        }
    }
}

/// Turns running totals into differences.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// The last total, if its starting point is known.
    total: Option<f64>,
}

impl Ledger {
    /// For a process that starts a session: totals start at zero.
    pub(super) fn fresh() -> Self {
        Self { total: Some(0.0) }
    }

    /// For a process that resumes a session. Whether its totals include those of the last process depends on how that one ended, so the
    /// starting point is unknown.
    pub(super) fn resumed() -> Self {
        Self { total: None }
    }

    /// Clearing the conversation resets the totals.
    pub(super) fn cleared(&mut self) {
        self.total = Some(0.0);
    }

    /// The usage that this result adds.
    pub(super) fn usage_since_last_result(&mut self, result: &ResultLine<'_>) -> TurnUsage {
        let since = result.model_usage_since_last_result.iter().map(|(_, usage)| usage);
        let told: f64 = since.clone().filter_map(|usage| usage.cost_usd).filter(|cost| cost.is_finite()).sum();
        let total = result.total_cost_usd.filter(|cost| cost.is_finite());
        let difference = match (self.total, total) {
            // A total that decreased was reset without our knowledge.
            (Some(before), Some(now)) if now + 1e-9 < before => Some(now),
            (Some(before), Some(now)) => Some(now - before),
            (Some(_) | None, _) => None,
        };
        self.total = total.or(self.total);
        let mut tokens = Tokens::default();
        since.for_each(|usage| tokens.add(of_model(usage)));
        if tokens == Tokens::default() {
            // An older client, or no usage.
            let usage = &result.usage;
            tokens = Tokens {
                input: usage.input_tokens.unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
                cache_read: usage.cache_read_input_tokens.unwrap_or(0),
                cache_creation: usage.cache_creation_input_tokens.unwrap_or(0),
            };
        }
        // Use the larger one: enforcing a cap too late costs money, too early only a question.
        TurnUsage { cost_usd: difference.unwrap_or(0.0).max(told).max(0.0), tokens }
    }
}

fn of_model(usage: &ModelUsage) -> Tokens {
    Tokens {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: usage.cache_read_input_tokens.unwrap_or(0),
        cache_creation: usage.cache_creation_input_tokens.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(total: f64, since: f64) -> ResultLine<'static> {
        let usage = ModelUsage { cost_usd: Some(since), input_tokens: Some(10), ..ModelUsage::default() };
        ResultLine {
            total_cost_usd: Some(total),
            model_usage_since_last_result: vec![("m".into(), usage)],
            ..ResultLine::default()
        }
    }

    #[test]
    fn totals_become_differences_over_resume_and_clear() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let mut ledger = Ledger::fresh();
        near(ledger.usage_since_last_result(&result(0.02, 0.02)).cost_usd, 0.02);
        near(ledger.usage_since_last_result(&result(0.05, 0.03)).cost_usd, 0.03);
        ledger.cleared();
        near(ledger.usage_since_last_result(&result(0.01, 0.01)).cost_usd, 0.01);
        let mut resumed = Ledger::resumed();
        near(resumed.usage_since_last_result(&result(7.02, 0.02)).cost_usd, 0.02);
        near(resumed.usage_since_last_result(&result(7.03, 0.01)).cost_usd, 0.01);
        near(resumed.usage_since_last_result(&result(0.5, 0.5)).cost_usd, 0.5);
    }

    #[test]
    fn a_client_without_differences_is_counted_by_its_totals() {
        let mut ledger = Ledger::fresh();
        let mut line = result(0.4, 0.0);
        line.model_usage_since_last_result.clear();
        line.usage.output_tokens = Some(7);
        let used = ledger.usage_since_last_result(&line);
        assert!((used.cost_usd - 0.4).abs() < 1e-9);
        assert_eq!(used.tokens.all(), 7);
    }

    #[test]
    fn an_event_has_the_kinds_apart_and_their_sum() {
        let tokens = Tokens { input: 1, output: 20, cache_read: 300, cache_creation: 4000 };
        let usage = TurnUsage { cost_usd: 0.5, tokens }.usage();
        assert_eq!(usage.tokens, Some(4321));
        assert_eq!(usage.by_kind, Some(TokenKinds { input: 1, output: 20, cache_read: 300, cache_write: 4000 }));
    }

    #[test]
    fn numbers_that_are_none_cost_nothing() {
        let mut ledger = Ledger::fresh();
        assert!(ledger.usage_since_last_result(&result(f64::NAN, f64::INFINITY)).cost_usd.abs() < 1e-9);
        assert!(ledger.usage_since_last_result(&result(-3.0, -1.0)).cost_usd.abs() < 1e-9);
    }
}
