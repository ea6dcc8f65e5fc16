//! The files of one agent session, under `.verdone/sessions/` or the run's `sessions/`: `events.jsonl` (what happened), `failures.jsonl`
//! (recent test failures), `known/` (files that the session has read or written), `seen.json` (git's state and files outside the story's
//! scope when the turn started, and what the agent was told about them).
//!
//! Several hooks may run at once, so files are only appended to, one line per write. Known files are stored as one empty file per path, so
//! a lookup takes the same time for ten paths and for a million.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde_json::{Map, Value};
use verdone_core::base::id::{digest, encode_component};
use verdone_core::base::redact::Redactor;
use verdone_core::hook::{FileLook, HookInput, Record, Response};
use verdone_testlog::{TestState, describe_outcome};

use crate::base::atomic::replace_for_readers;
use crate::base::plain_file::{open_regular, read_regular};

use super::attempt::{Entry, FAILURES, TurnOf, keep_streak};
use super::run_dirs::HookProject;

/// Failures of our hooks, stored next to the sessions.
pub(crate) const FAULTS: &str = "faults.jsonl";
/// A file of this size is renamed to `….1`, replacing the previous one.
const ROTATED_AT: u64 = 256 * 1024;
/// The range in which to look for the record of a session's start, and its spelling.
const BEGINNING: u64 = 64 * 1024;
const STARTED: &str = "\"record\":\"started\"";
const SEEN: &str = "seen.json";
const LARGEST_SEEN: u64 = 4 * 1024 * 1024;
/// Suffix for files that are being read right now. A change judged shortly afterwards relies on it; a later one does not.
const READING: &str = ".reading";
const READING_COUNTS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct SessionLog {
    dir: PathBuf,
    turn: Option<TurnOf>,
}

impl SessionLog {
    pub(crate) fn new(home: &HookProject, id: &str) -> Self {
        Self { dir: home.sessions().join(encode_component(id)), turn: home.turn }
    }

    /// Whether one of our hooks saw the session start. The record is near the beginning of the file.
    pub(crate) fn has_started(&self) -> bool {
        let mut beginning = Vec::new();
        let file = open_regular(&self.dir.join("events.jsonl"), OpenOptions::new().read(true));
        let read = file.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
        // The cut may be inside a character.
        read.is_ok_and(|_| String::from_utf8_lossy(&beginning).contains(STARTED))
    }

