//! How fast client output is parsed: 100 MB built from real lines, compared with a pass that only searches for line ends.
//!
//! `scripts/bench stream` builds and runs it. The bytes are generated while they are read, so the printed memory is that of the reader.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads files and the clock; the crate does not"
)]
#![expect(clippy::print_stdout, reason = "its output is its result")]

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use jiff::Timestamp;
use verdone_core::agent::claude::{Session, Uuid, parse};

const BYTES: usize = 100_000_000;
const ROUNDS: usize = 5;

/// Repeats the same bytes.
struct Again<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

impl Read for Again<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = into.len().min(self.bytes.len() - self.at).min(self.left);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at = (self.at + count) % self.bytes.len();
        self.left -= count;
        Ok(count)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude");
    let mut names: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    names.retain(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    names.sort();
    let mut real = Vec::new();
    for name in names {
        real.extend(fs::read(name)?);
    }
    let output = "test result: ok. \\\"quoted\\\" and a path /src/main.rs:10\\n".repeat(2_000);
    let large = format!(
        "{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_1\",\"type\":\"tool_result\",\"content\":\"{output}\"}}]}},\"tool_use_result\":{{\"stdout\":\"{output}\"}}}}\n"
    );
    println!("{BYTES} bytes, the median of {ROUNDS} interleaved rounds, in MB/s");
    println!("{:<24}{:>10}{:>10}{:>14}", "lines", "line ends", "parsed", "parsed+folded");
    for (name, bytes) in [("real lines", real.as_slice()), ("large tool results", large.as_bytes())] {
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (way, rates) in rates.iter_mut().enumerate() {
                rates.push(pass(bytes, way)?);
            }
        }
        let median = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[ROUNDS / 2]
        });
        println!("{name:<24}{:>10.0}{:>10.0}{:>14.0}", median[0], median[1], median[2]);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("peak memory {}", peak.trim());
    }
    Ok(())
}

/// MB/s of one pass.
fn pass(bytes: &[u8], way: usize) -> Result<f64, Box<dyn Error>> {
    let mut reader = BufReader::with_capacity(64 * 1024, Again { bytes, at: 0, left: BYTES });
    let mut session = Session::fresh(&Uuid::from_random([0; 16]));
    let now = Timestamp::UNIX_EPOCH;
    let prompt = Uuid::from_random([1; 16]);
    let mut line = Vec::new();
    let mut seen = 0_usize;
    let start = Instant::now();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        seen += line.len();
        if way > 0
            && let Some(line) = std::hint::black_box(parse(&line))
            && way > 1
        {
            session.sent(&prompt);
            std::hint::black_box(session.feed(&line, now));
        }
    }
    assert_eq!(seen, BYTES);
    Ok(seen as f64 / 1e6 / start.elapsed().as_secs_f64())
}
