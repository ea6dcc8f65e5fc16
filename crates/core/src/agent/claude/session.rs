//! A session folded from its lines: the current turn, when it ends, its outcome and its usage. Reads no clock.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::context::ContextUse;
use super::guard::{Guard, Liveness, Nonce};
use super::outcome::{Ended, Facts, map};
use super::repeats::Repeats;
use super::reset::from_number;
use super::usage::{Ledger, TurnUsage};
use super::uuid::Uuid;
use super::wire_in::{Assistant, BackgroundTask, ClientLine, ContextAnswer, Init, RateLimit, ResultLine, State, ToolResult};
use crate::agent::call_repeats::RepeatedCall;
use crate::agent::{AllowanceUse, TurnOutcome};

/// The maximum number of unknown line kinds to remember; more would not tell anything new.
const UNKNOWN_KINDS: usize = 20;

/// One conversation with the client, as derived from its lines.
#[derive(Debug, Clone)]
pub struct Session {
    id: String,
    model: Option<String>,
    version: Option<String>,
    permission_mode: Option<String>,
    /// The size of the context in tokens; `None` means unknown, not zero.
    tokens: Option<u64>,
    window: Option<u64>,
    allowance: Option<Allowance>,
    background: Vec<Task>,
    state: Option<State>,
    ledger: Ledger,
    /// The usage of unrequested turns since the last requested one.
    unasked: TurnUsage,
    total: TurnUsage,
    guard: Guard,
    turn: Option<Turn>,
}

/// How the process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientExit {
    /// `exit code 1`, `signal 9`.
    pub how: String,
    /// The end of its standard error output.
    pub last_words: String,
}

/// A finished turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    pub outcome: TurnOutcome,
    /// The session cannot continue: the next turn needs a fresh one.
    pub spent: bool,
    pub session: String,
    /// The agent's last message. A claim.
    pub said: String,
    /// The answer as JSON, if a JSON format was requested and used.
    pub structured: Option<String>,
    /// The client's own reason code for the last end, whether known to us or not.
    pub terminal_reason: Option<String>,
    /// How often the client stopped: subagents and background tasks wake it again.
    pub results: u32,
    pub usage: TurnUsage,
    pub context: Option<ContextUse>,
    /// The tasks that still run in the background.
    pub background: Vec<Task>,
    pub compactions: u32,
    pub api_retries: u32,
    pub executed: u32,
    pub refused: u32,
    /// How often a Stop hook of the user kept the agent from stopping.
    pub held_stops: u32,
    /// The unknown kinds of lines.
    pub unknown: Vec<String>,
    /// The number of lines that could not be parsed.
    pub garbage: u32,
}

impl TurnEnd {
    /// Number of commands that are ended with the turn, although they are not finished.
    pub fn cut_commands(&self) -> u32 {
        u32::try_from(self.background.iter().filter(|task| !task.agent).count()).unwrap_or(u32::MAX)
    }
}

/// A command or subagent in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    pub description: String,
    /// A subagent, which wakes the session when it ends.
    pub agent: bool,
}

/// The client's last report on the user's allowance.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    pub rejected: bool,
    /// The fullest window: `five_hour`, `seven_day`, ...
    pub kind: String,
    /// The used share of that window, from 0 to 1.
    pub utilization: Option<f64>,
    pub resets_at: Option<Timestamp>,
}

impl Allowance {
    /// The form stored in events; `None` if the used share or the reset time is unknown.
    #[expect(clippy::cast_sign_loss, reason = "less than nothing becomes nothing")]
    pub fn usage(&self) -> Option<AllowanceUse> {
        let share = self.utilization.filter(|share| share.is_finite())?;
        Some(AllowanceUse { window: self.kind.clone(), percent: (share * 100.0 + 1e-6) as u32, resets_at: self.resets_at? })
    }
}

#[derive(Debug, Clone, Default)]
struct Turn {
    /// Prompts without a result so far.
    waiting: BTreeSet<String>,
    interrupting: bool,
    /// The last result that was not a normal end, if any.
    trouble: Option<Ended>,
    api_error: Option<String>,
    /// The allowance was used up in this turn.
    rejected: bool,
    resets_at: Option<u64>,
    said: String,
    structured: Option<String>,
    terminal_reason: Option<String>,
    results: u32,
    usage: TurnUsage,
    compactions: u32,
    api_retries: u32,
    executed: u32,
    refused: u32,
    repeats: Repeats,
    unknown: BTreeSet<String>,
    garbage: u32,
}

