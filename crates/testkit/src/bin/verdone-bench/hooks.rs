//! `scripts/bench hooks`: the time of one hook call, compared with an empty process and with hooks written in Bash with jq and in Python,
//! and how it changes when sessions, transcripts and plans grow. One interleaved run, in a new random order every round.

pub(crate) mod world;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::random::Random;
use world::{Event, World, run};

/// One call of a script takes as long as a hundred of ours, so they are not in every round.
const SCRIPTS_EVERY: usize = 5;
/// Rounds that warm caches and are not counted.
const WARM: usize = 5;
/// A larger ratio is growth, not noise.
const MOST_GROWTH: f64 = 1.15;
/// A hook in Bash with jq should take at least this many times as long as ours.
const JQ_AIM: f64 = 50.0;

struct Settings {
    verdone: PathBuf,
    /// Another build, measured in the same rounds.
    against: Option<PathBuf>,
    empty: PathBuf,
    /// The folder of the hooks in Bash and Python.
    scripts: PathBuf,
    rounds: usize,
    /// A small and a large value for each thing that can grow.
    reads: [usize; 2],
    stories: [usize; 2],
    transcript: [u64; 2],
}

/// A command that is started again and again.
struct Case {
    row: Row,
    command: Command,
    input: PathBuf,
    /// Text that the answer must contain; empty if there must be no answer.
    answer: &'static str,
    every: usize,
    samples: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Empty,
    Hook(Event),
    Against(Event),
    /// A call of ours with something large; `Hook` of the same event has the small one.
    Grown(Event, String),
    Bash(Event),
    Python(Event),
}

pub(crate) fn measure(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place_path = place.path().canonicalize().map_err(|error| error.to_string())?;
    let few = World::make(&place_path, "few", settings.stories[0])?;
    let many = World::make(&place_path, "many", settings.stories[1])?;
    let jq = version("jq", &["--version"])?;
    let (python, python_version) = python()?;
    let mut cases = cases(&settings, &few, &many, &python)?;
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut random = Random::new();
    for round in 0..settings.rounds + WARM {
        random.shuffle(&mut order);
        for &n in &order {
            if round % cases[n].every != 0 {
                continue;
            }
            let time = sample(&mut cases[n])?;
            if round >= WARM {
                cases[n].samples.push(time);
            }
        }
    }
    for world in [&few, &many] {
        if let Some(fault) = world.fault() {
            return Err(format!("a hook could not judge: {fault}"));
        }
    }
    for case in &mut cases {
        case.samples.sort_by(f64::total_cmp);
    }
    Ok(report(&cases, &format!("{jq}, {python_version}")))
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut against, mut empty, mut scripts, mut rounds) = (None, None, None, None, 200_usize);
        let (mut reads, mut stories, mut transcript) = ([10, 1_000_000], [10, 100_000], [1 << 10, 1 << 30]);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            let absolute = || Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"));
            match name.as_str() {
                "--verdone" => verdone = Some(absolute()?),
                "--against" => against = Some(absolute()?),
                "--empty" => empty = Some(absolute()?),
                "--hook-scripts" => scripts = Some(absolute()?),
                "--rounds" => rounds = value.parse().map_err(|_| format!("{value:?} is not a number"))?,
                "--reads" => reads = pair(&value)?.map(|n| n as usize),
                "--stories" => stories = pair(&value)?.map(|n| n as usize),
                "--transcript" => transcript = pair(&value)?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        if rounds < SCRIPTS_EVERY {
            return Err(format!("--rounds has to be at least {SCRIPTS_EVERY}"));
        }
        Ok(Self {
            verdone: verdone.ok_or("--verdone PATH is missing")?,
            against,
            empty: empty.ok_or("--empty PATH is missing")?,
            scripts: scripts.ok_or("--hook-scripts PATH is missing")?,
            rounds,
            reads,
            stories,
            transcript,
        })
    }
}

