//! Questions of the client, and the answers. An option is chosen by its kind: its id and name differ in every client.

use serde_json::{Value, json};

use super::Acp;
use crate::agent::acp::announced::AskState;
use crate::agent::acp::call::{Client, describe, normalise};
use crate::agent::acp::wire;
use crate::agent::protocol::{PermissionRequest, Step, Verdict};

/// What can be answered to one question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    id: Value,
    call: String,
    allow_once: Option<String>,
    reject_once: Option<String>,
}

impl Options {
    fn read(id: &Value, call: &str, options: &Value) -> Self {
        let of_kind = |kind: &str| {
            let mut all = options.as_array().into_iter().flatten();
            all.find(|option| option["kind"].as_str() == Some(kind))
                .and_then(|option| option["optionId"].as_str())
                .map(str::to_owned)
        };
        Self { id: id.clone(), call: call.to_owned(), allow_once: of_kind("allow_once"), reject_once: of_kind("reject_once") }
    }

    /// "Always" is never chosen: the client would stop asking.
    fn selected(&self, option: Option<&String>) -> String {
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        wire::answer(&self.id, &json!({ "outcome": outcome }))
    }
}

impl Acp {
    pub(super) fn permission_asked(&mut self, id: &Value, params: &Value) -> Vec<Step> {
        let mut steps = self.end_of_text();
        if let Some(turn) = &mut self.turn {
            turn.acts();
        }
        let client = Client { profile: self.profile, cwd: &self.cwd };
        let call = self.calls.add(&params["toolCall"]);
        call.verdict = Some(AskState::Waiting);
        steps.push(Step::Said(describe(call, client)));
        let options = Options::read(id, &call.id, &params["options"]);
        let (calls, refused) = match normalise(call, client) {
            _ if options.allow_once.is_none() => (Vec::new(), Some("the client offers no way to allow it once".to_owned())),
            Ok(calls) => (calls, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let request = id.to_string();
        self.asked.insert(request.clone(), options);
        steps.push(Step::Ask(PermissionRequest { request, calls, refused }));
        steps
    }

    pub(super) fn permission_answered(&mut self, request: &str, verdict: &Verdict) -> Vec<Step> {
        let Some(options) = self.asked.remove(request) else { return Vec::new() };
        let asked = match verdict {
            Verdict::Allow => AskState::Allowed,
            Verdict::Deny { .. } => AskState::Denied,
        };
        if let Some(call) = self.calls.get_mut(&options.call) {
            call.verdict = Some(asked);
        }
        match verdict {
            Verdict::Allow => vec![Step::Send(options.selected(options.allow_once.as_ref()))],
            Verdict::Deny { reason } => {
                if let Some(turn) = &mut self.turn {
                    turn.denied();
                }
                // The protocol has no place for a reason.
                vec![Step::Send(options.selected(options.reject_once.as_ref())), Step::Keep(reason.clone())]
            }
        }
    }

    pub(super) fn permission_cancelled(&mut self, request: &str) -> Vec<Step> {
        let options = self.asked.remove(request);
        options.map(|options| Step::Send(options.selected(None))).into_iter().collect()
    }
}
