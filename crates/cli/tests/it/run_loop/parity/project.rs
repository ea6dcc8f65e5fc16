//! The project of a case: a real repository, real commands, and the journal that they write.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use verdone_testkit::{Output, Sandbox, Signal};

use super::case::{Case, STARTED};
use crate::run_loop::world::{PATIENCE, VERDONE};

pub(crate) const STORY: &str = "US-001";
pub(crate) const SESSION: &str = "s1";

pub(crate) struct Project<'c> {
    pub(crate) sandbox: Sandbox,
    pub(crate) case: &'c Case,
}

impl<'c> Project<'c> {
    /// `more` has additional tables for the config.
    pub(crate) fn new(case: &'c Case, more: &str) -> Self {
        let sandbox = Sandbox::new();
        let config = format!(
            "[workspace]\nwritable = [\"{}\"]\n[run]\nland = \"off\"\non_review = \"continue\"\n[agent]\nname = \"scripted\"\n\
             [agent.scripted]\nscript = \".verdone/script.toml\"\n[limits]\ngrace = \"200ms\"\nattempts = 1\nturns = 2\n{}\n{}{more}",
            sandbox.root().join("tmp").display(),
            case.limits,
            case.config
        );
        sandbox.write(".verdone/config.toml", config);
        sandbox.write(".verdone/script.toml", case.script());
        sandbox.write("PLAN.md", &case.plan);
        for (path, text) in &case.files {
            sandbox.write(path, text);
        }
        sandbox.repo();
        if let Some(hook) = case.hook {
            sandbox.write_script(".git/hooks/pre-commit", &format!("#!/bin/sh\n{hook}\n"));
        }
        Self { sandbox, case }
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(VERDONE, arguments)
    }

    /// Runs the command that judges the work. If the case says so, the user interrupts it.
    pub(crate) fn judge(&self, arguments: &[&str]) -> Output {
        if !self.case.interrupted {
            return self.verdone(arguments);
        }
        let running = self.sandbox.spawn(VERDONE, arguments);
        let until = Instant::now() + PATIENCE;
        while !self.sandbox.path(STARTED).exists() && !running.has_ended() {
            assert!(Instant::now() < until, "no check has begun");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running.signal(Signal::INT);
        running.wait(PATIENCE)
    }

    /// Ends a turn in the session, as its client would; returns the hook's answer.
    pub(crate) fn stop(&self) -> String {
        let (running, mut input) = self.sandbox.spawn_with_input(VERDONE, ["hook", "Stop"]);
        let event = json!({
            "session_id": SESSION, "cwd": self.sandbox.work(), "hook_event_name": "Stop", "stop_hook_active": false,
        });
        input.write_all(event.to_string().as_bytes()).unwrap();
        drop(input);
        let output = running.wait(PATIENCE);
        output.assert_code(0);
        output.stdout
    }

    /// Sets whether checks are fooled from now on.
    pub(crate) fn fool_checks(&self, fooled: bool) {
        let file = self.sandbox.path("../tmp/fooled");
        if fooled { fs::write(file, "").unwrap() } else { fs::remove_file(file).unwrap_or_default() }
    }

    fn newest_run(&self) -> Option<PathBuf> {
        let runs = fs::read_dir(self.sandbox.path(".verdone/runs")).into_iter().flatten();
        runs.map(|run| run.unwrap().path()).filter(|path| path.join("journal.jsonl").exists()).max()
    }

    /// The journal of the latest run or loop.
    pub(crate) fn events(&self) -> Vec<Value> {
        let Some(run) = self.newest_run() else { return Vec::new() };
        let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The feedback to the agent of a run after its first turn.
    pub(crate) fn feedback(&self) -> String {
        let prompt = self.newest_run().map(|run| run.join("turns/2-prompt.md"));
        prompt.and_then(|prompt| fs::read_to_string(prompt).ok()).unwrap_or_default()
    }
}
