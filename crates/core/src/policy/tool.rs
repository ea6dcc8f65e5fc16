//! Classifies tools, and gives the verdict on tools that no rule covers.

use verdone_text::pattern::name_matches;

use super::{Mode, PolicyContext};
use crate::base::verdict::PolicyVerdict;

/// What a tool does with its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    Shell,
    /// Creates or changes a file.
    Write,
    Read,
    /// Starts another agent.
    Agent,
    Other,
}

/// Covers the tool names of several clients.
pub fn kind_of(tool: &str) -> ToolKind {
    match tool {
        "Bash" | "PowerShell" | "Monitor" | "run_shell_command" | "exec_command" | "shell" | "local_shell" => ToolKind::Shell,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write_file" | "replace" | "create_file" | "str_replace" => {
            ToolKind::Write
        }
        "Read" | "NotebookRead" | "read_file" => ToolKind::Read,
        "Agent" | "Task" => ToolKind::Agent,
        _ => ToolKind::Other,
    }
}

const ALLOWED: &[&str] = &[
    "Glob",
    "Grep",
    "LS",
    "ToolSearch",
    "list_directory",
    "glob",
    "search_file_content",
    "TodoWrite",
    "TodoRead",
    "write_todos",
    "Task*",
    "BashOutput",
    "KillShell",
    "KillBash",
    "LSP",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "ReportFindings",
    "ListAgents",
    "EnterPlanMode",
    "ExitPlanMode",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "mcp__*",
    "WebFetch",
    "WebSearch",
    "web_fetch",
    "google_web_search",
];

/// Tools denied in a run, with what to do instead.
const DENIED: &[(&str, &str)] = &[
    ("EnterWorktree", "work in the tree that the run was started in"),
    ("ExitWorktree", "work in the tree that the run was started in"),
    ("Cron*", "finish the work in this turn; the loop continues by itself"),
    ("ScheduleWakeup", "finish the work in this turn; the loop continues by itself"),
    ("RemoteTrigger", "finish the work in this turn; the loop continues by itself"),
    ("SendMessage", "say it in the answer; the loop reads it"),
];

const ASKED: &[&str] = &["AskUserQuestion", "ask_user"];

/// The verdict on the tool itself, with what to do instead.
pub(super) fn default_verdict(tool: &str, context: &PolicyContext) -> (PolicyVerdict, String) {
    if let Some((_, verdict)) = context.tools.iter().find(|(glob, _)| name_matches(glob, tool)) {
        return (*verdict, "use another tool; the config restricts this one".to_owned());
    }
    match context.mode {
        Mode::Interactive => return (PolicyVerdict::Allow, String::new()),
        Mode::Run => {}
    }
    if let Some((_, instead)) = DENIED.iter().find(|(glob, _)| name_matches(glob, tool)) {
        return (PolicyVerdict::Deny, (*instead).to_owned());
    }
    if ASKED.contains(&tool) {
        return (PolicyVerdict::Ask, "choose what the story's text supports best, and say so in the answer".to_owned());
    }
    match kind_of(tool) {
        ToolKind::Shell | ToolKind::Write | ToolKind::Read | ToolKind::Agent => (PolicyVerdict::Allow, String::new()),
        ToolKind::Other if ALLOWED.iter().any(|glob| name_matches(glob, tool)) => (PolicyVerdict::Allow, String::new()),
        ToolKind::Other => (
            PolicyVerdict::Deny,
            format!("use another tool; to allow this one, set `tools = {{ \"{tool}\" = \"allow\" }}` under `[policy]`"),
        ),
    }
}
