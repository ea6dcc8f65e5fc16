//! Decides whether the next turn continues the same session, based on the measured context, never on a guess.

use super::settings::{ClaudeAgent, SessionMode};
use super::wire_in::ContextAnswer;

/// How full a context is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextUse {
    pub tokens: u64,
    /// The model's context window, if known.
    pub window: Option<u64>,
}

impl ContextUse {
    /// From the client's answer; `None` if it has no number.
    pub fn answered(answer: &ContextAnswer<'_>) -> Option<Self> {
        let window = answer.raw_max_tokens.or(answer.max_tokens).filter(|window| *window > 0);
        Some(Self { tokens: answer.total_tokens?, window })
    }
}

/// When a context counts as full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// In tokens; 0 for no cap.
    pub tokens: u64,
    /// In percent of the window.
    pub share: u32,
}

/// The smallest window of the client's models, for a client that does not name its window.
const SMALLEST_WINDOW: u64 = 200_000;

impl ContextLimits {
    pub fn from_config(config: &ClaudeAgent) -> Self {
        Self { tokens: config.context_limit, share: config.context_share }
    }

    /// The smaller of the two limits; `None` if neither is known.
    pub fn most(&self, window: Option<u64>) -> Option<u64> {
        let by_share = window.map(|window| (u128::from(window) * u128::from(self.share) / 100) as u64);
        let by_count = (self.tokens > 0).then_some(self.tokens);
        match (by_share, by_count) {
            (Some(share), Some(count)) => Some(share.min(count)),
            (one, None) | (None, one) => one,
        }
    }
}

/// The facts known before a turn starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// The session's context so far; `None` if it was not measured.
    pub context: Option<ContextUse>,
    /// There is no session to continue.
    pub no_session: bool,
    /// There was a session earlier.
    pub lost: bool,
    /// The last attempt was not committed, so the session relies on edits that are gone.
    pub rejected: bool,
    /// The session itself is the problem: its context no longer fits, or it cannot be resumed.
    pub spent: bool,
    /// The next turn is for another model or effort level than the session's.
    pub other_model: bool,
    /// This is the first turn of an attempt.
    pub new_attempt: bool,
}

/// The session of the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextSession {
    Same,
    /// A fresh session, for the given reason.
    Fresh {
        why: String,
    },
}

/// Decides which session the next turn uses.
pub fn next_session(mode: SessionMode, limits: ContextLimits, standing: &Standing) -> NextSession {
    let fresh = |why: &str| NextSession::Fresh { why: why.to_owned() };
    if standing.rejected {
        return fresh("the last attempt was not committed");
    }
    if standing.no_session {
        return fresh(if standing.lost { "the last session is gone" } else { "there is no session yet" });
    }
    if standing.spent {
        return fresh("the last session cannot be continued");
    }
    if standing.other_model {
        return fresh("another model continues");
    }
    match mode {
        SessionMode::Single => NextSession::Same,
        SessionMode::Fresh if standing.new_attempt => fresh("every attempt has its own session"),
        SessionMode::Fresh | SessionMode::Hybrid => {
            let Some(context) = standing.context else { return fresh("the size of the context is unknown") };
            match limits.most(context.window.or(Some(SMALLEST_WINDOW))) {
                Some(most) if context.tokens >= most => {
                    NextSession::Fresh { why: format!("the context has {} tokens, and the limit is {most}", context.tokens) }
                }
                Some(_) | None => NextSession::Same,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ContextLimits = ContextLimits { tokens: 160_000, share: 80 };

    fn standing(tokens: u64, window: Option<u64>) -> Standing {
        Standing { context: Some(ContextUse { tokens, window }), ..Standing::default() }
    }

    fn same(mode: SessionMode, standing: &Standing) -> bool {
        next_session(mode, LIMITS, standing) == NextSession::Same
    }

    #[test]
    fn the_smaller_limit_counts() {
        for (tokens, window, goes_on) in [
            (159_999, Some(1_000_000), true),
            (160_000, Some(1_000_000), false),
            (159_999, Some(200_000), true),
            (160_000, Some(200_000), false),
            (79_999, Some(100_000), true),
            (80_000, Some(100_000), false),
            (159_999, None, true),
            (160_000, None, false),
            (0, Some(0), false),
            (u64::MAX, Some(u64::MAX), false),
        ] {
            assert_eq!(same(SessionMode::Hybrid, &standing(tokens, window)), goes_on, "{tokens} of {window:?}");
        }
        let unlimited = ContextLimits { tokens: 0, share: 80 };
        assert_eq!(next_session(SessionMode::Hybrid, unlimited, &standing(700_000, Some(1_000_000))), NextSession::Same);
        assert_ne!(next_session(SessionMode::Hybrid, unlimited, &standing(700_000, None)), NextSession::Same);
    }

    #[test]
    fn by_default_half_of_any_window_is_used_and_the_cap_can_be_raised() {
        let goes_on = |config: &ClaudeAgent, tokens, window| {
            next_session(SessionMode::Hybrid, ContextLimits::from_config(config), &standing(tokens, window)) == NextSession::Same
        };
        let usual = ClaudeAgent::default();
        let raised = ClaudeAgent { context_limit: 900_000, ..ClaudeAgent::default() };
        for (config, window, most) in [
            (&usual, Some(200_000), 100_000),
            (&usual, Some(1_000_000), 500_000),
            (&usual, Some(2_000_000), 500_000),
            (&usual, None, 100_000),
            (&raised, Some(2_000_000), 900_000),
        ] {
            assert!(goes_on(config, most - 1, window) && !goes_on(config, most, window), "{most} of {window:?}");
        }
    }

    #[test]
    fn a_rejected_attempt_starts_a_fresh_session_in_every_mode() {
        for mode in [SessionMode::Hybrid, SessionMode::Fresh, SessionMode::Single] {
            for trouble in [
                Standing { rejected: true, ..standing(1, None) },
                Standing { spent: true, ..standing(1, None) },
                Standing { other_model: true, ..standing(1, None) },
                Standing { no_session: true, ..standing(1, None) },
            ] {
                assert!(!same(mode, &trouble), "{mode:?} {trouble:?}");
            }
            assert!(same(mode, &standing(1, None)), "{mode:?}");
        }
    }

    #[test]
    fn a_session_that_is_gone_is_told_from_one_that_never_was() {
        let none = Standing { no_session: true, ..Standing::default() };
        for (standing, told) in [
            (none, "there is no session yet"),
            (Standing { lost: true, ..none }, "the last session is gone"),
            (Standing { lost: true, rejected: true, ..none }, "the last attempt was not committed"),
        ] {
            let fresh = NextSession::Fresh { why: told.to_owned() };
            assert_eq!(next_session(SessionMode::Hybrid, LIMITS, &standing), fresh, "{standing:?}");
        }
    }

    #[test]
    fn modes_differ_where_they_should() {
        let full = standing(900_000, Some(1_000_000));
        assert_eq!(
            [same(SessionMode::Single, &full), same(SessionMode::Fresh, &full), same(SessionMode::Hybrid, &full)],
            [true, false, false]
        );
        let next_attempt = Standing { new_attempt: true, ..standing(1, None) };
        assert_eq!(
            [
                same(SessionMode::Single, &next_attempt),
                same(SessionMode::Fresh, &next_attempt),
                same(SessionMode::Hybrid, &next_attempt)
            ],
            [true, false, true]
        );
        let unmeasured = Standing::default();
        assert!(!same(SessionMode::Hybrid, &unmeasured), "a full context must not be taken for an empty one");
    }
}
