//! User commands that run after a tool call, while the client continues. Each runs in its own thread, which sends the answer that the
//! client waits for. Meanwhile other requests are answered and signals are handled. No command outlives its turn.

use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use verdone_core::agent::claude::ToClient;
use verdone_core::base::finish::StopSignal;

use crate::guard::Pending;
use crate::process::signal::{Signals, Stop};

#[derive(Debug, Default)]
pub(super) struct Errands {
    /// Stops the commands: set by a signal or by the end of the turn.
    stop: Signals,
    threads: Vec<JoinHandle<()>>,
}

impl Errands {
    /// Starts a command. Its answer to this request is sent to the client when it is ready.
    pub(super) fn begin(&mut self, pending: Pending, request: &str, voice: Sender<Vec<u8>>) {
        let (request, stop) = (request.to_owned(), self.stop.clone());
        let work = move || {
            let answer = pending.run(&stop);
            let line = ToClient::Answer { request: &request, answer: &answer }.line();
            // The client may be gone; then it needs no answer.
            let _ = voice.send(line.as_bytes().to_vec());
        };
        // Without a thread there is no answer, and the client continues after its own timeout.
        self.threads.extend(thread::Builder::new().name("after tool".to_owned()).spawn(work));
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

    /// Stops running commands and waits for them.
    pub(super) fn end(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if threads.iter().any(|thread| !thread.is_finished()) {
            self.stop.raise(StopSignal::Sigterm);
        }
        for thread in threads {
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
        self.stop = Signals::none();
    }
}
