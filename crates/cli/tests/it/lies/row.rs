//! A table row: a small project, what its agent does, and the expected result. Also runs such tables.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::run_loop::world::{Settings, World};

/// The expected result of an attempt.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// The agent changed nothing that counts.
    Nothing,
    /// A check fails.
    Failed,
    /// Refused for a reason that contains this text.
    Refused(&'static str),
    /// Committed, and its evidence says this: `flaky`, or a proof other than *verified*.
    Told(&'static str),
    /// Committed as *verified*.
    Honest,
}

pub(crate) struct Row {
    name: &'static str,
    files: Vec<(&'static str, String)>,
    story: String,
    check: Option<&'static str>,
    tables: String,
    steps: Vec<String>,
    /// A file that must be reported as protected from the agent.
    restored: Option<&'static str>,
    also: fn(&World) -> Result<(), String>,
    seen: Expected,
}

/// The project requires `a`, if it exists, to be good.
const PROJECT_GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"test ! -f a || grep -q good a\"\n";

impl Row {
    /// A story that asks for the file `a`, in a project whose tests require it to be good.
    pub(crate) fn new(name: &'static str, seen: Expected) -> Self {
        Self {
            name,
            files: Vec::new(),
            story: String::new(),
            check: Some("test -f a"),
            tables: PROJECT_GATE.to_owned(),
            steps: Vec::new(),
            restored: None,
            also: |_| Ok(()),
            seen,
        }
    }

    pub(crate) fn file(mut self, path: &'static str, text: impl Into<String>) -> Self {
        self.files.push((path, text.into()));
        self
    }

    pub(crate) fn check(mut self, command: &'static str) -> Self {
        self.check = Some(command);
        self
    }

    /// A story with prose only.
    pub(crate) fn no_check(mut self) -> Self {
        self.check = None;
        self
    }

    /// Replaces the project's usual gate.
    pub(crate) fn gate(self, command: &str) -> Self {
        let command = serde_json::to_string(command).unwrap();
        self.tables(&format!("[[gate]]\nname = \"tests\"\ncommand = {command}\n"))
    }

    pub(crate) fn tables(mut self, tables: &str) -> Self {
        tables.clone_into(&mut self.tables);
        self
    }

    pub(crate) fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Work that passes the story's own check but not the tests.
    pub(crate) fn bad(self) -> Self {
        self.step(create("a", "bad\n"))
    }

    pub(crate) fn good(self) -> Self {
        self.step(create("a", "good\n"))
    }

    pub(crate) fn create(self, path: &str, text: &str) -> Self {
        self.step(create(path, text))
    }

    pub(crate) fn edit(self, path: &str, find: &str, replace: &str) -> Self {
        self.step(format!("{{ edit = {}, find = {}, replace = {} }}", quoted(path), quoted(find), quoted(replace)))
    }

    pub(crate) fn append(self, path: &str, text: &str) -> Self {
        self.step(format!("{{ append = {}, text = {} }}", quoted(path), quoted(text)))
    }

    pub(crate) fn delete(self, path: &str) -> Self {
        self.step(format!("{{ delete = {} }}", quoted(path)))
    }

    pub(crate) fn run(self, command: &str) -> Self {
        self.step(format!("{{ run = {} }}", quoted(command)))
    }

    pub(crate) fn restored(mut self, path: &'static str) -> Self {
        self.restored = Some(path);
        self
    }

    pub(crate) fn also(mut self, look: fn(&World) -> Result<(), String>) -> Self {
        self.also = look;
        self
    }

    fn plan(&self) -> String {
        let check = self.check.map_or_else(String::new, |check| format!("  - Verification: `{check}`\n"));
        format!("# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n{}{check}", self.story)
    }

    fn judge(&self) -> Result<(), String> {
        let script = format!("[[turn]]\nsteps = [{}]\n", self.steps.join(", "));
        let settings = Settings { limits: "attempts = 1\nturns = 1", tables: &self.tables, ..Settings::default() };
        let world = World::folder(&script, &settings);
        let plan = self.plan();
        world.sandbox.write("PLAN.md", &plan);
        let write = |(path, text): &(&str, String)| {
            if text.starts_with("#!") { world.sandbox.write_script(path, text) } else { world.sandbox.write(path, text) }
        };
        self.files.iter().for_each(write);
        world.sandbox.repo();
        let before = repository(&world);
        let output = world.verdone(&["run"]);
        let events = world.events();
        let last = |name: &str| events.iter().rfind(|event| event["event"] == name).cloned().unwrap_or_default();
        let (verified, committed) = (last("verified"), last("committed"));
        let report = &verified["report"];
        let fail = |why: &str| {
            Err(format!("{why}; {} {} {}", report["outcome"], report["reasons"], committed["proof"]))
                .map_err(|told| if events.len() < 4 { format!("{told}\n{}", output.transcript()) } else { told })
        };
        let reasons: Vec<String> = list(&report["reasons"]).iter().map(|reason| reason["reason"].to_string()).collect();
        let has = |name: &str| reasons.iter().any(|reason| reason.trim_matches('"') == name);
        let taken = !committed.is_null();
        let wanted = matches!(self.seen, Expected::Told(_) | Expected::Honest);
        if taken != wanted {
            return fail(if taken { "it was committed" } else { "it was not committed" });
        }
        let right = match self.seen {
            Expected::Nothing => has("nothing-changed"),
            Expected::Failed => report["outcome"] == "failed" && (has("check-failed") || has("check-unknown")),
            Expected::Refused(words) => report["outcome"] == "failed" && report["reasons"].to_string().contains(words),
            Expected::Told(what) => tells(&world, report, &committed, what),
            Expected::Honest => committed["proof"] == "verified",
        };
        if !right {
            return fail("it ended otherwise");
        }
        if let Some(path) = self.restored
            && !list(&verified["restored"]).iter().any(|restored| restored == path)
        {
            return fail(&format!("{path} is not named as edited: {}", verified["restored"]));
        }
        if !taken {
            unharmed(&world, &plan)?;
        }
        let after = repository(&world);
        let changed: Vec<_> = before.symmetric_difference(&after).map(|(name, _)| name).collect();
        if !changed.is_empty() {
            return Err(format!("the user's repository is not as it was: {changed:?}"));
        }
        (self.also)(&world)
    }
}

/// After a rejected attempt: the plan and the history are unchanged, and nothing is left over.
fn unharmed(world: &World, plan: &str) -> Result<(), String> {
    let status = world.git(&["status", "--porcelain"]);
    if world.plan() != plan || world.subjects() != ["initial"] || !status.is_empty() {
        return Err(format!("it left something behind: {:?} {status}\n{}", world.subjects(), world.plan()));
    }
    Ok(())
}

/// Everything that controls the user's repository, and its refs except those of runs.
fn repository(world: &World) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut open = vec![world.sandbox.path(".git")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if ["objects", "logs", "refs", "index", "ORIG_HEAD"].contains(&name.as_str()) || name.starts_with("verdone") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else {
                found.insert((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    let refs = world.git(&["for-each-ref", "--format=%(refname)"]);
    let of_runs =
        |name: &str| ["refs/heads/verdone/", "refs/verdone/", "refs/notes/verdone"].iter().any(|own| name.starts_with(own));
    found.extend(refs.lines().filter(|name| !of_runs(name)).map(|name| (PathBuf::from(name), Vec::new())));
    found
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Whether the event and the note in the repository both say so.
fn tells(world: &World, report: &Value, committed: &Value, what: &str) -> bool {
    let note: Value = serde_json::from_str(&world.git(&["notes", "--ref=verdone", "show", "HEAD"])).unwrap();
    if what == "flaky" {
        let runs = list(&report["runs"]["attempt"]);
        return runs.iter().chain(&list(&note["after"])).filter(|run| run["flaky"] == true).count() == 2;
    }
    committed["proof"] == what && note["proof"] == what && what != "verified"
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn create(path: &str, text: &str) -> String {
    let executable = if text.starts_with("#!") { ", executable = true" } else { "" };
    format!("{{ create = {}, text = {}{executable} }}", quoted(path), quoted(text))
}

/// Runs every row and reports all unexpected results.
#[track_caller]
pub(crate) fn judge_all(rows: &[Row]) {
    // A run spends more time waiting for git and the disk than computing.
    const AT_ONCE: usize = 4;
    let judge = |row: &Row| {
        let judged = catch_unwind(AssertUnwindSafe(|| row.judge())).unwrap_or_else(|_| Err("it panicked, see above".to_owned()));
        judged.err().map(|why| format!("{}: {why}", row.name))
    };
    let open = Mutex::new(rows.iter());
    let next = || open.lock().unwrap().next();
    let work = || std::iter::from_fn(next).filter_map(judge).collect::<Vec<String>>();
    let wrong: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
