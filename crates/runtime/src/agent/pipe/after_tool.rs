//! User commands that run after a tool call, while the client continues. Each runs in its own thread. No command outlives its turn.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use verdone_core::base::finish::StopSignal;
use verdone_core::hook::Answer;

use crate::guard::Pending;
use crate::process::signal::{Signals, Stop};

#[derive(Debug)]
pub(super) struct AfterTool {
    /// Stops the commands: set by a signal or by the end of the turn.
    stop: Signals,
    threads: Vec<JoinHandle<()>>,
    answers: (Sender<Answer>, Receiver<Answer>),
}

impl Default for AfterTool {
    fn default() -> Self {
        Self { stop: Signals::none(), threads: Vec::new(), answers: channel() }
    }
}

impl AfterTool {
    /// Starts commands. [`Self::answers`] gets their results.
    pub(super) fn begin(&mut self, pending: Pending) {
        let (stop, sender) = (self.stop.clone(), self.answers.0.clone());
        let work = move || {
            // Without a receiver, the turn is over and nobody needs the answer.
            let _ = sender.send(pending.run(&stop));
        };
        // Without a thread the commands do not run; the checks after the turn find what they would have found.
        self.threads.extend(thread::Builder::new().name("after tool".to_owned()).spawn(work));
    }

    /// The answers since the last call.
    pub(super) fn answers(&self) -> Vec<Answer> {
        self.answers.1.try_iter().collect()
    }

    /// Passes signals on. Returns whether a command is still running.
    pub(super) fn heed(&mut self, signals: &Signals) -> bool {
        self.threads.retain(|thread| !thread.is_finished());
        match (signals.stop(), self.stop.stop()) {
            (Some(Stop::Asked(signal)), None) | (Some(Stop::Insisted(signal)), None | Some(Stop::Asked(_))) => {
                self.stop.raise(signal);
            }
            (None, _) | (Some(Stop::Asked(_)), Some(_)) | (Some(Stop::Insisted(_)), Some(Stop::Insisted(_))) => {}
        }
        !self.threads.is_empty()
    }

    /// Waits for running commands, which have their own deadlines. If the turn was cut, stops them.
    pub(super) fn end(&mut self, cut: bool) {
        let threads = std::mem::take(&mut self.threads);
        if cut && threads.iter().any(|thread| !thread.is_finished()) {
            self.stop.raise(StopSignal::Sigterm);
        }
        for thread in threads {
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
        *self = Self::default();
    }
}
