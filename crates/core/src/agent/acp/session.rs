//! A client's sessions as a state machine: its lines come in, steps go out.

mod permission;
mod turn;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::permission::Options;
use self::turn::Turn;
use super::Profile;
use super::announced::OpenCalls;
use super::usage::Meter;
use super::wire::{self, Incoming, RpcError};
use crate::agent::TurnOutcome;
use crate::agent::protocol::{Opening, Protocol, Step, Verdict};

/// One client process.
#[derive(Debug)]
pub struct Acp {
    profile: &'static Profile,
    cwd: String,
    requests: u64,
    /// Our requests that were not answered yet.
    sent: BTreeMap<u64, Sent>,
    /// The client's questions that were not answered yet.
    asked: BTreeMap<String, Options>,
    introduced: bool,
    opening: Opening,
    session: Option<String>,
    calls: OpenCalls,
    meter: Meter,
    turn: Option<Turn>,
}

/// What a request of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Initialize,
    NewSession,
    LoadSession,
    SetMode,
    Prompt,
}

impl Acp {
    pub fn new(profile: &'static Profile, cwd: &str) -> Self {
        Self {
            profile,
            cwd: cwd.to_owned(),
            requests: 0,
            sent: BTreeMap::new(),
            asked: BTreeMap::new(),
            introduced: false,
            opening: Opening::Fresh,
            session: None,
            calls: OpenCalls::default(),
            meter: Meter::default(),
            turn: None,
        }
    }

    fn request(&mut self, what: Sent, method: &str, params: &Value) -> Step {
        self.requests += 1;
        self.sent.insert(self.requests, what);
        Step::Send(wire::request(self.requests, method, params))
    }

    fn open_session(&mut self) -> Vec<Step> {
        let place = json!({ "cwd": self.cwd, "mcpServers": [] });
        match self.opening.clone() {
            Opening::Fresh => vec![self.request(Sent::NewSession, "session/new", &place)],
            Opening::Resume { session } => {
                let mut params = place;
                params["sessionId"] = Value::from(session.as_str());
                self.session = Some(session);
                vec![self.request(Sent::LoadSession, "session/load", &params)]
            }
        }
    }

    fn answered(&mut self, id: u64, result: Result<Value, RpcError>) -> Vec<Step> {
        let Some(what) = self.sent.remove(&id) else { return Vec::new() };
        match (what, result) {
            (Sent::Initialize, Ok(result)) => self.initialized(&result),
            (Sent::NewSession, Ok(result)) => self.session_made(&result),
            (Sent::LoadSession, Ok(result)) => self.in_right_mode(&result),
            (Sent::SetMode, Ok(_)) => self.opened(),
            (Sent::Prompt, result) => self.prompt_answered(&result),
            (Sent::Initialize | Sent::NewSession, Err(error)) => vec![Step::NotOpened(error.outcome())],
            (Sent::LoadSession, Err(error)) => {
                self.session = None;
                vec![Step::NotOpened(TurnOutcome::Crashed { reason: error.message })]
            }
            (Sent::SetMode, Err(error)) => {
                let reason = format!("{} cannot be made to ask before it acts: {}", self.profile.title, error.message);
                vec![Step::NotOpened(TurnOutcome::GuardDead { reason })]
            }
        }
    }

    fn initialized(&mut self, result: &Value) -> Vec<Step> {
        match result["protocolVersion"].as_u64() {
            Some(wire::PROTOCOL_VERSION) => {
                self.introduced = true;
                self.open_session()
            }
            other => {
                let version = other.map_or_else(|| "an unknown version".to_owned(), |version| format!("version {version}"));
                let reason = format!("it speaks {version} of the Agent Client Protocol; Verdone speaks version 1");
                vec![Step::NotOpened(TurnOutcome::NotRunnable { reason })]
            }
        }
    }

    fn session_made(&mut self, result: &Value) -> Vec<Step> {
        let Some(session) = result["sessionId"].as_str() else {
            let reason = "the client started a session without an id".to_owned();
            return vec![Step::NotOpened(TurnOutcome::NotRunnable { reason })];
        };
        self.session = Some(session.to_owned());
        self.in_right_mode(result)
    }

    /// Puts the session into the mode in which the client asks.
    fn in_right_mode(&mut self, result: &Value) -> Vec<Step> {
        match self.profile.mode {
            Some(mode) if result["modes"]["currentModeId"].as_str() != Some(mode) => {
                let params = json!({ "sessionId": self.session, "modeId": mode });
                vec![self.request(Sent::SetMode, "session/set_mode", &params)]
            }
            Some(_) | None => self.opened(),
        }
    }

    fn opened(&mut self) -> Vec<Step> {
        (self.meter, self.turn) = (Meter::default(), None);
        self.calls.clear();
        self.session.iter().map(|session| Step::Opened { session: session.clone() }).collect()
    }

    fn is_loading(&self) -> bool {
        self.sent.values().any(|what| *what == Sent::LoadSession)
    }
}

impl Protocol for Acp {
    fn open(&mut self, opening: &Opening) -> Vec<Step> {
        self.opening = opening.clone();
        if self.introduced {
            return self.open_session();
        }
        vec![self.request(Sent::Initialize, "initialize", &wire::initialize())]
    }

    fn prompt(&mut self, text: &str) -> Vec<Step> {
        let params = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        self.turn = Some(Turn::default());
        self.meter.begin_turn();
        vec![self.request(Sent::Prompt, "session/prompt", &params)]
    }

    fn line(&mut self, line: &[u8], _now: Timestamp) -> Vec<Step> {
        match wire::parse(line) {
            Some(Incoming::Answer { id, result }) => self.answered(id, result),
            Some(Incoming::Request { id, method, params }) if method == "session/request_permission" => {
                self.permission_asked(&id, &params)
            }
            // Files and terminals are the client's own business; opencode asks although we said so, and copes with this answer.
            Some(Incoming::Request { id, .. }) => vec![Step::Send(wire::not_supported(&id))],
            Some(Incoming::Notification { method, params }) => self.notified(&method, &params),
            None => Vec::new(),
        }
    }

    fn answer(&mut self, request: &str, verdict: &Verdict) -> Vec<Step> {
        self.permission_answered(request, verdict)
    }

    fn interrupt(&mut self) -> Vec<Step> {
        if let Some(turn) = &mut self.turn {
            turn.interrupted = true;
        }
        let waiting: Vec<String> = self.asked.keys().cloned().collect();
        let mut steps: Vec<Step> = waiting.iter().flat_map(|request| self.permission_cancelled(request)).collect();
        steps.push(Step::Send(wire::notification("session/cancel", &json!({ "sessionId": self.session }))));
        steps
    }
}

#[cfg(test)]
mod tests;
