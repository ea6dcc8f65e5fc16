//! What the agent prints during a turn, line by line as it comes, for those who watch the run from another terminal. Not part of the run's
//! history: only the files of the current and the previous iteration are kept, none after the run, and a failed write loses nothing but a
//! line on a screen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::journal::update::Stream;

use crate::base::plain_file::open_regular;

/// The last line of a turn that prints more than can be watched.
const FULL: &str = "[verdone: the rest of this turn's output is too long to show live]";

/// One line of output: redacted, without its line end. Not sanitised for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLine {
    /// Whether it was printed on standard error.
    error: bool,
    pub line: String,
}

impl LiveLine {
    pub fn stream(&self) -> Stream {
        if self.error { Stream::Stderr } else { Stream::Stdout }
    }
}

/// The writer for one turn.
#[derive(Debug)]
pub struct LiveOutput {
    /// `None` after a failed write, or once the file is full.
    file: Option<File>,
    /// How many bytes may still be written.
    left: u64,
}

impl LiveOutput {
    /// The turn's file gets at most about `most` bytes.
    pub fn begin(run_dir: &Path, iteration: u32, turn: u32, most: u64) -> Self {
        let open = || -> io::Result<(File, u64)> {
            fs::create_dir_all(folder(run_dir))?;
            remove_before(run_dir, iteration.saturating_sub(1))?;
            // A turn that is repeated after a wait continues its file.
            let file = open_regular(&file(run_dir, iteration, turn), OpenOptions::new().create(true).append(true))?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        match open() {
            Ok((file, length)) if length < most => Self { file: Some(file), left: most - length },
            Ok(_) | Err(_) => Self { file: None, left: 0 },
        }
    }

    pub fn line(&mut self, stream: Stream, line: &str) {
        let is_written = self.write(stream, line).unwrap_or(false);
        if !is_written {
            self.file = None;
        }
    }

    /// Whether there is room for more.
    fn write(&mut self, stream: Stream, line: &str) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let bytes = encode(stream, line)?;
        if let Some(left) = self.left.checked_sub(bytes.len() as u64) {
            self.left = left;
            file.write_all(&bytes)?;
            return Ok(true);
        }
        file.write_all(&encode(Stream::Stderr, FULL)?)?;
        Ok(false)
    }
}

fn encode(stream: Stream, line: &str) -> io::Result<Vec<u8>> {
    let line = LiveLine { error: stream == Stream::Stderr, line: line.to_owned() };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Removes the live output of a run that has ended.
pub fn remove_live_output(run_dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder(run_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Reads the lines of one turn while they are written.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    open: Option<BufReader<File>>,
}

impl LiveReader {
    pub fn new(run_dir: &Path, iteration: u32, turn: u32) -> Self {
        Self { path: file(run_dir, iteration, turn), open: None }
    }

    /// The complete lines since the last call.
    pub fn lines(&mut self) -> Vec<LiveLine> {
        let mut lines = Vec::new();
        if self.open.is_none() {
            self.open = open_regular(&self.path, OpenOptions::new().read(true)).ok().map(BufReader::new);
        }
        let Some(reader) = &mut self.open else { return lines };
        loop {
            let mut bytes = Vec::new();
            match reader.read_until(b'\n', &mut bytes) {
                Ok(_) if bytes.ends_with(b"\n") => lines.extend(serde_json::from_slice::<LiveLine>(&bytes)),
                Ok(read) => {
                    // The rest of this line is still being written.
                    let back = i64::try_from(read).unwrap_or(0);
                    let _ = reader.seek(SeekFrom::Current(-back));
                    return lines;
                }
                Err(_) => return lines,
            }
        }
    }
}

fn folder(run_dir: &Path) -> PathBuf {
    run_dir.join("live")
}

fn file(run_dir: &Path, iteration: u32, turn: u32) -> PathBuf {
    folder(run_dir).join(format!("{iteration}-{turn}.jsonl"))
}

fn remove_before(run_dir: &Path, iteration: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder(run_dir))? {
        let entry = entry?;
        let of = entry.file_name().to_str().and_then(|name| name.split('-').next()?.parse::<u32>().ok());
        if of.is_some_and(|of| of < iteration) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reader: &mut LiveReader) -> Vec<String> {
        reader.lines().into_iter().map(|line| line.line).collect()
    }

    #[test]
    fn lines_are_read_once_and_only_when_they_are_complete() {
        let dir = tempfile::tempdir().unwrap();
        let mut reader = LiveReader::new(dir.path(), 1, 1);
        assert_eq!(text(&mut reader), [""; 0]);
        let mut output = LiveOutput::begin(dir.path(), 1, 1, 1_000);
        output.line(Stream::Stdout, "one");
        output.line(Stream::Stderr, "two\u{1b}[31m");
        let lines = reader.lines();
        assert_eq!(lines[0].stream(), Stream::Stdout);
        assert_eq!((lines[1].stream(), lines[1].line.as_str()), (Stream::Stderr, "two\u{1b}[31m"));
        let mut file = OpenOptions::new().append(true).open(dir.path().join("live/1-1.jsonl")).unwrap();
        file.write_all(b"{\"error\":false,").unwrap();
        assert_eq!(text(&mut reader), [""; 0]);
        file.write_all(b"\"line\":\"three\"}\n").unwrap();
        assert_eq!(text(&mut reader), ["three"]);
    }

    #[test]
    fn files_of_older_iterations_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for iteration in 1..=3 {
            LiveOutput::begin(dir.path(), iteration, 1, 1_000);
        }
        let left = |iteration: u32| file(dir.path(), iteration, 1).exists();
        assert_eq!([left(1), left(2), left(3)], [false, true, true]);
        remove_live_output(dir.path()).unwrap();
        assert!(!folder(dir.path()).exists());
        remove_live_output(dir.path()).unwrap();
    }

    #[test]
    fn a_turn_that_prints_too_much_says_so_once_even_if_it_is_repeated() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            let mut output = LiveOutput::begin(dir.path(), 1, 1, 500);
            for _ in 0..100 {
                output.line(Stream::Stdout, "0123456789");
            }
        }
        let lines = text(&mut LiveReader::new(dir.path(), 1, 1));
        assert!(fs::metadata(file(dir.path(), 1, 1)).unwrap().len() < 700);
        assert!(lines.len() > 5, "{lines:?}");
        let (last, before) = lines.split_last().unwrap();
        assert_eq!(last, FULL);
        assert!(before.iter().all(|line| line == "0123456789"), "{lines:?}");
    }
}
