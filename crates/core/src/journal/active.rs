//! Active time of a run: the clock for its limits and durations. It stops while the run is paused, while the terminal has stopped the
//! process and while the machine sleeps. Changes to the wall clock do not affect it.

use jiff::Timestamp;

use crate::journal::event::Recorded;

/// How far a journal has got: the active time at its last line, and when that line was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActiveTime {
    ms: u64,
    at: Option<Timestamp>,
}

impl ActiveTime {
    pub fn ms(self) -> u64 {
        self.ms
    }

    /// Advances to a journal line. Lines from older versions carry no active time; for those, count the wall-clock time since the
    /// previous line, unless the run was `standing` still. Never goes backwards.
    pub fn advance(&mut self, recorded: &Recorded, standing: bool) {
        let told = recorded.active_ms.unwrap_or_else(|| if standing { self.ms } else { self.until(recorded.at) });
        self.ms = self.ms.max(told);
        self.at = Some(recorded.at);
    }

    /// Active time at `now`, estimated from the journal alone.
    pub fn until(self, now: Timestamp) -> u64 {
        self.ms.saturating_add(self.at.map_or(0, |at| millis_between(at, now)))
    }
}

/// Never negative: returns 0 if the clock was set back.
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
