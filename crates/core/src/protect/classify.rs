//! Which files are protected, and why: first the settings, then the conventions of the project's ecosystems, then two rules for new
//! files of unknown purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use verdone_plan::scope::{self, ScopeMatcher};
use verdone_text::pattern::{PathPatterns, PatternError, is_plain};

use super::ecosystem::{AUTORUN, CI, Defaults, Ecosystem};
use super::manifest::{KeyPath, Manifest};
use super::replaced_names::{Modules, PROGRAMS};
use super::settings::ProtectSettings;

/// The role of a file in verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileClass {
    pub role: Role,
    pub why: ProtectionReason,
    /// The pattern according to which this file later runs outside the workspace.
    pub autorun: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Work,
    Protected,
    /// Some of its keys are protected.
    Split(Manifest),
}

/// The purpose of a protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Tests,
    Configuration,
    Ci,
}

/// Why a file is protected, or why it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum ProtectionReason {
    /// A pattern of `[protect] files` or `[protect] work`.
    Setting { list: String, pattern: String },
    /// A check runs it.
    CheckScript,
    /// It is named in a script that a check runs, or in configuration.
    NamedIn { file: String },
    /// A convention of an ecosystem.
    Convention { ecosystem: String, group: Group, pattern: String },
    /// A convention that makes it work.
    WorkConvention { ecosystem: String, pattern: String },
    /// It later runs outside the workspace.
    Autorun { pattern: String },
    /// A manifest: split by key.
    Manifest,
    /// A new file that would replace a program, or a module of the language or its test tools.
    Shadows { module: String },
    /// The story's own check reads it.
    Subject,
    /// A new file of unknown purpose at the root of the project.
    NewAtRoot,
    /// A new file of unknown purpose in a folder that a pattern treats as a test folder.
    NewInTestFolder { pattern: String },
    /// Protected keys of a manifest changed.
    Keys { keys: Vec<KeyPath> },
    /// The file contains test code among other code.
    InlineTests,
    /// A file whose protected parts could not be separated.
    Unreadable { reason: String },
    /// A file in the place of a base folder with protected files, or the other way round.
    InTheWay { path: String },
    /// No pattern matches.
    Unlisted,
}

impl fmt::Display for ProtectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { list, pattern } => write!(f, "`{pattern}` in [protect] {list}"),
            Self::CheckScript => f.write_str("a check runs it"),
            Self::NamedIn { file } => write!(f, "named in {file}, which is protected"),
            Self::Convention { ecosystem, group, pattern } => {
                let group = match group {
                    Group::Tests => "tests",
                    Group::Configuration => "configuration",
                    Group::Ci => "CI",
                };
                write!(f, "`{pattern}` ({group}, {ecosystem})")
            }
            Self::WorkConvention { ecosystem, pattern } => write!(f, "`{pattern}` (work, {ecosystem})"),
            Self::Autorun { pattern } => write!(f, "`{pattern}` (runs outside the workspace later)"),
            Self::Manifest => f.write_str("a manifest: some of its keys are protected"),
            Self::Shadows { module } => write!(f, "a new file that takes the place of `{module}`"),
            Self::Subject => f.write_str("the story's check looks at it"),
            Self::NewAtRoot => f.write_str("a new file in the project's root that matches no work pattern"),
            Self::NewInTestFolder { pattern } => write!(f, "a new file in a test folder (`{pattern}`)"),
            Self::Keys { keys } => {
                let keys: Vec<String> = keys.iter().map(KeyPath::to_string).collect();
                write!(f, "protected keys: {}", keys.join(", "))
            }
            Self::InlineTests => f.write_str("contains tests"),
            Self::Unreadable { reason } => write!(f, "protected as a whole: {reason}"),
            Self::InTheWay { path } => write!(f, "takes the place of {path}, which is protected"),
            Self::Unlisted => f.write_str("no pattern matches"),
        }
    }
}

/// What allows an attempt to change a protected file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Release {
    /// A pattern of `[protect] release`.
    Setting { pattern: String },
    /// A path of the story's `Scope:`.
    Scope { path: String },
}

