//! The test reports that a check writes. One that lies there from before says nothing about this run.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::matching::matching;
use crate::regular::read_regular;

/// Larger reports are none that somebody reads.
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

impl<'a> Reports<'a> {
    pub(super) fn look(place: &'a Path, pattern: Option<&'a str>) -> Self {
        Self { place, pattern, before: found(place, pattern) }
    }

    /// The texts of those that were written since.
    pub(super) fn written_since(&self) -> Vec<String> {
        let now = found(self.place, self.pattern);
        let fresh = now.iter().filter(|(path, stamp)| self.before.get(*path) != Some(stamp));
        fresh
            .filter_map(|(path, _)| read_regular(path, LARGEST).ok())
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect()
    }
}

fn found(place: &Path, pattern: Option<&str>) -> BTreeMap<PathBuf, Stamp> {
    let paths = pattern.and_then(|pattern| matching(place, pattern).ok()).unwrap_or_default();
    let stamp = |path: PathBuf| {
        let meta = path.symlink_metadata().ok()?;
        Some((path, (meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec())))
    };
    paths.into_iter().filter_map(stamp).collect()
}
