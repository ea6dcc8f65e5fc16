//! `scripts/bench stop`: the time of a Stop gate decision whose verdict is already known, on a large tree, compared with `git status` of
//! that tree and an empty process. One interleaved run, in a new random order every round.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::random::Random;

/// Rounds that warm caches and are not counted.
const WARM: usize = 5;
/// The answer may take at most this many `git status` calls and this many empty processes.
const AIM: (f64, f64) = (1.5, 3.0);
/// A gate that never lets the session stop, so that every answer is the same.
const CONFIG: &str = "[stop]\nsame_limit = 0\nmax_blocks = 0\n\n[[gate]]\nname = \"red\"\ncommand = \"exit 1\"\n";

struct Settings {
    verdone: PathBuf,
    empty: PathBuf,
    rounds: usize,
    files: usize,
}

struct Case {
    name: &'static str,
    command: Command,
    /// Text that the answer must contain.
    answer: &'static str,
    samples: Vec<f64>,
}

pub(crate) fn measure(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let project = place.path().canonicalize().map_err(|error| error.to_string())?.join("project");
    fill(&project, &settings)?;
    let input = place.path().join("input.json");
    let said = format!(
        "{{\"session_id\":\"s1\",\"cwd\":\"{}\",\"hook_event_name\":\"Stop\",\"stop_hook_active\":true}}",
        project.display()
    );
    fs::write(&input, said).map_err(|error| error.to_string())?;
    let case = |name, command, answer| Case { name, command, answer, samples: Vec::new() };
    let mut cases = [
        case("empty process, linked the same way", command(&project, &settings.empty, &["hook"]), ""),
        case("git status", command(&project, Path::new("git"), &["status", "--porcelain"]), "src/"),
        case("Stop, verdict known", command(&project, &settings.verdone, &["hook"]), "\"block\""),
    ];
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut random = Random::new();
    for round in 0..settings.rounds + WARM {
        random.shuffle(&mut order);
        for &n in &order {
            let time = sample(&mut cases[n], &input)?;
            if round >= WARM {
                cases[n].samples.push(time);
            }
        }
    }
    Ok(report(&mut cases, settings.files))
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut empty, mut rounds, mut files) = (None, None, 100, 5_000);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            let absolute = || Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"));
            let number = || value.parse::<usize>().map_err(|_| format!("{value:?} is not a number"));
            match name.as_str() {
                "--verdone" => verdone = Some(absolute()?),
                "--empty" => empty = Some(absolute()?),
                "--rounds" => rounds = number()?.max(1),
                "--files" => files = number()?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        Ok(Self {
            verdone: verdone.ok_or("--verdone PATH is missing")?,
            empty: empty.ok_or("--empty PATH is missing")?,
            rounds,
            files,
        })
    }
}

/// A repository with one change and a loop whose verdict is known.
fn fill(project: &Path, settings: &Settings) -> Result<(), String> {
    let io = |error: std::io::Error| format!("{}: {error}", project.display());
    for n in 0..settings.files {
        let folder = project.join(format!("src/{:03}", n / 50));
        fs::create_dir_all(&folder).map_err(io)?;
        fs::write(folder.join(format!("{n}.rs")), format!("fn f{n}() {{}}\n")).map_err(io)?;
    }
    fs::create_dir_all(project.join(".verdone")).map_err(io)?;
    fs::write(project.join(".verdone/config.toml"), CONFIG).map_err(io)?;
    let git = Path::new("git");
    let who = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"];
    call(command(project, git, &["init", "--quiet"]))?;
    call(command(project, git, &["add", "."]))?;
    call(command(project, git, &[&who[..], &["commit", "--quiet", "-m", "initial"]].concat()))?;
    fs::write(project.join("src/000/0.rs"), "fn changed() {}\n").map_err(io)?;
    // Otherwise git reads every file again, because they are as new as its index.
    call(command(project, git, &["update-index", "--refresh", "-q"])).ok();
    call(command(project, &settings.verdone, &["loop", "start", "--session", "s1", "Measure"]))
}

fn call(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{:?}: {}", command, said())) }
}

fn command(project: &Path, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir(project).env("HOME", "/home/nobody").env("CLAUDE_PROJECT_DIR", project);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn sample(case: &mut Case, input: &Path) -> Result<f64, String> {
    let stdin = fs::File::open(input).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let output = case.command.stdin(stdin).stderr(Stdio::null()).output().map_err(|error| error.to_string())?;
    let time = started.elapsed().as_secs_f64() * 1_000.0;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains(case.answer) { Ok(time) } else { Err(format!("{}: it answered {said:?}", case.name)) }
}

fn report(cases: &mut [Case; 3], files: usize) -> String {
    let mut text = format!("One Stop on a tree of {files} files, in ms\n{:<40} {:>8} {:>8}\n", "", "median", "p99");
    let mut middles = [0.0; 3];
    for (case, middle) in cases.iter_mut().zip(&mut middles) {
        case.samples.sort_by(f64::total_cmp);
        let at = |percent: usize| case.samples[(case.samples.len() - 1) * percent / 100];
        *middle = at(50);
        let _ = writeln!(text, "{:<40} {:>8.3} {:>8.3}", case.name, at(50), at(99));
    }
    let [empty, status, stop] = middles;
    let most = AIM.0 * status + AIM.1 * empty;
    let kept = if stop <= most { "kept" } else { "MISSED" };
    let (by_status, by_empty) = (stop / status, stop / empty);
    let _ = writeln!(
        text,
        "\nStop is {by_status:.2}x git status and {by_empty:.2}x empty; aim at most {}x git status + {}x empty = {most:.3} ms: {kept}",
        AIM.0, AIM.1
    );
    text
}
