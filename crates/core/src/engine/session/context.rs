//! Reads the end of a session's transcript: how full its context is, and whether the last answer was an error. No hook input says so.

use serde::Deserialize;

use crate::agent::claude::ContextUse;

/// The information at the end of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    pub context: Option<ContextUse>,
    /// The text of the error, if the last answer was one.
    pub api_error: Option<String>,
}

/// Context windows by a part of the model's name; the first match counts. Those of other models are unknown.
const WINDOWS: [(&str, u64); 12] = [
    ("[1m]", 1_000_000),
    ("sonnet-4-5", 200_000),
    ("haiku-4-5", 200_000),
    ("opus-4", 200_000),
    ("sonnet-4", 200_000),
    ("claude-3", 200_000),
    ("3-5-", 200_000),
    ("3-7-", 200_000),
    ("opus-5", 1_000_000),
    ("sonnet-5", 1_000_000),
    ("haiku-5", 1_000_000),
    ("fable-5", 1_000_000),
];

/// The context window of a model in tokens, if known.
pub fn window_of(model: &str) -> Option<u64> {
    WINDOWS.iter().find(|(part, _)| model.contains(part)).map(|(_, window)| *window)
}

/// Reads the end of a transcript. Its first line may be incomplete.
pub fn tail_of(end: &[u8]) -> Tail {
    let mut tail = Tail::default();
    for line in end.rsplit(|byte| *byte == b'\n') {
        let says = |what: &[u8]| line.windows(what.len()).take(LONGEST_HEAD).any(|window| window == what);
        if !says(b"\"assistant\"") && !says(b"\"compact_boundary\"") {
            continue;
        }
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
        if entry.is_sidechain {
            continue;
        }
        if entry.subtype.as_deref() == Some("compact_boundary") {
            let tokens = entry.compact_metadata.and_then(|compacted| compacted.post_tokens);
            tail.context = tokens.map(|tokens| ContextUse { tokens, window: None });
            return tail;
        }
        let Some(message) = entry.message.filter(|_| entry.kind.as_deref() == Some("assistant")) else { continue };
        if entry.is_api_error || message.model.as_deref() == Some("<synthetic>") {
            // Only the very last answer shows how the turn ended.
            if tail.api_error.is_none() && entry.is_api_error {
                tail.api_error = Some(message.text().unwrap_or_else(|| "an API error".to_owned()));
            }
            continue;
        }
        if let Some(usage) = message.usage {
            let tokens =
                [usage.input, usage.cache_read, usage.cache_creation, usage.output].into_iter().fold(0, u64::saturating_add);
            tail.context = Some(ContextUse { tokens, window: message.model.as_deref().and_then(window_of) });
        }
        return tail;
    }
    tail
}

/// The type of a line is near its start, or right after a message of limited length.
const LONGEST_HEAD: usize = 256 * 1024;

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    subtype: Option<String>,
    #[serde(rename = "isSidechain", default)]
    is_sidechain: bool,
    #[serde(rename = "isApiErrorMessage", default)]
    is_api_error: bool,
    #[serde(rename = "compactMetadata")]
    compact_metadata: Option<Compacted>,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Compacted {
    #[serde(rename = "postTokens")]
    post_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Message {
    model: Option<String>,
    usage: Option<Usage>,
    #[serde(default)]
    content: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    #[serde(rename = "input_tokens")]
    input: u64,
    #[serde(rename = "output_tokens")]
    output: u64,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: u64,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: u64,
}

impl Message {
    fn text(&self) -> Option<String> {
        let blocks = self.content.as_array()?;
        blocks.iter().find_map(|block| block.get("text")?.as_str().map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(more: &str, model: &str, tokens: u64) -> String {
        let usage = format!(r#"{{"input_tokens":{tokens},"cache_read_input_tokens":10,"output_tokens":5}}"#);
        format!(
            r#"{{"type":"assistant",{more}"message":{{"model":"{model}","content":[{{"type":"text","text":"API Error: 529"}}],"usage":{usage}}}}}"#
        )
    }

    #[test]
    fn the_last_answer_of_the_main_conversation_counts() {
        let main = answer("", "claude-sonnet-4-5-20250929", 100);
        let side = answer("\"isSidechain\":true,", "claude-opus-5-5", 900_000);
        let text = format!("cut line\n{main}\n{side}\n{{\"type\":\"user\"}}\nnot json \"assistant\"\n");
        let tail = tail_of(text.as_bytes());
        assert_eq!(tail, Tail { context: Some(ContextUse { tokens: 115, window: Some(200_000) }), api_error: None });
        let failed = answer("\"isApiErrorMessage\":true,", "<synthetic>", 0);
        let tail = tail_of(format!("{main}\n{failed}\n").as_bytes());
        assert_eq!((tail.api_error.as_deref(), tail.context.map(|c| c.tokens)), (Some("API Error: 529"), Some(115)));
        let compacted = r#"{"type":"system","subtype":"compact_boundary","compactMetadata":{"postTokens":7}}"#;
        assert_eq!(tail_of(format!("{main}\n{compacted}\n").as_bytes()).context.map(|c| c.tokens), Some(7));
        assert_eq!(tail_of(format!("{failed}\n{main}\n").as_bytes()).api_error, None, "that one is over");
        assert_eq!(tail_of(b""), Tail::default());
    }

    #[test]
    fn windows_are_known_by_the_model() {
        for (model, window) in [
            ("claude-opus-5-5", Some(1_000_000)),
            ("claude-sonnet-4-5-20250929", Some(200_000)),
            ("claude-sonnet-4-5[1m]", Some(1_000_000)),
            ("claude-opus-4-1", Some(200_000)),
            ("gpt", None),
        ] {
            assert_eq!(window_of(model), window, "{model}");
        }
    }
}
