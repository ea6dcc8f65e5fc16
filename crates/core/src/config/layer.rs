//! Layers of settings, weakest first, and the origin of each resulting value.
//!
//! Tables are merged, everything else is replaced. Only the gates from `--check` are added to the existing ones. Each layer is
//! validated separately, so that an error names its file, variable or flag.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize as _;
use toml::{Table, Value};

use super::diagnose::{Finding, Step, locate, refused, spelled, unusable};
use super::{Config, ConfigProblem};
use crate::check::{CommandSpec, Gate, Stage};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// A config file, with its path as the user would write it.
    File(String),
    /// An environment variable.
    Env(String),
    /// A command-line flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name) | Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Settings from one origin.
#[derive(Debug, Clone)]
pub struct Layer {
    pub origin: Origin,
    pub table: Table,
    /// The text of a file, for positions in error messages.
    text: Option<String>,
    /// Whether its gates are added to those of weaker layers instead of replacing them.
    adds_gates: bool,
}

impl Layer {
    /// A config file. `place` is its path as the user would write it.
    pub fn from_toml(place: &str, text: &str) -> Result<Self, ConfigProblem> {
        let table = parse(place, text)?;
        let layer = Self { origin: Origin::File(place.to_owned()), table, text: Some(text.to_owned()), adds_gates: false };
        layer.checked()?;
        Ok(layer)
    }

    /// One value from a variable or a flag. The key has the form `limits.turns`.
    pub fn value(origin: Origin, key: &str, value: impl Into<Value>) -> Self {
        let mut table = Table::new();
        let mut names = key.rsplit('.');
        table.insert(names.next().unwrap_or(key).to_owned(), value.into());
        for name in names {
            table = Table::from_iter([(name.to_owned(), Value::Table(table))]);
        }
        Self { origin, table, text: None, adds_gates: false }
    }

    /// Commands from `--check`, which become gates in addition to those of the config.
    pub fn checks(origin: Origin, commands: &[String]) -> Self {
        let mut gates = Vec::new();
        for command in commands {
            let (name, command) = (gate_name(command), CommandSpec::Shell(command.clone()));
            add_gate(&mut gates, Gate::new(name, Stage::default(), command));
        }
        let table = |gate: Gate| {
            let entry = |key: &str, value: String| (key.to_owned(), Value::String(value));
            Value::Table(Table::from_iter([entry("name", gate.name), entry("command", gate.command.display())]))
        };
        Self { adds_gates: true, ..Self::value(origin, "gate", Value::Array(gates.into_iter().map(table).collect())) }
    }

    /// The settings of a single file over the defaults, without other layers.
    pub(super) fn alone(place: &str, text: &str) -> Result<Config, ConfigProblem> {
        let table = parse(place, text)?;
        Self { origin: Origin::File(place.to_owned()), table, text: Some(text.to_owned()), adds_gates: false }.checked()
    }

    /// The layer's settings over the defaults, or the first problem.
    fn checked(&self) -> Result<Config, ConfigProblem> {
        let config = Config::deserialize(self.table.clone()).map_err(|error| match refused(&self.table) {
            Some(finding) => self.problem(finding),
            None => self.by_serde(&error),
        })?;
        match unusable(&config) {
            Some(finding) => Err(self.problem(finding)),
            None => Ok(config),
        }
    }

    fn problem(&self, finding: Finding) -> ConfigProblem {
        let mut problem = ConfigProblem::new(self.origin.to_string(), finding.message.clone());
        if let Some(text) = &self.text {
            let text = text.trim_start_matches('\u{feff}');
            if let Some(range) = locate(text, &finding) {
                problem = problem.at(text, &range);
            }
        }
        problem.hint = finding.hint;
        problem
    }

    fn by_serde(&self, error: &toml::de::Error) -> ConfigProblem {
        let problem = ConfigProblem::new(self.origin.to_string(), error.message());
        let span = |text: &str| toml::from_str::<Config>(text).err().and_then(|error| error.span());
        match self.text.as_deref().map(|text| text.trim_start_matches('\u{feff}')) {
            Some(text) => span(text).map_or(problem.clone(), |range| problem.at(text, &range)),
            None => problem,
        }
    }
}

