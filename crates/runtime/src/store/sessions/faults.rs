//! Failures of our own hooks, which append them to a file in their folder. A full file is renamed once, so two files are read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use verdone_core::base::redact::Redactor;
use verdone_core::engine::run::GuardFailures;
use verdone_core::hook::FaultTally;

use super::lines::each_line;
use super::{FOLDER, is_dir, run_sessions};

const FILE: &str = "faults.jsonl";
const FILE_BEFORE: &str = "faults.1.jsonl";

/// All hook failures in a sessions folder, or `None`.
pub fn faults(folder: &Path) -> io::Result<Option<FaultTally>> {
    let mut tally = FaultTally::default();
    if is_dir(folder) {
        add(&mut tally, &folder.join(FILE_BEFORE), 0)?;
        add(&mut tally, &folder.join(FILE), 0)?;
    }
    Ok((tally.failures > 0).then_some(tally))
}

/// Watches for new hook failures in a run.
#[derive(Debug)]
pub struct FaultWatch {
    folder: PathBuf,
    /// The file's inode, and how much of it was read.
    seen: Option<(u64, u64)>,
}

impl FaultWatch {
    pub fn new(run_dir: &Path) -> Self {
        Self { folder: run_sessions(run_dir), seen: None }
    }

    /// The failures added since the last call. A file that cannot be read is a failure as well and is reported once.
    pub fn new_failures(&mut self, redactor: &Redactor) -> Option<GuardFailures> {
        let path = self.folder.join(FILE);
        let meta = fs::symlink_metadata(&path).ok()?;
        let now = (meta.ino(), meta.len());
        if self.seen == Some(now) {
            return None;
        }
        let mut tally = FaultTally::default();
        let read = match self.seen {
            Some((inode, length)) if inode == now.0 && length <= now.1 => add(&mut tally, &path, length),
            Some((inode, length)) => {
                let before = self.folder.join(FILE_BEFORE);
                // Do not count what was already read.
                let same = fs::symlink_metadata(&before).is_ok_and(|meta| meta.ino() == inode);
                let rest = if same { add(&mut tally, &before, length) } else { Ok(()) };
                rest.and_then(|()| add(&mut tally, &path, 0))
            }
            None => add(&mut tally, &path, 0),
        };
        self.seen = Some(now);
        if let Err(error) = read {
            tally.failures += 1;
            tally.cause = format!("the record of its faults cannot be read: {error}");
        }
        (tally.failures > 0).then(|| GuardFailures {
            failures: u32::try_from(tally.failures).unwrap_or(u32::MAX),
            denied: u32::try_from(tally.denied).unwrap_or(u32::MAX),
            cause: redactor.redact(&tally.cause).into_owned(),
            file: format!("{FOLDER}/{FILE}"),
        })
    }
}

fn add(tally: &mut FaultTally, path: &Path, from: u64) -> io::Result<()> {
    each_line(path, from, &mut |line| tally.add_line(line.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write as _;

    fn fail(folder: &Path, cause: &str, denied: bool) {
        fs::create_dir_all(folder).unwrap();
        let mut file = OpenOptions::new().append(true).create(true).open(folder.join(FILE)).unwrap();
        let at = "2026-11-15T08:00:00Z";
        writeln!(file, r#"{{"at":"{at}","event":"Stop","record":"failed","cause":"{cause}","denied":{denied}}}"#).unwrap();
    }

    #[test]
    fn each_fault_is_told_once_also_when_the_file_is_set_aside() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join(FOLDER);
        let mut watch = FaultWatch::new(temp.path());
        let redactor = Redactor::new([("MY_TOKEN".to_owned(), "s3cr3t-value-of-mine".to_owned())]);
        let mut look = || watch.new_failures(&redactor).map(|found| (found.failures, found.denied, found.cause));
        assert_eq!(look(), None);
        fail(&folder, "one", true);
        fail(&folder, "s3cr3t-value-of-mine", false);
        let first = look().unwrap();
        assert_eq!((first.0, first.1), (2, 1));
        assert!(!first.2.contains("s3cr3t"), "{}", first.2);
        assert_eq!(look(), None);
        fail(&folder, "three", false);
        fs::rename(folder.join(FILE), folder.join(FILE_BEFORE)).unwrap();
        fail(&folder, "four", true);
        assert_eq!(look(), Some((2, 1, "four".to_owned())));
        assert_eq!(look(), None);
        let all = faults(&folder).unwrap().unwrap();
        assert_eq!((all.failures, all.denied, all.cause.as_str()), (4, 2, "four"));
        fs::remove_file(folder.join(FILE)).unwrap();
        assert_eq!(look(), None, "a file that is gone says nothing");
    }

    #[test]
    fn a_pipe_in_its_place_is_told_once_and_not_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        assert_eq!(faults(&folder).unwrap(), None);
        rustix::fs::mknodat(rustix::fs::CWD, folder.join(FILE), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let mut watch = FaultWatch::new(temp.path());
        let found = watch.new_failures(&Redactor::default()).unwrap();
        assert_eq!(found.failures, 1);
        assert!(found.cause.contains("cannot be read"), "{}", found.cause);
        assert_eq!(watch.new_failures(&Redactor::default()), None);
    }
}
