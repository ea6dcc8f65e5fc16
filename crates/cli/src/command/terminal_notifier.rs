//! Notifies the user of the terminal that shows a run, by an escape sequence. It does not move the cursor, so it can be written at any time
//! between two updates.

use std::io::{self, IsTerminal as _, Write};

use verdone_core::journal::update::{Reporter, Update};
use verdone_report::{TerminalKind, notification_sequence};
use verdone_runtime::project::config_file::Environment;

use crate::terminal::{Shown, would_stop_us};

/// Forwards all other updates.
pub(super) struct TerminalNotifier {
    shown: Box<dyn Reporter>,
    environment: Environment,
}

impl TerminalNotifier {
    pub(super) fn new(shown: Box<dyn Reporter>, environment: &Environment) -> Self {
        Self { shown, environment: environment.clone() }
    }
}

impl Reporter for TerminalNotifier {
    fn report(&mut self, update: Update<'_>) {
        match update {
            // A run without a terminal has nobody to notify.
            Update::Notification { title, text } => drop(notify_terminal(title, text, &self.environment)),
            other => self.shown.report(other),
        }
    }
}

/// Returns whether there is a terminal, on standard output or standard error.
pub(super) fn notify_terminal(title: &str, text: &str, environment: &Environment) -> bool {
    let sequence = notification_sequence(kind(environment), title, text);
    let write = |out: &mut dyn Write| out.write_all(sequence.as_bytes()).and_then(|()| out.flush()).is_ok();
    if io::stdout().is_terminal() {
        return write(&mut Shown::new());
    }
    let mut err = io::stderr();
    err.is_terminal() && !would_stop_us(&err) && write(&mut err)
}

fn kind(environment: &Environment) -> TerminalKind {
    let value = |name: &str| environment.get(name).map_or("", String::as_str);
    let is_urxvt = ["rxvt", "foot"].iter().any(|start| value("TERM").starts_with(start)) || !value("VTE_VERSION").is_empty();
    match (!value("TMUX").is_empty(), is_urxvt) {
        (true, _) => TerminalKind::Tmux,
        (false, true) => TerminalKind::Urxvt,
        (false, false) => TerminalKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_decides_which_sequence_it_gets() {
        for (pairs, expected) in [
            (&[][..], TerminalKind::Other),
            (&[("TERM", "xterm-256color")][..], TerminalKind::Other),
            (&[("TERM", "rxvt-unicode-256color")][..], TerminalKind::Urxvt),
            (&[("TERM", "foot")][..], TerminalKind::Urxvt),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")][..], TerminalKind::Urxvt),
            (&[("TERM", "screen-256color"), ("TMUX", "/tmp/x,1,0"), ("VTE_VERSION", "7600")][..], TerminalKind::Tmux),
        ] {
            let environment = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(kind(&environment), expected, "{pairs:?}");
        }
    }
}