/// Decides for every path whether it is protected. Paths are relative to the top of the tree.
#[derive(Debug, Clone)]
pub struct Protection {
    /// The project's folder below the top of the tree: empty, or with a trailing slash.
    project: String,
    files: List,
    work: List,
    release: List,
    autorun: List,
    protected: List,
    work_conventions: List,
    modules: Vec<Modules>,
    /// Literal folder prefixes of the patterns in `files`, each with its pattern.
    test_folders: Vec<(String, String)>,
    scope: Vec<(String, Arc<ScopeMatcher>)>,
    /// Scripts that checks run.
    check_scripts: PathPatterns,
    /// Files that the story's own checks read.
    subjects: BTreeSet<String>,
    /// Files named in protected scripts and configuration, each with the file that names it.
    named: BTreeMap<String, String>,
    /// Files that earlier stories of the same run added.
    added: BTreeSet<String>,
}

/// A pattern as written. Patterns from the settings have no ecosystem.
type Pattern = (String, Option<(Ecosystem, Group)>);

#[derive(Debug, Clone)]
struct List {
    patterns: Vec<Pattern>,
    compiled: PathPatterns,
}

impl List {
    fn new(patterns: Vec<Pattern>, project: &str) -> Result<Self, PatternError> {
        let project = verdone_text::pattern::escape(project);
        let place = |(pattern, of): &Pattern| match (of, pattern.strip_prefix('/')) {
            (Some(_), Some(rest)) => format!("{project}{rest}"),
            (Some(_), None) => format!("**/{pattern}"),
            (None, _) => format!("{project}{pattern}"),
        };
        let placed: Vec<String> = patterns.iter().map(place).collect();
        Ok(Self { compiled: PathPatterns::new(placed.iter().map(String::as_str), false)?, patterns })
    }

    /// The first pattern that matches the path, or that names a folder and would match everything below the path.
    fn find(&self, path: &str) -> Option<&Pattern> {
        let as_folder = || self.compiled.first(&format!("{path}/_")).filter(|n| self.patterns[*n].0.ends_with("/**"));
        self.compiled.first(path).or_else(as_folder).map(|n| &self.patterns[n])
    }

    fn pattern(&self, path: &str) -> Option<String> {
        self.find(path).map(|(pattern, _)| pattern.clone())
    }
}

