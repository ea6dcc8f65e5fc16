//! The repositories for the measurements, and one sample of each case.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use verdone_testkit::{PlanShape, Sandbox};

use crate::case::{Build, Case};
use crate::journal::{journals, lengthen, only_journal};
use crate::memory::peak;
use crate::settings::Settings;

/// The agent of both loops: only shell built-ins, and a different file every time. In a workspace its process id is always the same.
const AGENT: &str = "echo $$ $VERDONE_STORY > note.txt";
/// The agent of a run that is killed during an attempt.
const SLOW: &str = "sleep 300";
const PLAN: &str = "plan.md";
/// How long a run may take to start its agent.
const PATIENCE: Duration = Duration::from_mins(1);
/// The number of stories in plans with long journals: the same everywhere.
const STORIES: usize = 10;

#[derive(Debug)]
pub(crate) struct Bench<'a> {
    settings: &'a Settings,
    sandbox: Sandbox,
    /// One repository per number of stories, copied for every sample that changes it.
    plans: BTreeMap<usize, PathBuf>,
    /// One repository per number of events, with a dead run.
    dead: BTreeMap<usize, PathBuf>,
    fresh: PathBuf,
    old_runs: PathBuf,
    copies: usize,
}

impl<'a> Bench<'a> {
    pub(crate) fn prepare(settings: &'a Settings) -> Result<Self, String> {
        let sandbox = Sandbox::new();
        let plans = settings.sizes.iter().map(|size| (*size, repository(&sandbox, &format!("template-{size}"), *size, false)));
        let plans = plans.collect();
        let fresh = repository(&sandbox, "fresh", STORIES, true);
        let old_runs = repository(&sandbox, "old-runs", STORIES, true);
        let mut bench = Self { settings, sandbox, plans, dead: BTreeMap::new(), fresh, old_runs, copies: 0 };
        for &events in &settings.events {
            let place = bench.dead_run(events).map_err(|message| format!("a run that dies: {message}"))?;
            bench.dead.insert(events, place);
        }
        bench.add_old_runs().map_err(|message| format!("runs that ended: {message}"))?;
        Ok(bench)
    }

    /// Returns milliseconds or megabytes.
    pub(crate) fn sample(&mut self, case: Case, build: Build) -> Result<f64, String> {
        let settings = self.settings;
        let count = settings.iterations.to_string();
        match case {
            Case::Empty => timed(self.sandbox.command(&settings.empty), &[0]),
            Case::Shell => {
                let mut command = self.sandbox.command("/bin/sh");
                command.args(["-c", "true"]);
                timed(command, &[0])
            }
            Case::DryRun(size) => {
                let mut command = self.verdone(build, &self.plans[&size]);
                command.args(["run", PLAN, "--dry-run", "--agent-command", AGENT, "--check", "true"]);
                timed(command, &[0])
            }
            Case::LoopStart(size) => {
                let mut command = self.command(&settings.bash_loop, &self.plans[&size]);
                command.args([PLAN, AGENT, "0"]);
                timed(command, &[0])
            }
            Case::Bare(size) => self.on_copy(&self.plans[&size].clone(), settings.iterations, Bench::bare),
            Case::Loop(size) => self.on_copy(&self.plans[&size].clone(), settings.iterations, |bench, copy| {
                let mut command = bench.command(&settings.bash_loop, copy);
                command.args([PLAN, AGENT, &count]);
                timed(command, &[0])
            }),
            Case::Run(size) => self.on_copy(&self.plans[&size].clone(), settings.iterations, |bench, copy| {
                timed(bench.run(build, copy, &count), &ENDS)
            }),
            Case::RunMemory(size) => self.on_copy(&self.plans[&size].clone(), settings.iterations, |bench, copy| {
                weighed(bench.run(build, copy, &count), &ENDS)
            }),
            Case::Status(events) => timed(self.status(build, events), &[0]),
            Case::StatusMemory(events) => weighed(self.status(build, events), &[0]),
            Case::Recovery(events) => self.recovery(events, |bench, copy| timed(bench.run(build, copy, "1"), &ENDS)),
            Case::RecoveryMemory(events) => self.recovery(events, |bench, copy| weighed(bench.run(build, copy, "1"), &ENDS)),
            Case::FirstRun => self.on_copy(&self.fresh.clone(), 1, |bench, copy| timed(bench.run(build, copy, "1"), &ENDS)),
            Case::OldRuns => self.on_copy(&self.old_runs.clone(), 1, |bench, copy| timed(bench.run(build, copy, "1"), &ENDS)),
        }
    }

