//! Checks that the guard is alive: it must have judged every executed call, and the start of the session must have reached us. There are
//! too many ways to disable hooks to list them; this detects all of them.

use std::collections::BTreeSet;

/// Whether the start of the session reached our hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonce {
    Seen,
    Missing,
    /// Not checked: no process was started, or it is too early.
    NotExpected,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    Dead { why: String },
}

/// The judged and the executed calls of a session, matched by id. Matched calls are removed.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    judged: BTreeSet<String>,
    executed: BTreeSet<String>,
    /// A call without an id was executed, which cannot be matched.
    nameless: bool,
}

impl Guard {
    /// Records that our guard answered for this call, whatever the answer.
    pub fn judge(&mut self, id: &str) {
        if !self.executed.remove(id) {
            self.judged.insert(id.to_owned());
        }
    }

    /// Records that the client executed this call.
    pub fn client_executed(&mut self, id: &str) {
        if id.is_empty() {
            self.nameless = true;
        } else if !self.judged.remove(id) {
            self.executed.insert(id.to_owned());
        }
    }

    /// Records that the client itself refused this call, so it needs no judgement.
    pub fn client_refused(&mut self, id: &str) {
        self.judged.remove(id);
        self.executed.remove(id);
    }

    /// The current state. Call it after a turn: during one, a result may be read before the answer to its call is recorded.
    pub fn liveness(&self, nonce: Nonce) -> Liveness {
        let dead = |why: String| Liveness::Dead { why };
        match (self.executed.first(), nonce) {
            (Some(first), _) => {
                let others = match self.executed.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                dead(format!("the tool call {first}{others} ran without a policy check; are hooks disabled?"))
            }
            (None, _) if self.nameless => dead("a tool call without an id ran".to_owned()),
            (None, Nonce::Missing) => {
                dead("Verdone's hook was not called when the session started; are hooks disabled?".to_owned())
            }
            (None, Nonce::Seen | Nonce::NotExpected) => Liveness::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judged_calls_are_fine_in_any_order_of_notice() {
        let mut guard = Guard::default();
        guard.judge("a");
        guard.client_executed("a");
        guard.client_executed("b");
        guard.judge("b");
        guard.judge("denied");
        assert_eq!(guard.liveness(Nonce::Seen), Liveness::Alive);
    }

    #[test]
    fn an_executed_call_that_nobody_judged_is_the_death_of_the_guard() {
        let mut guard = Guard::default();
        guard.judge("a");
        guard.client_executed("x");
        guard.client_executed("y");
        let Liveness::Dead { why } = guard.liveness(Nonce::Seen) else { panic!("alive") };
        assert!(why.contains("x and 1 more"), "{why}");
    }

    #[test]
    fn calls_that_the_client_refused_need_no_judge() {
        let mut guard = Guard::default();
        guard.client_refused("unknown-tool");
        guard.client_executed("late");
        guard.client_refused("late");
        assert_eq!(guard.liveness(Nonce::Seen), Liveness::Alive);
    }

    #[test]
    fn a_session_without_the_nonce_is_unguarded() {
        assert!(matches!(Guard::default().liveness(Nonce::Missing), Liveness::Dead { .. }));
        assert_eq!(Guard::default().liveness(Nonce::NotExpected), Liveness::Alive);
        let mut guard = Guard::default();
        guard.client_executed("");
        assert!(matches!(guard.liveness(Nonce::Seen), Liveness::Dead { .. }));
    }

    #[test]
    fn a_long_session_is_forgotten_as_it_goes() {
        let mut guard = Guard::default();
        for n in 0..10_000 {
            guard.judge(&n.to_string());
            guard.client_executed(&n.to_string());
        }
        assert!(guard.judged.is_empty() && guard.executed.is_empty());
    }
}
