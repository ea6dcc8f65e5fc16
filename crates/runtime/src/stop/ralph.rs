//! State files that another tool keeps under `~/.ralph/state/<session>/`: they may keep the gate closed, nothing in them opens it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::regular::read_regular;

const LARGEST: u64 = 1024 * 1024;
const MOST_TASKS: usize = 1_000;

/// Why another tool says that a session is not done. An id that is no plain name has no such files.
pub(super) fn holds(session: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = (1..=128).contains(&session.len()) && session.bytes().all(plain) && !session.starts_with('.');
    let Some(home) = std::env::var_os("HOME").filter(|home| is_name && !home.is_empty()) else { return Vec::new() };
    let dir = PathBuf::from(home).join(".ralph/state").join(session);
    if !dir.is_dir() {
        return Vec::new();
    }
    let mut why = Vec::new();
    if let Some(state) = json(&dir.join("orchestrator.json"))
        && state["verified_done"] != true
    {
        let phase = state["phase"].as_str().unwrap_or("unknown");
        why.push(format!("orchestrator.json says that the phase `{phase}` is not complete"));
    }
    if let Some(state) = json(&dir.join("loop.json"))
        && state["verified_done"] != true
        && state["iteration"].as_u64().unwrap_or(0) < state["max_iterations"].as_u64().unwrap_or(u64::MAX)
    {
        let error = state["last_error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
        why.push(format!("loop.json says that the task is not done{error}"));
    }
    if json(&dir.join("quality-gate.json")).is_some_and(|state| state["last_result"] == "failed") {
        why.push("quality-gate.json says that the last quality gate failed".to_owned());
    }
    let pending = pending(&dir.join("tasks"));
    if pending > 0 {
        why.push(format!("{pending} of its tasks are pending or in progress"));
    }
    why
}

fn pending(dir: &Path) -> usize {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_TASKS).map(|entry| entry.path());
    let tasks = files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).filter_map(|path| json(&path));
    tasks.filter(|task| matches!(task["status"].as_str(), Some("pending" | "in_progress"))).count()
}

/// Nothing where it cannot be read: it is not ours.
fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read_regular(path, LARGEST).ok()?).ok()
}