    /// Runs one sample on a fresh copy and counts the commits it made.
    fn on_copy(
        &mut self,
        template: &Path,
        commits: usize,
        work: impl Fn(&Self, &Path) -> Result<f64, String>,
    ) -> Result<f64, String> {
        self.copies += 1;
        let copy = self.sandbox.path(format!("copy-{}", self.copies));
        let copied = Command::new("cp").args(["-a", "--reflink=auto"]).arg(template).arg(&copy).status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err("cannot copy the repository".to_owned());
        }
        // Copied files have new inode numbers: without this, every case would include hashing them again.
        let count =
            |bench: &Self| bench.sandbox.git(["-C", &copy.to_string_lossy(), "rev-list", "--count", "--branches"]).parse();
        self.sandbox.git(["-C", &copy.to_string_lossy(), "status", "--porcelain"]);
        let before: usize = count(self).map_err(|error| format!("counting commits: {error}"))?;
        let measured = work(self, &copy)?;
        let after = count(self).map_err(|error| format!("counting commits: {error}"))?;
        if after != before + commits {
            return Err(format!("{commits} iterations made {} commits", after - before));
        }
        fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        Ok(measured)
    }

    /// A run after a dead one, which it has to clean up.
    fn recovery(&mut self, events: usize, work: impl Fn(&Self, &Path) -> Result<f64, String>) -> Result<f64, String> {
        let template = self.dead[&events].clone();
        let journal = only_journal(&template)?;
        let journal = journal.strip_prefix(&template).map_err(|error| error.to_string())?;
        self.on_copy(&template, 1, |bench, copy| {
            let measured = work(bench, copy)?;
            if !has_ended(&copy.join(journal))? {
                return Err("the dead run was not put in order".to_owned());
            }
            Ok(measured)
        })
    }

    /// The minimum work for an iteration: write both files, one `git add`, one `git commit`.
    fn bare(&self, copy: &Path) -> Result<f64, String> {
        let mut plan = fs::read_to_string(copy.join(PLAN)).map_err(|error| error.to_string())?;
        let started = Instant::now();
        for n in 0..self.settings.iterations {
            if let Some(place) = plan.find("- [ ]") {
                plan.replace_range(place + 3..place + 4, "x");
            }
            fs::write(copy.join("note.txt"), format!("{n}\n")).map_err(|error| error.to_string())?;
            fs::write(copy.join(PLAN), &plan).map_err(|error| error.to_string())?;
            let git = self.sandbox.root().join("bin/git");
            for args in [&["add", PLAN, "note.txt"][..], &["commit", "--quiet", "--message", "story"]] {
                let mut command = self.command(&git, copy);
                command.args(args);
                timed(command, &[0])?;
            }
        }
        Ok(started.elapsed().as_secs_f64() * 1000.0)
    }

    fn run(&self, build: Build, directory: &Path, iterations: &str) -> Command {
        let mut command = self.verdone(build, directory);
        command.args(["run", PLAN, "--agent-command", AGENT, "--check", "true", "--max-iterations", iterations, "--quiet"]);
        command
    }

    fn status(&self, build: Build, events: usize) -> Command {
        let mut command = self.verdone(build, &self.dead[&events]);
        command.arg("status");
        command
    }

    fn verdone(&self, build: Build, directory: &Path) -> Command {
        let program = match (build, &self.settings.against) {
            (Build::Other, Some(other)) => other,
            (Build::Ours | Build::Other, _) => &self.settings.verdone,
        };
        self.command(program, directory)
    }

    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = self.sandbox.command(program);
        command.current_dir(directory);
        command
    }

    /// A repository in which a run was killed during its agent's turn; its journal is then made longer.
    fn dead_run(&self, events: usize) -> Result<PathBuf, String> {
        let place = repository(&self.sandbox, &format!("dead-{events}"), STORIES, true);
        let mut command = self.verdone(Build::Ours, &place);
        command.args(["run", PLAN, "--agent-command", SLOW, "--check", "true", "--quiet"]);
        kill_in_a_turn(command, &place)?;
        let journal = only_journal(&place)?;
        if has_ended(&journal)? {
            return Err("its journal says that it ended".to_owned());
        }
        lengthen(&journal, events).map_err(|error| format!("{}: {error}", journal.display()))?;
        Ok(place)
    }

    /// One complete run, and as many copies of it as requested.
    fn add_old_runs(&self) -> Result<(), String> {
        let (runs, events) = self.settings.old_runs;
        timed(self.run(Build::Ours, &self.old_runs, "1"), &ENDS)?;
        let journal = only_journal(&self.old_runs)?;
        lengthen(&journal, events).map_err(|error| format!("{}: {error}", journal.display()))?;
        for n in 1..runs {
            // Sorts before every real run.
            let dir = self.old_runs.join(format!(".verdone/runs/20000101-000000-{n:04x}"));
            fs::create_dir(&dir)
                .and_then(|()| fs::copy(&journal, dir.join("journal.jsonl")))
                .map_err(|error| error.to_string())?;
        }
        match journals(&self.old_runs)?.len() {
            found if found == runs => Ok(()),
            found => Err(format!("{found} instead of {runs}")),
        }
    }
}