impl Protection {
    /// `project` is the project's folder below the top of the tree; empty if it is the top.
    pub fn new(settings: &ProtectSettings, ecosystems: &[Ecosystem], project: &str) -> Result<Self, PatternError> {
        let project = match project.trim_matches('/') {
            "" | "." => String::new(),
            folder => format!("{folder}/"),
        };
        let mut ecosystems: Vec<Ecosystem> = [Ecosystem::Any].iter().chain(ecosystems).copied().collect();
        ecosystems.sort_unstable();
        ecosystems.dedup();
        let of_all = |list: fn(&Defaults) -> &'static [&'static str], group: Group| {
            ecosystems.iter().flat_map(|one| conventions(list(one.defaults()), *one, group)).collect::<Vec<Pattern>>()
        };
        let ci = conventions(CI, Ecosystem::Any, Group::Ci);
        let tests = of_all(|defaults| defaults.tests, Group::Tests);
        let configuration = of_all(|defaults| defaults.configuration, Group::Configuration);
        let autorun = conventions(AUTORUN, Ecosystem::Any, Group::Configuration);
        let list = |patterns: &[&[Pattern]]| List::new(patterns.concat(), &project);
        let test_folders = settings.files.iter().filter_map(|pattern| {
            let (folder, name) = pattern.trim_start_matches("./").rsplit_once('/')?;
            (is_plain(folder) && !is_plain(name)).then(|| (format!("{project}{folder}"), pattern.clone()))
        });
        Ok(Self {
            files: list(&[&given(&settings.files)])?,
            work: list(&[&given(&settings.work)])?,
            release: list(&[&given(&settings.release)])?,
            autorun: list(&[&given(&settings.autorun), &autorun, &ci])?,
            protected: list(&[&tests, &configuration, &ci])?,
            work_conventions: list(&[&of_all(|defaults| defaults.work, Group::Configuration)])?,
            modules: ecosystems.iter().filter_map(|one| one.modules()).collect(),
            test_folders: test_folders.collect(),
            scope: Vec::new(),
            check_scripts: PathPatterns::default(),
            subjects: BTreeSet::new(),
            named: BTreeMap::new(),
            added: BTreeSet::new(),
            project,
        })
    }

    /// With the paths of a story's `Scope:`, relative to the project.
    #[must_use]
    pub fn with_scope(&self, paths: &[String]) -> Self {
        let placed = scope::below(paths, &self.project);
        let readable = |path: String| Some((path.clone(), Arc::new(ScopeMatcher::new(&[path], false).ok()?)));
        Self { scope: placed.into_iter().filter_map(readable).collect(), ..self.clone() }
    }

    /// With the scripts that checks run, relative to the project.
    #[must_use]
    pub fn with_check_scripts(&self, scripts: &BTreeSet<String>) -> Self {
        let project = verdone_text::pattern::escape(&self.project);
        let placed: Vec<String> = scripts
            .iter()
            .map(|script| format!("{project}{script}"))
            .filter(|script| verdone_text::pattern::check(script).is_ok())
            .collect();
        let check_scripts = PathPatterns::new(placed.iter().map(String::as_str), false).unwrap_or_default();
        Self { check_scripts, ..self.clone() }
    }

    pub fn runs_script(&self, path: &str) -> bool {
        self.check_scripts.matches(path)
    }

    /// With the files that a story's own checks read, relative to the project.
    #[must_use]
    pub fn with_subjects(&self, subjects: &BTreeSet<String>) -> Self {
        let subjects = subjects.iter().map(|subject| format!("{}{subject}", self.project)).collect();
        Self { subjects, ..self.clone() }
    }

    /// With the files named in protected scripts and configuration, each with the file that names it.
    #[must_use]
    pub fn with_named(self, named: BTreeMap<String, String>) -> Self {
        Self { named, ..self }
    }

    /// With the files that earlier stories of the run added.
    #[must_use]
    pub fn with_added(&self, added: &BTreeSet<String>) -> Self {
        Self { added: added.clone(), ..self.clone() }
    }

    /// Classifies a file. `is_new`: the base does not have it.
    pub fn classify(&self, path: &str, is_new: bool) -> FileClass {
        let autorun = self.autorun.pattern(path);
        let (role, why) = self.role(path, is_new, autorun.as_ref());
        FileClass { role, why, autorun }
    }

    fn role(&self, path: &str, is_new: bool, autorun: Option<&String>) -> (Role, ProtectionReason) {
        if let Some(decided) = self.by_pattern(path, autorun) {
            return decided;
        }
        if let Some(module) = self.replaced_by(path).filter(|_| is_new || self.added.contains(path)) {
            return (Role::Protected, ProtectionReason::Shadows { module });
        }
        if let Some((pattern, of)) = self.work_conventions.find(path) {
            let ecosystem = of.map_or("", |(one, _)| one.name()).to_owned();
            return (Role::Work, ProtectionReason::WorkConvention { ecosystem, pattern: pattern.clone() });
        }
        if is_new && self.subjects.contains(path) {
            return (Role::Work, ProtectionReason::Subject);
        }
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        if is_new && (folder.is_empty() || folder == self.project.trim_end_matches('/')) {
            return (Role::Protected, ProtectionReason::NewAtRoot);
        }
        match self.test_folders.iter().find(|(test_folder, _)| is_new && test_folder == folder) {
            Some((_, pattern)) => (Role::Protected, ProtectionReason::NewInTestFolder { pattern: pattern.clone() }),
            None => (Role::Work, ProtectionReason::Unlisted),
        }
    }

    /// The decision of the patterns about a path, whether or not the file exists.
    fn by_pattern(&self, path: &str, autorun: Option<&String>) -> Option<(Role, ProtectionReason)> {
        if let Some(pattern) = self.files.pattern(path) {
            return Some((Role::Protected, ProtectionReason::Setting { list: "files".to_owned(), pattern }));
        }
        if let Some(pattern) = self.work.pattern(path) {
            return Some((Role::Work, ProtectionReason::Setting { list: "work".to_owned(), pattern }));
        }
        if self.check_scripts.matches(path) {
            return Some((Role::Protected, ProtectionReason::CheckScript));
        }
        if let Some(file) = self.named.get(path) {
            return Some((Role::Protected, ProtectionReason::NamedIn { file: file.clone() }));
        }
        if let Some((pattern, Some((ecosystem, group)))) = self.protected.find(path) {
            let ecosystem = ecosystem.name().to_owned();
            return Some((Role::Protected, ProtectionReason::Convention { ecosystem, group: *group, pattern: pattern.clone() }));
        }
        if let Some(manifest) = Manifest::of_path(path) {
            return Some((Role::Split(manifest), ProtectionReason::Manifest));
        }
        autorun.map(|pattern| (Role::Protected, ProtectionReason::Autorun { pattern: pattern.clone() }))
    }

    /// The program or module that a file with this path would replace.
    fn replaced_by(&self, path: &str) -> Option<String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if PROGRAMS.split(',').any(|program| program == name) {
            return Some(name.to_owned());
        }
        let inside = path.strip_prefix(self.project.as_str())?;
        self.modules.iter().find_map(|modules| modules.replaced_by(inside)).map(str::to_owned)
    }

    /// What allows the story to change this protected file.
    pub fn released(&self, path: &str) -> Option<Release> {
        if let Some(pattern) = self.released_by_setting(path) {
            return Some(pattern);
        }
        let named =
            self.scope.iter().find(|(entry, covered)| covered.has(path) && (entry == path || self.names_protected(entry)));
        named.map(|(entry, _)| Release::Scope { path: entry.clone() })
    }

    /// The same, but only by `[protect] release`. This is the only way to release tests inside a file with other code: a `Scope:` with
    /// `src/lib.rs` means the code.
    pub(super) fn released_by_setting(&self, path: &str) -> Option<Release> {
        self.release.pattern(path).map(|pattern| Release::Setting { pattern })
    }

    /// Whether a path of a scope is itself about protected files. `tests/` and `src/**/*.test.js` are. `src/` and `.` are not: there may
    /// be tests below, but these paths say where the work is.
    fn names_protected(&self, entry: &str) -> bool {
        [entry, &example(entry)].into_iter().any(|path| {
            let decided = self.by_pattern(path, self.autorun.pattern(path).as_ref());
            decided.is_some_and(|(role, _)| role != Role::Work)
        })
    }

    /// Whether planning the trees needs the content of this file, in the base and in the attempt. Ask for both paths of a renamed
    /// file.
    pub fn needs_content(&self, path: &str) -> bool {
        let class = self.classify(path, false);
        match class.role {
            Role::Split(_) => true,
            Role::Work => is_rust(path) && !matches!(class.why, ProtectionReason::Setting { .. }),
            Role::Protected => is_pre_commit(path),
        }
    }
}

