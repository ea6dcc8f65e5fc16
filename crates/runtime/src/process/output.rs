//! Output of a child process: split into lines, redacted, trimmed to its beginning and
//! end, with a digest of everything. Memory stays bounded.

mod lines;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use verdone_core::base::redact::{LineRedactor, Redactor};
pub use verdone_core::journal::update::Stream;

pub(crate) use lines::Lines;

use crate::base::fault::{self, Point};

/// The output of a finished process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Redacted. If something was cut, a line in the middle says how much.
    pub text: String,
    /// Length of the whole raw output.
    pub total_bytes: u64,
    /// SHA-256 of the whole raw output, both streams in order of arrival.
    pub digest: String,
    /// Why the file could not be written completely, if so.
    pub keep_problem: Option<String>,
}

impl Captured {
    /// The end of the text, at most about `bytes` long, starting at a line start if possible.
    pub fn tail(&self, bytes: usize) -> &str {
        tail(&self.text, bytes)
    }
}

/// The end of a text, at most `bytes` long, starting at a line start if possible.
pub fn tail(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = &text[text.ceil_char_boundary(text.len() - bytes)..];
    match end.split_once('\n') {
        Some((_, whole_lines)) if !whole_lines.is_empty() => whole_lines,
        Some(_) | None => end,
    }
}

/// Creates a new file and never follows an existing link.
pub(crate) fn create_fresh(path: &Path) -> io::Result<File> {
    fault::point(Point::OutputCreate)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Collects the output of one process.
pub(crate) struct Capture<'a> {
    redactor: &'a Redactor,
    streams: [(Lines, LineRedactor); 2],
    kept: Kept,
    hash: Sha256,
    total: u64,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(redactor: &'a Redactor, cap: u64, file: Option<File>) -> Self {
        Self { redactor, streams: Default::default(), kept: Kept::new(cap, file), hash: Sha256::new(), total: 0 }
    }

    /// Adds bytes as they arrive and passes on every completed line.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8], on: &mut dyn FnMut(Stream, &str)) {
        self.hash.update(bytes);
        self.total += bytes.len() as u64;
        let (redactor, kept) = (self.redactor, &mut self.kept);
        let (lines, state) = &mut self.streams[stream as usize];
        lines.push(bytes, redactor, &mut |line| {
            let line = state.redact(redactor, line);
            kept.push(&line);
            on(stream, &line);
        });
    }

    /// Writes buffered output to the file.
    pub(crate) fn flush(&mut self) {
        self.kept.write(Write::flush);
    }

    pub(crate) fn finish(mut self, on: &mut dyn FnMut(Stream, &str)) -> Captured {
        let (redactor, kept) = (self.redactor, &mut self.kept);
        for (stream, (lines, state)) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut self.streams) {
            if let Some(line) = lines.finish() {
                let line = state.redact(redactor, &line);
                kept.push(&line);
                on(stream, &line);
            }
        }
        let (text, keep_problem) = self.kept.finish();
        Captured { text, total_bytes: self.total, digest: verdone_text::hex(&self.hash.finalize()), keep_problem }
    }
}

/// Head and tail within a cap. The head is written to the file immediately, so that little is lost if we crash.
struct Kept {
    half: usize,
    head: String,
    head_full: bool,
    tail: VecDeque<u8>,
    cut: u64,
    file: Option<BufWriter<File>>,
    problem: Option<String>,
}

impl Kept {
    fn new(cap: u64, file: Option<File>) -> Self {
        let half = usize::try_from(cap / 2).unwrap_or(usize::MAX / 4);
        let file = file.map(BufWriter::new);
        Self { half, head: String::new(), head_full: false, tail: VecDeque::new(), cut: 0, file, problem: None }
    }

