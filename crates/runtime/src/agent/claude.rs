//! Claude Code as the agent of a run: one process for many turns, whose tool calls are judged in this process.
//!
//! The core decides which session a turn uses. This module starts, clears and replaces processes accordingly, and makes sure that the guard
//! was active for every call that ran.

mod after_tool_threads;
mod check;
mod client;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use verdone_core::agent::call_repeats::RepeatedCall;
use verdone_core::agent::claude::{
    Allowance, ContextLimits, ContextUse, Hooks, Launch, Liveness, NextSession, Nonce, Session, Standing, Start, Strength,
    TurnEnd, Uuid, command_line, next_session,
};
use verdone_core::agent::{SessionUse, TurnOutcome};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::config::{ClaudeAgent, HookWay, SessionMode};
use verdone_core::journal::left_session::Resumable;
use verdone_core::policy::ReadOnlyReason;

use self::client::{Client, ClientError, SpawnWith, Turn, TurnAbort, TurnHandlers, TurnLimits};
use super::{TurnRequest, TurnResult, lasting_environment};
use crate::guard::{Guard, LOOKING, TurnOf};
use crate::process::output::{Capture, create_fresh};
use crate::process::signal::Signals;
use crate::process::{FloodLimit, Moment, own_program};
use crate::store::SessionLock;
use crate::workspace::Place;

pub(super) use check::VERSION_TIME;
pub use check::check;

/// A Stop hook that blocked this often never lets the agent stop; the client's default limit is the same.
const MANY_HELD_STOPS: u32 = 8;
const STOP_HOOK_WARNING: &str = "a Stop hook in your Claude Code settings blocks every attempt of the agent to stop, so each turn takes longer \
    and costs more; let it return if `stop_hook_active` is true, or remove it for runs (`/hooks` in Claude Code lists hooks)";

/// The client of a run, from the first turn to the end.
#[derive(Debug, Default)]
pub struct Claude {
    guard: Option<Guard>,
    client: Option<Client>,
    /// What the client was started with.
    strength: Strength,
    /// How hooks reach us. Once determined, it applies to the whole run.
    way: Option<Hooks>,
    context: Option<ContextUse>,
    /// The session remembers edits that were discarded.
    rejected: bool,
    /// The session itself causes the failures.
    spent: bool,
    /// The agent's last words in the most recent session, redacted. `None` before the first turn.
    said: Option<String>,
    /// The session left by an earlier run, until the first turn.
    left: Option<Resumable>,
    /// The folder of session locks, and the lock of the current session. Declared after
    /// the client, so that the lock is released after the client is gone.
    locks: PathBuf,
    lock: Option<SessionLock>,
    /// Set for read-only questions. Hooks that run as separate processes need to know this.
    looking: Option<ReadOnlyReason>,
    /// The JSON schema for the answers.
    schema: Option<String>,
    warned_of_stop_hook: bool,
}

impl Claude {
    /// Without a guard, no turn is run.
    pub fn guarded_by(guard: Guard, locks: &Path) -> Self {
        Self { guard: Some(guard), locks: locks.to_owned(), ..Self::default() }
    }

    /// Lets the first turn continue this session of an earlier run.
    pub fn resume(&mut self, left: Option<Resumable>) {
        self.left = left;
    }

    /// A client for a read-only question, optionally with a schema for the answer. The guard must know that it is read-only.
    pub fn looking(looking: ReadOnlyReason, guard: Guard, locks: &Path, schema: Option<&str>) -> Self {
        Self { looking: Some(looking), schema: schema.map(str::to_owned), ..Self::guarded_by(guard, locks) }
    }

    /// The agent's last words, redacted.
    pub fn said(&self) -> &str {
        self.said.as_deref().unwrap_or_default()
    }

    /// Tells the guard which workspace to judge for.
    pub(crate) fn works_in(&mut self, place: &Place) {
        if let Some(guard) = &mut self.guard {
            guard.works_in(place);
        }
    }

    /// Records that the last attempt was given up.
    pub fn rejected(&mut self) {
        self.rejected = true;
    }

    /// Ends the process, if one is running.
    pub fn end(&mut self, grace: Duration, signals: &Signals) {
        if let Some(client) = self.client.take() {
            client.end(grace, signals);
        }
        self.lock = None;
    }

    /// Whether the running process has another model than the settings ask for. A process keeps its model.
    fn has_another_model_than(&self, config: &ClaudeAgent) -> bool {
        self.client.is_some() && self.strength != config.strength()
    }

