//! A repository with a plan, an agent that does what the plan asks for, and lifecycle scripts.

use std::fs;

use serde_json::Value;
pub(crate) use verdone_testkit::PATIENCE;
use verdone_testkit::{Output, Running, Sandbox};

pub(crate) use crate::run_loop::world::{HONEST, ONE, TWO, VERDONE, always};

pub(crate) const SCRIPTS: [&str; 4] = ["started", "next_iteration", "post_iteration", "finished"];

/// The parts of a run; all others are empty.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) plan: &'a str,
    pub(crate) agent: &'a str,
    /// Lines in `[limits]`.
    pub(crate) limits: &'a str,
    /// Tables after `[limits]`.
    pub(crate) tables: &'a str,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self { plan: ONE, agent: HONEST, limits: "", tables: "" }
    }
}

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
}

impl World {
    /// A repository with all of it in one commit, and the scripts (path and text). Stories land immediately. Agents and checks may write to
    /// `../tmp`, as scripts can anyway.
    pub(crate) fn new(setting: &Setting<'_>, scripts: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::new();
        let config = format!(
            "[protect]\nwork = [\"?\"]\n[run]\nland = \"auto\"\n[workspace]\nwritable = [\"{}\"]\n[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n[limits]\ngrace = \"200ms\"\n{}\n{}\n",
            sandbox.root().join("tmp").display(),
            setting.limits,
            setting.tables
        );
        sandbox.write(".verdone/config.toml", config);
        sandbox.write(".verdone/script.toml", setting.agent);
        sandbox.write("PLAN.md", setting.plan);
        for (path, text) in scripts {
            let path = if path.contains('/') { (*path).to_owned() } else { format!(".verdone/hooks/{path}") };
            sandbox.write_script(path, &format!("#!/bin/sh\n{text}\n"));
        }
        sandbox.repo();
        Self { sandbox }
    }

    #[track_caller]
    pub(crate) fn run(&self, code: i32) -> Output {
        let output = self.sandbox.verdone(VERDONE, ["run"]);
        output.assert_code(code);
        output
    }

    pub(crate) fn start(&self) -> Running {
        self.sandbox.spawn(VERDONE, ["run"])
    }

    /// A file that the test's scripts wrote next to the repository.
    pub(crate) fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path("../tmp").join(name)).unwrap_or_default()
    }

    /// The journal of the latest run.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let output = self.sandbox.verdone(VERDONE, ["log", "--json"]);
        output.assert_code(0);
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    pub(crate) fn all(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// The events of one script.
    #[track_caller]
    pub(crate) fn script_events(&self, script: &str) -> Vec<Value> {
        self.all("script_ran").into_iter().filter(|event| event["script"] == script).collect()
    }

    #[track_caller]
    pub(crate) fn finish(&self) -> String {
        self.all("run_stopping").pop().unwrap()["finish"].as_str().unwrap().to_owned()
    }

    /// A file of the latest run.
    pub(crate) fn kept(&self, file: &str) -> String {
        let run = self.all("run_started").pop().unwrap()["run"].as_str().unwrap().to_owned();
        self.sandbox.read(format!(".verdone/runs/{run}/{file}"))
    }

    pub(crate) fn commits(&self) -> usize {
        self.sandbox.git(["log", "--format=%s"]).lines().count() - 1
    }
}
