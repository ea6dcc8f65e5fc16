//! Our own state in the files of other loops, for people and tools that look there. Our files carry a mark, and files without it are never
//! overwritten.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use verdone_core::base::id::encode_component;
use verdone_core::done::{Condition, ConditionOutcome, DoneReport, DoneState, Prover, RalphState};

use super::{LOOP, MARK, ORCHESTRATOR, QUALITY, is_ours, object, short_text, shown};
use crate::base::atomic::draft_in;

/// Whose state is written.
#[derive(Debug, Clone, Copy)]
pub struct Projection<'a> {
    /// The id of a session or a run.
    pub session: &'a str,
    pub task: &'a str,
    pub now: Timestamp,
}

/// The progress of a loop or a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopFile {
    pub iteration: u32,
    /// 0 means no limit.
    pub max_iterations: u32,
    pub standing: DoneState,
    pub last_error: Option<String>,
}

impl LoopFile {
    /// The progress of work with these conditions.
    pub fn from_report(report: &DoneReport, iteration: u32, max_iterations: u32) -> Self {
        let last_error = report.open().first().cloned();
        Self { iteration, max_iterations, standing: report.standing(), last_error }
    }
}

/// Whether the settings and the home allow writing.
pub fn is_written(home: &Path, setting: RalphState) -> bool {
    match setting {
        RalphState::Never => false,
        RalphState::Auto => home.is_dir(),
        RalphState::Always => true,
    }
}

/// Writes `orchestrator.json` and `quality-gate.json`, if allowed. Returns the names of files that belong to another tool.
pub fn write_report(
    home: &Path,
    setting: RalphState,
    about: &Projection<'_>,
    report: &DoneReport,
    iterations: u32,
) -> io::Result<Vec<String>> {
    let mut theirs = Vec::new();
    for (name, state) in [(ORCHESTRATOR, as_orchestrator(about, report, iterations)), (QUALITY, as_quality(report))] {
        if !write(home, setting, about, name, state)? {
            theirs.push(name.to_owned());
        }
    }
    Ok(theirs)
}

/// Writes `loop.json`, if allowed. Returns false if the file belongs to another tool.
pub fn write_loop(home: &Path, setting: RalphState, about: &Projection<'_>, progress: &LoopFile) -> io::Result<bool> {
    write(home, setting, about, LOOP, as_loop(about, progress))
}