/// Parses `10,1000000`.
fn pair(text: &str) -> Result<[u64; 2], String> {
    let both = text.split_once(',').and_then(|(few, many)| Some([few.parse().ok()?, many.parse().ok()?]));
    both.filter(|[few, many]| few < many).ok_or_else(|| format!("{text:?} is not two numbers like 10,1000000"))
}

/// The first line of a program's version output. Without the program, there is nothing to compare with.
pub(crate) fn version(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let output =
        output.ok_or_else(|| format!("{program} is missing: install it (apt-get install {program}); the comparison needs it"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or(program).to_owned())
}

/// The interpreter itself: the one on the PATH may be a wrapper script.
fn python() -> Result<(PathBuf, String), String> {
    let path = version("python3", &["-c", "import sys; print(sys.executable)"])?;
    Ok((PathBuf::from(path), version("python3", &["--version"])?))
}

const EVENTS: [Event; 12] = [
    Event::BeforeRead,
    Event::BeforeEdit,
    Event::BeforeWrite,
    Event::BeforeBash,
    Event::BeforeLongBash,
    Event::AfterRead,
    Event::AfterEdit,
    Event::AfterTests,
    Event::SessionStart,
    Event::Prompt,
    Event::Stop,
    Event::Unknown,
];
/// The events that the scripts support.
const SCRIPTED: [(Event, &str); 4] = [
    (Event::BeforeEdit, "before-tool.sh"),
    (Event::BeforeBash, "before-tool.sh"),
    (Event::AfterTests, "after-tool.sh"),
    (Event::Stop, "on-stop.sh"),
];

fn cases(settings: &Settings, few: &World, many: &World, python: &Path) -> Result<Vec<Case>, String> {
    let (verdone, [small, large]) = (&settings.verdone, settings.transcript);
    few.remember(verdone, "few", settings.reads[0])?;
    few.remember(verdone, "many", settings.reads[1])?;
    many.remember(verdone, "few", settings.reads[0])?;
    let case = |row, command, input, answer| Case { row, command, input, answer, every: 1, samples: Vec::new() };
    let hook = |row: Row, event: Event, world: &World, session: &str, transcript| -> Result<Case, String> {
        Ok(case(row, world.hook(verdone), world.input(event, session, transcript)?, event.answer()))
    };
    let nothing = few.input(Event::Unknown, "empty", 0)?;
    let mut cases = vec![case(Row::Empty, few.command(&settings.empty, &["hook", "--run"]), nothing, "")];
    for event in EVENTS {
        cases.push(hook(Row::Hook(event), event, few, "few", small)?);
    }
    cases.push(hook(Row::Hook(Event::BeforeEditOfPlan), Event::BeforeEditOfPlan, few, "few", small)?);
    for event in [Event::BeforeRead, Event::BeforeEdit, Event::BeforeWrite, Event::AfterRead] {
        let name = format!("{} files read before", grouped(settings.reads[1] as u64));
        cases.push(hook(Row::Grown(event, name), event, few, "many", small)?);
    }
    for event in [Event::BeforeEdit, Event::BeforeBash, Event::Stop] {
        let name = format!("a transcript of {} bytes", grouped(large));
        cases.push(hook(Row::Grown(event, name), event, few, "few", large)?);
    }
    for event in [Event::BeforeEdit, Event::BeforeLongBash, Event::SessionStart, Event::Stop, Event::BeforeEditOfPlan] {
        let name = format!("a plan of {} stories", grouped(settings.stories[1] as u64));
        cases.push(hook(Row::Grown(event, name), event, many, "few", small)?);
    }
    if let Some(against) = &settings.against {
        for event in EVENTS {
            cases.push(case(Row::Against(event), few.hook(against), few.input(event, "few", small)?, event.answer()));
        }
    }
    let script = settings.scripts.join("hooks.py");
    let script = script.to_str().ok_or("the scripts' folder has to have a plain name")?;
    for (event, bash) in SCRIPTED {
        let input = few.input(event, "few", small)?;
        let answer = if event.answer().is_empty() { "" } else { "allow" };
        let bash = few.command(&settings.scripts.join(bash), &[]);
        cases.push(Case { every: SCRIPTS_EVERY, ..case(Row::Bash(event), bash, input.clone(), answer) });
        cases.push(Case { every: SCRIPTS_EVERY, ..case(Row::Python(event), few.command(python, &[script]), input, answer) });
    }
    Ok(cases)
}

fn sample(case: &mut Case) -> Result<f64, String> {
    let started = Instant::now();
    let said = run(&mut case.command, &case.input)?;
    let time = started.elapsed().as_secs_f64() * 1_000.0;
    let right = if case.answer.is_empty() { said.is_empty() } else { said.contains(case.answer) };
    if right { Ok(time) } else { Err(format!("{:?}: it answered {said:?}", case.row)) }
}

/// The target: at most that many empty processes.
fn aim(event: Event) -> Option<f64> {
    match event {
        Event::BeforeBash | Event::BeforeLongBash | Event::AfterTests => Some(3.0),
        // It reads the plan, because the plan's own text decides.
        Event::BeforeEditOfPlan => None,
        Event::BeforeRead
        | Event::BeforeEdit
        | Event::BeforeWrite
        | Event::AfterRead
        | Event::AfterEdit
        | Event::SessionStart
        | Event::Prompt
        | Event::Stop
        | Event::Unknown => Some(2.0),
    }
}

fn report(cases: &[Case], compared_with: &str) -> String {
    let at = |case: &Case, percent: usize| case.samples[(case.samples.len() - 1) * percent / 100];
    let median_of = |row: &Row| cases.iter().find(|case| case.row == *row).map_or(f64::NAN, |case| at(case, 50));
    let kept = |holds: bool| if holds { "kept" } else { "MISSED" };
    let empty = median_of(&Row::Empty);
    let mut text = format!("One hook call, in ms\n{:<64} {:>8} {:>8} {:>7}\n", "", "median", "p99", "samples");
    let mut line = |name: &str, case: &Case, rest: &str| {
        let _ = writeln!(text, "{name:<64} {:>8.3} {:>8.3} {:>7}  {rest}", at(case, 50), at(case, 99), case.samples.len());
    };
    for case in cases {
        let middle = at(case, 50);
        match &case.row {
            Row::Empty => line("empty process, linked the same way", case, ""),
            Row::Hook(event) => {
                let times = middle / empty;
                let aim = aim(*event).map(|aim| format!(", aim at most {aim}x: {}", kept(times <= aim)));
                line(event.name(), case, &format!("{times:.2}x empty{}", aim.unwrap_or_default()));
            }
            Row::Against(event) => line(
                &format!("{}, other build", event.name()),
                case,
                &format!("{:.2}x empty, {:.2}x ours", middle / empty, middle / median_of(&Row::Hook(*event))),
            ),
            Row::Grown(event, what) => {
                let growth = middle / median_of(&Row::Hook(*event));
                let aim = aim(*event).map(|_| format!(", aim none: {}", kept(growth <= MOST_GROWTH)));
                line(&format!("{}, {what}", event.name()), case, &format!("{growth:.2}x few{}", aim.unwrap_or_default()));
            }
            Row::Bash(event) => {
                let times = middle / median_of(&Row::Hook(*event));
                // The Stop hook in Bash does not call jq.
                let aim = (*event != Event::Stop).then(|| format!(", aim at least {JQ_AIM}x: {}", kept(times >= JQ_AIM)));
                line(&format!("{} in Bash and jq", event.name()), case, &format!("{times:.1}x ours{}", aim.unwrap_or_default()));
            }
            Row::Python(event) => {
                let times = middle / median_of(&Row::Hook(*event));
                line(&format!("{} in Python", event.name()), case, &format!("{times:.1}x ours"));
            }
        }
    }
    let _ = writeln!(text, "\nCompared with: {compared_with}");
    text
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let from_end = |at: usize| digits.len() - at;
    digits.char_indices().fold(String::new(), |mut text, (at, digit)| {
        if at > 0 && from_end(at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
        text
    })
}
