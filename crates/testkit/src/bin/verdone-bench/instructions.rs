//! `scripts/bench instructions`: how many instructions a hook call takes, counted by callgrind and compared with a recorded budget.
//!
//! Times depend on the machine and its load; counts do not, so they can fail a build. They do not include system calls and page faults:
//! `scripts/bench hooks` measures those.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hooks::version;
use crate::hooks::world::{Event, World, run};

/// Other machines have a different C library and processor, for which the library selects different functions.
const SLACK_PERCENT: u64 = 15;
/// Hash tables have random seeds, so counts vary.
const NOISE_PERCENT: u64 = 2;
const REPEATS: usize = 3;
const EVENTS: [Event; 4] = [Event::BeforeRead, Event::BeforeEdit, Event::BeforeBash, Event::BeforeLongBash];
const FEW: usize = 10;
const MANY: usize = 10_000;

/// Instructions of one call, by where they were executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// The dynamic linker: the cost of starting a program of that size.
    loader: u64,
    libraries: u64,
    verdone: u64,
}

struct Settings {
    verdone: PathBuf,
    budget: PathBuf,
    renew: bool,
}

pub(crate) fn check(args: impl Iterator<Item = String>) -> Result<String, String> {
    let settings = Settings::parse(args)?;
    let valgrind = version("valgrind", &["--version"])?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = place.path().canonicalize().map_err(|error| error.to_string())?;
    let (few, many) = (World::make(&place, "few", FEW)?, World::make(&place, "few2", MANY)?);
    few.remember(&settings.verdone, "few", FEW)?;
    few.remember(&settings.verdone, "all", MANY)?;
    many.remember(&settings.verdone, "few", FEW)?;
    let count = |world: &World, event, session| count(&settings.verdone, world, event, session);
    let mut text = format!("Instructions of one hook call, by {valgrind}\n");
    let mut counts = Vec::new();
    for event in EVENTS {
        counts.push((event.name(), count(&few, event, "few")?));
    }
    let mut faults = Vec::new();
    for (event, (name, base)) in EVENTS.into_iter().zip(&counts) {
        let (reads, stories) = (count(&few, event, "all")?, count(&many, event, "few")?);
        let _ = writeln!(text, "{name:<26} {base}");
        for (what, grown) in [("files read before", reads), ("stories in the plan", stories)] {
            let percent = grown.total().abs_diff(base.total()) * 100 / base.total();
            let _ = writeln!(text, "{:<26} {grown}", format!("  with {MANY} {what}"));
            if percent >= NOISE_PERCENT {
                faults.push(format!(
                    "{name} takes {} instructions with {MANY} {what}, {} with {FEW}",
                    grown.total(),
                    base.total()
                ));
            }
        }
    }
    if settings.renew {
        fs::write(&settings.budget, written(&counts)).map_err(|error| format!("{}: {error}", settings.budget.display()))?;
        let _ = writeln!(text, "written to {}", settings.budget.display());
    } else {
        let kept = fs::read_to_string(&settings.budget).map_err(|error| format!("{}: {error}", settings.budget.display()))?;
        let budget = read(&kept)?;
        faults.extend(counts.iter().filter_map(|(name, count)| over(name, *count, budget.get(*name).copied())));
    }
    if faults.is_empty() { Ok(text) } else { Err(format!("{text}\n{}\n{HINT}", faults.join("\n"))) }
}

const HINT: &str = "\
To see which functions grew, build both versions with their names, and compare what callgrind_annotate says of them:
  CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release --target-dir target/names
  valgrind --tool=callgrind target/names/release/verdone hook --run < INPUT.json
If the new cost is worth it, record it and say why in the commit: scripts/bench instructions --renew";

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut budget, mut renew) = (None, None, false);
        while let Some(name) = args.next() {
            if name == "--renew" {
                renew = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--verdone" => verdone = Some(Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"))?),
                "--budget" => budget = Some(PathBuf::from(value)),
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        let (verdone, budget) = (verdone.ok_or("--verdone PATH is missing")?, budget.ok_or("--budget PATH is missing")?);
        Ok(Self { verdone, budget, renew })
    }
}

impl Count {
    fn total(self) -> u64 {
        self.loader + self.libraries + self.verdone
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { loader, libraries, verdone } = self;
        write!(f, "{:>9} = loader {loader} + libraries {libraries} + verdone {verdone}", self.total())
    }
}

