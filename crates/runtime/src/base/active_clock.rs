//! Active time: the time during which this process actually ran. It excludes time in which the process was stopped or frozen, or the
//! machine was asleep. All limits use this clock. The wall clock is only for display, because users can change it.
//!
//! There is one clock per process, because a stop always affects the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use verdone_core::journal::update::Update;

/// How often the background thread updates the clock.
const PULSE: Duration = Duration::from_millis(100);
/// If no update happened for longer than this, the process was not running (SIGSTOP, a frozen machine), so the time does not count.
const LONGEST_STEP: Duration = Duration::from_secs(1);

static CLOCK: Mutex<Clock> = Mutex::new(Clock { last: None, active: Duration::ZERO, standing: false });

#[derive(Debug)]
struct Clock {
    last: Option<Instant>,
    active: Duration,
    standing: bool,
}

impl Clock {
    fn update(&mut self, now: Instant) -> Duration {
        let step = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        if !self.standing {
            self.active += if step > LONGEST_STEP { PULSE } else { step };
        }
        self.last = Some(now);
        self.active
    }
}

/// Starts a thread that updates the clock for the rest of the process. Without it, callers must read the clock at least once a second.
pub fn start_clock_thread() -> std::io::Result<()> {
    let beat = || {
        loop {
            std::thread::sleep(PULSE);
            active();
        }
    };
    std::thread::Builder::new().name("clock".to_owned()).spawn(beat).map(|_| ())
}

/// Stops the clock.
pub fn stand_still() {
    let mut clock = clock();
    clock.update(Instant::now());
    clock.standing = true;
}

/// Restarts the clock.
pub fn go_on() {
    let mut clock = clock();
    clock.update(Instant::now());
    clock.standing = false;
}

fn active() -> Duration {
    clock().update(Instant::now())
}

fn clock() -> MutexGuard<'static, Clock> {
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures active time since its start, excluding its own pauses.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    begin: Duration,
    paused: Option<Duration>,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { begin: active(), paused: None }
    }

    pub fn elapsed(&self) -> Duration {
        self.paused.unwrap_or_else(active).saturating_sub(self.begin)
    }

    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed().as_millis() as u64
    }

    pub fn pause(&mut self) {
        self.paused = self.paused.or_else(|| Some(active()));
    }

    pub fn go_on(&mut self) {
        if let Some(since) = self.paused.take() {
            self.begin += active().saturating_sub(since);
        }
    }

    /// The update that surfaces get regularly.
    pub fn tick(&self) -> Update<'static> {
        Update::Tick { now: Timestamp::now(), active_ms: Some(self.elapsed_ms()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_and_a_stop_do_not_count() {
        let start = Instant::now();
        let mut clock = Clock { last: None, active: Duration::ZERO, standing: false };
        let at = |clock: &mut Clock, ms: u64| clock.update(start + Duration::from_millis(ms)).as_millis();
        assert_eq!(at(&mut clock, 0), 0);
        assert_eq!(at(&mut clock, 900), 900);
        assert_eq!(at(&mut clock, 3_600_900), 1000, "we cannot have run in that hour");
        clock.standing = true;
        assert_eq!(at(&mut clock, 3_601_400), 1000);
        clock.standing = false;
        assert_eq!(at(&mut clock, 3_601_500), 1100);
    }

    #[test]
    fn a_paused_stopwatch_stands() {
        let mut watch = Stopwatch::start();
        watch.pause();
        let before = watch.elapsed();
        std::thread::sleep(Duration::from_millis(250));
        watch.pause();
        assert_eq!(watch.elapsed(), before);
        watch.go_on();
        assert!(watch.elapsed() < before + Duration::from_millis(250));
    }
}
