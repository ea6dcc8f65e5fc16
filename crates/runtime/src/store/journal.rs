//! The append-only log of a run: one JSON event a line, on disk before anything is done about it. One process writes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::event::{Event, Recorded, SCHEMA_VERSION};

use crate::atomic::write_atomically;
use crate::fault::{self, Point};

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}:{line}: not a journal line: {message}", path = path.display())]
    Broken { path: PathBuf, line: usize, message: String },
    #[error("{path}: written by a newer version (format {found}, this one knows {SCHEMA_VERSION})", path = path.display())]
    Newer { path: PathBuf, found: u32 },
}

/// The writing end.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    seq: u64,
    /// Everything that belongs into the file: an agent can reach it, and must not be able to change what is read later.
    ours: Vec<u8>,
    stamp: Option<Stamp>,
    put_back: u32,
}

/// Changes whenever a file's bytes do.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

impl Journal {
    /// Begins the journal of a new run.
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
        Ok(Self { file, path, seq: 0, ours: Vec::new(), stamp, put_back: 0 })
    }

    /// Goes on with a journal; a torn last line, which only a crash leaves behind, is cut off.
    pub fn reopen(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join("journal.jsonl");
        let (events, _) = read_journal(&path)?;
        let open = || -> io::Result<(File, Vec<u8>)> {
            fault::point(Point::JournalReopen)?;
            let mut bytes = fs::read(&path)?;
            bytes.truncate(complete_lines(&bytes, events.len()));
            let file = OpenOptions::new().append(true).open(&path)?;
            file.set_len(bytes.len() as u64)?;
            Ok((file, bytes))
        };
        let (file, ours) = open().map_err(|source| JournalError::Io { path: path.clone(), source })?;
        let stamp = stamp(&path);
        Ok(Self { file, path, seq: events.last().map_or(0, |last| last.seq), ours, stamp, put_back: 0 })
    }

    /// Writes the events in one go and waits until they are on disk.
    pub fn append(&mut self, events: Vec<Event>, at: Timestamp) -> Result<Vec<Recorded>, JournalError> {
        let mut lines = Vec::new();
        let mut recorded = Vec::with_capacity(events.len());
        for event in events {
            self.seq += 1;
            let entry = Recorded { v: SCHEMA_VERSION, seq: self.seq, at, event };
            serde_json::to_writer(&mut lines, &entry)
                .map_err(|source| JournalError::Io { path: self.path.clone(), source: source.into() })?;
            lines.push(b'\n');
            recorded.push(entry);
        }
        self.keep_ours()
            .and_then(|()| fault::point(Point::JournalAppend))
            .and_then(|()| fault::write_torn(&mut self.file, &lines, Point::JournalTorn))
            .and_then(|()| fault::point(Point::JournalWritten))
            .and_then(|()| self.file.sync_data())
            .map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        fault::pass(Point::JournalSynced);
        self.ours.extend_from_slice(&lines);
        self.stamp = stamp(&self.path);
        Ok(recorded)
    }

    /// How often somebody else had written into the file. What was found is kept beside it.
    pub fn times_put_back(&self) -> u32 {
        self.put_back
    }

    fn keep_ours(&mut self) -> io::Result<()> {
        if self.stamp.is_some() && stamp(&self.path) == self.stamp {
            return Ok(());
        }
        match fs::symlink_metadata(&self.path) {
            Ok(meta) if meta.is_file() && fs::read(&self.path)? == self.ours => return Ok(()),
            // Moved, not read: it may be a pipe, which would wait for ever, or a link to somewhere else.
            Ok(_) => fs::rename(&self.path, self.path.with_file_name(format!("journal-found-{}.jsonl", self.put_back + 1)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.put_back += 1;
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir)?;
        }
        write_atomically(&self.path, &self.ours)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        Ok(())
    }
}

/// Reads a journal. A torn last line is left out and told about; anything else that is broken is an error.
pub fn read_journal(path: &Path) -> Result<(Vec<Recorded>, Option<String>), JournalError> {
    let failed = |source| JournalError::Io { path: path.to_owned(), source };
    // A pipe in its place would make us wait for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, "not a file")));
    }
    let bytes = fs::read(path).map_err(failed)?;
    let mut events = Vec::new();
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        match serde_json::from_slice::<Recorded>(line) {
            Ok(Recorded { v: found, .. }) if found > SCHEMA_VERSION => {
                return Err(JournalError::Newer { path: path.to_owned(), found });
            }
            Ok(recorded) if line.ends_with(b"\n") => events.push(recorded),
            Ok(_) => return Ok((events, Some(torn(number)))),
            Err(source) => {
                if let Some(found) = newer_version(line) {
                    return Err(JournalError::Newer { path: path.to_owned(), found });
                }
                if lines.peek().is_none() {
                    return Ok((events, Some(torn(number))));
                }
                return Err(JournalError::Broken { path: path.to_owned(), line: number + 1, message: without_position(&source) });
            }
        }
    }
    Ok((events, None))
}

/// The lines of a journal that are events, as they stand there.
pub fn readable_lines(bytes: &[u8]) -> Vec<u8> {
    let is_event = |line: &&[u8]| line.ends_with(b"\n") && serde_json::from_slice::<Recorded>(line).is_ok();
    bytes.split_inclusive(|byte| *byte == b'\n').filter(is_event).flatten().copied().collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

/// The parser counts from the start of the line, which only confuses beside the journal's own line number.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn torn(number: usize) -> String {
    format!("line {} is incomplete and was left out", number + 1)
}

fn newer_version(line: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let found = u32::try_from(value.get("v")?.as_u64()?).ok()?;
    (found > SCHEMA_VERSION).then_some(found)
}

/// How many bytes the first `count` lines take.
fn complete_lines(bytes: &[u8], count: usize) -> usize {
    bytes.split_inclusive(|byte| *byte == b'\n').take(count).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::finish::StopSignal;

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
    fn whatever_was_put_in_its_place_is_kept_and_the_journal_goes_on() {
        type Damage = fn(&Path);
        let damages: [Damage; 4] = [
            |path| fs::write(path, "forged\n").unwrap(),
            |path| fs::remove_file(path).unwrap(),
            |path| {
                fs::remove_file(path).unwrap();
                rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
            },
            |path| {
                fs::rename(path, path.with_extension("elsewhere")).unwrap();
                std::os::unix::fs::symlink(path.with_extension("elsewhere"), path).unwrap();
            },
        ];
        for damage in damages {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal.jsonl");
            let mut journal = Journal::create(dir.path()).unwrap();
            journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
            damage(&path);
            journal.append(vec![event()], Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(journal.times_put_back(), 1);
            assert!(fs::symlink_metadata(&path).unwrap().is_file());
            assert_eq!(read_journal(&path).unwrap().0.len(), 2);
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
