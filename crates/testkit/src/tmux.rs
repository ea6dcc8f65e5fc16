//! A real terminal of a given size, driven through a private tmux server, for tests of what a person sees.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sandbox::{Sandbox, find_on_host};

/// A program running in a terminal. Dropping it ends the terminal and the program.
#[derive(Debug)]
pub struct Tmux<'a> {
    sandbox: &'a Sandbox,
    program: PathBuf,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    /// Starts `argv` (no shell) in `work/` of the sandbox, in a terminal of this size.
    pub fn start<I, S>(sandbox: &'a Sandbox, width: u16, height: u16, argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let program = find_on_host("tmux").expect("terminal tests need tmux: ./scripts/test installs it");
        let settings = sandbox.root().join("tmux.conf");
        let text = "set -g remain-on-exit on\nset -g remain-on-exit-format ''\nset -g status off\nset -g history-limit 20000\n\
                    set -g default-terminal screen-256color\nset -g escape-time 0\n";
        fs::write(&settings, text).expect("the sandbox is writable");
        let terminal = Self { sandbox, program, socket: sandbox.root().join("tmux.sock") };

        let mut command = terminal.command();
        command.arg("-f").arg(&settings).args(["new-session", "-d", "-s", "test"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        // A single word would go through a shell; two or more are executed as they are.
        command.arg("--").arg(sandbox.root().join("bin/env")).args(argv);
        run(command);
        terminal
    }

    /// Types keys as tmux names them (`Enter`, `C-c`, `Up`); anything else is typed as text.
    pub fn send_keys(&self, keys: &[&str]) {
        let mut command = self.command();
        command.args(["send-keys", "-t", "test"]).args(keys);
        run(command);
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, width: u16, height: u16) {
        let mut command = self.command();
        command.args(["resize-window", "-t", "test", "-x", &width.to_string(), "-y", &height.to_string()]);
        run(command);
    }

    /// The visible screen, blanks at the end of each line removed.
    pub fn capture(&self) -> String {
        self.capture_with(&[])
    }

    /// The screen and everything that scrolled out of it.
    pub fn capture_all(&self) -> String {
        self.capture_with(&["-S", "-"])
    }

    /// The visible screen with its colours as escape sequences.
    pub fn capture_coloured(&self) -> String {
        self.capture_with(&["-e"])
    }

    /// Waits until the text is on the screen or above it; gives the visible screen. Panics at the deadline.
    #[track_caller]
    pub fn wait_for(&self, text: &str, deadline: Duration) -> String {
        self.poll(deadline, |terminal| terminal.capture_all().contains(text).then(|| terminal.capture()))
            .unwrap_or_else(|| panic!("{text:?} never came; the screen was\n{}", self.capture_all()))
    }

    /// Waits until the program has ended; gives its exit code. Panics at the deadline.
    #[track_caller]
    pub fn wait_for_exit(&self, deadline: Duration) -> i32 {
        self.poll(deadline, Self::exit_code)
            .unwrap_or_else(|| panic!("the program did not end; the screen was\n{}", self.capture_all()))
    }

    /// The exit code (-n for signal n), once the program has ended.
    pub fn exit_code(&self) -> Option<i32> {
        let mut command = self.command();
        command.args(["display-message", "-p", "-t", "test", "#{pane_dead} #{pane_dead_status} #{pane_dead_signal}"]);
        let text = run(command);
        let (dead, rest) = text.split_once(' ')?;
        let (status, signal) = rest.split_once(' ').unwrap_or((rest, ""));
        if dead != "1" {
            return None;
        }
        status.trim().parse().ok().or_else(|| signal.trim().parse::<i32>().ok().map(|signal| -signal))
    }

    /// tmux reports no event for text on a screen, so this looks again and again.
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
        command.env("TERM", "screen-256color").arg("-S").arg(&self.socket);
        command
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let mut command = self.command();
        // No panic here: a test that failed must show its own message.
        let _ = command.arg("kill-server").output();
    }
}

#[track_caller]
fn run(mut command: Command) -> String {
    let output = command.output().expect("tmux can be started");
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