/// Parses a file; an error gives the position.
pub(super) fn parse(place: &str, text: &str) -> Result<Table, ConfigProblem> {
    let text = text.trim_start_matches('\u{feff}');
    text.parse::<Table>().map_err(|error| {
        let problem = ConfigProblem::new(place, error.message().trim_end().replace('\n', ", "));
        match error.span() {
            Some(range) => problem.at(text, &range),
            None => problem,
        }
    })
}

/// The effective settings, and the origin of every key that is not a default: `limits.turns`, `gate`, and `gate[0]` for each gate.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub config: Config,
    pub origins: BTreeMap<String, Origin>,
}

impl Resolved {
    /// The origin of a key's value.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }
}

/// Merges the layers over the defaults, weakest first.
pub fn resolve(layers: &[Layer]) -> Result<Resolved, ConfigProblem> {
    let mut merged = Table::new();
    let mut origins = BTreeMap::new();
    let mut added = Vec::new();
    for layer in layers {
        let config = layer.checked()?;
        if layer.adds_gates {
            added.extend(config.gate.into_iter().map(|gate| (gate, &layer.origin)));
        } else {
            merge(&mut merged, &layer.table, "", &layer.origin, &mut origins);
        }
    }
    let mut config = Config::deserialize(merged).map_err(|error| ConfigProblem::new("settings", error.message()))?;
    if let Some(origin) = origins.get("gate").cloned() {
        origins.extend((0..config.gate.len()).map(|n| (format!("gate[{n}]"), origin.clone())));
    }
    for (gate, origin) in added {
        if add_gate(&mut config.gate, gate) {
            origins.insert(format!("gate[{}]", config.gate.len() - 1), origin.clone());
            origins.insert("gate".to_owned(), origin.clone());
        }
    }
    // Layers that are valid separately are valid together; this check guards that assumption.
    match unusable(&config) {
        Some(finding) => Err(ConfigProblem::new(spelled(&finding.path), finding.message)),
        None => match super::seal::contradiction(&config) {
            Some(finding) => Err(problem_of(finding, layers, &origins)),
            None => Ok(Resolved { config, origins }),
        },
    }
}

/// A fault that only the combined settings show, reported for the layer that its value came from.
fn problem_of(finding: Finding, layers: &[Layer], origins: &BTreeMap<String, Origin>) -> ConfigProblem {
    let keys: Vec<Step> = finding.path.iter().filter(|step| matches!(step, Step::Key(_))).cloned().collect();
    let origin = origins.get(&spelled(&keys));
    match layers.iter().rev().find(|layer| Some(&layer.origin) == origin) {
        Some(layer) => layer.problem(finding),
        None => ConfigProblem { hint: finding.hint, ..ConfigProblem::new(spelled(&finding.path), finding.message) },
    }
}

fn merge(under: &mut Table, over: &Table, prefix: &str, origin: &Origin, origins: &mut BTreeMap<String, Origin>) {
    for (key, value) in over {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if let Value::Table(over) = value {
            let under = under.entry(key).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(under) = under {
                merge(under, over, &path, origin, origins);
            }
        } else {
            under.insert(key.clone(), value.clone());
            origins.insert(path, origin.clone());
        }
    }
}

/// Adds a gate under a unique name, unless its command is already there.
fn add_gate(gates: &mut Vec<Gate>, mut gate: Gate) -> bool {
    if gates.iter().any(|other| other.command == gate.command && other.stage == gate.stage) {
        return false;
    }
    let base = gate.name.clone();
    let mut n = 2;
    while gates.iter().any(|other| other.name == gate.name) {
        gate.name = format!("{base} ({n})");
        n += 1;
    }
    gates.push(gate);
    true
}

/// The command itself, on one line and truncated.
fn gate_name(command: &str) -> String {
    const LONGEST: usize = 40;
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
