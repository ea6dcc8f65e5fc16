//! The append-only log of a run: one JSON event per line, on disk before it takes effect. Only one process writes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::journal::event::{Event, Recorded, SCHEMA_VERSION};

use super::reader::find_from_end;
use crate::base::fault::{self, Point};

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}:{line}: not a journal line: {message}", path = path.display())]
    Broken { path: PathBuf, line: usize, message: String },
    #[error("{path}: written by a newer version (format {found}, this one knows {SCHEMA_VERSION})", path = path.display())]
    Newer { path: PathBuf, found: u32 },
}

/// The writer.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    seq: u64,
    /// The file's metadata after our last write.
    stamp: Option<Stamp>,
}

/// The time of a line: wall clock and, if available, the run's active time.
#[derive(Debug, Clone, Copy)]
pub struct When {
    pub at: Timestamp,
    pub active_ms: Option<u64>,
}

impl From<Timestamp> for When {
    fn from(at: Timestamp) -> Self {
        Self { at, active_ms: None }
    }
}

/// Device, inode and size of a file. Another writer changes at least one of them; a backup does not.
type Stamp = (u64, u64, u64);

impl Journal {
    /// Creates the journal of a new run.
    pub fn create(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join("journal.jsonl");
        let open = || -> io::Result<File> {
            fault::point(Point::JournalCreate)?;
            let file = OpenOptions::new().create_new(true).append(true).open(&path)?;
            File::open(dir)?.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(|source| JournalError::Io { path: path.clone(), source })?;
        fault::pass(Point::JournalCreated);
        let stamp = stamp(&path);
        Ok(Self { file, path, seq: 0, stamp })
    }

    /// Continues a journal. Cuts off an incomplete last line, which only a crash leaves behind.
    pub fn reopen(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join("journal.jsonl");
        let (seq, length) = find_from_end(&path, |events, end| Some((events.last()?.seq, end)))?.unwrap_or_default();
        let open = || -> io::Result<File> {
            fault::point(Point::JournalReopen)?;
            let file = OpenOptions::new().append(true).open(&path)?;
            file.set_len(length)?;
            Ok(file)
        };
        let file = open().map_err(|source| JournalError::Io { path: path.clone(), source })?;
        let stamp = stamp(&path);
        Ok(Self { file, path, seq, stamp })
    }

    /// Writes the events in one write and waits until they are on disk.
    pub fn append(&mut self, events: Vec<Event>, when: impl Into<When>) -> Result<Vec<Recorded>, JournalError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let When { at, active_ms } = when.into();
        let mut lines = Vec::new();
        let mut recorded = Vec::with_capacity(events.len());
        for (seq, event) in (self.seq + 1..).zip(events) {
            let entry = Recorded { v: SCHEMA_VERSION, seq, at, active_ms, event };
            serde_json::to_writer(&mut lines, &entry)
                .map_err(|source| JournalError::Io { path: self.path.clone(), source: source.into() })?;
            lines.push(b'\n');
            recorded.push(entry);
        }
        self.refuse_if_changed()
            .and_then(|()| fault::point(Point::JournalAppend))
            .and_then(|()| fault::write_torn(&mut self.file, &lines, Point::JournalTorn))
            .and_then(|()| fault::point(Point::JournalWritten))
            .and_then(|()| self.file.sync_data())
            .map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        fault::pass(Point::JournalSynced);
        self.seq += recorded.len() as u64;
        self.stamp = stamp(&self.path);
        Ok(recorded)
    }

    /// Only one process may write a journal. Changes by another process are not overwritten, and nothing is written to a deleted file.
    fn refuse_if_changed(&self) -> io::Result<()> {
        if self.stamp.is_some() && stamp(&self.path) == self.stamp {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "another program changed or removed it"))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((meta.dev(), meta.ino(), meta.len()))
}

#[cfg(test)]
mod tests {
    use super::super::read_journal;
    use super::*;
    use std::io::Write as _;
    use verdone_core::base::finish::StopSignal;

    fn event() -> Event {
        Event::StopRequested { signal: StopSignal::Sigint }
    }