/// The minimum of a few calls, because only chance makes them differ.
fn count(verdone: &Path, world: &World, event: Event, session: &str) -> Result<Count, String> {
    let input = world.input(event, session, 1_000)?;
    let profile = input.with_extension("callgrind");
    let out = format!("--callgrind-out-file={}", profile.display());
    let mut least: Option<Count> = None;
    for _ in 0..REPEATS {
        let program = verdone.to_str().ok_or("the program has to have a plain name")?;
        let arguments = ["--quiet", "--tool=callgrind", out.as_str(), program, "hook", "--run"];
        let mut command: Command = world.command(Path::new("valgrind"), &arguments);
        // Not the caller's environment: names of different lengths would change the counts.
        command.env_remove("RALPH_ROOT").env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let said = run(&mut command, &input)?;
        if !said.contains(event.answer()) || world.fault().is_some() {
            return Err(format!("{}: it answered {said:?} {}", event.name(), world.fault().unwrap_or_default()));
        }
        let text = fs::read_to_string(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
        let found = spent(&text)?;
        least = Some(least.map_or(found, |least| if found.total() < least.total() { found } else { least }));
    }
    least.ok_or_else(|| "nothing was counted".to_owned())
}

/// Sums a profile by the object file that contains the instructions.
fn spent(profile: &str) -> Result<Count, String> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut count, mut object, mut of_call) = (Count::default(), "", false);
    for line in profile.lines() {
        if let Some(named) = line.strip_prefix("ob=").or_else(|| line.strip_prefix("cob=")) {
            // `(3) /path` the first time, `(3)` after that.
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            if line.starts_with("ob=") {
                object = names.get(id).copied().unwrap_or_default();
            }
        } else if line.starts_with("calls=") {
            of_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-' || c == '*') {
            // The line after a call has the cost of the callee, which is counted where it was spent.
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if !std::mem::take(&mut of_call) {
                *count.part(object) += cost.unwrap_or_default();
            }
        }
    }
    if count.verdone > 0 { Ok(count) } else { Err("the profile has no instructions of the program".to_owned()) }
}

impl Count {
    fn part(&mut self, object: &str) -> &mut u64 {
        let name = object.rsplit('/').next().unwrap_or_default();
        if name.starts_with("ld-") || name.starts_with("ld.") {
            &mut self.loader
        } else if name.contains(".so") {
            &mut self.libraries
        } else {
            &mut self.verdone
        }
    }
}

fn written(counts: &[(&str, Count)]) -> String {
    let mut text = "# Instructions of one hook call, as callgrind counts them: loader, libraries, verdone.\n\
                    # Renewed by `scripts/bench instructions --renew`; `scripts/test` fails when a call takes much more.\n"
        .to_owned();
    for (name, Count { loader, libraries, verdone }) in counts {
        let _ = writeln!(text, "{name} = {loader} {libraries} {verdone}");
    }
    text
}

fn read(text: &str) -> Result<BTreeMap<&str, Count>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let one = |line: &str| -> Option<Count> {
        let numbers: Vec<u64> = line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [loader, libraries, verdone] = numbers.try_into().ok()?;
        Some(Count { loader, libraries, verdone })
    };
    lines
        .map(|line| {
            let (name, numbers) = line.split_once(" = ").unwrap_or((line, ""));
            one(numbers).map(|count| (name, count)).ok_or_else(|| format!("the budget has a line that is none: {line}"))
        })
        .collect()
}

/// Returns the problem if a count exceeds its budget.
fn over(name: &str, count: Count, budget: Option<Count>) -> Option<String> {
    let Some(budget) = budget else { return Some(format!("{name} has no budget")) };
    let most = budget.total() + budget.total() * SLACK_PERCENT / 100;
    let grew = |what: &str, now: u64, before: u64| {
        let percent = (now as f64 / before.max(1) as f64 - 1.0) * 100.0;
        format!("{what} {now} ({percent:+.0}%)")
    };
    (count.total() > most).then(|| {
        format!(
            "{name} takes {} instructions; the budget is {} and {SLACK_PERCENT}% slack. Of them: {}, {}, {}",
            count.total(),
            budget.total(),
            grew("loader", count.loader, budget.loader),
            grew("libraries", count.libraries, budget.libraries),
            grew("verdone", count.verdone, budget.verdone),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "events: Ir\n\nob=(1) /lib64/ld-linux-x86-64.so.2\nfl=(1) a\nfn=(1) start\n10 100\n+2 5\ncob=(2) /x/verdone\n\
                           cfn=(2) main\ncalls=1 7\n12 900\n\nob=(2)\nfn=(2)\n3 800\ncob=(3) /lib/libc.so.6\ncfn=(3) malloc\ncalls=2 4\n\
                           * 60\n\nob=(3)\nfn=(3)\n1 60\n";

    #[test]
    fn what_was_spent_is_summed_by_object_and_counted_once() {
        assert_eq!(spent(PROFILE).unwrap(), Count { loader: 105, libraries: 60, verdone: 800 });
        assert!(spent("events: Ir\n").is_err());
    }

    #[test]
    fn more_than_the_budget_and_its_slack_is_a_fault_that_says_what_grew() {
        let budget = Count { loader: 100, libraries: 100, verdone: 100 };
        let kept = written(&[("PreToolUse Read", budget)]);
        assert_eq!(read(&kept).unwrap()["PreToolUse Read"], budget);
        assert!(read("PreToolUse Read = 1 2\n").is_err());
        assert_eq!(over("x", Count { verdone: 145, ..budget }, Some(budget)), None);
        let fault = over("x", Count { verdone: 146, ..budget }, Some(budget)).unwrap();
        assert!(fault.contains("x takes 346 instructions; the budget is 300") && fault.contains("verdone 146 (+46%)"), "{fault}");
        assert!(over("x", budget, None).is_some());
    }
}
