//! The test reports that a check writes. A report from before this run proves nothing. Reports that are links or lie outside the tree are
//! ignored, because an agent may have put them there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::base::glob_walk::matching_at;
use crate::base::plain_file::read_regular;

/// The limit for one report, and for all reports together.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Device, inode, size and modification time.
type Stamp = (u64, u64, u64, i64, i64);

/// The reports that existed before a run.
#[derive(Debug)]
pub(super) struct Reports<'a> {
    /// Paths below the working directory, each with the folder that contains its files.
    places: &'a [(PathBuf, PathBuf)],
    pattern: Option<&'a str>,
    before: BTreeMap<PathBuf, Stamp>,
}

/// The reports that a run wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The check has no report configured.
    Unasked,
    /// No report, with the reason.
    None(String),
    /// An unreadable report, with the reason.
    Unreadable(String),
    /// Names and contents.
    Texts(Vec<(String, String)>),
}

impl<'a> Reports<'a> {
    pub(super) fn snapshot(places: &'a [(PathBuf, PathBuf)], pattern: Option<&'a str>) -> Self {
        let found = pattern.and_then(|pattern| found(places, pattern).ok()).unwrap_or_default();
        Self { places, pattern, before: found.into_iter().map(|report| (report.path, report.stamp)).collect() }
    }

    /// The reports written since the run started.
    pub(super) fn written_since(&self) -> Written {
        let Some(pattern) = self.pattern else { return Written::Unasked };
        let now = match found(self.places, pattern) {
            Ok(now) => now,
            Err(error) => return Written::Unreadable(format!("cannot search for the test reports {pattern}: {error}")),
        };
        let fresh: Vec<&Report<'_>> = now.iter().filter(|report| self.before.get(&report.path) != Some(&report.stamp)).collect();
        if fresh.is_empty() {
            return Written::None(self.why_none(pattern, !now.is_empty()));
        }
        let (mut texts, mut left) = (Vec::new(), LARGEST);
        for report in fresh {
            let name = report.name();
            match report.read(left) {
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
            return format!("the test report is from an earlier run; this run wrote none: {pattern}");
        }
        let is_special = |(at, folder): &(PathBuf, PathBuf)| {
            let there = Path::new(pattern).strip_prefix(at).ok().and_then(|below| fs::symlink_metadata(folder.join(below)).ok());
            there.is_some_and(|meta| !meta.is_file() && !meta.is_dir())
        };
        if self.places.iter().any(is_special) {
            format!("the test report is not a regular file: {pattern}")
        } else {
            format!("no test report was written: {pattern}")
        }
    }
}

/// A report on disk.
#[derive(Debug)]
struct Report<'a> {
    path: PathBuf,
    stamp: Stamp,
    place: &'a (PathBuf, PathBuf),
}

impl Report<'_> {
    /// The path relative to the working directory.
    fn name(&self) -> String {
        let (at, folder) = self.place;
        at.join(self.path.strip_prefix(folder).unwrap_or(&self.path)).display().to_string()
    }

    fn read(&self, most: u64) -> Result<Vec<u8>, String> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
        // A parent folder may be a link.
        if !real(&self.path)?.starts_with(real(&self.place.1)?) {
            return Err("it is outside the tree".to_owned());
        }
        read_regular(&self.path, most).map_err(|error| error.to_string())
    }
}

fn found<'a>(places: &'a [(PathBuf, PathBuf)], pattern: &str) -> std::io::Result<Vec<Report<'a>>> {
    let mut reports = Vec::new();
    for place in places {
        let paths = matching_at(&place.1, &place.0, pattern)?.into_iter();
        reports.extend(paths.filter_map(|path| {
            let meta = path.symlink_metadata().ok()?;
            let stamp = (meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec());
            Some(Report { path, stamp, place })
        }));
    }
    Ok(reports)
}
