//! `scripts/bench client`: the overhead of a run compared with the real client alone, with a scripted model. The client alone and a run of
//! one story are interleaved; later turns, fresh sessions and the guard's answers are taken from runs of several stories.

mod answer_times;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::model_server::{ModelServer, Script, Times, Turn, When};
use verdone_testkit::{Claude, Sandbox};

use crate::report::quantile;

pub(crate) use answer_times::tap;

/// The number of stories in the runs whose later turns are measured.
const STORIES: usize = 6;
/// The number of tool calls in the turn whose guard is measured.
const CALLS: usize = 20;
const PATIENCE: Duration = Duration::from_mins(2);
/// The most that a story may take beyond the client alone and the checks, in milliseconds.
const STORY_AIM: f64 = 250.0;
const GUARD_AIM: f64 = 2.0;
const GUARD_P99_AIM: f64 = 5.0;

struct Settings {
    verdone: PathBuf,
    rounds: usize,
}

#[derive(Default)]
struct Samples {
    /// The client alone, one turn.
    bare: Vec<f64>,
    /// A run of one story, and the same without its checks.
    run: Vec<f64>,
    without_checks: Vec<f64>,
    /// From the decision for a turn to its end: the first of a run, a later one, one that starts a fresh session.
    first: Vec<f64>,
    later: Vec<f64>,
    fresh: Vec<f64>,
    /// The part of a later turn that is not the client's.
    around: Vec<f64>,
    guard: Vec<f64>,
}

pub(crate) fn measure(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let claude = Claude::or_skip().ok_or("without the client nothing is measured: `./scripts/test client` installs it")?;
    let mut samples = Samples::default();
    // The first round warms caches and is not counted.
    for round in 0..=settings.rounds {
        let mut into = Samples::default();
        // Alternate the order, because the first one has colder caches.
        if round % 2 == 0 {
            Settings::bare(&claude, &mut into)?;
            settings.one_story(&claude, &mut into)?;
        } else {
            settings.one_story(&claude, &mut into)?;
            Settings::bare(&claude, &mut into)?;
        }
        settings.stories(&claude, &mut into)?;
        settings.fresh_sessions(&claude, &mut into)?;
        settings.guard(&claude, &mut into)?;
        if round > 0 {
            samples.add(into);
        }
    }
    Ok(samples.report())
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut rounds) = (None, 20_usize);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--verdone" => verdone = Some(Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"))?),
                "--rounds" => {
                    rounds = value.parse().ok().filter(|n| *n > 0).ok_or(format!("{value:?} is not a number above 0"))?;
                }
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        Ok(Self { verdone: verdone.ok_or("--verdone PATH is missing")?, rounds })
    }

    fn bare(claude: &Claude, into: &mut Samples) -> Result<(), String> {
        let world = World::make(claude, 1, "", story_script(1));
        let begin = Instant::now();
        let output = world.sandbox.run("claude", ["-p", "--permission-mode", "acceptEdits", "Make US-001 true"]);
        into.bare.push(millis(begin.elapsed()));
        if output.code == 0 && world.sandbox.path("s/US-001").exists() { Ok(()) } else { Err(output.transcript()) }
    }

    fn one_story(&self, claude: &Claude, into: &mut Samples) -> Result<(), String> {
        let world = World::make(claude, 1, "", story_script(1));
        let (took, journal) = world.run(&self.verdone, 1)?;
        let checks: f64 = journal.iter().flat_map(|event| event["runs"].as_array().into_iter().flatten()).map(duration).sum();
        into.run.push(took);
        into.without_checks.push(took - checks);
        Ok(())
    }

    fn stories(&self, claude: &Claude, into: &mut Samples) -> Result<(), String> {
        let (_, journal) = World::make(claude, STORIES, "", story_script(STORIES)).run(&self.verdone, STORIES)?;
        for (number, turn) in turns(&journal)?.into_iter().enumerate() {
            if turn.fresh != (number == 0) {
                return Err("a session was not kept".to_owned());
            }
            if turn.fresh {
                into.first.push(turn.whole);
            } else {
                into.later.push(turn.whole);
                into.around.push(turn.whole - turn.client);
            }
        }
        Ok(())
    }

    fn fresh_sessions(&self, claude: &Claude, into: &mut Samples) -> Result<(), String> {
        let world = World::make(claude, STORIES, "[agent.claude]\nsessions = \"fresh\"\n", story_script(STORIES));
        let turns = turns(&world.run(&self.verdone, STORIES)?.1)?;
        if turns.iter().any(|turn| !turn.fresh) {
            return Err("a session was not fresh".to_owned());
        }
        into.fresh.extend(turns.iter().skip(1).map(|turn| turn.whole));
        Ok(())
    }

    fn guard(&self, claude: &Claude, into: &mut Samples) -> Result<(), String> {
        let mut script = Script::new();
        for call in 0..CALLS {
            let turn = match call % 4 {
                0 => Turn::bash("cat README.md | wc -l && git status --short"),
                1 => Turn::write(format!("s/{call}"), "text\n"),
                2 => Turn::call("Read", serde_json::json!({ "file_path": "PLAN.md" })),
                _ => Turn::bash("ls s"),
            };
            script = script.on("US-001", [turn]);
        }
        script = script.on("US-001", [Turn::write("s/US-001", "done\n"), Turn::say("It is done.")]);
        let world = World::make(claude, 1, "[agent.claude]\nbinary = \"tapped-client\"\n", script);
        let log = world.sandbox.root().join("tmp/guard");
        let me = std::env::current_exe().map_err(|error| error.to_string())?;
        let words = [me.as_path(), Path::new("tap"), claude.binary(), &log].map(|word| format!("'{}'", word.display()));
        world.sandbox.add_script("tapped-client", &format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")));
        world.run(&self.verdone, 1)?;
        let text = std::fs::read_to_string(&log).map_err(|error| format!("the tap wrote nothing: {error}"))?;
        let times: Vec<f64> = text.lines().filter_map(|line| line.strip_prefix("PreToolUse ")?.parse().ok()).collect();
        if times.len() != CALLS + 1 {
            return Err(format!("the guard answered {} calls of {}", times.len(), CALLS + 1));
        }
        into.guard.extend(times);
        Ok(())
    }
}

