//! Results of checks that were seen before: `.verdone/cache/gates/`, one file a question.
//!
//! The folder lies in the project, where an agent can write. So every entry carries a seal; one without it counts as not there. Without a
//! place for the secret there is no cache.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::check::{Check, CheckOutcome, CheckRun};

use crate::atomic::replace_for_readers;
use crate::regular::read_regular;
use crate::seal::Seal;

const VERSION: u32 = 1;
/// An entry is a few lines and the end of an output.
const LARGEST: u64 = 256 * 1024;
/// More entries than this are cut down to half of them, the newest.
const MOST: usize = 2000;
/// What the mark is for.
const PURPOSE: &str = "gate result";

/// The results of one project.
#[derive(Debug)]
pub struct GateCache {
    dir: PathBuf,
    root: PathBuf,
    seal: Seal,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    v: u32,
    key: String,
    run: CheckRun,
}

impl GateCache {
    /// The cache of the project at `root`. `state_home` is the user's folder for such things; it must not lie in the work tree.
    pub fn open(root: &Path, git_top: &Path, state_home: &Path) -> Option<Self> {
        let seal = Seal::open(root, git_top, state_home)?;
        Some(Self { dir: root.join(".verdone/cache/gates"), root: root.to_owned(), seal })
    }

    /// What was seen the last time, if it is ours.
    pub fn get(&self, key: &str, check: &Check) -> Option<CheckRun> {
        let bytes = read_regular(&self.path(key), LARGEST).ok()?;
        let entry: Entry = serde_json::from_slice(self.seal.checked(PURPOSE, &bytes)?).ok()?;
        let is_it = entry.v == VERSION && entry.key == key && is_worth_keeping(&entry.run);
        is_it.then(|| CheckRun {
            name: check.name.clone(),
            origin: check.origin.clone(),
            advisory: check.terms.advisory,
            cached: true,
            ..entry.run
        })
    }

    /// Keeps a result, if it is one that would be the same the next time.
    pub fn put(&self, key: &str, run: &CheckRun) -> io::Result<()> {
        if !is_worth_keeping(run) {
            return Ok(());
        }
        let entry = Entry { v: VERSION, key: key.to_owned(), run: CheckRun { cached: false, ..run.clone() } };
        let body = serde_json::to_vec(&entry).map_err(io::Error::other)?;
        hide(&self.root)?;
        fs::create_dir_all(&self.dir)?;
        replace_for_readers(&self.path(key), &self.seal.put_on(PURPOSE, &body))?;
        self.cut_down()
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.json"))
    }

