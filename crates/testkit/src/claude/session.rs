//! A long-lived client that exchanges JSON lines, as with a driver.

use std::io::Write as _;
use std::process::ChildStdin;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Output, Running};
use crate::sandbox::Sandbox;

/// Longer than a scripted turn takes on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// One long-lived process with JSON lines in both directions.
#[derive(Debug)]
pub struct ClaudeSession {
    running: Running,
    input: ChildStdin,
}

impl ClaudeSession {
    /// Starts the client of a settled sandbox in `work/`. `args` are added to those that select JSON lines.
    pub fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let lines = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let (running, input) = sandbox.spawn_with_input(sandbox.root().join("bin/claude"), lines.iter().chain(args));
        Self { running, input }
    }

    /// Sends one user message and waits for the result of its turn.
    #[track_caller]
    pub fn ask(&mut self, text: &str) -> Value {
        let before = self.messages_of("result").len();
        self.send(&json!({ "type": "user", "message": { "role": "user", "content": text } }));
        self.wait_for("the result of a turn", |events| results(events) > before);
        self.messages_of("result").swap_remove(before)
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).unwrap_or_else(|error| panic!("the client takes no more lines: {error}"));
    }

    /// All events so far, without an incomplete last line.
    pub fn events(&self) -> Vec<Value> {
        parse(&self.running.wait_for_stdout("anything", Duration::ZERO, |_| true))
    }

    /// The events of one type.
    pub fn messages_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// Waits until the events satisfy the condition; panics with all of them if they do not.
    #[track_caller]
    pub fn wait_for(&self, what: &str, reached: impl Fn(&[Value]) -> bool) {
        self.running.wait_for_stdout(what, PATIENCE, |text| reached(&parse(text)));
    }

    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Closes its input, which ends it, and returns its output.
    #[track_caller]
    pub fn close(self) -> Output {
        drop(self.input);
        self.running.wait(PATIENCE)
    }
}

fn parse(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn results(events: &[Value]) -> usize {
    events.iter().filter(|event| event["type"] == "result").count()
}
