//! Translates a client's tool call into the calls that policy understands. Titles are the model's words in some clients, so they count
//! only where the profile says so.

use serde_json::{Map, Value, json};

use super::announced::{Announced, Kind};
use super::{Profile, ToolNames};
use crate::agent::protocol::GuardedCall;

const COMMAND: &[&str] = &["command", "cmd", "script"];
/// Text that a client types into a running program.
const TYPED: &[&str] = &["input", "text", "chars"];
const PATH: &[&str] = &["file_path", "filePath", "filepath", "path", "fileName", "absolute_path", "notebook_path"];
const OLD: &[&str] = &["old_string", "old_str", "oldString"];
const NEW: &[&str] = &["new_string", "new_str", "newString"];
const CONTENT: &[&str] = &["content", "file_text"];
const DIRECTORY: &[&str] = &["cwd", "workdir", "working_directory", "directory", "dir_path"];

/// What is known about the client whose calls are translated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) profile: &'a Profile,
    /// Where the session works.
    pub(super) cwd: &'a str,
}

impl Client<'_> {
    fn absolute(self, path: &str) -> String {
        match path.strip_prefix("./").unwrap_or(path) {
            path if path.starts_with(['/', '~']) => path.to_owned(),
            path => format!("{}/{path}", self.cwd),
        }
    }
}

/// The calls to judge; all of them must be allowed. An error says why the call cannot be judged.
pub(super) fn normalise(call: &Announced, client: Client<'_>) -> Result<Vec<GuardedCall>, String> {
    let one = |tool: &str, input: Value| Ok(vec![guarded(call, tool, input)]);
    match call.kind {
        Kind::Execute => commands(call, client),
        Kind::Edit => on_files(call, client, |path| edit(call, client, path)),
        Kind::Delete => on_files(call, client, |path| delete(call, path)),
        Kind::Read => on_files(call, client, |path| guarded(call, "Read", json!({ "file_path": path }))),
        Kind::Search => one("Grep", Value::Object(call.input.clone())),
        Kind::Fetch => one("WebFetch", json!({ "url": text(&call.input, &["url"]), "prompt": call.title })),
        Kind::SwitchMode => Err("an agent must not change its permission mode".to_owned()),
        Kind::Think | Kind::Other if text(&call.input, COMMAND).is_some() => commands(call, client),
        Kind::Think | Kind::Other => one(&tool_name(call, client.profile), Value::Object(call.input.clone())),
    }
}

/// Calls that ran without a question and are worth judging afterwards.
pub(super) fn unasked(call: &Announced, client: Client<'_>) -> Vec<GuardedCall> {
    match call.kind {
        Kind::Execute | Kind::Edit | Kind::Delete | Kind::Read => normalise(call, client).unwrap_or_default(),
        Kind::Search | Kind::Fetch | Kind::Think | Kind::SwitchMode | Kind::Other => Vec::new(),
    }
}

/// The call in a few words, for people.
pub(super) fn describe(call: &Announced, client: Client<'_>) -> String {
    let calls = normalise(call, client).unwrap_or_default();
    let Some(first) = calls.first() else { return call.title.clone() };
    let about =
        ["command", "file_path", "url", "pattern", "path", "description"].iter().find_map(|name| first.input[*name].as_str());
    match about.and_then(|about| about.trim().lines().next()) {
        Some(about) => format!("{}: {}", first.tool, about.chars().take(200).collect::<String>()),
        None => first.tool.clone(),
    }
}

fn guarded(call: &Announced, tool: &str, input: Value) -> GuardedCall {
    GuardedCall { id: call.id.clone(), tool: tool.to_owned(), input, cwd: None }
}

