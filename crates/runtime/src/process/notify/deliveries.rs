//! The deliveries that are under way.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::journal::notify::Notification;

use super::channels::Channels;
use super::deliver::Delivered;
use super::{ARGUMENT, Job};
use crate::base::active_clock::Stopwatch;
use crate::process::HelperProgram;
use crate::process::signal::Signals;

/// How long a delivery may take after its deadline, to end its processes.
const OVERTIME: Duration = Duration::from_secs(2);
const NAP: Duration = Duration::from_millis(20);

/// An agent decides how many notifications there are, so it must not decide how many processes there are.
const MOST_AT_ONCE: usize = 4;

/// Each in a process beside us. Dropping this ends them.
#[derive(Debug)]
pub struct Deliveries {
    channels: Channels,
    root: PathBuf,
    running: Vec<HelperProgram>,
    /// In order.
    waiting: VecDeque<Notification>,
    /// Channels whose failure was reported. One warning is enough.
    reported: BTreeSet<String>,
}

impl Deliveries {
    pub(super) fn new(channels: Channels, root: &Path) -> Self {
        Self { channels, root: root.to_owned(), running: Vec::new(), waiting: VecDeque::new(), reported: BTreeSet::new() }
    }

    /// Starts a delivery, as soon as others leave room for it. Returns warnings if that is not possible.
    pub(super) fn start(&mut self, notification: Notification) -> Vec<String> {
        self.waiting.push_back(notification);
        self.start_waiting()
    }

    fn start_waiting(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        while let Some(notification) = next_with_room(self.running.len(), &mut self.waiting) {
            match self.spawn(notification) {
                Ok(helper) => self.running.push(helper),
                Err(error) => warnings.extend(self.report("start", format!("notification not sent: {error}"))),
            }
        }
        warnings
    }

    fn spawn(&self, notification: Notification) -> io::Result<HelperProgram> {
        let job = Job { channels: self.channels.clone(), notification, root: self.root.clone(), failures: None };
        HelperProgram::start(&[OsString::from(ARGUMENT)], &serde_json::to_vec(&job)?)
    }

    /// Warnings about deliveries that ended since the last call.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        self.running.retain(|helper| match helper.answer(Duration::ZERO) {
            Some(answer) => {
                answers.push(answer);
                false
            }
            None => true,
        });
        let mut warnings: Vec<String> = answers.iter().flat_map(|answer| self.judge(answer)).collect();
        warnings.extend(self.start_waiting());
        warnings
    }

    /// Waits for the rest, at most until the deadline of the last or a signal. Returns the warnings.
    pub fn finish(mut self, signals: &Signals) -> Vec<String> {
        let rounds = 1 + self.waiting.len().div_ceil(MOST_AT_ONCE);
        let patience = (self.channels.timeout() + OVERTIME).saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
        let clock = Stopwatch::start();
        let mut warnings = self.warnings();
        while !self.running.is_empty() && clock.elapsed() < patience && signals.requested().is_none() {
            std::thread::sleep(NAP);
            warnings.extend(self.warnings());
        }
        warnings
    }

    fn judge(&mut self, answer: &str) -> Vec<String> {
        match serde_json::from_str::<Vec<Delivered>>(answer) {
            Ok(delivered) => {
                let failed = delivered.iter().filter_map(|one| Some((one.channel.as_str(), one.warning()?)));
                failed.filter_map(|(channel, warning)| self.report(channel, warning)).collect()
            }
            Err(_) => self.report("process", "notification not sent: its process was killed".to_owned()).into_iter().collect(),
        }
    }

    fn report(&mut self, channel: &str, warning: String) -> Option<String> {
        self.reported.insert(channel.to_owned()).then_some(warning)
    }
}

/// The notification to start next, if fewer than the most are running.
fn next_with_room<T>(running: usize, waiting: &mut VecDeque<T>) -> Option<T> {
    if running < MOST_AT_ONCE { waiting.pop_front() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_are_under_way_and_the_rest_waits_in_order() {
        let (mut running, mut waiting) = (Vec::new(), VecDeque::from([1, 2, 3, 4, 5, 6]));
        while let Some(next) = next_with_room(running.len(), &mut waiting) {
            running.push(next);
        }
        assert_eq!((running.as_slice(), waiting.len()), (&[1, 2, 3, 4][..], 2));
        running.remove(0);
        assert_eq!(next_with_room(running.len(), &mut waiting), Some(5));
    }
}
