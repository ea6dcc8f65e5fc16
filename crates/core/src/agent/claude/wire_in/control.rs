//! The formats of requests and answers between the client and us. Only the fields we use, all of them optional.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient::{flag, object, text, whole};
use super::line::Text;

/// A hook call over the pipe; the client waits for the answer.
#[derive(Debug, Clone)]
pub struct HookCallback<'a> {
    pub request: Cow<'a, str>,
    /// The registered id: the event's name.
    pub callback: Cow<'a, str>,
    /// The same object that a hook process gets; see `hook::HookInput`.
    pub input: &'a RawValue,
}

impl HookCallback<'_> {
    /// Whether the agent wanted to stop before, and a hook did not let it.
    pub fn is_stop_held(&self) -> bool {
        serde_json::from_str::<StopInput>(self.input.get()).is_ok_and(|input| input.stop_hook_active)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopInput {
    #[serde(deserialize_with = "flag")]
    stop_hook_active: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawControl<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) request_id: Text<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) request: RawRequest<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) response: ControlAnswer<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawRequest<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) subtype: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) callback_id: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// The answer to one of our requests.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ControlAnswer<'a> {
    #[serde(borrow, deserialize_with = "text", rename = "request_id")]
    pub request: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    subtype: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub error: Text<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub error_code: Text<'a>,
    #[serde(borrow)]
    pub response: Option<&'a RawValue>,
}

impl<'a> ControlAnswer<'a> {
    pub fn succeeded(&self) -> bool {
        self.subtype.as_deref() == Some("success")
    }

    /// Parses it as the answer to `initialize`.
    pub fn initialize(&self) -> InitializeAnswer<'a> {
        self.read()
    }

    /// Parses it as the answer to `get_context_usage`.
    pub fn context(&self) -> ContextAnswer<'a> {
        self.read()
    }

    fn read<T: Deserialize<'a> + Default>(&self) -> T {
        self.response.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// The client's description of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InitializeAnswer<'a> {
    #[serde(deserialize_with = "flag")]
    pub hooks_applied: bool,
    #[serde(deserialize_with = "flag")]
    pub hook_on_failure_supported: bool,
    #[serde(borrow, deserialize_with = "text")]
    pub claude_code_version: Text<'a>,
    #[serde(deserialize_with = "whole")]
    pub pid: Option<u64>,
}

/// How full the context is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextAnswer<'a> {
    /// The input of the last API call, or the client's estimate if that is larger.
    #[serde(deserialize_with = "whole")]
    pub total_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub max_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub raw_max_tokens: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub auto_compact_threshold: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub model: Text<'a>,
}
