//! Folders of loops that are no longer needed: their project is gone, or their session has been silent for long. `verdone doctor` lists
//! them, and `verdone prune` removes them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::base::plain_file::read_regular;

use super::StopError;
use super::files::file_error;
use super::sealed_copy::{LOOP, PROJECT, SealedCopy};

/// After this many days without a write the loop counts as abandoned: every Stop writes to the folder.
pub const FORGOTTEN_DAYS: u32 = 14;
const DAY: Duration = Duration::from_hours(24);
const LONGEST_PATH: u64 = 64 * 1024;

#[derive(Debug, Default)]
pub struct AbandonedLoops {
    copies: Vec<PathBuf>,
    /// Folders of projects that are gone.
    folders: Vec<PathBuf>,
}

impl AbandonedLoops {
    /// Abandoned loops of this project, and of every project that is gone.
    pub fn find(root: &Path) -> Self {
        SealedCopy::find(root).map(|sealed_copy| Self::find_at(sealed_copy.dir(), SystemTime::now())).unwrap_or_default()
    }

    fn find_at(own: &Path, now: SystemTime) -> Self {
        let mut found = Self::default();
        for folder in own.parent().map(paths_in).unwrap_or_default() {
            let gone = is_gone(&folder);
            let patience = match (gone, folder == own) {
                // A project folder may be missing temporarily.
                (true, _) => DAY,
                (false, true) => DAY * FORGOTTEN_DAYS,
                (false, false) => continue,
            };
            let is_old = |path: &PathBuf| {
                let changed = fs::symlink_metadata(path).and_then(|meta| meta.modified());
                changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > patience))
            };
            let all = paths_in(&folder);
            if gone && all.iter().all(is_old) {
                found.folders.push(folder);
            }
            found.copies.extend(all.into_iter().filter(|path| path.is_dir() && is_old(&path.join(LOOP))));
        }
        found
    }

    pub fn count(&self) -> usize {
        self.copies.len()
    }

    pub(crate) fn remove(&self) -> Result<(), StopError> {
        for copy in &self.copies {
            fs::remove_dir_all(copy).map_err(|source| file_error(copy, source))?;
            let mut faults = copy.clone().into_os_string();
            faults.push(".faults");
            let _ = fs::remove_file(faults);
        }
        let gone = |folder: &PathBuf| fs::remove_dir_all(folder).map_err(|source| file_error(folder, source));
        self.folders.iter().try_for_each(gone)
    }
}

fn is_gone(folder: &Path) -> bool {
    let Ok(project) = read_regular(&folder.join(PROJECT), LONGEST_PATH) else { return false };
    let looked = fs::symlink_metadata(PathBuf::from(OsString::from_vec(project)));
    looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn paths_in(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_gone_projects_go_after_a_day_and_those_of_this_one_after_two_weeks_of_silence() {
        let temp = tempfile::tempdir().unwrap();
        let (loops, now) = (temp.path().join("loops"), SystemTime::now());
        let age = |path: &Path, days: u32| fs::File::open(path).unwrap().set_modified(now - DAY * days).unwrap();
        let file = |folder: &str, name: &str, days: u32| {
            let path = loops.join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, temp.path().join(folder).as_os_str().as_encoded_bytes()).unwrap();
            age(&path, days);
        };
        let copy = |folder: &str, session: &str, days: u32| {
            file(folder, &format!("{session}/{LOOP}"), days);
            age(&loops.join(folder).join(session), days);
        };
        for there in ["own", "other"] {
            fs::create_dir(temp.path().join(there)).unwrap();
        }
        for (folder, days) in [("own", 15), ("other", 90), ("gone", 2), ("away", 0), ("unknown", 90)] {
            copy(folder, "s1", days);
            file(folder, "s1.faults", days);
            if folder != "unknown" {
                file(folder, PROJECT, days);
            }
        }
        copy("own", "s2", 13);
        let left = || {
            let all = paths_in(&loops).into_iter().flat_map(|folder| paths_in(&folder));
            let mut names: Vec<String> = all.map(|path| path.strip_prefix(&loops).unwrap().display().to_string()).collect();
            names.retain(|name| !name.ends_with(PROJECT));
            names.sort();
            names
        };
        let found = AbandonedLoops::find_at(&loops.join("own"), now);
        assert_eq!(found.count(), 2);
        found.remove().unwrap();
        assert_eq!(
            left(),
            ["away/s1", "away/s1.faults", "other/s1", "other/s1.faults", "own/s2", "unknown/s1", "unknown/s1.faults"]
        );
        assert!(!loops.join("gone").exists() && AbandonedLoops::find_at(&loops.join("own"), now).count() == 0);
    }
}
