//! Detects the checks a project already has (proposed as gates by stage) and its plan. Reads file names and a few texts, and guesses
//! nothing that is not written there.

mod ecosystem;
mod plan_name;
mod script;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{CommandSpec, Gate, Stage};
use crate::protect::Ecosystem;

pub use ecosystem::is_python_test;
pub use plan_name::{OTHER_PLAN_NAMES, PLAN_NAMES};

/// File names and texts of a project, as read by the runtime.
#[derive(Debug, Clone, Default)]
pub struct ProjectFiles {
    /// Paths relative to the project with `/`, folders with a trailing `/`: the top level and the contents of a few known folders.
    pub names: BTreeSet<String>,
    /// The texts of existing files listed in `TEXTS`, and of Python tests if pytest is not installed.
    pub texts: BTreeMap<String, String>,
    /// The command that starts Python on this machine.
    pub python: Option<&'static str>,
    /// The command that starts pytest on this machine.
    pub pytest: Option<String>,
}

/// The folders to list besides the top level.
pub const FOLDERS: [&str; 6] = ["test", "tests", "spec", ".ralph", "docs", "scripts/ralph"];

/// The files whose text to read.
pub const TEXTS: [&str; 14] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "Gemfile",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "go.mod",
    "pom.xml",
];

/// A gate that fits the project, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub gate: Gate,
    /// One sentence about where it was found.
    pub because: String,
}

/// The result of detection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// In the order in which they would run.
    pub gates: Vec<Proposal>,
    /// The plan that `verdone run` should use.
    pub plan: Option<String>,
    /// Other files that look like plans.
    pub other_plans: Vec<String>,
    /// What was found but left out, with the reason.
    pub notes: Vec<String>,
    /// Languages and tools whose conventions decide which files are protected.
    pub ecosystems: Vec<&'static str>,
}

/// Detects gates, plans and ecosystems from a listing.
pub fn detect(listing: &ProjectFiles) -> Detection {
    let mut found = Proposals::default();
    ecosystem::cargo(listing, &mut found);
    script::package(listing, &mut found);
    ecosystem::python(listing, &mut found);
    ecosystem::go(listing, &mut found);
    ecosystem::jvm(listing, &mut found);
    ecosystem::ruby(listing, &mut found);
    ecosystem::bats(listing, &mut found);
    // Last, so that targets that only wrap a command found above can be left out.
    target::make(listing, &mut found);
    target::just(listing, &mut found);
    found.gates.sort_by(|one, other| one.gate.stage.cmp(&other.gate.stage));
    let (plan, other_plans) = plan_name::find(listing);
    let present = Ecosystem::present(listing.names.iter().map(String::as_str)).into_iter();
    let ecosystems = present.filter(|one| *one != Ecosystem::Any).map(Ecosystem::name).collect();
    Detection { gates: found.gates, plan, other_plans, notes: found.notes, ecosystems }
}

impl ProjectFiles {
    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// Names of files in a folder, without the folder.
    fn inside<'s>(&'s self, folder: &str) -> impl Iterator<Item = &'s str> {
        let prefix = format!("{folder}/");
        self.names.iter().filter_map(move |name| name.strip_prefix(prefix.as_str())).filter(|name| !name.is_empty())
    }

    /// Files at the top level.
    fn top(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !name.contains('/'))
    }

    fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }
}

#[derive(Debug, Default)]
struct Proposals {
    gates: Vec<Proposal>,
    notes: Vec<String>,
}

impl Proposals {
    /// Proposes a gate. If the name is taken, the tool's name is put in front.
    fn propose(&mut self, name: &str, tool: &str, stage: Stage, command: &str, because: impl Into<String>) {
        let taken = |name: &str| self.gates.iter().any(|other| other.gate.name == name);
        let name = if taken(name) { format!("{tool} {name}") } else { name.to_owned() };
        if taken(&name) {
            return;
        }
        let gate = Gate::new(name, stage, CommandSpec::Shell(command.to_owned()));
        self.gates.push(Proposal { gate, because: because.into() });
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The first proposed command that occurs in a text.
    fn command_in(&self, text: &str) -> Option<String> {
        self.gates.iter().map(|proposal| proposal.gate.command.display()).find(|command| text.contains(command.as_str()))
    }
}

#[cfg(test)]
mod tests;
