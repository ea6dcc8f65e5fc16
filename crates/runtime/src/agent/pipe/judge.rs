//! Judges the calls of a client with the guard of the run: each call becomes the hook input that Claude Code would have sent.

use std::path::Path;

use serde_json::{Value, json};
use verdone_core::agent::protocol::{CallFailure, FinishedCall, GuardedCall, PermissionRequest, Verdict};
use verdone_core::hook::{Answer, Permission};

use crate::guard::{Guard, Judgement};

/// The rule in the records of calls that a protocol refuses.
const UNCHECKED: &str = "unchecked-input";

#[derive(Debug, Clone, Copy)]
pub(super) struct CallJudge<'a> {
    pub(super) guard: &'a Guard,
    pub(super) run_dir: &'a Path,
    pub(super) cwd: &'a Path,
}

impl CallJudge<'_> {
    /// Records that a session has started. The prompt has everything that the agent must know, so there is no text for it.
    pub(super) fn session_started(&self, session: &str, source: &str) {
        let input = self.input("SessionStart", session, None, &json!({ "source": source }));
        self.guard.judge(input.as_bytes(), self.run_dir);
    }

    /// The verdict on a question: the first denial counts.
    pub(super) fn verdict(&self, session: &str, question: &PermissionRequest) -> Verdict {
        if let Some(reason) = &question.refused {
            for call in &question.calls {
                let input = self.call_input("PreToolUse", session, call, json!({}));
                self.guard.record_refusal(input.as_bytes(), UNCHECKED, reason);
            }
            return Verdict::Deny { reason: format!("Denied by Verdone: {reason}") };
        }
        let verdicts = question.calls.iter().map(|call| self.about(session, call));
        let denied = verdicts.filter(|verdict| *verdict != Verdict::Allow).reduce(|first, _| first);
        match denied {
            Some(denied) => denied,
            None if question.calls.is_empty() => Verdict::Deny { reason: "Verdone could not see what this would do.".to_owned() },
            None => Verdict::Allow,
        }
    }

    /// The verdict on one call.
    pub(super) fn about(&self, session: &str, call: &GuardedCall) -> Verdict {
        let input = self.call_input("PreToolUse", session, call, json!({}));
        match self.guard.judge(input.as_bytes(), self.run_dir).answer {
            Answer::ToolUse(Permission::Allow) => Verdict::Allow,
            answer => {
                let reason = answer.refusal().unwrap_or("Verdone has no verdict on this call.").to_owned();
                Verdict::Deny { reason }
            }
        }
    }

    /// Records a call that has ended, and returns what follows from it.
    pub(super) fn finished(&self, session: &str, ended: &FinishedCall) -> Judgement {
        let duration_ms = ended.duration_ms;
        let input = match &ended.result {
            Ok(output) => {
                let result = json!({ "tool_response": { "stdout": output, "stderr": "" }, "duration_ms": duration_ms });
                self.call_input("PostToolUse", session, &ended.call, result)
            }
            Err(failure) => {
                let error = error_text(failure);
                let result = json!({ "error": error, "is_interrupt": failure.interrupted, "duration_ms": duration_ms });
                self.call_input("PostToolUseFailure", session, &ended.call, result)
            }
        };
        self.guard.judge(input.as_bytes(), self.run_dir)
    }

    fn call_input(&self, event: &str, session: &str, call: &GuardedCall, mut more: Value) -> String {
        more["tool_name"] = call.tool.as_str().into();
        more["tool_input"] = call.input.clone();
        more["tool_use_id"] = call.id.as_str().into();
        self.input(event, session, call.cwd.as_deref(), &more)
    }

    fn input(&self, event: &str, session: &str, cwd: Option<&str>, more: &Value) -> String {
        let here = self.cwd.to_string_lossy();
        let mut input = json!({ "hook_event_name": event, "session_id": session, "cwd": cwd.unwrap_or(&here) });
        for (name, value) in more.as_object().into_iter().flatten() {
            input[name] = value.clone();
        }
        input.to_string()
    }
}

/// In the form of Claude Code, from which test results are read.
fn error_text(failure: &CallFailure) -> String {
    match failure.exit_code {
        Some(code) => format!("Exit code {code}\n{}", failure.output),
        None => failure.output.clone(),
    }
}