/// Removes `loop.json` of a loop that ended unfinished, if it is ours: other tools would take it for an active loop.
pub fn remove_loop(home: &Path, session: &str) -> io::Result<()> {
    let path = home.join(encode_component(session)).join(LOOP);
    match object(&path) {
        Ok(Some(state)) if is_ours(&state) => fs::remove_file(path),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn write(home: &Path, setting: RalphState, about: &Projection<'_>, name: &str, state: Value) -> io::Result<bool> {
    if !is_written(home, setting) {
        return Ok(true);
    }
    let dir = home.join(encode_component(about.session));
    fs::create_dir_all(&dir)?;
    if fs::symlink_metadata(&dir)?.is_symlink() {
        return Err(io::Error::other(format!("{} is a link", shown(&dir))));
    }
    put(&dir, name, state, about)
}

/// Returns false if the file belongs to another tool.
fn put(dir: &Path, name: &str, mut state: Value, about: &Projection<'_>) -> io::Result<bool> {
    let path = dir.join(name);
    let before = match object(&path) {
        Ok(Some(before)) if is_ours(&before) => Some(before),
        Ok(None) => None,
        Ok(Some(_)) | Err(_) => return Ok(false),
    };
    let now = Value::from(about.now.to_string());
    let created = before.as_ref().and_then(|before| before.get("created_at").cloned()).unwrap_or_else(|| now.clone());
    state["session_id"] = short_text(about.session).into();
    state["created_at"] = created;
    state["last_updated"] = now;
    state[MARK.0] = MARK.1.into();
    let mut file = draft_in(dir)?;
    file.write_all(format!("{state:#}\n").as_bytes())?;
    if before.is_some() {
        file.persist(&path)?;
        return Ok(true);
    }
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(true),
        // Another tool was faster.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

fn as_orchestrator(about: &Projection<'_>, report: &DoneReport, iterations: u32) -> Value {
    let flag = |condition: &Condition| {
        let outcome = report.get(condition.name()).and_then(|judged| judged.outcome.as_flag());
        (condition.name().to_owned(), outcome.map_or(Value::Null, Value::from))
    };
    json!({
        "task": short_text(about.task),
        "phase": report.phase().name(),
        "verified_done": report.standing() == DoneState::Done,
        "conditions": Condition::ALL.iter().map(flag).collect::<Map<_, _>>(),
        "iterations": iterations,
    })
}

fn as_loop(about: &Projection<'_>, progress: &LoopFile) -> Value {
    json!({
        "task": short_text(about.task),
        "iteration": progress.iteration,
        "max_iterations": progress.max_iterations,
        "validation_result": match progress.standing { DoneState::Done => "passed", DoneState::Unknown => "unknown", DoneState::Open => "failed" },
        "last_error": progress.last_error.as_deref().map(short_text),
        "verified_done": progress.standing == DoneState::Done,
    })
}

fn as_quality(report: &DoneReport) -> Value {
    let mut stages = Map::new();
    let mut worst: Option<&ConditionOutcome> = None;
    for judged in &report.conditions {
        let Prover::Gate(stage) = &judged.prover else { continue };
        let (status, details) = match &judged.outcome {
            ConditionOutcome::Held { by } => ("passed", Some(short_text(by))),
            ConditionOutcome::NotNeeded { .. } => continue,
            ConditionOutcome::Unknown { why } => ("pending", Some(short_text(why))),
            ConditionOutcome::Missing { why, .. } => ("failed", Some(short_text(why))),
        };
        stages.entry(stage.clone()).or_insert_with(|| json!({ "status": status, "details": details }));
        // A stage that nothing requires and nothing checks is no reason for doubt.
        if judged.required || matches!(judged.outcome, ConditionOutcome::Missing { .. }) {
            worst = worst.max(Some(&judged.outcome));
        }
    }
    let last = match worst {
        Some(ConditionOutcome::Missing { .. }) => "failed",
        Some(ConditionOutcome::Held { .. }) => "passed",
        Some(ConditionOutcome::NotNeeded { .. } | ConditionOutcome::Unknown { .. }) | None => "unknown",
    };
    json!({ "last_result": last, "stages": stages })
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::super::{OtherToolState, read};
    use super::*;
    use verdone_core::done::{DoneSettings, Facts, judge};

    fn looped() -> LoopFile {
        LoopFile {
            iteration: 3,
            max_iterations: 25,
            standing: DoneState::Open,
            last_error: Some("it \u{1b}[31mfails".to_owned()),
        }
    }

    #[test]
    fn the_id_of_a_session_leads_nowhere_else() {
        let (temp, home) = state(&[("orchestrator.json", r#"{"verified_done": false}"#)]);
        let report = DoneReport::default();
        for session in ["../x", "", "\0", "a/../../b", &"long".repeat(2_560)] {
            assert_eq!(read(&home, session), OtherToolState::default());
            let now = Timestamp::UNIX_EPOCH;
            let about = Projection { session, task: "t", now };
            assert!(write_report(&home, RalphState::Auto, &about, &report, 1).unwrap().is_empty());
            assert!(write_loop(&home, RalphState::Auto, &about, &looped()).unwrap());
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(temp.path().join(".ralph")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 6, "one folder for each, all inside");
    }

    #[test]
    fn projections_are_written_where_the_home_is_and_never_over_a_file_of_another_tool() {
        let foreign = r#"{"verified_done": false, "phase": "theirs"}"#;
        let (temp, home) = state(&[("orchestrator.json", foreign)]);
        let report = judge(&DoneSettings::default(), &Facts::default());
        let about = |now| Projection { session: "test-456", task: "do it", now };
        let write = |home: &Path, setting, now| {
            assert!(write_loop(home, setting, &about(now), &looped()).unwrap());
            write_report(home, setting, &about(now), &report, 3).unwrap()
        };
        let (first, later) = (Timestamp::UNIX_EPOCH, "2026-11-15T08:00:00Z".parse().unwrap());
        assert_eq!(write(&home, RalphState::Never, first), Vec::<String>::new());
        assert_eq!(fs::read_dir(home.join("test-456")).unwrap().count(), 1);
        assert_eq!(write(&home, RalphState::Auto, first), ["orchestrator.json"]);
        assert_eq!(write(&home, RalphState::Auto, later), ["orchestrator.json"]);
        assert_eq!(fs::read_to_string(home.join("test-456/orchestrator.json")).unwrap(), foreign);
        let read_json =
            |name: &str| -> Value { serde_json::from_slice(&fs::read(home.join("test-456").join(name)).unwrap()).unwrap() };
        let ours = read_json("loop.json");
        assert_eq!(
            (&ours["iteration"], &ours["verified_done"], &ours["written_by"]),
            (&json!(3), &json!(false), &json!("verdone"))
        );
        assert_eq!((&ours["created_at"], &ours["last_updated"]), (&json!(first.to_string()), &json!("2026-11-15T08:00:00Z")));
        assert_eq!(read_json("quality-gate.json")["last_result"], "unknown");
        assert_eq!(read(&home, "test-456").files.len(), 1, "our own files hold nothing back");
        let nowhere = temp.path().join("other/state");
        assert_eq!(write(&nowhere, RalphState::Auto, first), Vec::<String>::new());
        assert!(!nowhere.exists());
        assert_eq!(write(&nowhere, RalphState::Always, first), Vec::<String>::new());
        let written: Value = serde_json::from_slice(&fs::read(nowhere.join("test-456/orchestrator.json")).unwrap()).unwrap();
        assert_eq!(written["conditions"].as_object().unwrap().len(), 9);
        assert_eq!(
            (&written["conditions"]["memory_search"], &written["conditions"]["task_classified"]),
            (&Value::Null, &json!(false))
        );
    }

    #[test]
    fn a_loop_that_ended_takes_its_own_file_away_and_no_other() {
        let (_temp, home) = state(&[("orchestrator.json", "{}")]);
        let about = Projection { session: "test-456", task: "t", now: Timestamp::UNIX_EPOCH };
        assert!(write_loop(&home, RalphState::Auto, &about, &looped()).unwrap());
        let file = home.join("test-456/loop.json");
        assert!(fs::read_to_string(&file).unwrap().contains("\"last_error\": \"it fails\""));
        remove_loop(&home, "test-456").unwrap();
        assert!(!file.exists());
        fs::write(&file, "{}").unwrap();
        remove_loop(&home, "test-456").unwrap();
        assert!(file.exists());
        assert!(!write_loop(&home, RalphState::Auto, &about, &looped()).unwrap(), "it belongs to another tool");
    }
}
