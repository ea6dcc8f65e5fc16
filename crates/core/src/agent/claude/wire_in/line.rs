//! The formats of the client's lines. Only the fields we use, all of them optional.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient::{flag, float, named, object, objects, text, texts, whole};

pub(super) type Text<'a> = Option<Cow<'a, str>>;

/// Printed at the start of every turn.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Init<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub session_id: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub model: Text<'a>,
    #[serde(borrow, deserialize_with = "text", rename = "permissionMode")]
    pub permission_mode: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub claude_code_version: Text<'a>,
    #[serde(borrow, deserialize_with = "text", rename = "apiKeySource")]
    pub api_key_source: Text<'a>,
    #[serde(borrow, deserialize_with = "objects")]
    pub mcp_servers: Vec<McpServer<'a>>,
    #[serde(borrow, deserialize_with = "objects")]
    pub plugin_errors: Vec<PluginError<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct McpServer<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub name: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub status: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PluginError<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub plugin: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub message: Text<'a>,
}

/// Usually one content block from the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Assistant<'a> {
    #[serde(borrow, deserialize_with = "object")]
    pub message: Message<'a>,
    /// Set inside a subagent.
    #[serde(borrow, deserialize_with = "text")]
    pub parent_tool_use_id: Text<'a>,
    /// Why the API failed: `rate_limit`, `server_error`, ...
    #[serde(borrow, deserialize_with = "text")]
    pub error: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub id: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub model: Text<'a>,
    #[serde(borrow, deserialize_with = "objects")]
    pub content: Vec<Block<'a>>,
    #[serde(deserialize_with = "object")]
    pub usage: Usage,
}

/// A content block; which of its fields are set depends on its kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    /// `text`, `tool_use`, `thinking`, ...
    #[serde(borrow, deserialize_with = "text", rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub text: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub id: Text<'a>,
    /// The tool's name.
    #[serde(borrow, deserialize_with = "text")]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
}

/// The tokens of one API call or of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    #[serde(deserialize_with = "whole")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub output_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub cache_read_input_tokens: Option<u64>,
}

impl Usage {
    /// The size of the context: all tokens that the model read.
    pub fn context(&self) -> u64 {
        [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }
}

/// Input to the model, mainly tool results.
#[derive(Debug, Clone, Default)]
pub struct UserLine<'a> {
    pub tool_results: Vec<ToolResult<'a>>,
    /// Set inside a subagent.
    pub parent_tool_use_id: Text<'a>,
}

/// The end of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The call's id.
    pub id: Cow<'a, str>,
    pub failed: bool,
    /// Why the client did not execute the call, if so.
    pub refused: Option<Cow<'a, str>>,
    /// The failure of our hook, if that is the reason: its process could not be started, or ended without an answer.
    pub hook_fault: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUser<'a> {
    #[serde(borrow, deserialize_with = "object")]
    pub(super) message: RawUserMessage<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) parent_tool_use_id: Text<'a>,
    #[serde(borrow, deserialize_with = "objects")]
    pub(super) tool_result_meta: Vec<ToolResultMeta<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUserMessage<'a> {
    #[serde(borrow, deserialize_with = "objects")]
    pub(super) content: Vec<RawToolResult<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawToolResult<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) tool_use_id: Text<'a>,
    #[serde(deserialize_with = "flag")]
    pub(super) is_error: bool,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolResultMeta<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) id: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) non_execution_kind: Text<'a>,
}

