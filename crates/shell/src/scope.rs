//! The state while a line is analysed: variables, positional parameters, functions, aliases, the directory.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::fragment::Bit;
use super::word::{Origin, Word};
use super::{Directory, Variables};

/// A value as it would be expanded; the fields of an array are separate.
pub(super) type Value = Vec<Bit>;

/// A variable with more candidates than this becomes unknown.
const MAX_CANDIDATES: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// All values that a variable may have here. Copy-on-write, because a scope is cloned for each substitution.
    variables: Rc<HashMap<String, Vec<Value>>>,
    /// `None` if unknown, as in a function that has not been called yet.
    pub(super) positional: Option<Vec<Word>>,
    /// `$0`.
    pub(super) zero: Value,
    /// Function bodies as text, parsed again at each call with its arguments.
    pub(super) functions: Rc<HashMap<String, String>>,
    pub(super) aliases: Rc<HashMap<String, Value>>,
    pub(super) directory: Directory,
    /// Inside a branch or a loop, an assignment adds a candidate instead of replacing the value.
    pub(super) conditional: bool,
    /// After a `return`, which may be in a branch, the following commands are conditional too.
    pub(super) returned: bool,
    /// Variables that are changed through other names or by the shell itself: their values are always unknown.
    wild: Rc<HashSet<String>>,
    /// Read-only variables: an assignment may fail, so it adds a candidate.
    fixed: Rc<HashSet<String>>,
}

impl Scope {
    pub(super) fn new(known: &Variables) -> Self {
        let mut variables: HashMap<String, Vec<Value>> =
            known.iter().map(|(name, value)| (name.clone(), vec![text(value)])).collect();
        variables.entry("IFS".to_owned()).or_insert_with(|| vec![text(" ")]);
        Self {
            variables: Rc::new(variables),
            positional: Some(Vec::new()),
            zero: text("bash"),
            functions: Rc::default(),
            aliases: Rc::default(),
            directory: Directory::Known(String::new()),
            conditional: false,
            returned: false,
            wild: Rc::default(),
            fixed: Rc::default(),
        }
    }

    /// The candidates of a variable; empty if nothing is known about it.
    pub(super) fn candidates(&self, name: &str) -> &[Value] {
        self.variables.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn assign(&mut self, name: &str, value: Value, append: bool) {
        let before = self.variables.get(name).cloned().unwrap_or_default();
        let new: Vec<Value> = if append && !before.is_empty() {
            before.iter().map(|old| old.iter().chain(&value).cloned().collect()).collect()
        } else {
            vec![value]
        };
        let keeps = self.conditional || self.returned || self.fixed.contains(name);
        let mut all = if keeps { before } else { Vec::new() };
        for candidate in new {
            if !all.contains(&candidate) {
                all.push(candidate);
            }
        }
        if all.len() > MAX_CANDIDATES || self.wild.contains(name) {
            all = vec![unknown()];
        }
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), all);
    }

    /// Sets all values that a loop gives to its variable.
    pub(super) fn assign_all(&mut self, name: &str, values: Vec<Value>) {
        let values = if values.len() > MAX_CANDIDATES || values.is_empty() { vec![unknown()] } else { values };
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), values);
    }

    pub(super) fn forget(&mut self, name: &str) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), vec![unknown()]);
    }

    /// Makes the value of a variable unknown, now and later.
    pub(super) fn make_wild(&mut self, name: &str) {
        Rc::make_mut(&mut self.wild).insert(name.to_owned());
        self.forget(name);
    }

    pub(super) fn fix(&mut self, name: &str) {
        Rc::make_mut(&mut self.fixed).insert(name.to_owned());
    }

    /// A variable with an unknown name was assigned, or an unknown file was sourced: any variable may have changed.
    pub(super) fn doubt_all(&mut self) {
        for (name, values) in Rc::make_mut(&mut self.variables).iter_mut() {
            if !matches!(name.as_str(), "HOME" | "PWD" | "IFS") && !values.contains(&unknown()) {
                values.push(unknown());
            }
        }
    }

    /// The variables with different values in another scope that was cloned from this one.
    pub(super) fn differing(&self, other: &Self) -> Vec<String> {
        let differs = |name: &&String| self.variables.get(*name) != other.variables.get(*name);
        other.variables.keys().filter(differs).cloned().collect()
    }

    pub(super) fn unset(&mut self, name: &str) {
        if self.conditional || self.returned { self.forget(name) } else { self.assign_all(name, vec![Vec::new()]) }
    }

    pub(super) fn change_directory(&mut self, target: Option<&str>) {
        self.directory = match (target, &self.directory) {
            (Some(target), _) if target.starts_with('/') => Directory::Known(target.to_owned()),
            (Some(target), Directory::Known(now)) if now.is_empty() => Directory::Known(target.to_owned()),
            (Some(target), Directory::Known(now)) => Directory::Known(format!("{}/{target}", now.trim_end_matches('/'))),
            (None, _) | (_, Directory::Unknown) => Directory::Unknown,
        };
        match &self.directory {
            Directory::Known(now) if now.starts_with('/') => {
                let now = text(now);
                self.assign_all("PWD", vec![now]);
            }
            Directory::Known(_) | Directory::Unknown => self.forget("PWD"),
        }
    }
}

pub(super) fn text(text: &str) -> Value {
    vec![Bit::Text { text: text.to_owned(), quoted: false }]
}

pub(super) fn unknown() -> Value {
    vec![Bit::Any { origin: Origin::Unknown, quoted: false }]
}
