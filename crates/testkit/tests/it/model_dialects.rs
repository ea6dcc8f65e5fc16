//! The APIs of other clients than Claude Code: the same scripts, and requests that are examined in the same way.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use verdone_testkit::PATIENCE;
use verdone_testkit::model_server::{ApiError, Kind, ModelServer, Script, Turn};

/// Posts JSON and returns the status and the body.
fn post(server: &ModelServer, target: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let body = body.to_string();
    let head = format!("POST {target} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the server reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the server answers and closes");
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// The data of a stream's events, without the mark of the end.
fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("each event is JSON")).collect()
}

#[test]
fn gemini_gets_its_own_tools_and_its_results_are_seen() {
    let server = ModelServer::start(Script::new().on("US-001", [Turn::write("a", "one\n"), Turn::say("Done.")]));
    let tools = json!([{ "functionDeclarations": [{ "name": "write_file" }, { "name": "run_shell_command" }] }]);
    let target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let asked = json!({ "role": "user", "parts": [{ "text": "do US-001" }] });
    let (status, body) = post(&server, target, &json!({ "contents": [asked], "tools": tools }));
    let event = &events(&body)[0];
    let call = &event["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!((status, &call["name"], &call["args"]["content"]), (200, &json!("write_file"), &json!("one\n")));
    assert_eq!(event["usageMetadata"]["totalTokenCount"], 15);

    let result = json!({ "functionResponse": { "id": "1", "name": "write_file", "response": { "error": "canceled" } } });
    let history = json!([asked, { "role": "model", "parts": [{ "functionCall": call }] }, { "role": "user", "parts": [result] }]);
    let (_, body) = post(&server, target, &json!({ "contents": history, "tools": tools }));
    assert_eq!(events(&body)[0]["candidates"][0]["content"]["parts"][0]["text"], "Done.");
    let turns = server.turns();
    assert_eq!((turns[0].model(), turns[0].prompt().as_str()), ("gemini-2.5-pro", "do US-001"));
    let seen = turns[1].tool_results();
    assert_eq!((seen[0].is_error, seen[0].text.as_str()), (true, "canceled"));
    assert!(server.unscripted().is_empty());
}

#[test]
fn chat_completions_get_their_own_tools_and_their_results_are_seen() {
    let server = ModelServer::start(Script::new().on("US-001", [Turn::bash("ls").and_say("Listing."), Turn::say("Done.")]));
    let tools = json!([{ "type": "function", "function": { "name": "bash" } }]);
    let asked = json!({ "role": "user", "content": [{ "type": "text", "text": "do US-001" }] });
    let question =
        json!({ "model": "m", "stream": true, "messages": [{ "role": "system", "content": "s" }, asked], "tools": tools });
    let (status, body) = post(&server, "/v1/chat/completions", &question);
    assert!(status == 200 && body.contains("data: [DONE]"), "{body}");
    let found = events(&body);
    let calls: Vec<&Value> = found.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]["function"]).collect();
    let call = calls.iter().find(|call| call.is_object()).expect("a call");
    assert_eq!(call["name"], "bash");
    assert!(call["arguments"].as_str().is_some_and(|text| text.contains("\"command\":\"ls\"")), "{call}");
    assert_eq!(found.last().expect("an end")["choices"][0]["finish_reason"], "tool_calls");

    let answered = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c", "function": call }] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "a b" });
    post(&server, "/v1/chat/completions", &json!({ "model": "m", "messages": [asked, answered, result], "tools": tools }));
    let turns = server.turns();
    assert_eq!((turns[0].system().as_str(), turns[0].prompt().as_str()), ("s", "do US-001"));
    assert_eq!(turns[1].tool_results()[0].text, "a b");
}

#[test]
fn errors_have_the_form_of_the_api_and_asides_do_not_use_up_the_script() {
    let server = ModelServer::start(Script::new().then(ApiError::status(401).message("bad key")));
    let tools = json!([{ "type": "function", "function": { "name": "bash" } }]);
    let aside = json!({ "role": "user", "content": "[SUGGESTION MODE: suggest something]" });
    let (status, _) = post(&server, "/v1/chat/completions", &json!({ "model": "m", "messages": [aside], "tools": tools }));
    assert_eq!(status, 200);
    let asked = json!({ "role": "user", "parts": [{ "text": "go" }] });
    let tools = json!([{ "functionDeclarations": [{ "name": "read_file" }] }]);
    let (status, body) = post(&server, "/v1beta/models/m:generateContent", &json!({ "contents": [asked], "tools": tools }));
    let error: Value = serde_json::from_str(&body).expect("an error is JSON");
    assert_eq!(
        (status, &error["error"]["status"], &error["error"]["message"]),
        (401, &json!("UNAUTHENTICATED"), &json!("bad key"))
    );
    assert_eq!(server.requests_of(Kind::Side).len(), 1);
}
