//! A repository with a plan, settings and a script for the agent, and ways to examine what a run left there.
//!
//! Everything here that starts a run compares the user's checkout before and after it: a run never touches it.

use std::cell::RefCell;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
pub(crate) use verdone_testkit::PATIENCE;
use verdone_testkit::{Checkout, Output, Running, Sandbox};

pub(crate) const VERDONE: &str = env!("CARGO_BIN_EXE_verdone");

/// One story whose check needs a file.
pub(crate) const ONE: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n";
/// Two such stories.
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
    /// Lines in `[limits]`.
    pub(crate) limits: &'a str,
    /// Tables after `[limits]`.
    pub(crate) tables: &'a str,
}

impl Settings<'_> {
    /// `shared` is a folder next to the workspace that agents and checks may write to; tests use it to communicate with them. Stories write
    /// files with one-letter names, which count as work.
    fn text(&self, shared: &Path) -> String {
        format!(
            "{}\n[workspace]\nwritable = [\"{}\"]\n[protect]\nwork = [\"?\"]\n[run]\nland = \"auto\"\n[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n[limits]\ngrace = \"200ms\"\n{}\n{}\n",
            self.top,
            shared.display(),
            self.limits,
            self.tables
        )
    }
}

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    /// The checkout at the start of the current run.
    before: RefCell<Option<Checkout>>,
}

/// A run that has not ended yet.
pub(crate) struct Run<'w> {
    running: Running,
    world: &'w World,
}

impl Deref for Run<'_> {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl Run<'_> {
    /// Waits until the run ends. Asserts that the user's checkout is untouched.
    #[track_caller]
    pub(crate) fn wait(self, patience: Duration) -> Output {
        let output = self.running.wait(patience);
        self.world.assert_untouched(&output);
        output
    }
}

impl World {
    /// A repository with one commit that has the plan, the settings and the script.
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
        sandbox.write(".verdone/config.toml", settings.text(&sandbox.root().join("tmp")));
        sandbox.write(".verdone/script.toml", script);
        Self { sandbox, before: RefCell::default() }
    }

    /// Runs any command. If it starts a run, asserts that the user's checkout is untouched.
    #[track_caller]
    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        let folder = arguments.windows(2).find(|pair| pair[0] == "-C").map(|pair| self.sandbox.path(pair[1]));
        let begins = if folder.is_some() { arguments.get(2) } else { arguments.first() };
        if begins != Some(&"run") {
            return self.sandbox.verdone(VERDONE, arguments);
        }
        *self.before.borrow_mut() = Some(Checkout::look_at(&self.sandbox, &folder.unwrap_or_else(|| self.sandbox.work())));
        let output = self.sandbox.verdone(VERDONE, arguments);
        self.assert_untouched(&output);
        output
    }

    #[track_caller]
    fn assert_untouched(&self, run: &Output) {
        let before = self.before.borrow_mut().take().expect("the checkout was looked at before the run");
        let faults = before.faults(&self.sandbox);
        assert!(faults.is_empty(), "the run changed the user's checkout:\n  {}\n{}", faults.join("\n  "), run.transcript());
    }

    /// What the user does during a run: the run must neither interfere with it nor revert it.
    pub(crate) fn by_user<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = Checkout::snapshot(&self.sandbox);
        let done = act();
        let after = Checkout::snapshot(&self.sandbox);
        let mut held = self.before.borrow_mut();
        held.as_mut().expect("a run is under way").follow(&before, &after);
        done
    }

    /// Runs `verdone run`; asserts the exit code.
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

    pub(crate) fn start(&self) -> Run<'_> {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, arguments: &[&str]) -> Run<'_> {
        *self.before.borrow_mut() = Some(Checkout::snapshot(&self.sandbox));
        Run { running: self.sandbox.spawn(VERDONE, [&["run"], arguments].concat()), world: self }
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
        let status = self.git(&["status", "--porcelain", "--untracked-files=all"]);
        assert_eq!(status, "", "the work tree is not clean");
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

    /// All events with this name.
    #[track_caller]
    pub(crate) fn all(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// The last event with this name.
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

    /// The commit that keeps the last rejected attempt.
    pub(crate) fn kept(&self) -> String {
        text(&self.last("attempt_kept")["kept"])
    }

    /// Everything a run stored: journals, prompts, outputs.
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

    /// Installs an executable git hook.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        self.sandbox.write_script(format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    }
}

/// The first reason of a verification: its name and its complete text.
pub(crate) fn reason(verified: &Value) -> (String, String) {
    let first = &verified["report"]["reasons"][0];
    (text(&first["reason"]), first.to_string())
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A script with the same turn for everything.
pub(crate) fn always(steps: &str) -> String {
    format!("[[turn]]\nsteps = [{steps}]\n")
}