/// The end of the client's work on a prompt or on a finished background task.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ResultLine<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub subtype: Text<'a>,
    #[serde(deserialize_with = "flag")]
    pub is_error: bool,
    #[serde(borrow, deserialize_with = "text")]
    pub terminal_reason: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub stop_reason: Text<'a>,
    #[serde(deserialize_with = "whole")]
    pub api_error_status: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub api_error_type: Text<'a>,
    /// The agent's last message, or the error.
    #[serde(borrow, deserialize_with = "text")]
    pub result: Text<'a>,
    /// The answer in the requested JSON format, if one was requested.
    #[serde(borrow)]
    pub structured_output: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "texts")]
    pub errors: Vec<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub session_id: Text<'a>,
    #[serde(deserialize_with = "whole")]
    pub num_turns: Option<u64>,
    /// The total of the process so far.
    #[serde(deserialize_with = "float")]
    pub total_cost_usd: Option<f64>,
    /// Only the main loop of this turn.
    #[serde(deserialize_with = "object")]
    pub usage: Usage,
    /// The total of the process so far, by model.
    #[serde(borrow, deserialize_with = "named", rename = "modelUsage")]
    pub model_usage: Vec<(Cow<'a, str>, ModelUsage)>,
    /// Includes subagents, by model.
    #[serde(borrow, deserialize_with = "named")]
    pub model_usage_since_last_result: Vec<(Cow<'a, str>, ModelUsage)>,
    #[serde(borrow, deserialize_with = "objects")]
    pub permission_denials: Vec<Denial<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub user_message_uuid: Text<'a>,
    /// The prompts that this result answers.
    #[serde(borrow, deserialize_with = "texts")]
    pub user_message_uuids: Vec<Cow<'a, str>>,
    /// Set if no prompt started it.
    #[serde(borrow, deserialize_with = "object")]
    pub origin: Origin<'a>,
    /// Set if the prompt was a command such as `clear`.
    #[serde(borrow, deserialize_with = "text")]
    pub local_command: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Origin<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub kind: Text<'a>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    #[serde(deserialize_with = "whole")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub output_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "float", rename = "costUSD")]
    pub cost_usd: Option<f64>,
    #[serde(deserialize_with = "whole")]
    pub context_window: Option<u64>,
}

/// A call that the client did not execute.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Denial<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub tool_name: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool_use_id: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub message: Text<'a>,
}

/// How much of the user's allowance is used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimit<'a> {
    /// `allowed`, `allowed_warning`, `rejected`, ...
    #[serde(borrow, deserialize_with = "text")]
    pub status: Text<'a>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "whole")]
    pub resets_at: Option<u64>,
    /// `five_hour`, `seven_day`, ...
    #[serde(borrow, deserialize_with = "text", rename = "rateLimitType")]
    pub kind: Text<'a>,
    #[serde(borrow, deserialize_with = "named", rename = "unifiedWindows")]
    pub windows: Vec<(Cow<'a, str>, Window<'a>)>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Window<'a> {
    /// From 0 to 1.
    #[serde(deserialize_with = "float")]
    pub utilization: Option<f64>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "whole")]
    pub resets_at: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub status: Text<'a>,
}

/// Whether the client is working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    /// The client waits for our answer.
    RequiresAction,
    Idle,
    /// An unknown state.
    Other,
}

/// The API failed and the client retries.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ApiRetry<'a> {
    #[serde(deserialize_with = "whole")]
    pub attempt: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub max_retries: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub retry_delay_ms: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub error_status: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub error: Text<'a>,
}

/// The conversation was replaced by a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compaction<'a> {
    /// `auto` or `manual`.
    #[serde(borrow, deserialize_with = "text")]
    pub trigger: Text<'a>,
    #[serde(deserialize_with = "whole")]
    pub pre_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub post_tokens: Option<u64>,
}

/// A command or subagent in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BackgroundTask<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub task_id: Text<'a>,
    /// `local_bash`, `local_agent`, ...
    #[serde(borrow, deserialize_with = "text")]
    pub task_type: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub description: Text<'a>,
}

/// The fields of `system` lines that have no type of their own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawSystem<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) state: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) status: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) compact_error: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) content: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) level: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) tag: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) key: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) text: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) task_id: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) task_type: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) description: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) summary: Text<'a>,
    #[serde(borrow, deserialize_with = "objects")]
    pub(super) tasks: Vec<BackgroundTask<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) compact_metadata: Compaction<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) hook_event: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) outcome: Text<'a>,
}

/// The fields of other lines that have few of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawOther<'a> {
    #[serde(borrow, deserialize_with = "object")]
    pub(super) rate_limit_info: RateLimit<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) command_uuid: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) state: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) user_message_uuid: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) session_id: Text<'a>,
}
