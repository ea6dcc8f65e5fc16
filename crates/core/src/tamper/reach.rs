//! What gates run that lies in the tree: scripts, targets of makefiles, scripts of package.json, and what those run in turn.
//!
//! Files arrive as data. The caller reads what is wanted and asks again, until nothing more is wanted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::make::Call;
use crate::shell::{Directory, Simple, Variables, parse};

/// What gates run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateReach {
    /// Scripts and task files, relative to the top of the tree.
    pub files: BTreeSet<String>,
    /// Scripts that are used, by the `package.json` that they are in.
    pub scripts: BTreeMap<String, BTreeSet<String>>,
    /// Targets that are used, by makefile. Empty text is the first target.
    pub targets: BTreeMap<String, BTreeSet<String>>,
    /// Programs and modules by their bare names, which are looked for in places that the project may have a say in.
    pub programs: BTreeSet<String>,
    /// Modules by the paths at which the project may have them.
    pub modules: BTreeSet<String>,
    /// Targets that make takes for made as soon as there is a file of their name, by the path of that file.
    pub tasks: BTreeMap<String, Task>,
    /// Makefiles that are there.
    pub makefiles: BTreeSet<String>,
    /// Files that were not given and would tell more.
    pub wanted: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub makefile: String,
    pub target: String,
}

/// Commands are followed this often in all.
const MOST: usize = 200;

pub(super) const MAKEFILES: [&str; 3] = ["Makefile", "GNUmakefile", "makefile"];
/// Programs that run the tasks of one file.
pub(super) const TASK_FILES: [(&str, &[&str]); 7] = [
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("rake", &["Rakefile"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("invoke", &["tasks.py"]),
    ("composer", &["composer.json"]),
];
const INTERPRETERS: [&str; 17] = [
    "sh", "bash", "dash", "zsh", "ksh", "source", ".", "python", "python3", "node", "ruby", "perl", "php", "tsx", "ts-node",
    "bats", "deno",
];

/// Words of the shell and its small tools: a script of the same name is something else.
const EVERYDAY: [&str; 24] = [
    "test", "[", "[[", "echo", "true", "false", ":", "cd", "set", "exit", "export", "printf", "rm", "cp", "mv", "mkdir", "ls",
    "cat", "grep", "exec", "trap", "build", "check", "find",
];

/// What commands run that start in `folder`, as far as these files tell.
pub fn gate_reach(commands: &[String], folder: &str, files: &BTreeMap<String, Option<String>>) -> GateReach {
    let mut walk = Walk { files, reach: GateReach::default(), queue: Vec::new(), seen: BTreeSet::new() };
    for command in commands {
        walk.push(command, folder);
    }
    while let Some((command, folder)) = walk.queue.pop() {
        for simple in parse(&command, &Variables::new()).commands {
            walk.simple(&simple, &folder);
        }
    }
    walk.reach
}

struct Walk<'a> {
    files: &'a BTreeMap<String, Option<String>>,
    reach: GateReach,
    queue: Vec<(String, String)>,
    seen: BTreeSet<(String, String)>,
}

impl Walk<'_> {
    fn push(&mut self, command: &str, folder: &str) {
        let entry = (command.to_owned(), folder.to_owned());
        if self.seen.len() < MOST && self.seen.insert(entry.clone()) {
            self.queue.push(entry);
        }
    }

    /// The file's text, where it was given; else it is wanted.
    fn text(&mut self, path: &str) -> Option<String> {
        let text = self.files.get(path);
        if text.is_none() {
            self.reach.wanted.insert(path.to_owned());
        }
        text.cloned().flatten()
    }

    fn simple(&mut self, simple: &Simple, folder: &str) {
        let Directory::Known(directory) = &simple.directory else { return };
        let Some(folder) = join(folder, directory) else { return };
        let words: Vec<&str> = simple.words.iter().map_while(|word| word.literal()).collect();
        let Some((program, arguments)) = words.split_first() else { return };
        let name = program.rsplit('/').next().unwrap_or(program);
        let plain = || arguments.iter().copied().filter(|word| !word.starts_with('-'));
        if program.contains('/') && !program.starts_with('/') {
            self.script(&folder, program);
        }
        if !program.contains('/') && !EVERYDAY.contains(&name) {
            self.reach.programs.insert(name.to_owned());
        }
        if name.starts_with("python")
            && let Some(module) = arguments.iter().position(|word| *word == "-m").and_then(|at| arguments.get(at + 1))
        {
            self.reach.programs.insert((*module).to_owned());
            self.reach.modules.extend(join(&folder, &module.replace('.', "/")));
        }
        match name {
            "make" | "gmake" => self.make(&folder, arguments),
            "npm" | "pnpm" | "yarn" | "bun" => {
                let mut words = plain();
                match (words.next(), words.next()) {
                    (Some("run" | "run-script"), Some(script)) => self.package(&folder, script),
                    (Some("test" | "t" | "tst"), _) => self.package(&folder, "test"),
                    (Some(word), _) if !["install", "ci", "exec", "x", "add", "i", "dlx"].contains(&word) => {
                        self.package(&folder, word);
                    }
                    _ => {}
                }
            }
            _ if INTERPRETERS.contains(&name) => {
                // What follows `-m` or `-c` is no file.
                if !arguments.iter().take_while(|word| word.starts_with('-')).any(|word| matches!(*word, "-m" | "-c" | "-e"))
                    && let Some(script) = plain().find(|word| *word != "run" && *word != "test")
                {
                    self.script(&folder, script);
                }
            }
            _ => {
                let tasks = TASK_FILES.iter().find(|(tool, _)| *tool == name).map_or([].as_slice(), |(_, files)| files);
                let paths: Vec<String> = tasks.iter().filter_map(|file| join(&folder, file)).collect();
                self.reach.files.extend(paths);
            }
        }
    }

    fn script(&mut self, folder: &str, script: &str) {
        let Some(path) = join(folder, script) else { return };
        if let Some(text) = self.text(&path)
            && crate::source::Language::of(&path, &text) == Some(crate::source::Language::Shell)
        {
            // A script runs where it is started.
            self.push(&text, folder);
        }
        self.reach.files.insert(path);
    }

    fn package(&mut self, folder: &str, script: &str) {
        let Some(path) = join(folder, "package.json") else { return };
        let text = self.text(&path);
        for name in [script.to_owned(), format!("pre{script}"), format!("post{script}")] {
            if let Some(command) = text.as_deref().and_then(|text| package_script(text, &name)) {
                self.push(&command, folder);
            }
            self.reach.scripts.entry(path.clone()).or_default().insert(name);
        }
    }

    fn make(&mut self, folder: &str, arguments: &[&str]) {
        let call = Call::of(arguments);
        let Some(folder) = join(folder, call.place) else { return };
        let makefiles: Vec<&str> = call.makefile.map_or_else(|| MAKEFILES.to_vec(), |name| vec![name]);
        for makefile in makefiles.iter().filter_map(|name| join(&folder, name)) {
            if let Some(text) = self.text(&makefile) {
                self.reach.makefiles.insert(makefile.clone());
                let recipe = recipes(&text, &call.targets);
                for line in recipe.lines() {
                    self.push(line.trim_start_matches(['\t', '@', '-', '+']), &folder);
                }
                for target in call.tasks(&text) {
                    // Where it was there before, the work changes nothing.
                    if let Some(path) = join(&folder, &target).filter(|path| self.text(path).is_none()) {
                        self.reach.tasks.insert(path, Task { makefile: makefile.clone(), target });
                    }
                }
            }
            self.reach.targets.entry(makefile).or_default().extend(call.targets.iter().cloned());
        }
    }
}