impl Session {
    /// In a process that starts the session.
    pub fn fresh(id: &Uuid) -> Self {
        Self::with(id, Ledger::fresh())
    }

    /// In a process that resumes the session.
    pub fn resumed(id: &Uuid) -> Self {
        Self::with(id, Ledger::resumed())
    }

    fn with(id: &Uuid, ledger: Ledger) -> Self {
        Self {
            id: id.as_str().to_owned(),
            model: None,
            version: None,
            permission_mode: None,
            tokens: None,
            window: None,
            allowance: None,
            background: Vec::new(),
            state: None,
            ledger,
            unasked: TurnUsage::default(),
            total: TurnUsage::default(),
            guard: Guard::default(),
            turn: None,
        }
    }

    /// The id for resuming the session; it changes after a clear.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub fn permission_mode(&self) -> Option<&str> {
        self.permission_mode.as_deref()
    }

    pub fn context(&self) -> Option<ContextUse> {
        self.tokens.map(|tokens| ContextUse { tokens, window: self.window })
    }

    pub fn allowance(&self) -> Option<&Allowance> {
        self.allowance.as_ref()
    }

    pub fn background(&self) -> &[Task] {
        &self.background
    }

    /// The usage of all turns of this process, across clears.
    pub fn total(&self) -> &TurnUsage {
        &self.total
    }

    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether every prompt has its result, even if the client has not reported that it is idle.
    pub fn is_answered(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_answered)
    }

    /// The latest tool call of the turn that was made several times in a row.
    pub fn repeated_call(&self) -> Option<&RepeatedCall> {
        self.turn.as_ref()?.repeats.call.as_ref()
    }

    /// Records that this prompt, or `/clear`, was sent. It starts a turn or joins the current one.
    pub fn sent(&mut self, uuid: &Uuid) {
        self.turn.get_or_insert_default().waiting.insert(uuid.as_str().to_owned());
    }

    /// Records that we asked the client to end the turn.
    pub fn interrupt(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.interrupting = true;
        }
    }

    /// Records that our guard answered for this tool call.
    pub fn judged(&mut self, tool_use_id: &str) {
        self.guard.judge(tool_use_id);
    }

    pub fn liveness(&self, nonce: Nonce) -> Liveness {
        self.guard.liveness(nonce)
    }

    /// Applies the answer to `get_context_usage`, which replaces the value derived from the stream.
    pub fn measured(&mut self, answer: &ContextAnswer<'_>) {
        if let Some(seen) = ContextUse::answered(answer) {
            self.tokens = Some(seen.tokens);
            self.window = seen.window.or(self.window);
        }
    }

    /// Processes one line. Returns the turn's end if the line ended it.
    pub fn feed(&mut self, line: &ClientLine<'_>, now: Timestamp) -> Option<TurnEnd> {
        match line {
            ClientLine::Init(init) => self.init(init),
            ClientLine::Assistant(assistant) => self.assistant(assistant),
            ClientLine::User(user) => self.tool_results(&user.tool_results),
            ClientLine::Result(result) => self.result(result, now),
            ClientLine::RateLimit(limit) => self.rate_limit(limit, now),
            ClientLine::StateChanged(state) => self.state = Some(*state),
            ClientLine::Lifecycle { uuid, state } => self.lifecycle(uuid, state),
            ClientLine::ApiRetry(_) => self.count(|turn| turn.api_retries += 1),
            ClientLine::Compacted(compaction) => self.compacted(compaction.post_tokens),
            ClientLine::ConversationReset { .. } => self.cleared(),
            ClientLine::PermissionDenied(denial) => self.guard.client_refused(denial.tool_use_id.as_deref().unwrap_or_default()),
            ClientLine::BackgroundTasks(tasks) => self.background = tasks.iter().map(task).collect(),
            ClientLine::Unknown { kind } => self.count(|turn| {
                if turn.unknown.len() < UNKNOWN_KINDS {
                    turn.unknown.insert(kind.clone());
                }
            }),
            ClientLine::Garbage { .. } => self.count(|turn| turn.garbage += 1),
            ClientLine::HookCallback(callback) => self.count(|turn| turn.repeats.see_hook(callback)),
            ClientLine::ControlRequest { .. }
            | ClientLine::ControlCancel { .. }
            | ClientLine::ControlAnswer(_)
            | ClientLine::Status { .. }
            | ClientLine::Informational { .. }
            | ClientLine::Task { .. }
            | ClientLine::StreamEvent
            | ClientLine::HookStarted { .. }
            | ClientLine::HookResponse { .. } => {}
        }
        self.is_over().then(|| self.end()).flatten()
    }

    /// The process ended, which also ends the current turn, if any.
    pub fn exited(&mut self, exit: &ClientExit) -> Option<TurnEnd> {
        let turn = self.turn.as_mut()?;
        if !turn.is_answered() {
            let last = exit.last_words.trim().lines().next_back().map(str::trim).filter(|line| !line.is_empty());
            let reason = last.map_or_else(|| exit.how.clone(), |last| format!("{}: {last}", exit.how));
            let outcome = if turn.interrupting { TurnOutcome::Interrupted } else { TurnOutcome::Crashed { reason } };
            turn.trouble = Some(Ended { outcome, spent: false });
        }
        self.background.clear();
        self.end()
    }

    fn init(&mut self, init: &Init<'_>) {
        let keep = |slot: &mut Option<String>, text: &Option<std::borrow::Cow<'_, str>>| {
            if let Some(text) = text {
                *slot = Some(text.to_string());
            }
        };
        keep(&mut self.model, &init.model);
        keep(&mut self.version, &init.claude_code_version);
        keep(&mut self.permission_mode, &init.permission_mode);
        self.renamed(init.session_id.as_deref());
    }

    fn renamed(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| !id.is_empty() && *id != self.id) {
            id.clone_into(&mut self.id);
        }
    }

    fn assistant(&mut self, assistant: &Assistant<'_>) {
        if let Some(error) = assistant.error.as_deref() {
            self.count(|turn| turn.api_error = Some(error.to_owned()));
        }
        self.count(|turn| turn.repeats.see_calls(assistant));
        let tokens = assistant.message.usage.context();
        let main = assistant.parent_tool_use_id.is_none() && assistant.message.model.as_deref() != Some("<synthetic>");
        if main && tokens > 0 {
            self.tokens = Some(tokens);
        }
    }

    fn tool_results(&mut self, results: &[ToolResult<'_>]) {
        for result in results {
            if result.refused.is_some() {
                self.guard.client_refused(&result.id);
                self.count(|turn| turn.refused += 1);
            } else {
                self.guard.client_executed(&result.id);
                self.count(|turn| turn.executed += 1);
            }
        }
    }

    fn result(&mut self, result: &ResultLine<'_>, now: Timestamp) {
        self.renamed(result.session_id.as_deref());
        for denial in &result.permission_denials {
            self.guard.client_refused(denial.tool_use_id.as_deref().unwrap_or_default());
        }
        self.window = window(result, self.model.as_deref()).or(self.window);
        let used = self.ledger.usage_since_last_result(result);
        self.total.add(&used);
        match &mut self.turn {
            Some(turn) => turn.result(result, &used, now),
            None => self.unasked.add(&used),
        }
    }

    fn rate_limit(&mut self, limit: &RateLimit<'_>, now: Timestamp) {
        let rejected = limit.status.as_deref() == Some("rejected");
        let told = limit.windows.iter().filter_map(|(name, window)| Some((name, window.utilization?, window.resets_at)));
        let fullest = told.max_by(|one, other| one.1.total_cmp(&other.1));
        let named = limit.kind.as_deref().unwrap_or_default();
        // The general values refer to the window that the line names.
        let (kind, resets) = match fullest {
            Some((name, _, resets)) if resets.is_some() || name.as_ref() != named => (name.as_ref(), resets),
            Some(_) | None => (named, limit.resets_at),
        };
        self.allowance = Some(Allowance {
            rejected,
            kind: kind.to_owned(),
            utilization: fullest.map(|(_, share, _)| share),
            resets_at: resets.and_then(|number| from_number(number, now)),
        });
        if rejected {
            self.count(|turn| (turn.rejected, turn.resets_at) = (true, limit.resets_at));
        }
    }

    fn lifecycle(&mut self, uuid: &str, state: &str) {
        if matches!(state, "completed" | "cancelled") {
            self.count(|turn| {
                turn.waiting.remove(uuid);
            });
        }
    }

    fn compacted(&mut self, left: Option<u64>) {
        self.count(|turn| turn.compactions += 1);
        self.tokens = left.or(self.tokens);
    }

    fn cleared(&mut self) {
        self.ledger.cleared();
        self.tokens = Some(0);
    }

    fn count(&mut self, change: impl FnOnce(&mut Turn)) {
        if let Some(turn) = &mut self.turn {
            change(turn);
        }
    }

    /// If the client never reports its state, the turn is over with its result, unless a subagent will wake the client.
    fn is_over(&self) -> bool {
        self.is_answered()
            && match self.state {
                Some(State::Idle) => true,
                Some(State::Running | State::RequiresAction | State::Other) => false,
                None => !self.background.iter().any(|task| task.agent),
            }
    }

    fn end(&mut self) -> Option<TurnEnd> {
        let turn = self.turn.take()?;
        let mut usage = turn.usage;
        usage.add(&std::mem::take(&mut self.unasked));
        let Ended { outcome, spent } = turn.trouble.unwrap_or(Ended { outcome: TurnOutcome::Ended, spent: false });
        Some(TurnEnd {
            outcome,
            spent,
            session: self.id.clone(),
            said: turn.said,
            structured: turn.structured,
            terminal_reason: turn.terminal_reason,
            results: turn.results,
            usage,
            context: self.context(),
            background: self.background.clone(),
            compactions: turn.compactions,
            api_retries: turn.api_retries,
            executed: turn.executed,
            refused: turn.refused,
            held_stops: turn.repeats.held_stops,
            unknown: turn.unknown.into_iter().collect(),
            garbage: turn.garbage,
        })
    }
}

