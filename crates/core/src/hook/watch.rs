//! After a command: checks that git is in the expected state and that no files outside the story's scope changed.
//!
//! The caller reads git's files, runs one `git status`, and passes in the result together with what the session already knows. Each
//! change is reported once. Commands can change anything, so this inspects the result, not the command.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::git_state::Trouble;
use super::record::cut;
use super::{Answer, GitState, HookEvent, HookInput, Record, Response, Situation, StartSource};
use crate::base::sanitise::sanitise_line;
use crate::policy::{Mode, OnGitState, OnScope, Scope, ToolKind, kind_of, writes};

/// If more files than this differ from HEAD, new changes are not identified.
const MOST_CHANGED: usize = 2_000;
/// The maximum number of files named in a message.
const MOST_NAMED: usize = 10;

/// The state when the turn began, and what the session was told since. Stored between hook calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileLook {
    /// The state of git when the turn began.
    pub start: Option<GitState>,
    /// The state of git at the last check.
    pub last: Option<GitState>,
    /// Files outside the scope that differed from HEAD when the turn began.
    pub before: Option<ChangedFiles>,
    /// Files outside the scope that were reported to the agent.
    pub outside: BTreeSet<String>,
}

/// Files that differ from HEAD, relative to the tree, each with a stamp that changes with the file.
pub type ChangedFiles = BTreeMap<String, String>;

/// The settings of the checks, the earlier state and the current state.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub on_git_state: OnGitState,
    pub on_scope: OnScope,
    pub scope: Option<Scope>,
    /// The run's branch.
    pub branch: Option<String>,
    pub seen: FileLook,
    /// The current state of git; absent if it was not read.
    pub git: Option<GitState>,
    /// The current differences from HEAD; absent if they were not read.
    pub changed: Option<ChangedFiles>,
}

/// What an event means for the checks.
enum Moment<'a> {
    SessionBegins(StartSource),
    TurnBegins,
    Ran { tool: &'a str },
    Other,
}

/// Whether to check git's state and the files after an event.
pub fn looks_after(event: &HookEvent<'_>) -> bool {
    match moment(event) {
        Moment::SessionBegins(_) | Moment::TurnBegins => true,
        Moment::Ran { tool } => may_change_anything(tool),
        Moment::Other => false,
    }
}

fn moment<'a>(event: &'a HookEvent<'_>) -> Moment<'a> {
    match event {
        HookEvent::SessionStart { source } => Moment::SessionBegins(*source),
        HookEvent::UserPromptSubmit { .. } => Moment::TurnBegins,
        HookEvent::PostToolUse { call, .. } | HookEvent::PostToolUseFailure { call, .. } => Moment::Ran { tool: &call.tool },
        // A batch ends after its calls were checked, and blocking it would end the turn.
        HookEvent::PostToolBatch
        | HookEvent::PreToolUse(_)
        | HookEvent::PermissionRequest(_)
        | HookEvent::TaskCreated { .. }
        | HookEvent::TaskCompleted { .. }
        | HookEvent::TeammateIdle { .. }
        | HookEvent::ConfigChange { .. }
        | HookEvent::PreCompact
        | HookEvent::PostCompact
        | HookEvent::SubagentStart
        | HookEvent::SubagentStop { .. }
        | HookEvent::Notification { .. }
        | HookEvent::Stop { .. }
        | HookEvent::StopFailure { .. }
        | HookEvent::SessionEnd { .. }
        | HookEvent::Other => Moment::Other,
    }
}

/// Commands, and tools of MCP servers that we know nothing about.
fn may_change_anything(tool: &str) -> bool {
    match kind_of(tool) {
        ToolKind::Shell => true,
        ToolKind::Other => tool.starts_with("mcp__"),
        ToolKind::Write | ToolKind::Read | ToolKind::Agent => false,
    }
}

/// Adds the results of the checks to a response.
pub(super) fn watched(mut response: Response, input: &HookInput<'_>, situation: &Situation<'_>) -> Response {
    let Some(watch) = situation.watch else { return response };
    let mut seen = watch.seen.clone();
    match moment(&input.event) {
        // The same work continues, and existing problems still count.
        Moment::SessionBegins(StartSource::Compact) | Moment::Other => {}
        Moment::SessionBegins(_) | Moment::TurnBegins => begin(watch, &mut seen),
        Moment::Ran { .. } => {
            let found = [outside(watch, situation, &mut seen), git(watch, situation.context.mode, &mut seen)];
            for found in found.into_iter().flatten() {
                response.records.push(found.record);
                response.answer = join(response.answer, &input.common.event_name, found.said, found.blocks);
            }
        }
    }
    if seen != watch.seen {
        response.seen = Some(seen);
    }
    response
}

