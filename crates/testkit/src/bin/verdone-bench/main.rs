//! Compares the program with an empty process, bare git and a Bash loop, and measures how its cost changes when plans and journals grow.
//!
//! All cases run in one interleaved schedule, in a new random order every round: on a noisy machine, only ratios measured together are
//! meaningful. Every sample uses a fresh copy of its repository, created outside of the measured time. A sample that did not do its work is
//! rejected loudly: a fast failure is not a result.

mod bench;
mod case;
mod client;
mod hooks;
mod instructions;
mod journal;
mod memory;
mod random;
mod report;
mod settings;
mod stop;
mod verify;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;

use bench::Bench;
use case::{Build, Case};
use random::Random;
use report::{Samples, report};
use settings::Settings;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "tap") {
        return ended(client::tap(args.into_iter().skip(1)).map(|code| (code, String::new())));
    }
    let names = ["hooks", "instructions", "client", "stop", "verify", "workspace"];
    let what = args.iter().position(|arg| names.contains(&arg.as_str())).map(|at| args.remove(at));
    let args = args.into_iter();
    let outcome = match what.as_deref() {
        Some("client") => client::measure(args),
        Some("hooks") => hooks::measure(args),
        Some("stop") => stop::measure(args),
        Some("verify") => verify::measure(args),
        Some("workspace") => workspace::measure(args),
        Some(_) => instructions::check(args),
        None => Settings::parse(args).and_then(|settings| measure(&settings)),
    };
    ended(outcome.map(|report| (ExitCode::SUCCESS, report)))
}

/// Either reader may have closed its pipe, which is not an error of the benchmark.
fn ended(outcome: Result<(ExitCode, String), String>) -> ExitCode {
    match outcome {
        Ok((code, report)) => {
            let _ = std::io::stdout().write_all(report.as_bytes());
            code
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(settings: &Settings) -> Result<String, String> {
    let mut bench = Bench::prepare(settings)?;
    let mut schedule = schedule(settings);
    let mut random = Random::new();
    let mut samples = Samples::new();
    // The first round warms caches and is not counted.
    for round in 0..=settings.rounds {
        random.shuffle(&mut schedule);
        let _ = writeln!(std::io::stderr(), "round {round} of {}", settings.rounds);
        for &(case, build) in &schedule {
            let sample = bench.sample(case, build).map_err(|message| format!("{case:?}: {message}"))?;
            if round > 0 {
                samples.entry((case, build)).or_default().push(sample);
            }
        }
    }
    Ok(report(settings, &samples))
}

fn schedule(settings: &Settings) -> Vec<(Case, Build)> {
    let mut cases = vec![Case::Empty, Case::Shell, Case::FirstRun, Case::OldRuns];
    for &size in &settings.sizes {
        cases.extend([Case::DryRun(size), Case::LoopStart(size), Case::Bare(size), Case::Loop(size), Case::Run(size)]);
        cases.push(Case::RunMemory(size));
    }
    for &events in &settings.events {
        cases.extend([Case::Status(events), Case::Recovery(events), Case::StatusMemory(events), Case::RecoveryMemory(events)]);
    }
    let mut schedule = Vec::new();
    for case in cases {
        schedule.extend(vec![(case, Build::Ours); case.repeats()]);
        if settings.against.is_some() && case.has_builds() {
            schedule.extend(vec![(case, Build::Other); case.repeats()]);
        }
    }
    schedule
}
