//! Check results from earlier processes: `.verdone/cache/results/`, one file per question.
//!
//! The folder is in the project, where an agent can write. So every entry is sealed, and an entry without a valid seal is ignored. Without
//! a place for the secret, nothing is stored.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::digest;
use verdone_core::check::{CacheKey, Check, CheckOutcome, CheckRun, counts_for_results};
use verdone_core::config::Config;
use verdone_core::verify::{CheckResult, ResultId, TestNames};

use crate::base::atomic::replace_for_readers;
use crate::base::cache_folder::{CACHE, cache_folder};
use crate::base::glob_walk::matching;
use crate::base::plain_file::{read_regular, real_folder};
use crate::base::seal::Seal;
use crate::process;
use crate::project::Project;

const RESULTS: &str = "results";
const SUFFIX: &str = ".json";
const VERSION: u32 = 2;
/// Enough for a few lines, the end of an output, and test names.
const LARGEST: u64 = 4 * 1024 * 1024;
/// A larger file is data rather than an input; then nothing is stored.
const LARGEST_INPUT: u64 = 64 * 1024 * 1024;
/// Above this number, the older half of the entries is removed.
const MOST: usize = 2000;
/// The purpose of the seal.
const PURPOSE: &str = "check result";

/// The results of one project under its current settings.
#[derive(Debug)]
pub struct ResultCache {
    root: PathBuf,
    seal: Seal,
    folder: String,
    place: String,
    environment: Vec<(String, String)>,
    /// Whether earlier results may be used as answers. Otherwise they only help to detect flaky checks.
    answers: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    v: u32,
    key: String,
    run: CheckRun,
    names: Option<TestNames>,
    some_tests_ran: bool,
}

impl ResultCache {
    /// `state_home` is the user's folder for secrets. It must not be inside the work tree.
    pub fn open(project: &Project, config: &Config, state_home: &Path) -> Option<Self> {
        let seal = Seal::open(&project.root, &project.git_top, state_home)?;
        let folder = project.root.strip_prefix(&project.git_top).ok()?.to_string_lossy().into_owned();
        let place = digest(&serde_json::to_vec(&(&config.workspace, &config.seal)).ok()?);
        let environment = process::inherited().into_iter().filter(|(name, _)| counts_for_results(name)).collect();
        Some(Self { root: project.root.clone(), seal, folder, place, environment, answers: true })
    }

    /// The same, but every check runs again.
    #[must_use]
    pub fn without_answers(self) -> Self {
        Self { answers: false, ..self }
    }

    /// The known result of a check on a tree, if it may be used.
    pub fn answer(&self, question: &ResultId, check: &Check) -> Option<CheckResult> {
        self.get(question, check).filter(|_| self.answers)
    }

    /// Marks a result as flaky if it passes but failed before. Stores the result if a rerun would give the same.
    pub fn store_result(&self, question: &ResultId, check: &Check, mut result: CheckResult) -> CheckResult {
        let was_red = self.get(question, check).is_some_and(|before| !before.run.outcome.passed());
        result.run.flaky |= was_red && result.run.outcome.passed();
        // If it cannot be stored, the check simply runs again next time.
        let _ = self.put(question, check, &result);
        result
    }

    fn get(&self, question: &ResultId, check: &Check) -> Option<CheckResult> {
        let key = self.key(question, check)?;
        let bytes = read_regular(&self.path(&key), LARGEST).ok()?;
        let entry: Entry = serde_json::from_slice(self.seal.checked(PURPOSE, &bytes)?).ok()?;
        let is_it = entry.v == VERSION && entry.key == key && is_worth_keeping(&entry.run);
        is_it.then(|| {
            let (name, origin) = (check.name.clone(), check.origin.clone());
            let run = CheckRun { name, origin, advisory: check.terms.advisory, cached: true, ..entry.run };
            CheckResult { run, names: entry.names, some_tests_ran: entry.some_tests_ran }
        })
    }

