//! Sums up a session's records: a fold over lines whose size grows with the listed items, never with the length of the session.
//! Unreadable lines are counted and skipped, because the processes that write the file may be killed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Failed, Record};
use crate::base::verdict::PolicyVerdict;
use crate::policy::{ToolKind, kind_of};
use verdone_testlog::TestState;

/// Names beyond these are counted, not listed.
const MOST_FILES: usize = 1_000;
const MOST_NAMES: usize = 200;
const MOST_CAUSES: usize = 20;
/// Counts the items beyond the limit.
const OTHERS: &str = "(others)";

/// The totals of one agent session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SessionTally {
    /// When the first and the last record were written.
    #[schemars(with = "Option<String>")]
    pub first: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
    /// Why the session ended, according to the client; absent while this is unknown, and after the session was resumed.
    pub ended: Option<String>,
    pub prompts: u64,
    pub prompts_refused: u64,
    pub subagents: u64,
    /// Calls that were executed.
    pub calls: u64,
    pub failed: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Denied calls that needed a person's permission when no person was available.
    pub needs_human: u64,
    /// Time spent in tools. Calls can overlap, so it may exceed the session's duration.
    pub tool_ms: u64,
    pub tools: BTreeMap<String, ToolTally>,
    /// Denied calls by the rule that denied them.
    pub denials: BTreeMap<String, DenialTally>,
    /// Files that tools wrote, or that commands tried to write; the first thousand.
    pub files: BTreeSet<String>,
    /// Further writes to files that are not listed.
    pub unlisted_writes: u64,
    pub tests: TestTally,
    /// Changes of the agent's settings during the session, and refused changes.
    pub settings_changed: u64,
    pub settings_refused: u64,
    /// Turns that ended with an API error.
    pub turns_failed: u64,
    /// The total cost, as far as the client has reported it.
    pub spent: Option<Spent>,
    /// Lines that could not be read.
    pub unread: u64,
}

/// The totals of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolTally {
    pub calls: u64,
    pub failed: u64,
    pub denied: u64,
    pub ms: u64,
}

/// The denials by one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DenialTally {
    pub count: u64,
    pub needs_human: u64,
    /// The command or path of the last denial.
    pub about: Option<String>,
}

/// Commands that ran tests, by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TestTally {
    pub passed: u64,
    pub failed: u64,
    /// Test runs that broke before or outside the tests.
    pub broken: u64,
    pub nothing_ran: u64,
}

/// A session's usage according to the client. The client keeps adding when a session is resumed, so the last entry is the total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Millionths of a dollar.
    pub micro_usd: u64,
    /// Includes tokens read from and written to the cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The client has no price for one of the models, so the real cost is higher.
    #[serde(default)]
    pub at_least: bool,
}

impl SessionTally {
    /// Adds one record line of the session.
    pub fn add_line(&mut self, line: &str) {
        let (Ok(stamp), Ok(record)) = (serde_json::from_str::<Stamp<'_>>(line), serde_json::from_str::<Record>(line)) else {
            self.unread += 1;
            return;
        };
        let at = stamp.at.parse().ok();
        self.first = self.first.or(at);
        self.last = at.or(self.last);
        if stamp.event.is_some_and(|event| event == "SubagentStart") {
            self.subagents += 1;
        }
        self.add(record);
    }

