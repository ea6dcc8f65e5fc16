//! The differential proof: tests that the attempt added or changed, on the tree from before with nothing else of the attempt, and on
//! its own tree. Both are clean, so that no other file can help.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use verdone_core::check::{Check, CheckOrigin, CheckRun, Terms};
use verdone_core::id::Oid;
use verdone_core::machine::Attempt;
use verdone_core::proof::inline_tests::{changed_tests, splice};
use verdone_core::proof::test_command::{self, Project, TestFile};
use verdone_core::proof::test_file::{Role, Runner, role};
use verdone_core::proof::{AgentTest, NO_TEST, Seen, Showed, broke_without_the_work, with_the_work, without_the_work};
use verdone_core::update::Reporter;

use super::StepError;
use crate::git::{Change, ChangedPath, RepoPath, TreeFile};
use crate::regular::read_regular;
use crate::site::Site;

/// A test file that is larger is data.
const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// What came of it.
pub(super) struct Tested {
    pub(super) tests: AgentTest,
    /// The tests themselves fail on the attempt's own tree: it is not done.
    pub(super) wrong: bool,
}

/// None where the story has checks of its own, or nobody asks for tests.
pub(super) fn agent_test(
    site: &mut Site,
    attempt: &Attempt,
    tree: &Oid,
    changes: &[ChangedPath],
    reporter: &mut dyn Reporter,
) -> Result<Option<Tested>, StepError> {
    if !site.asks_for_tests(&attempt.place.story) {
        return Ok(None);
    }
    let base = attempt.base.as_ref();
    let Found { files, overlay, mixed } = find(site, base, tree, changes)?;
    let mut tests = AgentTest { files: files.iter().map(|file| file.path.clone()).collect(), ..AgentTest::default() };
    let checks = checks(site, tree, &files);
    if checks.is_empty() {
        let mixed = mixed
            .map(|path| format!("{NO_TEST} that can be run without its work; those in {path} cannot be taken apart from it"));
        tests.unproven = Some(mixed.unwrap_or_else(|| NO_TEST.to_owned()));
        return Ok(Some(Tested { tests, wrong: false }));
    }
    let before = site.git.overlaid(base, &overlay)?;
    let wrong = match compare(site, &mut tests, &before, tree, &checks, reporter)? {
        Showed::Right => false,
        Showed::Wrong => true,
        Showed::Nothing(why) => {
            tests.unproven = Some(why);
            false
        }
    };
    Ok(Some(Tested { tests, wrong }))
}

fn compare(
    site: &mut Site,
    tests: &mut AgentTest,
    before: &Oid,
    after: &Oid,
    checks: &[Check],
    reporter: &mut dyn Reporter,
) -> Result<Showed, StepError> {
    let seen = run_one_by_one(site, before, checks, reporter)?;
    tests.before = runs(&seen);
    let showed = without_the_work(&seen);
    if showed != Showed::Right {
        return Ok(showed);
    }
    tests.broken_before = broke_without_the_work(&seen);
    let seen = run_one_by_one(site, after, checks, reporter)?;
    tests.after = runs(&seen);
    Ok(with_the_work(&seen, site.config.clean.test.is_some()))
}

fn runs(seen: &[Seen]) -> Vec<CheckRun> {
    seen.iter().map(|seen| seen.run.clone()).collect()
}

/// Runs checks on a tree, one by one: a red one says nothing about the next.
pub(super) fn run_one_by_one(
    site: &mut Site,
    tree: &Oid,
    checks: &[Check],
    reporter: &mut dyn Reporter,
) -> Result<Vec<Seen>, StepError> {
    let mut all = Vec::new();
    for check in checks {
        for run in site.run_checks(tree, std::slice::from_ref(check), reporter)? {
            let kept = run.output.as_ref().and_then(|file| read_regular(&site.run_dir.join(file), u64::MAX).ok());
            let said = kept.map_or_else(|| run.tail.clone(), |bytes| String::from_utf8_lossy(&bytes).into_owned());
            let tests = test_command::tests_seen(&check.command, &run.outcome, &said);
            all.push(Seen { run, tests });
        }
    }
    Ok(all)
}

struct Found {
    files: Vec<TestFile>,
    /// What goes on top of the tree from before: the tests and what they need.
    overlay: Vec<TreeFile>,
    /// A file with both code and tests that could not be told apart.
    mixed: Option<String>,
}

