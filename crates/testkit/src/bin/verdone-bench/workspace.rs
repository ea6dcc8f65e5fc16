//! `scripts/bench workspace`: the cost of a workspace. Creating, reading back, resetting and removing one, compared with `git status` of
//! the same files; an iteration, compared with that of an earlier build; an attempt that deletes 20,000 files; and the start of the real
//! client, inside compared with outside. Interleaved, in one run.

mod client;
mod iteration;
mod operations;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use verdone_testkit::Sandbox;

use crate::report::quantile;

/// The parts that can be measured separately with `--parts`.
const PARTS: [&str; 4] = ["operations", "iteration", "deleted", "client"];

struct Settings {
    verdone: PathBuf,
    /// A build to compare iterations with.
    before: Option<PathBuf>,
    rounds: usize,
    /// Numbers of files in the repositories.
    sizes: Vec<usize>,
    /// The number of files that an agent deletes.
    deleted: usize,
    parts: Vec<String>,
}

pub(crate) fn measure(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let mut text = format!("Load before: {}\n", load());
    let wanted = |name: &str| settings.parts.iter().any(|part| part == name);
    if wanted("operations") {
        for &files in &settings.sizes {
            text.push_str(&operations::measure(&settings, files)?);
        }
    }
    if wanted("iteration") {
        text.push_str(&iteration::measure(&settings)?);
    }
    if wanted("deleted") {
        text.push_str(&iteration::deleted(&settings)?);
    }
    if wanted("client") {
        text.push_str(&client::measure(&settings)?);
    }
    let _ = writeln!(text, "\nLoad after: {}", load());
    Ok(text)
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut before, mut rounds, mut deleted) = (None, None, 10, 20_000);
        let mut sizes = vec![5_000, 50_000];
        let mut parts: Vec<String> = PARTS.map(str::to_owned).to_vec();
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            let absolute = || Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"));
            match name.as_str() {
                "--verdone" => verdone = Some(absolute()?),
                "--before" => before = Some(absolute()?),
                "--rounds" => rounds = number(&value)?,
                "--deleted" => deleted = number(&value)?,
                "--files" => sizes = value.split(',').map(number).collect::<Result<_, _>>()?,
                "--parts" => parts = value.split(',').map(str::to_owned).collect(),
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            return Err(format!("--parts knows {}, not {unknown:?}", PARTS.join(", ")));
        }
        if sizes.iter().any(|size| *size < 2 * operations::EDITED) {
            return Err(format!("a repository needs at least {} files", 2 * operations::EDITED));
        }
        Ok(Self { verdone: verdone.ok_or("--verdone PATH is missing")?, before, rounds, sizes, deleted, parts })
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// On a busy machine, ratios are reliable, but milliseconds are not.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn progress(what: &str, round: usize, rounds: usize) {
    let _ = writeln!(std::io::stderr(), "{what}: round {round} of {rounds}");
}

fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

fn head(title: &str) -> String {
    format!("\n{title}\n{:<48} {:>9} {:>9} {:>7}\n", "", "median", "p99", "samples")
}

fn row(text: &mut String, name: &str, samples: &[f64], rest: &str) {
    let (middle, high) = (median(samples), quantile(samples, 0.99));
    let _ = writeln!(text, "{name:<48} {middle:>9.2} {high:>9.2} {:>7}  {rest}", samples.len());
}

/// A ratio, and whether it meets the target.
fn aim(ratio: f64, most: f64, of: &str) -> String {
    format!("{ratio:.2}x {of}, aim at most {most}x: {}", if ratio <= most { "kept" } else { "MISSED" })
}

/// A repository with this many files in one commit.
fn repository(sandbox: &Sandbox, name: &str, files: usize) -> PathBuf {
    for n in 0..files {
        sandbox.write(format!("{name}/src/{:04}/{n}.rs", n / 50), source(n, 0));
    }
    sandbox.git(["-C", name, "init", "--quiet", "--initial-branch=work"]);
    commit(sandbox, name, "initial");
    // One pack, as in a clone.
    sandbox.git(["-C", name, "gc", "--quiet"]);
    sandbox.path(name)
}

/// About as long as a small source file.
fn source(number: usize, version: usize) -> String {
    (0..20).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "fn f{number}_{line}() -> usize {{ {version} + {line} }}");
        text
    })
}

fn commit(sandbox: &Sandbox, name: &str, message: &str) -> String {
    sandbox.git(["-C", name, "add", "--all"]);
    sandbox.git(["-C", name, "commit", "--quiet", "--allow-empty", "--message", message]);
    sandbox.git(["-C", name, "rev-parse", "HEAD"])
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to).status();
    if copied.is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("cannot copy {}", from.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_refused() {
        for words in [&["--rounds", "0"][..], &["--files", "1,x"], &["--files", "3"], &["--parts", "nothing"], &["--rounds", "3"]]
        {
            assert!(Settings::parse(words.iter().map(ToString::to_string)).is_err(), "{words:?}");
        }
    }
}
