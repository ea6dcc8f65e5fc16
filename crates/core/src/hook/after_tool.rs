//! `[[after_tool]]`: the user's own commands after a tool. This module selects the commands and decides what the agent learns about
//! them; they run elsewhere. A path is passed as a word or a variable, never as part of a shell line.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_text::pattern::name_matches;

use super::record::cut;
use super::{Answer, Record, Response};
use crate::base::excerpt::keep_end;
use crate::base::sanitise::sanitise;
use crate::base::span::Span;
use crate::check::CommandSpec;
use crate::policy::{self, FilePatterns, PolicyContext, ToolKind, kind_of, reads, writes};

/// For all commands after one tool call together: the client kills the hook after a minute, and then the agent learns nothing.
pub const MOST_TIME: Duration = Duration::from_secs(50);
/// The placeholder for the file in a list of words.
pub const FILE_WORD: &str = "{file}";
/// The maximum output that the agent gets. The end is kept, because failures are described there.
const LONGEST_OUTPUT: usize = 2_000;

/// A command of the user that runs after a tool has succeeded, for example a formatter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AfterTool {
    /// The command: a string for `sh -c`, or a list of words. The file is in `$VERDONE_FILE`; in a list, `{file}` is replaced with it.
    pub run: CommandSpec,
    /// The tools it applies to, by name or pattern; by default, all tools that change files.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Patterns for the tool's file, written like `write` of a policy rule; by default, every file.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How long the command may take before its whole process group is ended.
    #[serde(default = "ten_seconds")]
    pub timeout: Span,
    /// When the agent gets the command's output.
    #[serde(default)]
    pub feedback: Tell,
}

fn ten_seconds() -> Span {
    Span::from_secs(10)
}

/// When the agent gets a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    /// If the command failed.
    #[default]
    Failure,
    /// Whenever the command printed something.
    Always,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterCommand {
    pub run: CommandSpec,
    pub timeout: Duration,
    pub feedback: Tell,
    pub tool: String,
    /// Absolute, without symlinks.
    pub file: Option<String>,
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    pub exit: CommandExit,
    /// Redacted, but still untrusted.
    pub output: String,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandExit {
    Code(i32),
    Signal(i32),
    TimedOut {
        after: Duration,
    },
    NotRunnable {
        reason: String,
    },
    /// Earlier commands used up the time.
    NotStarted,
}

impl AfterTool {
    fn wants_file(&self) -> bool {
        let in_list = match &self.run {
            CommandSpec::Shell(_) => false,
            CommandSpec::Argv(words) => words.iter().any(|word| word == FILE_WORD),
        };
        in_list || !self.paths.is_empty()
    }

    fn is_for(&self, tool: &str, file: Option<&str>, context: &PolicyContext) -> bool {
        let by_tool = match (self.tools.as_slice(), kind_of(tool)) {
            ([], ToolKind::Write) => true,
            ([], ToolKind::Shell | ToolKind::Read | ToolKind::Agent | ToolKind::Other) => false,
            (globs, _) => globs.iter().any(|glob| name_matches(glob, tool)),
        };
        // Settings with invalid patterns are rejected earlier.
        let is_for_file =
            |file: &str| FilePatterns::new(&self.paths, context).is_ok_and(|patterns| patterns.matches(file, context));
        let by_file = match file {
            Some(file) => self.paths.is_empty() || is_for_file(file),
            None => !self.wants_file(),
        };
        by_tool && by_file
    }
}

/// The commands to run after a successful call.
pub(super) fn due(all: &[AfterTool], call: &policy::ToolCall, context: &PolicyContext) -> Vec<AfterCommand> {
    if all.is_empty() {
        return Vec::new();
    }
    let file = match kind_of(&call.tool) {
        ToolKind::Write => writes(call, context).into_iter().next(),
        ToolKind::Read => reads(call, context).into_iter().next(),
        // A command may change many files or none, so there is no single file.
        ToolKind::Shell | ToolKind::Agent | ToolKind::Other => None,
    };
    let fitting = all.iter().filter(|after| after.is_for(&call.tool, file.as_deref(), context));
    let command = |after: &AfterTool| AfterCommand {
        run: after.run.clone(),
        timeout: after.timeout.limit().unwrap_or(MOST_TIME).min(MOST_TIME),
        feedback: after.feedback,
        tool: call.tool.clone(),
        file: file.clone(),
    };
    fitting.map(command).collect()
}

impl AfterCommand {
    /// The words to execute, if the command is a list.
    pub fn describe(&self) -> Option<Vec<String>> {
        let CommandSpec::Argv(words) = &self.run else { return None };
        let word = |word: &String| match &self.file {
            Some(file) if word == FILE_WORD => file.clone(),
            Some(_) | None => word.clone(),
        };
        Some(words.iter().map(word).collect())
    }

    pub fn record(&self, end: &CommandEnd) -> Record {
        Record::AfterTool {
            command: cut(&self.run.display()),
            file: self.file.as_deref().map(cut),
            outcome: cut(&end.exit.argv()),
            failed: end.exit.failed(),
            duration_ms: end.duration_ms,
        }
    }

    /// The message for the agent, if any.
    fn told(&self, end: &CommandEnd) -> Option<String> {
        let output = sanitise(end.output.trim());
        let worth_it = match self.feedback {
            Tell::Failure => end.exit.failed(),
            Tell::Always => end.exit.failed() || !output.is_empty(),
        };
        if !worth_it {
            return None;
        }
        let about = self.file.as_ref().map(|file| format!(" ({})", cut(file))).unwrap_or_default();
        let mut text =
            format!("The project's command `{}` ran after {}{about}: {}.", cut(&self.run.display()), self.tool, end.exit.argv());
        if !output.is_empty() {
            text.push_str(&format!(" It said:\n{}", keep_end(&output, LONGEST_OUTPUT)));
        }
        Some(text)
    }
}

impl CommandExit {
    fn failed(&self) -> bool {
        match self {
            Self::Code(code) => *code != 0,
            Self::Signal(_) | Self::TimedOut { .. } | Self::NotRunnable { .. } | Self::NotStarted => true,
        }
    }

    fn argv(&self) -> String {
        match self {
            Self::Code(0) => "it succeeded".to_owned(),
            Self::Code(code) => format!("it failed with exit code {code}"),
            Self::Signal(signal) => format!("it was killed by signal {signal}"),
            Self::TimedOut { after } => {
                format!("it timed out after {}", Span::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)))
            }
            Self::NotRunnable { reason } => format!("it could not be started: {reason}"),
            Self::NotStarted => "it was not started, because the commands before it took too long".to_owned(),
        }
    }
}

