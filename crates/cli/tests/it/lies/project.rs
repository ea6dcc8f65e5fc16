//! One case as a real project: a repository, a plan, an agent, and a run with the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::{Checkout, Output, Runners, Sandbox};

use crate::lies::case::{Case, Kind};
use crate::lies::outcome::{self, Ending, Observed};
use crate::run_loop::world::VERDONE;

const DEADLINE: Duration = Duration::from_mins(4);

/// The result of a case.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) seen: Option<Observed>,
    /// The problems found; empty if the case ended as expected.
    pub(crate) wrong: Vec<String>,
    pub(crate) took: Duration,
}

/// Runs a case. `thorough` also runs the checks by hand, to confirm that the case is what it claims to be.
pub(crate) fn judge(case: &Case, runners: &Runners, thorough: bool) -> Judged {
    let started = Instant::now();
    let project = Project::new(case, runners);
    let before = Checkout::snapshot(&project.sandbox);
    let output = project.sandbox.verdone(VERDONE, ["run"]);
    let mut wrong = before.faults(&project.sandbox);
    let seen = match outcome::read(&project.events()) {
        Ok(ending) => {
            wrong.extend(project.faults(&ending, thorough));
            Some(ending.seen)
        }
        Err(why) => {
            wrong.push(format!("{why}\n{}", output.transcript()));
            None
        }
    };
    if let Some(folder) = std::env::var_os("VERDONE_LIES_KEEP").filter(|_| !wrong.is_empty()) {
        project.keep(&Path::new(&folder).join(&case.name), &output);
    }
    Judged { seen, wrong, took: started.elapsed() }
}

struct Project<'a> {
    case: &'a Case,
    runners: &'a Runners,
    sandbox: Sandbox,
}

impl<'a> Project<'a> {
    fn new(case: &'a Case, runners: &'a Runners) -> Self {
        let mut sandbox = Sandbox::new().deadline(DEADLINE);
        runners.add_to(&mut sandbox);
        let project = Self { case, runners, sandbox };
        for (path, text) in &case.files {
            if text.starts_with("#!") {
                project.sandbox.write_script(path, text);
            } else {
                project.sandbox.write(path, text);
            }
        }
        project.sandbox.write(".verdone/config.toml", project.settings());
        project.sandbox.write("PLAN.md", project.plan());
        project.sandbox.add_script("the-agent", &project.agent());
        project.sandbox.repo();
        if case.files.contains_key("package.json") {
            runners.link_packages(&project.sandbox.work());
        }
        if !case.before.is_empty() {
            project.sandbox.run("bash", ["-euc", &case.before]).assert_code(0);
        }
        project
    }

    fn settings(&self) -> String {
        let mut text =
            "plan = \"PLAN.md\"\n[agent.command]\nrun = [\"the-agent\"]\n[limits]\nattempts = 1\nturns = 1\n".to_owned();
        text.push_str(&self.case.config);
        for (number, command) in self.case.gates.iter().enumerate() {
            text.push_str(&format!("[[gate]]\nname = \"gate{number}\"\ncommand = '''{command}'''\n"));
        }
        text
    }

    fn plan(&self) -> String {
        let case = self.case;
        let scope = case.scope.as_ref().map_or_else(String::new, |paths| format!("  - Scope: {paths}\n"));
        let mut plan = format!("# Plan\n\n### US-001: {}\n\n- [ ] {}\n{scope}", case.title, case.story);
        for check in &case.checks {
            plan.push_str(&format!("  - Verification: `{check}`\n"));
        }
        plan
    }

    fn agent(&self) -> String {
        format!("#!/usr/bin/env bash\nset -eu\ncat >/dev/null\n{}\n{}", self.case.shell, self.case.agent)
    }

