//! Watches the events of a run on their way to whoever shows it, and sends the notifications that they deserve.

use std::path::Path;

use jiff::tz::TimeZone;
use verdone_core::base::redact::Redactor;
use verdone_core::config::Config;
use verdone_core::journal::notify::{Announcer, Notification, NotifySettings};
use verdone_core::journal::update::{Reporter, Update};

use super::channels::Channels;
use super::deliveries::Deliveries;
use super::project_name;

/// Forwards every update.
pub struct Notifier<'a> {
    shown: &'a mut dyn Reporter,
    settings: NotifySettings,
    announcer: Announcer,
    redactor: Redactor,
    channels: Channels,
    deliveries: Deliveries,
}

impl<'a> Notifier<'a> {
    pub fn new(config: &Config, root: &Path, shown: &'a mut dyn Reporter) -> Self {
        let channels = Channels::new(&config.notify);
        Self {
            shown,
            settings: config.notify.clone(),
            announcer: Announcer::new(&project_name(root), TimeZone::system()),
            redactor: channels.redactor(),
            deliveries: Deliveries::new(channels.clone(), root),
            channels,
        }
    }

    /// What is still on its way when the run has ended.
    pub fn into_deliveries(self) -> Deliveries {
        self.deliveries
    }

    fn send(&mut self, notification: Notification) {
        let notification = notification.cleaned(&self.redactor);
        if self.channels.terminal {
            self.shown.report(Update::Notification { title: &notification.title, text: &notification.text });
        }
        if self.channels.is_empty() {
            return;
        }
        for text in self.deliveries.start(notification) {
            self.shown.report(Update::Notice { text: &text });
        }
    }
}

impl Reporter for Notifier<'_> {
    fn report(&mut self, update: Update<'_>) {
        self.shown.report(update);
        for text in self.deliveries.warnings() {
            self.shown.report(Update::Notice { text: &text });
        }
        let Update::Event(recorded) = update else { return };
        match self.announcer.observe(&recorded.event) {
            Some((kind, notification)) if self.settings.wants(kind) => self.send(notification),
            Some(_) | None => {}
        }
    }
}

impl std::fmt::Debug for Notifier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").field("channels", &self.channels).finish_non_exhaustive()
    }
}
