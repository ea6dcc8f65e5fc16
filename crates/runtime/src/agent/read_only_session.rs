//! Asks Claude Code one question, in a separate process and session that is read-only. The answer is data: the caller interprets it and
//! compares the files afterwards.

use std::io;
use std::path::Path;

use verdone_core::agent::Driver;
use verdone_core::config::ClaudePermission;
use verdone_core::hook::SessionTally;
use verdone_core::policy::{ReadOnlyReason, ToolKind, kind_of};

use crate::agent::{Claude, PipeAgent, TurnRequest, TurnResult, run_client_turn, run_pipe_turn, run_turn};
use crate::guard::Guard;
use crate::process::Moment;
use crate::process::signal::Signals;
use crate::project::config_file::SettingsError;
use crate::store::sessions::{run_sessions, session_tally};

/// The question and its context.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// Its folder receives the output. The agent's permission setting is ignored.
    pub(crate) turn: TurnRequest<'a>,
    /// The top of the work tree.
    pub(crate) top: &'a Path,
    /// The run directory that the hooks write to.
    pub(crate) home: &'a Path,
    pub(crate) looking: ReadOnlyReason,
    /// The JSON schema of the answer.
    pub(crate) schema: Option<&'a str>,
    /// The maximum cost.
    pub(crate) budget: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct ReadOnlyAnswer {
    /// `said` contains the agent's last words, without the protocol lines.
    pub(crate) result: TurnResult,
    /// How many calls were denied.
    pub(crate) denied: u32,
    /// Denied tools that write files.
    pub(crate) writes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Question<'_> {
    /// Asks the configured agent. Only a client can be kept from writing; any other agent runs a normal turn.
    pub(crate) fn ask_any(self, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<TurnResult, LookError> {
        match self.turn.agent.name.driver() {
            Driver::Claude => self.ask(signals, on).map(|answer| answer.result),
            Driver::Pipe => self.ask_pipe(signals, on),
            Driver::Command | Driver::Scripted => Ok(run_turn(&self.turn, signals, on)?),
        }
    }

    /// The same for a client that is driven over a pipe.
    fn ask_pipe(self, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<TurnResult, LookError> {
        let guard = Guard::of_looking(self.looking, self.turn.cwd, self.top, self.home)?;
        let mut client = PipeAgent::guarded_by(guard, self.home);
        let result = run_pipe_turn(&self.turn, &mut client, signals, on);
        let said = client.said().to_owned();
        client.end(self.turn.limits.grace.duration(), signals);
        Ok(TurnResult { said, ..result? })
    }

    /// Asks the question, then ends the process. Failures of the client are an outcome of the turn.
    pub(crate) fn ask(self, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<ReadOnlyAnswer, LookError> {
        let mut agent = self.turn.agent.clone();
        // A read-only client needs no permission beyond the guard's, whatever runs are given.
        agent.claude.permission = ClaudePermission::Policy;
        let turn = TurnRequest { agent: &agent, ..self.turn };
        let guard = Guard::of_looking(self.looking, turn.cwd, self.top, self.home)?;
        let mut client = Claude::looking(self.looking, guard, self.home, self.schema);
        let result = run_client_turn(&turn, &mut client, self.budget, signals, on);
        let said = client.said().to_owned();
        client.end(turn.limits.grace.duration(), signals);
        let result = TurnResult { said, ..result? };
        let tally = match &result.session {
            Some(session) => session_tally(&run_sessions(self.home), &session.id)?,
            None => SessionTally::default(),
        };
        let writes = tally.tools.iter().filter(|(tool, seen)| seen.denied > 0 && kind_of(tool) == ToolKind::Write);
        let writes = writes.map(|(tool, _)| tool.clone()).collect();
        Ok(ReadOnlyAnswer { result, denied: u32::try_from(tally.denied).unwrap_or(u32::MAX), writes })
    }
}
