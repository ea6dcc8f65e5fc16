//! A real terminal of a given size, driven through a private tmux server, to test what a person sees.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::sandbox::{Sandbox, find_on_host};

/// A program in a terminal. Dropping it ends the terminal and the program.
#[derive(Debug)]
pub struct Tmux<'a> {
    sandbox: &'a Sandbox,
    program: PathBuf,
    socket: PathBuf,
    /// The file with the exit code, written by the keeper.
    ended: PathBuf,
}

/// Runs the program, records its exit code, and keeps the terminal open: tmux 3.3 sometimes loses the last output or the exit code of a
/// program that ends together with its terminal. Terminal signals are for the program; a shell with a trap waits for it.
const KEEPER: &str = r#"ended=$1; shift; trap : INT QUIT TERM; "$@"; echo "$?" >"$ended"; while read -r _; do :; done"#;

impl<'a> Tmux<'a> {
    /// Starts `argv` (no shell) in the sandbox's `work/`, in a terminal of this size.
    pub fn start<I, S>(sandbox: &'a Sandbox, width: u16, height: u16, argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        // A server that is shutting down still answers on its socket, so each terminal gets a new one.
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let program = find_on_host("tmux").expect("terminal tests need tmux: ./scripts/test installs it");
        let settings = sandbox.root().join("tmux.conf");
        let text =
            "set -g status off\nset -g history-limit 20000\nset -g default-terminal screen-256color\nset -g escape-time 0\n";
        fs::write(&settings, text).expect("the sandbox is writable");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = |end: &str| sandbox.root().join(format!("tmux-{number}.{end}"));
        let terminal = Self { sandbox, program, socket: place("sock"), ended: place("ended") };

        let mut command = terminal.command();
        command.arg("-f").arg(&settings).args(["new-session", "-d", "-s", "test"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        command.args(["--", "/bin/sh", "-c", KEEPER, "keeper"]).arg(&terminal.ended);
        // Only the program gets the marker: the terminal around it does not count as a survivor.
        command.arg(find_on_host("env").expect("every system has env")).arg(sandbox.marker()).args(argv);
        run(command);
        terminal
    }

    /// Types keys by their tmux names (`Enter`, `C-c`, `Up`); anything else is typed as text.
    pub fn send_keys(&self, keys: &[&str]) {
        let mut command = self.command();
        command.args(["send-keys", "-t", "test"]).args(keys);
        run(command);
    }

    /// Resizes the terminal.
    pub fn resize(&self, width: u16, height: u16) {
        let mut command = self.command();
        command.args(["resize-window", "-t", "test", "-x", &width.to_string(), "-y", &height.to_string()]);
        run(command);
    }

    /// The visible screen, without trailing spaces.
    pub fn capture(&self) -> String {
        self.capture_with(&[])
    }

    /// The screen and everything that has scrolled out of it.
    pub fn capture_all(&self) -> String {
        self.capture_with(&["-S", "-"])
    }

    /// The same with wrapped lines joined: if it differs from `capture_all`, the terminal wrapped a line.
    pub fn capture_unwrapped(&self) -> String {
        self.capture_with(&["-S", "-", "-J"])
    }

    /// The visible screen with its colours as escape sequences.
    pub fn capture_coloured(&self) -> String {
        self.capture_with(&["-e"])
    }

    /// Waits until the text is on the screen or in the scrollback; returns the visible screen. Panics at the deadline.
    #[track_caller]
    pub fn wait_for(&self, text: &str, deadline: Duration) -> String {
        self.poll(deadline, |terminal| terminal.capture_all().contains(text).then(|| terminal.capture()))
            .unwrap_or_else(|| panic!("{text:?} never came; the screen was\n{}", self.capture_all()))
    }

    /// Waits until the program has ended; returns its exit code. Panics at the deadline.
    #[track_caller]
    pub fn wait_for_exit(&self, deadline: Duration) -> i32 {
        self.poll(deadline, Self::exit_code)
            .unwrap_or_else(|| panic!("the program did not end; the screen was\n{}", self.capture_all()))
    }

    /// The exit code as a shell reports it (128 + n for signal n), once the program has ended.
    pub fn exit_code(&self) -> Option<i32> {
        fs::read_to_string(&self.ended).ok()?.trim().parse().ok()
    }

    /// tmux reports no event for text on a screen, so this polls.
    fn poll<T>(&self, deadline: Duration, look: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let until = Instant::now() + deadline;
        loop {
            if let Some(found) = look(self) {
                return Some(found);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn capture_with(&self, options: &[&str]) -> String {
        let mut command = self.command();
        command.args(["capture-pane", "-p", "-t", "test"]).args(options);
        let screen = run(command);
        let lines: Vec<_> = screen.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    fn command(&self) -> Command {
        let mut command = self.sandbox.command(&self.program);
        let (marker, _) = self.sandbox.marker().split_once('=').expect("a marker is NAME=value");
        command.env_remove(marker).env("TERM", "screen-256color").arg("-S").arg(&self.socket);
        command
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let mut command = self.command();
        // Does not panic, so that a failed test shows its own message.
        let _ = command.arg("kill-server").output();
    }
}

#[track_caller]
fn run(mut command: Command) -> String {
    let output = command.output().expect("tmux can be started");
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
