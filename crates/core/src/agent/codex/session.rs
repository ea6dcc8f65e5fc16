//! A conversation with `codex app-server`, folded from its lines.

mod messages;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use self::messages::{Message, Request, parse};
use super::approval::{about_command, about_edit, about_mcp, calls_of, finished};
use super::outcome::{failure, reason};
use super::settings::CodexAgent;
use crate::agent::claude::ContextUse;
use crate::agent::protocol::{GuardedCall, Opening, PermissionRequest, Protocol, Step, TurnEnd, Verdict};
use crate::agent::{AllowanceUse, TurnOutcome, Usage};

/// The policy under which Codex asks about every command and every edit.
const ASK_ALWAYS: &str = "untrusted";

/// The protocol of one process.
#[derive(Debug)]
pub struct Codex {
    cwd: String,
    model: Option<String>,
    effort: Option<String>,
    requests: u64,
    /// Our requests without an answer.
    waiting: BTreeMap<u64, Waiting>,
    greeted: bool,
    opening: Option<Opening>,
    thread: Option<String>,
    turn: Option<Turn>,
    /// The calls of items that have started and not ended.
    started: BTreeMap<String, Vec<GuardedCall>>,
    /// Which form the answer to a request has.
    asked: BTreeMap<String, OpenQuestion>,
    /// Tokens of the whole thread at the last report.
    total: u64,
    allowance: Option<AllowanceUse>,
}

/// What an answer of the client belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiting {
    Greeting,
    Thread {
        resumed: bool,
    },
    TurnStart,
    /// A text for the agent. If it comes too late, the next prompt has what is kept.
    Steering {
        kept: Option<String>,
    },
    /// Nothing follows from the answer.
    Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenQuestion {
    /// With the ids of the calls.
    Approval {
        items: Vec<String>,
    },
    Elicitation {
        items: Vec<String>,
    },
}

/// The turn in progress.
#[derive(Debug, Default)]
struct Turn {
    id: Option<String>,
    said: String,
    tokens: u64,
    /// Items that were allowed, and items that were denied.
    allowed: BTreeSet<String>,
    denied: BTreeSet<String>,
    /// An interrupt that waits for the turn's id.
    interrupt: bool,
}

impl Codex {
    pub fn new(config: &CodexAgent, cwd: &str) -> Self {
        Self {
            cwd: cwd.to_owned(),
            model: config.model.clone(),
            effort: config.effort.clone(),
            requests: 0,
            waiting: BTreeMap::new(),
            greeted: false,
            opening: None,
            thread: None,
            turn: None,
            started: BTreeMap::new(),
            asked: BTreeMap::new(),
            total: 0,
            allowance: None,
        }
    }

    fn request(&mut self, request: &Request<'_>, waiting: Waiting) -> Step {
        self.requests += 1;
        self.waiting.insert(self.requests, waiting);
        Step::Send(request.line(self.requests))
    }

    fn open_thread(&mut self) -> Vec<Step> {
        let Some(opening) = self.opening.take() else { return Vec::new() };
        let (cwd, model) = (self.cwd.clone(), self.model.clone());
        let (resumed, session) = match &opening {
            Opening::Fresh => (false, None),
            Opening::Resume { session } => (true, Some(session.as_str())),
        };
        let request = Request::Thread { session, cwd: &cwd, policy: ASK_ALWAYS, model: model.as_deref() };
        vec![self.request(&request, Waiting::Thread { resumed })]
    }

    fn answered(&mut self, id: u64, result: Result<&Value, &Value>) -> Vec<Step> {
        match (self.waiting.remove(&id), result) {
            (Some(Waiting::Greeting), Ok(_)) => {
                self.greeted = true;
                let mut steps = vec![Step::Send(messages::initialized())];
                steps.extend(self.open_thread());
                steps
            }
            (Some(Waiting::Greeting), Err(error)) => {
                vec![not_opened(format!("codex app-server refused to start: {}", reason(error)))]
            }
            (Some(Waiting::Thread { .. }), Ok(result)) => self.thread_opened(result),
            (Some(Waiting::Thread { resumed }), Err(error)) => vec![thread_refused(error, resumed)],
            (Some(Waiting::TurnStart), Ok(result)) => self.turn_known(result["turn"]["id"].as_str()),
            (Some(Waiting::TurnStart), Err(error)) => {
                let failure = failure(error, None);
                self.turn = None;
                vec![Step::TurnOver(Box::new(TurnEnd { spent: true, ..TurnEnd::with_outcome(failure.outcome) }))]
            }
            (Some(Waiting::Steering { kept }), Err(_)) => kept.map(Step::Keep).into_iter().collect(),
            (Some(Waiting::Steering { .. } | Waiting::Ignored) | None, _) => Vec::new(),
        }
    }

