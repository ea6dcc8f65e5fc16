//! One workspace: created, read back after edits, reset to another commit, removed; `git status` of the checkout before each.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use verdone_testkit::Sandbox;

use super::{Settings, aim, commit, head, median, progress, repository, row, source};

/// The number of files that an attempt edits, and that differ between the commits.
pub(super) const EDITED: usize = 20;
const AIM: f64 = 5.0;

#[derive(Default)]
struct Samples {
    status: Vec<f64>,
    create: Vec<f64>,
    read: Vec<f64>,
    reset: Vec<f64>,
    remove: Vec<f64>,
}

pub(super) fn measure(settings: &Settings, files: usize) -> Result<String, String> {
    let sandbox = Sandbox::new();
    let top = repository(&sandbox, "project", files);
    let first = sandbox.git(["-C", "project", "rev-parse", "HEAD"]);
    for n in 0..EDITED {
        fs::write(place(&top, n * (files / EDITED)), source(n, 1)).map_err(|error| error.to_string())?;
    }
    let second = commit(&sandbox, "project", "second");
    // Otherwise git reads every file again, because they are as new as its index.
    sandbox.git(["-C", "project", "update-index", "--refresh", "-q"]);
    let mut driver = Driver::start(sandbox.command(&settings.verdone), &top)?;
    let mut samples = Samples::default();
    for round in 0..=settings.rounds {
        progress(&format!("{files} files"), round, settings.rounds);
        let mut into = Samples::default();
        let trees = [&first, &second].map(|commit| sandbox.git(["-C", "project", "rev-parse", &format!("{commit}^{{tree}}")]));
        into.status.push(status(&sandbox, &top)?);
        let (took, said) = driver.ask(&format!("create {first}"))?;
        into.create.push(took);
        edit(&said, files, round)?;
        into.status.push(status(&sandbox, &top)?);
        let (took, said) = driver.ask("read")?;
        into.read.push(took);
        if said["tree"].as_str().is_none_or(|tree| trees.iter().any(|known| known == tree)) {
            return Err(format!("the edits were not read back: {said}"));
        }
        into.status.push(status(&sandbox, &top)?);
        let (took, said) = driver.ask(&format!("reset {second}"))?;
        into.reset.push(took);
        drop(said);
        // Outside of the measured time: check that the reset did its work.
        let (_, said) = driver.ask("read")?;
        if said["tree"].as_str() != Some(&trees[1]) {
            return Err(format!("after the reset the files are not those of the commit: {said}"));
        }
        into.status.push(status(&sandbox, &top)?);
        into.remove.push(driver.ask("remove")?.0);
        // The first round warms caches and is not counted.
        if round > 0 {
            samples.status.extend(into.status);
            samples.create.extend(into.create);
            samples.read.extend(into.read);
            samples.reset.extend(into.reset);
            samples.remove.extend(into.remove);
        }
    }
    driver.finish()?;
    Ok(report(files, &samples))
}

fn report(files: usize, samples: &Samples) -> String {
    let mut text = head(&format!("A workspace of {files} files, in ms"));
    let status = median(&samples.status);
    let ratio = |samples: &[f64]| format!("{:.2}x git status", median(samples) / status);
    row(&mut text, "git status of the checkout", &samples.status, "");
    row(&mut text, "create, with its view", &samples.create, &ratio(&samples.create));
    row(&mut text, &format!("read back, {EDITED} files edited"), &samples.read, &ratio(&samples.read));
    row(&mut text, &format!("reset, {EDITED} files differ, with its view"), &samples.reset, &ratio(&samples.reset));
    row(&mut text, "remove", &samples.remove, &ratio(&samples.remove));
    let both: Vec<f64> = samples.reset.iter().zip(&samples.read).map(|(reset, read)| reset + read).collect();
    row(&mut text, "reset + read back", &both, &aim(median(&both) / status, AIM, "git status"));
    text
}

fn place(top: &Path, number: usize) -> std::path::PathBuf {
    top.join(format!("src/{:04}/{number}.rs", number / 50))
}

/// Edits like an agent: some files changed, one new, one deleted.
fn edit(said: &Value, files: usize, round: usize) -> Result<(), String> {
    let top = Path::new(said["files"].as_str().ok_or("the workspace has no folder")?);
    let error = |error: std::io::Error| error.to_string();
    for n in 0..EDITED {
        fs::write(place(top, n * (files / EDITED) + 1), source(n, round + 2)).map_err(error)?;
    }
    fs::write(top.join("src/new.rs"), source(0, round)).map_err(error)?;
    fs::remove_file(place(top, 2)).map_err(error)
}

fn status(sandbox: &Sandbox, top: &Path) -> Result<f64, String> {
    let mut command = sandbox.command(sandbox.root().join("bin/git"));
    command.args(["status", "--porcelain"]).current_dir(top).stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().map_err(|error| error.to_string())?;
    let took = started.elapsed().as_secs_f64() * 1000.0;
    if output.status.success() && output.stdout.is_empty() { Ok(took) } else { Err("the checkout is not clean".to_owned()) }
}

/// The program with its workspaces; it answers every line with how long the operation took.
struct Driver {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Driver {
    fn start(mut command: Command, top: &Path) -> Result<Self, String> {
        command.args(["launch", "measure"]).current_dir(top).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    fn ask(&mut self, line: &str) -> Result<(f64, Value), String> {
        writeln!(self.to, "{line}").map_err(|error| format!("{line}: {error}"))?;
        let mut answer = String::new();
        self.from.read_line(&mut answer).map_err(|error| format!("{line}: {error}"))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|_| format!("{line}: it answered {answer:?}"))?;
        let took = answer["ms"].as_f64().ok_or_else(|| format!("{line}: it answered {answer}"))?;
        Ok((took, answer["said"].clone()))
    }

    fn finish(self) -> Result<(), String> {
        let Self { mut child, to, from } = self;
        drop((to, from));
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the program ended with {status}")) }
    }
}
