//! Which connections were refused, for the user: each once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::Asker;

/// A program that tries many hosts fills neither the memory nor the screen.
const MOST_HOSTS: usize = 50;

/// Notes about refused connections that were not returned yet.
#[derive(Debug, Default)]
pub(in crate::workspace) struct Refusals(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    known: BTreeSet<String>,
    fresh: Vec<String>,
}

impl Refusals {
    /// `host` is text that can be shown: a valid name or address, with its port.
    pub(super) fn record(&self, asker: Asker, host: &str) {
        let (subject, setting) = asker.describe();
        let note = format!("{subject} tried to reach {host}: not in [seal] {setting}");
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Notes { known, fresh } = &mut *notes;
        if known.len() > MOST_HOSTS || !known.insert(note.clone()) {
            return;
        }
        fresh.push(if known.len() > MOST_HOSTS { "more hosts were refused, which are not listed".to_owned() } else { note });
    }

    /// The notes since the last call.
    pub(in crate::workspace) fn drain(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).fresh)
    }
}

impl Asker {
    /// Who it is, and the setting that says what it can reach.
    pub(super) fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Agent => ("the agent", "agent_network"),
            Self::Check => ("a check", "check_network"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_noted_once_and_not_too_many() {
        let refusals = Refusals::default();
        for _ in 0..2 {
            refusals.record(Asker::Agent, "evil.example:443");
        }
        refusals.record(Asker::Check, "evil.example:443");
        let expected = [
            "the agent tried to reach evil.example:443: not in [seal] agent_network",
            "a check tried to reach evil.example:443: not in [seal] check_network",
        ];
        assert_eq!(refusals.drain(), expected);
        assert!(refusals.drain().is_empty());
        for n in 0..200 {
            refusals.record(Asker::Agent, &format!("h{n}.example:443"));
        }
        let notes = refusals.drain();
        assert_eq!(notes.len(), MOST_HOSTS - 1);
        assert_eq!(notes.last().unwrap(), "more hosts were refused, which are not listed");
    }
}
