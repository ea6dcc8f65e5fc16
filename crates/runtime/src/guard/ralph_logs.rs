//! Log files of other loops, which are continued if they exist and never created: `failure-context.log` and `sessions.log` in `.ralph/`
//! of the project, and `~/.ralph/logs/stop-hook.log`.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::hook::Record;
use verdone_testlog::{TestState, describe_outcome};

use crate::base::atomic::replace_for_readers;
use crate::base::plain_file::{open_regular, read_regular};

/// A larger file is cut to its last lines.
const LARGEST: u64 = 100_000;
const KEPT_LINES: usize = 500;
/// A file that cannot be one of these logs is left alone.
const NO_LOG: u64 = 64 * 1024 * 1024;

/// Appends what these records of a session say to the logs that exist.
pub(super) fn append(
    root: &Path,
    session: &str,
    event: &str,
    records: &[Record],
    redactor: impl Fn() -> Redactor,
) -> io::Result<()> {
    for record in records {
        let Some((log, text)) = entry(root, session, event, record) else { continue };
        if fs::symlink_metadata(&log).is_ok_and(|meta| meta.is_file()) {
            let text = redactor().redact(&text).into_owned();
            open_regular(&log, OpenOptions::new().append(true))?.write_all(text.as_bytes())?;
            keep_small(&log)?;
        }
    }
    Ok(())
}

fn entry(root: &Path, session: &str, event: &str, record: &Record) -> Option<(PathBuf, String)> {
    let project = root.join(".ralph");
    if let Record::Tests { outcome } = record
        && matches!(outcome.state, TestState::Failed | TestState::Broken)
    {
        let text = format!("=== Test Failure {} ===\n{}\n", Timestamp::now(), describe_outcome(outcome).trim_end());
        return Some((project.join("failure-context.log"), text));
    }
    if let Record::Incomplete { story, .. } = record {
        let story = sanitise_line(story.as_deref().unwrap_or_default()).into_owned();
        return Some((project.join("sessions.log"), format!("incomplete:{story}:{}\n", Timestamp::now().as_second())));
    }
    if let (Record::Stop(stop), "Stop") = (record, event) {
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)?;
        let now = Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
        let reason = sanitise_line(&stop.reason).split_whitespace().collect::<Vec<_>>().join(" ");
        let decision = if stop.blocks() { "BLOCKED" } else { "APPROVED" };
        let fired = format!("[{now}] Stop hook fired: session={}", sanitise_line(session));
        return Some((home.join(".ralph/logs/stop-hook.log"), format!("{fired}\n[{now}] Stop {decision}: {reason}\n")));
    }
    None
}

fn keep_small(log: &Path) -> io::Result<()> {
    if fs::symlink_metadata(log)?.len() <= LARGEST {
        return Ok(());
    }
    let bytes = read_regular(log, NO_LOG)?;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    replace_for_readers(log, &lines[lines.len().saturating_sub(KEPT_LINES)..].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_continued_where_it_exists_and_kept_small() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let left = [Record::Incomplete { story: Some("US-1\nx".to_owned()), reason: String::new() }];
        let write = || append(root, "s1", "SessionEnd", &left, Redactor::default);
        let log = root.join(".ralph/sessions.log");
        write().unwrap();
        assert!(!log.exists(), "it is never created");
        fs::create_dir(root.join(".ralph")).unwrap();
        fs::write(&log, "before\n").unwrap();
        write().unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("before\nincomplete:US-1") && text.lines().count() == 2, "{text}");
        fs::write(&log, "x\n".repeat(60_000)).unwrap();
        write().unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), KEPT_LINES);
        fs::remove_file(&log).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), &log).unwrap();
        fs::write(root.join("elsewhere"), "").unwrap();
        write().unwrap();
        assert_eq!(fs::read_to_string(root.join("elsewhere")).unwrap(), "", "links are not followed");
    }
}
