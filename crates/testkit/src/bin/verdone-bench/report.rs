//! The tables.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::case::{Build, CHEAP_REPEATS, Case};
use crate::settings::Settings;

pub(crate) type Samples = BTreeMap<(Case, Build), Vec<f64>>;

pub(crate) fn report(settings: &Settings, samples: &Samples) -> String {
    let mut report = Report { settings, samples, text: String::new() };
    let mut write = || {
        report.start_up()?;
        report.iterations()?;
        report.journals()?;
        report.memory()?;
        report.aims()
    };
    write().expect("writing to a string cannot fail");
    report.text
}

struct Report<'a> {
    settings: &'a Settings,
    samples: &'a Samples,
    text: String,
}

impl Report<'_> {
    fn start_up(&mut self) -> fmt::Result {
        let empty = self.median(Case::Empty);
        self.head(&format!("Start-up, in ms ({} samples each)", self.settings.rounds * CHEAP_REPEATS), &["x empty"])?;
        self.row("empty process", Case::Empty, &[1.0])?;
        self.row("sh -c true", Case::Shell, &[self.median(Case::Shell) / empty])?;
        for &size in &self.settings.sizes {
            let (run, bash) = (Case::DryRun(size), Case::LoopStart(size));
            self.row(&format!("run --dry-run, {size} stories"), run, &[self.median(run) / empty])?;
            self.row(&format!("Bash loop, {size} stories"), bash, &[self.median(bash) / empty])?;
        }
        Ok(())
    }

    fn iterations(&mut self) -> fmt::Result {
        let (rounds, iterations) = (self.settings.rounds, self.settings.iterations as f64);
        let title = format!("\nOne iteration, in ms: (total - start-up) / {iterations}  ({rounds} samples each)");
        self.head(&title, &["x bare", "x Bash"])?;
        for &size in &self.settings.sizes {
            let bare = self.median(Case::Bare(size)) / iterations;
            let each = |value: f64, start: f64| (value - start) / iterations;
            let bash = each(self.median(Case::Loop(size)), self.median(Case::LoopStart(size)));
            let rows = [
                ("bare write, add, commit", Case::Bare(size), None),
                ("Bash loop", Case::Loop(size), Some(Case::LoopStart(size))),
                ("verdone run", Case::Run(size), Some(Case::DryRun(size))),
            ];
            for (name, case, start) in rows {
                let start = |build| start.and_then(|start| self.results_of(start, build, 0.5)).unwrap_or(0.0);
                let middle = each(self.median(case), start(Build::Ours));
                let high = each(self.p99(case), start(Build::Ours));
                let other = self.results_of(case, Build::Other, 0.5).map(|other| each(other, start(Build::Other)));
                self.values(&format!("{name}, {size} stories"), (middle, high), &[middle / bare, middle / bash], other)?;
            }
        }
        Ok(())
    }

    fn journals(&mut self) -> fmt::Result {
        self.head(&format!("\nLong journals, in ms ({} samples each)", self.settings.rounds), &["x first"])?;
        let Some(first) = self.settings.events.first().copied() else { return Ok(()) };
        for &events in &self.settings.events {
            let case = Case::Status(events);
            self.row(&format!("status, {events} events"), case, &[self.median(case) / self.median(Case::Status(first))])?;
        }
        let alone = self.median(Case::FirstRun);
        self.row("run, 1 iteration", Case::FirstRun, &[1.0])?;
        for &events in &self.settings.events {
            let case = Case::Recovery(events);
            self.row(&format!("same after a kill, {events} events"), case, &[self.median(case) / alone])?;
        }
        let (runs, events) = self.settings.old_runs;
        let name = format!("same after {runs} runs of {events} events");
        self.row(&name, Case::OldRuns, &[self.median(Case::OldRuns) / alone])
    }

    fn memory(&mut self) -> fmt::Result {
        self.head(&format!("\nPeak memory, in MB ({} samples each)", self.settings.rounds), &["x first"])?;
        for cases in [
            self.settings.events.iter().map(|n| (format!("status, {n} events"), Case::StatusMemory(*n))).collect::<Vec<_>>(),
            self.settings.events.iter().map(|n| (format!("run after a kill, {n} events"), Case::RecoveryMemory(*n))).collect(),
            self.settings.sizes.iter().map(|n| (format!("verdone run, {n} stories"), Case::RunMemory(*n))).collect(),
        ] {
            let Some(first) = cases.first().map(|(_, case)| self.median(*case)) else { continue };
            for (name, case) in cases {
                self.row(&name, case, &[self.median(case) / first])?;
            }
        }
        Ok(())
    }

    fn aims(&mut self) -> fmt::Result {
        writeln!(
            self.text,
            "\nAims: start-up 5 ms; an iteration 30 ms with 10 stories, and at most 1.5 x bare above that; status and recovery\n\
             well under a second with 1000000 events; 20 MB for a run of 100000 stories."
        )
    }

    fn head(&mut self, title: &str, ratios: &[&str]) -> fmt::Result {
        write!(self.text, "{title}\n{:<40} {:>9} {:>9}", "", "median", "p99")?;
        ratios.iter().try_for_each(|name| write!(self.text, " {name:>9}"))?;
        if self.settings.against.is_some() {
            write!(self.text, " {:>9} {:>9}", "other", "x ours")?;
        }
        writeln!(self.text)
    }

    fn row(&mut self, name: &str, case: Case, ratios: &[f64]) -> fmt::Result {
        self.values(name, (self.median(case), self.p99(case)), ratios, self.results_of(case, Build::Other, 0.5))
    }

    fn values(&mut self, name: &str, (middle, high): (f64, f64), ratios: &[f64], other: Option<f64>) -> fmt::Result {
        write!(self.text, "{name:<40} {middle:>9.2} {high:>9.2}")?;
        ratios.iter().try_for_each(|ratio| write!(self.text, " {ratio:>9.2}"))?;
        if let Some(other) = other {
            write!(self.text, " {other:>9.2} {:>9.2}", other / middle)?;
        }
        writeln!(self.text)
    }

    fn median(&self, case: Case) -> f64 {
        self.results_of(case, Build::Ours, 0.5).expect("every case of the schedule was sampled")
    }

    fn p99(&self, case: Case) -> f64 {
        self.results_of(case, Build::Ours, 0.99).expect("every case of the schedule was sampled")
    }

    fn results_of(&self, case: Case, build: Build, part: f64) -> Option<f64> {
        self.samples.get(&(case, build)).map(|samples| quantile(samples, part))
    }
}

/// By nearest rank.
pub(crate) fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_sign_loss, reason = "part and the length are not negative")]
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_taken_by_nearest_rank() {
        let samples: Vec<_> = (1..=200).map(f64::from).collect();
        let table = [(0.5, 100.0), (0.99, 198.0), (1.0, 200.0), (0.0, 1.0)];
        for (part, expected) in table {
            assert!((quantile(&samples, part) - expected).abs() < 1e-9, "{part}");
        }
    }
}
