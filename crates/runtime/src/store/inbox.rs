//! Requests to an active run: one small file each in the run's directory, processed in order of arrival.
//!
//! Anyone who can write there can send requests, including the agent. That is acceptable because no request can make a story done.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::journal::control::Request;

use crate::base::atomic::write_atomically;
use crate::base::fault::{self, Point};
use crate::base::plain_file::read_regular;

/// Longer files are not our requests.
const LARGEST: u64 = 64 * 1024;

#[derive(Debug, Clone)]
pub struct Inbox {
    dir: PathBuf,
    /// Files that are done with, but could not be removed.
    removed: BTreeSet<PathBuf>,
}

/// A file in the inbox. `None` if it holds no request.
#[derive(Debug)]
pub struct Posted {
    pub request: Option<Request>,
    path: PathBuf,
}

impl Inbox {
    pub fn new(run_dir: &Path) -> Self {
        Self { dir: run_dir.join("inbox"), removed: BTreeSet::new() }
    }

    /// Leaves a request for the run. One that the run would not read is an error.
    pub fn post(&self, request: &Request) -> io::Result<()> {
        let text = serde_json::to_vec(request)?;
        if text.len() as u64 > LARGEST {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the request is larger than {} KiB", LARGEST / 1024),
            ));
        }
        fs::create_dir_all(&self.dir)?;
        // Sort after all pending requests, even if the wall clock was set back: pause and resume must not swap places.
        let last = self.waiting()?.last().and_then(|path| path.file_stem()?.to_str()?.split('-').next()?.parse::<i128>().ok());
        let number = Timestamp::now().as_nanosecond().max(last.unwrap_or(0).saturating_add(1));
        let name = format!("{number:020}-{}.json", std::process::id());
        write_atomically(&self.dir.join(name), &text)
    }

    /// The requests that the run has not recorded yet. Leaves out those that cannot be read.
    pub fn pending(&self) -> Vec<Request> {
        self.posted().into_iter().filter_map(|posted| posted.request).collect()
    }

    /// The same with their files. Record a request first and [`Inbox::remove`] it then: one that was acknowledged must not be lost.
    pub fn posted(&self) -> Vec<Posted> {
        // If the inbox cannot be read, a request comes late; that is no reason to end the run.
        let waiting = self.waiting().unwrap_or_default().into_iter().filter(|path| !self.removed.contains(path));
        waiting.map(|path| Posted { request: read_request(&path), path }).collect()
    }

    pub fn remove(&mut self, posted: Posted) {
        // A file that cannot be removed must not be processed again and again.
        if fault::point(Point::InboxTaken).and_then(|()| fs::remove_file(&posted.path)).is_err() {
            self.removed.insert(posted.path);
        }
    }

    /// Oldest first.
    fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_request(path)).collect();
        files.sort();
        Ok(files)
    }
}

fn read_request(path: &Path) -> Option<Request> {
    serde_json::from_slice(&read_regular(path, LARGEST).ok()?).ok()
}

fn is_request(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
        && path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::id::StoryId;

    fn drain(inbox: &mut Inbox) -> Vec<Request> {
        let mut taken = Vec::new();
        for mut posted in inbox.posted() {
            taken.extend(posted.request.take());
            inbox.remove(posted);
        }
        taken
    }

    #[test]
    fn requests_are_taken_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::new(dir.path());
        assert_eq!(drain(&mut inbox), []);
        let asked = [
            Request::Pause,
            Request::Note { text: "use tabs".to_owned() },
            Request::Skip { story: StoryId::from("A"), now: false },
        ];
        for request in &asked {
            inbox.post(request).unwrap();
        }
        assert_eq!(inbox.pending(), asked);
        assert_eq!(drain(&mut inbox), asked);
        assert_eq!(inbox.pending(), []);
        assert_eq!(drain(&mut inbox), []);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_change_the_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::new(dir.path());
        fs::create_dir(dir.path().join("inbox")).unwrap();
        fs::write(dir.path().join("inbox/09999999999999999999-7.json"), "\"pause\"").unwrap();
        inbox.post(&Request::Resume).unwrap();
        assert_eq!(drain(&mut inbox), [Request::Pause, Request::Resume]);
    }

    #[test]
    fn what_is_posted_can_be_read_and_what_is_too_large_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::new(dir.path());
        let note = |length: u64| Request::Note { text: "x".repeat(usize::try_from(length).unwrap()) };
        let around = serde_json::to_vec(&note(0)).unwrap().len() as u64;
        inbox.post(&note(LARGEST - around)).unwrap();
        assert!(inbox.post(&note(LARGEST - around + 1)).is_err());
        assert_eq!(drain(&mut inbox), [note(LARGEST - around)]);
    }

    #[test]
    fn rubbish_is_dropped_and_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::new(dir.path());
        fs::create_dir(dir.path().join("inbox")).unwrap();
        for (name, text) in [("0.json", "{"), ("1.json", "\"fly\""), (".2.json", "\"pause\""), ("3.txt", "\"pause\"")] {
            fs::write(dir.path().join("inbox").join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("inbox/4.json")).unwrap();
        inbox.post(&Request::Resume).unwrap();
        assert_eq!(drain(&mut inbox), [Request::Resume]);
    }
}
