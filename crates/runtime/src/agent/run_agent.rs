//! The agent of a run, from its first turn to the end of the run.

use std::io;
use std::path::Path;
use std::time::Duration;

use verdone_core::agent::{AgentKind, Agents};
use verdone_core::journal::left_session::Resumable;

use super::{Claude, TurnRequest, TurnResult, run_client_turn, run_turn};
use crate::guard::Guard;
use crate::process::Moment;
use crate::process::signal::Signals;
use crate::workspace::Place;

#[derive(Debug)]
pub enum RunAgent {
    /// A client that serves many turns.
    Client(Box<Claude>),
    /// A new process for each turn.
    PerTurn,
}

impl RunAgent {
    /// `locks` is the folder of session locks. The guard is only created for a client.
    pub fn new<E>(kind: AgentKind, locks: &Path, guard: impl FnOnce() -> Result<Guard, E>) -> Result<Self, E> {
        Ok(match kind {
            AgentKind::Claude => Self::Client(Box::new(Claude::guarded_by(guard()?, locks))),
            AgentKind::Command | AgentKind::Scripted => Self::PerTurn,
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
            Self::Client(client) => run_client_turn(request, client, budget, signals, on),
            Self::PerTurn => run_turn(request, signals, on),
        }
    }

    /// Lets the first turn continue this session of an earlier run.
    pub fn resume(&mut self, left: Option<Resumable>) {
        self.client(|client| client.resume(left));
    }

    /// Says in which workspace the next turn works.
    pub fn works_in(&mut self, place: &Place) {
        self.client(|client| client.works_in(place));
    }

    /// Records that the last attempt was given up.
    pub fn rejected(&mut self) {
        self.client(Claude::rejected);
    }

    /// Ends the process, if one is running.
    pub fn end(&mut self, grace: Duration, signals: &Signals) {
        self.client(|client| client.end(grace, signals));
    }

    /// Why the next turn starts a fresh session, and the agent's last words in the earlier one. `None` if there is nothing to hand over.
    pub fn handover_to_fresh_session(&self, agents: &Agents, new_attempt: bool) -> Option<(String, &str)> {
        match self {
            Self::Client(client) => client.handover_to_fresh_session(&agents.claude, new_attempt),
            Self::PerTurn => None,
        }
    }

    /// Whether the next turn continues the session of the last one.
    pub fn keeps_session(&self, agents: &Agents, new_attempt: bool) -> bool {
        match self {
            Self::Client(client) => client.keeps_session(&agents.claude, new_attempt),
            Self::PerTurn => false,
        }
    }

    fn client(&mut self, change: impl FnOnce(&mut Claude)) {
        if let Self::Client(client) = self {
            change(client);
        }
    }
}
