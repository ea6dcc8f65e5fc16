//! A repository with a plan, settings and a script for the agent, and ways to look at what a run left there.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use verdone_testkit::{Output, Running, Sandbox};

pub(crate) const VERDONE: &str = env!("CARGO_BIN_EXE_verdone");
/// Longer than anything here takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// One story whose check wants a file.
pub(crate) const ONE: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n";
/// Two of them.
pub(crate) const TWO: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
                              ### US-002: Write b\n\n- [ ] Write the file b\n  - Verification: `test -f b`\n";
/// An agent that does what the plans above ask for.
pub(crate) const HONEST: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                                 [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }]\n";

/// Parts of the config file.
#[derive(Default)]
pub(crate) struct Settings<'a> {
    /// Keys before the first table.
    pub(crate) top: &'a str,
    /// Lines of `[limits]`.
    pub(crate) limits: &'a str,
    /// Tables after it.
    pub(crate) tables: &'a str,
}

impl Settings<'_> {
    fn text(&self) -> String {
        format!(
            "{}\n[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n[limits]\ngrace = \"200ms\"\n{}\n{}\n",
            self.top, self.limits, self.tables
        )
    }
}

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
}

impl World {
    /// A repository with one commit that holds the plan, the settings and the script.
    pub(crate) fn new(plan: &str, script: &str) -> Self {
        Self::with(plan, script, &Settings::default())
    }

    pub(crate) fn with(plan: &str, script: &str, settings: &Settings<'_>) -> Self {
        let world = Self::folder(script, settings);
        world.sandbox.write("PLAN.md", plan);
        world.sandbox.repo();
        world
    }

    /// The files without a plan and without a repository.
    pub(crate) fn folder(script: &str, settings: &Settings<'_>) -> Self {
        let sandbox = Sandbox::new();
        sandbox.write(".verdone/config.toml", settings.text());
        sandbox.write(".verdone/script.toml", script);
        Self { sandbox }
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(VERDONE, arguments)
    }

    /// `verdone run`, which has to end with this exit code.
    #[track_caller]
    pub(crate) fn run(&self, code: i32) -> Output {
        self.run_with(&[], code)
    }

    #[track_caller]
    pub(crate) fn run_with(&self, arguments: &[&str], code: i32) -> Output {
        let output = self.verdone(&[&["run"], arguments].concat());
        output.assert_code(code);
        output
    }

    pub(crate) fn start(&self) -> Running {
        self.sandbox.spawn(VERDONE, ["run"])
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.sandbox.git(arguments)
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Subjects of all commits, newest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    pub(crate) fn trailer(&self, commit: &str, key: &str) -> String {
        self.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly,separator=%x2C)"), commit])
    }

    pub(crate) fn tree_files(&self, commit: &str) -> Vec<String> {
        self.git(&["ls-tree", "-r", "--name-only", commit]).lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.git(&["status", "--porcelain"]), "", "the work tree is not clean");
    }

    pub(crate) fn plan(&self) -> String {
        self.sandbox.read("PLAN.md")
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.sandbox.path(path).exists()
    }

    /// The journal of the latest run.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let output = self.verdone(&["log", "--json"]);
        output.assert_code(0);
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of one name.
    #[track_caller]
    pub(crate) fn all(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// The last event of a name.
    #[track_caller]
    pub(crate) fn last(&self, name: &str) -> Value {
        self.all(name).pop().unwrap_or_else(|| panic!("no {name} in the journal"))
    }

    /// How the latest run finished.
    #[track_caller]
    pub(crate) fn finish(&self) -> String {
        text(&self.last("run_stopping")["finish"])
    }

    /// The directory of the latest run.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let run = text(&self.events()[0]["run"]);
        self.sandbox.path(".verdone/runs").join(run)
    }

    /// The prompt of the n-th turn.
    pub(crate) fn prompt(&self, turn: u32) -> String {
        fs::read_to_string(self.run_dir().join(format!("turns/{turn}-prompt.md"))).unwrap()
    }

    /// The kept commit of the last rollback.
    pub(crate) fn kept(&self) -> String {
        text(&self.last("rolled_back")["kept"])
    }

    /// Everything a run wrote: journals, prompts, outputs.
    pub(crate) fn everything_kept(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.sandbox.path(".verdone/runs")];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                } else {
                    found.push((entry.path(), fs::read(entry.path()).unwrap()));
                }
            }
        }
        found
    }

    /// An executable git hook.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        self.sandbox.write_script(format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A script of one turn for everything.
pub(crate) fn always(steps: &str) -> String {
    format!("[[turn]]\nsteps = [{steps}]\n")
}
