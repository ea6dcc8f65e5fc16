//! What a judge said, taken out of whatever it printed around it. What cannot be read is *unknown*, and never a pass.

use serde_json::Value;

use super::JudgeFact;

/// Findings that are kept, and how much of each.
const MOST: usize = 20;
const LONGEST: usize = 500;
/// Objects that are tried, from the end.
const TRIED: usize = 200;

/// The judge's answer as data.
pub type Answer = JudgeFact;

/// Reads `{"verdict": "holds" | "refuted", "findings": […]}`: the last such object of the output.
pub fn judge_answer(output: &str) -> Answer {
    let mut tried = 0;
    for (start, _) in output.rmatch_indices('{') {
        tried += 1;
        if tried > TRIED {
            break;
        }
        let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { continue };
        if let Some(answer) = of_value(&value) {
            return answer;
        }
    }
    JudgeFact::Unknown { why: "the judge's answer cannot be understood".to_owned() }
}

/// Nothing for an object that is no verdict.
fn of_value(value: &Value) -> Option<Answer> {
    let verdict = value.get("verdict")?;
    let findings: Vec<String> = match value.get("findings") {
        Some(Value::Array(list)) => list.iter().filter_map(finding).take(MOST).collect(),
        Some(Value::String(text)) if !text.trim().is_empty() => vec![cut(text)],
        Some(_) | None => Vec::new(),
    };
    match verdict.as_str().map(str::to_ascii_lowercase).as_deref() {
        // Who lists what is wrong has refuted it, whatever the word says.
        Some("holds") if findings.is_empty() => Some(JudgeFact::Holds),
        Some("holds") => {
            Some(JudgeFact::Unknown { why: format!("the judge says that it holds, and still found: {}", findings.join("; ")) })
        }
        Some("refuted") => Some(JudgeFact::Refuted { findings }),
        Some(_) | None => Some(JudgeFact::Unknown { why: "the judge gave a verdict that nobody knows".to_owned() }),
    }
}

fn finding(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            text("text").or_else(|| text("finding")).or_else(|| text("message")).map_or_else(|| value.to_string(), str::to_owned)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    };
    (!text.trim().is_empty()).then(|| cut(&text))
}

fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_found_in_whatever_was_printed_around_it() {
        let holds = JudgeFact::Holds;
        let refuted = |findings: &[&str]| JudgeFact::Refuted { findings: findings.iter().map(ToString::to_string).collect() };
        for (output, expected) in [
            (r#"{"verdict":"holds","findings":[]}"#, holds.clone()),
            (r#"{"verdict":"holds"}"#, holds.clone()),
            ("I looked.\n```json\n{\"verdict\": \"HOLDS\", \"findings\": []}\n```\nBye {x}.", holds),
            (r#"{"verdict":"refuted","findings":["a is wrong",{"text":"b"},7]}"#, refuted(&["a is wrong", "b", "7"])),
            (r#"{"verdict":"holds"} on second thought {"verdict":"refuted","findings":"no test"}"#, refuted(&["no test"])),
            (r#"{"findings":[{"verdict":"none"}],"verdict":"refuted"}"#, refuted(&[r#"{"verdict":"none"}"#])),
        ] {
            let answer = judge_answer(output);
            // The last object counts, also where it lies inside another: then nobody knows.
            if output.contains("none") {
                assert!(matches!(answer, JudgeFact::Unknown { .. }), "{output}");
            } else {
                assert_eq!(answer, expected, "{output}");
            }
        }
    }

    #[test]
    fn what_cannot_be_read_never_holds() {
        let deep = format!("{}\"verdict\":\"holds\"", "{\"a\":".repeat(100_000));
        for output in [
            "",
            "holds",
            "verdict: holds",
            r#"{"verdict":"#,
            r#"{"verdict":true}"#,
            r#"{"verdict":"maybe"}"#,
            r#"{"verdict":"holds","findings":["but this"]}"#,
            r#""{\"verdict\":\"holds\"}""#,
            "{}",
            &deep,
            &"{".repeat(1_000_000),
        ] {
            assert!(matches!(judge_answer(output), JudgeFact::Unknown { .. }), "{output:.60}");
        }
    }
}