impl Turn {
    fn is_answered(&self) -> bool {
        self.waiting.is_empty() && self.results > 0
    }

    fn result(&mut self, result: &ResultLine<'_>, used: &TurnUsage, now: Timestamp) {
        let facts = Facts {
            api_error: self.api_error.as_deref(),
            rejected: self.rejected,
            resets_at: self.resets_at,
            interrupting: self.interrupting,
            now,
        };
        let ended = map(result, &facts);
        if ended.outcome != TurnOutcome::Ended || ended.spent {
            self.trouble = Some(ended);
        }
        // An error belongs to the result that it led to.
        self.api_error = None;
        self.results += 1;
        self.usage.add(used);
        self.terminal_reason = result.terminal_reason.as_deref().map(str::to_owned);
        // Errors are in the outcome; this is only the agent's own text.
        if let Some(words) = result.result.as_deref().filter(|words| !result.is_error && !words.trim().is_empty()) {
            words.clone_into(&mut self.said);
        }
        // Only from the last result: further work invalidates an earlier one.
        self.structured = result.structured_output.filter(|_| !result.is_error).map(|json| json.get().to_owned());
        let named = result.user_message_uuids.iter().chain(&result.user_message_uuid);
        if named.clone().next().is_some() {
            named.for_each(|uuid| {
                self.waiting.remove(uuid.as_ref());
            });
        } else if result.origin.kind.is_none() {
            // A client that names no prompts answers all of them, one turn at a time.
            self.waiting.clear();
        }
    }
}

/// The context window of the session's model. If the model is unknown, the smallest one, which is safe.
fn window(result: &ResultLine<'_>, model: Option<&str>) -> Option<u64> {
    let own = result.model_usage.iter().find(|(name, _)| Some(name.as_ref()) == model);
    let smallest = || result.model_usage.iter().filter_map(|(_, usage)| usage.context_window).min();
    own.and_then(|(_, usage)| usage.context_window).or_else(smallest).filter(|window| *window > 0)
}

fn task(task: &BackgroundTask<'_>) -> Task {
    Task {
        id: task.task_id.as_deref().unwrap_or_default().to_owned(),
        description: task.description.as_deref().unwrap_or_default().to_owned(),
        agent: task.task_type.as_deref().is_some_and(|kind| kind.contains("agent")),
    }
}

#[cfg(test)]
mod tests;