/// One script of a package.json.
pub(super) fn package_script(text: &str, name: &str) -> Option<String> {
    let package: Value = serde_json::from_str(text).ok()?;
    Some(package.get("scripts")?.get(name)?.as_str()?.to_owned())
}

/// The recipes of these targets and of what they depend on, with the lines that set variables.
pub(super) fn recipes(makefile: &str, targets: &[String]) -> String {
    let mut rules: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    let mut variables = Vec::new();
    let (mut first, mut current): (Option<&str>, Vec<&str>) = (None, Vec::new());
    for line in makefile.lines() {
        if line.starts_with('\t') {
            for target in &current {
                rules.entry(target).or_default().1.push(line);
            }
            continue;
        }
        let text = line.split('#').next().unwrap_or_default().trim_end();
        match text.split_once(':') {
            Some((names, rest)) if !rest.starts_with('=') && !names.contains('=') && !text.starts_with(char::is_whitespace) => {
                current = names.split_whitespace().collect();
                first = first.or_else(|| current.first().copied().filter(|name| !name.starts_with('.')));
                let (wants, inline) = rest.split_once(';').map_or((rest, None), |(wants, inline)| (wants, Some(inline)));
                for target in &current {
                    let rule = rules.entry(target).or_default();
                    rule.0.extend(wants.split_whitespace());
                    rule.1.extend(inline);
                }
            }
            _ if text.contains('=') => {
                variables.push(text);
                current.clear();
            }
            _ => {}
        }
    }
    let mut open: Vec<&str> =
        targets.iter().map(|target| if target.is_empty() { first.unwrap_or_default() } else { target }).collect();
    let mut seen = BTreeSet::new();
    let mut out: Vec<&str> = Vec::new();
    while let Some(target) = open.pop() {
        if !seen.insert(target) {
            continue;
        }
        if let Some((wants, lines)) = rules.get(target) {
            open.extend(wants);
            out.extend(lines);
        }
    }
    if rules.contains_key(".IGNORE") {
        out.push(".IGNORE");
    }
    if !out.is_empty() {
        out.extend(variables);
    }
    out.join("\n")
}

/// Below the folder; nothing where it leaves the tree.
pub(super) fn join(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_whose_name_was_taken_before_is_none_of_the_work() {
        let tasks = |files: &[(&str, &str)]| {
            let files = files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect();
            gate_reach(&["make -C sub test".to_owned()], "", &files).tasks.into_keys().collect::<Vec<_>>()
        };
        let makefile = ("sub/Makefile", "test:\n\tnpm test\n");
        assert_eq!(tasks(&[makefile]), ["sub/test"]);
        assert_eq!(tasks(&[makefile, ("sub/test", "a folder")]), [""; 0]);
    }
}