impl Response {
    /// Adds the results of its commands to the answer.
    #[must_use]
    pub fn after(mut self, event: &str, ends: &[CommandEnd]) -> Self {
        for (command, end) in self.commands.iter().zip(ends) {
            let Some(told) = command.told(end) else { continue };
            self.answer = match self.answer {
                Answer::Silent => Answer::Context { event: event.to_owned(), text: told },
                Answer::Context { event, text } => Answer::Context { event, text: format!("{text}\n\n{told}") },
                other @ (Answer::ToolUse(_)
                | Answer::PermissionRequest(_)
                | Answer::Block { .. }
                | Answer::EndTurn { .. }
                | Answer::Refuse { .. }
                | Answer::Tell { .. }) => other,
            };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(run: CommandSpec, tools: &[&str], paths: &[&str]) -> AfterTool {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        AfterTool { run, tools: texts(tools), paths: texts(paths), timeout: ten_seconds(), feedback: Tell::default() }
    }

    fn call(tool: &str, field: &str, value: &str) -> policy::ToolCall {
        policy::ToolCall { tool: tool.to_owned(), input: serde_json::json!({ field: value }) }
    }

    #[test]
    fn commands_are_due_by_tool_and_path() {
        let shell = || CommandSpec::Shell("fmt".to_owned());
        let list = || CommandSpec::Argv(vec!["fmt".to_owned(), FILE_WORD.to_owned()]);
        let context = PolicyContext { root: "/p".to_owned(), cwd: "/p".to_owned(), ..PolicyContext::default() };
        let write = call("Write", "file_path", "/p/src/a.rs");
        let edit = call("Edit", "file_path", "/p/b.md");
        let bash = call("Bash", "command", "touch src/a.rs");
        let read = call("Read", "file_path", "/p/src/a.rs");
        for (after, expected) in [
            (after(shell(), &[], &[]), [true, true, false, false]),
            (after(shell(), &[], &["**/*.rs"]), [true, false, false, false]),
            (after(shell(), &["Ed*"], &[]), [false, true, false, false]),
            (after(shell(), &["*"], &[]), [true, true, true, true]),
            (after(shell(), &["*"], &["src/**"]), [true, false, false, true]),
            (after(shell(), &["Bash"], &[]), [false, false, true, false]),
            (after(list(), &["*"], &[]), [true, true, false, true]),
        ] {
            let found = [&write, &edit, &bash, &read].map(|call| !due(std::slice::from_ref(&after), call, &context).is_empty());
            assert_eq!(found, expected, "{after:?}");
        }
        let due = due(&[after(list(), &[], &[])], &write, &context);
        assert_eq!(due[0].describe().unwrap(), ["fmt", "/p/src/a.rs"]);
    }

    #[test]
    fn failures_are_told_and_the_rest_only_where_it_is_asked_for() {
        let command = |feedback| AfterCommand {
            run: CommandSpec::Shell("fmt".to_owned()),
            timeout: MOST_TIME,
            feedback,
            tool: "Write".to_owned(),
            file: Some("/p/a".to_owned()),
        };
        let end = |exit, output: &str| CommandEnd { exit, output: output.to_owned(), duration_ms: 1 };
        let failed = command(Tell::Failure).told(&end(CommandExit::Code(2), "bad\u{1b}[31m")).unwrap();
        assert_eq!(
            failed, "The project's command `fmt` ran after Write (/p/a): it failed with exit code 2. It said:\nbad",
            "{failed}"
        );
        assert_eq!(command(Tell::Failure).told(&end(CommandExit::Code(0), "fine")), None);
        assert!(
            command(Tell::Always).told(&end(CommandExit::Code(0), "fine")).unwrap().ends_with("it succeeded. It said:\nfine")
        );
        assert_eq!(command(Tell::Always).told(&end(CommandExit::Code(0), " \n")), None);
        let flood = command(Tell::Failure).told(&end(CommandExit::Signal(9), &"x".repeat(100_000))).unwrap();
        assert!(flood.len() < 3_000, "{}", flood.len());
    }
}
