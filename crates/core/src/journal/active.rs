//! Active time of a run: what its limits and durations are measured in. It stands still in a pause, while the run is stopped by
//! the terminal and while the machine sleeps, and does not care what the wall clock is set to.

use jiff::Timestamp;

use crate::journal::event::Recorded;

/// How far a journal has got: active time at its last line, and when that was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActiveTime {
    ms: u64,
    at: Option<Timestamp>,
}

impl ActiveTime {
    pub fn ms(self) -> u64 {
        self.ms
    }

    /// Takes a line in. Lines of older versions do not say it: there the wall clock since the line before counts, unless the run
    /// was `standing`. Never goes back.
    pub fn advance(&mut self, recorded: &Recorded, standing: bool) {
        let told = recorded.active_ms.unwrap_or_else(|| if standing { self.ms } else { self.until(recorded.at) });
        self.ms = self.ms.max(told);
        self.at = Some(recorded.at);
    }

    /// Active time at `now`, as far as somebody can tell who only has the journal.
    pub fn until(self, now: Timestamp) -> u64 {
        self.ms.saturating_add(self.at.map_or(0, |at| millis_between(at, now)))
    }
}

/// Never negative: a clock that was set back gives 0.
pub fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::finish::StopSignal;
    use crate::journal::event::{Event, SCHEMA_VERSION};

    fn line(second: i64, active_ms: Option<u64>) -> Recorded {
        let at = Timestamp::from_second(second).unwrap();
        Recorded { v: SCHEMA_VERSION, seq: 1, at, active_ms, event: Event::StopRequested { signal: StopSignal::Sigint } }
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_nothing() {
        let mut time = ActiveTime::default();
        for (second, active, expected) in [(100, 0, 0), (10_000, 1500, 1500), (5, 2500, 2500)] {
            time.advance(&line(second, Some(active)), false);
            assert_eq!(time.ms(), expected);
        }
        assert_eq!(time.until(Timestamp::from_second(8).unwrap()), 5500);
        assert_eq!(time.until(Timestamp::from_second(1).unwrap()), 2500, "never less than the last line");
    }

    #[test]
    fn lines_of_older_versions_count_by_the_wall_clock_but_not_in_a_pause_nor_backwards() {
        let mut time = ActiveTime::default();
        for (second, standing, expected) in
            [(100, false, 0), (102, false, 2000), (900, true, 2000), (901, false, 3000), (50, false, 3000)]
        {
            time.advance(&line(second, None), standing);
            assert_eq!(time.ms(), expected, "at {second}");
        }
    }
}