    fn put(&self, question: &ResultId, check: &Check, result: &CheckResult) -> io::Result<()> {
        let Some(key) = self.key(question, check).filter(|_| is_worth_keeping(&result.run)) else { return Ok(()) };
        // The output file may be gone by the time it is needed.
        let run = CheckRun { cached: false, output: None, ..result.run.clone() };
        let (names, some_tests_ran) = (result.names.clone(), result.some_tests_ran);
        let entry = Entry { v: VERSION, key: key.clone(), run, names, some_tests_ran };
        let body = serde_json::to_vec(&entry).map_err(io::Error::other)?;
        let folder = self.folder_to_write()?;
        replace_for_readers(&folder.join(file_name(&key)), &self.seal.put_on(PURPOSE, &body))?;
        cut_down(&folder)
    }

    fn key(&self, question: &ResultId, check: &Check) -> Option<String> {
        // An agent must not see what a hidden check prints, and its files are not part of the tree.
        if check.terms.hidden.is_some() {
            return None;
        }
        let inputs = inputs(&check.terms.inputs, &self.root)?;
        let key = CacheKey {
            version: env!("CARGO_PKG_VERSION"),
            tree: &question.tree,
            command: &question.command,
            folder: &self.folder,
            place: &self.place,
            inputs: &inputs,
            environment: &self.environment,
        };
        Some(key.digest())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(CACHE).join(RESULTS).join(file_name(key))
    }

    fn folder_to_write(&self) -> io::Result<PathBuf> {
        real_folder(&cache_folder(&self.root)?, Path::new(RESULTS))
    }

    /// Why no result can be stored.
    pub fn trouble(&self) -> Option<io::Error> {
        self.folder_to_write().err()
    }
}

fn file_name(key: &str) -> String {
    format!("{key}{SUFFIX}")
}

