//! What the client accepts from a hook, event by event, and nothing more.

use serde_json::{Map, Value};

/// The client moves longer context into a file.
const LONGEST: usize = 9_000;

/// Parses a hook's output: its answer, if any, or the reason why the client would not follow it.
pub(crate) fn answer(event: &str, stdout: &str) -> Result<Option<Value>, String> {
    if stdout.is_empty() {
        return Ok(None);
    }
    let one_line = stdout.starts_with('{') && stdout.ends_with("}\n") && stdout.matches('\n').count() == 1;
    if !one_line {
        return Err("not exactly one object on one line".to_owned());
    }
    let value: Value = serde_json::from_str(stdout).map_err(|error| error.to_string())?;
    check(event, value.as_object().ok_or("no object")?)?;
    Ok(Some(value))
}

fn check(event: &str, top: &Map<String, Value>) -> Result<(), String> {
    if top.contains_key("decision") {
        keys(top, &["decision", "reason"])?;
        let blockable = ["UserPromptSubmit", "ConfigChange", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"];
        if !blockable.contains(&event) {
            return Err(format!("a block of {event}"));
        }
        return if top["decision"] == "block" { text(top, "reason") } else { Err("decision is not `block`".to_owned()) };
    }
    if top.contains_key("systemMessage") {
        keys(top, &["systemMessage"])?;
        return if event == "Stop" { text(top, "systemMessage") } else { Err(format!("a message of {event}")) };
    }
    if top.contains_key("continue") {
        keys(top, &["continue", "stopReason"])?;
        if !matches!(event, "PostToolUse" | "PostToolUseFailure") {
            return Err(format!("an end of the turn by {event}"));
        }
        return if top["continue"] == false { text(top, "stopReason") } else { Err("continue is not false".to_owned()) };
    }
    keys(top, &["hookSpecificOutput"])?;
    let inner = top["hookSpecificOutput"].as_object().ok_or("hookSpecificOutput is no object")?;
    if inner.get("hookEventName").and_then(Value::as_str) != Some(event) {
        return Err("hookEventName is not the event".to_owned());
    }
    match event {
        "PreToolUse" => match inner.get("permissionDecision").and_then(Value::as_str) {
            Some("allow") => keys(inner, &["hookEventName", "permissionDecision"]),
            Some("deny") => {
                keys(inner, &["hookEventName", "permissionDecision", "permissionDecisionReason"])?;
                text(inner, "permissionDecisionReason")
            }
            other => Err(format!("permissionDecision {other:?}")),
        },
        "PermissionRequest" => {
            keys(inner, &["hookEventName", "decision"])?;
            let decision = inner["decision"].as_object().ok_or("decision is no object")?;
            match decision.get("behavior").and_then(Value::as_str) {
                Some("allow") => keys(decision, &["behavior"]),
                Some("deny") => keys(decision, &["behavior", "message"]).and_then(|()| text(decision, "message")),
                other => Err(format!("behavior {other:?}")),
            }
        }
        "SessionStart" | "PostToolUse" | "PostToolUseFailure" => {
            keys(inner, &["hookEventName", "additionalContext"])?;
            text(inner, "additionalContext")
        }
        other => Err(format!("{other} has to stay silent")),
    }
}

fn keys(object: &Map<String, Value>, expected: &[&str]) -> Result<(), String> {
    let found: Vec<&str> = object.keys().map(String::as_str).collect();
    if found == expected { Ok(()) } else { Err(format!("keys {found:?}, expected {expected:?}")) }
}

fn text(object: &Map<String, Value>, key: &str) -> Result<(), String> {
    match object.get(key).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() && text.len() <= LONGEST => Ok(()),
        Some(text) => Err(format!("{key} has {} bytes", text.len())),
        None => Err(format!("{key} is no text")),
    }
}

#[test]
fn what_the_client_would_ignore_is_refused_here() {
    for (event, said) in [
        ("PreToolUse", "{\"decision\":\"allow\"}\n"),
        ("PreToolUse", "{\"decision\":\"block\",\"reason\":\"x\"}\n"),
        ("PreToolUse", "log\n{\"hookSpecificOutput\":{}}\n"),
        ("PreToolUse", "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"x\"}}\n"),
        ("PreToolUse", "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\"}}\n"),
        ("PermissionRequest", "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}\n"),
        ("PermissionRequest", "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":\"deny\"}}\n"),
        ("PostToolBatch", "{\"decision\":\"block\",\"reason\":\"x\"}\n"),
        ("TaskCompleted", "{\"decision\":\"block\",\"reason\":\"x\"}\n"),
        ("Stop", "{\"decision\":\"block\"}\n"),
        ("ConfigChange", "{\"decision\":\"block\",\"reason\":\"\"}\n"),
        ("PreToolUse", "{\"continue\":false,\"stopReason\":\"x\"}\n"),
        ("PostToolUse", "{\"continue\":true,\"stopReason\":\"x\"}\n"),
        ("PostToolUse", "{\"continue\":false,\"stopReason\":\"\"}\n"),
        ("SessionStart", "{}\n{}\n"),
        ("PostToolUse", "{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":7}}\n"),
    ] {
        assert!(answer(event, said).is_err(), "{event}: {said}");
    }
}
