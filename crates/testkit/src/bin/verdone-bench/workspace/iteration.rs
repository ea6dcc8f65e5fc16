//! Iterations with the scripted agent, by the journal's timestamps: compared with those of an earlier build, and one that fails because the
//! agent deleted thousands of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use verdone_testkit::{PlanShape, Sandbox};

use super::{Settings, aim, commit, copy, head, median, progress, repository, row};
use crate::journal::only_journal;
use crate::random::Random;

const PLAN: &str = "plan.md";
const STORIES: usize = 10;
const AIM: f64 = 1.5;
/// Milliseconds for an attempt that deleted everything, from the end of its turn to the start of the next attempt.
const DELETED_AIM: f64 = 2_000.0;
const CONFIG: &str = "[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n";
const WORK: &str = "[[turn]]\nsteps = [{ run = \"echo $VERDONE_STORY > note.txt\" }]\n";
const DELETION: &str = "[[turn]]\nsteps = [{ run = \"rm -rf src\" }]\n";
const SECONDS_A_DAY: f64 = 86_400.0;

#[derive(Default)]
struct Samples {
    whole: Vec<f64>,
    without: Vec<f64>,
}

pub(super) fn measure(settings: &Settings) -> Result<String, String> {
    let sandbox = Sandbox::new();
    let template = project(&sandbox, "template", 1, WORK, "");
    let builds: Vec<&Path> =
        [Some(&settings.verdone), settings.before.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    let mut samples: Vec<Samples> = builds.iter().map(|_| Samples::default()).collect();
    let mut order: Vec<usize> = (0..builds.len()).collect();
    let mut random = Random::new();
    for round in 0..=settings.rounds {
        progress("iterations", round, settings.rounds);
        random.shuffle(&mut order);
        for &build in &order {
            let journal = run(&sandbox, builds[build], &template, &[0])?;
            let committed = journal.iter().filter(|event| event["event"] == "committed").count();
            if committed != STORIES {
                return Err(format!("{}: {committed} of {STORIES} stories were committed", builds[build].display()));
            }
            let (whole, verifying) = times(&journal)?;
            if round > 0 {
                samples[build].whole.push(whole / STORIES as f64);
                samples[build].without.push((whole - verifying) / STORIES as f64);
            }
        }
    }
    let mut text = head(&format!("One iteration of a plan with {STORIES} stories and the scripted agent, in ms"));
    let names = ["", "before: "];
    for (samples, name) in samples.iter().zip(names) {
        row(&mut text, &format!("{name}from selection to commit"), &samples.whole, "");
    }
    for (number, (samples_of, name)) in samples.iter().zip(names).enumerate() {
        let ratio = samples.get(1).filter(|_| number == 0).map(|before| median(&samples_of.without) / median(&before.without));
        let rest = ratio.map(|ratio| aim(ratio, AIM, "before")).unwrap_or_default();
        row(&mut text, &format!("{name}the same without verification"), &samples_of.without, &rest);
    }
    Ok(text)
}

/// An agent that deletes every file of a large project, twice.
pub(super) fn deleted(settings: &Settings) -> Result<String, String> {
    let sandbox = Sandbox::new();
    let limits = "[limits]\nattempts = 2\nturns = 1\n[[gate]]\nname = \"kept\"\ncommand = \"test -d src\"\n";
    let template = project(&sandbox, "template", settings.deleted, DELETION, limits);
    let mut costs = Vec::new();
    for round in 0..=settings.rounds {
        progress("deleted files", round, settings.rounds);
        let journal = run(&sandbox, &settings.verdone, &template, &[1, 3, 4])?;
        let moments =
            |name: &str| journal.iter().filter(|event| event["event"] == name).map(moment).collect::<Result<Vec<_>, _>>();
        let (ended, kept, started) = (moments("turn_ended")?, moments("attempt_kept")?, moments("attempt_started")?);
        let files = journal.iter().find(|event| event["event"] == "attempt_kept").and_then(|event| event["files"].as_u64());
        if files != Some(settings.deleted as u64) || kept.len() < 2 || started.len() < 2 {
            return Err(format!("the attempt that deletes {} files was not kept: {files:?}", settings.deleted));
        }
        if round > 0 {
            costs.push(between(ended[0], started[1]));
        }
    }
    let middle = median(&costs);
    let mut text = head(&format!("An attempt that deletes {} files and fails, in ms", settings.deleted));
    let kept = if middle <= DELETED_AIM { "kept" } else { "MISSED" };
    row(&mut text, "end of its turn to start of the next attempt", &costs, &format!("aim at most {DELETED_AIM}: {kept}"));
    Ok(text)
}

fn project(sandbox: &Sandbox, name: &str, files: usize, script: &str, settings: &str) -> PathBuf {
    sandbox.write(format!("{name}/{PLAN}"), PlanShape::StoryLines.build(STORIES));
    sandbox.write(format!("{name}/.verdone/config.toml"), format!("{CONFIG}{settings}"));
    sandbox.write(format!("{name}/.verdone/script.toml"), script);
    let top = repository(sandbox, name, files);
    commit(sandbox, name, "with a plan");
    top
}

/// The journal of a run on a fresh copy.
fn run(sandbox: &Sandbox, verdone: &Path, template: &Path, accepted: &[i32]) -> Result<Vec<Value>, String> {
    let place = sandbox.path("copy");
    copy(template, &place)?;
    // Copied files have new inode numbers: without this, the run would include hashing them again.
    sandbox.git(["-C", "copy", "status", "--porcelain"]);
    let mut command = sandbox.command(verdone);
    command.args(["run", PLAN, "--check", "true", "--quiet"]).current_dir(&place).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ended with {}: {}", verdone.display(), output.status, said.trim()));
    }
    let text = fs::read_to_string(only_journal(&place)?).map_err(|error| error.to_string())?;
    fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Milliseconds from the selection of each story to its commit, and how much of that is verification, both summed.
fn times(journal: &[Value]) -> Result<(f64, f64), String> {
    let (mut whole, mut verifying, mut selected, mut ended) = (0.0, 0.0, None, None);
    for event in journal {
        match event["event"].as_str() {
            Some("story_selected") => selected = Some(moment(event)?),
            Some("turn_ended") => ended = Some(moment(event)?),
            Some("verified") => verifying += between(ended.ok_or("verified without a turn")?, moment(event)?),
            Some("committed") => whole += between(selected.ok_or("committed without a selection")?, moment(event)?),
            _ => {}
        }
    }
    Ok((whole, verifying))
}

/// The event's `at` in seconds since midnight.
fn moment(event: &Value) -> Result<f64, String> {
    let parse = |text: &str| {
        let (_, time) = text.trim_end_matches('Z').split_once('T')?;
        let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
        Some((parts.next()?? * 60.0 + parts.next()??) * 60.0 + parts.next()??)
    };
    event["at"].as_str().and_then(parse).ok_or_else(|| format!("an event without a time: {event}"))
}

/// Milliseconds, even across midnight.
fn between(from: f64, to: f64) -> f64 {
    (to - from).rem_euclid(SECONDS_A_DAY) * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn verification_is_taken_out_of_an_iteration_also_over_midnight() {
        let event = |name: &str, at: &str| json!({ "event": name, "at": at });
        let journal = [
            event("story_selected", "2026-01-01T23:59:59.900Z"),
            event("turn_ended", "2026-01-02T00:00:00.100Z"),
            event("verified", "2026-01-02T00:00:01.100Z"),
            event("committed", "2026-01-02T00:00:01.150Z"),
        ];
        let (whole, verifying) = times(&journal).unwrap();
        assert!((whole - 1250.0).abs() < 0.01 && (verifying - 1000.0).abs() < 0.01, "{whole} {verifying}");
    }
}
