//! The state files of other loops, `~/.ralph/state/<session>/`: `orchestrator.json`, `loop.json`, `quality-gate.json` and `tasks/*.json`.
//! Files of another tool can keep a gate closed but never open one. Ours are projections for people and tools that look there.

mod projection;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use verdone_core::base::id::encode_component;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::done::StateFile;

use crate::base::plain_file::read_regular;

pub use projection::{LoopFile, Projection, is_written, remove_loop, write_loop, write_report};

const ORCHESTRATOR: &str = "orchestrator.json";
const LOOP: &str = "loop.json";
const QUALITY: &str = "quality-gate.json";
/// Observed files have some hundred bytes each.
const LARGEST: u64 = 1024 * 1024;
const MOST_TASKS: usize = 2_000;
const LONGEST_WORDS: usize = 200;
/// Marks the files that we wrote.
const MARK: (&str, &str) = ("written_by", "verdone");

/// What other tools recorded about a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OtherToolState {
    pub files: Vec<StateFile>,
    /// The subjects of unfinished tasks.
    pub tasks: Vec<String>,
}

/// The folder of all sessions, below the user's home.
pub fn home() -> Option<PathBuf> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)?;
    Some(home.join(".ralph/state"))
}

/// Whether another tool keeps state for this session.
pub fn knows(home: &Path, session: &str) -> bool {
    fs::symlink_metadata(home.join(encode_component(session))).is_ok_and(|meta| meta.is_dir())
}

/// Whether another tool's orchestrator keeps state for this session.
pub fn has_orchestrator(home: &Path, session: &str) -> bool {
    let state = || object(&home.join(encode_component(session)).join(ORCHESTRATOR)).ok().flatten();
    knows(home, session) && state().is_some_and(|state| !is_ours(&state))
}

/// Reads another tool's state of a session.
pub fn read(home: &Path, session: &str) -> OtherToolState {
    let dir = home.join(encode_component(session));
    let mut found = OtherToolState::default();
    match fs::symlink_metadata(&dir) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            found.files.push(unreadable(&shown(&dir), "not a folder"));
            return found;
        }
        Err(_) => return found,
    }
    for (name, reads) in
        [(ORCHESTRATOR, orchestrator as fn(&Map<String, Value>) -> Option<String>), (LOOP, in_loop), (QUALITY, quality)]
    {
        match object(&dir.join(name)) {
            Ok(Some(state)) if !is_ours(&state) => {
                found.files.extend(reads(&state).map(|why| StateFile::Closed { file: name.to_owned(), why }));
            }
            Ok(_) => {}
            Err(error) => found.files.push(unreadable(name, &error.to_string())),
        }
    }
    tasks(&dir.join("tasks"), &mut found);
    found
}

fn orchestrator(state: &Map<String, Value>) -> Option<String> {
    let phase = state.get("phase").and_then(Value::as_str).unwrap_or("unknown");
    (!is_true(state.get("verified_done"))).then(|| format!("phase {:?} is not done", short_text(phase)))
}

/// Describes an active loop. A loop that is out of iterations has given up and blocks nothing.
fn in_loop(state: &Map<String, Value>) -> Option<String> {
    let number = |key: &str| state.get(key).and_then(Value::as_u64);
    let over = matches!((number("iteration"), number("max_iterations")), (Some(now), Some(most)) if now >= most);
    let error = state.get("last_error").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let error = error.map(|text| format!(": {}", short_text(text))).unwrap_or_default();
    (!over && !is_true(state.get("verified_done"))).then(|| format!("the loop is not done{error}"))
}

fn quality(state: &Map<String, Value>) -> Option<String> {
    if state.get("last_result").and_then(Value::as_str) != Some("failed") {
        return None;
    }
    let stages = state.get("stages").and_then(Value::as_object).into_iter().flatten();
    let failed = stages.filter(|(_, stage)| stage.get("status").is_some_and(|status| status == "failed"));
    let details = |(name, stage): (&String, &Value)| {
        let said =
            stage.get("details").and_then(Value::as_str).map(|text| format!(" ({})", short_text(text))).unwrap_or_default();
        format!("{}{said}", short_text(name))
    };
    let failed: Vec<String> = failed.take(5).map(details).collect();
    Some(if failed.is_empty() { "the last result is failed".to_owned() } else { format!("failed: {}", failed.join(", ")) })
}

fn tasks(dir: &Path, found: &mut OtherToolState) {
    match fs::symlink_metadata(dir) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return found.files.push(unreadable("tasks", "not a folder")),
        Err(_) => return,
    }
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return found.files.push(unreadable("tasks", &error.to_string())),
    };
    let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.file_name()).take(MOST_TASKS + 1).collect();
    if names.len() > MOST_TASKS {
        return found.files.push(unreadable("tasks", &format!("more than {MOST_TASKS} files")));
    }
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "json"));
    names.sort();
    for name in names {
        let shown = format!("tasks/{}", short_text(&name.to_string_lossy()));
        match object(&dir.join(&name)) {
            Ok(Some(task)) => {
                let text = |key: &str| task.get(key).and_then(Value::as_str);
                if matches!(text("status"), Some("pending" | "in_progress")) {
                    let subject = text("subject").or_else(|| text("title")).or_else(|| text("description")).unwrap_or(&shown);
                    found.tasks.push(short_text(subject));
                }
            }
            Ok(None) => {}
            Err(error) => found.files.push(unreadable(&shown, &error.to_string())),
        }
    }
}