fn commands(call: &Announced, client: Client<'_>) -> Result<Vec<GuardedCall>, String> {
    let mut found = Vec::new();
    for name in COMMAND {
        match call.input.get(*name) {
            Some(Value::String(command)) => found.push(command.clone()),
            Some(Value::Array(words)) => found.push(joined(words)?),
            Some(_) | None => {}
        }
    }
    let listed = call.input.get("commands").and_then(Value::as_array);
    found.extend(listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    found.extend(TYPED.iter().filter_map(|name| call.input.get(*name)?.as_str()).map(str::to_owned));
    if found.is_empty() && client.profile.command_in_title {
        found.push(call.title.clone());
    }
    found.retain(|command| !command.trim().is_empty());
    found.dedup();
    if found.is_empty() {
        return Err("the client did not say which command it would run".to_owned());
    }
    let cwd = directory(call).map(|folder| client.absolute(folder));
    Ok(found.iter().map(|command| GuardedCall::command(&call.id, command, cwd.as_deref())).collect())
}

/// A list of words as one command.
fn joined(words: &[Value]) -> Result<String, String> {
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    let words = words.ok_or("the client's command is no text")?;
    Ok(words.into_iter().map(quoted).collect::<Vec<_>>().join(" "))
}

/// Where a command runs, from the input or from Gemini's remark `[in FOLDER]`.
fn directory(call: &Announced) -> Option<&str> {
    let remark = || call.text.strip_prefix("[in ").and_then(|rest| rest.split_once(']')).map(|(folder, _)| folder);
    text(&call.input, DIRECTORY).or_else(remark).filter(|folder| !folder.is_empty())
}

fn on_files(call: &Announced, client: Client<'_>, make: impl Fn(&str) -> GuardedCall) -> Result<Vec<GuardedCall>, String> {
    let named = PATH.iter().filter_map(|name| call.input.get(*name)?.as_str());
    let all = named.chain(call.paths.iter().map(String::as_str)).filter(|path| !path.is_empty());
    let mut paths: Vec<String> = all.map(|path| client.absolute(path)).collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.is_empty() {
        return Err("the client did not say which file it would use".to_owned());
    }
    Ok(paths.iter().map(|path| make(path)).collect())
}

fn edit(call: &Announced, client: Client<'_>, path: &str) -> GuardedCall {
    if let (Some(old), Some(new)) = (text(&call.input, OLD), text(&call.input, NEW)) {
        return guarded(call, "Edit", json!({ "file_path": path, "old_string": old, "new_string": new }));
    }
    let changed = call.diffs.iter().find(|diff| client.absolute(&diff.path) == path).map(|diff| diff.new.as_str());
    match text(&call.input, CONTENT).or(changed) {
        Some(content) => guarded(call, "Write", json!({ "file_path": path, "content": content })),
        // Without the new text, the change counts as one of the whole file.
        None => guarded(call, "Edit", json!({ "file_path": path })),
    }
}

fn delete(call: &Announced, path: &str) -> GuardedCall {
    GuardedCall::command(&call.id, &format!("rm -rf -- {}", quoted(path)), None)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn text<'a>(input: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| input.get(*name)?.as_str())
}

/// Policy's name for a tool that is neither a command nor about files.
fn tool_name(call: &Announced, profile: &Profile) -> String {
    let own = match profile.names {
        ToolNames::InMeta => "",
        ToolNames::FirstTitle => call.first_title.as_str(),
        ToolNames::BeforeId => call.id.split_once("__").map_or("", |(name, _)| name),
    };
    let name = call.name.as_deref().unwrap_or(own);
    let known = match name.to_ascii_lowercase().as_str() {
        "todowrite" | "todo_write" | "todoread" | "write_todos" | "update_todo" | "update_topic" => "TodoWrite",
        "task" | "agent" | "invoke_agent" | "delegate_to_agent" => "Agent",
        "skill" | "activate_skill" => "Skill",
        "websearch" | "google_web_search" | "web_search" => "WebSearch",
        "webfetch" | "web_fetch" => "WebFetch",
        "question" | "ask_user" | "ask_user_question" => "AskUserQuestion",
        "enter_plan_mode" => "EnterPlanMode",
        "exit_plan_mode" => "ExitPlanMode",
        "lsp" => "LSP",
        "" => "unknown",
        _ => {
            return name
                .strip_prefix("mcp_")
                .map_or_else(|| name.to_owned(), |rest| format!("mcp__{}", rest.trim_start_matches('_')));
        }
    };
    known.to_owned()
}
