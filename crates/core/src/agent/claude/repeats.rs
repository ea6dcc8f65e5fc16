//! What happens again and again in a turn: the same call, and hooks of the user that keep the agent from stopping.

use super::wire_in::{Assistant, HookCallback};
use crate::agent::call_repeats::{CallRepeats, RepeatedCall};

/// They wait for something in the background, so the same call is normal.
const WAITING: [&str; 3] = ["TaskOutput", "BashOutput", "AgentOutputTool"];

#[derive(Debug, Clone, Default)]
pub(super) struct Repeats {
    calls: CallRepeats,
    /// The latest call that was made several times in a row.
    pub(super) call: Option<RepeatedCall>,
    /// How often a hook that is not ours kept the agent from stopping.
    pub(super) held_stops: u32,
}

impl Repeats {
    pub(super) fn see_calls(&mut self, assistant: &Assistant<'_>) {
        let chain = assistant.parent_tool_use_id.as_deref().unwrap_or_default();
        for block in assistant.message.content.iter().filter(|block| block.kind.as_deref() == Some("tool_use")) {
            let tool = block.name.as_deref().unwrap_or_default();
            let times = self.calls.count(chain, tool, block.input.map_or("", serde_json::value::RawValue::get));
            if times > 1 && !WAITING.contains(&tool) {
                self.call = Some(RepeatedCall { call: block.shown().unwrap_or_default(), times });
            }
        }
    }

    /// In a run, our own Stop hook never blocks: if one did, it is the user's.
    pub(super) fn see_hook(&mut self, callback: &HookCallback<'_>) {
        if callback.callback == "Stop" && callback.is_stop_held() {
            self.held_stops += 1;
        }
    }
}