/// `None` if the file does not exist.
fn object(path: &Path) -> io::Result<Option<Map<String, Value>>> {
    let bytes = match read_regular(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(io::Error::other("not a JSON object")),
        Err(_) => Err(io::Error::other("not JSON")),
    }
}

fn is_ours(state: &Map<String, Value>) -> bool {
    state.get(MARK.0).is_some_and(|by| by == MARK.1)
}

fn is_true(value: Option<&Value>) -> bool {
    value.is_some_and(|value| *value == true || value == "true")
}

fn unreadable(file: &str, why: &str) -> StateFile {
    StateFile::Unreadable { file: file.to_owned(), why: why.to_owned() }
}

fn shown(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn short_text(text: &str) -> String {
    let line = sanitise_line(text);
    line[..line.floor_char_boundary(LONGEST_WORDS)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use verdone_core::done::{DoneSettings, Facts, judge};

    pub(super) fn state(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join(".ralph/state");
        for (name, text) in files {
            let path = home.join("test-456").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (temp, home)
    }

    /// Names and contents.
    type Files<'a> = &'a [(&'a str, &'a str)];

    /// The reasons that keep the gate closed, as the condition judge words them.
    fn closed(files: &[(&str, &str)]) -> Vec<String> {
        let (_temp, home) = state(files);
        let OtherToolState { files, tasks } = read(&home, "test-456");
        let report = judge(&DoneSettings::default(), &Facts { state_files: files, tasks, ..Facts::default() });
        report.open().into_iter().filter(|line| line.starts_with("state_files:") || line.starts_with("tasks_closed:")).collect()
    }

    #[test]
    fn what_another_tool_wrote_keeps_the_gate_closed_and_never_opens_it() {
        let none: &[&str] = &[];
        let table: [(Files<'_>, &[&str]); 14] = [
            (&[], none),
            (&[("orchestrator.json", r#"{"verified_done": false, "phase": "implementation"}"#)], &["implementation"]),
            (&[("orchestrator.json", r#"{"verified_done": true, "phase": "complete"}"#)], none),
            (&[("orchestrator.json", "{}")], &["unknown"]),
            (
                &[("loop.json", r#"{"verified_done": false, "iteration": 3, "max_iterations": 25, "last_error": "x.ts:42"}"#)],
                &["x.ts:42"],
            ),
            (&[("loop.json", r#"{"verified_done": false, "iteration": 25, "max_iterations": 25}"#)], none),
            (&[("loop.json", r#"{"verified_done": false}"#)], &["not done"]),
            (&[("loop.json", r#"{"verified_done": true}"#)], none),
            (
                &[(
                    "quality-gate.json",
                    r#"{"last_result": "failed", "stages": {"quality": {"status": "failed", "details": "3 type errors"}}}"#,
                )],
                &["quality (3 type errors)"],
            ),
            (&[("quality-gate.json", r#"{"last_result": "passed"}"#)], none),
            (
                &[
                    ("tasks/1.json", r#"{"status": "pending", "subject": "do A"}"#),
                    ("tasks/2.json", r#"{"status": "completed"}"#),
                ],
                &["do A"],
            ),
            (&[("tasks/1.json", r#"{"status": "in_progress"}"#)], &["tasks/1.json"]),
            (&[("tasks/1.json", r#"{"status": "completed"}"#), ("tasks/notes.txt", "pending")], none),
            (
                &[("orchestrator.json", r#"{"verified_done": true}"#), ("loop.json", r#"{"verified_done": false}"#)],
                &["loop.json"],
            ),
        ];
        for (files, expected) in table {
            let closed = closed(files);
            assert_eq!(closed.len(), expected.len(), "{files:?}: {closed:?}");
            for (line, part) in closed.iter().zip(expected) {
                assert!(line.contains(part), "{files:?}: {line}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_and_does_not_open() {
        let huge = "x".repeat(LARGEST as usize + 1);
        for (name, text) in
            [("orchestrator.json", "{"), ("loop.json", "[]"), ("quality-gate.json", huge.as_str()), ("tasks/1.json", "\0")]
        {
            let closed = closed(&[(name, text)]);
            assert!(closed.len() == 1 && closed[0].contains("unknown") && closed[0].contains(name), "{name}: {closed:?}");
        }
        let (temp, home) = state(&[("orchestrator.json", r#"{"verified_done": true}"#)]);
        let dir = home.join("test-456");
        symlink(dir.join("orchestrator.json"), dir.join("loop.json")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, dir.join("quality-gate.json"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        symlink(temp.path(), dir.join("tasks")).unwrap();
        let names = |found: OtherToolState| -> Vec<String> {
            let name = |file: StateFile| match file {
                StateFile::Unreadable { file, .. } => file,
                StateFile::Closed { file, .. } => format!("closed {file}"),
            };
            found.files.into_iter().map(name).collect()
        };
        assert_eq!(names(read(&home, "test-456")), ["loop.json", "quality-gate.json", "tasks"]);
        symlink(&dir, home.join("linked")).unwrap();
        assert_eq!(names(read(&home, "linked")), ["linked"]);
    }
}
