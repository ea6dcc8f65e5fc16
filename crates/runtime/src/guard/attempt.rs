//! What the hooks of an attempt leave for its driver in the run's `sessions/`: how many test runs failed in a row (as the length of a file,
//! so that counting takes constant time) and their output.
//!
//! An agent can write here, too. It could only cause its own attempt to be given up, or
//! change text in a prompt. It can never make a check pass.

use std::cmp::Reverse;
use std::fs::{self, DirEntry, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::{sanitise, sanitise_line};
use verdone_core::hook::Streak;
use verdone_core::journal::event::TurnTests;

use super::run_dirs::SESSIONS;
use crate::base::plain_file::open_regular;

/// The file of a session that contains its [`Entry`]s.
pub(super) const FAILURES: &str = "failures.jsonl";
/// How many sessions of a run are read. A run has a few per attempt.
const MOST_SESSIONS: usize = 10_000;
/// More than hooks write into one file.
const LONGEST_FILE: u64 = 512 * 1024;
/// How many test runs a prompt mentions.
const MOST_TOLD: usize = 3;
const LONGEST_SUMMARY: usize = 2_000;
const LONGEST_REASON: usize = 300;

/// The turn of the run that a hook belongs to. The iteration number identifies the attempt, even if attempts are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnOf {
    pub iteration: u32,
    pub turn: u32,
}

/// One failing test run, a line of [`FAILURES`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) iteration: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<u32>,
    pub(super) summary: String,
    /// If the turn was ended because of it, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends_turn: Option<String>,
}

/// How many test runs in a row failed in this attempt.
pub(super) fn failing(sessions: &Path, iteration: u32) -> u32 {
    let meta = fs::symlink_metadata(streak_file(sessions, iteration));
    meta.ok().filter(fs::Metadata::is_file).map_or(0, |meta| u32::try_from(meta.len()).unwrap_or(u32::MAX))
}

pub(super) fn keep_streak(sessions: &Path, iteration: u32, streak: Streak) -> io::Result<()> {
    let path = streak_file(sessions, iteration);
    match streak {
        Streak::Same => Ok(()),
        Streak::Longer => open_regular(&path, OpenOptions::new().append(true).create(true))?.write_all(b"x"),
        Streak::Over => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        },
    }
}

/// Cannot clash with a session: their folder names never start with a dot.
fn streak_file(sessions: &Path, iteration: u32) -> PathBuf {
    sessions.join(format!(".failing-{iteration}"))
}

/// What hooks recorded about the agent's own test runs, after a turn of an attempt that started at `since`. Skips unreadable files.
pub fn turn_tests(run_dir: &Path, turn: TurnOf, since: SystemTime, redactor: &Redactor) -> TurnTests {
    let sessions = run_dir.join(SESSIONS);
    let is_dir = fs::symlink_metadata(&sessions).is_ok_and(|meta| meta.is_dir());
    let Ok(found) = fs::read_dir(&sessions) else { return TurnTests::default() };
    if !is_dir {
        return TurnTests::default();
    }
    let folders = found.take(MOST_SESSIONS).flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut entries: Vec<Entry> = folders.flat_map(|folder| entries_of(&folder, turn.iteration, since)).collect();
    entries.sort_by_key(|entry| Reverse(entry.at));
    let ends = entries.iter().filter(|entry| entry.turn == Some(turn.turn)).find_map(|entry| entry.ends_turn.as_deref());
    let ended_turn = ends.map(|reason| cut(&redactor.redact(&sanitise_line(reason)), LONGEST_REASON));
    let most = MOST_TOLD.min(failing(&sessions, turn.iteration) as usize);
    let summary = |entry: &Entry| cut(&redactor.redact(&sanitise(&entry.summary)), LONGEST_SUMMARY);
    let mut failing: Vec<String> = entries.iter().take(most).map(summary).filter(|text| !text.trim().is_empty()).collect();
    failing.reverse();
    TurnTests { failing, ended_turn }
}