    /// Why the next turn starts a fresh session, if it does.
    pub(crate) fn fresh_because(&self, config: &ClaudeAgent, new_attempt: bool) -> Option<String> {
        let left = self.left.as_ref().filter(|_| self.client.is_none());
        let standing = Standing {
            context: left.map_or(self.context, |left| left.context),
            no_session: left.is_none() && self.client.as_ref().is_none_or(Client::is_gone),
            lost: self.said.is_some(),
            rejected: self.rejected,
            spent: self.spent,
            other_model: self.has_another_model_than(config),
            new_attempt,
        };
        match next_session(config.sessions, ContextLimits::from_config(config), &standing) {
            NextSession::Same => None,
            NextSession::Fresh { why } => Some(why),
        }
    }

    /// Whether the next turn continues the session that this run's last turn used.
    pub(crate) fn keeps_session(&self, config: &ClaudeAgent, new_attempt: bool) -> bool {
        self.client.is_some() && self.fresh_because(config, new_attempt).is_none()
    }

    /// What a fresh session must know about the earlier one: why it was replaced and its last words. `None` if there was no earlier
    /// session, or if none of its work is left: every prompt contains the failure anyway.
    pub(crate) fn handover_to_fresh_session(&self, config: &ClaudeAgent, new_attempt: bool) -> Option<(String, &str)> {
        let said = self.said.as_deref().filter(|_| !self.rejected)?;
        let own = new_attempt && config.sessions == SessionMode::Fresh;
        self.fresh_because(config, new_attempt).filter(|_| !own).map(|why| (why, said))
    }

