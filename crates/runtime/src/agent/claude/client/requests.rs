//! Requests to the client outside of turns, and the wait for their answers.

use std::time::Duration;

use verdone_core::agent::claude::{ContextUse, ToClient, Uuid};

use super::{Client, ClientError, LineEffect, START, TICK};
use crate::base::active_clock::Stopwatch;
use crate::process::Received;
use crate::process::output::Stream;
use crate::process::signal::Signals;

/// The client normally answers in milliseconds.
const ANSWER: Duration = Duration::from_secs(10);

impl Client {
    /// Waits until the client has accepted our hooks.
    pub(super) fn initialize(&mut self, signals: &Signals) -> Result<(), ClientError> {
        let request = self.request();
        self.say(&ToClient::Initialize { request: &request });
        let begin = Stopwatch::start();
        while begin.elapsed() < START {
            if signals.stop().is_some() {
                return Err(ClientError::Stopped);
            }
            match self.companion.receive(TICK) {
                Received::Line(Stream::Stdout, bytes) => {
                    if let LineEffect::Answered { request: of, ok, guarded, .. } = self.handle_line(&bytes, None)
                        && of == request
                    {
                        return if ok && guarded { Ok(()) } else { Err(ClientError::NoCallbacks) };
                    }
                }
                Received::Line(Stream::Stderr, bytes) => self.remember(&bytes),
                Received::Exited => return Err(ClientError::Ended(self.last_line())),
                Received::Nothing => {}
            }
        }
        Err(ClientError::Silent)
    }

    /// Measures context use, as the last step of a turn.
    pub(in super::super) fn measure(&mut self, signals: &Signals) -> Option<ContextUse> {
        if self.gone {
            return None;
        }
        let request = self.request();
        self.say(&ToClient::ContextUsage { request: &request });
        let begin = Stopwatch::start();
        let mut measured = None;
        while begin.elapsed() < ANSWER && signals.stop().is_none() {
            match self.companion.receive(TICK) {
                Received::Line(Stream::Stdout, bytes) => {
                    if let LineEffect::Answered { request: of, context, .. } = self.handle_line(&bytes, None)
                        && of == request
                    {
                        measured = context;
                        break;
                    }
                }
                Received::Line(Stream::Stderr, bytes) => self.remember(&bytes),
                Received::Exited => {
                    self.gone = true;
                    break;
                }
                Received::Nothing => {}
            }
        }
        measured
    }

    /// Starts a fresh session in the same process. Returns whether that worked.
    pub(in super::super) fn clear(&mut self, uuid: &Uuid, signals: &Signals) -> bool {
        if self.gone {
            return false;
        }
        self.thaw();
        let before = self.session.id().to_owned();
        self.session.sent(uuid);
        self.say(&ToClient::Clear { uuid });
        let begin = Stopwatch::start();
        while begin.elapsed() < ANSWER && signals.stop().is_none() {
            match self.companion.receive(TICK) {
                Received::Line(Stream::Stdout, bytes) => {
                    if let LineEffect::TurnOver(_) = self.handle_line(&bytes, None) {
                        return self.session.id() != before;
                    }
                }
                Received::Line(Stream::Stderr, bytes) => self.remember(&bytes),
                Received::Exited => {
                    self.gone = true;
                    return false;
                }
                Received::Nothing => {}
            }
        }
        false
    }
}
