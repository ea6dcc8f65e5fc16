//! Counts how often in a row an agent makes the same tool call. A model that is caught in a loop makes hundreds of them in a minute.

use std::collections::BTreeMap;

use crate::base::id::digest;

/// More conversations than an agent has at once. An agent that invents some must not fill the memory.
const MOST_CHAINS: usize = 64;

/// The calls of one turn.
#[derive(Debug, Clone, Default)]
pub struct CallRepeats {
    /// By conversation: a digest of its last call, and how often it was made in a row.
    chains: BTreeMap<String, (String, u32)>,
}

/// A call that was made several times in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedCall {
    /// As text for people. Hostile.
    pub call: String,
    pub times: u32,
}

impl CallRepeats {
    /// Records a call and returns how often it was made in a row. `chain` tells apart the conversations of subagents, whose calls come
    /// interleaved; it is empty for the main one.
    pub fn count(&mut self, chain: &str, tool: &str, input: &str) -> u32 {
        let call = digest(format!("{tool}\n{input}").as_bytes());
        if self.chains.len() >= MOST_CHAINS && !self.chains.contains_key(chain) {
            self.chains.clear();
        }
        let last = self.chains.entry(chain.to_owned()).or_default();
        last.1 = if last.0 == call { last.1.saturating_add(1) } else { 1 };
        last.0 = call;
        last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_call_in_a_row_counts_and_each_conversation_for_itself() {
        let mut repeats = CallRepeats::default();
        let cases = [
            ("", "Bash", "make", 1),
            ("", "Bash", "make", 2),
            ("sub", "Bash", "make", 1),
            ("", "Bash", "make", 3),
            ("", "Bash", "make test", 1),
            ("", "Read", "make test", 1),
            ("", "Bash", "make", 1),
            ("sub", "Bash", "make", 2),
        ];
        for (chain, tool, input, times) in cases {
            assert_eq!(repeats.count(chain, tool, input), times, "{chain} {tool} {input}");
        }
    }

    #[test]
    fn many_conversations_do_not_fill_the_memory() {
        let mut repeats = CallRepeats::default();
        for n in 0..1_000 {
            repeats.count(&n.to_string(), "Bash", "make");
        }
        assert!(repeats.chains.len() <= MOST_CHAINS);
    }
}
