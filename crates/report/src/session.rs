//! Sessions recorded by hooks, for `verdone show`. Names of tools, rules and files come from an agent, so they are sanitised.

use jiff::tz::TimeZone;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use verdone_core::base::id::RunId;
use verdone_core::hook::{FaultTally, SessionTally, Spent, TestTally, ToolTally};
use verdone_text::sentence::capitalise;

use crate::guard::guard_failed;
use crate::status::facts;
use crate::style::{Style, Tone};
use crate::width::{clean, fit, wrap};
use crate::wording::{duration, moment, plural, usage};

/// Tools, rules and files beyond this number are counted, not shown.
const SHOWN: usize = 20;

/// What `verdone show --sessions --json` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sessions {
    /// Newest first: sessions of the last run, then the user's own.
    pub sessions: Vec<SessionOf>,
    /// How many older sessions are not listed.
    pub older: usize,
    /// Calls that Verdone's own hooks could not judge.
    pub faults: Vec<FaultsOf>,
}

/// A session and its owner.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SessionOf {
    /// The client's session id, with `%XX` for every character other than a letter, digit, `-` or `_`. This is also the name of its folder.
    pub id: String,
    /// The run that it belongs to. Absent for the user's own sessions.
    pub run: Option<RunId>,
    #[serde(flatten)]
    pub tally: SessionTally,
}

/// Failures of hooks, either in a run or in the user's own sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultsOf {
    pub run: Option<RunId>,
    /// The path relative to the project.
    pub file: String,
    #[serde(flatten)]
    pub tally: FaultTally,
}

/// The JSON Schema of `verdone show --sessions --json`; `--session` prints one of its sessions.
pub fn sessions_schema() -> serde_json::Value {
    let mut schema = schema_for!(Sessions).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "Verdone sessions".into());
    }
    schema
}

/// Lists sessions, two lines each.
pub fn sessions(list: &Sessions, zone: &TimeZone, style: &Style) -> String {
    let mut out = String::new();
    if list.sessions.is_empty() {
        out.push_str("No sessions were recorded yet.\n");
    }
    for found in &list.sessions {
        out.push_str(&session_lines(found, zone, style));
    }
    if list.older > 0 {
        out.push_str(&format!("and {}\n", plural(list.older, "older session", "older sessions")));
    }
    for found in &list.faults {
        for row in wrap(&capitalise(&fault_line(found, zone)), style.width.max(1), 6, style.unicode) {
            out.push_str(&style.paint(Tone::Warn, &row));
            out.push('\n');
        }
    }
    out
}

/// One session in two lines.
pub fn session_lines(found: &SessionOf, zone: &TimeZone, style: &Style) -> String {
    let at = found.tally.first.map_or_else(|| "at an unknown time".to_owned(), |at| moment(at, zone));
    let head = format!("{at}  {}  {}", clean(&found.id), whose(found.run.as_ref()));
    let mut out = format!("{}\n", style.paint(Tone::Strong, &fit(&head, style.width, style.unicode)));
    let said = brief(&found.tally).join(style.dot());
    for row in wrap(&said, style.width.saturating_sub(2).max(1), 4, style.unicode) {
        out.push_str(&format!("  {row}\n"));
    }
    out
}

