//! The peak memory of a child process.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The kernel discards the number when the process ends, so it is read while the process runs. It is the highest value so far, so only a
/// peak in the last moment can be missed.
const LOOK: Duration = Duration::from_micros(500);

/// In kilobytes.
pub(crate) fn peak(mut command: Command, accepted: &[i32]) -> Result<u64, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        peak = peak.max(fs::read_to_string(&status_file).ok().as_deref().and_then(high_water).unwrap_or(0));
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        std::thread::sleep(LOOK);
    };
    if !status.code().is_some_and(|code| accepted.contains(&code)) {
        return Err(format!("ended with {status}"));
    }
    Ok(peak)
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_seen_after_it_is_over() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let small = peak(shell("sleep 0.05"), &[0]).unwrap();
        let large = peak(shell("x=$(head -c 20000000 /dev/zero | tr '\\0' x); x=; sleep 0.05"), &[0]).unwrap();
        assert!(small > 0 && large > small + 15_000, "{small} {large}");
        assert!(peak(shell("exit 3"), &[0]).is_err());
    }
}