    /// A client that does not ask about every command cannot be guarded, so its session is not used.
    fn thread_opened(&mut self, result: &Value) -> Vec<Step> {
        let policy = result["approvalPolicy"].as_str().unwrap_or("none");
        if policy != ASK_ALWAYS {
            return vec![not_opened(unguardable(&format!("it uses the approval policy {policy:?} instead")))];
        }
        let Some(id) = result["thread"]["id"].as_str() else {
            return vec![not_opened("codex app-server opened a thread without an id".to_owned())];
        };
        self.thread = Some(id.to_owned());
        self.total = 0;
        vec![Step::Opened { session: id.to_owned() }]
    }

    fn turn_known(&mut self, id: Option<&str>) -> Vec<Step> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        if turn.id.is_none() {
            turn.id = id.map(str::to_owned);
        }
        if turn.id.is_some() && std::mem::take(&mut turn.interrupt) { self.interrupt() } else { Vec::new() }
    }

    /// Adds a text to the turn in progress.
    fn steer(&mut self, text: &str, kept: Option<String>) -> Vec<Step> {
        let thread = self.thread.clone().unwrap_or_default();
        let Some(turn) = self.turn.as_ref().and_then(|turn| turn.id.clone()) else {
            return kept.map(Step::Keep).into_iter().collect();
        };
        vec![self.request(&Request::Steer { thread: &thread, turn: &turn, text }, Waiting::Steering { kept })]
    }

    /// Whether a notification belongs to the open thread. Subagents have threads of their own.
    fn is_ours(&self, params: &Value) -> bool {
        params["threadId"].as_str().is_none_or(|thread| self.thread.as_deref() == Some(thread))
    }

    fn notified(&mut self, method: &str, params: &Value, now: Timestamp) -> Vec<Step> {
        match method {
            "item/started" => self.item_started(&params["item"]),
            "item/completed" => self.item_completed(&params["item"], self.is_ours(params)),
            "item/commandExecution/terminalInteraction" => typed(params),
            "account/rateLimits/updated" => self.limits(&params["rateLimits"], now),
            _ if !self.is_ours(params) => Vec::new(),
            "turn/started" => self.turn_known(params["turn"]["id"].as_str()),
            "thread/tokenUsage/updated" => self.used(params),
            "error" if params["willRetry"].as_bool() == Some(true) => vec![Step::Said(reason(&params["error"]))],
            "turn/completed" => self.turn_completed(&params["turn"]),
            _ => Vec::new(),
        }
    }

    fn item_started(&mut self, item: &Value) -> Vec<Step> {
        let calls = calls_of(item);
        if let (Some(id), false) = (item["id"].as_str(), calls.is_empty()) {
            self.started.insert(id.to_owned(), calls);
        }
        Vec::new()
    }

    fn item_completed(&mut self, item: &Value, ours: bool) -> Vec<Step> {
        let id = item["id"].as_str().unwrap_or_default();
        self.started.remove(id);
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" if ours => {
                let text = item["text"].as_str().unwrap_or_default().to_owned();
                if let Some(turn) = self.turn.as_mut().filter(|_| !text.trim().is_empty()) {
                    turn.said.clone_from(&text);
                }
                vec![Step::Said(text)]
            }
            "contextCompaction" if ours => vec![Step::Compacted],
            _ => self.call_ended(id, item),
        }
    }

    fn call_ended(&mut self, id: &str, item: &Value) -> Vec<Step> {
        let is = |set: fn(&Turn) -> &BTreeSet<String>| self.turn.as_ref().is_some_and(|turn| set(turn).contains(id));
        let (allowed, denied) = (is(|turn| &turn.allowed), is(|turn| &turn.denied));
        let Some(finished) = finished(item).filter(|_| !denied) else { return Vec::new() };
        let unasked = finished.iter().filter(|_| !allowed).map(|ended| Step::Unasked(ended.call.clone()));
        unasked.chain(finished.iter().cloned().map(Step::Finished)).collect()
    }

    fn used(&mut self, params: &Value) -> Vec<Step> {
        let usage = &params["tokenUsage"];
        let number = |value: &Value| value["totalTokens"].as_u64();
        let (total, last) = (number(&usage["total"]).unwrap_or(self.total), number(&usage["last"]));
        // A resumed thread first repeats its last report, under the id of an earlier turn.
        let turn = self.turn.as_mut().filter(|turn| turn.id.as_deref().is_some_and(|id| params["turnId"].as_str() == Some(id)));
        if let Some(turn) = turn {
            turn.tokens = turn.tokens.saturating_add(total.saturating_sub(self.total));
        }
        self.total = total;
        let window = usage["modelContextWindow"].as_u64().filter(|window| *window > 0);
        last.map(|tokens| Step::Context(ContextUse { tokens, window })).into_iter().collect()
    }

    /// The fullest window. Reports without windows say nothing.
    fn limits(&mut self, limits: &Value, now: Timestamp) -> Vec<Step> {
        let windows = [("primary", &limits["primary"]), ("secondary", &limits["secondary"])];
        let full = windows.into_iter().filter_map(|(name, window)| {
            let percent = window["usedPercent"].as_f64().filter(|percent| percent.is_finite())?;
            let resets_at = Timestamp::from_second(window["resetsAt"].as_i64()?).ok().filter(|at| *at > now)?;
            let window = window["windowDurationMins"].as_u64().map_or_else(|| name.to_owned(), window_name);
            Some(AllowanceUse { window, percent: whole_percent(percent), resets_at })
        });
        let fullest = full.max_by_key(|window| (window.percent, window.resets_at));
        if fullest.is_some() {
            self.allowance.clone_from(&fullest);
        }
        fullest.map(Step::Allowance).into_iter().collect()
    }

    fn turn_completed(&mut self, ended: &Value) -> Vec<Step> {
        let id = ended["id"].as_str();
        if self.turn.as_ref().is_none_or(|turn| turn.id.is_some() && turn.id.as_deref() != id) {
            return Vec::new();
        }
        let turn = self.turn.take().unwrap_or_default();
        self.started.clear();
        self.asked.clear();
        let resets_at = self.allowance.as_ref().filter(|allowance| allowance.percent >= 100).map(|allowance| allowance.resets_at);
        let (outcome, spent) = match ended["status"].as_str().unwrap_or_default() {
            "completed" => (TurnOutcome::Ended, false),
            "interrupted" => (TurnOutcome::Interrupted, false),
            _ => {
                let failure = failure(&ended["error"], resets_at);
                (failure.outcome, failure.spent)
            }
        };
        let usage = Usage { tokens: Some(turn.tokens), ..Usage::default() };
        vec![Step::TurnOver(Box::new(TurnEnd { outcome, usage, said: turn.said, spent, by_denial: false }))]
    }

    /// A request of the client. Everything that is not understood is refused.
    fn requested(&mut self, method: &str, request: String, params: &Value) -> Vec<Step> {
        let question = match method {
            "item/commandExecution/requestApproval" => Some(about_command(request.clone(), params)),
            "item/fileChange/requestApproval" => {
                let item = params["itemId"].as_str().unwrap_or_default();
                Some(about_edit(request.clone(), self.started.get(item)))
            }
            "mcpServer/elicitation/request" => {
                let calls = || self.started.values().flatten();
                let server = format!("mcp__{}__", params["serverName"].as_str().unwrap_or_default());
                let last = calls().rfind(|call| call.tool.starts_with(&server));
                about_mcp(request.clone(), params, last)
            }
            _ => None,
        };
        let Some(question) = question else { return vec![Step::Send(messages::refusal(&request))] };
        let items = items_of(&question, params);
        let asked = match method {
            "mcpServer/elicitation/request" => OpenQuestion::Elicitation { items },
            _ => OpenQuestion::Approval { items },
        };
        self.asked.insert(request, asked);
        vec![Step::Ask(question)]
    }
}

