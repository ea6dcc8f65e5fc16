use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use verdone_core::engine::session::{StopRecord, StopTally};
use verdone_core::journal::event::Recorded;
use verdone_core::journal::update::{Reporter as _, Speaker, Stream, Update};
use verdone_core::journal::view::RunView;
use verdone_report::{
    Json, StopOf, Stops, StreamLine, audit_schema, events_reference, sessions_schema, status_schema, stops_schema, stream_schema,
    verification_schema,
};

use crate::expected::{same_as_docs, same_as_file};
use crate::fixture::{half_a_run, whole_run};
use crate::screen::Closed;

fn watch() -> String {
    let mut out = Vec::new();
    {
        let mut json = Json::with_clock(&mut out, || Timestamp::from_second(1_794_708_218).unwrap());
        for step in &whole_run().steps {
            step.show(&mut json);
        }
        assert!(!json.broken());
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn events_are_as_in_the_journal_and_every_line_reads_back() {
    let text = watch();
    same_as_file("stream.jsonl", &text);
    let lines: Vec<StreamLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let read: Vec<&Recorded> = lines
        .iter()
        .filter_map(|line| match line {
            StreamLine::Recorded(recorded) => Some(&**recorded),
            StreamLine::Transient(_) => None,
        })
        .collect();
    let journal = whole_run();
    assert_eq!(read, journal.recorded().collect::<Vec<_>>());
    assert!(lines.len() > read.len(), "there are lines that the journal does not have");
}

#[test]
fn nothing_in_a_json_line_moves_a_cursor_or_turns_text_around() {
    let mut out = Vec::new();
    let line = "\x1b[2J \u{9b}31m \u{202e}abc \u{7f}é";
    Json::new(&mut out).report(Update::Output { speaker: Speaker::Check("x"), stream: Stream::Stderr, line });
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with('\n') && !text.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["line"], line);
    assert_eq!((&read["speaker"], &read["name"], &read["stream"]), (&"check".into(), &"x".into(), &"stderr".into()));
}

#[test]
fn every_line_is_valid_under_the_published_schema() {
    let schema = stream_schema();
    for line in watch().lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(valid(&schema, &schema, &value), "{line}");
    }
    for wrong in [r#"{"v":1,"seq":1,"at":"2026-11-15T02:03:38Z","event":"nonsense"}"#, r#"{"v":1,"event":"notice"}"#, "3"] {
        assert!(!valid(&schema, &schema, &serde_json::from_str(wrong).unwrap()), "{wrong}");
    }
}

#[test]
fn a_view_is_valid_under_the_status_schema() {
    let schema = status_schema();
    for view in [RunView::default(), half_a_run().view(), whole_run().view()] {
        assert!(valid(&schema, &schema, &serde_json::to_value(&view).unwrap()), "{view:?}");
    }
}

#[test]
fn decisions_of_the_stop_gate_are_valid_under_their_schema() {
    let schema = stops_schema();
    let record = StopRecord {
        decision: "block".to_owned(),
        cause: "doubt".to_owned(),
        notes: vec!["the settings were changed".to_owned()],
        ..StopRecord::default()
    };
    let mut summary = StopTally::default();
    summary.add(&record);
    let at = "2026-11-15T02:03:38Z".parse().ok();
    let stop = StopOf { session: "s1".to_owned(), at, event: "Stop".to_owned(), stop: record };
    let whole = serde_json::to_value(Stops { stops: vec![StopOf { at: None, ..stop.clone() }, stop], summary }).unwrap();
    assert!(whole["stops"][1]["at"].is_string());
    for value in [&whole, &serde_json::to_value(Stops::default()).unwrap()] {
        assert!(valid(&schema, &schema, value), "{value}");
    }
    let mut wrong = whole.clone();
    wrong["stops"][0]["stop"]["blocks"] = "many".into();
    assert!(!valid(&schema, &schema, &wrong));
}

#[test]
fn a_reader_that_went_away_is_remembered() {
    let mut json = Json::new(Closed);
    json.report(Update::Notice { text: "anybody there?" });
    assert!(json.broken());
}

#[test]
fn the_published_schema_and_reference_are_not_stale() {
    same_as_docs("events.schema.json", &format!("{}\n", serde_json::to_string_pretty(&stream_schema()).unwrap()));
    same_as_docs("status.schema.json", &format!("{}\n", serde_json::to_string_pretty(&status_schema()).unwrap()));
    same_as_docs("audit.schema.json", &format!("{}\n", serde_json::to_string_pretty(&audit_schema()).unwrap()));
    same_as_docs("sessions.schema.json", &format!("{}\n", serde_json::to_string_pretty(&sessions_schema()).unwrap()));
    same_as_docs("verify.schema.json", &format!("{}\n", serde_json::to_string_pretty(&verification_schema()).unwrap()));
    same_as_docs("stops.schema.json", &format!("{}\n", serde_json::to_string_pretty(&stops_schema()).unwrap()));
    same_as_docs("events.md", &events_reference());
}

#[test]
fn the_schema_names_every_event_that_was_seen() {
    let mut named = BTreeSet::new();
    constants(&stream_schema(), &mut named);
    for line in watch().lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(named.contains(value["event"].as_str().unwrap()), "{line}");
    }
}

fn constants(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            found.extend(object.get("const").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| constants(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| constants(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The subset of JSON Schema that our schemas use; an unknown keyword fails, so that no rule is skipped.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema.as_bool().unwrap() };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "format" | "default" | "examples" => true,
        "$ref" => valid(root, root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap(), value),
        "anyOf" => rule.as_array().unwrap().iter().any(|one| valid(root, one, value)),
        "oneOf" => rule.as_array().unwrap().iter().filter(|one| valid(root, one, value)).count() == 1,
        "allOf" => rule.as_array().unwrap().iter().all(|one| valid(root, one, value)),
        "const" => rule == value,
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
        "type" => match rule {
            Value::Array(types) => types.iter().any(|one| is_type(one, value)),
            one => is_type(one, value),
        },
        "required" => rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
        "properties" => {
            let known = |(name, one): (&String, &Value)| value.get(name).is_none_or(|inner| valid(root, one, inner));
            rule.as_object().unwrap().iter().all(known)
        }
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| valid(root, rule, item))),
        "uniqueItems" => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))
        }
        "additionalProperties" => match (rule, value.as_object(), rules.get("properties").and_then(Value::as_object)) {
            (Value::Bool(false), Some(object), Some(known)) => object.keys().all(|name| known.contains_key(name)),
            (Value::Bool(true), _, _) | (_, None, _) => true,
            (Value::Object(_), Some(object), None) => object.values().all(|inner| valid(root, rule, inner)),
            (_, Some(_), _) => panic!("additionalProperties {rule}"),
        },
        other => panic!("keyword {other} is not understood"),
    })
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("type {other} is not understood"),
    }
}