struct World {
    sandbox: Sandbox,
    _model: ModelServer,
}

impl World {
    fn make(claude: &Claude, stories: usize, settings: &str, script: Script) -> Self {
        let model = ModelServer::start(script);
        let mut sandbox = Sandbox::new().deadline(PATIENCE);
        claude.configure(&mut sandbox, &model);
        let story = |number: usize| {
            format!("### US-{number:03}: Story {number}\n\n- [ ] Write it\n  - Verification: `test -f s/US-{number:03}`\n\n")
        };
        sandbox.write("PLAN.md", format!("# Plan\n\n{}", (1..=stories).map(story).collect::<String>()));
        sandbox.write(".verdone/config.toml", format!("[agent]\nname = \"claude\"\n{settings}"));
        sandbox.repo();
        Self { sandbox, _model: model }
    }

    /// Returns milliseconds and the journal.
    fn run(&self, verdone: &Path, stories: usize) -> Result<(f64, Vec<Value>), String> {
        let begin = Instant::now();
        let output = self.sandbox.verdone(verdone, ["run"]);
        let took = millis(begin.elapsed());
        let log = self.sandbox.verdone(verdone, ["log", "--json"]).stdout;
        let journal: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let committed = journal.iter().filter(|event| event["event"] == "committed").count();
        if output.code == 0 && committed == stories {
            Ok((took, journal))
        } else {
            Err(format!("{committed} of {stories} stories were done\n{}", output.transcript()))
        }
    }
}

fn story_script(stories: usize) -> Script {
    (1..=stories).fold(Script::new(), |script, number| {
        let id = format!("US-{number:03}");
        let write = Turn::write(format!("s/{id}"), "done\n");
        let script = script.rule(When { after_tool: Some(false), ..When::prompt(&id) }, Times::Always, write);
        script.rule(When::prompt(&id), Times::Always, Turn::say("It is done."))
    })
}

struct TurnTimes {
    whole: f64,
    client: f64,
    fresh: bool,
}

fn turns(journal: &[Value]) -> Result<Vec<TurnTimes>, String> {
    let of = |name: &str| journal.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let active = |event: &Value| event["active_ms"].as_f64().ok_or(format!("no time in {event}"));
    let both = of("turn_started").into_iter().zip(of("turn_ended"));
    both.map(|(started, ended)| {
        let whole = active(ended)? - active(started)?;
        Ok(TurnTimes { whole, client: duration(ended), fresh: ended["session"]["fresh"].is_string() })
    })
    .collect()
}

fn duration(value: &Value) -> f64 {
    value["duration_ms"].as_f64().unwrap_or(f64::NAN)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl Samples {
    fn add(&mut self, more: Self) {
        let Self { bare, run, without_checks, first, later, fresh, around, guard } = more;
        for (into, samples) in [
            (&mut self.bare, bare),
            (&mut self.run, run),
            (&mut self.without_checks, without_checks),
            (&mut self.first, first),
            (&mut self.later, later),
            (&mut self.fresh, fresh),
            (&mut self.around, around),
            (&mut self.guard, guard),
        ] {
            into.extend(samples);
        }
    }

    fn report(&self) -> String {
        let median = |samples: &[f64]| quantile(samples, 0.5);
        let kept = |holds: bool| if holds { "kept" } else { "MISSED" };
        let mut text = format!("With the real client, in ms\n{:<52} {:>9} {:>9} {:>7}\n", "", "median", "p99", "samples");
        let more = median(&self.without_checks) - median(&self.bare);
        let [guard, guard_p99] = [0.5, 0.99].map(|part| quantile(&self.guard, part));
        let rows = [
            ("claude -p, one turn", &self.bare, String::new()),
            ("verdone run, one story", &self.run, String::new()),
            (
                "the same without its checks",
                &self.without_checks,
                format!("{more:.0} more, aim at most {STORY_AIM}: {}", kept(more <= STORY_AIM)),
            ),
            ("first turn of a run, with the client's start", &self.first, String::new()),
            (
                "later turn in the same session",
                &self.later,
                format!("{:.2}x claude -p", median(&self.later) / median(&self.bare)),
            ),
            ("of that, ours: before, between and after", &self.around, String::new()),
            (
                "turn in a fresh session of the same process",
                &self.fresh,
                format!("{:.2}x claude -p", median(&self.fresh) / median(&self.bare)),
            ),
            (
                "guard, from request line to answer line",
                &self.guard,
                format!(
                    "aim at most {GUARD_AIM}, p99 {GUARD_P99_AIM}: {}",
                    kept(guard <= GUARD_AIM && guard_p99 <= GUARD_P99_AIM)
                ),
            ),
        ];
        for (name, samples, rest) in rows {
            let (middle, high) = (median(samples), quantile(samples, 0.99));
            let _ = writeln!(text, "{name:<52} {middle:>9.2} {high:>9.2} {:>7}  {rest}", samples.len());
        }
        text
    }
}