fn conventions(patterns: &[&str], ecosystem: Ecosystem, group: Group) -> Vec<Pattern> {
    patterns.iter().map(|pattern| ((*pattern).to_owned(), Some((ecosystem, group)))).collect()
}

/// Patterns from the settings. A pattern that names a folder covers everything below it.
fn given(patterns: &[String]) -> Vec<Pattern> {
    let written = patterns.iter().map(|pattern| pattern.trim_start_matches("./").trim_end_matches('/'));
    let with_content = written.flat_map(|pattern| [pattern.to_owned(), format!("{pattern}/**")]);
    with_content.filter(|pattern| !pattern.ends_with("**/**")).map(|pattern| (pattern, None)).collect()
}

pub(super) fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

pub(super) fn is_pre_commit(path: &str) -> bool {
    path.rsplit('/').next() == Some(".pre-commit-config.yaml")
}

/// An example path for a pattern: wildcards become a letter, and the first of several alternatives is used.
fn example(pattern: &str) -> String {
    let (mut out, mut chars, mut skipping) = (String::new(), pattern.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().filter(|_| !skipping)),
            '{' => {}
            ',' => skipping = true,
            '}' => skipping = false,
            _ if skipping => {}
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                out.push('x');
            }
            '?' => out.push('x'),
            '[' => {
                chars.by_ref().find(|c| *c == ']');
                out.push('x');
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
