//! The deliveries that are under way.

use std::collections::BTreeSet;
use std::ffi::OsString;
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

/// Each in a process beside us. Dropping this ends them.
#[derive(Debug)]
pub struct Deliveries {
    channels: Channels,
    root: PathBuf,
    running: Vec<HelperProgram>,
    /// Channels whose failure was reported. One warning is enough.
    reported: BTreeSet<String>,
}

impl Deliveries {
    pub(super) fn new(channels: Channels, root: &Path) -> Self {
        Self { channels, root: root.to_owned(), running: Vec::new(), reported: BTreeSet::new() }
    }

    /// Starts a delivery. Returns a warning if that is not possible.
    pub(super) fn start(&mut self, notification: Notification) -> Option<String> {
        let job = Job { channels: self.channels.clone(), notification, root: self.root.clone(), failures: None };
        let started = serde_json::to_vec(&job)
            .map_err(std::io::Error::from)
            .and_then(|line| HelperProgram::start(&[OsString::from(ARGUMENT)], &line));
        match started {
            Ok(helper) => {
                self.running.push(helper);
                None
            }
            Err(error) => self.report("start", format!("notification not sent: {error}")),
        }
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
        answers.iter().flat_map(|answer| self.judge(answer)).collect()
    }

    /// Waits for the rest, at most until the deadline or a signal. Returns the warnings.
    pub fn finish(mut self, signals: &Signals) -> Vec<String> {
        let (clock, patience) = (Stopwatch::start(), self.channels.timeout() + OVERTIME);
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