/// Everything about one session. Files below `root` are shown relative to it.
pub fn session(found: &SessionOf, root: &str, zone: &TimeZone, style: &Style) -> String {
    let tally = &found.tally;
    let mut rows = vec![("Session", clean(&found.id)), ("Of", whose(found.run.as_ref()))];
    if let (Some(first), Some(last)) = (tally.first, tally.last) {
        let took = u64::try_from(last.duration_since(first).as_millis()).unwrap_or(0);
        rows.push(("Time", format!("{} to {} ({})", moment(first, zone), moment(last, zone), duration(took))));
    }
    let state = tally.ended.as_ref().map_or_else(|| "no end was recorded".to_owned(), |why| format!("ended: {}", clean(why)));
    rows.push(("State", state));
    rows.push(("Cost", cost(tally.spent)));
    rows.push(("Prompts", prompts(tally)));
    rows.push(("Calls", calls(tally)));
    let mut tools: Vec<_> = tally.tools.iter().collect();
    tools.sort_by(|a, b| (b.1.calls + b.1.denied).cmp(&(a.1.calls + a.1.denied)).then_with(|| a.0.cmp(b.0)));
    list(&mut rows, "Tools", tools.iter().map(|(name, tool)| format!("{}: {}", clean(name), tool_words(**tool))));
    let mut rules: Vec<_> = tally.denials.iter().collect();
    rules.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
    let denial = |(rule, denied): &(&String, &verdone_core::hook::DenialTally)| {
        let human = if denied.needs_human > 0 { format!(", {} needed a human", denied.needs_human) } else { String::new() };
        let about = denied.about.as_ref().map_or_else(String::new, |about| format!(", last: {}", clean(about)));
        format!("{}: {}{human}{about}", clean(rule), denied.count)
    };
    list(&mut rows, "Denied", rules.iter().map(denial));
    rows.extend(tests(tally.tests).map(|said| ("Tests", said)));
    let below = format!("{}/", root.trim_end_matches('/'));
    list(&mut rows, "Files", tally.files.iter().map(|file| clean(file.strip_prefix(&below).unwrap_or(file))));
    if tally.unlisted_writes > 0 {
        rows.push(("", format!("and {} to other files", plural(count(tally.unlisted_writes), "write", "writes"))));
    }
    if tally.settings_changed > 0 {
        let changes = plural(count(tally.settings_changed), "change", "changes");
        rows.push(("Settings", format!("{changes}, {} refused", tally.settings_refused)));
    }
    if tally.turns_failed > 0 {
        rows.push(("Errors", plural(count(tally.turns_failed), "turn ended by an API error", "turns ended by API errors")));
    }
    if tally.unread > 0 {
        rows.push(("Note", format!("{} of its file cannot be read", plural(count(tally.unread), "line", "lines"))));
    }
    facts(&rows, style)
}

/// Hook failures as one sentence, which can also be part of another.
pub fn fault_line(found: &FaultsOf, zone: &TimeZone) -> String {
    let said = guard_failed(found.tally.failures, found.tally.denied, &found.tally.cause);
    let last = found.tally.last.map_or_else(String::new, |at| format!(", last at {}", moment(at, zone)));
    format!("{said}{last}, see {}", clean(&found.file))
}

fn whose(run: Option<&RunId>) -> String {
    run.map_or_else(|| "your own".to_owned(), |run| format!("run {}", clean(run.as_str())))
}

fn brief(tally: &SessionTally) -> Vec<String> {
    let mut parts = vec![calls(tally)];
    let more = if tally.unlisted_writes > 0 { " and more" } else { "" };
    parts.push(format!("{}{more}", plural(tally.files.len(), "file", "files")));
    parts.extend(tests(tally.tests).map(|said| format!("tests: {said}")));
    parts.push(cost(tally.spent));
    parts
}

fn calls(tally: &SessionTally) -> String {
    let bracket = |n: u64, what: &str| if n > 0 { format!(" ({n} {what})") } else { String::new() };
    let mut said = format!("{}{}", plural(count(tally.calls), "call", "calls"), bracket(tally.failed, "failed"));
    if tally.denied > 0 {
        said.push_str(&format!(", {} denied{}", tally.denied, bracket(tally.needs_human, "needed a human")));
    }
    format!("{said}, {} in tools", duration(tally.tool_ms))
}

fn tool_words(tool: ToolTally) -> String {
    let counts = [(tool.failed, "failed"), (tool.denied, "denied")];
    let told: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}")).collect();
    format!("{}{}, {}", tool.calls, told.concat(), duration(tool.ms))
}

fn prompts(tally: &SessionTally) -> String {
    let mut said = tally.prompts.to_string();
    if tally.prompts_refused > 0 {
        said.push_str(&format!(", {} refused", tally.prompts_refused));
    }
    if tally.subagents > 0 {
        said.push_str(&format!(", {}", plural(count(tally.subagents), "subagent", "subagents")));
    }
    said
}

fn tests(tests: TestTally) -> Option<String> {
    let counts =
        [(tests.passed, "passed"), (tests.failed, "failed"), (tests.broken, "broke"), (tests.nothing_ran, "ran nothing")];
    let told: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn cost(spent: Option<Spent>) -> String {
    let Some(spent) = spent else { return "cost unknown".to_owned() };
    let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
    #[expect(clippy::cast_precision_loss, reason = "a sum of dollars that is shown with four digits")]
    let used = usage(Some(spent.micro_usd as f64 / 1e6), Some(tokens)).unwrap_or_default();
    if spent.at_least { format!("at least {used}") } else { used }
}

/// Adds the first lines, one row each.
fn list<'a>(rows: &mut Vec<(&'a str, String)>, name: &'a str, lines: impl ExactSizeIterator<Item = String>) {
    let more = lines.len().saturating_sub(SHOWN);
    rows.extend(lines.take(SHOWN).enumerate().map(|(at, line)| (if at == 0 { name } else { "" }, line)));
    if more > 0 {
        rows.push(("", format!("and {more} more")));
    }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