fn is_result(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|key| key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn cut_down(folder: &Path) -> io::Result<()> {
    let mut entries: Vec<(i64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_result) {
            entries.push((entry.metadata().map_or(0, |meta| meta.mtime()), entry.path()));
        }
    }
    if entries.len() > MOST {
        entries.sort();
        for (_, path) in &entries[..entries.len() - MOST / 2] {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// A digest of the declared inputs and their contents. `None` if they cannot be read.
fn inputs(patterns: &[String], root: &Path) -> Option<String> {
    let mut all = Vec::new();
    for pattern in patterns {
        for path in matching(root, pattern).ok()? {
            let content = read_regular(&path, LARGEST_INPUT).ok()?;
            all.push((path.to_string_lossy().into_owned(), digest(&content)));
        }
    }
    Some(digest(&serde_json::to_vec(&all).ok()?))
}

/// A timeout may be caused by a busy machine, and unknown or flaky results answer nothing.
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
    use verdone_core::base::id::Oid;
    use verdone_core::base::span::Span;
    use verdone_core::check::CommandSpec;

    struct World {
        _dir: tempfile::TempDir,
        project: Project,
        state: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            let (project, state) = (root.join("project"), root.join("state"));
            fs::create_dir(&project).unwrap();
            let project = Project::find(&project, &project).unwrap();
            Self { _dir: dir, project, state }
        }

        fn kept(&self) -> ResultCache {
            ResultCache::open(&self.project, &Config::default(), &self.state).unwrap()
        }

        fn entry(&self, tree: &str) -> PathBuf {
            let kept = self.kept();
            kept.path(&kept.key(&on(tree), &check()).unwrap())
        }
    }

    fn on(tree: &str) -> ResultId {
        ResultId { tree: Oid::from(tree), command: "digest".to_owned() }
    }

    fn check() -> Check {
        Check::own(CommandSpec::Shell("make test".to_owned()), Span::from_secs(1))
    }

    fn result(outcome: CheckOutcome) -> CheckResult {
        CheckResult::from(CheckRun { outcome, tail: "the end".to_owned(), ..CheckRun::pending(&check()) })
    }

    #[test]
    fn what_was_kept_comes_back_marked_as_cached() {
        let world = World::new();
        world.kept().store_result(&on("a"), &check(), result(CheckOutcome::Failed { code: 3 }));
        let found = world.kept().answer(&on("a"), &check()).unwrap().run;
        assert!(found.cached && found.outcome == CheckOutcome::Failed { code: 3 } && found.tail == "the end");
        assert!(world.kept().answer(&on("b"), &check()).is_none());
        assert_eq!(fs::read_to_string(world.project.root.join(".verdone/cache/.gitignore")).unwrap(), "*\n");
        let asked_again = world.kept().without_answers();
        assert!(asked_again.answer(&on("a"), &check()).is_none());
        assert!(asked_again.store_result(&on("a"), &check(), result(CheckOutcome::Passed)).run.flaky);
        assert_eq!(world.kept().answer(&on("a"), &check()).unwrap().run.outcome, CheckOutcome::Failed { code: 3 });
    }

    #[test]
    fn links_in_place_of_its_folders_are_not_followed() {
        for linked in [".verdone", ".verdone/cache", ".verdone/cache/results"] {
            let world = World::new();
            let (own, link) = (world.state.with_file_name("own"), world.project.root.join(linked));
            for folder in [&own, &own.join("cache"), &own.join("results")] {
                fs::create_dir(folder).unwrap();
                fs::write(folder.join(".gitignore"), "mine\n").unwrap();
            }
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&own, &link).unwrap();
            world.kept().store_result(&on("a"), &check(), result(CheckOutcome::Passed));
            let trouble = world.kept().trouble().unwrap().to_string();
            assert!(trouble.contains(&format!("{linked} is not a folder")), "{trouble}");
            for folder in [&own, &own.join("cache"), &own.join("results")] {
                assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "mine\n", "{linked}");
            }
            assert!(!world.entry("a").exists(), "{linked}");
        }
    }

    #[test]
    fn only_results_are_removed_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("notes.json"), "mine").unwrap();
        for number in 0..=MOST {
            fs::write(at(&file_name(&digest(&number.to_le_bytes()))), "").unwrap();
        }
        cut_down(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST / 2 + 1);
        assert!(at("notes.json").exists());
    }

    #[test]
    fn only_what_would_be_the_same_again_is_kept() {
        let world = World::new();
        let mut hidden = check();
        hidden.terms.hidden = Some("/hidden".into());
        world.kept().store_result(&on("a"), &hidden, result(CheckOutcome::Passed));
        assert!(world.kept().answer(&on("a"), &hidden).is_none() && !world.entry("a").exists());
        let mut flaky = result(CheckOutcome::Passed);
        flaky.run.flaky = true;
        let unknown = result(CheckOutcome::Unknown { reason: "no tests were run".to_owned() });
        for result in [flaky, unknown, result(CheckOutcome::TimedOut { after_ms: 1 }), result(CheckOutcome::Interrupted)] {
            world.kept().store_result(&on("a"), &check(), result.clone());
            assert!(world.kept().answer(&on("a"), &check()).is_none(), "{result:?}");
        }
    }

    #[test]
    fn a_forged_entry_counts_as_not_there() {
        let world = World::new();
        let kept = world.kept();
        kept.store_result(&on("a"), &check(), result(CheckOutcome::Failed { code: 1 }));
        let honest = fs::read_to_string(world.entry("a")).unwrap();
        let forged = honest.replace("{\"failed\":{\"code\":1}}", "\"passed\"");
        assert_ne!(honest, forged);
        let body = forged.split_once('\n').unwrap().1;
        let unmarked = format!("{}\n{body}", "0".repeat(64));
        for text in [&forged, &unmarked, body, "", "\n"] {
            fs::write(world.entry("a"), text).unwrap();
            assert!(kept.answer(&on("a"), &check()).is_none(), "{text}");
        }
        // A valid answer to another question does not answer this one.
        fs::write(world.entry("b"), &honest).unwrap();
        assert!(kept.answer(&on("b"), &check()).is_none());
        fs::write(world.entry("a"), &honest).unwrap();
        assert!(kept.answer(&on("a"), &check()).is_some());
    }

    #[test]
    fn the_secret_is_the_users_alone_and_outside_of_the_project() {
        let world = World::new();
        world.kept().store_result(&on("a"), &check(), result(CheckOutcome::Passed));
        let path = world.state.join("verdone/gate-results.key");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // A secret that others may have read is replaced, and its marks are no longer valid.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(world.kept().answer(&on("a"), &check()).is_none());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(ResultCache::open(&world.project, &Config::default(), &world.project.root.join("state")).is_none());
    }
}
