//! One process of a client: starts it, exchanges lines with it, answers its questions, and freezes it between turns.
//!
//! Between two turns the process is frozen. Otherwise, a background command that ends could wake the agent while its work is being checked.

mod turn;

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::agent::TurnOutcome;
use verdone_core::agent::protocol::{Opening, Protocol, Step};

pub(super) use self::turn::{Turn, TurnAbort, TurnHandlers, TurnLimits};
use super::after_tool::AfterTool;
use crate::base::active_clock::Stopwatch;
use crate::process::output::Stream;
use crate::process::signal::Signals;
use crate::process::{LineProcess, Received, Spawn, SpawnError};

/// A client that is silent for this long after its start never answers. Some take twenty seconds on a busy machine.
const START: Duration = Duration::from_mins(2);
const TICK: Duration = Duration::from_millis(125);
/// How many bytes of standard error are kept to explain an exit.
const LAST_WORDS: usize = 2_000;

#[derive(Debug)]
pub(super) struct Client {
    title: &'static str,
    process: LineProcess,
    protocol: Box<dyn Protocol>,
    session: String,
    last_words: String,
    after_tool: AfterTool,
    gone: bool,
    frozen: bool,
    /// Whether the processes of the client itself are known: by its first question, its own servers are running.
    settled: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("there is no client for the agent {name:?}")]
    Unknown { name: &'static str },
    #[error("{title} exited immediately: {how}")]
    Ended { title: &'static str, how: String },
    #[error("{title} did not answer for {} s", START.as_secs())]
    Silent { title: &'static str },
    #[error("{}", .0.describe())]
    NotOpened(TurnOutcome),
    #[error("stopped")]
    Stopped,
}

impl StartError {
    pub(super) fn outcome(self) -> TurnOutcome {
        match self {
            Self::Stopped => TurnOutcome::Interrupted,
            Self::NotOpened(outcome) => outcome,
            Self::Ended { .. } => TurnOutcome::Crashed { reason: self.to_string() },
            Self::Spawn(_) | Self::Unknown { .. } | Self::Silent { .. } => TurnOutcome::NotRunnable { reason: self.to_string() },
        }
    }
}

impl Client {
    /// Starts the process and waits until its session is open.
    pub(super) fn start(
        title: &'static str,
        spawn: &Spawn<'_>,
        protocol: Box<dyn Protocol>,
        opening: &Opening,
        signals: &Signals,
    ) -> Result<Self, StartError> {
        let mut client = Self {
            title,
            process: LineProcess::start(spawn, signals)?,
            protocol,
            session: String::new(),
            last_words: String::new(),
            after_tool: AfterTool::default(),
            gone: false,
            frozen: false,
            settled: false,
        };
        if let Err(error) = client.open(opening, signals) {
            client.process.kill();
            client.process.end(Duration::ZERO, signals);
            return Err(error);
        }
        Ok(client)
    }

    /// Opens a session, in a new process or in place of the current one.
    pub(super) fn open(&mut self, opening: &Opening, signals: &Signals) -> Result<(), StartError> {
        if self.gone {
            return Err(self.ended());
        }
        self.thaw();
        let steps = self.protocol.open(opening);
        if let Some(opened) = self.opened(steps) {
            return opened;
        }
        let begin = Stopwatch::start();
        while begin.elapsed() < START {
            if signals.stop().is_some() {
                return Err(StartError::Stopped);
            }
            match self.process.receive(TICK) {
                Received::Line(Stream::Stdout, bytes) => {
                    let steps = self.protocol.line(&bytes, Timestamp::now());
                    if let Some(opened) = self.opened(steps) {
                        return opened;
                    }
                }
                Received::Line(Stream::Stderr, bytes) => self.remember(&bytes),
                Received::Exited => {
                    self.gone = true;
                    return Err(self.ended());
                }
                Received::Nothing => {}
            }
        }
        Err(StartError::Silent { title: self.title })
    }

    /// Sends lines. Everything else that happens before a turn has no effect; no question is answered.
    fn opened(&mut self, steps: Vec<Step>) -> Option<Result<(), StartError>> {
        for step in steps {
            match step {
                Step::Send(line) => self.send(line),
                Step::Opened { session } => {
                    self.session = session;
                    return Some(Ok(()));
                }
                Step::NotOpened(outcome) => return Some(Err(StartError::NotOpened(outcome))),
                Step::Said(_)
                | Step::Ask(_)
                | Step::Unasked(_)
                | Step::Finished(_)
                | Step::Keep(_)
                | Step::Context(_)
                | Step::Allowance(_)
                | Step::Compacted
                | Step::TurnOver(_) => {}
            }
        }
        None
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Ends the process gracefully. Returns how many other processes it left behind; those are ended as well.
    pub(super) fn end(mut self, grace: Duration, signals: &Signals) -> u32 {
        self.thaw();
        if self.gone {
            self.process.kill();
        } else {
            for step in self.protocol.close() {
                if let Step::Send(line) = step {
                    self.send(line);
                }
            }
        }
        self.process.end(grace, signals).1
    }

    /// The processes of the client itself. Call this before it starts anything for a turn.
    fn adopt_children_once(&mut self) {
        if !self.settled {
            self.settled = true;
            self.process.adopt_children();
        }
    }

    fn send(&self, mut line: String) {
        line.push('\n');
        self.process.say(line.into_bytes());
    }

    fn freeze(&mut self) {
        if !self.gone && !self.frozen {
            self.frozen = true;
            self.process.stop();
        }
    }

    fn thaw(&mut self) {
        if self.frozen {
            self.frozen = false;
            self.process.go_on();
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.last_words.push_str(&String::from_utf8_lossy(bytes));
        self.last_words.push('\n');
        let over = self.last_words.len().saturating_sub(LAST_WORDS);
        self.last_words.drain(..self.last_words.ceil_char_boundary(over));
    }

    fn ended(&self) -> StartError {
        StartError::Ended { title: self.title, how: self.last_line() }
    }

    /// How the process ended, with its last line of standard error.
    fn last_line(&self) -> String {
        let line = self.last_words.lines().map(str::trim).rfind(|line| !line.is_empty());
        let how = self.process.exit_words();
        line.map_or_else(|| how.clone(), |line| format!("{how}: {line}"))
    }
}
