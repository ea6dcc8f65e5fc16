//! A scripted model over loopback HTTP, for the real clients in tests. It speaks the Messages API and those of other clients.
//!
//! It behaves like the API and records every request, so that a test can examine what the client sent to the model. It never answers for
//! other addresses: as a client's proxy, it refuses them and records them. It ends with the test that started it, whatever a script was
//! waiting for.

mod chat;
mod dialect;
mod gemini;
mod http;
mod request;
mod responses;
mod script;
mod tool_names;
mod wire;

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

pub use dialect::Dialect;
use http::HttpRequest;
pub use request::{Kind, Request, ToolResult};
pub use script::{
    Answer, ApiError, Block, Fault, Limit, LimitStatus, Rule, Script, Stall, Stop, Times, Turn, Usage, When, Window,
};

/// How long threads may take to end.
const END: Duration = Duration::from_secs(5);

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    script: Script,
    /// How often each rule was used.
    used: Vec<u32>,
    requests: Vec<Request>,
    /// How many stalled answers may continue.
    permits: usize,
    stalled: usize,
    is_closing: bool,
    connections: HashMap<usize, TcpStream>,
    next_connection: usize,
    /// The number of serving threads, including the one that accepts connections.
    threads: usize,
}

impl ModelServer {
    /// Starts a server on a free port.
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = State {
            used: vec![0; script.rules.len()],
            script,
            requests: Vec::new(),
            permits: 0,
            stalled: 0,
            is_closing: false,
            connections: HashMap::new(),
            next_connection: 0,
            threads: 1,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Counted(Arc::clone(&shared));
        thread::spawn(move || accept(&accepting.0, &listener));
        Self { address, shared }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL that clients use as the API's address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds rules after the existing ones.
    pub fn extend(&self, script: Script) {
        let mut state = self.shared.lock();
        state.script.rules.extend(script.rules);
        let count = state.script.rules.len();
        state.used.resize(count, 0);
        state.script.otherwise = script.otherwise.or(state.script.otherwise.take());
    }

    /// Lets one answer continue that stalls until it is released, now or later.
    pub fn release(&self) {
        self.shared.lock().permits += 1;
        self.shared.changed.notify_all();
    }

    /// All requests in the order they arrived.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// The requests of one kind.
    pub fn requests_of(&self, kind: Kind) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind() == kind).collect()
    }

    /// The requests of the main conversation.
    pub fn turns(&self) -> Vec<Request> {
        self.requests_of(Kind::Main)
    }

    /// Requests to the model that matched no rule: the script is too short, or the client did not behave as expected.
    pub fn unscripted(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.is_unscripted).collect()
    }

    /// Addresses outside of this machine that a client tried to reach through us.
    pub fn wanted_elsewhere(&self) -> Vec<String> {
        self.requests().into_iter().filter(is_elsewhere).map(|request| request.path).collect()
    }

    /// How many answers wait to be released.
    pub fn stalled(&self) -> usize {
        self.shared.lock().stalled
    }

    /// Waits until the requests satisfy the condition; panics with a list of them at the deadline.
    #[track_caller]
    pub fn wait_for(&self, what: &str, deadline: Duration, reached: impl Fn(&[Request]) -> bool) {
        self.wait(what, deadline, |state| reached(&state.requests));
    }

    /// The n-th request, counted from 1. Waits for it without a time limit.
    pub fn request(&self, number: usize) -> Request {
        let waited = self.shared.changed.wait_while(self.shared.lock(), |state| state.requests.len() < number);
        waited.unwrap_or_else(PoisonError::into_inner).requests[number - 1].clone()
    }

    /// Waits until an answer stalls.
    #[track_caller]
    pub fn wait_for_stall(&self, deadline: Duration) {
        self.wait("an answer that stalls", deadline, |state| state.stalled > 0);
    }

    /// One line per request.
    pub fn overview(&self) -> String {
        overview(&self.shared.lock().requests)
    }

    #[track_caller]
    fn wait(&self, what: &str, deadline: Duration, reached: impl Fn(&State) -> bool) {
        let guard = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(guard, deadline, |state| !reached(state));
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        let seen = timeout.timed_out().then(|| overview(&state.requests));
        drop(state);
        if let Some(seen) = seen {
            panic!("the model server waited {deadline:?} for {what}\n{seen}");
        }
    }
}