/// A record, a message for the agent, and whether the command counts as failed.
struct Finding {
    record: Record,
    said: String,
    blocks: bool,
}

/// Changes from before the turn are not caused by its commands: the user may have switched branches in between.
fn begin(watch: &Watch, seen: &mut FileLook) {
    seen.start.clone_from(&watch.git);
    seen.last.clone_from(&watch.git);
    seen.before = watch.changed.as_ref().map(|changed| left_out(watch, changed)).filter(|left| left.len() <= MOST_CHANGED);
    seen.outside.clear();
}

fn left_out(watch: &Watch, changed: &ChangedFiles) -> ChangedFiles {
    let outside = watch.scope.as_ref().map(|scope| scope.outside(false));
    let is_out = |path: &str| outside.as_ref().is_some_and(|outside| outside(path));
    changed.iter().filter(|(path, _)| is_out(path)).map(|(path, stamp)| (path.clone(), stamp.clone())).collect()
}

fn outside(watch: &Watch, situation: &Situation<'_>, seen: &mut FileLook) -> Option<Finding> {
    let scope = watch.scope.as_ref()?;
    let blocks = match watch.on_scope {
        OnScope::Off => return None,
        OnScope::Advisory => false,
        OnScope::Enforced => true,
    };
    let now = match (&watch.changed, &seen.before) {
        (Some(changed), Some(before)) => {
            let now = left_out(watch, changed);
            now.into_iter().filter(|(path, stamp)| before.get(path) != Some(stamp)).map(|(path, _)| path).collect()
        }
        // The start of the turn was not observed: compare with the state from now on.
        (Some(changed), None) => {
            seen.before = Some(left_out(watch, changed)).filter(|left| left.len() <= MOST_CHANGED);
            return None;
        }
        (None, _) => {
            let mut all = seen.outside.clone();
            all.extend(written(situation, scope));
            all
        }
    };
    let new: Vec<&String> = now.difference(&seen.outside).collect();
    let found = (!new.is_empty()).then(|| told_outside(&new, scope, blocks));
    seen.outside = now;
    found
}

/// Files outside the scope that a file tool wrote.
fn written(situation: &Situation<'_>, scope: &Scope) -> Vec<String> {
    let Some(call) = situation.call.filter(|call| kind_of(&call.tool) == ToolKind::Write) else { return Vec::new() };
    let context = situation.context;
    let root = format!("{}/", context.root.trim_end_matches('/'));
    let paths = writes(call, context).into_iter().filter_map(|path| path.strip_prefix(&root).map(str::to_owned));
    let outside = scope.outside(context.ignore_case);
    paths.filter(|path| outside(path)).collect()
}

fn told_outside(new: &[&String], scope: &Scope, blocks: bool) -> Finding {
    let names: Vec<String> = new.iter().take(MOST_NAMED).map(|path| format!("`{}`", cut(&sanitise_line(path)))).collect();
    let more = new.len() - names.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let advice = if blocks {
        "Revert these changes: an attempt with changes outside the scope is not committed."
    } else {
        "If the story does not need these changes, revert them; if it does, say so in the answer."
    };
    Finding {
        record: Record::Outside {
            files: new.iter().take(MOST_NAMED).map(|path| cut(path)).collect(),
            count: new.len(),
            blocked: blocks,
        },
        said: format!("Changed outside the story's scope, which is {}: {}{more}. {advice}", scope.describe(), names.join(", ")),
        blocks,
    }
}

fn git(watch: &Watch, mode: Mode, seen: &mut FileLook) -> Option<Finding> {
    let blocks = match watch.on_git_state {
        OnGitState::Off => return None,
        OnGitState::Report => false,
        OnGitState::Deny => true,
    };
    let now = watch.git.as_ref()?;
    if seen.start.is_none() {
        // The start of the session was not observed.
        seen.start = Some(now.clone());
    }
    let changed = seen.last.as_ref() != Some(now);
    seen.last = Some(now.clone());
    let troubles = now.troubles(seen.start.as_ref(), watch.branch.as_deref());
    (changed && !troubles.is_empty()).then(|| told_git(&troubles, mode, blocks))
}

