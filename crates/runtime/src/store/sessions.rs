//! Reads what hooks recorded: the sessions of a run (`.verdone/runs/<run>/sessions/`) and the user's own (`.verdone/sessions/`). Read-only,
//! one line at a time; links and pipes are not opened.

mod faults;
mod lines;
mod stops;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use verdone_core::base::id::encode_component;
use verdone_core::hook::{SessionFold, SessionTally};

use crate::project::HOME;
pub(crate) use lines::each_line;

pub use faults::{FaultWatch, faults};
pub use stops::{StopReader, StoredStop};

/// The name of the sessions folder, in `.verdone/` and in each run's directory.
pub const FOLDER: &str = "sessions";

/// A session with recorded files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The client's id, encoded. This is the name of its folder.
    pub name: String,
    pub dir: PathBuf,
    /// The time of the last write.
    pub changed: SystemTime,
}

/// The folder of sessions that the user started.
pub fn own_sessions(root: &Path) -> PathBuf {
    root.join(HOME).join(FOLDER)
}

/// The folder of a run's sessions.
pub fn run_sessions(run_dir: &Path) -> PathBuf {
    run_dir.join(FOLDER)
}

/// The same folder for a process in the run's workspace. If nothing can be mounted, the workspace contains a link to it.
pub fn sessions_in_workspace(run_dir: &Path) -> PathBuf {
    let folder = run_sessions(run_dir);
    fs::read_link(&folder).unwrap_or(folder)
}

/// The sessions in a folder, newest first. Empty if it is not a folder.
pub fn sessions(folder: &Path) -> io::Result<Vec<StoredSession>> {
    if !is_dir(folder) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Our folders have safe names; skip anything else.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_name(&name) && entry.file_type()?.is_dir() {
            let dir = entry.path();
            found.push(StoredSession { name, changed: changed(&dir)?, dir });
        }
    }
    found.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.name.cmp(&b.name)));
    Ok(found)
}

impl StoredSession {
    /// Whether this is the session's id or its folder's name.
    pub fn is_named(&self, id: &str) -> bool {
        self.name == id || self.name == encode_component(id)
    }

    /// The same, but a prefix is enough.
    pub fn is_meant_by(&self, id: &str) -> bool {
        self.is_named(id) || (id.len() >= 4 && self.name.starts_with(id))
    }

    /// Sums up all records.
    pub fn tally(&self) -> io::Result<SessionTally> {
        tally_in(&self.dir)
    }
}

/// Sums up all records of the session with this id. Empty if there are none.
pub(crate) fn session_tally(folder: &Path, id: &str) -> io::Result<SessionTally> {
    tally_in(&folder.join(encode_component(id)))
}

fn tally_in(dir: &Path) -> io::Result<SessionTally> {
    let mut tally = SessionTally::default();
    each_line(&dir.join("events.jsonl"), 0, &mut |line| match line {
        Some(line) => tally.add_line(line),
        None => tally.add_unread(),
    })?;
    Ok(tally)
}

/// What the records of a session say about its conditions.
pub fn session_fold(folder: &Path, id: &str) -> io::Result<SessionFold> {
    let mut fold = SessionFold::default();
    let events = folder.join(encode_component(id)).join("events.jsonl");
    each_line(&events, 0, &mut |line| fold.add_line(line.unwrap_or_default()))?;
    Ok(fold)
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'%'))
}

fn is_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// The time of the last event. All events are written to files directly inside the folder.
fn changed(dir: &Path) -> io::Result<SystemTime> {
    let mut newest = fs::symlink_metadata(dir)?.modified()?;
    for entry in fs::read_dir(dir)? {
        // A file that is gone by now was renamed, which also updates the folder's time.
        if let Ok(meta) = entry?.metadata() {
            newest = newest.max(meta.modified()?);
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    #[test]
    fn sessions_are_found_newest_first_and_nothing_else_is_taken_for_one() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("sessions");
        assert_eq!(sessions(&folder).unwrap(), []);
        for (age, id) in [(300, "old"), (100, "../new"), (200, "between")] {
            let dir = folder.join(encode_component(id));
            fs::create_dir_all(&dir).unwrap();
            let at = SystemTime::now() - Duration::from_secs(age);
            let file = fs::File::create(dir.join("events.jsonl")).unwrap();
            file.set_modified(at).unwrap();
            fs::File::open(&dir).unwrap().set_modified(at).unwrap();
        }
        fs::write(folder.join("faults.jsonl"), "").unwrap();
        fs::create_dir(folder.join(".hidden")).unwrap();
        fs::create_dir(folder.join("a b")).unwrap();
        symlink(folder.join("old"), folder.join("link")).unwrap();
        let found = sessions(&folder).unwrap();
        assert_eq!(found.iter().map(|session| session.name.as_str()).collect::<Vec<_>>(), ["%2E%2E%2Fnew", "between", "old"]);
        assert!(found[0].is_meant_by("../new") && found[0].is_meant_by("%2E%2E%2Fnew") && !found[0].is_meant_by("old"));
        assert!(found[1].is_meant_by("betw") && !found[1].is_meant_by("bet"));
        let away = temp.path().join("away");
        symlink(&folder, &away).unwrap();
        assert_eq!(sessions(&away).unwrap(), [], "a link is no folder of ours");
    }

    #[test]
    fn a_session_is_added_up_and_a_link_or_a_pipe_in_it_is_not_opened() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("s");
        fs::create_dir(&dir).unwrap();
        let session = StoredSession { name: "s".to_owned(), dir: dir.clone(), changed: SystemTime::now() };
        assert_eq!(session.tally().unwrap(), SessionTally::default(), "nothing was recorded");
        let line = r#"{"at":"2026-11-15T08:00:00Z","event":"X","record":"prompt","refused_by":null}"#;
        fs::write(dir.join("events.jsonl"), format!("{line}\n{line}\n{{\"at\":\"2026-")).unwrap();
        let tally = session.tally().unwrap();
        assert_eq!((tally.prompts, tally.unread), (2, 1));
        fs::rename(dir.join("events.jsonl"), dir.join("real")).unwrap();
        symlink(dir.join("real"), dir.join("events.jsonl")).unwrap();
        assert!(session.tally().is_err());
        fs::remove_file(dir.join("events.jsonl")).unwrap();
        let (events, mode) = (dir.join("events.jsonl"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &events, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(session.tally().is_err(), "and nobody waits for a writer");
    }
}
