//! The six ways to have work judged. Each prepares a project, does the same work in its own way, and reads the answer.

use serde_json::Value;
use verdone_core::verify::Surface;
use verdone_testkit::Output;

use super::case::{Case, Ends, SECRET};
use super::observed::{Fate, Observed, proof};
use super::project::{Project, SESSION, STORY};

/// A judge that never gives a clear answer, so that work that would be done waits for a person.
const UNDECIDED: &str = "[done]\nrequire = [\"looked\"]\n[[done.condition]]\nname = \"looked\"\nprover = \"judge\"\n\
                         [done.judge]\nenabled = true\nmin_complexity = 1\ncommand = \"echo who knows\"\n";

pub(crate) fn judge_on(surface: Surface, case: &Case) -> Observed {
    match surface {
        Surface::Run => by_run(case),
        Surface::Loop => by_loop(case),
        Surface::Verify => by_verify(case),
        Surface::VerifyBase => by_range(case),
        Surface::AuditRerun => by_audit(case),
        Surface::Accept => by_accept(case),
    }
}

/// `verdone run` with an agent that does the work in every turn.
fn by_run(case: &Case) -> Observed {
    let project = Project::new(case, "");
    let output = project.judge(&["run", "--story", STORY]);
    assert_keeps_secrets(case, &project.feedback());
    Observed::in_journal(&project).unwrap_or_else(|| Observed::refused(&output))
}

/// A user's session with a loop: the work is done in the checkout, and the turn ends.
fn by_loop(case: &Case) -> Observed {
    let project = Project::new(case, "");
    project.verdone(&["install", "--user", "--yes"]).assert_code(0);
    let started = project.verdone(&["loop", "start", "--session", SESSION, "--plan", "PLAN.md"]);
    if started.code != 0 {
        return Observed::refused(&started);
    }
    case.do_work(&project.sandbox, SESSION);
    let mut answers = String::new();
    let mut seen = None;
    // The agent gets feedback about a doubt once; then a person decides.
    for _ in 0..2 {
        answers.push_str(&project.stop());
        seen = Observed::in_journal(&project);
        if seen.as_ref().is_none_or(|seen| seen.fate != Fate::Failed) {
            break;
        }
    }
    assert_keeps_secrets(case, &answers);
    let seen = seen.unwrap_or_else(|| panic!("nothing was verified: {answers}"));
    Observed { words: format!("{}\n{answers}", seen.words), ..seen }
}

/// `verdone verify` in the checkout, before anything is committed.
fn by_verify(case: &Case) -> Observed {
    let project = Project::new(case, "");
    case.do_work(&project.sandbox, SESSION);
    of_json(&project.judge(&["verify", STORY, "--json"]))
}

/// `verdone verify --base` on a branch with the work committed.
fn by_range(case: &Case) -> Observed {
    let project = Project::new(case, "");
    let sandbox = &project.sandbox;
    sandbox.git(["switch", "--quiet", "--create", "work"]);
    case.do_work(sandbox, SESSION);
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--no-verify", "--allow-empty", "--message", "work"]);
    of_json(&project.judge(&["verify", STORY, "--base", "main", "--json"]))
}

/// `verdone audit --rerun` on a commit made by a run, whose checks were fooled if necessary.
fn by_audit(case: &Case) -> Observed {
    let project = Project::new(case, "");
    let fooled = matches!(case.ends, Ends::Failed | Ends::Review);
    let run = run_before(&project, fooled);
    let events = project.events();
    let committed = events.iter().rfind(|event| event["event"] == "committed");
    let commit = committed.unwrap_or_else(|| panic!("the run has committed nothing:\n{}", run.transcript()));
    let output = project.judge(&["audit", "--rerun", "--json", commit["commit"].as_str().unwrap()]);
    let found: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.transcript()));
    let story = &found["stories"][0];
    let is = |kind: &str| story["problems"].as_array().unwrap().iter().any(|problem| problem["kind"] == kind);
    let fate = match (found["holds"].as_bool().unwrap(), is("fails_now"), is("weaker_now")) {
        (true, ..) => Fate::Done(proof(&story["proof"])),
        (false, false, true) => Fate::NeedsReview,
        (false, ..) => Fate::Failed,
    };
    Observed { fate, reasons: None, words: format!("{} {} {}", story["problems"], story["remarks"], story["reruns"]) }
}

/// `verdone accept` for work that a run kept for review.
fn by_accept(case: &Case) -> Observed {
    let project = Project::new(case, if case.ends == Ends::Review { "" } else { UNDECIDED });
    let run = run_before(&project, case.ends == Ends::Failed);
    let waits = project.events().iter().any(|event| event["event"] == "review_needed");
    assert!(waits, "the run has left nothing to review:\n{}", run.transcript());
    let output = project.judge(&["accept", STORY, "--json"]);
    match serde_json::from_str::<Value>(&output.stdout) {
        Ok(accepted) => Observed { fate: Fate::Accepted(proof(&accepted["proof"])), reasons: None, words: output.stdout },
        Err(_) => Observed::refused(&output),
    }
}

/// The run whose work other commands judge again.
fn run_before(project: &Project<'_>, fooled: bool) -> Output {
    let unchecked = if project.case.ends == Ends::Unchecked { &["--unchecked"][..] } else { &[] };
    project.fool_checks(fooled);
    let output = project.verdone(&[&["run", "--story", STORY], unchecked].concat());
    project.fool_checks(false);
    output
}

fn of_json(output: &Output) -> Observed {
    match serde_json::from_str::<Value>(&output.stdout) {
        Ok(report) => Observed::of_report(&report),
        Err(_) => Observed::refused(output),
    }
}

/// Asserts that the agent learns the name of a failed hidden check, but not its output.
#[track_caller]
fn assert_keeps_secrets(case: &Case, told: &str) {
    assert!(!case.config.contains("hidden =") || told.contains("exam"), "the agent was not told which check failed: {told}");
    assert!(!told.contains(SECRET), "the agent was told what a hidden check says: {told}");
}
