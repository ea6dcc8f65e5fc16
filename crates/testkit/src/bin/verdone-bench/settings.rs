//! What to measure, and with which programs.

use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) verdone: PathBuf,
    /// Another build, measured in the same rounds.
    pub(crate) against: Option<PathBuf>,
    pub(crate) empty: PathBuf,
    pub(crate) bash_loop: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) iterations: usize,
    /// Numbers of stories.
    pub(crate) sizes: Vec<usize>,
    /// Numbers of events in the journal of a dead run.
    pub(crate) events: Vec<usize>,
    /// The number of earlier runs, and of events in each.
    pub(crate) old_runs: (usize, usize),
}

impl Settings {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut verdone, mut against, mut empty, mut bash_loop) = (None, None, None, None);
        let (mut rounds, mut iterations, mut sizes) = (20, 5, vec![10, 10_000, 100_000]);
        let (mut events, mut old_runs) = (vec![10, 1_000, 100_000, 1_000_000], (100, 10_000));
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--verdone" => verdone = Some(absolute(&value)?),
                "--against" => against = Some(absolute(&value)?),
                "--empty" => empty = Some(absolute(&value)?),
                "--loop" => bash_loop = Some(absolute(&value)?),
                "--rounds" => rounds = number(&value)?,
                "--iterations" => iterations = number(&value)?,
                "--sizes" => sizes = value.split(',').map(number).collect::<Result<_, _>>()?,
                "--events" => events = value.split(',').map(number).collect::<Result<_, _>>()?,
                "--old-runs" => {
                    let (runs, each) = value.split_once('x').ok_or_else(|| format!("{value:?} is not like 100x10000"))?;
                    old_runs = (number(runs)?, number(each)?);
                }
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        if sizes.iter().any(|size| *size < iterations) {
            return Err(format!("a plan needs at least as many stories as iterations ({iterations})"));
        }
        Ok(Self {
            verdone: verdone.ok_or("--verdone PATH is missing")?,
            against,
            empty: empty.ok_or("--empty PATH is missing")?,
            bash_loop: bash_loop.ok_or("--loop PATH is missing")?,
            rounds,
            iterations,
            sizes,
            events,
            old_runs,
        })
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    Path::new(path).canonicalize().map_err(|error| format!("{path}: {error}"))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_refused() {
        for words in [
            &["--rounds"][..],
            &["--rounds", "0"],
            &["--nonsense", "1"],
            &["--rounds", "3"],
            &["--events", "1,x"],
            &["--old-runs", "5"],
        ] {
            assert!(Settings::parse(words.iter().map(ToString::to_string)).is_err(), "{words:?}");
        }
    }
}