    /// The calls judged since this offset, and the current end of the file. An incomplete last line is left for the next call. A file that
    /// became shorter is read from the start.
    pub(crate) fn judged(&self, from: u64) -> io::Result<(Vec<String>, u64)> {
        #[derive(serde::Deserialize)]
        struct Line {
            record: String,
            id: Option<String>,
        }
        let mut file = open_regular(&self.dir.join("events.jsonl"), OpenOptions::new().read(true))?;
        let mut at = if from <= file.metadata()?.len() { from } else { 0 };
        file.seek(SeekFrom::Start(at))?;
        let (mut file, mut line, mut calls) = (BufReader::new(file), Vec::new(), Vec::new());
        while file.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            at += line.len() as u64;
            let read = serde_json::from_slice::<Line>(&line).ok().filter(|line| line.record == "decided");
            calls.extend(read.and_then(|line| line.id));
            line.clear();
        }
        Ok((calls, at))
    }

    /// Whether the session has read or written a file.
    pub(crate) fn knows(&self, path: &str) -> io::Result<bool> {
        let (shard, name) = self.memory(path);
        match fs::symlink_metadata(shard.join(&name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(is_being_read(&shard.join(name + READING))),
            Err(error) => Err(error),
        }
    }

    /// What the session has seen of git and the scope. Empty if unreadable: it only remembers what the agent was told and guards nothing.
    pub(crate) fn seen(&self) -> FileLook {
        let bytes = read_regular(&self.dir.join(SEEN), LARGEST_SEEN);
        bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Stores the results of an event.
    pub(crate) fn keep(&self, input: &HookInput<'_>, response: &Response) -> io::Result<()> {
        self.dir.parent().map_or(Ok(()), no_link)?;
        no_link(&self.dir)?;
        for path in &response.known {
            self.learn(path)?;
        }
        for path in &response.reading {
            self.begin_reading(path)?;
        }
        for path in &response.unread {
            self.end_reading(path);
        }
        if let Some(seen) = &response.seen {
            self.replace(SEEN, &serde_json::to_string(seen)?)?;
        }
        self.append_records((&input.common.event_name, input.common.agent_id.as_deref()), &response.records)?;
        match (self.turn, self.dir.parent()) {
            (Some(turn), Some(sessions)) => keep_streak(sessions, turn.iteration, response.streak),
            (Some(_), None) | (None, _) => Ok(()),
        }
    }

    /// Appends the records of an event and of the subagent it is about.
    pub(crate) fn append_records(&self, (event, agent): (&str, Option<&str>), records: &[Record]) -> io::Result<()> {
        // Most records contain no free text, and searching for secrets costs more than everything else.
        let redactor = if records.iter().all(has_no_text) { Redactor::default() } else { redactor() };
        let ends_turn =
            records.iter().find_map(|record| if let Record::EndsTurn { reason } = record { Some(reason) } else { None });
        for record in records {
            let line = line(Some(event), agent, record, &redactor);
            self.append("events.jsonl", &line, None)?;
            if let Record::Tests { outcome } = record
                && matches!(outcome.state, TestState::Failed | TestState::Broken)
            {
                let entry = Entry {
                    at: Timestamp::now(),
                    iteration: self.turn.map(|turn| turn.iteration),
                    turn: self.turn.map(|turn| turn.turn),
                    summary: redactor.redact(&describe_outcome(outcome)).into_owned(),
                    ends_turn: ends_turn.map(|reason| redactor.redact(reason).into_owned()),
                };
                self.append(FAILURES, &format!("{}\n", serde_json::to_string(&entry)?), Some(ROTATED_AT))?;
            }
        }
        Ok(())
    }

    fn learn(&self, path: &str) -> io::Result<()> {
        let (shard, name) = self.memory(path);
        // Most files were marked as being read a moment ago.
        if fs::rename(shard.join(format!("{name}{READING}")), shard.join(&name)).is_ok() {
            return Ok(());
        }
        self.make_mark(&shard, &name)
    }

    fn begin_reading(&self, path: &str) -> io::Result<()> {
        let (shard, name) = self.memory(path);
        if fs::symlink_metadata(shard.join(&name)).is_ok() {
            return Ok(());
        }
        self.make_mark(&shard, &format!("{name}{READING}"))
    }

    fn end_reading(&self, path: &str) {
        let (shard, name) = self.memory(path);
        // A mark that stays expires quickly.
        let _ = fs::remove_file(shard.join(name + READING));
    }

    fn make_mark(&self, shard: &Path, name: &str) -> io::Result<()> {
        shard.parent().map_or(Ok(()), no_link)?;
        no_link(shard)?;
        let make = || {
            OpenOptions::new().write(true).create(true).truncate(true).custom_flags(careful()).open(shard.join(name)).map(drop)
        };
        match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dir()?;
                fs::create_dir_all(shard)?;
                make()
            }
            done => done,
        }
    }

    fn memory(&self, path: &str) -> (PathBuf, String) {
        let mut shard = digest(path.as_bytes());
        let name = shard.split_off(2);
        (self.dir.join("known").join(shard), name)
    }

    /// Several hooks may do this at once: the last one wins, and no reader sees a partial file.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        self.make_dir()?;
        replace_for_readers(&self.dir.join(name), text.as_bytes())
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

fn is_being_read(mark: &Path) -> bool {
    let made = fs::symlink_metadata(mark).and_then(|meta| meta.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < READING_COUNTS))
}

/// Records a failure of ours, which may not belong to a session.
pub(crate) fn append_fault(sessions: &Path, event: Option<&str>, records: &[Record]) -> io::Result<()> {
    make_sessions(sessions)?;
    let path = sessions.join(FAULTS);
    records.iter().try_for_each(|record| append(&path, &line(event, None, record, &Redactor::default()), Some(ROTATED_AT)))
}

