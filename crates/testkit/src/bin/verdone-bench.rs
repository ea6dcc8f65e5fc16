//! Measures the program against an empty process, bare git and a Bash loop.
//!
//! All cases run in one interleaved schedule, in a new random order every round: on a noisy machine only ratios taken together mean
//! anything. Every sample works on a fresh copy of its repository, made outside the clock, and is thrown out loudly when it did
//! not do its work: a fast failure is not a result.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

use verdone_testkit::{PlanShape, Sandbox};

/// The agent of both loops: shell built-ins only, and a different file every time.
const AGENT: &str = "echo $$ > note.txt";
const PLAN: &str = "plan.md";
/// Cheap cases are repeated within a round, so that their medians are worth as much as those of the dear ones.
const CHEAP_REPEATS: usize = 5;

fn main() -> ExitCode {
    let outcome = Settings::parse(std::env::args().skip(1)).and_then(|settings| measure(&settings));
    // Either reader may have closed its pipe, which is no error of a benchmark.
    match outcome {
        Ok(report) => {
            let _ = std::io::stdout().write_all(report.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Settings {
    verdone: PathBuf,
    empty: PathBuf,
    bash_loop: PathBuf,
    rounds: usize,
    iterations: usize,
    sizes: Vec<usize>,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut empty, mut bash_loop) = (None, None, None);
        let (mut rounds, mut iterations, mut sizes) = (20, 5, vec![10, 10_000, 100_000]);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--verdone" => verdone = Some(absolute(&value)?),
                "--empty" => empty = Some(absolute(&value)?),
                "--loop" => bash_loop = Some(absolute(&value)?),
                "--rounds" => rounds = number(&value)?,
                "--iterations" => iterations = number(&value)?,
                "--sizes" => sizes = value.split(',').map(number).collect::<Result<_, _>>()?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        if sizes.iter().any(|size| *size < iterations) {
            return Err(format!("a plan needs at least as many stories as iterations ({iterations})"));
        }
        Ok(Self {
            verdone: verdone.ok_or("--verdone PATH is missing")?,
            empty: empty.ok_or("--empty PATH is missing")?,
            bash_loop: bash_loop.ok_or("--loop PATH is missing")?,
            rounds,
            iterations,
            sizes,
        })
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    Path::new(path).canonicalize().map_err(|error| format!("{path}: {error}"))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// What is timed. A size is a number of stories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    /// An empty program, linked as ours is.
    Empty,
    /// `sh -c true`: what an iteration pays for the agent, and again for each check, whoever starts them.
    Shell,
    /// `verdone run --dry-run`.
    DryRun(usize),
    /// The Bash loop, asked for no iteration.
    LoopStart(usize),
    /// Write the plan and the file, `git add`, `git commit`, several times.
    Bare(usize),
    /// The Bash loop, several iterations.
    Loop(usize),
    /// `verdone run`, several iterations.
    Run(usize),
}

impl Case {
    fn repeats(self) -> usize {
        match self {
            Self::Empty | Self::Shell | Self::DryRun(_) | Self::LoopStart(_) => CHEAP_REPEATS,
            Self::Bare(_) | Self::Loop(_) | Self::Run(_) => 1,
        }
    }
}

type Samples = BTreeMap<Case, Vec<Duration>>;

fn measure(settings: &Settings) -> Result<String, String> {
    let mut bench = Bench::prepare(settings);
    let mut schedule = [Case::Empty, Case::Shell].repeat(CHEAP_REPEATS);
    for &size in &settings.sizes {
        for case in [Case::DryRun(size), Case::LoopStart(size), Case::Bare(size), Case::Loop(size), Case::Run(size)] {
            schedule.extend(vec![case; case.repeats()]);
        }
    }

    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.subsec_nanos() | 1);
    let mut random = Random(u64::from(seed));
    let mut samples = Samples::new();
    // The first round warms caches and is not counted.
    for round in 0..=settings.rounds {
        random.shuffle(&mut schedule);
        let _ = writeln!(std::io::stderr(), "round {round} of {}", settings.rounds);
        for &case in &schedule {
            let duration = bench.sample(case).map_err(|message| format!("{case:?}: {message}"))?;
            if round > 0 {
                samples.entry(case).or_default().push(duration);
            }
        }
    }
    Ok(report(settings, &samples))
}

struct Bench<'a> {
    settings: &'a Settings,
    sandbox: Sandbox,
    /// One repository per size, copied for every sample that changes it.
    templates: BTreeMap<usize, PathBuf>,
    copies: usize,
}

impl<'a> Bench<'a> {
    fn prepare(settings: &'a Settings) -> Self {
        let sandbox = Sandbox::new();
        let mut templates = BTreeMap::new();
        for &size in &settings.sizes {
            let name = format!("template-{size}");
            sandbox.write(format!("{name}/{PLAN}"), PlanShape::StoryLines.build(size));
            sandbox.write(format!("{name}/src/main.txt"), "A small project.\n");
            sandbox.git(["-C", &name, "init", "--quiet", "--initial-branch=work"]);
            sandbox.git(["-C", &name, "add", "--all"]);
            sandbox.git(["-C", &name, "commit", "--quiet", "--message", "initial"]);
            templates.insert(size, sandbox.path(name));
        }
        Self { settings, sandbox, templates, copies: 0 }
    }

    fn sample(&mut self, case: Case) -> Result<Duration, String> {
        let iterations = self.settings.iterations;
        let count = iterations.to_string();
        match case {
            Case::Empty => timed(self.sandbox.command(&self.settings.empty), &[0]),
            Case::Shell => {
                let mut command = self.sandbox.command("/bin/sh");
                command.args(["-c", "true"]);
                timed(command, &[0])
            }
            Case::DryRun(size) => {
                let mut command = self.command(&self.settings.verdone, &self.templates[&size]);
                command.args(["run", PLAN, "--dry-run", "--agent-command", AGENT, "--check", "true"]);
                timed(command, &[0])
            }
            Case::LoopStart(size) => {
                let mut command = self.command(&self.settings.bash_loop, &self.templates[&size]);
                command.args([PLAN, AGENT, "0"]);
                timed(command, &[0])
            }
            Case::Bare(size) => self.on_copy(size, Bench::bare),
            Case::Loop(size) => self.on_copy(size, |bench, copy| {
                let mut command = bench.command(&bench.settings.bash_loop, copy);
                command.args([PLAN, AGENT, &count]);
                timed(command, &[0])
            }),
            Case::Run(size) => self.on_copy(size, |bench, copy| {
                let mut command = bench.command(&bench.settings.verdone, copy);
                command.args(["run", PLAN, "--agent-command", AGENT, "--check", "true"]);
                command.args(["--max-iterations", &count, "--quiet"]);
                // 3: the limit was reached. 0: the plan had no more stories than that.
                timed(command, &[0, 3])
            }),
        }
    }

    /// Runs one sample on a fresh copy and counts the commits that it made.
    fn on_copy(&mut self, size: usize, work: impl Fn(&Self, &Path) -> Result<Duration, String>) -> Result<Duration, String> {
        self.copies += 1;
        let copy = self.sandbox.path(format!("copy-{}", self.copies));
        let copied = Command::new("cp").arg("-a").arg(&self.templates[&size]).arg(&copy).status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err("cannot copy the repository".to_owned());
        }
        // Copied files have new inode numbers: without this every case would pay for hashing them again.
        self.sandbox.git(["-C", &copy.to_string_lossy(), "status", "--porcelain"]);
        let duration = work(self, &copy)?;
        let commits = self.sandbox.git(["-C", &copy.to_string_lossy(), "rev-list", "--count", "HEAD"]);
        if commits != (self.settings.iterations + 1).to_string() {
            return Err(format!("{} iterations made {commits} commits, the first one included", self.settings.iterations));
        }
        fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        Ok(duration)
    }

    /// The least that can be done for an iteration: both files written, one `git add`, one `git commit`.
    fn bare(&self, copy: &Path) -> Result<Duration, String> {
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
        Ok(started.elapsed())
    }

    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = self.sandbox.command(program);
        command.current_dir(directory);
        command
    }
}

