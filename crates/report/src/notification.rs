//! A notification as the escape sequence that makes a terminal show it to its user.

/// Terminals differ in the sequence that they know; all of them ignore one that they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalKind {
    /// OSC 777, with a title: urxvt, foot, and VTE-based terminals.
    Urxvt,
    /// OSC 9, handed through to the terminal around tmux, if `allow-passthrough` is on. Otherwise tmux marks the window because of the bell.
    Tmux,
    /// OSC 9: iTerm2, `WezTerm`, kitty, Ghostty and others.
    Other,
}

/// The sequence, followed by the bell. Expects text without control characters.
pub fn notification_sequence(kind: TerminalKind, title: &str, text: &str) -> String {
    match kind {
        TerminalKind::Urxvt => format!("\x1b]777;notify;{};{text}\x07\x07", title.replace(';', ",")),
        TerminalKind::Tmux => format!("\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\\x07"),
        TerminalKind::Other => format!("\x1b]9;{text}\x07\x07"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_its_sequence_and_the_bell() {
        let sequence = |kind| notification_sequence(kind, "Verdone: a;b", "done; all of it");
        assert_eq!(sequence(TerminalKind::Urxvt), "\x1b]777;notify;Verdone: a,b;done; all of it\x07\x07");
        assert_eq!(sequence(TerminalKind::Tmux), "\x1bPtmux;\x1b\x1b]9;done; all of it\x07\x1b\\\x07");
        assert_eq!(sequence(TerminalKind::Other), "\x1b]9;done; all of it\x07\x07");
    }
}