    fn push(&mut self, line: &str) {
        if !self.head_full && self.head.len() + line.len() < self.half {
            self.head.push_str(line);
            self.head.push('\n');
            self.write(|file| file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")));
            return;
        }
        self.head_full = true;
        self.tail.extend(line.as_bytes());
        self.tail.push_back(b'\n');
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.cut += over as u64;
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Some(file) = &mut self.file
            && let Err(error) = write(file)
        {
            self.problem = Some(error.to_string());
            self.file = None;
        }
    }

    fn finish(mut self) -> (String, Option<String>) {
        let mut tail: &[u8] = self.tail.make_contiguous();
        let mut rest = String::new();
        if self.cut > 0 {
            // The first line of the tail is incomplete. If there is no other line, at least start at a whole character.
            let from = match tail.iter().position(|&b| b == b'\n') {
                Some(end) if end + 1 < tail.len() => end + 1,
                Some(_) | None => tail.iter().position(|&b| b & 0xc0 != 0x80).unwrap_or(0),
            };
            tail = &tail[from..];
            rest = format!("[... {} bytes cut ...]\n", self.cut + from as u64);
        }
        rest.push_str(&String::from_utf8_lossy(tail));
        self.write(|file| file.write_all(rest.as_bytes()).and_then(|()| file.flush()));
        // The journal names this file, so it must be on disk before the journal line.
        self.write(|file| file.get_ref().sync_all());
        (self.head + &rest, self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(cap: u64, chunks: &[&[u8]]) -> (Captured, Vec<String>) {
        let redactor = Redactor::new([("MY_TOKEN".to_owned(), "open sesame".to_owned())]);
        let (mut capture, mut seen) = (Capture::new(&redactor, cap, None), Vec::new());
        for chunk in chunks {
            capture.push(Stream::Stdout, chunk, &mut |_, line| seen.push(line.to_owned()));
        }
        let captured = capture.finish(&mut |_, line| seen.push(line.to_owned()));
        (captured, seen)
    }

    #[test]
    fn lines_are_found_across_chunks_and_line_ends() {
        let (captured, seen) = capture(1000, &[b"a\r", b"\nb\rc", b"\xe2\x82", b"\xac\n\n", b"d\xff"]);
        assert_eq!(seen, ["a", "b", "c€", "", "d\u{fffd}"]);
        assert_eq!(captured.text, "a\nb\nc€\n\nd\u{fffd}\n");
        assert_eq!(captured.total_bytes, 13);
        assert_eq!(captured.digest, verdone_core::base::id::digest(b"a\r\nb\rc\xe2\x82\xac\n\nd\xff"));
    }

    #[test]
    fn beginning_and_end_survive_the_cap() {
        let lines: Vec<String> = (0..1000).map(|n| format!("line {n}\n")).collect();
        let chunks: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let (captured, seen) = capture(200, &chunks);
        assert_eq!(seen.len(), 1000);
        assert!(captured.text.starts_with("line 0\nline 1\n"), "{}", captured.text);
        assert!(captured.text.ends_with("\nline 998\nline 999\n"), "{}", captured.text);
        assert!(captured.text.len() < 260);
        let kept: usize = captured.text.lines().filter(|l| l.starts_with("line")).map(|l| l.len() + 1).sum();
        assert!(captured.text.contains(&format!("[... {} bytes cut ...]", captured.total_bytes as usize - kept)));
    }

    #[test]
    fn a_secret_in_an_endless_line_is_hidden_wherever_the_cut_falls() {
        let unit = format!("{}open sesame", "x".repeat(997));
        let whole = unit.repeat(100);
        for size in [1, 7, 1000, 4096, 100_000] {
            let chunks: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();
            let (captured, seen) = capture(1 << 20, &chunks);
            assert!(seen.len() > 1);
            assert!(!seen.concat().contains("sesame"), "chunks of {size}");
            assert_eq!(captured.text.matches("[redacted:MY_TOKEN]").count(), 100, "chunks of {size}");
        }
    }

    proptest::proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            bytes in proptest::collection::vec(proptest::sample::select(b"ab\r\n\xe2\x82\xac\xf0\x9f\xff\0".as_slice()), 0..60),
            size in 1..10usize,
        ) {
            let whole = capture(1000, &[&bytes]);
            let pieces = capture(1000, &bytes.chunks(size).collect::<Vec<_>>());
            proptest::prop_assert_eq!(&whole, &pieces);
            let plain = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n");
            proptest::prop_assert_eq!(whole.1, plain.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_tail_begins_at_a_line() {
        assert_eq!(tail("first\nsecond\nthird\n", 10), "third\n");
        assert_eq!(tail("short", 10), "short");
        assert_eq!(tail("ééééé", 3), "é");
    }
}
