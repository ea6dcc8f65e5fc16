//! A power cut: the disk keeps only what was synced. The project, HOME and the state folder are on a file system in an image; a copy of the
//! mounted image has exactly what a disk would have after a power cut. 4 cuts in the suite; `VERDONE_POWER_CUTS` sets another number.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::faults::crash_matrix::{Moment, traced};
use crate::faults::kills::kill_all;
use crate::faults::world::{Kind, PATIENCE, Random, THREADS, VERDONE, World, first_seed, in_parallel, wanted};

/// Large enough for the project and its workspaces.
const IMAGE_BYTES: u64 = 512 << 20;

/// A file system mounted over a sandbox's root. Unmounted on drop, before the sandbox is removed.
struct Disk {
    root: PathBuf,
    images: tempfile::TempDir,
    copies: u32,
}

impl Disk {
    /// Moves the sandbox's files to a separate disk, or returns why that is not possible.
    fn under(world: &World) -> Result<Self, String> {
        let root = world.sandbox.root().to_owned();
        let images = tempfile::tempdir().map_err(|error| error.to_string())?;
        let disk = Self { root, images, copies: 0 };
        let (image, place) = (disk.image(), disk.images.path().join("place"));
        fs::create_dir(&place).map_err(|error| error.to_string())?;
        File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES)).map_err(|error| error.to_string())?;
        command("mkfs.ext4", &["-q", "-J", "size=4"].map(Path::new).into_iter().chain([&*image]).collect::<Vec<_>>())?;
        Self::mount(&image, &place)?;
        let moved = command("cp", &[Path::new("-a"), &disk.root.join("."), &place])
            .and_then(|()| command("mount", &[Path::new("--bind"), &place, &disk.root]))
            .and_then(|()| command("sync", &[Path::new("--file-system"), &disk.root]));
        // Lazily, because a view that another test is starting right now may have the mount in its copy of the mount table.
        command("umount", &[Path::new("--lazy"), &place])?;
        moved.map(|()| disk)
    }

    fn image(&self) -> PathBuf {
        self.images.path().join(format!("disk-{}", self.copies))
    }

    /// As far as a file system can be configured so, it writes nothing to the disk before a sync.
    fn mount(image: &Path, place: &Path) -> Result<(), String> {
        command("mount", &[Path::new("-o"), Path::new("loop,commit=900"), image, place])
    }

    /// Cuts the power: from now on, the disk has only what was synced.
    fn cut(&mut self) {
        let before = self.image();
        self.copies += 1;
        let after = self.image();
        command("cp", &[Path::new("--sparse=always"), &before, &after]).unwrap();
        self.unmount();
        Self::mount(&after, &self.root).unwrap();
        fs::remove_file(before).unwrap();
    }

    fn unmount(&self) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = command("umount", &[&self.root]) {
            assert!(Instant::now() < until, "{error}");
            // Another process's copy of the mount table may keep it busy for a moment.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = command("umount", &[Path::new("--lazy"), &self.root]);
    }
}

fn command(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = || format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// Whether file systems can be mounted here. If not, the test is skipped loudly; with `VERDONE_NO_SKIP` set, as in CI, it fails.
fn can_mount(test: &str) -> bool {
    static CAN: OnceLock<Result<(), String>> = OnceLock::new();
    let can = CAN.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount a disk image".to_owned());
        }
        Disk::under(&World::new()).map(drop)
    });
    let Err(reason) = can else { return true };
    assert!(std::env::var_os("VERDONE_NO_SKIP").is_none(), "{test} would be skipped: {reason}");
    // Not `eprintln`, which the harness hides when a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
    false
}

/// A project on a disk. The disk is dropped first.
struct PowerWorld {
    disk: Disk,
    world: World,
}

impl PowerWorld {
    fn with_kind(kind: Kind) -> Self {
        let world = World::with_kind(kind);
        let disk = Disk::under(&world).unwrap();
        Self { disk, world }
    }

    /// Kills everything that runs, and cuts the power.
    fn cut(&mut self) {
        kill_all(&self.world);
        // Shows that this test can fail.
        let tmp = self.world.sandbox.root().join("tmp");
        fs::write(tmp.join("not-synced"), "lost").unwrap();
        self.disk.cut();
        assert!(fs::read(tmp.join("not-synced")).unwrap_or_default().is_empty(), "the disk has what was not synced");
    }

