//! Real inputs of every hook event, as sent by the client.

#![expect(clippy::disallowed_methods, reason = "fifty files are read as a folder; the crate itself reads none")]

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::hook::{HookEvent, HookInput, InputError};

fn inputs() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let read = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), fs::read(&path).ok()?));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.filter_map(|entry| read(entry.path())).collect();
    found.sort();
    assert!(found.len() > 50, "the inputs are not there");
    found
}

#[test]
fn every_real_input_is_read_as_its_event() {
    for (name, bytes) in inputs() {
        let input = HookInput::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let event = name.split('.').next().unwrap();
        assert_eq!(input.common.event_name, event);
        assert!(input.common.cwd.starts_with("/home/dev/project"), "{name}");
        assert_eq!(input.common.session.len(), 36, "{name}");
        let said = format!("{:?}", input.event);
        let ours = !matches!(
            event,
            "CwdChanged"
                | "FileChanged"
                | "InstructionsLoaded"
                | "MessageDisplay"
                | "PermissionDenied"
                | "Setup"
                | "UserPromptExpansion"
                | "WorktreeCreate"
        );
        assert!(said.starts_with(if ours { event } else { "Other" }), "{name}: {said}");
    }
}

#[test]
fn a_tool_call_keeps_its_input_as_it_came() {
    let (_, bytes) = inputs().into_iter().find(|(name, _)| name == "PreToolUse.Edit").unwrap();
    let input = HookInput::parse(&bytes).unwrap();
    let HookEvent::PreToolUse(call) = input.event else { panic!("another event") };
    assert_eq!((call.tool.as_ref(), call.id.as_deref()), ("Edit", Some("toolu_0aabdadeaf3049969429d8c8")));
    let value: serde_json::Value = serde_json::from_str(call.input.get()).unwrap();
    assert_eq!(value["file_path"], "/home/dev/project/a.txt");
}

#[test]
fn an_event_cut_anywhere_is_an_error_and_never_another_event() {
    for (name, bytes) in inputs().into_iter().filter(|(_, bytes)| bytes.len() < 1500) {
        let whole = bytes.iter().rposition(|byte| *byte == b'}').unwrap();
        for cut in 0..whole {
            assert!(HookInput::parse(&bytes[..cut]).is_err(), "{name} cut at {cut}");
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let missing = |text: &str| HookInput::parse(text.as_bytes()).unwrap_err().to_string();
    let base = r#""session_id":"s","cwd":"/","hook_event_name":"#;
    assert_eq!(missing("{}"), "an input without hook_event_name");
    assert_eq!(missing(r#"{"hook_event_name":"Stop"}"#), "Stop without session_id");
    assert_eq!(missing(&format!(r#"{{{base}"PreToolUse","tool_input":{{}}}}"#)), "PreToolUse without tool_name");
    assert_eq!(missing(&format!(r#"{{{base}"PreToolUse","tool_name":"Bash"}}"#)), "PreToolUse without tool_input");
    assert_eq!(missing(&format!(r#"{{{base}"ConfigChange"}}"#)), "ConfigChange without source");
    assert!(missing("{").starts_with("the input is not JSON"));
    assert_eq!(HookInput::parse(b"\xff").unwrap_err(), InputError::NotUtf8);
}