fn entries_of(folder: &DirEntry, iteration: u32, since: SystemTime) -> Vec<Entry> {
    let text = read_end(&folder.path().join(FAILURES), since).unwrap_or_default();
    let entries = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Entry>(line).ok());
    entries.filter(|entry| entry.iteration == Some(iteration)).collect()
}

fn read_end(path: &Path, since: SystemTime) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path, OpenOptions::new().read(true))?;
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    if meta.modified()? >= since {
        file.seek(SeekFrom::Start(meta.len().saturating_sub(LONGEST_FILE)))?;
        file.take(LONGEST_FILE).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const TURN: TurnOf = TurnOf { iteration: 2, turn: 1 };

    fn entry(at: i64, turn: TurnOf, summary: &str, ends_turn: Option<&str>) -> String {
        let entry = Entry {
            at: Timestamp::from_second(at).unwrap(),
            iteration: Some(turn.iteration),
            turn: Some(turn.turn),
            summary: summary.to_owned(),
            ends_turn: ends_turn.map(str::to_owned),
        };
        format!("{}\n", serde_json::to_string(&entry).unwrap())
    }

    fn seen(run: &Path) -> TurnTests {
        turn_tests(run, TURN, SystemTime::UNIX_EPOCH, &Redactor::default())
    }

    #[test]
    fn the_newest_failures_of_the_attempt_are_told_until_tests_pass() {
        let run = tempfile::tempdir().unwrap();
        assert!(seen(run.path()).is_empty());
        let sessions = run.path().join(SESSIONS);
        for session in ["a", "b"] {
            fs::create_dir_all(sessions.join(session)).unwrap();
        }
        let other = TurnOf { iteration: 1, turn: 1 };
        let earlier = TurnOf { iteration: 2, turn: 0 };
        fs::write(
            sessions.join("a").join(FAILURES),
            entry(9, other, "of another attempt", Some("no")) + &entry(3, TURN, "third", None),
        )
        .unwrap();
        let lines = [
            "not json\n".to_owned(),
            entry(1, earlier, "first", Some("before")),
            entry(2, TURN, "second", Some("twice\u{1b}[2J")),
        ];
        fs::write(sessions.join("b").join(FAILURES), lines.concat()).unwrap();
        assert_eq!(seen(run.path()).failing, [""; 0], "nothing fails now");
        for _ in 0..2 {
            keep_streak(&sessions, 2, Streak::Longer).unwrap();
        }
        assert_eq!(failing(&sessions, 2), 2);
        let tests = seen(run.path());
        assert_eq!((tests.failing, tests.ended_turn.as_deref()), (vec!["second".to_owned(), "third".to_owned()], Some("twice")));
        keep_streak(&sessions, 2, Streak::Over).unwrap();
        keep_streak(&sessions, 2, Streak::Over).unwrap();
        assert_eq!(seen(run.path()).failing, [""; 0]);
    }

    #[test]
    fn what_an_agent_puts_there_is_neither_followed_nor_believed_to_any_length() {
        let run = tempfile::tempdir().unwrap();
        let elsewhere = run.path().join("elsewhere");
        let sessions = run.path().join(SESSIONS);
        for folder in [&elsewhere, &sessions.join("s")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(elsewhere.join(FAILURES), entry(1, TURN, "x", Some("x"))).unwrap();
        symlink(&elsewhere, sessions.join("link")).unwrap();
        symlink(elsewhere.join(FAILURES), sessions.join("s").join(FAILURES)).unwrap();
        symlink(elsewhere.join(FAILURES), streak_file(&sessions, 2)).unwrap();
        assert!(seen(run.path()).is_empty());
        assert!(keep_streak(&sessions, 2, Streak::Longer).is_err());
        fs::remove_file(streak_file(&sessions, 2)).unwrap();
        keep_streak(&sessions, 2, Streak::Longer).unwrap();
        fs::create_dir(sessions.join("huge")).unwrap();
        let huge = entry(1, TURN, "lost", None) + &"x".repeat(600_000) + "\n" + &entry(2, TURN, &"y".repeat(100_000), None);
        fs::write(sessions.join("huge").join(FAILURES), huge).unwrap();
        assert_eq!(seen(run.path()).failing[0].len(), LONGEST_SUMMARY);
    }
}