fn told_git(troubles: &[Trouble], mode: Mode, blocks: bool) -> Finding {
    let what: Vec<&str> = troubles.iter().map(|trouble| trouble.what.as_str()).collect();
    let way: Vec<&str> = troubles.iter().map(|trouble| trouble.way_back.as_str()).collect();
    let (what, way) = (what.join("; "), way.join(", then "));
    let after = match mode {
        Mode::Run => {
            "If a rule denies that, end the turn and say what happened: the run does not commit this, and undoes it itself."
        }
        Mode::Interactive => "If a rule denies that, or it was intended, tell the user.",
    };
    Finding {
        record: Record::GitState { what: cut(&what), blocked: blocks },
        said: format!("After this command, {what}. To undo it: {way}. {after}"),
        blocks,
    }
}

/// Merges two answers. If either blocks, the whole text becomes the reason.
fn join(answer: Answer, event: &str, said: String, blocks: bool) -> Answer {
    let (before, blocked) = match answer {
        Answer::Context { text, .. } => (text, false),
        Answer::Block { reason } => (reason, true),
        // The turn and the attempt are over: no agent would read it.
        Answer::EndTurn { .. } => return answer,
        Answer::Silent | Answer::ToolUse(_) | Answer::PermissionRequest(_) | Answer::Refuse { .. } | Answer::Tell { .. } => {
            (String::new(), false)
        }
    };
    let text = if before.is_empty() { said } else { format!("{before}\n\n{said}") };
    if blocks || blocked { Answer::Block { reason: text } } else { Answer::Context { event: event.to_owned(), text } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::respond;
    use crate::policy::{PolicyContext, ToolCall};

    fn inspect(watch: &Watch, event: &str, call: &ToolCall) -> Response {
        let input = serde_json::json!({
            "session_id": "s", "cwd": "/w", "hook_event_name": event, "source": "startup", "tool_name": call.tool,
            "tool_input": call.input, "tool_response": {},
        });
        let context = PolicyContext { root: "/w".to_owned(), cwd: "/w".to_owned(), ..PolicyContext::default() };
        let (bytes, rules) = (input.to_string(), Vec::new());
        let situation = Situation {
            rules: &rules,
            context: &context,
            call: Some(call),
            target: None,
            briefing: None,
            tests: None,
            after_tool: &[],
            watch: Some(watch),
        };
        respond(&HookInput::parse(bytes.as_bytes()).unwrap(), &situation)
    }

    fn watch(changed: &[(&str, &str)]) -> Watch {
        Watch {
            scope: Some(Scope { paths: vec!["src".to_owned()], ..Scope::default() }),
            changed: Some(changed.iter().map(|(path, stamp)| ((*path).to_owned(), (*stamp).to_owned())).collect()),
            ..Watch::default()
        }
    }

    #[test]
    fn a_look_compares_with_the_turns_beginning_and_remembers_what_was_told() {
        let make = ToolCall::bash("make");
        let begun = inspect(&watch(&[("old", "1"), ("src/a", "1")]), "SessionStart", &make).seen.unwrap();
        assert_eq!(begun.before.as_ref().unwrap().keys().collect::<Vec<_>>(), ["old"]);
        let mut now = watch(&[("old", "1"), ("src/a", "2"), ("new\u{1b}[2J", "1")]);
        now.seen = begun;
        let told = inspect(&now, "PostToolUse", &make);
        let Answer::Context { text, .. } = &told.answer else { panic!("{told:?}") };
        assert!(text.contains("`new`") && !text.contains("old") && !text.contains('\u{1b}'), "{text}");
        now.seen = told.seen.unwrap();
        let again = inspect(&now, "PostToolUse", &make);
        assert_eq!((&again.answer, &again.seen), (&Answer::Silent, &None));
        now.on_scope = OnScope::Enforced;
        now.changed = watch(&[("old", "2")]).changed;
        assert!(matches!(inspect(&now, "PostToolUse", &make).answer, Answer::Block { .. }));
    }

    #[test]
    fn what_began_unseen_or_cannot_be_counted_is_not_told() {
        let make = ToolCall::bash("make");
        let first = inspect(&watch(&[("old", "1")]), "PostToolUse", &make);
        assert_eq!(first.answer, Answer::Silent);
        assert!(first.seen.unwrap().before.is_some());
        let names: Vec<String> = (0..=MOST_CHANGED).map(|n| n.to_string()).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let many = inspect(&watch(&many), "PostToolUse", &make);
        assert_eq!((many.answer, many.seen), (Answer::Silent, None));
    }
}