/// Kills a run and its process group as soon as its agent is working.
fn kill_in_a_turn(mut command: Command, place: &Path) -> Result<(), String> {
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn().map_err(|error| error.to_string())?;
    let until = Instant::now() + PATIENCE;
    let works = || {
        let text = only_journal(place).and_then(|journal| fs::read_to_string(journal).map_err(|error| error.to_string()));
        text.is_ok_and(|text| text.contains("\"event\":\"turn_started\""))
    };
    while !works() {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it was not killed, but ended with {status}"));
        }
        if Instant::now() >= until {
            let _ = child.kill();
            return Err("its agent did not start".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process_group(Pid::from_child(&child), Signal::KILL).map_err(|error| error.to_string())?;
    child.wait().map(drop).map_err(|error| error.to_string())
}

/// 3: the limit was reached. 0: the plan had no more stories than that.
const ENDS: [i32; 2] = [0, 3];

/// A repository with a plan, optionally with its first story ticked.
fn repository(sandbox: &Sandbox, name: &str, stories: usize, first_is_done: bool) -> PathBuf {
    let plan = PlanShape::StoryLines.build_with_done(stories, |n| first_is_done && n == 1);
    sandbox.write(format!("{name}/{PLAN}"), plan);
    sandbox.write(format!("{name}/src/main.txt"), "A small project.\n");
    sandbox.git(["-C", name, "init", "--quiet", "--initial-branch=work"]);
    sandbox.git(["-C", name, "add", "--all"]);
    sandbox.git(["-C", name, "commit", "--quiet", "--message", "initial"]);
    sandbox.path(name)
}

fn has_ended(journal: &Path) -> Result<bool, String> {
    let bytes = fs::read(journal).map_err(|error| format!("{}: {error}", journal.display()))?;
    let last = bytes.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(last).contains("\"event\":\"run_stopped\""))
}

/// Runs a command to its end and collects its output, as a caller would.
fn timed(mut command: Command, accepted: &[i32]) -> Result<f64, String> {
    command.stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().map_err(|error| error.to_string())?;
    let duration = started.elapsed();
    if output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Ok(duration.as_secs_f64() * 1000.0);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ended with {}: {}", output.status, said.trim()))
}

fn weighed(command: Command, accepted: &[i32]) -> Result<f64, String> {
    Ok(peak(command, accepted)? as f64 / 1024.0)
}