    fn events(&self) -> Vec<Value> {
        let runs = fs::read_dir(self.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
        let journals: Vec<PathBuf> = runs.map(|run| run.path().join("journal.jsonl")).filter(|path| path.exists()).collect();
        let text = journals.first().map_or_else(String::new, |path| fs::read_to_string(path).unwrap_or_default());
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn faults(&self, ending: &Ending, thorough: bool) -> Vec<String> {
        let case = self.case;
        let mut wrong = Vec::new();
        let commit = ending.commit.as_deref().map(|commit| self.checked_out(commit, "attempt"));
        if !ending.turns_ended {
            wrong.push("the agent's own script failed: the case is broken".to_owned());
        }
        let is_right = commit.as_ref().is_some_and(|folder| self.shell(folder, &case.truth).code == 0);
        match case.kind {
            Kind::Lie if is_right => wrong.push("its work is right, so it is no lie: the case is broken".to_owned()),
            Kind::Honest | Kind::History if !is_right => wrong.push("its work is wrong: the case is broken".to_owned()),
            Kind::Lie | Kind::Honest | Kind::History | Kind::Destructive => {}
        }
        let is_known = case.known.is_some() && ending.seen.is_proven();
        if !case.expect.contains(&ending.seen) && !is_known {
            let expected: Vec<String> = case.expect.iter().map(Observed::to_string).collect();
            wrong.push(format!("{}, expected {}: {}", ending.seen, expected.join(" or "), ending.reason));
        }
        if ending.seen == Observed::NeedsReview && matches!(case.kind, Kind::Honest | Kind::History) {
            let output = self.sandbox.verdone(VERDONE, ["accept", "US-001"]);
            if output.code != 0 {
                wrong.push(format!("it cannot be accepted by one command: {}", output.transcript()));
            }
        }
        if !case.after.is_empty() {
            let output = self.sandbox.run("bash", ["-euc", &case.after]);
            if output.code != 0 {
                wrong.push(format!("the user's checkout: {}", output.transcript()));
            }
        }
        if thorough {
            wrong.extend(self.broken(commit.as_deref()));
        }
        wrong
    }

    /// Checks that the case is what it claims to be: when simply run, the gates pass before the work, and all checks pass after it.
    fn broken(&self, attempt: Option<&Path>) -> Vec<String> {
        let case = self.case;
        let base = self.checked_out("main", "base");
        let on = |folder: &Path, commands: &[&String], tree: &str| -> Vec<String> {
            let failed = commands.iter().map(|command| self.shell(folder, command)).filter(|output| output.code != 0);
            failed.map(|output| format!("the case is broken: on the {tree}, {}", output.transcript())).collect()
        };
        let gates: Vec<&String> = case.gates.iter().collect();
        let all: Vec<&String> = case.checks.iter().chain(&case.gates).collect();
        let mut wrong = on(&base, &gates, "base");
        if let Some(folder) = attempt.filter(|_| case.naive.is_ok()) {
            wrong.extend(on(folder, &all, "attempt"));
        }
        wrong
    }

    /// Checks out a commit, with the packages that git ignores next to it.
    fn checked_out(&self, commit: &str, name: &str) -> PathBuf {
        let folder = self.sandbox.root().join("tmp").join(name);
        let place = folder.to_string_lossy();
        self.sandbox.git(["-c", "advice.detachedHead=false", "clone", "--quiet", "--no-checkout", "--shared", ".", &place]);
        self.sandbox.git(["-C", &place, "checkout", "--quiet", commit]);
        // One time for all files, so that make's answer does not depend on how fast git wrote them.
        self.shell(&folder, "find . -path ./.git -prune -o -type f -exec touch -d 2020-01-01 {} +").assert_code(0);
        if self.case.files.contains_key("package.json") && !folder.join("node_modules").exists() {
            self.runners.link_packages(&folder);
        }
        folder
    }

    fn shell(&self, folder: &Path, command: &str) -> Output {
        self.sandbox.run("sh", ["-c", "cd \"$1\" && eval \"$2\"", "sh", &folder.to_string_lossy(), command])
    }

    fn keep(&self, folder: &Path, output: &Output) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("transcript.txt"), output.transcript()).unwrap();
        let events: Vec<String> = self.events().iter().map(Value::to_string).collect();
        fs::write(folder.join("journal.jsonl"), events.join("\n")).unwrap();
    }
}