    fn cut_down(&self) -> io::Result<()> {
        let mut entries: Vec<(i64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            entries.push((entry.metadata().map_or(0, |meta| meta.mtime()), entry.path()));
        }
        if entries.len() > MOST {
            entries.sort();
            for (_, path) in &entries[..entries.len() - MOST / 2] {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// Makes `.verdone/cache/` ignore itself, so that it never shows up in the user's git status.
pub(crate) fn hide(root: &Path) -> io::Result<()> {
    let cache = root.join(".verdone/cache");
    let ignore = cache.join(".gitignore");
    if read_regular(&ignore, 2).is_ok_and(|bytes| bytes == b"*\n") {
        return Ok(());
    }
    fs::create_dir_all(&cache)?;
    replace_for_readers(&ignore, b"*\n")
}

/// A timeout may come from a busy machine, and what is unknown or flaky answers nothing.
fn is_worth_keeping(run: &CheckRun) -> bool {
    let settled = match run.outcome {
        CheckOutcome::Passed | CheckOutcome::Failed { .. } => true,
        CheckOutcome::Signalled { .. }
        | CheckOutcome::TimedOut { .. }
        | CheckOutcome::Unknown { .. }
        | CheckOutcome::Interrupted => false,
    };
    settled && !run.flaky
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use verdone_core::check::CommandSpec;
    use verdone_core::span::Span;

    struct World {
        _dir: tempfile::TempDir,
        project: PathBuf,
        state: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            let (project, state) = (root.join("project"), root.join("state"));
            fs::create_dir(&project).unwrap();
            Self { _dir: dir, project, state }
        }

        fn cache(&self) -> GateCache {
            GateCache::open(&self.project, &self.project, &self.state).unwrap()
        }

        fn entry(&self, key: &str) -> PathBuf {
            self.project.join(".verdone/cache/gates").join(format!("{key}.json"))
        }
    }

    fn check() -> Check {
        Check::own(CommandSpec::Shell("make test".to_owned()), Span::from_secs(1))
    }

    fn run(outcome: CheckOutcome) -> CheckRun {
        CheckRun { outcome, tail: "the end".to_owned(), ..CheckRun::of(&check()) }
    }

    #[test]
    fn what_was_put_in_comes_back_marked_as_cached() {
        let world = World::new();
        world.cache().put("k", &run(CheckOutcome::Failed { code: 3 })).unwrap();
        let found = world.cache().get("k", &check()).unwrap();
        assert!(found.cached && found.outcome == CheckOutcome::Failed { code: 3 } && found.tail == "the end");
        assert!(world.cache().get("other", &check()).is_none());
        assert_eq!(fs::read_to_string(world.project.join(".verdone/cache/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn only_what_would_be_the_same_again_is_kept() {
        let world = World::new();
        let flaky = CheckRun { flaky: true, ..run(CheckOutcome::Passed) };
        let unknown = run(CheckOutcome::Unknown { reason: "no tests were run".to_owned() });
        for run in [flaky, unknown, run(CheckOutcome::TimedOut { after_ms: 1 }), run(CheckOutcome::Interrupted)] {
            world.cache().put("k", &run).unwrap();
            assert!(world.cache().get("k", &check()).is_none(), "{run:?}");
        }
    }

    #[test]
    fn a_forged_entry_counts_as_not_there() {
        let world = World::new();
        let cache = world.cache();
        cache.put("k", &run(CheckOutcome::Failed { code: 1 })).unwrap();
        let honest = fs::read_to_string(world.entry("k")).unwrap();
        let forged = honest.replace("{\"failed\":{\"code\":1}}", "\"passed\"");
        assert_ne!(honest, forged);
        let body = forged.split_once('\n').unwrap().1;
        let unmarked = format!("{}\n{body}", "0".repeat(64));
        for text in [&forged, &unmarked, body, "", "\n"] {
            fs::write(world.entry("k"), text).unwrap();
            assert!(cache.get("k", &check()).is_none(), "{text}");
        }
        // An honest answer to another question is none to this one.
        fs::write(world.entry("other"), &honest).unwrap();
        assert!(cache.get("other", &check()).is_none());
        fs::write(world.entry("k"), &honest).unwrap();
        assert!(cache.get("k", &check()).is_some());
    }

    #[test]
    fn entries_of_another_project_or_another_secret_do_not_count() {
        let (world, other) = (World::new(), World::new());
        world.cache().put("k", &run(CheckOutcome::Passed)).unwrap();
        let elsewhere = GateCache::open(&other.project, &other.project, &world.state).unwrap();
        fs::create_dir_all(&elsewhere.dir).unwrap();
        fs::copy(world.entry("k"), other.entry("k")).unwrap();
        assert!(elsewhere.get("k", &check()).is_none());
        let stranger = GateCache::open(&world.project, &world.project, &other.state).unwrap();
        assert!(stranger.get("k", &check()).is_none());
    }

    #[test]
    fn the_secret_is_the_users_alone_and_outside_of_the_project() {
        let world = World::new();
        world.cache().put("k", &run(CheckOutcome::Passed)).unwrap();
        let path = world.state.join("verdone/gate-results.key");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // One that others may have read is replaced, and what it marked counts no more.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(world.cache().get("k", &check()).is_none());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(GateCache::open(&world.project, &world.project, &world.project.join("state")).is_none());
    }
}
