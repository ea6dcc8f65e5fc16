//! The scripted model server as a client sees it, byte by byte.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use verdone_testkit::model_server::{
    ApiError, Block, Fault, Kind, Limit, LimitStatus, ModelServer, Script, Stall, Stop, Times, Turn, Usage, When, Window,
};
use verdone_testkit::{PATIENCE, Sandbox};

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    /// The data of a stream's events.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("each event is JSON")).collect()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }

    fn text(&self) -> String {
        self.events().iter().filter_map(|event| event["delta"]["text"].as_str().map(str::to_owned)).collect()
    }
}

fn send(server: &ModelServer, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.write_all(text.as_bytes()).expect("the server reads");
    stream
}

fn receive(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the server answers and closes");
    let text = String::from_utf8(bytes).expect("an answer is UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Reply { status, head: head.replace('\r', ""), body: body.to_owned() }
}

fn http(server: &ModelServer, method: &str, target: &str, body: &str) -> Reply {
    let length = body.len();
    receive(send(server, &format!("{method} {target} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")))
}

fn question(prompt: &str) -> Value {
    json!({ "model": "m", "stream": true, "tools": [{ "name": "Bash" }], "messages": [{ "role": "user", "content": prompt }] })
}

fn ask_with(server: &ModelServer, body: &Value) -> Reply {
    http(server, "POST", "/v1/messages?beta=true", &body.to_string())
}

fn ask(server: &ModelServer, prompt: &str) -> Reply {
    ask_with(server, &question(prompt))
}

#[test]
fn a_turn_comes_as_the_events_of_the_api() {
    let turn = Turn { blocks: vec![Block::Thinking("Hm.".to_owned())], ..Turn::default() }
        .and_say("Grüße")
        .and_call("Write", json!({ "file_path": "a" }))
        .and_call("Bash", json!({ "command": "ls" }))
        .usage(Usage { input: 7, cache_read: 8, cache_creation: 9, output: 10 });
    let server = ModelServer::start(Script::new().then(turn));
    let reply = ask(&server, "go");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    let events = reply.events();
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((types[0], types[types.len() - 2], types[types.len() - 1]), ("message_start", "message_delta", "message_stop"));
    assert_eq!(types.iter().filter(|name| **name == "content_block_start").count(), 4);
    let joined = |index: u64, field: &str| -> String {
        events.iter().filter(|event| event["index"] == index).filter_map(|event| event["delta"][field].as_str()).collect()
    };
    assert_eq!(joined(0, "thinking"), "Hm.");
    assert_eq!(joined(1, "text"), "Grüße");
    assert_eq!(joined(2, "partial_json"), r#"{"file_path":"a"}"#);
    assert_eq!(events[0]["message"]["usage"]["cache_read_input_tokens"], 8);
    let end = &events[events.len() - 2];
    assert_eq!((end["delta"]["stop_reason"].as_str(), end["usage"]["output_tokens"].as_u64()), (Some("tool_use"), Some(10)));
}

#[test]
fn a_client_that_asks_for_a_whole_answer_gets_one_message() {
    let server = ModelServer::start(Script::new().then(Turn::say("all").stop(Stop::MaxTokens)));
    let mut body = question("go");
    body["stream"] = json!(false);
    let message: Value = serde_json::from_str(&ask_with(&server, &body).body).expect("the body is JSON");
    assert_eq!(message["content"], json!([{ "type": "text", "text": "all" }]));
    assert_eq!((message["stop_reason"].as_str(), message["usage"]["output_tokens"].as_u64()), (Some("max_tokens"), Some(5)));
}

#[test]
fn rules_are_taken_in_order_by_those_whom_they_fit() {
    let script = Script::new()
        .on("story one", [Turn::say("one, first"), Turn::say("one, then")])
        .rule(When { nth: Some(5), ..When::default() }, Times::Once, Turn::say("fifth"))
        .rule(When { tool_result: Some("exit 1".to_owned()), ..When::after_tool() }, Times::Always, Turn::say("it failed"))
        .then(Turn::say("in order"))
        .rule(When::kind(Kind::Side), Times::Always, Turn::say("a title"));
    let server = ModelServer::start(script);
    let result = json!({ "type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "exit 1" });
    let mut after_tool = question("two");
    after_tool["messages"] = json!([
        { "role": "user", "content": [{ "type": "text", "text": "<system-reminder>story one</system-reminder>" }, { "type": "text", "text": "two" }] },
        { "role": "assistant", "content": "calling" },
        { "role": "user", "content": [result] },
        { "role": "system", "content": "a note" },
    ]);
    let mut side = question("story one");
    side["tools"] = json!([]);
    let said = [
        ask(&server, "now story one").text(),
        ask_with(&server, &side).text(),
        ask_with(&server, &after_tool).text(),
        ask(&server, "story one again").text(),
        ask(&server, "another").text(),
        ask(&server, "another").text(),
        ask(&server, "another").text(),
    ];
    assert_eq!(said, ["one, first", "a title", "it failed", "one, then", "in order", "fifth", "Done."]);
    let unscripted: Vec<usize> = server.unscripted().iter().map(|request| request.number).collect();
    assert_eq!(unscripted, [7]);
    assert_eq!(server.turns()[1].tool_results()[0].text, "exit 1");
    assert_eq!(server.turns()[1].prompt(), "two");
    assert!(server.turns()[1].system().contains("a note") && server.overview().contains("7. POST /v1/messages Main UNSCRIPTED"));

    server.extend(Script::new().on("later", [Turn::say("added")]));
    assert_eq!(ask(&server, "later").text(), "added");
}

#[test]
fn errors_have_the_status_and_the_body_of_the_api() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ] {
        let server = ModelServer::start(Script::new().then(ApiError::status(status).retry_after(7).message("no")));
        let reply = ask(&server, "go");
        let body: Value = serde_json::from_str(&reply.body).expect("the body is JSON");
        assert_eq!((reply.status, &body["error"]), (status, &json!({ "type": kind, "message": "no" })));
        assert_eq!((reply.header("retry-after"), reply.header("anthropic-ratelimit-unified-status")), (Some("7"), None));
    }
}

#[test]
fn a_usage_limit_tells_when_it_ends_counted_from_now() {
    let near = Limit { window: Window::SevenDay, status: LimitStatus::AllowedWarning, utilization: 0.95, resets_in: 100 };
    let server = ModelServer::start(Script::new().then(ApiError::usage_limit(3)).then(Turn::say("ok").limit(near)));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
    let header = |reply: &Reply, name: &str| reply.header(&format!("anthropic-ratelimit-unified-{name}")).map(str::to_owned);
    let refused = ask(&server, "go");
    assert_eq!((refused.status, header(&refused, "status").as_deref()), (429, Some("rejected")));
    assert_eq!(header(&refused, "representative-claim").as_deref(), Some("five_hour"));
    let resets: u64 = header(&refused, "5h-reset").and_then(|text| text.parse().ok()).expect("the reset is a time");
    assert!((now + 3..now + 13).contains(&resets), "{resets} at {now}");
    let answered = ask(&server, "go");
    assert_eq!((answered.status, header(&answered, "7d-utilization").as_deref()), (200, Some("0.95")));
}

#[test]
fn a_stream_can_break_off_fail_or_pause_after_its_first_words() {
    let fault = |fault| Turn::say("some words").fault(fault);
    let error = Fault::Error { kind: "overloaded_error".to_owned(), message: "busy".to_owned() };
    let script = Script::new().then(fault(Fault::Drop)).then(fault(error)).then(fault(Fault::Stall(Stall::UntilReleased)));
    let server = ModelServer::start(script);

    let dropped = ask(&server, "go");
    assert_eq!(dropped.text(), "some ");
    assert!(!dropped.body.contains("message_stop") && !dropped.body.ends_with("0\r\n\r\n"), "{}", dropped.body);

    let failed = ask(&server, "go").events();
    assert_eq!(failed.last().map(|event| event["error"]["type"].clone()), Some(json!("overloaded_error")));

    let body = question("go").to_string();
    let stream = send(
        &server,
        &format!("POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
    );
    server.wait_for_stall(PATIENCE);
    assert_eq!(server.stalled(), 1);
    server.release();
    assert_eq!(receive(stream).text(), "some words");
}

#[test]
fn what_is_asked_besides_the_model_gets_an_answer_and_is_kept() {
    let server = ModelServer::start(Script::new());
    assert_eq!(http(&server, "HEAD", "/", "").status, 200);
    let counted: Value =
        serde_json::from_str(&http(&server, "POST", "/v1/messages/count_tokens", &question("go").to_string()).body)
            .expect("JSON");
    assert!(counted["input_tokens"].as_u64().is_some_and(|tokens| tokens > 10), "{counted}");
    assert_eq!(http(&server, "GET", "/v1/models?limit=1", "").status, 404);
    assert_eq!(http(&server, "POST", "/v1/messages/count_tokens", "no JSON").status, 200);
    let paths: Vec<String> = server.requests_of(Kind::Other).into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/", "/v1/messages/count_tokens", "/v1/models", "/v1/messages/count_tokens"]);
    assert_eq!(server.wanted_elsewhere(), [""; 0]);
}

#[test]
fn as_a_proxy_it_lets_nothing_out_and_remembers_who_was_asked_for() {
    let server = ModelServer::start(Script::new());
    assert_eq!(receive(send(&server, "CONNECT example.com:443 HTTP/1.1\r\n\r\n")).status, 403);
    assert_eq!(receive(send(&server, "GET http://example.com/x HTTP/1.1\r\n\r\n")).status, 403);
    assert_eq!(server.wanted_elsewhere(), ["example.com:443", "http://example.com/x"]);
}

#[test]
fn one_connection_serves_many_requests() {
    let server = ModelServer::start(Script::new().otherwise(Turn::say("again")));
    let body = question("go").to_string();
    let one = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let last = format!("POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let reply = receive(send(&server, &format!("{one}{one}{last}")));
    assert_eq!((reply.body.matches("message_stop").count(), server.turns().len()), (6, 3), "name and data of three events");
}

#[test]
fn a_server_that_is_dropped_waits_for_no_stalled_answer_and_no_silent_client() {
    let server = ModelServer::start(
        Script::new().then(Turn::say("never").stall(Stall::UntilReleased)).then(Turn::say("late").stall(Stall::Seconds(600.0))),
    );
    let body = question("go").to_string();
    let one = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let waiting = [send(&server, &one), send(&server, &one), send(&server, ""), send(&server, "POST / HTTP/1.1\r\n")];
    server.wait_for("two questions", PATIENCE, |requests| requests.len() == 2);
    let begun = Instant::now();
    drop(server);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    // Another test's server may have the port already, so ask the connections.
    for mut stream in waiting {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(!ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "a connection is still open");
    }
}

#[test]
fn the_program_tells_its_port_serves_a_script_file_and_ends_with_its_input() {
    let sandbox = Sandbox::new();
    sandbox.write("script.toml", "[[rule]]\nanswer.turn.blocks = [{ text = \"from a file\" }]\n");
    let program = env!("CARGO_BIN_EXE_verdone-model");
    let (running, input) = sandbox.spawn_with_input(program, ["script.toml", "--log", "log", "--until-eof"]);
    let port = running.wait_for_stdout("its port", PATIENCE, |text| text.ends_with('\n'));
    let address = format!("127.0.0.1:{}", port.trim());
    let mut stream = TcpStream::connect(&address).expect("the program listens");
    let body = question("go").to_string();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .expect("it reads");
    assert_eq!(receive(stream).text(), "from a file");
    let until = Instant::now() + PATIENCE;
    while !sandbox.read("log").ends_with('\n') {
        assert!(Instant::now() < until, "the log stays empty");
        std::thread::sleep(Duration::from_millis(5));
    }
    let logged: Value = serde_json::from_str(&sandbox.read("log")).expect("a line of JSON");
    assert_eq!((logged["kind"].as_str(), logged["body"]["model"].as_str()), (Some("main"), Some("m")));
    drop(input);
    running.wait(PATIENCE).assert_code(0);

    sandbox.write("script.toml", "[[rule]]\nanswer.turn.blok = []\n");
    let output = sandbox.verdone(program, ["script.toml"]);
    output.assert_code(2);
    assert!(output.stderr.contains("script.toml") && output.stderr.contains("unknown field `blok`"), "{}", output.stderr);
}
