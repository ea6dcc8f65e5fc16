//! Finds files of a workspace that may have been written since the agent was able to, by their times alone.
//!
//! No process can set the ctime of a file, and permissions, hard links and attributes do not change without it. A file is
//! untouched if it matches the index exactly and its ctime is before the agent could write.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, openat, statat};

use super::index_entries::IndexEntry;
use super::index_stat::IndexStat;

/// If the clock does not tick for this long, it was set back.
const STANDSTILL: Duration = Duration::from_millis(30);
/// More threads than this bring no speedup.
const MOST_THREADS: usize = 4;
/// Fewer files are checked by one thread.
const FEW: usize = 2_000;

/// The earliest time that a file system would give to a change now.
pub fn file_clock() -> SystemTime {
    #[cfg(target_os = "linux")]
    return read_clock(rustix::time::ClockId::RealtimeCoarse);
    #[cfg(not(target_os = "linux"))]
    SystemTime::now()
}

/// The latest time that a change so far can have: since Linux 6.13, some changes get a time between two ticks of the file clock.
pub fn latest_file_time() -> SystemTime {
    read_clock(rustix::time::ClockId::Realtime)
}

fn read_clock(clock: rustix::time::ClockId) -> SystemTime {
    let now = rustix::time::clock_gettime(clock);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0).min(999_999_999);
    u64::try_from(now.tv_sec).map_or(UNIX_EPOCH, |seconds| UNIX_EPOCH + Duration::new(seconds, nanoseconds))
}

/// Waits until the file clock has passed `moment`, so that later changes have a later time. Takes a few milliseconds at most.
pub fn file_clock_after(moment: SystemTime) -> SystemTime {
    let begin = Instant::now();
    loop {
        let now = file_clock();
        if now > moment || begin.elapsed() >= STANDSTILL {
            return now;
        }
        thread::sleep(Duration::from_micros(300));
    }
}

/// Whether an entry's file is unchanged since before `opened`, which counts from 1970.
pub(super) fn is_untouched(stat: &Stat, known: &IndexStat, opened: Duration) -> bool {
    index_stat(stat) == *known && changed(stat) < opened
}

/// The entries whose files may have been touched, are missing or have another type, each with its current state.
pub(super) fn touched<'e>(
    folder: &Path,
    bytes: &[u8],
    entries: &'e [IndexEntry<'e>],
    opened: SystemTime,
) -> io::Result<Vec<(&'e IndexEntry<'e>, Option<IndexStat>)>> {
    let opened = opened.duration_since(UNIX_EPOCH).unwrap_or_default();
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let look = |entries: &'e [IndexEntry<'e>]| some_touched(folder.as_fd(), bytes, entries, opened);
    let threads = if entries.len() < FEW { 1 } else { thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS) };
    if threads == 1 {
        return Ok(look(entries));
    }
    let parts: Vec<_> = entries.chunks(entries.len().div_ceil(threads)).collect();
    Ok(thread::scope(|scope| {
        let workers: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || look(part))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }))
}

fn some_touched<'e>(
    folder: BorrowedFd<'_>,
    bytes: &[u8],
    entries: &'e [IndexEntry<'e>],
    opened: Duration,
) -> Vec<(&'e IndexEntry<'e>, Option<IndexStat>)> {
    let mut found = Vec::new();
    for entry in entries {
        let stat = statat(folder, entry.path, AtFlags::SYMLINK_NOFOLLOW).ok();
        let known = IndexStat::read(bytes, entry.at);
        if !stat.as_ref().is_some_and(|stat| is_untouched(stat, &known, opened)) {
            found.push((entry, stat.as_ref().map(index_stat)));
        }
    }
    found
}

#[expect(clippy::cast_sign_loss, reason = "git stores the low 32 bits")]
fn index_stat(stat: &Stat) -> IndexStat {
    IndexStat {
        changed: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        modified: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        inode: stat.st_ino as u32,
        size: stat.st_size as u32,
    }
}

fn changed(stat: &Stat) -> Duration {
    let seconds = u64::try_from(stat.st_ctime).unwrap_or(u64::MAX);
    Duration::new(seconds, u32::try_from(stat.st_ctime_nsec).unwrap_or(0).min(999_999_999))
}
