//! Lines of JSON-RPC: one message a line, read leniently, written strictly.

use serde_json::{Value, json};

/// The version of the protocol that Verdone speaks.
pub(super) const PROTOCOL_VERSION: u64 = 1;

/// Of JSON-RPC: the method is not supported.
const METHOD_NOT_FOUND: i64 = -32601;

/// A message from the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// The answer to one of our requests.
    Answer {
        id: u64,
        result: Result<Value, RpcError>,
    },
    /// A request that needs an answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// An error as an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: Option<i64>,
    /// The message, with the details of `data` if there are any.
    pub(super) message: String,
}

/// Reads one line. `None` for lines that are no message, such as a client's log output.
pub(super) fn parse(line: &[u8]) -> Option<Incoming> {
    let Value::Object(mut message) = serde_json::from_slice(line).ok()? else { return None };
    let id = message.remove("id").filter(|id| !id.is_null());
    if let Some(Value::String(method)) = message.remove("method") {
        let params = message.remove("params").unwrap_or_default();
        return Some(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        });
    }
    let id = id?.as_u64()?;
    let result = match message.remove("error").filter(|error| !error.is_null()) {
        Some(error) => Err(rpc_error(&error)),
        None => Ok(message.remove("result").unwrap_or_default()),
    };
    Some(Incoming::Answer { id, result })
}

fn rpc_error(error: &Value) -> RpcError {
    let message = error["message"].as_str().unwrap_or("no error message");
    let data = &error["data"];
    let details = ["details", "message", "error"].iter().find_map(|field| data[*field].as_str()).or(data.as_str());
    let message = match details.filter(|details| !message.contains(details)) {
        Some(details) => format!("{message}: {details}"),
        None => message.to_owned(),
    };
    RpcError { code: error["code"].as_i64(), message }
}

/// A line to the client, without its end.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn notification(method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

pub(super) fn answer(id: &Value, result: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

pub(super) fn not_supported(id: &Value) -> String {
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "not supported" });
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn line(message: &Value) -> String {
    message.to_string()
}

pub(super) fn initialize() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        // Clients then use their own tools, whose calls they ask about.
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        "clientInfo": { "name": "verdone", "title": "Verdone", "version": env!("CARGO_PKG_VERSION") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_messages_are_skipped() {
        for line in ["", "Loaded cached credentials.", "[1,2]", "{}", "{\"id\":\"x\",\"result\":{}}", "{\"id\":1"] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn the_details_of_an_error_are_part_of_its_message() {
        let line =
            br#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"401 bad key"}}}"#;
        let Some(Incoming::Answer { result: Err(error), .. }) = parse(line) else { panic!("no error") };
        assert_eq!(error, RpcError { code: Some(-32603), message: "Internal error: 401 bad key".to_owned() });
    }

    #[test]
    fn a_message_to_the_client_is_one_line() {
        let text = request(1, "session/prompt", &json!({ "prompt": [{ "type": "text", "text": "a\nb\r\n" }] }));
        assert!(!text.contains(['\n', '\r']), "{text}");
    }
}
