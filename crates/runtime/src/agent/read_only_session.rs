//! One question to Claude Code, in a process and a session of its own that may look and not touch. What comes back is data: who asks
//! decides what it means, and looks at the files afterwards.

use std::io;
use std::path::Path;

use verdone_core::config::ClaudePermission;
use verdone_core::hook::SessionTally;
use verdone_core::policy::{Looking, ToolKind, kind_of};

use crate::agent::{Claude, TurnRequest, TurnResult, run_client_turn};
use crate::hook::Guard;
use crate::process::Moment;
use crate::process::signal::Signals;
use crate::project::config_file::SettingsError;
use crate::store::sessions::{run_sessions, session_tally};

/// What is asked, and by whom.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// Its folder gets what is said; its agent's permission does not count.
    pub(crate) turn: TurnRequest<'a>,
    /// Of the work tree.
    pub(crate) top: &'a Path,
    /// The directory of the run that the hooks write into.
    pub(crate) home: &'a Path,
    pub(crate) looking: Looking,
    /// What the answer has to look like, as a JSON schema.
    pub(crate) schema: Option<&'a str>,
    /// The most that it may cost.
    pub(crate) budget: Option<f64>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Looked {
    /// `said` has the agent's last words, and not the lines of the protocol.
    pub(crate) result: TurnResult,
    /// Calls that were denied.
    pub(crate) denied: u32,
    /// The tools among them that write files.
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
    /// Asks, and ends the process. Whatever goes wrong with the client is an outcome of the turn.
    pub(crate) fn ask(self, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<Looked, LookError> {
        let mut agent = self.turn.agent.clone();
        // Whoever only looks needs no permission beyond the guard's, whatever runs are given.
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
        Ok(Looked { result, denied: u32::try_from(tally.denied).unwrap_or(u32::MAX), writes })
    }
}
