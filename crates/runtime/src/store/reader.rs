//! Reads a journal line by line: a long journal costs time but no memory.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use verdone_core::journal::event::{Recorded, SCHEMA_VERSION};

use super::JournalError;

/// Large, because most lines of a long journal are skipped.
const BUFFER: usize = 256 * 1024;
/// How much of a journal's end is read first: several attempts.
const END: u64 = 32 * 1024;

/// The reader. An incomplete last line is skipped and reported; any other damage is an error.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    /// The end of the last complete line.
    offset: u64,
    torn: bool,
}

impl JournalReader {
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_at(path, 0)
    }

    /// Continues at the offset of another reader, which must be the start of a line.
    pub fn open_at(path: &Path, offset: u64) -> Result<Self, JournalError> {
        let open = || -> io::Result<File> {
            // Reading from a pipe would block forever.
            if !fs::metadata(path)?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file"));
            }
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        let file = open().map_err(|source| JournalError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file: BufReader::with_capacity(BUFFER, file), line: Vec::new(), offset, torn: false })
    }

    /// The next raw line, including its line end.
    pub fn line(&mut self) -> Result<Option<&[u8]>, JournalError> {
        self.line.clear();
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        self.file.read_until(b'\n', &mut self.line).map_err(failed)?;
        if self.line.ends_with(b"\n") {
            self.offset += self.line.len() as u64;
            return Ok(Some(&self.line));
        }
        if let Some(found) = newer_version(&self.line) {
            return Err(JournalError::Newer { path: self.path.clone(), found });
        }
        self.torn = !self.line.is_empty();
        Ok(None)
    }

    /// Where the next line starts.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Describes damage at the journal's end, if any.
    pub fn damage(&self) -> Result<Option<String>, JournalError> {
        if !self.torn {
            return Ok(None);
        }
        Ok(Some(format!("line {} is incomplete and was skipped", self.lines_before(self.offset)? + 1)))
    }

    /// Parses the line that was just read. `None` if it is the last line and incomplete.
    pub fn event(&mut self) -> Result<Option<Recorded>, JournalError> {
        let error = match serde_json::from_slice::<Recorded>(&self.line) {
            Ok(Recorded { v: found, .. }) if found > SCHEMA_VERSION => {
                return Err(JournalError::Newer { path: self.path.clone(), found });
            }
            Ok(recorded) => return Ok(Some(recorded)),
            Err(error) => error,
        };
        if let Some(found) = newer_version(&self.line) {
            return Err(JournalError::Newer { path: self.path.clone(), found });
        }
        self.offset -= self.line.len() as u64;
        let rest = self.file.fill_buf().map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        if rest.is_empty() {
            self.torn = true;
            return Ok(None);
        }
        let line = self.lines_before(self.offset)? + 1;
        Err(JournalError::Broken { path: self.path.clone(), line, message: without_position(&error) })
    }

    /// Counted only for error messages.
    fn lines_before(&self, offset: u64) -> Result<usize, JournalError> {
        let count = || -> io::Result<usize> {
            let mut bytes = BufReader::with_capacity(BUFFER, File::open(&self.path)?.take(offset));
            let mut lines = 0;
            loop {
                let part = bytes.fill_buf()?;
                if part.is_empty() {
                    return Ok(lines);
                }
                lines += part.split(|byte| *byte == b'\n').count() - 1;
                let length = part.len();
                bytes.consume(length);
            }
        };
        count().map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }
}

impl Iterator for JournalReader {
    type Item = Result<Recorded, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.torn {
            return None;
        }
        match self.line() {
            Ok(Some(_)) => self.event().transpose(),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Reads a whole journal. Also returns a description of damage at its end.
pub fn read_journal(path: &Path) -> Result<(Vec<Recorded>, Option<String>), JournalError> {
    let mut reader = JournalReader::open(path)?;
    let events = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((events, reader.damage()?))
}

/// The lines of a journal that are valid events, unchanged.
pub fn readable_lines(bytes: &[u8]) -> Vec<u8> {
    let is_event = |line: &&[u8]| line.ends_with(b"\n") && serde_json::from_slice::<Recorded>(line).is_ok();
    bytes.split_inclusive(|byte| *byte == b'\n').filter(is_event).flatten().copied().collect()
}

/// Reads more and more of a journal's end until `find` returns something for its events and the offset where the last one ends. `None` if
/// the whole journal is not enough.
///
/// The last lines contain everything that matters about a run that has ended or died, so the cost does not depend on the journal's length.
pub(super) fn find_from_end<T>(path: &Path, find: impl Fn(&[Recorded], u64) -> Option<T>) -> Result<Option<T>, JournalError> {
    let failed = |source| JournalError::Io { path: path.to_owned(), source };
    let length = fs::metadata(path).map_err(failed)?.len();
    let mut size = END;
    loop {
        let from = length.saturating_sub(size);
        // Start one byte earlier: if that byte is a line end, the first line is complete.
        let mut reader = JournalReader::open_at(path, from.saturating_sub(1))?;
        if from > 0 {
            reader.line()?;
        }
        let events = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
        match find(&events, reader.offset()) {
            Some(found) => return Ok(Some(found)),
            None if from == 0 => return Ok(None),
            None => size *= 8,
        }
    }
}

/// Removes the parser's position, which is relative to the line and would be confusing next to the journal's line number.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn newer_version(line: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let found = u32::try_from(value.get("v")?.as_u64()?).ok()?;
    (found > SCHEMA_VERSION).then_some(found)
}