fn items_of(question: &PermissionRequest, params: &Value) -> Vec<String> {
    let named = params["itemId"].as_str().map(str::to_owned);
    question.calls.iter().map(|call| call.id.clone()).chain(named).collect()
}

/// Text typed into a running command, which Codex does not ask about.
fn typed(params: &Value) -> Vec<Step> {
    let text = params["stdin"].as_str().unwrap_or_default();
    if text.trim().is_empty() {
        return Vec::new();
    }
    let id = params["itemId"].as_str().unwrap_or_default();
    vec![Step::Unasked(GuardedCall::command(id, text, None))]
}

#[expect(clippy::cast_sign_loss, reason = "less than nothing becomes nothing")]
fn whole_percent(percent: f64) -> u32 {
    percent.clamp(0.0, 1_000.0) as u32
}

fn window_name(minutes: u64) -> String {
    match minutes {
        0..=60 => format!("{minutes}-minute"),
        61..=2_880 => format!("{}-hour", minutes / 60),
        _ => format!("{}-day", minutes / 1_440),
    }
}

fn not_opened(reason: String) -> Step {
    Step::NotOpened(TurnOutcome::NotRunnable { reason })
}

fn thread_refused(error: &Value, resumed: bool) -> Step {
    let why = reason(error);
    let about_policy = why.contains(ASK_ALWAYS) || why.to_ascii_lowercase().contains("approval");
    match (about_policy, resumed) {
        (true, _) => not_opened(unguardable(&why)),
        (false, true) => Step::NotOpened(TurnOutcome::Crashed { reason: why }),
        (false, false) => not_opened(format!("codex app-server opened no thread: {why}")),
    }
}

