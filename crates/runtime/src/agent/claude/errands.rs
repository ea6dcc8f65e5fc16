//! Commands of the user's that are due after a tool, run while the client goes on: each in a thread of its own, which gives the answer
//! that the client waits for. Other requests are answered meanwhile, signals are heard, and none of them outlives its turn.

use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use verdone_core::agent::claude::ToClient;
use verdone_core::base::finish::StopSignal;

use crate::hook::Pending;
use crate::process::signal::{Signals, Stop};

#[derive(Debug, Default)]
pub(super) struct Errands {
    /// What ends them: not only a signal, but also the end of their turn.
    stop: Signals,
    threads: Vec<JoinHandle<()>>,
}

impl Errands {
    /// Begins one. Its answer, to this request, is written to the client when it is there.
    pub(super) fn begin(&mut self, pending: Pending, request: &str, voice: Sender<Vec<u8>>) {
        let (request, stop) = (request.to_owned(), self.stop.clone());
        let work = move || {
            let answer = pending.run(&stop);
            let line = ToClient::Answer { request: &request, answer: &answer }.line();
            // A client that is gone needs no answer.
            let _ = voice.send(line.as_bytes().to_vec());
        };
        // Without a thread there is no answer, and the client goes on when it has waited long enough.
        self.threads.extend(thread::Builder::new().name("after tool".to_owned()).spawn(work));
    }

    /// Passes signals on. Whether something still runs.
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

    /// Ends what still runs, and waits until it is gone.
    pub(super) fn end(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if threads.iter().any(|thread| !thread.is_finished()) {
            self.stop.raise(StopSignal::Sigterm);
        }
        for thread in threads {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
        self.stop = Signals::none();
    }
}