    /// Counts a line that was not parsed at all, such as an unterminated one.
    pub fn add_unread(&mut self) {
        self.unread += 1;
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Started { .. } => self.ended = None,
            Record::Prompt { refused_by, .. } => {
                self.prompts += 1;
                self.prompts_refused += u64::from(refused_by.is_some());
            }
            Record::Decided { tool, verdict, rule, about, needs_human, .. } => {
                if verdict == PolicyVerdict::Deny || needs_human {
                    self.deny(tool, rule, about, needs_human);
                }
            }
            Record::Ran { tool, failed, duration_ms, files, .. } => {
                // A failed file tool has written nothing; a failed command may have.
                let wrote = !failed || kind_of(&tool) == ToolKind::Shell;
                self.calls += 1;
                self.failed += u64::from(failed);
                self.tool_ms = self.tool_ms.saturating_add(duration_ms);
                let tool = named(&mut self.tools, tool);
                tool.calls += 1;
                tool.failed += u64::from(failed);
                tool.ms = tool.ms.saturating_add(duration_ms);
                files.into_iter().filter(|_| wrote).for_each(|file| self.touch(file));
            }
            Record::Tests { outcome } => {
                let count = match outcome.state {
                    TestState::Passed => &mut self.tests.passed,
                    TestState::NothingRan => &mut self.tests.nothing_ran,
                    TestState::Failed => &mut self.tests.failed,
                    TestState::Broken => &mut self.tests.broken,
                };
                *count += 1;
            }
            Record::Settings { refused, .. } => {
                self.settings_changed += 1;
                self.settings_refused += u64::from(refused);
            }
            Record::TurnFailed { .. } => self.turns_failed += 1,
            Record::Spent(spent) => self.spent = Some(spent),
            Record::Ended { reason } => self.ended = Some(reason),
            Record::Outside { files, .. } => files.into_iter().for_each(|file| self.touch(file)),
            Record::EndsTurn { .. }
            | Record::AfterTool { .. }
            | Record::GitState { .. }
            | Record::Began { .. }
            | Record::Lessons { .. }
            | Record::Recalled { .. }
            | Record::TaskOpened { .. }
            | Record::TaskClosed { .. }
            | Record::Stop(_)
            | Record::Incomplete { .. }
            | Record::Seen
            | Record::Failed(_) => {}
        }
    }

    fn deny(&mut self, tool: String, rule: Option<String>, about: Option<String>, needs_human: bool) {
        self.denied += 1;
        self.needs_human += u64::from(needs_human);
        named(&mut self.tools, tool).denied += 1;
        let denial = named(&mut self.denials, rule.unwrap_or_else(|| "(no rule)".to_owned()));
        denial.count += 1;
        denial.needs_human += u64::from(needs_human);
        denial.about = about.or_else(|| denial.about.take());
    }

    fn touch(&mut self, file: String) {
        if self.files.len() < MOST_FILES || self.files.contains(&file) {
            self.files.insert(file);
        } else {
            self.unlisted_writes += 1;
        }
    }
}

/// Verdone's own failures, as recorded by hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultTally {
    pub failures: u64,
    /// Failures that led to a denial.
    pub denied: u64,
    /// The number of failures by cause; the first twenty causes.
    pub causes: BTreeMap<String, u64>,
    /// The cause of the last failure.
    pub cause: String,
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
}

impl FaultTally {
    /// Adds one line. An unreadable line also counts as a failure: a hook was killed while writing it.
    pub fn add_line(&mut self, line: &str) {
        let at = serde_json::from_str::<Stamp<'_>>(line).ok().and_then(|stamp| stamp.at.parse().ok());
        let failed: Failed = serde_json::from_str(line)
            .unwrap_or_else(|_| Failed { cause: "its record cannot be read".to_owned(), denied: false });
        self.failures += 1;
        self.denied += u64::from(failed.denied);
        self.last = at.or(self.last);
        if self.causes.len() < MOST_CAUSES || self.causes.contains_key(&failed.cause) {
            *self.causes.entry(failed.cause.clone()).or_default() += 1;
        }
        self.cause = failed.cause;
    }
}

/// The fields stored with every record.
#[derive(Deserialize)]
struct Stamp<'a> {
    #[serde(borrow)]
    at: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    event: Option<std::borrow::Cow<'a, str>>,
}

fn named<T: Default>(table: &mut BTreeMap<String, T>, name: String) -> &mut T {
    let name = if table.len() < MOST_NAMES || table.contains_key(&name) { name } else { OTHERS.to_owned() };
    table.entry(name).or_default()
}

#[cfg(test)]
mod tests;