/// Counts a thread as long as it runs, even if it ends by a panic.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        for connection in state.connections.values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes up the accepting thread.
        let _ = TcpStream::connect_timeout(&self.address, END);
        let guard = self.shared.lock();
        let _ended = self.shared.changed.wait_timeout_while(guard, END, |state| state.threads > 0);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and finds its answer.
    fn answer_request(&self, asked: HttpRequest) -> (Request, Option<Answer>) {
        let path = asked.target.split('?').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
        let body = match Dialect::from_request(&asked.method, &path) {
            Some(dialect) => dialect.read(&path, body),
            None => body,
        };
        let mut state = self.lock();
        let mut request = Request {
            number: state.requests.len() + 1,
            at: SystemTime::now(),
            path,
            method: asked.method,
            headers: asked.headers,
            body,
            is_unscripted: false,
        };
        let kind = request.kind();
        let answer = (kind != Kind::Other).then(|| {
            let nth = state.requests.iter().filter(|earlier| earlier.kind() == kind).count() + 1;
            let fitting = state.script.rules.iter().zip(&state.used);
            let found = fitting.enumerate().find(|(_, (rule, used))| rule.times.is_left(**used) && rule.when.fits(&request, nth));
            if let Some((at, (rule, _))) = found {
                let mut answer = rule.answer.clone();
                if let Answer::Turn(turn) = &mut answer {
                    tool_names::translate(turn, &request.tools());
                }
                state.used[at] += 1;
                return answer;
            }
            request.is_unscripted = kind == Kind::Main || kind == Kind::Subagent;
            match kind {
                // Without a summary, the client asks again and again.
                Kind::Compaction => Turn::say("<analysis>Short.</analysis><summary>What was said so far.</summary>").into(),
                Kind::Side | Kind::Other => Turn::say("Done.").into(),
                Kind::Main | Kind::Subagent => state.script.otherwise.clone().unwrap_or_else(|| Turn::say("Done.").into()),
            }
        });
        state.requests.push(request.clone());
        drop(state);
        self.changed.notify_all();
        (request, answer)
    }

    /// Delays an answer. Returns an error if the server ends meanwhile.
    fn stall(&self, stall: Stall) -> io::Result<()> {
        let mut state = self.lock();
        match stall {
            Stall::Seconds(seconds) => {
                let pause = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                let waited = self.changed.wait_timeout_while(state, pause, |state| !state.is_closing);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            Stall::UntilReleased => {
                state.stalled += 1;
                self.changed.notify_all();
                let waited = self.changed.wait_while(state, |state| state.permits == 0 && !state.is_closing);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                state.stalled -= 1;
                state.permits = state.permits.saturating_sub(1);
            }
        }
        if state.is_closing { Err(io::Error::other("the server ends")) } else { Ok(()) }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for stream in listener.incoming() {
        let mut state = shared.lock();
        if state.is_closing {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(handle) = stream.try_clone() else { continue };
        let id = state.next_connection;
        state.next_connection += 1;
        state.connections.insert(id, handle);
        state.threads += 1;
        drop(state);
        let counted = Counted(Arc::clone(shared));
        thread::spawn(move || {
            // Ignored: a client may hang up, and a broken request is visible because it is missing from the log.
            let _ = serve(&counted.0, &stream);
            let _ = stream.shutdown(Shutdown::Both);
            counted.0.lock().connections.remove(&id);
        });
    }
}

/// Answers one request after the other.
fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    let mut output = stream;
    while let Some(asked) = http::read_request(&mut input, &mut output)? {
        let last = asked.wants_close();
        let (request, answer) = shared.answer_request(asked);
        let goes_on = match answer {
            Some(Answer::Turn(turn)) => play(shared, &mut output, &request, &turn)?,
            Some(Answer::Error(error)) => refuse(shared, &mut output, &request, &error)?,
            None => {
                answer_besides(&mut output, &request)?;
                !is_elsewhere(&request)
            }
        };
        if last || !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns whether the connection can be kept.
fn play(shared: &Shared, output: &mut &TcpStream, request: &Request, turn: &Turn) -> io::Result<bool> {
    turn.stall.map_or(Ok(()), |stall| shared.stall(stall))?;
    let mut headers = common_headers(request);
    headers.extend(turn.limit.iter().flat_map(|limit| limit_headers(request, limit)));
    if !request.is_streamed() {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let body = dialect(request).whole(turn, request.model(), request.number).to_string();
        http::write_whole(output, &request.method, 200, &headers, body.as_bytes())?;
        return Ok(true);
    }
    headers.push(("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned()));
    headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
    http::begin_stream(output, &headers)?;
    let events = dialect(request).events(turn, request.model(), request.number);
    // A turn without content fails right after its start.
    let middle = events.iter().position(|(is_content, _)| *is_content).unwrap_or(0);
    for (at, (_, event)) in events.iter().enumerate() {
        http::write_chunk(output, event)?;
        if at != middle {
            continue;
        }
        match &turn.fault {
            None => {}
            Some(Fault::Drop) => return Ok(false),
            Some(Fault::Error { kind, message }) => {
                let event = dialect(request).error_event(kind, message);
                http::write_chunk(output, &event)?;
                http::end_stream(output)?;
                return Ok(true);
            }
            Some(Fault::Stall(stall)) => shared.stall(*stall)?,
        }
    }
    http::end_stream(output)?;
    Ok(true)
}

fn refuse(shared: &Shared, output: &mut &TcpStream, request: &Request, error: &ApiError) -> io::Result<bool> {
    error.stall.map_or(Ok(()), |stall| shared.stall(stall))?;
    let mut headers = common_headers(request);
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    headers.extend(error.retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
    headers.extend(error.limit.iter().flat_map(|limit| limit_headers(request, limit)));
    let body = dialect(request).refusal(error).to_string();
    http::write_whole(output, &request.method, error.status, &headers, body.as_bytes())?;
    Ok(true)
}

fn limit_headers(request: &Request, limit: &Limit) -> Vec<(String, String)> {
    dialect(request).limit_headers(limit, SystemTime::now())
}

/// Answers requests that are not for the model.
fn answer_besides(output: &mut &TcpStream, request: &Request) -> io::Result<()> {
    let (status, body) = match (request.method.as_str(), request.path.as_str()) {
        _ if is_elsewhere(request) => (403, wire::error_body("permission_error", "nothing leaves this machine")),
        // About four characters per token, as in reality.
        ("POST", "/v1/messages/count_tokens") => (200, json!({ "input_tokens": request.body.to_string().len() / 4 })),
        ("POST", path) if path.ends_with(":countTokens") => (200, json!({ "totalTokens": request.body.to_string().len() / 4 })),
        ("GET" | "HEAD", "/") => (200, json!({})),
        _ => (404, wire::error_body("not_found_error", "this model server has no such address")),
    };
    let mut headers = common_headers(request);
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    http::write_whole(output, &request.method, status, &headers, body.to_string().as_bytes())
}

fn common_headers(request: &Request) -> Vec<(String, String)> {
    vec![("request-id".to_owned(), format!("req_{:06}", request.number))]
}

/// Only requests for the model are answered by a script.
fn dialect(request: &Request) -> Dialect {
    request.dialect().unwrap_or(Dialect::Messages)
}

/// A request to a proxy contains the complete URL.
fn is_elsewhere(request: &Request) -> bool {
    request.method == "CONNECT" || request.path.contains("://")
}

fn overview(requests: &[Request]) -> String {
    let lines = requests.iter().map(|request| {
        let prompt: String = request.prompt().chars().take(60).collect();
        let results = request.tool_results().len();
        let unscripted = if request.is_unscripted { " UNSCRIPTED" } else { "" };
        let Request { number, method, path, .. } = request;
        format!("{number}. {method} {path} {:?}{unscripted}, {results} tool results, prompt {prompt:?}\n", request.kind())
    });
    lines.collect()
}
