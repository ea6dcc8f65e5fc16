//! Finds processes by a variable in their environment, which they keep even if they leave their group, session or parent.

use std::fs;

/// A live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: u32,
    /// Its command line, separated by spaces.
    pub command: String,
}

/// All live processes whose environment has exactly `marker` (`NAME=value`) as one entry.
///
/// Reads `/proc`; the environment of a zombie is empty, so dead processes are not counted.
pub fn processes_with_env(marker: &str) -> Vec<Survivor> {
    assert!(marker.contains('='), "a marker is NAME=value, not {marker:?}");
    let entries = fs::read_dir("/proc").expect("these tests need /proc");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<_> = pids.filter(|pid| carries(*pid, marker)).map(survivor).collect();
    found.sort_by_key(|survivor| survivor.pid);
    found
}

fn carries(pid: u32, marker: &str) -> bool {
    // Processes come and go meanwhile: one that cannot be read is not ours or is gone.
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
}

fn survivor(pid: u32) -> Survivor {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Survivor { pid, command: String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ") }
}
