//! Runs a target in a child process: the parent starts this test again, and reads which input it was processing when it died.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::fuzz::mutate::{Random, mutate};
use crate::fuzz::shrink::shrink;
use crate::fuzz::target::Target;

/// The child's job: `run`, or `once` with the input in the file.
const JOB: &str = "VERDONE_FUZZ_JOB";
const FILE: &str = "VERDONE_FUZZ_FILE";
const SECONDS: &str = "VERDONE_FUZZ_SECONDS";
const SEED: &str = "VERDONE_FUZZ_SEED";
/// A hook has 5 seconds. Without optimisation and next to other tests, everything takes many times as long.
const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 40 } else { 4 });
/// With more kept inputs, the real ones would become rare.
const MOST_KEPT: usize = 4_000;

/// An input that a target fails on.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) small: Vec<u8>,
    pub(crate) said: String,
    file: PathBuf,
}

/// Runs a target for its time; fails with the smallest input that breaks it.
pub(crate) fn fuzz(target: &'static Target, test: &str) {
    if let Some(found) = find(target, test) {
        panic!(
            "{}: an input breaks it (seed {}).\n{}\nThe smallest one found is in {}:\n{:?}\nMend it, and keep the input in \
             crates/core/tests/fixtures/fuzz/{}/.",
            target.name,
            seed(),
            found.said.trim(),
            found.file.display(),
            String::from_utf8_lossy(&found.small),
            target.name,
        );
    }
}

/// The first input that breaks a target, minimised.
pub(crate) fn find(target: &'static Target, test: &str) -> Option<Failure> {
    if let (Some(job), Some(file)) = (std::env::var_os(JOB), std::env::var_os(FILE)) {
        work(target, job == "once", Path::new(&file));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(target.name);
    let said = start(test, "run", &file)?;
    let broken = fs::read(&file).unwrap();
    fs::write(file.with_extension("found"), &broken).unwrap();
    let small = shrink(broken, |bytes| {
        fs::write(&file, bytes).unwrap();
        start(test, "once", &file).is_some()
    });
    fs::write(&file, &small).unwrap();
    let said = start(test, "once", &file).unwrap_or(said);
    Some(Failure { small, said, file })
}

/// The child's output before it died; `None` if it finished.
fn start(test: &str, job: &str, file: &Path) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("fuzz::{test}"), "--nocapture", "--test-threads", "1"]).env(JOB, job).env(FILE, file);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        eprint!("{said}");
        return None;
    }
    Some(format!("{}: {said}", output.status))
}

/// The job of the child process. Exits the process.
fn work(target: &'static Target, once: bool, file: &Path) -> ! {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || watch(&counted));
    if once {
        (target.run)(&fs::read(file).unwrap());
    } else {
        search(target, file, &count);
    }
    std::process::exit(0);
}

/// Exits the process if one input takes too long.
fn watch(count: &AtomicU64) {
    loop {
        let before = count.load(Ordering::Relaxed);
        std::thread::sleep(SLOWEST);
        if count.load(Ordering::Relaxed) == before {
            eprintln!("one input took more than {SLOWEST:?}");
            std::process::abort();
        }
    }
}

fn search(target: &Target, file: &Path, count: &AtomicU64) {
    let begun = Instant::now();
    let seconds = std::env::var(SECONDS).map_or(5, |text| text.parse().expect("VERDONE_FUZZ_SECONDS is a number"));
    let mut random = Random::new(seed());
    let try_one = |bytes: &[u8]| {
        // Written first: after a crash it is all that is left.
        fs::write(file, bytes).unwrap();
        count.fetch_add(1, Ordering::Relaxed);
        (target.run)(bytes)
    };
    let mut seen = HashSet::new();
    for bytes in kept(target.name) {
        seen.insert(try_one(&bytes));
    }
    let mut corpus: Vec<Vec<u8>> = kept(target.name).chain((target.seeds)()).collect();
    random.shuffle(&mut corpus);
    let mut untried = corpus.clone().into_iter();
    while begun.elapsed() < Duration::from_secs(seconds) {
        // Half of the time for known inputs, so that many real inputs leave time for new ones.
        let known = if random.below(2) == 0 { untried.next() } else { None };
        let bytes = known.unwrap_or_else(|| mutate(&mut random, &corpus, target.words));
        if seen.insert(try_one(&bytes)) && corpus.len() < MOST_KEPT {
            corpus.push(bytes);
        }
    }
    eprintln!("{}: {} inputs, {} kinds of outcome", target.name, count.load(Ordering::Relaxed), seen.len());
}

/// Inputs that broke a target before.
fn kept(name: &str) -> impl Iterator<Item = Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(name);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap())
}

fn seed() -> u64 {
    std::env::var(SEED).map_or(1, |text| text.parse().expect("VERDONE_FUZZ_SEED is a number"))
}
