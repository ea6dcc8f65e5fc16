//! Journals of any length: that of a real killed run, with attempts of the same shape inserted before its last one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// One attempt as a run writes it; `@SEQ` and `@N` are filled in.
const ATTEMPT: [&str; 8] = [
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.470878665Z","active_ms":@SEQ,"event":"story_selected","iteration":@N,"place":{"story":"OLD-@N","attempt":1,"turn":0},"title":"Story number @N","number":@N,"of":1000000,"open":1000000}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.478642897Z","active_ms":@SEQ,"event":"attempt_started","place":{"story":"OLD-@N","attempt":1,"turn":0},"base":"f6830ef40ea32db92fd262c2b3f9ddc6959b6dea"}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.478810618Z","active_ms":@SEQ,"event":"red_checked","place":{"story":"OLD-@N","attempt":1,"turn":0},"red":"absent","runs":[]}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.478810618Z","active_ms":@SEQ,"event":"turn_started","place":{"story":"OLD-@N","attempt":1,"turn":1}}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.47993722Z","active_ms":@SEQ,"event":"turn_ended","place":{"story":"OLD-@N","attempt":1,"turn":1},"outcome":"ended","duration_ms":0,"usage":{},"prompt":"turns/@N-prompt.md","output":"outputs/@N.txt","leftovers":0}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.488667588Z","active_ms":@SEQ,"event":"verified","place":{"story":"OLD-@N","attempt":1,"turn":1},"outcome":"passed","tree":"f6b63bdde883f3ed72274d1c6d45b7855ef7d550","changed":1,"runs":[{"name":"true","origin":{"gate":"correctness"},"command":"true","outcome":"passed","duration_ms":0,"output_digest":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","output":"checks/@N-true.txt"}],"reason":null,"restored":[]}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.488667588Z","active_ms":@SEQ,"event":"commit_started","place":{"story":"OLD-@N","attempt":1,"turn":1},"tree":"f6b63bdde883f3ed72274d1c6d45b7855ef7d550","verdict":"unproven"}"#,
    r#"{"v":1,"seq":@SEQ,"at":"2026-01-01T00:00:00.494120198Z","active_ms":@SEQ,"event":"committed","place":{"story":"OLD-@N","attempt":1,"turn":1},"commit":"5579b3dc27d7a2ee9d46d4255a4e7d8c6212be76","tree":"f6b63bdde883f3ed72274d1c6d45b7855ef7d550","verdict":"unproven","base":"f6830ef40ea32db92fd262c2b3f9ddc6959b6dea","files":2,"noted":true}"#,
];

/// The journal of the only run in a repository.
pub(crate) fn only_journal(repository: &Path) -> Result<PathBuf, String> {
    let mut found = journals(repository)?;
    match (found.pop(), found.pop()) {
        (Some(journal), None) => Ok(journal),
        (None, _) => Err("the run left no journal".to_owned()),
        (Some(_), Some(_)) => Err("there is more than one run".to_owned()),
    }
}

/// The journals of a repository, in no particular order.
pub(crate) fn journals(repository: &Path) -> Result<Vec<PathBuf>, String> {
    let runs = repository.join(".verdone/runs");
    let entries = fs::read_dir(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
    let journals = entries.flatten().map(|entry| entry.path().join("journal.jsonl"));
    Ok(journals.filter(|journal| journal.is_file()).collect())
}

/// Makes a journal `events` long, to within one attempt; a longer journal is not changed.
pub(crate) fn lengthen(journal: &Path, events: usize) -> io::Result<()> {
    let text = fs::read_to_string(journal)?;
    let lines: Vec<&str> = text.lines().collect();
    let is_last = |line: &&str| line.contains("\"event\":\"story_selected\"");
    let cut = lines.iter().position(is_last).unwrap_or(lines.len());
    let attempts = events.saturating_sub(lines.len()) / ATTEMPT.len();
    let mut out = BufWriter::new(File::create(journal)?);
    let mut seq = 0;
    let mut write = |line: &str| {
        seq += 1;
        writeln!(out, "{}", line.replace("@SEQ", &seq.to_string()))
    };
    let number = |line: &str| match (line.find("\"seq\":"), line.find(",\"at\":")) {
        (Some(start), Some(end)) if start < end => format!("{}\"seq\":@SEQ{}", &line[..start], &line[end..]),
        _ => line.to_owned(),
    };
    for line in &lines[..cut] {
        write(&number(line))?;
    }
    for n in 1..=attempts {
        let n = n.to_string();
        for line in ATTEMPT {
            write(&line.replace("@N", &n))?;
        }
    }
    for line in &lines[cut..] {
        write(&number(line))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lengthened_journal_is_numbered_without_gaps_and_ends_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let line = |seq: usize, event: &str| format!("{{\"v\":1,\"seq\":{seq},\"at\":\"now\",\"event\":\"{event}\"}}\n");
        let names = ["run_started", "story_selected", "attempt_started"];
        let text: String = (1..).zip(names).map(|(seq, name)| line(seq, name)).collect();
        for (events, expected) in [(3, 3), (10, 3), (11, 11), (100, 99)] {
            fs::write(&path, &text).unwrap();
            lengthen(&path, events).unwrap();
            let long = fs::read_to_string(&path).unwrap();
            assert_eq!(long.lines().count(), expected, "{events}");
            for (seq, line) in (1..).zip(long.lines()) {
                assert!(line.contains(&format!("\"seq\":{seq},\"at\":")), "{line}");
                assert!(!line.contains('@'), "{line}");
            }
            assert!(long.ends_with(&line(expected, "attempt_started")));
        }
    }
}
