//! `scripts/bench verify`: what the verification engine costs beyond the commands that it runs, for each number of trees (the attempt
//! alone; with the base; with the old tests and configuration; with the new tests and without the work), compared with the plain commands
//! in the checkout. One interleaved run, in a new random order every round.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use verdone_testkit::Sandbox;

use crate::random::Random;
use crate::report::quantile;

/// Reads every file, as a linter does, then runs the tests.
const CHECK: &str = "sh tests/run.sh";
const RUN: &str = "grep -rq needle src && exit 1\nfor test in tests/*.t; do sh $test || exit 1; done\n";

struct Settings {
    verdone: PathBuf,
    rounds: usize,
    /// Numbers of files in the repositories.
    sizes: Vec<usize>,
}

/// A range of commits that needs this many trees to judge.
struct Case {
    name: &'static str,
    trees: usize,
    base: String,
    head: String,
    samples: Vec<f64>,
}

pub(crate) fn measure(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let mut text = String::new();
    for &files in &settings.sizes {
        text.push_str(&of_size(&settings, files)?);
    }
    Ok(text)
}

fn of_size(settings: &Settings, files: usize) -> Result<String, String> {
    let sandbox = Sandbox::new();
    let mut cases = cases(&sandbox, files);
    let mut plain: Vec<f64> = Vec::new();
    let mut order: Vec<Option<usize>> = (0..cases.len()).map(Some).chain([None]).collect();
    let mut random = Random::new();
    // The first round warms caches and is not counted.
    for round in 0..=settings.rounds {
        random.shuffle(&mut order);
        let _ = writeln!(std::io::stderr(), "{files} files: round {round} of {}", settings.rounds);
        for &at in &order {
            let (time, samples) = match at {
                Some(at) => (verified(settings, &sandbox, &cases[at])?, &mut cases[at].samples),
                None => (timed(sandbox.command("sh").args(["-c", CHECK]))?.0, &mut plain),
            };
            if round > 0 {
                samples.push(time);
            }
        }
    }
    Ok(report(&cases, &plain, files))
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut rounds, mut sizes) = (None, 20, vec![500, 5_000]);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--verdone" => {
                    verdone = Some(Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"))?);
                }
                "--rounds" => rounds = number(&value)?,
                "--files" => sizes = value.split(',').map(number).collect::<Result<_, _>>()?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        Ok(Self { verdone: verdone.ok_or("--verdone PATH is missing")?, rounds, sizes })
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// A repository whose commits each need one tree more than the previous one.
fn cases(sandbox: &Sandbox, files: usize) -> Vec<Case> {
    for n in 0..files {
        sandbox.write(format!("src/{:04}/{n}.rs", n / 50), format!("fn f{n}() -> usize {{ {n} }}\n").repeat(20));
    }
    sandbox.write("tests/run.sh", RUN);
    sandbox.write("tests/first.t", "echo 1..1; echo ok 1\n");
    sandbox.write(".verdone/config.toml", format!("[[gate]]\nname = \"tests\"\ncommand = \"{CHECK}\"\n"));
    sandbox.repo();
    // One pack, as in a clone.
    sandbox.git(["gc", "--quiet"]);
    let commit = |message: &str| {
        sandbox.git(["add", "--all"]);
        sandbox.git(["commit", "--quiet", "--message", message]);
        sandbox.git(["rev-parse", "HEAD"]).trim().to_owned()
    };
    let first = sandbox.git(["rev-parse", "HEAD"]).trim().to_owned();
    sandbox.write("src/work.rs", "work\n");
    let work = commit("work");
    sandbox.write("src/more.rs", "more\n");
    sandbox.write(".editorconfig", "root = true\n");
    let settings = commit("work and configuration");
    sandbox.write("src/tested.rs", "tested\n");
    let test = "echo 1..1; test -f src/tested.rs && echo ok 1 || { echo not ok 1; exit 1; }\n";
    sandbox.write("tests/second.t", test);
    let tested = commit("work and a test");
    let case = |name, trees, base: &str, head: &str| Case {
        name,
        trees,
        base: base.to_owned(),
        head: head.to_owned(),
        samples: Vec::new(),
    };
    vec![
        case("attempt", 1, &first, &first),
        case("attempt, base", 2, &first, &work),
        case("attempt, base, pristine", 3, &work, &settings),
        case("attempt, base, pristine, proof", 4, &settings, &tested),
    ]
}

/// Rejects the sample loudly if it did not do its work.
fn verified(settings: &Settings, sandbox: &Sandbox, case: &Case) -> Result<f64, String> {
    let mut command = sandbox.command(&settings.verdone);
    command.args(["verify", "--json", "--base", &case.base, "--head", &case.head]);
    let (time, said) = timed(&mut command)?;
    let found: Value = serde_json::from_str(&said).map_err(|error| format!("{}: {error}: {said}", case.name))?;
    let trees = found["took_ms"].as_object().map_or(0, serde_json::Map::len);
    let is_right = trees == case.trees && found["outcome"] == "done";
    if is_right { Ok(time) } else { Err(format!("{}: {trees} trees, not {}: {said}", case.name, case.trees)) }
}

fn timed(command: &mut Command) -> Result<(f64, String), String> {
    let began = Instant::now();
    let output = command.output().map_err(|error| error.to_string())?;
    let time = began.elapsed().as_secs_f64() * 1_000.0;
    if output.status.success() {
        return Ok((time, String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    Err(format!("{command:?}: {said}"))
}

fn report(cases: &[Case], plain: &[f64], files: usize) -> String {
    let command = quantile(plain, 0.5);
    let mut text = format!(
        "\nOne verification of {files} files, in ms ({} samples each)\n{:<34} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        plain.len(),
        "",
        "median",
        "p99",
        "commands",
        "overhead",
        "ratio"
    );
    let _ = writeln!(text, "{:<34} {command:>9.1} {:>9.1}", "the plain command, once", quantile(plain, 0.99));
    for case in cases {
        let (middle, high) = (quantile(&case.samples, 0.5), quantile(&case.samples, 0.99));
        let commands = command * case.trees as f64;
        let _ = writeln!(
            text,
            "{:<34} {middle:>9.1} {high:>9.1} {commands:>9.1} {:>9.1} {:>8.2}x",
            case.name,
            middle - commands,
            middle / commands
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_refused() {
        for words in [&["--rounds", "0"][..], &["--files", "1,x"], &["--parts", "all"], &["--rounds", "3"]] {
            assert!(Settings::parse(words.iter().map(ToString::to_string)).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_overhead_is_what_is_left_without_the_commands() {
        let case = Case { name: "two", trees: 2, base: String::new(), head: String::new(), samples: vec![50.0] };
        let text = report(&[case], &[10.0], 7);
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["two", "50.0", "50.0", "20.0", "30.0", "2.50x"]);
    }
}
