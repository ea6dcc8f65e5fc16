//! Notifications about a session loop. The worker ends soon and the client owns the terminal, so other processes deliver them.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use verdone_core::config::Config;
use verdone_core::journal::notify::Announcer;

use super::journal::LoopJournal;
use crate::process::notify::{FAILURES, project_name, send_detached};

/// What happens from a certain point of the journal on.
#[derive(Debug)]
pub(super) struct Notices {
    config: Config,
    root: PathBuf,
    /// The number of events before.
    known: usize,
}

impl Notices {
    pub(super) fn begin(config: &Config, root: &Path, journal: &LoopJournal) -> Self {
        Self { config: config.clone(), root: root.to_owned(), known: journal.events().len() }
    }

    /// Sends what the new events deserve. A delivery that cannot be started changes nothing for the loop.
    pub(super) fn send_new(&self, journal: &LoopJournal) {
        if !self.config.notify.has_channel() {
            return;
        }
        let mut announcer = Announcer::new(&project_name(&self.root), TimeZone::system());
        for (at, recorded) in journal.events().iter().enumerate() {
            let Some((kind, notification)) = announcer.observe(&recorded.event) else { continue };
            if at >= self.known && self.config.notify.wants(kind) {
                let _ = send_detached(&self.config, notification, &self.root, journal.run_dir().join(FAILURES));
            }
        }
    }
}
