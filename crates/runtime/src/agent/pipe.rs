//! A client that is driven over a pipe, as the agent of a run: one process for many turns, whose protocol is in the core and whose tool
//! calls are judged in this process.

mod after_tool;
mod check;
mod client;
mod judge;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::claude::{ContextUse, NextSession, SessionMode, Standing, next_session};
use verdone_core::agent::protocol::{Opening, denied_before};
use verdone_core::agent::{Agents, SessionUse, TurnOutcome};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::journal::left_session::Resumable;

pub(crate) use self::check::check_codex;
use self::client::{Client, StartError, Turn, TurnAbort, TurnHandlers, TurnLimits};
use self::judge::CallJudge;
use super::{TurnRequest, TurnResult, lasting_environment};
use crate::guard::{Guard, TurnOf};
use crate::process::output::{Capture, create_fresh};
use crate::process::signal::Signals;
use crate::process::{FloodLimit, Moment, Spawn, Stdin};
use crate::store::SessionLock;
use crate::workspace::Place;

/// The client of a run, from the first turn to the end.
#[derive(Debug)]
pub struct PipeAgent {
    guard: Guard,
    client: Option<Client>,
    context: Option<ContextUse>,
    /// The session remembers edits that were discarded.
    rejected: bool,
    /// The session itself causes the failures.
    spent: bool,
    /// The agent's last words in the most recent session, redacted. `None` before the first turn.
    said: Option<String>,
    /// Texts for the next prompt, which the client could not pass on.
    kept: Vec<String>,
    /// The session left by a run that died, until the first turn.
    left: Option<Resumable>,
    locks: PathBuf,
    /// Declared after the client, so that it is released after the client is gone.
    lock: Option<SessionLock>,
}

impl PipeAgent {
    /// `locks` is the folder of session locks.
    pub fn guarded_by(guard: Guard, locks: &Path) -> Self {
        Self {
            guard: guard.without_read_memory(),
            client: None,
            context: None,
            rejected: false,
            spent: false,
            said: None,
            kept: Vec::new(),
            left: None,
            locks: locks.to_owned(),
            lock: None,
        }
    }

    /// Lets the first turn continue this session of an earlier run.
    pub fn resume(&mut self, left: Option<Resumable>) {
        self.left = left;
    }

    /// The agent's last words, redacted.
    pub fn said(&self) -> &str {
        self.said.as_deref().unwrap_or_default()
    }