fn find(site: &Site, base: Option<&Oid>, tree: &Oid, changes: &[ChangedPath]) -> Result<Found, StepError> {
    let inside = site.root.strip_prefix(site.git.top()).unwrap_or(Path::new("")).to_owned();
    let (mut files, mut wanted, mut mixed) = (Vec::new(), BTreeSet::new(), None);
    let mut spliced: BTreeMap<RepoPath, String> = BTreeMap::new();
    // The user's own command takes files: it could not be told which tests in them.
    let by_name = site.config.clean.test.is_none();
    for change in changes.iter().filter(|change| change.change != Change::Deleted) {
        let path = change.path.as_path();
        let text = || text_in(site, Some(tree), &change.path).ok().flatten();
        // A name that is no text cannot be a word of a kept command.
        let Some(name) = path.strip_prefix(&inside).ok().and_then(Path::to_str) else { continue };
        let names = match role(name, text) {
            Role::Test(runner) => {
                wanted.insert(change.path.clone());
                files.push(TestFile { path: name.to_owned(), runner, text: text().unwrap_or_default(), names: Vec::new() });
                continue;
            }
            Role::Support => {
                wanted.insert(change.path.clone());
                continue;
            }
            Role::Work => continue,
            Role::Module => changed_tests(&text_in(site, base, &change.path)?.unwrap_or_default(), &text().unwrap_or_default()),
            // Without its work there is no such file at all.
            Role::Mixed => text_in(site, base, &change.path)?.map_or_else(Vec::new, |old| {
                splice(&old, &text().unwrap_or_default()).map_or_else(Vec::new, |parts| {
                    spliced.insert(change.path.clone(), parts.text);
                    parts.names
                })
            }),
        };
        if names.is_empty() || !by_name {
            mixed = mixed.or_else(|| Some(name.to_owned()));
        } else {
            wanted.insert(change.path.clone());
            let text = text().unwrap_or_default();
            files.push(TestFile { path: name.to_owned(), runner: Runner::CargoInline, text, names });
        }
    }
    let overlay = if files.is_empty() { Vec::new() } else { site.git.files_of(tree)? };
    let mut overlay: Vec<TreeFile> = overlay.into_iter().filter(|file| wanted.contains(&file.path) && !file.submodule).collect();
    for file in &mut overlay {
        if let Some(text) = spliced.get(&file.path) {
            file.id = site.git.keep_bytes(text.as_bytes())?;
        }
    }
    Ok(Found { files, overlay, mixed })
}

/// A file of a tree; nothing where it is not there, or too large for a test.
fn text_in(site: &Site, tree: Option<&Oid>, path: &RepoPath) -> Result<Option<String>, StepError> {
    let (Some(tree), Some(name)) = (tree, path.as_path().to_str()) else { return Ok(None) };
    let found = site.git.files_at(tree, &[name.to_owned()])?.into_iter().next().flatten();
    let small = found.filter(|bytes| bytes.len() as u64 <= LARGEST_FILE);
    Ok(small.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn checks(site: &Site, tree: &Oid, files: &[TestFile]) -> Vec<Check> {
    let check = |(name, command)| Check {
        name,
        origin: CheckOrigin::AgentTest,
        command,
        timeout: site.config.limits.check_time,
        terms: Terms::default(),
    };
    if files.is_empty() {
        return Vec::new();
    }
    if let Some(command) = &site.config.clean.test {
        return vec![check(("tests of the attempt".to_owned(), test_command::configured(command, files)))];
    }
    test_command::usual(files, &project(site, tree, files)).into_iter().map(check).collect()
}

/// What the project is built and tested with, as its tree tells.
fn project(site: &Site, tree: &Oid, files: &[TestFile]) -> Project {
    let inside = site.root.strip_prefix(site.git.top()).unwrap_or(Path::new("")).to_owned();
    let text =
        |name: &str| text_in(site, Some(tree), &RepoPath::from(inside.join(name).to_string_lossy().as_ref())).ok().flatten();
    let has = |name: &str| text(name).is_some();
    let of_programs = files.iter().filter_map(|file| file.path.rsplit_once("/tests/").map(|(folder, _)| folder));
    let of_code = files.iter().filter_map(|file| test_command::in_package(&file.path).map(|(folder, _)| folder));
    let below = |folder: &str, name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let cargo_folders: BTreeSet<String> =
        of_programs.chain(of_code).chain([""]).filter(|folder| has(&below(folder, "Cargo.toml"))).map(str::to_owned).collect();
    let cargo_libraries = cargo_folders.iter().filter(|folder| has(&below(folder, "src/lib.rs"))).cloned().collect();
    let speaks = |name: &str| text(name).is_some_and(|text| text.contains("pytest"));
    let pytest = has("pytest.ini")
        || has("conftest.py")
        || has("tests/conftest.py")
        || ["pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"].iter().any(|name| speaks(name));
    Project {
        package_json: text("package.json"),
        gemfile_lock: has("Gemfile.lock"),
        uv_lock: has("uv.lock"),
        poetry_lock: has("poetry.lock"),
        bun_lock: has("bun.lock") || has("bun.lockb"),
        cargo_folders,
        cargo_libraries,
        pytest,
    }
}
