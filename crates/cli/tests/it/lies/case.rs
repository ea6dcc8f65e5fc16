//! Cases as text: what a project looks like, what its agent does, and which outcomes are allowed.
//!
//! A file in `cases/` starts with defaults for all of its cases. `=== name: sentence` starts a case, followed by lines of `key: value` and
//! then blocks: `--- agent` is the shell script that works on the story, `--- file PATH` a file of the project, `--- shell` functions that
//! every agent of a base can call, `--- before` what the user does after the first commit, `--- after` what must be true in the user's
//! checkout afterwards, `--- config` more tables for the settings, `--- truth` a check that neither agent nor gates know.
//!
//! A base (`cases/*.base`) has the same keys and blocks; a case names a base and overrides parts of it. `remove: PATH` removes a file or a
//! folder of the base. Keys that can be given several times: `gate`, `check`, `remove`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::lies::outcome::Observed;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The work is wrong, and tests, settings or tools were changed to hide that.
    Lie,
    /// Good work that touches protected files.
    Honest,
    /// Ordinary work: which proof does it get?
    History,
    /// An agent that tries to destroy the user's own work.
    Destructive,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// One sentence about the trick or the change.
    pub(crate) about: String,
    pub(crate) kind: Kind,
    pub(crate) runner: String,
    /// Part of every test run, not only of the long one.
    pub(crate) in_suite: bool,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) gates: Vec<String>,
    pub(crate) checks: Vec<String>,
    pub(crate) title: String,
    pub(crate) story: String,
    pub(crate) scope: Option<String>,
    pub(crate) truth: String,
    pub(crate) shell: String,
    pub(crate) agent: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) config: String,
    /// The allowed outcomes of the story.
    pub(crate) expect: BTreeSet<Observed>,
    /// The row in docs/security.md that explains why this lie is believed.
    pub(crate) known: Option<String>,
    /// Whether the checks pass when they are simply run on the attempt's files; otherwise the reason why not.
    pub(crate) naive: Result<(), String>,
}

/// The keys of a case in their order, and its blocks by heading.
#[derive(Debug, Clone, Default)]
struct Section {
    name: String,
    about: String,
    keys: Vec<(String, String)>,
    blocks: Vec<(String, String)>,
}

const KEYS: [&str; 14] = [
    "base", "runner", "kind", "suite", "gate", "check", "title", "story", "scope", "truth", "expect", "known", "naive", "remove",
];
const BLOCKS: [&str; 7] = ["agent", "shell", "before", "after", "config", "truth", "file"];

impl Section {
    fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a key that can be given several times; `none` means no value.
    fn all(&self, name: &str) -> Option<Vec<String>> {
        let values: Vec<String> = self.keys.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect();
        (!values.is_empty()).then(|| values.into_iter().filter(|value| value != "none").collect())
    }

    fn block(&self, name: &str) -> Option<&str> {
        self.blocks.iter().rfind(|(heading, _)| heading == name).map(|(_, text)| text.as_str())
    }

    /// Fills in what this section does not set from another one.
    fn over(&self, below: &Self) -> Self {
        let replaced: BTreeSet<&str> = self.keys.iter().map(|(key, _)| key.as_str()).collect();
        // What a base removes is already gone from it.
        let kept = below.keys.iter().filter(|(key, _)| !replaced.contains(key.as_str()) && key != "remove");
        let keys = kept.chain(&self.keys).cloned().collect();
        let removed = self.all("remove").unwrap_or_default();
        let is_removed = |path: &str| removed.iter().any(|gone| path == gone || path.starts_with(&format!("{gone}/")));
        let is_stale = |heading: &str| match heading.strip_prefix("file ") {
            Some(path) => is_removed(path),
            None => heading == "truth" && self.key("truth").is_some(),
        };
        let blocks = below.blocks.iter().filter(|(heading, _)| !is_stale(heading)).chain(&self.blocks).cloned().collect();
        Self { name: self.name.clone(), about: self.about.clone(), keys, blocks }
    }
}