    /// Tells the guard which workspace to judge for.
    pub(crate) fn works_in(&mut self, place: &Place) {
        self.guard.works_in(place);
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

    fn fresh_because(&self, agents: &Agents, new_attempt: bool) -> Option<String> {
        let left = self.left.as_ref().filter(|_| self.client.is_none());
        let standing = Standing {
            context: left.map_or(self.context, |left| left.context),
            no_session: left.is_none() && self.client.as_ref().is_none_or(Client::is_gone),
            lost: self.said.is_some(),
            rejected: self.rejected,
            spent: self.spent,
            new_attempt,
        };
        let rules = agents.session_rules();
        match next_session(rules.mode, rules.limits, &standing) {
            NextSession::Same => None,
            NextSession::Fresh { why } => Some(why),
        }
    }

    /// What a fresh session must know about the earlier one: why it was replaced and its last words.
    pub(crate) fn handover_to_fresh_session(&self, agents: &Agents, new_attempt: bool) -> Option<(String, &str)> {
        let said = self.said.as_deref().filter(|_| !self.rejected)?;
        let own = new_attempt && agents.session_rules().mode == SessionMode::Fresh;
        self.fresh_because(agents, new_attempt).filter(|_| !own).map(|why| (why, said))
    }

    /// Runs one turn. Agent failures become outcomes; only errors with our own files are returned as errors.
    pub(crate) fn turn(
        &mut self,
        request: &TurnRequest<'_>,
        signals: &Signals,
        on: &mut dyn FnMut(Moment<'_>),
    ) -> io::Result<TurnResult> {
        let mut result = TurnResult::empty();
        let fresh = match self.ready(request, signals, &mut result.notice) {
            Ok(fresh) => fresh,
            Err(outcome) => {
                result.outcome = clean(outcome, request);
                return Ok(result);
            }
        };
        let Some(client) = &mut self.client else {
            result.outcome = TurnOutcome::GuardDead { reason: "no client is running".to_owned() };
            return Ok(result);
        };
        self.guard.begin_turn(TurnOf { iteration: request.iteration, turn: request.place.turn });
        let output_file = format!("outputs/{}.txt", request.number);
        let file = create_fresh(&request.run_dir.join(&output_file))?;
        let limits = request.limits;
        let mut handlers = TurnHandlers {
            judge: CallJudge { guard: &self.guard, run_dir: request.run_dir, cwd: request.cwd },
            on,
            held_up: request.held_up,
            capture: Capture::new(request.redactor, limits.output_bytes, Some(file)),
            flow: FloodLimit::new(),
            redactor: request.redactor,
        };
        let prompt = if self.kept.is_empty() {
            request.prompt.to_owned()
        } else {
            format!("{}\n{}", denied_before(&std::mem::take(&mut self.kept)), request.prompt)
        };
        let (wall, idle, grace) = (limits.turn_time.limit(), limits.idle_time.limit(), limits.grace.duration());
        let mut turn = client.turn(&prompt, TurnLimits { wall, idle, grace }, signals, &mut handlers);
        let TurnHandlers { on, capture, mut flow, .. } = handlers;
        flow.finish(&mut |stream, text| on(Moment::Line { stream, text }));
        result.said = capture.finish(&mut |_, _| {}).text;
        result.output_file = Some(output_file);
        (result.duration, result.leftovers) = (turn.duration, turn.leftovers);
        self.context = turn.context.or(self.context);
        self.spent = turn.end.as_ref().is_none_or(|end| end.spent);
        self.kept = std::mem::take(&mut turn.kept);
        let said = turn.end.as_ref().map_or("", |end| &end.said);
        self.said = Some(request.redactor.redact(said).into_owned());
        result.claim = self.said.clone().unwrap_or_default();
        result.usage = turn.usage;
        hold(&mut self.lock, &self.locks, client.session());
        result.session = Some(SessionUse {
            id: client.session().to_owned(),
            fresh,
            tokens: self.context.map(|context| context.tokens),
            window: self.context.and_then(|context| context.window),
            compactions: turn.compactions,
        });
        result.allowance = turn.allowance.take();
        if client.is_gone()
            && let Some(client) = self.client.take()
        {
            result.leftovers += client.end(grace, signals);
        }
        result.outcome = clean(outcome(turn, request), request);
        if matches!(result.outcome, TurnOutcome::GuardDead { .. }) {
            self.end(grace, signals);
        }
        Ok(result)
    }

    /// Makes sure that a client with the right session is running. Returns why its session is fresh, if it is.
    fn ready(
        &mut self,
        request: &TurnRequest<'_>,
        signals: &Signals,
        notice: &mut Option<String>,
    ) -> Result<Option<String>, TurnOutcome> {
        let left = self.left.clone().filter(|_| self.client.is_none());
        let why = match (self.fresh_because(request.agent, request.place.turn == 1), left) {
            (None, None) => return Ok(None),
            (None, Some(left)) => match self.resume_session(&left, request, signals)? {
                None => {
                    *notice = Some(format!("resumed session {} of the run that died", left.id));
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
        let replaced = match &mut self.client {
            Some(client) => client.open(&Opening::Fresh, signals).is_ok(),
            None => false,
        };
        if !replaced {
            self.end(request.limits.grace.duration(), signals);
            let client = start(request, &Opening::Fresh, signals).map_err(StartError::outcome)?;
            self.client = Some(client);
        }
        if let Some(client) = &self.client {
            hold(&mut self.lock, &self.locks, client.session());
            let judge = CallJudge { guard: &self.guard, run_dir: request.run_dir, cwd: request.cwd };
            judge.session_started(client.session(), if replaced { "clear" } else { "startup" });
        }
        (self.rejected, self.spent, self.context) = (false, false, None);
        // They belong to the conversation that was replaced.
        self.kept.clear();
        Ok(Some(why))
    }

    /// Resumes a session left by an earlier run, or returns why that failed.
    fn resume_session(
        &mut self,
        left: &Resumable,
        request: &TurnRequest<'_>,
        signals: &Signals,
    ) -> Result<Option<String>, TurnOutcome> {
        self.left = None;
        let cannot = |why: &dyn std::fmt::Display| Ok(Some(format!("session {} cannot be resumed: {why}", left.id)));
        self.lock = match SessionLock::acquire(&self.locks, left.id.as_str()) {
            Ok(Some(lock)) => Some(lock),
            Ok(None) => return cannot(&"another process is using it"),
            Err(error) => return cannot(&error),
        };
        let opening = Opening::Resume { session: left.id.as_str().to_owned() };
        match start(request, &opening, signals) {
            Ok(client) => {
                let judge = CallJudge { guard: &self.guard, run_dir: request.run_dir, cwd: request.cwd };
                judge.session_started(client.session(), "resume");
                (self.client, self.context) = (Some(client), left.context);
                Ok(None)
            }
            Err(StartError::Stopped) => Err(TurnOutcome::Interrupted),
            Err(error) => cannot(&sanitise_line(&request.redactor.redact(&error.to_string()))),
        }
    }
}

fn start(request: &TurnRequest<'_>, opening: &Opening, signals: &Signals) -> Result<Client, StartError> {
    let Some(pipe) = request.agent.pipe_client(request.cwd) else {
        return Err(StartError::Unknown { name: request.agent.name.name() });
    };
    let launch = pipe.launch;
    let mut env = lasting_environment(request);
    env.unset.extend(launch.unset.iter().map(Into::into));
    env.set.extend(launch.set.into_iter().map(|(name, value)| (name.into(), value.into())));
    let spawn = Spawn {
        inside: request.inside.cloned(),
        argv: launch.argv.into_iter().map(Into::into).collect(),
        cwd: request.cwd.to_owned(),
        env,
        stdin: Stdin::Null,
        wall: None,
        idle: None,
        grace: Duration::ZERO,
        cap: 0,
        keep: None,
        redactor: request.redactor,
    };
    Client::start(launch.title, &spawn, pipe.protocol, opening, signals)
}

/// Locks the session in use. If locking a new session fails, nothing is lost: no other process knows it.
fn hold(lock: &mut Option<SessionLock>, locks: &Path, session: &str) {
    if lock.as_ref().is_none_or(|lock| !lock.is_of(session)) {
        *lock = SessionLock::acquire(locks, session).ok().flatten();
    }
}

/// The client's message may contain secrets and control sequences.
fn clean(outcome: TurnOutcome, request: &TurnRequest<'_>) -> TurnOutcome {
    outcome.with_reason(|reason| sanitise_line(&request.redactor.redact(reason)).into_owned())
}

fn outcome(turn: Turn, request: &TurnRequest<'_>) -> TurnOutcome {
    let millis = |span: verdone_core::base::span::Span| span.duration().as_millis() as u64;
    match (turn.cut, turn.end) {
        (Some(TurnAbort::Unguarded(reason)), _) => TurnOutcome::GuardDead { reason },
        (Some(TurnAbort::Wall), _) => TurnOutcome::TimedOut { after_ms: millis(request.limits.turn_time) },
        (Some(TurnAbort::Idle), _) => TurnOutcome::Idle { after_ms: millis(request.limits.idle_time) },
        (Some(TurnAbort::Stopped), _) => TurnOutcome::Interrupted,
        // The guard has recorded the reason, and what follows is decided from that record.
        (Some(TurnAbort::Asked), _) => TurnOutcome::Ended,
        // We did not ask for it, so it must count: otherwise a story interrupted again and again would never end.
        (None, Some(end)) if end.outcome == TurnOutcome::Interrupted => {
            TurnOutcome::Crashed { reason: "the client interrupted the turn".to_owned() }
        }
        (None, Some(end)) => end.outcome,
        (None, None) => TurnOutcome::Crashed { reason: "the client is no longer running".to_owned() },
    }
}
