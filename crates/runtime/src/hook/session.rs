//! The files of one agent session, under `.verdone/sessions/`: `events.jsonl` (what happened), `failures.jsonl` (what tests showed,
//! the newest part), `known/` (which files the session has read or written).
//!
//! Several hooks may run at once, so files are only appended to, a line a write. The memory is one empty file a path: as quick with a
//! million of them as with ten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde_json::{Map, Value};
use verdone_core::hook::{HookInput, Record, Response};
use verdone_core::id::{digest, encode_component};
use verdone_core::redact::Redactor;
use verdone_core::test_outcome::{TestState, summary};

use super::home::Home;

/// A file that reaches it is set aside as `….1`, and the one before that is gone.
const ROTATED_AT: u64 = 256 * 1024;

#[derive(Debug)]
pub(super) struct Session {
    dir: PathBuf,
}

impl Session {
    pub(super) fn of(home: &Home, id: &str) -> Self {
        Self { dir: home.sessions().join(encode_component(id)) }
    }

    /// Whether the session has read or written a file.
    pub(super) fn knows(&self, path: &str) -> io::Result<bool> {
        let (shard, name) = self.memory(path);
        match fs::symlink_metadata(shard.join(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Keeps what came of an event.
    pub(super) fn keep(&self, input: &HookInput<'_>, response: &Response) -> io::Result<()> {
        for path in &response.known {
            self.learn(path)?;
        }
        // Most records hold no text of anybody's, and to look for secrets costs more than all the rest.
        let redactor = if response.records.iter().all(has_no_text) { Redactor::default() } else { redactor() };
        for record in &response.records {
            let line = line(Some(&input.common.event_name), input.common.agent_id.as_deref(), record, &redactor);
            self.append("events.jsonl", &line, None)?;
            if let Record::Tests { outcome } = record
                && matches!(outcome.state, TestState::Failed | TestState::Broken)
            {
                let entry = serde_json::json!({ "at": Timestamp::now(), "summary": redactor.redact(&summary(outcome)) });
                self.append("failures.jsonl", &format!("{entry}\n"), Some(ROTATED_AT))?;
            }
        }
        Ok(())
    }

    fn learn(&self, path: &str) -> io::Result<()> {
        let (shard, name) = self.memory(path);
        let make = || OpenOptions::new().write(true).create(true).custom_flags(careful()).open(shard.join(&name));
        match make() {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dir()?;
                fs::create_dir_all(&shard)?;
                make().map(drop)
            }
            Err(error) => Err(error),
        }
    }

    fn memory(&self, path: &str) -> (PathBuf, String) {
        let mut shard = digest(path.as_bytes());
        let name = shard.split_off(2);
        (self.dir.join("known").join(shard), name)
    }

    fn append(&self, name: &str, line: &str, most: Option<u64>) -> io::Result<()> {
        let path = self.dir.join(name);
        match append(&path, line, most) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dir()?;
                append(&path, line, most)
            }
            done => done,
        }
    }

    fn make_dir(&self) -> io::Result<()> {
        self.dir.parent().map_or(Ok(()), make_sessions)?;
        fs::create_dir_all(&self.dir)
    }
}

/// A fault of ours, which may have no session.
pub(super) fn append_fault(sessions: &Path, event: Option<&str>, records: &[Record]) -> io::Result<()> {
    make_sessions(sessions)?;
    let path = sessions.join("faults.jsonl");
    records.iter().try_for_each(|record| append(&path, &line(event, None, record, &Redactor::default()), Some(ROTATED_AT)))
}

/// The folder ignores itself, so that no commit takes it.
fn make_sessions(sessions: &Path) -> io::Result<()> {
    let ignore = sessions.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(sessions)?;
    File::create(ignore)?.write_all(b"*\n")
}

fn append(path: &Path, line: &str, most: Option<u64>) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).custom_flags(careful()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if most.is_some_and(|most| meta.len() > most) {
        fs::rename(path, path.with_extension("1.jsonl"))?;
        file = OpenOptions::new().append(true).create(true).custom_flags(careful()).open(path)?;
    }
    file.write_all(line.as_bytes())
}

/// No link is followed and no pipe waited for.
fn careful() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed()
}

fn line(event: Option<&str>, agent: Option<&str>, record: &Record, redactor: &Redactor) -> String {
    let mut object = Map::new();
    object.insert("at".to_owned(), Timestamp::now().to_string().into());
    object.extend(event.map(|event| ("event".to_owned(), Value::from(event))));
    object.extend(agent.map(|agent| ("agent".to_owned(), Value::from(agent))));
    if let Ok(Value::Object(fields)) = serde_json::to_value(record) {
        object.extend(fields);
    }
    let mut value = Value::Object(object);
    let line = format!("{value}\n");
    // No shape of a secret has a character that JSON writes otherwise.
    if redactor.finds_nothing(&line) {
        return line;
    }
    redact(&mut value, redactor);
    format!("{value}\n")
}

fn redactor() -> Redactor {
    Redactor::new(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))))
}

/// Whether nothing in it was written by an agent or a user, but for the names of tools.
fn has_no_text(record: &Record) -> bool {
    match record {
        Record::Decided { about, reason, .. } => about.is_none() && reason.is_empty(),
        Record::Ran { files, .. } => files.is_empty(),
        Record::Started { .. } | Record::Prompt { .. } | Record::Ended { .. } | Record::Seen => true,
        Record::Tests { .. } | Record::Settings { .. } | Record::TurnFailed { .. } | Record::Failed(_) => false,
    }
}

fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(|value| redact(value, redactor)),
        Value::Object(table) => table.values_mut().for_each(|value| redact(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn session() -> (tempfile::TempDir, Session) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("sessions/s");
        (temp, Session { dir })
    }

    #[test]
    fn the_memory_knows_exactly_what_it_was_told() {
        let (temp, session) = session();
        assert!(!session.knows("/a/b").unwrap());
        session.learn("/a/b").unwrap();
        session.learn("/a/b").unwrap();
        assert!(session.knows("/a/b").unwrap());
        assert!(!session.knows("/a/c").unwrap());
        assert_eq!(fs::read_to_string(temp.path().join("sessions/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn a_full_file_is_set_aside_and_a_link_or_pipe_is_not_written_through() {
        let (temp, session) = session();
        for _ in 0..2 {
            session.append("failures.jsonl", &"x".repeat(200), Some(300)).unwrap();
        }
        session.append("failures.jsonl", "y\n", Some(300)).unwrap();
        let read = |name: &str| fs::read_to_string(session.dir.join(name)).unwrap();
        assert_eq!((read("failures.jsonl").as_str(), read("failures.1.jsonl").len()), ("y\n", 400));
        symlink(temp.path().join("victim"), session.dir.join("events.jsonl")).unwrap();
        assert!(session.append("events.jsonl", "x", None).is_err());
        assert!(!temp.path().join("victim").exists());
    }
}
