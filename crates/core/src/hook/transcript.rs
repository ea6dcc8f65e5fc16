//! Reads a session's cost from the client's transcript, because no hook input contains it.

use serde::Deserialize;

use super::tally::Spent;

/// The session's total cost, from the end of its transcript. The client writes it on exit. If the agent has answered since, the total
/// is outdated, and this returns `None`.
pub fn spent_in(end: &[u8]) -> Option<Spent> {
    for line in end.rsplit(|byte| *byte == b'\n') {
        // A cheap check first: lines can be long, and most are irrelevant.
        let says = |what: &[u8]| line.windows(what.len()).take(LONGEST_HEAD).any(|window| window == what);
        if !says(b"\"cost-state\"") && !says(b"\"assistant\"") {
            continue;
        }
        match serde_json::from_slice::<Kind<'_>>(line) {
            Ok(Kind { kind }) if kind == "assistant" => return None,
            Ok(Kind { kind }) if kind == "cost-state" => return serde_json::from_slice(line).ok().map(Books::spent),
            Ok(_) | Err(_) => {}
        }
    }
    None
}

/// The `type` of a line is near its start.
const LONGEST_HEAD: usize = 4 * 1024;

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Books {
    #[serde(rename = "totalCostUSD")]
    total_cost_usd: f64,
    #[serde(default)]
    model_usage: std::collections::BTreeMap<String, Model>,
    #[serde(default)]
    has_unknown_model_cost: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Model {
    #[serde(rename = "inputTokens")]
    input: u64,
    #[serde(rename = "outputTokens")]
    output: u64,
    #[serde(rename = "cacheReadInputTokens")]
    cache_read: u64,
    #[serde(rename = "cacheCreationInputTokens")]
    cache_creation: u64,
}

impl Books {
    fn spent(self) -> Spent {
        let sum = |tokens: fn(&Model) -> u64| self.model_usage.values().map(tokens).fold(0, u64::saturating_add);
        let input = [sum(|m| m.input), sum(|m| m.cache_read), sum(|m| m.cache_creation)];
        Spent {
            // A real cost never comes near the limits of the type; other values saturate.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float is cut to the range by `as`")]
            micro_usd: (self.total_cost_usd * 1e6).round() as u64,
            input_tokens: input.into_iter().fold(0, u64::saturating_add),
            output_tokens: sum(|m| m.output),
            at_least: self.has_unknown_model_cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKS: &str = r#"{"type":"cost-state","sessionId":"s","totalCostUSD":0.0048000000000000004,"modelUsage":{"a":{"inputTokens":600,"outputTokens":120,"cacheReadInputTokens":5,"cacheCreationInputTokens":2,"costUSD":0.0048},"b":{"inputTokens":1}},"hasUnknownModelCost":false}"#;

    #[test]
    fn the_books_at_the_end_of_a_transcript_tell_the_cost() {
        let spent = Spent { micro_usd: 4_800, input_tokens: 608, output_tokens: 120, at_least: false };
        let said = r#"{"type":"assistant","message":{"usage":{"input_tokens":1}}}"#;
        assert_eq!(spent_in(format!("{said}\n{BOOKS}\n").as_bytes()), Some(spent));
        // Starts in the middle of a line, like the end of a long file, and is followed by a line without a cost.
        assert_eq!(spent_in(format!("ssistant\"}}}}\n{BOOKS}\n{{\"type\":\"last-prompt\"}}\n").as_bytes()), Some(spent));
        let quoted = format!("{BOOKS}\n{{\"type\":\"user\",\"message\":\"an \\\"assistant\\\" and a \\\"cost-state\\\"\"}}\n");
        assert_eq!(spent_in(quoted.as_bytes()), Some(spent), "words inside of a text are no kind");
    }

    #[test]
    fn books_that_are_old_missing_or_broken_tell_nothing() {
        let later = format!("{BOOKS}\n{{\"type\":\"assistant\"}}\n");
        for text in
            ["", "\n\n", "nonsense", &later, "{\"type\":\"cost-state\"}", "{\"type\":\"cost-state\",\"totalCostUSD\":\"x\"}"]
        {
            assert_eq!(spent_in(text.as_bytes()), None, "{text}");
        }
        let odd = r#"{"type":"cost-state","totalCostUSD":-1e300,"modelUsage":{"a":{"inputTokens":18446744073709551615,"cacheReadInputTokens":9}},"hasUnknownModelCost":true}"#;
        let spent = Spent { micro_usd: 0, input_tokens: u64::MAX, output_tokens: 0, at_least: true };
        assert_eq!(spent_in(odd.as_bytes()), Some(spent));
    }
}
