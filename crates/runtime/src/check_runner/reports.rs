//! The test reports that a check writes. One that lies there from before says nothing about this run, and one that is a link or leads
//! out of the tree is none: an agent may have put it there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::matching::matching;
use crate::regular::read_regular;

/// Larger reports are none that somebody reads; nor are more than this in all.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Device, number, size and time of the last change.
type Stamp = (u64, u64, u64, i64, i64);

/// The reports before a run.
#[derive(Debug)]
pub(super) struct Reports<'a> {
    place: &'a Path,
    pattern: Option<&'a str>,
    before: BTreeMap<PathBuf, Stamp>,
}

/// What a run wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It was to write none.
    Unasked,
    /// None, for this reason.
    None(String),
    /// One that cannot be read, for this reason.
    Unreadable(String),
    /// Names and texts.
    Texts(Vec<(String, String)>),
}

impl<'a> Reports<'a> {
    pub(super) fn look(place: &'a Path, pattern: Option<&'a str>) -> Self {
        let found = pattern.and_then(|pattern| found(place, pattern).ok()).unwrap_or_default();
        Self { place, pattern, before: found }
    }

    /// Those that were written since.
    pub(super) fn written_since(&self) -> Written {
        let Some(pattern) = self.pattern else { return Written::Unasked };
        let now = match found(self.place, pattern) {
            Ok(now) => now,
            Err(error) => return Written::Unreadable(format!("the test reports {pattern} cannot be looked for: {error}")),
        };
        let fresh: Vec<&PathBuf> =
            now.iter().filter(|(path, stamp)| self.before.get(*path) != Some(stamp)).map(|(path, _)| path).collect();
        if fresh.is_empty() {
            return Written::None(self.why_none(pattern, !now.is_empty()));
        }
        let (mut texts, mut left) = (Vec::new(), LARGEST);
        for path in fresh {
            let name = path.strip_prefix(self.place).unwrap_or(path).display().to_string();
            match self.read(path, left) {
                Ok(text) => {
                    left -= text.len() as u64;
                    texts.push((name, String::from_utf8_lossy(&text).into_owned()));
                }
                Err(why) => return Written::Unreadable(format!("the test report {name} cannot be read: {why}")),
            }
        }
        Written::Texts(texts)
    }

    fn why_none(&self, pattern: &str, stale: bool) -> String {
        if stale {
            return format!("the test report is from before, this run wrote none: {pattern}");
        }
        match fs::symlink_metadata(self.place.join(pattern)) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => format!("the test report is no plain file: {pattern}"),
            Ok(_) | Err(_) => format!("no test report was written: {pattern}"),
        }
    }

    fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, String> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
        // A folder on the way may be a link.
        if !real(path)?.starts_with(real(self.place)?) {
            return Err("it lies outside of the tree".to_owned());
        }
        read_regular(path, most).map_err(|error| error.to_string())
    }
}

fn found(place: &Path, pattern: &str) -> std::io::Result<BTreeMap<PathBuf, Stamp>> {
    let stamp = |path: PathBuf| {
        let meta = path.symlink_metadata().ok()?;
        Some((path, (meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec())))
    };
    Ok(matching(place, pattern)?.into_iter().filter_map(stamp).collect())
}