    /// Asserts that everything the journals and refs name exists and is complete, before any repair.
    fn assert_nothing_is_missing(&self) {
        self.world.assert_mine("right after the power cut");
        self.world.git(&["fsck", "--full", "--strict", "--no-dangling"]);
        let runs =
            fs::read_dir(self.world.sandbox.path(".verdone/runs")).into_iter().flatten().flatten().map(|entry| entry.path());
        for dir in runs.filter(|path| path.is_dir()) {
            let journal = fs::read_to_string(dir.join("journal.jsonl")).unwrap_or_default();
            for line in journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                self.assert_named_things_exist(&dir, &line);
            }
        }
    }

    fn assert_named_things_exist(&self, dir: &Path, event: &Value) {
        let name = event["event"].as_str().unwrap_or_default();
        for key in ["commit", "tree", "kept", "base", "head", "to", "from"] {
            if let Some(id) = event[key].as_str().filter(|id| id.len() == 40) {
                let found = self.world.sandbox.run("git", ["rev-list", "--objects", "--quiet", id]);
                let is_tree = found.code == 0 || self.world.sandbox.run("git", ["ls-tree", "-r", id]).code == 0;
                assert!(is_tree, "{name} names {key} {id}, which is not in the repository");
            }
        }
        let commit = event["commit"].as_str().filter(|_| event["noted"] == true);
        if let Some(commit) = commit {
            let note = self.world.sandbox.run("git", ["notes", "--ref=verdone", "show", commit]);
            assert_eq!(note.code, 0, "{name} says that {commit} has a note\n{}", note.transcript());
        }
        for key in ["prompt", "output"] {
            let mut named = Vec::new();
            find(event, key, &mut named);
            for file in named {
                let place = dir.join(&file);
                assert!(place.is_file(), "{name} names {file}, which is not there");
                assert!(key != "prompt" || fs::metadata(&place).unwrap().len() > 0, "{name} names {file}, which is empty");
            }
        }
    }
}

/// Collects the file paths below a key, at any depth.
fn find(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value.as_str().filter(|text| name == key && text.contains('/') && !text.contains('\n')) {
                    Some(path) => found.push(path.to_owned()),
                    None => find(value, key, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| find(value, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    /// A fault point.
    At(String, usize),
    After(Duration),
}

/// When the power is cut, determined by the seed.
fn moment(seed: u64, kind: Kind) -> When {
    static TRACED: [OnceLock<(Duration, Vec<Moment>)>; 4] = [const { OnceLock::new() }; 4];
    let (whole, all) = TRACED[kind.number()].get_or_init(|| {
        let begun = Instant::now();
        let all = traced(&World::with_kind(kind));
        (begun.elapsed(), all)
    });
    let mut random = Random::new(seed);
    let mut below = |limit: usize| random.below(limit as u64) as usize;
    match below(3) {
        0 => When::After(*whole * below(1000) as u32 / 1000),
        1 => {
            let moment = &all[below(all.len())];
            When::At(moment.point.clone(), moment.nth)
        }
        // Picks each point with equal probability, however rarely it is reached.
        _ => {
            let points: Vec<&String> = all.iter().map(|moment| &moment.point).collect::<BTreeSet<_>>().into_iter().collect();
            let point = points[below(points.len())];
            let reached = all.iter().filter(|moment| moment.point == *point).count();
            When::At(point.clone(), 1 + below(reached))
        }
    }
}

fn assert_survives(kind: Kind, when: &When) {
    let mut world = PowerWorld::with_kind(kind);
    match when {
        When::At(point, nth) => drop(world.world.run_with_fault(&format!("kill@{point}:{nth}"))),
        When::After(delay) => {
            let run = world.world.sandbox.spawn(&*VERDONE, ["run"]);
            // The random moment is the point of this test, so there is no event to wait for.
            std::thread::sleep(*delay);
            kill_all(&world.world);
            run.wait(PATIENCE);
        }
    }
    world.cut();
    world.assert_nothing_is_missing();
    world.world.assert_ends_as_undisturbed();
}

#[test]
fn after_a_power_cut_nothing_is_lost_and_the_next_run_ends_as_an_undisturbed_one() {
    if !can_mount("after_a_power_cut_nothing_is_lost") {
        return;
    }
    let (first, count) = (first_seed(), wanted("VERDONE_POWER_CUTS", 4));
    println!("seeds {first} to {}; one again: VERDONE_SEED=N VERDONE_POWER_CUTS=1", first + count as u64 - 1);
    let begun = Instant::now();
    let case = |seed: u64| {
        let kind = Kind::ALL[(seed % 4) as usize];
        (seed, kind, moment(seed, kind))
    };
    let cases: Vec<(u64, Kind, When)> = (first..).take(count).map(case).collect();
    in_parallel(&cases, THREADS, |(_, kind, when)| assert_survives(*kind, when));
    println!("{count} power cuts, {:?}", begun.elapsed());
}

#[test]
fn a_landing_that_loses_its_power_is_finished_by_the_next_run() {
    if !can_mount("a_landing_that_loses_its_power") {
        return;
    }
    let cases: Vec<When> = (1..=3).map(|nth| When::At("land-files-moved".to_owned(), nth)).collect();
    in_parallel(&cases, THREADS, |when| assert_survives(Kind::ALL[0], when));
}