/// The first section is the part before the first heading: the defaults.
fn sections(text: &str) -> Result<Vec<Section>, String> {
    let mut found = vec![Section::default()];
    for (number, line) in text.lines().enumerate() {
        let fail = |why: &str| Err(format!("line {}: {why}: {line}", number + 1));
        let section = found.last_mut().ok_or("no section")?;
        if let Some(heading) = line.strip_prefix("=== ") {
            let (name, about) = heading.split_once(": ").unwrap_or((heading, ""));
            found.push(Section { name: name.to_owned(), about: about.to_owned(), ..Section::default() });
        } else if let Some(heading) = line.strip_prefix("--- ") {
            if !BLOCKS.contains(&heading.split(' ').next().unwrap_or_default()) {
                return fail("no such block");
            }
            section.blocks.push((heading.to_owned(), String::new()));
        } else if let Some((_, block)) = section.blocks.last_mut() {
            block.push_str(line);
            block.push('\n');
        } else if let Some((key, value)) = line.split_once(": ").filter(|_| !line.starts_with('#')) {
            if !KEYS.contains(&key) {
                return fail("no such key");
            }
            section.keys.push((key.to_owned(), value.trim().to_owned()));
        } else if !line.is_empty() && !line.starts_with('#') {
            return fail("neither a key nor a block");
        }
    }
    // A blank line before the next heading is not part of the file.
    for (_, block) in found.iter_mut().flat_map(|section| &mut section.blocks) {
        let text = block.trim_end_matches('\n').len();
        block.truncate(text);
        if text > 0 {
            block.push('\n');
        }
    }
    Ok(found)
}

/// All cases in the folder, in the order of the files.
pub(crate) fn load() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lies/cases");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (bases, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.extension().is_some_and(|end| end == "base"));
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        sections(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    };
    let mut known: BTreeMap<String, Section> = BTreeMap::new();
    for section in bases.iter().flat_map(|path| read(path)).filter(|section| !section.name.is_empty()) {
        let resolved = resolve(&section, &known).unwrap_or_else(|why| panic!("base {}: {why}", section.name));
        known.insert(section.name.clone(), resolved);
    }
    let mut cases = Vec::new();
    for path in files {
        let mut all = read(&path);
        let defaults = all.remove(0);
        for section in all {
            let case = resolve(&section.over(&defaults), &known).and_then(|whole| build(&whole));
            cases.push(case.unwrap_or_else(|why| panic!("{}: {}: {why}", path.display(), section.name)));
        }
    }
    cases
}

fn resolve(section: &Section, bases: &BTreeMap<String, Section>) -> Result<Section, String> {
    match section.key("base") {
        None => Ok(section.clone()),
        Some(name) => Ok(section.over(bases.get(name).ok_or_else(|| format!("there is no base {name}"))?)),
    }
}

fn build(section: &Section) -> Result<Case, String> {
    let text = |key: &str, default: &str| section.key(key).unwrap_or(default).to_owned();
    let block = |name: &str| section.block(name).unwrap_or_default().to_owned();
    let kind = match section.key("kind") {
        Some("lie") => Kind::Lie,
        Some("honest") => Kind::Honest,
        Some("history") => Kind::History,
        Some("destructive") => Kind::Destructive,
        other => return Err(format!("kind {other:?}")),
    };
    let mut files = BTreeMap::new();
    for (heading, content) in &section.blocks {
        if let Some(path) = heading.strip_prefix("file ") {
            files.insert(path.to_owned(), content.clone());
        }
    }
    let expect = match section.key("expect") {
        Some(words) => words.split(", ").map(str::parse).collect::<Result<_, _>>()?,
        None => Observed::usual(kind),
    };
    let agent = section.block("agent").ok_or("it has no agent")?.to_owned();
    Ok(Case {
        name: section.name.clone(),
        about: section.about.clone(),
        kind,
        runner: section.key("runner").ok_or("it names no runner")?.to_owned(),
        in_suite: section.key("suite") == Some("yes"),
        files,
        gates: section.all("gate").unwrap_or_default(),
        checks: section.all("check").unwrap_or_default(),
        title: text("title", "Divide numbers"),
        story: text("story", "Write div"),
        scope: section.key("scope").map(str::to_owned),
        truth: section.block("truth").or(section.key("truth")).ok_or("it has no truth")?.to_owned(),
        shell: block("shell"),
        agent,
        before: block("before"),
        after: block("after"),
        config: block("config"),
        expect,
        known: section.key("known").map(str::to_owned),
        naive: section.key("naive").map_or(Ok(()), |why| Err(why.to_owned())),
    })
}
