//! Signals that stop a run: the first asks, the second insists, and both wake whoever waits for a process. Also handles job control signals
//! from the terminal, which suspend the run together with everything it started.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use verdone_core::base::finish::StopSignal;

use crate::base::active_clock;
use crate::process::job_control::{self, Stopped};

/// How long a graceful end may take after the second signal.
const LAST_GRACE: Duration = Duration::from_secs(10);

/// The stop request so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// End gracefully: processes get their grace period.
    Asked(StopSignal),
    /// A second signal: no grace. Contains the first signal, which determines the exit code.
    Insisted(StopSignal),
}

impl Stop {
    pub fn signal(self) -> StopSignal {
        match self {
            Self::Asked(signal) | Self::Insisted(signal) => signal,
        }
    }
}

/// The stop requests of this process. Clones share them.
#[derive(Clone, Default)]
pub struct Signals(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    /// Only the current step is to end.
    interrupted: bool,
    continued: u32,
    listeners: Vec<(u64, Box<dyn Fn() + Send>)>,
    next: u64,
}

impl Signals {
    /// Handles SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT for the rest of the process, and starts the clock's pulse.
    ///
    /// A SIGHUP that was ignored at the start stays ignored: that is how `nohup` works.
    pub fn install() -> io::Result<Self> {
        let mut wanted = vec![SIGINT, SIGTERM, SIGCONT];
        wanted.extend([SIGHUP, SIGTSTP].into_iter().filter(|signal| !ignored_at_start(*signal)));
        active_clock::start_clock_thread()?;
        let mut arriving = signal_hook::iterator::Signals::new(wanted)?;
        let signals = Self::default();
        let shared = signals.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut stopped = Stopped::default();
            for number in arriving.forever() {
                match number {
                    SIGINT => shared.raise(StopSignal::Sigint),
                    SIGHUP => shared.raise(StopSignal::Sighup),
                    SIGTSTP => stand_still(&mut stopped),
                    SIGCONT => shared.go_on(&std::mem::take(&mut stopped)),
                    _ => shared.raise(StopSignal::Sigterm),
                }
                if let Some(Stop::Insisted(first)) = shared.stop() {
                    leave_soon(first);
                }
            }
        })?;
        Ok(signals)
    }

    /// For callers that handle no signals.
    pub fn none() -> Self {
        Self::default()
    }

    /// The first stop request, if there was one. A step that is to end sees its interruption as one, too.
    pub fn requested(&self) -> Option<StopSignal> {
        self.stop().map(Stop::signal)
    }

    pub fn stop(&self) -> Option<Stop> {
        let state = self.state();
        state.stop.or_else(|| state.interrupted.then_some(Stop::Asked(StopSignal::Sigint)))
    }

    /// The signal that stops the whole run, if there was one.
    pub fn stops_run(&self) -> Option<StopSignal> {
        self.state().stop.map(Stop::signal)
    }

    /// Ends what is running now as a stop would, but not the run.
    pub fn interrupt(&self) {
        let mut state = self.state();
        state.interrupted = true;
        for (_, wake) in &state.listeners {
            wake();
        }
    }

    /// The interrupted step is over.
    pub fn end_interruption(&self) {
        self.state().interrupted = false;
    }

    /// Handles one signal as if it had arrived.
    pub fn raise(&self, signal: StopSignal) {
        let mut state = self.state();
        state.stop = Some(match state.stop {
            None => Stop::Asked(signal),
            Some(before) => Stop::Insisted(before.signal()),
        });
        for (_, wake) in &state.listeners {
            wake();
        }
    }

    /// The same for a request that may have arrived as a signal already: it never insists.
    pub fn raise_first(&self, signal: StopSignal) {
        let mut state = self.state();
        if state.stop.is_none() {
            state.stop = Some(Stop::Asked(signal));
            for (_, wake) in &state.listeners {
                wake();
            }
        }
    }

    /// How often the process was continued after a stop.
    pub fn times_continued(&self) -> u32 {
        self.state().continued
    }

    /// Continues the others first: they were stopped last.
    fn go_on(&self, stopped: &Stopped) {
        job_control::go_on(stopped);
        active_clock::go_on();
        let mut state = self.state();
        state.continued += 1;
        for (_, wake) in &state.listeners {
            wake();
        }
    }

    /// Calls `wake` after each signal, until the subscription is dropped. It must not block and must not call back.
    pub fn subscribe(&self, wake: impl Fn() + Send + 'static) -> Subscription {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.listeners.push((id, Box::new(wake)));
        Subscription { signals: self.clone(), id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A listener that panicked leaves no inconsistent state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signals").field(&self.stop()).finish()
    }
}