fn unguardable(why: &str) -> String {
    format!(
        "this version of Codex does not accept the approval policy {ASK_ALWAYS:?}, so Verdone could not judge its commands: {why}; \
         use Codex {}",
        super::TESTED
    )
}

impl Protocol for Codex {
    fn open(&mut self, opening: &Opening) -> Vec<Step> {
        self.opening = Some(opening.clone());
        (self.thread, self.turn) = (None, None);
        if self.greeted {
            return self.open_thread();
        }
        vec![self.request(&Request::Initialize, Waiting::Greeting)]
    }

    fn prompt(&mut self, text: &str) -> Vec<Step> {
        let thread = self.thread.clone().unwrap_or_default();
        let (model, effort) = (self.model.clone(), self.effort.clone());
        self.turn = Some(Turn::default());
        let request = Request::TurnStart { thread: &thread, text, model: model.as_deref(), effort: effort.as_deref() };
        vec![self.request(&request, Waiting::TurnStart)]
    }

    fn line(&mut self, line: &[u8], now: Timestamp) -> Vec<Step> {
        match parse(line) {
            Some(Message::Answer { id, result }) => self.answered(id, result.as_ref()),
            Some(Message::Notification { method, params }) => self.notified(&method, &params, now),
            Some(Message::Request { method, id, params }) => self.requested(&method, id, &params),
            None => Vec::new(),
        }
    }

    fn answer(&mut self, request: &str, verdict: &Verdict) -> Vec<Step> {
        let Some(asked) = self.asked.remove(request) else { return Vec::new() };
        let (OpenQuestion::Approval { items } | OpenQuestion::Elicitation { items }) = &asked;
        if let Some(turn) = &mut self.turn {
            let set = if *verdict == Verdict::Allow { &mut turn.allowed } else { &mut turn.denied };
            set.extend(items.iter().cloned());
        }
        let line = match asked {
            OpenQuestion::Approval { .. } => messages::approval(request, verdict),
            OpenQuestion::Elicitation { .. } => messages::elicitation(request, verdict),
        };
        let mut steps = Vec::new();
        // The answer itself has no place for a reason. The reason comes first, so that the model's next request has it in most cases.
        if let Verdict::Deny { reason } = verdict {
            steps.extend(self.steer(reason, Some(reason.clone())));
        }
        steps.push(Step::Send(line));
        steps
    }

    fn inform(&mut self, text: &str) -> Vec<Step> {
        self.steer(text, None)
    }

    fn interrupt(&mut self) -> Vec<Step> {
        let thread = self.thread.clone().unwrap_or_default();
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let Some(id) = turn.id.clone() else {
            turn.interrupt = true;
            return Vec::new();
        };
        // The interrupt alone lets a running command continue.
        let interrupt = self.request(&Request::Interrupt { thread: &thread, turn: &id }, Waiting::Ignored);
        vec![interrupt, self.request(&Request::EndCommands { thread: &thread }, Waiting::Ignored)]
    }
}

#[cfg(test)]
mod tests;
