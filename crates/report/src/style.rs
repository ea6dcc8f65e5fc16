//! Colour, width and symbols. Colour only repeats what a symbol and a word already say.

use std::ffi::OsStr;

/// What `--color` asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// `NO_COLOR` applies if it is set and not empty. An explicit flag overrides it.
pub fn decide_color(choice: ColorChoice, no_color: Option<&OsStr>, is_tty: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => is_tty && no_color.is_none_or(OsStr::is_empty),
    }
}

/// How to format text for one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// In columns.
    pub width: usize,
    /// Whether symbols outside ASCII may be used.
    pub unicode: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, width: 80, unicode: true }
    }
}

/// The role of a piece of text, so that all colours are chosen in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Dim,
    Strong,
}

/// The symbol at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Bad,
    Warn,
    Info,
    Story,
    Back,
    Unproven,
}

impl Mark {
    pub(crate) fn sign(self, unicode: bool) -> &'static str {
        match (self, unicode) {
            (Self::Good, true) => "✓",
            (Self::Good, false) => "+",
            (Self::Bad, true) => "✗",
            (Self::Bad, false) => "x",
            (Self::Warn, _) => "!",
            (Self::Info, true) => "·",
            (Self::Info, false) => "-",
            (Self::Story, true) => "●",
            (Self::Story, false) => "*",
            (Self::Back, true) => "↶",
            (Self::Back, false) => "<",
            (Self::Unproven, _) => "?",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Good => Tone::Good,
            Self::Bad => Tone::Bad,
            Self::Warn | Self::Back | Self::Unproven => Tone::Warn,
            Self::Info => Tone::Dim,
            Self::Story => Tone::Strong,
        }
    }
}

impl Style {
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => "",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Warn => "33",
            Tone::Dim => "2",
            Tone::Strong => "1",
        };
        if !self.color || code.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub(crate) fn mark(&self, mark: Mark) -> String {
        self.paint(mark.tone(), mark.sign(self.unicode))
    }

    /// The separator between two facts on one line.
    pub(crate) fn dot(&self) -> &'static str {
        if self.unicode { " · " } else { " - " }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_outranks_no_color_and_no_color_outranks_a_terminal() {
        let set = Some(OsStr::new("1"));
        let empty = Some(OsStr::new(""));
        for (choice, no_color, is_tty, expected) in [
            (ColorChoice::Auto, None, true, true),
            (ColorChoice::Auto, None, false, false),
            (ColorChoice::Auto, set, true, false),
            (ColorChoice::Auto, empty, true, true),
            (ColorChoice::Always, set, false, true),
            (ColorChoice::Never, None, true, false),
        ] {
            assert_eq!(decide_color(choice, no_color, is_tty), expected, "{choice:?} {no_color:?} {is_tty}");
        }
    }
}
