//! The agent of a run, from its first turn to the end of the run.

use std::io;
use std::path::Path;
use std::time::Duration;

use verdone_core::agent::{AgentKind, Agents, Driver};
use verdone_core::journal::left_session::Resumable;

use super::{Claude, PipeAgent, TurnRequest, TurnResult, run_client_turn, run_pipe_turn, run_turn};
use crate::guard::Guard;
use crate::process::Moment;
use crate::process::signal::Signals;
use crate::workspace::Place;

#[derive(Debug)]
pub enum RunAgent {
    /// Claude Code: a client that serves many turns.
    Claude(Box<Claude>),
    /// Another client that serves many turns.
    Pipe(Box<PipeAgent>),
    /// A new process for each turn.
    PerTurn,
}

impl RunAgent {
    /// `locks` is the folder of session locks. The guard is only created for a client.
    pub fn new<E>(kind: AgentKind, locks: &Path, guard: impl FnOnce() -> Result<Guard, E>) -> Result<Self, E> {
        Ok(match kind.driver() {
            Driver::Claude => Self::Claude(Box::new(Claude::guarded_by(guard()?, locks))),
            Driver::Pipe => Self::Pipe(Box::new(PipeAgent::guarded_by(guard()?, locks))),
            Driver::Command | Driver::Scripted => Self::PerTurn,
        })
    }

    /// Runs one turn. Agent failures become outcomes; only errors with our own files are returned as errors.
    pub fn turn(
        &mut self,
        request: &TurnRequest<'_>,
        budget: Option<f64>,
        signals: &Signals,
        on: &mut dyn FnMut(Moment<'_>),
    ) -> io::Result<TurnResult> {
        match self {
            Self::Claude(client) => run_client_turn(request, client, budget, signals, on),
            Self::Pipe(client) => run_pipe_turn(request, client, signals, on),
            Self::PerTurn => run_turn(request, signals, on),
        }
    }

    /// Lets the first turn continue this session of an earlier run.
    pub fn resume(&mut self, left: Option<Resumable>) {
        match self {
            Self::Claude(client) => client.resume(left),
            Self::Pipe(client) => client.resume(left),
            Self::PerTurn => {}
        }
    }

    /// Says in which workspace the next turn works.
    pub fn works_in(&mut self, place: &Place) {
        match self {
            Self::Claude(client) => client.works_in(place),
            Self::Pipe(client) => client.works_in(place),
            Self::PerTurn => {}
        }
    }

    /// Records that the last attempt was given up.
    pub fn rejected(&mut self) {
        match self {
            Self::Claude(client) => client.rejected(),
            Self::Pipe(client) => client.rejected(),
            Self::PerTurn => {}
        }
    }

    /// Ends the process, if one is running.
    pub fn end(&mut self, grace: Duration, signals: &Signals) {
        match self {
            Self::Claude(client) => client.end(grace, signals),
            Self::Pipe(client) => client.end(grace, signals),
            Self::PerTurn => {}
        }
    }

    /// Why the next turn starts a fresh session, and the agent's last words in the earlier one. `None` if there is nothing to hand over.
    pub fn handover_to_fresh_session(&self, agents: &Agents, new_attempt: bool) -> Option<(String, &str)> {
        match self {
            Self::Claude(client) => client.handover_to_fresh_session(&agents.claude, new_attempt),
            Self::Pipe(client) => client.handover_to_fresh_session(agents, new_attempt),
            Self::PerTurn => None,
        }
    }

    /// Whether the next turn continues the session of the last one.
    pub fn keeps_session(&self, agents: &Agents, new_attempt: bool) -> bool {
        match self {
            Self::Claude(client) => client.keeps_session(&agents.claude, new_attempt),
            Self::Pipe(client) => client.keeps_session(agents, new_attempt),
            Self::PerTurn => false,
        }
    }
}