/// Unsubscribes when dropped.
#[derive(Debug)]
pub struct Subscription {
    signals: Signals,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.signals.state().listeners.retain(|(id, _)| *id != self.id);
    }
}

/// Stops the clock first, so that no limit expires in the meantime, and this process last. SIGCONT continues everything.
fn stand_still(stopped: &mut Stopped) {
    if job_control::would_be_lost() {
        return;
    }
    active_clock::stand_still();
    // First release processes held by an earlier stop: a terminal can stop us again before we noticed that we were continued.
    job_control::go_on(&std::mem::take(stopped));
    *stopped = job_control::stop_descendants();
    job_control::stop_self();
}

/// A user who insists should not wait for something stuck. The next run cleans up after a run that was left like this.
fn leave_soon(signal: StopSignal) {
    std::thread::spawn(move || {
        std::thread::sleep(LAST_GRACE);
        crate::process::end_leftovers(&[], Duration::ZERO, &Signals::none());
        std::process::exit(i32::from(signal.exit_code()));
    });
}

#[cfg(target_os = "linux")]
fn ignored_at_start(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(not(target_os = "linux"))]
fn ignored_at_start(_: i32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_first_signal_asks_and_the_second_insists() {
        let signals = Signals::none();
        assert_eq!(signals.requested(), None);
        signals.raise(StopSignal::Sigterm);
        assert_eq!(signals.stop(), Some(Stop::Asked(StopSignal::Sigterm)));
        signals.clone().raise(StopSignal::Sigint);
        assert_eq!(signals.stop(), Some(Stop::Insisted(StopSignal::Sigterm)));
        assert_eq!(signals.requested(), Some(StopSignal::Sigterm));
    }

    #[test]
    fn requests_never_insist_however_many_arrive_at_once() {
        for _ in 0..2_000 {
            let (signals, together) = (Signals::none(), std::sync::Barrier::new(4));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        together.wait();
                        signals.raise_first(StopSignal::Sigint);
                    });
                }
            });
            assert_eq!(signals.stop(), Some(Stop::Asked(StopSignal::Sigint)));
        }
    }

    #[test]
    fn an_interruption_ends_the_step_and_not_the_run() {
        let signals = Signals::none();
        signals.interrupt();
        assert_eq!(signals.stop(), Some(Stop::Asked(StopSignal::Sigint)));
        assert_eq!(signals.stops_run(), None);
        signals.raise(StopSignal::Sigterm);
        assert_eq!(signals.stop(), Some(Stop::Asked(StopSignal::Sigterm)), "the first signal never insists");
        let signals = Signals::none();
        signals.interrupt();
        signals.end_interruption();
        assert_eq!(signals.stop(), None);
    }

    #[test]
    fn a_dropped_subscription_is_not_woken() {
        let (signals, (sender, woken)) = (Signals::none(), mpsc::channel());
        let subscription = signals.subscribe(move || sender.send(()).unwrap());
        signals.raise(StopSignal::Sigint);
        woken.recv().unwrap();
        drop(subscription);
        signals.raise(StopSignal::Sigint);
        assert!(woken.recv().is_err());
    }
}
