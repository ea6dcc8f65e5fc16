//! Reads lines of a file that may be very long and may be written to concurrently.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::base::plain_file::open_regular;

/// Our records are never longer; longer lines are skipped.
const LONGEST: u64 = 1024 * 1024;

/// Calls `each` with every line from an offset, and with `None` for a line that is too long or not valid text. A last line without a line
/// end counts. A missing file has no lines.
pub(crate) fn each_line(path: &Path, from: u64, each: &mut impl FnMut(Option<&str>)) -> io::Result<()> {
    read_lines(path, from, Last::Counts, each).map(drop)
}

/// The same without a last line that may still be growing. Returns the offset after the last line that was read.
pub(crate) fn each_whole_line(path: &Path, from: u64, each: &mut impl FnMut(Option<&str>)) -> io::Result<u64> {
    read_lines(path, from, Last::Waits, each)
}

/// What happens to a last line without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Counts,
    Waits,
}

fn read_lines(path: &Path, from: u64, last: Last, each: &mut impl FnMut(Option<&str>)) -> io::Result<u64> {
    let mut file = match open_regular(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(from),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    let mut at = from;
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(at);
        }
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && line.len() as u64 == LONGEST {
            at += LONGEST + reader.skip_until(b'\n')? as u64;
            each(None);
        } else if !is_whole && last == Last::Waits {
            return Ok(at);
        } else {
            at += line.len() as u64;
            each(std::str::from_utf8(&line).ok().map(str::trim_end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_still_grows_is_read_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let read = |from| {
            let mut seen = Vec::new();
            let at = each_whole_line(&path, from, &mut |line| seen.push(line.unwrap_or("too long").to_owned())).unwrap();
            (seen, at)
        };
        assert_eq!(read(0), (Vec::new(), 0), "there is no file");
        std::fs::write(&path, "one\ntw").unwrap();
        assert_eq!(read(0), (vec!["one".to_owned()], 4));
        let long = "x".repeat(2 * LONGEST as usize);
        std::fs::write(&path, format!("one\ntwo\n{long}\nlast\n")).unwrap();
        let end = 4 + 4 + long.len() as u64 + 1 + 5;
        assert_eq!(read(4), (vec!["two".to_owned(), "too long".to_owned(), "last".to_owned()], end));
        assert_eq!(read(end), (Vec::new(), end));
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_passed_over_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut bytes = b"one\n".to_vec();
        bytes.extend(vec![b'x'; 3 * LONGEST as usize]);
        bytes.extend(b"\n\xff\ntwo\r\nthree");
        std::fs::write(&path, bytes).unwrap();
        let read = |from| {
            let mut seen = Vec::new();
            each_line(&path, from, &mut |line| seen.push(line.map(str::to_owned))).unwrap();
            seen
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(0), [some("one"), None, None, some("two"), some("three")]);
        assert_eq!(read(4 + 3 * LONGEST + 1 + 2), [some("two"), some("three")]);
        assert_eq!(read(1 << 40), Vec::<Option<String>>::new(), "behind the end there is nothing");
    }
}