    fn journal_of(count: usize) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path()).unwrap();
        for _ in 0..count {
            journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
        }
        let path = dir.path().join("journal.jsonl");
        (dir, path)
    }

    #[test]
    fn what_was_appended_is_read_back_in_order() {
        let (_dir, path) = journal_of(3);
        let (events, damage) = read_journal(&path).unwrap();
        assert_eq!(events.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(damage, None);
    }

    #[test]
    fn a_line_torn_at_any_byte_loses_only_itself() {
        let (dir, path) = journal_of(2);
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (events, damage) = read_journal(&path).unwrap();
            assert_eq!(events.len(), 1, "cut at {cut}");
            assert_eq!(damage.is_some(), cut > first, "cut at {cut}");
            let mut journal = Journal::reopen(dir.path()).unwrap();
            journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(read_journal(&path).unwrap().0.len(), 2, "cut at {cut}");
        }
    }

    #[test]
    fn damage_in_the_middle_is_an_error_with_its_line() {
        let (_dir, path) = journal_of(3);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        fs::write(&path, format!("{}\ngarbage\n{}\n", lines[0], lines[2])).unwrap();
        assert!(read_journal(&path).unwrap_err().to_string().contains(":2: not a journal line"));
    }

    #[test]
    fn a_journal_that_another_program_changed_is_not_written_over() {
        type Damage = fn(&Path);
        let damages: [Damage; 5] = [
            |path| fs::write(path, "forged\n").unwrap(),
            |path| OpenOptions::new().append(true).open(path).unwrap().write_all(b"{}\n").unwrap(),
            |path| fs::remove_file(path).unwrap(),
            |path| {
                fs::remove_file(path).unwrap();
                rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
            },
            |path| {
                fs::copy(path, path.with_extension("copy")).unwrap();
                fs::rename(path.with_extension("copy"), path).unwrap();
            },
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            for reopened in [false, true] {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("journal.jsonl");
                let mut journal = Journal::create(dir.path()).unwrap();
                journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
                if reopened {
                    journal = Journal::reopen(dir.path()).unwrap();
                }
                damage(&path);
                let after = fs::symlink_metadata(&path).map(|meta| meta.len()).ok();
                let refused = journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap_err().to_string();
                assert!(refused.contains("another program"), "{number}: {refused}");
                assert_eq!(fs::symlink_metadata(&path).map(|meta| meta.len()).ok(), after, "{number}");
            }
        }
    }

    #[test]
    fn a_backup_that_links_the_journal_does_not_end_the_run() {
        let (dir, path) = journal_of(1);
        let mut journal = Journal::reopen(dir.path()).unwrap();
        fs::hard_link(&path, dir.path().join("backup")).unwrap();
        journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(read_journal(&path).unwrap().0.len(), 2);
    }

    #[test]
    fn the_end_is_found_however_long_the_journal_is() {
        let (dir, path) = journal_of(1);
        let line = fs::read_to_string(&path).unwrap();
        for count in [1, 2, 500, 2_000, 20_000] {
            let text: String = (1..=count).map(|seq| line.replace("\"seq\":1,", &format!("\"seq\":{seq},"))).collect();
            fs::write(&path, &text).unwrap();
            let seen = |wanted: usize| find_from_end(&path, move |events, _| (events.len() >= wanted).then_some(events[0].seq));
            assert_eq!(seen(count).unwrap(), Some(1), "{count}: all of it is looked at, and no line twice");
            assert_eq!(seen(count + 1).unwrap(), None, "{count}");
            fs::write(&path, format!("{text}{{\"v\":1,\"se")).unwrap();
            let mut journal = Journal::reopen(dir.path()).unwrap();
            let next = journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(next[0].seq, count as u64 + 1);
            assert_eq!(read_journal(&path).unwrap().0.len(), count + 1);
        }
    }

    #[test]
    fn a_newer_format_is_refused_not_misread() {
        let (_dir, path) = journal_of(1);
        fs::write(&path, "{\"v\":99,\"event\":\"from_the_future\"}\n").unwrap();
        assert!(matches!(read_journal(&path), Err(JournalError::Newer { found: 99, .. })));
        let (_dir, path) = journal_of(2);
        let known = fs::read_to_string(&path).unwrap().replace("\"v\":1", "\"v\":2");
        fs::write(&path, known).unwrap();
        assert!(matches!(read_journal(&path), Err(JournalError::Newer { found: 2, .. })), "also where the fields look familiar");
    }
}
