//! What the terminal supports: colour, width, and which text is safe to print.

use std::io::{self, IsTerminal as _, Write};

use rustix::fd::AsFd;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use verdone_core::base::sanitise::{sanitise, sanitise_line};
use verdone_report::{escape_json, fold_lines};
use verdone_runtime::project::config_file::Environment;

use crate::args::ColorWhen;

/// Used if there is no terminal to ask.
const DEFAULT_WIDTH: usize = 80;

/// Roles of text. Colour only repeats what the text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Error,
    Hint,
    Dim,
    Heading,
}

/// Whether a stream gets colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    pub colour: bool,
}

impl Paint {
    pub(crate) fn style(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Error => "1;31",
            Style::Hint => "1;36",
            Style::Dim => "2",
            Style::Heading => "1",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Properties of the two output streams and the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub out: Paint,
    pub err: Paint,
    /// Whether standard output is watched, so that a live line makes sense.
    pub live: bool,
    /// Whether a question can be asked and answered.
    pub can_ask: bool,
    /// Columns of standard output.
    pub width: usize,
    /// Whether symbols outside ASCII can be shown.
    pub unicode: bool,
}

impl Terminal {
    pub(crate) fn detect(when: ColorWhen, environment: &Environment) -> Self {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        Self {
            out: Paint { colour: use_colour(when, stdout.is_terminal(), environment) },
            err: Paint { colour: use_colour(when, stderr.is_terminal(), environment) },
            live: stdout.is_terminal() && !in_background(&stdout) && !is_dumb(environment),
            can_ask: stdin.is_terminal() && stderr.is_terminal(),
            width: width(&stdout, environment),
            unicode: speaks_unicode(environment),
        }
    }
}

impl Terminal {
    /// The equivalent style for the report crate.
    pub(crate) fn report_style(&self) -> verdone_report::Style {
        verdone_report::Style { color: self.out.colour, width: self.width, unicode: self.unicode }
    }
}

/// Standard output of a run. With `stty tostop`, the terminal would suspend a background job that writes to it and leave its agent
/// unsupervised. In that case, this drops the output; `verdone log` has it.
#[derive(Debug)]
pub(crate) struct Shown(io::Stdout);

impl Shown {
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if would_stop_us(&self.0) { Ok(bytes.len()) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if would_stop_us(&self.0) { Ok(()) } else { self.0.flush() }
    }
}

/// Whether another process group owns the terminal, such as the shell's after `verdone run &`.
fn in_background(stream: &impl AsFd) -> bool {
    tcgetpgrp(stream).is_ok_and(|foreground| foreground != getpgrp())
}

pub(crate) fn would_stop_us(stream: &impl AsFd) -> bool {
    in_background(stream) && tcgetattr(stream).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP))
}

/// Writes text for people to standard output. A terminal gets no line that is longer than it is wide. If the reader went away, the error
/// makes the caller end silently.
pub(crate) fn print(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { print_verbatim(&fold_lines(text, stdout_width())) } else { print_verbatim(text) }
}

/// The same for what programs read.
pub(crate) fn print_verbatim(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes text for people to standard error, folded like that of `print`. A failure is ignored, because there is nowhere to report it.
pub(crate) fn say(text: &str) {
    let mut err = io::stderr().lock();
    let width = rustix::termios::tcgetwinsize(&err).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    let _ = match width {
        Some(width) => err.write_all(fold_lines(text, width).as_bytes()),
        None => err.write_all(text.as_bytes()),
    };
}

/// Makes foreign text safe to print.
pub(crate) fn printable(text: &str) -> String {
    sanitise(text).into_owned()
}

/// The same for text that must stay on one line, such as an id or a hint.
pub(crate) fn printable_line(text: &str) -> String {
    sanitise_line(text).into_owned()
}

/// Prints a JSON value in a form that is also safe to display.
pub(crate) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print_verbatim(&format!("{}\n", escape_json(&format!("{value:#}"))))
}

/// The current width of standard output: a terminal can be resized.
pub(crate) fn stdout_width() -> usize {
    width(&io::stdout(), &Environment::new())
}

fn use_colour(when: ColorWhen, is_terminal: bool, environment: &Environment) -> bool {
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => is_terminal && !set("NO_COLOR") && !is_dumb(environment),
    }
}

/// Whether the terminal cannot move its cursor.
fn is_dumb(environment: &Environment) -> bool {
    environment.get("TERM").is_some_and(|term| term == "dumb")
}

/// Decided by the first locale variable that is set; true if none is.
fn speaks_unicode(environment: &Environment) -> bool {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_none_or(|locale| !matches!(locale.as_str(), "C" | "POSIX"))
}

fn width(stream: &impl AsFd, environment: &Environment) -> usize {
    let columns = || environment.get("COLUMNS").and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    let asked = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col)).filter(|n| *n > 0);
    asked.or_else(columns).unwrap_or(DEFAULT_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_that_wants_it() {
        let environment = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        for (when, is_terminal, pairs, expected) in [
            (ColorWhen::Auto, true, &[][..], true),
            (ColorWhen::Auto, false, &[][..], false),
            (ColorWhen::Auto, true, &[("NO_COLOR", "1")][..], false),
            (ColorWhen::Auto, true, &[("NO_COLOR", "")][..], true),
            (ColorWhen::Auto, true, &[("TERM", "dumb")][..], false),
            (ColorWhen::Always, false, &[("NO_COLOR", "1")][..], true),
            (ColorWhen::Never, true, &[][..], false),
        ] {
            assert_eq!(use_colour(when, is_terminal, &environment(pairs)), expected, "{when:?} {is_terminal} {pairs:?}");
        }
    }

    #[test]
    fn width_falls_back_to_columns_and_then_to_eighty() {
        let file = tempfile::tempfile().unwrap();
        let columns = |text: &str| Environment::from([("COLUMNS".to_owned(), text.to_owned())]);
        assert_eq!(width(&file, &columns("132")), 132);
        assert_eq!(width(&file, &columns("0")), 80);
        assert_eq!(width(&file, &Environment::new()), 80);
    }
}
