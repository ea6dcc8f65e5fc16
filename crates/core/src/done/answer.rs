//! Reads a judge's answer. An unreadable answer is *unknown*, never a pass. The text is sanitised before it is shown or passed on.

use serde::Deserialize;
use serde_json::{Value, json};

use super::JudgeFact;
use crate::base::sanitise::sanitise_line;

/// How many findings to keep, and how much of each.
const MOST: usize = 20;
const LONGEST: usize = 500;
/// How many JSON objects to try, starting from the end.
const TRIED: usize = 200;

/// The judge's answer as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub fact: JudgeFact,
    /// What the judge says it looked at.
    pub checked: Vec<String>,
}

/// The JSON schema of the answer, for clients that can enforce one.
pub fn answer_schema() -> String {
    let texts = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["refuted", "reasons", "checked"],
        "properties": {
            "refuted": { "type": "boolean", "description": "true if you found any reason why the work is not done" },
            "reasons": texts("file:line: what is wrong, and how you can tell; empty if nothing is wrong"),
            "checked": texts("what was looked at: files, criteria, cases"),
        },
    })
    .to_string()
}

/// Accepts exactly `{"refuted": …, "reasons": […], "checked": […]}`, with no text around it.
pub fn only_answer(text: &str) -> Answer {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Only {
        refuted: bool,
        reasons: Vec<String>,
        checked: Vec<String>,
    }
    match serde_json::from_str::<Only>(text.trim()) {
        Ok(Only { refuted, reasons, checked }) => answer(refuted, texts(&reasons), texts(&checked)),
        Err(_) if text.trim().is_empty() => unknown("the judge gave no answer"),
        Err(_) => unknown("the judge's answer is not the one JSON object that was asked for"),
    }
}

/// Finds the answer in a command's output: the last such object counts. `{"verdict": "holds" | "refuted", "findings": […]}` is a
/// shorter form.
pub fn judge_answer(output: &str) -> Answer {
    let objects = output.rmatch_indices('{').take(TRIED);
    let mut values =
        objects.filter_map(|(start, _)| serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>().next()?.ok());
    values.find_map(|value| of_value(&value)).unwrap_or_else(|| unknown("the judge's answer cannot be understood"))
}

/// `None` if the object is not an answer.
fn of_value(value: &Value) -> Option<Answer> {
    let findings = list(value.get("findings").or_else(|| value.get("reasons")));
    let checked = list(value.get("checked"));
    if let Some(refuted) = value.get("refuted") {
        return Some(match refuted.as_bool() {
            Some(refuted) => answer(refuted, findings, checked),
            None => unknown("the judge does not say whether the work is refuted"),
        });
    }
    match value.get("verdict")?.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("holds") if findings.is_empty() => Some(Answer { fact: JudgeFact::Holds, checked }),
        Some("holds") => Some(answer(false, findings, checked)),
        Some("refuted") => Some(answer(true, findings, checked)),
        Some(_) | None => Some(unknown("the judge gave an unknown verdict")),
    }
}

fn answer(refuted: bool, findings: Vec<String>, checked: Vec<String>) -> Answer {
    let fact = match (refuted, findings.is_empty(), checked.is_empty()) {
        (true, _, _) => JudgeFact::Refuted { findings },
        // A judge that says it holds but lists findings contradicts itself.
        (false, false, _) => {
            let some = findings.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("; ");
            JudgeFact::Unknown { why: format!("the judge accepted the work, but still found: {some}") }
        }
        (false, true, true) => {
            JudgeFact::Unknown { why: "the judge accepted the work without naming anything it looked at".to_owned() }
        }
        (false, true, false) => JudgeFact::Holds,
    };
    Answer { fact, checked }
}

fn unknown(why: &str) -> Answer {
    Answer { fact: JudgeFact::Unknown { why: why.to_owned() }, checked: Vec::new() }
}