/// Runs a command to its end with its output collected, as a caller would.
fn timed(mut command: Command, accepted: &[i32]) -> Result<Duration, String> {
    command.stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().map_err(|error| error.to_string())?;
    let duration = started.elapsed();
    if output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Ok(duration);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ended with {}: {}", output.status, said.trim()))
}

fn report(settings: &Settings, samples: &Samples) -> String {
    let mut text = String::new();
    write_report(&mut text, settings, samples).expect("writing to a string cannot fail");
    text
}

fn write_report(text: &mut String, settings: &Settings, samples: &Samples) -> std::fmt::Result {
    let median = |case| quantile(&samples[&case], 0.5);
    let p99 = |case| quantile(&samples[&case], 0.99);
    let empty = median(Case::Empty);

    writeln!(text, "Start-up, in ms ({} samples each)", settings.rounds * CHEAP_REPEATS)?;
    writeln!(text, "{:<40} {:>9} {:>9} {:>9}", "", "median", "p99", "x empty")?;
    let mut start =
        |name: &str, case| writeln!(text, "{name:<40} {:>9.2} {:>9.2} {:>9.1}", median(case), p99(case), median(case) / empty);
    start("empty process", Case::Empty)?;
    start("sh -c true", Case::Shell)?;
    for &size in &settings.sizes {
        start(&format!("run --dry-run, {size} stories"), Case::DryRun(size))?;
        start(&format!("Bash loop, {size} stories"), Case::LoopStart(size))?;
    }

    let iterations = settings.iterations as f64;
    writeln!(text, "\nOne iteration, in ms: (total - start-up) / {iterations}  ({} samples each)", settings.rounds)?;
    writeln!(text, "{:<40} {:>9} {:>9} {:>9} {:>9}", "", "median", "p99", "x bare", "x Bash")?;
    for &size in &settings.sizes {
        let bare = median(Case::Bare(size)) / iterations;
        let each = |quantile: f64, start: f64| (quantile - start) / iterations;
        let bash = each(median(Case::Loop(size)), median(Case::LoopStart(size)));
        let rows = [
            ("bare write, add, commit", Case::Bare(size), 0.0),
            ("Bash loop", Case::Loop(size), median(Case::LoopStart(size))),
            ("verdone run", Case::Run(size), median(Case::DryRun(size))),
        ];
        for (name, case, start) in rows {
            let (middle, high) = (each(median(case), start), each(p99(case), start));
            let name = format!("{name}, {size} stories");
            writeln!(text, "{name:<40} {middle:>9.2} {high:>9.2} {:>9.2} {:>9.2}", middle / bare, middle / bash)?;
        }
    }
    writeln!(text, "\nAims: start-up 5 ms; an iteration 30 ms with 10 stories, and at most 1.5 x bare above that.")
}

/// In milliseconds, by nearest rank.
fn quantile(samples: &[Duration], part: f64) -> f64 {
    let mut sorted: Vec<_> = samples.iter().map(|sample| sample.as_secs_f64() * 1000.0).collect();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_sign_loss, reason = "part and the length are not negative")]
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Xorshift: good enough to shuffle a schedule, and no dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_taken_by_nearest_rank() {
        let samples: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        let table = [(0.5, 100.0), (0.99, 198.0), (1.0, 200.0), (0.0, 1.0)];
        for (part, expected) in table {
            assert!((quantile(&samples, part) - expected).abs() < 1e-9, "{part}");
        }
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<_> = (0..100).collect();
        Random(7).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [&["--rounds"][..], &["--rounds", "0"], &["--nonsense", "1"], &["--rounds", "3"]] {
            assert!(Settings::parse(words.iter().map(ToString::to_string)).is_err(), "{words:?}");
        }
    }
}