    /// Runs one turn. Agent failures become outcomes; only errors with our own files are returned as errors.
    pub(crate) fn turn(
        &mut self,
        request: &TurnRequest<'_>,
        budget: Option<f64>,
        signals: &Signals,
        on: &mut dyn FnMut(Moment<'_>),
    ) -> io::Result<TurnResult> {
        let mut result = TurnResult::empty();
        let fresh = match self.ready(request, budget, signals, &mut result.notice) {
            Ok(fresh) => fresh,
            Err(outcome) => {
                result.outcome = outcome;
                return Ok(result);
            }
        };
        let (Some(client), Some(guard)) = (&mut self.client, &mut self.guard) else {
            result.outcome = TurnOutcome::GuardDead { reason: "no guard is running".to_owned() };
            return Ok(result);
        };
        guard.begin_turn(TurnOf { iteration: request.iteration, turn: request.place.turn });
        let output_file = format!("outputs/{}.txt", request.number);
        let file = create_fresh(&request.run_dir.join(&output_file))?;
        let limits = request.limits;
        let mut ears = TurnHandlers {
            judge: &|input| guard.judge(input, request.run_dir),
            saw_start: &|session| guard.saw_the_start_of(session),
            hook_failed: &|cause| guard.process_failed(cause),
            on,
            held_up: request.held_up,
            capture: Capture::new(request.redactor, limits.output_bytes, Some(file)),
            flow: FloodLimit::new(),
            redactor: request.redactor,
        };
        let (wall, idle, grace) = (limits.turn_time.limit(), limits.idle_time.limit(), limits.grace.duration());
        let turn_limits = TurnLimits { wall, idle, grace, identical_calls: limits.identical_calls };
        let turn = client.turn(request.prompt, &random_uuid()?, turn_limits, signals, &mut ears);
        let TurnHandlers { on, capture, mut flow, .. } = ears;
        flow.finish(&mut |stream, text| on(Moment::Line { stream, text }));
        result.said = capture.finish(&mut |_, _| {}).text;
        result.output_file = Some(output_file);
        (result.duration, result.leftovers) = (turn.duration, turn.leftovers);
        self.context = turn.context;
        if client.hooks == Hooks::Exec {
            guard.judged_in(client.session.id()).iter().for_each(|call| client.session.judged(call));
        }
        let nonce = match &turn.end {
            _ if client.unguarded => Nonce::Missing,
            Some(end) if end.results > 0 && !guard.saw_the_start_of(client.session.id()) => Nonce::Missing,
            Some(end) if end.results > 0 => Nonce::Seen,
            // It may have ended before the model was asked.
            Some(_) | None => Nonce::NotExpected,
        };
        self.spent = turn.end.as_ref().is_none_or(|end| end.spent);
        self.said = Some(turn.end.as_ref().map_or_else(String::new, |end| request.redactor.redact(&end.said).into_owned()));
        result.claim = self.said.clone().unwrap_or_default();
        let structured = turn.end.as_ref().and_then(|end| end.structured.as_deref());
        result.structured = structured.map(|json| request.redactor.redact(json).into_owned());
        result.usage = turn.end.as_ref().map_or_else(Default::default, |end| end.usage.usage());
        hold(&mut self.lock, &self.locks, client.session.id());
        result.session = Some(SessionUse {
            id: client.session.id().to_owned(),
            fresh,
            tokens: self.context.map(|context| context.tokens),
            window: self.context.and_then(|context| context.window),
            compactions: turn.end.as_ref().map_or(0, |end| end.compactions),
            cut_commands: turn.end.as_ref().map_or(0, TurnEnd::cut_commands),
        });
        result.allowance = client.session.allowance().and_then(Allowance::usage);
        if turn.end.as_ref().is_some_and(|end| end.held_stops >= MANY_HELD_STOPS) && !self.warned_of_stop_hook {
            self.warned_of_stop_hook = true;
            result.notice.get_or_insert_with(|| STOP_HOOK_WARNING.to_owned());
        }
        let liveness = client.session.liveness(nonce);
        if client.is_gone()
            && let Some(client) = self.client.take()
        {
            result.leftovers += client.end(grace, signals);
        }
        // The client's message may contain secrets.
        let clean = |reason: &str| sanitise_line(&request.redactor.redact(reason)).into_owned();
        result.outcome = outcome(turn, liveness, request).with_reason(clean);
        if matches!(result.outcome, TurnOutcome::GuardDead { .. }) {
            self.end(grace, signals);
        }
        Ok(result)
    }

    /// Returns a client with the right session for the turn and, if the session is fresh, the reason.
    fn ready(
        &mut self,
        request: &TurnRequest<'_>,
        budget: Option<f64>,
        signals: &Signals,
        notice: &mut Option<String>,
    ) -> Result<Option<String>, TurnOutcome> {
        let config = &request.agent.claude;
        let left = self.left.clone().filter(|_| self.client.is_none());
        let why = match (self.fresh_because(config, request.place.turn == 1), left) {
            (None, None) => return Ok(None),
            (None, Some(left)) => match self.resume_session(&left, request, budget, signals)? {
                None => {
                    *notice = Some(format!("resumed session {} of the last run", left.id));
                    return Ok(None);
                }
                Some(why) => {
                    *notice = Some(format!("{why}; started a new session"));
                    why
                }
            },
            (Some(why), _) => why,
        };
        self.left = None;
        let uuid = random_uuid().map_err(|error| TurnOutcome::NotRunnable { reason: error.to_string() })?;
        let fits = !self.has_another_model_than(config);
        let cleared = match &mut self.client {
            Some(client) if fits && may_spend(client, budget) => client.clear(&uuid, signals),
            Some(_) | None => false,
        };
        if !cleared {
            self.end(request.limits.grace.duration(), signals);
            let session = random_uuid().map_err(|error| TurnOutcome::NotRunnable { reason: error.to_string() })?;
            hold(&mut self.lock, &self.locks, session.as_str());
            let start = Start::Fresh { session };
            self.client = Some(self.start(&start, request, budget, signals).map_err(not_started)?);
        } else if let Some(client) = &self.client {
            hold(&mut self.lock, &self.locks, client.session.id());
        }
        (self.rejected, self.spent, self.context) = (false, false, None);
        Ok(Some(why))
    }

    /// Resumes a session left by an earlier run, or returns why that failed.
    fn resume_session(
        &mut self,
        left: &Resumable,
        request: &TurnRequest<'_>,
        budget: Option<f64>,
        signals: &Signals,
    ) -> Result<Option<String>, TurnOutcome> {
        self.left = None;
        let cannot = |why: &dyn std::fmt::Display| Ok(Some(format!("session {} cannot be resumed: {why}", left.id)));
        self.lock = match SessionLock::acquire(&self.locks, left.id.as_str()) {
            Ok(Some(lock)) => Some(lock),
            Ok(None) => return cannot(&"another process is using it"),
            Err(error) => return cannot(&error),
        };
        let start = Start::Resume { session: left.id.clone() };
        let mut client = match self.start(&start, request, budget, signals) {
            Ok(client) => client,
            Err(ClientError::Ended(why)) => return cannot(&sanitise_line(&request.redactor.redact(&why))),
            Err(error) => return Err(not_started(error)),
        };
        // Without callbacks, the client has not been asked anything yet. If it does not know the session, it is about to exit.
        client.measure(signals);
        if client.is_gone() {
            let why = client.last_line();
            client.end(request.limits.grace.duration(), signals);
            return cannot(&sanitise_line(&request.redactor.redact(&why)));
        }
        (self.client, self.context) = (Some(client), left.context);
        Ok(None)
    }

    fn start(
        &mut self,
        start: &Start,
        request: &TurnRequest<'_>,
        budget: Option<f64>,
        signals: &Signals,
    ) -> Result<Client, ClientError> {
        let config = &request.agent.claude;
        let program = own_program().map_err(ClientError::Program)?;
        let env = || {
            let env = lasting_environment(request);
            match self.looking {
                Some(looking) => env.with(LOOKING, looking.name()),
                None => env,
            }
        };
        let spawn = || SpawnWith { cwd: request.cwd, inside: request.inside, env: env(), redactor: request.redactor };
        let way = self.way.unwrap_or_else(|| Hooks::first(config.hooks));
        let session = || match start {
            Start::Fresh { session } => Session::fresh(session),
            Start::Resume { session } => Session::resumed(session),
        };
        let begin = |hooks: Hooks| {
            let (start, hook_program) = (start.clone(), &*program.to_string_lossy());
            let (schema, apart) = (self.schema.as_deref(), self.looking == Some(ReadOnlyReason::Judging));
            let tools = request.tools.map(Path::to_string_lossy);
            let tools = tools.as_deref();
            let launch = Launch { config, hooks, start, hook_program, budget_usd: budget, schema, tools, apart };
            Client::start(command_line(&launch), &spawn(), session(), hooks, budget, signals)
        };
        let mut started = begin(way);
        let mut used = way;
        if matches!(started, Err(ClientError::NoCallbacks)) && config.hooks == HookWay::Auto {
            used = Hooks::Exec;
            started = begin(used);
        }
        // A session that cannot be resumed proves nothing about how hooks reach us.
        if !matches!(started, Err(ClientError::Ended(_))) {
            self.way = Some(used);
        }
        self.strength = config.strength();
        started
    }
}

fn not_started(error: ClientError) -> TurnOutcome {
    match error {
        ClientError::Stopped => TurnOutcome::Interrupted,
        ClientError::Ended(reason) => TurnOutcome::Crashed { reason },
        ClientError::Spawn(_) | ClientError::Program(_) | ClientError::Silent | ClientError::NoCallbacks => {
            TurnOutcome::NotRunnable { reason: error.to_string() }
        }
    }
}

/// Locks the session in use. If locking a new session fails, nothing is lost: no other process knows it.
fn hold(lock: &mut Option<SessionLock>, locks: &Path, session: &str) {
    if lock.as_ref().is_none_or(|lock| !lock.is_of(session)) {
        *lock = SessionLock::acquire(locks, session).ok().flatten();
    }
}

/// A cleared session may spend the process's full budget again, so that budget must be close to what is left.
fn may_spend(client: &Client, budget: Option<f64>) -> bool {
    match (client.budget, budget) {
        (Some(given), Some(left)) => left >= given * 0.9,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn outcome(turn: Turn, liveness: Liveness, request: &TurnRequest<'_>) -> TurnOutcome {
    let millis = |span: verdone_core::base::span::Span| span.duration().as_millis() as u64;
    if let Liveness::Dead { why } = liveness {
        return TurnOutcome::GuardDead { reason: why };
    }
    match (turn.cut, turn.end) {
        (Some(TurnAbort::Wall), _) => TurnOutcome::TimedOut { after_ms: millis(request.limits.turn_time) },
        (Some(TurnAbort::Idle), _) => TurnOutcome::Idle { after_ms: millis(request.limits.idle_time) },
        (Some(TurnAbort::Looping(RepeatedCall { call, times })), _) => TurnOutcome::Looping { call, times },
        (Some(TurnAbort::Stopped), _) => TurnOutcome::Interrupted,
        // The hooks have recorded the reason, and what follows is decided from that record.
        (Some(TurnAbort::Asked(_)), _) => TurnOutcome::Ended,
        (None, Some(TurnEnd { outcome, .. })) => outcome,
        (None, None) => TurnOutcome::Crashed { reason: "the client is no longer running".to_owned() },
    }
}

fn random_uuid() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(Uuid::from_random(bytes))
}
