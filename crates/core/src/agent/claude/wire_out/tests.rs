use super::*;
use crate::hook::Permission;

fn id() -> Uuid {
    Uuid::from_random([1; 16])
}

fn read(message: &ToClient<'_>) -> Value {
    let line = message.line();
    let text = line.as_str().strip_suffix('\n').unwrap();
    assert!(!text.contains(['\n', '\r', '\u{2028}', '\u{2029}']), "{text:?}");
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_message_is_what_the_client_reads() {
    let uuid = id();
    let cases = [
        (
            ToClient::Prompt { uuid: &uuid, text: "two\nlines" },
            json!({ "type": "user", "uuid": uuid.as_str(), "message": { "role": "user", "content": "two\nlines" } }),
        ),
        (
            ToClient::Clear { uuid: &uuid },
            json!({ "type": "user", "uuid": uuid.as_str(), "message": { "role": "user", "content": "/clear" } }),
        ),
        (
            ToClient::Interrupt { request: "r" },
            json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "interrupt", "cancel_queued": true } }),
        ),
        (
            ToClient::ContextUsage { request: "r" },
            json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "get_context_usage", "detail": "summary" } }),
        ),
        (
            ToClient::SetModel { request: "r", model: "m" },
            json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "set_model", "model": "m" } }),
        ),
        (
            ToClient::EndSession { request: "r" },
            json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "end_session" } }),
        ),
        (
            ToClient::Answer { request: "r", answer: &Answer::Silent },
            json!({ "type": "control_response", "response": { "subtype": "success", "request_id": "r", "response": {} } }),
        ),
        (
            ToClient::Refuse { request: "r", reason: "why" },
            json!({ "type": "control_response", "response": { "subtype": "error", "request_id": "r", "error": "why" } }),
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(read(&message), expected);
    }
}

#[test]
fn an_answer_is_the_same_object_that_a_hook_prints() {
    let answer = Answer::ToolUse(Permission::Deny { reason: "no\u{2028}way".to_owned() });
    let said = read(&ToClient::Answer { request: "r", answer: &answer });
    assert_eq!(said["response"]["response"], answer.to_json().unwrap());
}

#[test]
fn guards_are_registered_so_that_their_failure_blocks() {
    let said = read(&ToClient::Initialize { request: "init" });
    let hooks = said["request"]["hooks"].as_object().unwrap();
    assert_eq!(hooks.len(), callback_events().count());
    for (event, entries) in hooks {
        let entry = &entries[0];
        assert_eq!((&entry["matcher"], &entry["hookCallbackIds"]), (&json!(""), &json!([event])));
        assert!(entry["timeout"].as_u64().is_some_and(|seconds| (1..=60).contains(&seconds)), "{event}");
        let guard = matches!(event.as_str(), "PreToolUse" | "PermissionRequest" | "ConfigChange");
        assert_eq!(entry.get("onFailure").is_some_and(|on| on == "block"), guard, "{event}");
    }
}

#[test]
fn a_prompt_is_never_a_command_of_the_client() {
    let uuid = id();
    for text in ["/clear", "  /compact all", "\n/exit"] {
        let said = read(&ToClient::Prompt { uuid: &uuid, text });
        assert_eq!(said["message"]["content"], format!("Prompt:\n{text}"));
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_said_is_one_line_and_read_back(text in "(?s).{0,80}", request in "(?s).{0,20}") {
        let uuid = id();
        let prompt = read(&ToClient::Prompt { uuid: &uuid, text: &text });
        proptest::prop_assert!(prompt["message"]["content"].as_str().unwrap().ends_with(&text));
        let refused = read(&ToClient::Refuse { request: &request, reason: &text });
        proptest::prop_assert_eq!(refused["response"]["request_id"].as_str().unwrap(), request);
    }
}