/// Appends a line to a file in a session's folder, or in the folder of all sessions. Creates missing folders.
pub(crate) fn append_in(sessions: &Path, session: Option<&str>, name: &str, line: &str) -> io::Result<()> {
    make_sessions(sessions)?;
    let dir = session.map_or_else(|| sessions.to_owned(), |id| sessions.join(encode_component(id)));
    no_link(&dir)?;
    fs::create_dir_all(&dir)?;
    append(&dir.join(name), line, None)
}

/// Creates the folder with a `.gitignore` that excludes it from commits.
pub(crate) fn make_sessions(sessions: &Path) -> io::Result<()> {
    no_link(sessions)?;
    let ignore = sessions.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(sessions)?;
    match OpenOptions::new().write(true).create_new(true).open(ignore) {
        Ok(mut file) => file.write_all(b"*\n"),
        // Another hook was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a link in place of our folder: it would redirect our writes.
fn no_link(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(meta) if meta.is_symlink() => Err(io::Error::other(format!("{} is a link", folder.display()))),
        Ok(_) | Err(_) => Ok(()),
    }
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

/// Open flags that do not follow links and do not block on pipes.
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
    // JSON escapes none of the characters that occur in secrets, so the serialised line can be searched.
    if redactor.finds_nothing(&line) {
        return line;
    }
    redact(&mut value, redactor);
    format!("{value}\n")
}

pub(crate) fn redactor() -> Redactor {
    Redactor::new(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))))
}

/// Whether the record contains no text written by an agent or user, except for tool names.
fn has_no_text(record: &Record) -> bool {
    match record {
        Record::Decided { about, reason, .. } => about.is_none() && reason.is_empty(),
        Record::Ran { files, .. } => files.is_empty(),
        Record::Prompt { text, .. } => text.is_empty(),
        Record::Started { .. }
        | Record::Spent(_)
        | Record::Ended { .. }
        | Record::Began { .. }
        | Record::Lessons { .. }
        | Record::Seen => true,
        Record::Outside { .. }
        | Record::GitState { .. }
        | Record::Tests { .. }
        | Record::EndsTurn { .. }
        | Record::AfterTool { .. }
        | Record::Settings { .. }
        | Record::TurnFailed { .. }
        | Record::Recalled { .. }
        | Record::TaskOpened { .. }
        | Record::TaskClosed { .. }
        | Record::Stop(_)
        | Record::Incomplete { .. }
        | Record::Failed(_) => false,
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

    fn session() -> (tempfile::TempDir, SessionLog) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("sessions/s");
        (temp, SessionLog { dir, turn: None })
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
    fn judged_calls_are_read_once_and_a_half_line_waits() {
        let (_temp, session) = session();
        let decided = |id: &str| format!("{{\"record\":\"decided\",\"id\":\"{id}\"}}\n");
        assert!(session.judged(0).is_err(), "there is no file yet");
        for line in [decided("a"), "{\"record\":\"ran\",\"id\":\"x\"}\n".to_owned(), "rubbish\n".to_owned(), decided("b")] {
            session.append("events.jsonl", &line, None).unwrap();
        }
        let (calls, at) = session.judged(0).unwrap();
        assert_eq!(calls, ["a", "b"]);
        assert_eq!(session.judged(at).unwrap(), (Vec::new(), at));
        let third = decided("c");
        session.append("events.jsonl", &third[..10], None).unwrap();
        assert_eq!(session.judged(at).unwrap(), (Vec::new(), at), "somebody is writing it");
        session.append("events.jsonl", &third[10..], None).unwrap();
        let (calls, end) = session.judged(at).unwrap();
        assert_eq!((calls, end), (vec!["c".to_owned()], at + third.len() as u64));
        fs::write(session.dir.join("events.jsonl"), decided("d")).unwrap();
        assert_eq!(session.judged(end).unwrap().0, ["d"], "another file is read from its beginning");
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