fn list(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(finding).take(MOST).collect(),
        Some(Value::String(text)) => texts(std::slice::from_ref(text)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

fn texts(all: &[String]) -> Vec<String> {
    all.iter().filter(|text| !text.trim().is_empty()).take(MOST).map(|text| cut(text)).collect()
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
    let line = sanitise_line(&line);
    line[..line.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuted(findings: &[&str]) -> JudgeFact {
        JudgeFact::Refuted { findings: findings.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn a_verdict_is_found_in_whatever_was_printed_around_it() {
        let holds = JudgeFact::Holds;
        for (output, expected) in [
            (r#"{"refuted":false,"reasons":[],"checked":["a.rs"]}"#, holds.clone()),
            (r#"So: {"refuted":true,"reasons":["a is wrong"],"checked":[]} Bye."#, refuted(&["a is wrong"])),
            (r#"{"verdict":"holds","findings":[]}"#, holds.clone()),
            (r#"{"verdict":"holds"}"#, holds.clone()),
            ("I looked.\n```json\n{\"verdict\": \"HOLDS\", \"findings\": []}\n```\nBye {x}.", holds),
            (r#"{"verdict":"refuted","findings":["a is wrong",{"text":"b"},7]}"#, refuted(&["a is wrong", "b", "7"])),
            (r#"{"verdict":"holds"} on second thought {"refuted":true,"reasons":"no test"}"#, refuted(&["no test"])),
        ] {
            assert_eq!(judge_answer(output).fact, expected, "{output}");
        }
        // The last object counts, even if it is nested in another one. Then the answer is unknown.
        let inside = r#"{"findings":[{"verdict":"none"}],"verdict":"refuted"}"#;
        assert!(matches!(judge_answer(inside).fact, JudgeFact::Unknown { .. }));
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
            r#"{"refuted":"false","checked":["a"]}"#,
            r#"{"refuted":null,"verdict":"holds"}"#,
            r#"{"refuted":false,"reasons":["but this"],"checked":["a"]}"#,
            r#"{"refuted":false,"reasons":[],"checked":[]}"#,
            r#"{"refuted":false}"#,
            "{}",
            &deep,
            &"{".repeat(1_000_000),
        ] {
            assert!(matches!(judge_answer(output).fact, JudgeFact::Unknown { .. }), "{output:.60}");
            assert!(matches!(only_answer(output).fact, JudgeFact::Unknown { .. }), "{output:.60}");
        }
    }

    #[test]
    fn an_answer_that_was_asked_for_by_schema_is_that_object_and_nothing_else() {
        let whole = r#"{"refuted":false,"reasons":[],"checked":["src/a.rs","the empty case"]}"#;
        let read = only_answer(&format!(" {whole}\n"));
        assert_eq!((read.fact, read.checked.len()), (JudgeFact::Holds, 2));
        assert_eq!(only_answer(r#"{"refuted":true,"reasons":["no"],"checked":[]}"#).fact, refuted(&["no"]));
        assert_eq!(only_answer(r#"{"refuted":true,"reasons":[],"checked":[]}"#).fact, refuted(&[]), "even without a reason");
        for around in [
            format!("It holds. {whole}"),
            format!("{whole} {whole}"),
            format!("```json\n{whole}\n```"),
            format!("[{whole}]"),
            r#"{"refuted":false,"reasons":[],"checked":["a"],"note":"trust me"}"#.to_owned(),
            r#"{"refuted":false,"refuted":true,"reasons":[],"checked":["a"]}"#.to_owned(),
            r#"{"refuted":false,"checked":["a"]}"#.to_owned(),
            r#"{"refuted":0,"reasons":[],"checked":["a"]}"#.to_owned(),
            r#"{"verdict":"holds","findings":[]}"#.to_owned(),
        ] {
            assert!(matches!(only_answer(&around).fact, JudgeFact::Unknown { .. }), "{around}");
        }
        let schema: Value = serde_json::from_str(&answer_schema()).unwrap();
        let example: Value = serde_json::from_str(whole).unwrap();
        let named = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(named(&schema["properties"]), named(&example));
    }

    #[test]
    fn what_a_judge_says_is_cut_and_made_safe() {
        let long = "é".repeat(10_000);
        let hostile =
            json!({ "refuted": true, "reasons": vec![format!("\u{1b}[2Jx\n{long}"); 1_000], "checked": [] }).to_string();
        for read in [only_answer(&hostile), judge_answer(&hostile)] {
            let JudgeFact::Refuted { findings } = read.fact else { panic!("{read:?}") };
            assert_eq!(findings.len(), MOST);
            assert!(findings.iter().all(|text| text.len() <= LONGEST && !text.contains(['\u{1b}', '\n'])), "{findings:?}");
        }
    }
}
