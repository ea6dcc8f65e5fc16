//! Follows a command to the files that decide it, through scripts, makefiles and package scripts.
//!
//! The check itself, a recipe and a package script say by their exit code what is so: every script that they run decides. Inside of a
//! script only what it sources, what runs tests, and what is named for judging does; the rest of what it runs is the work.

use std::collections::BTreeSet;

use super::part::{feeds, is_judge, is_wanted_output, judged_by_another, listed_folders, no_language};
use super::{Deciders, Held, HeldFiles};
use crate::shell::{Directory, Piece, RedirectKind, Simple, Variables, Word, parse};
use crate::source::Language;
use crate::tamper::make::Call;
use crate::tamper::reach::{MAKEFILES, TASK_FILES, join, package_script, recipes};
use crate::tamper::watched::is_test_path;

/// Lines that are followed in all, and links and imports that are followed from one file.
pub(super) const MOST: usize = 200;
pub(super) const DEEPEST: usize = 4;

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// Other interpreters, each with its options that mean that no script is run.
const INTERPRETERS: [(&str, &[&str]); 8] = [
    ("python", &["-c", "-m"]),
    ("python3", &["-c", "-m"]),
    ("node", &["-e", "-p", "-c", "--eval", "--print", "--check"]),
    ("ruby", &["-e", "-c"]),
    ("perl", &["-e", "-E", "-c"]),
    ("php", &["-r", "-l"]),
    ("tsx", &["-e", "--eval"]),
    ("ts-node", &["-e", "--eval"]),
];
/// Options of interpreters with a value that is no script; of these, the ones whose value is loaded before it.
const VALUED: [&str; 7] = ["-W", "-X", "-r", "--require", "--import", "--loader", "-I"];
/// Targets that build; where something else is asked besides, that judges what they built.
const BUILDS: [&str; 7] = ["", "all", "build", "compile", "install", "dist", "release"];

/// What decides these commands, which start in `folder`, as far as the files from before tell. The caller reads what is wanted and
/// asks again, until nothing more is wanted.
pub fn deciders(commands: &[String], folder: &str, held: &HeldFiles) -> Deciders {
    let mut walk = Walk { held, found: Deciders::default(), queue: Vec::new(), seen: BTreeSet::new() };
    for command in commands {
        walk.push(Line { text: command.clone(), folder: folder.to_owned(), script: None });
    }
    while let Some(line) = walk.queue.pop() {
        walk.folders(&line);
        let commands = parse(&line.text, &Variables::new()).commands;
        for simple in &commands {
            walk.simple(simple, &line, commands.len());
        }
    }
    walk.found
}

/// A line of shell, or a whole script.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    text: String,
    folder: String,
    /// The script that it is in. A check, a recipe and a package script are in none.
    script: Option<String>,
}

pub(super) struct Walk<'a> {
    held: &'a HeldFiles,
    pub(super) found: Deciders,
    queue: Vec<Line>,
    seen: BTreeSet<Line>,
}

impl Walk<'_> {
    fn push(&mut self, line: Line) {
        if self.seen.len() < MOST && self.seen.insert(line.clone()) {
            self.queue.push(line);
        }
    }

    fn simple(&mut self, simple: &Simple, line: &Line, commands: usize) {
        let Directory::Known(directory) = &simple.directory else { return };
        let Some(folder) = join(&line.folder, directory) else { return };
        let Some(program) = simple.words.first().and_then(|word| path_word(word, line)) else { return };
        let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
        let words: Vec<String> = simple.words.iter().skip(1).filter_map(|word| path_word(word, line)).collect();
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let read = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
        let read: Vec<&str> = read.filter_map(|redirect| redirect.target.literal()).collect();
        // What judges by its exit code, and not what something else judges by its output.
        let decides = line.script.is_none() && !judged_by_another(&line.text, &simple.range);
        if program.contains('/') {
            self.script(&folder, &program, decides);
        }
        for path in read.iter().filter(|path| is_test_path(path)) {
            self.file(&folder, path);
        }
        if line.script.is_none() && feeds(&line.text, &simple.range, |program| SHELLS.contains(&program) || interprets(program)) {
            let given = arguments.iter().filter(|word| !word.starts_with('-')).chain(&read);
            for path in given.copied().collect::<Vec<_>>() {
                self.script(&folder, path, true);
            }
        }
        match name.as_str() {
            "." | "source" => {
                if let Some(path) = arguments.first() {
                    self.script(&folder, path, true);
                }
            }
            "make" | "gmake" => self.make(&folder, &arguments, line.script.is_none(), commands > 1),
            "npm" | "pnpm" | "yarn" | "bun" if arguments.first() != Some(&"test") || name != "bun" => {
                self.package(&folder, &arguments);
            }
            "diff" | "cmp" => {
                for path in arguments.iter().filter(|path| is_wanted_output(path)) {
                    self.file(&folder, path);
                }
            }
            name if SHELLS.contains(&name) => {
                let leading = || arguments.iter().take_while(|word| word.starts_with(['-', '+']));
                let no_script = leading().any(|word| !word.starts_with("--") && word.contains(['c', 'n']));
                let given = arguments.iter().find(|word| !word.starts_with(['-', '+'])).or(read.first());
                if let Some(path) = given.filter(|_| !no_script) {
                    self.script(&folder, path, decides);
                }
            }
            name => {
                self.interpreted(name, &folder, &arguments, decides);
                let tasks = TASK_FILES.iter().find(|(tool, _)| *tool == name).map_or([].as_slice(), |(_, files)| files);
                for file in tasks.iter().filter(|_| line.script.is_none()) {
                    self.file(&folder, file);
                }
            }
        }
        self.runner(&name, &folder, &arguments);
    }

    /// The text that was held; else it is wanted. A link counts with what it leads to.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        for _ in 0..DEEPEST {
            match self.held.get(&path) {
                Some(Some(Held::Text(text))) => return Some(text.clone()),
                Some(Some(Held::Link(target))) => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    path = join(folder, target)?;
                    self.found.files.insert(path.clone());
                }
                Some(None) => return None,
                None => {
                    self.found.wanted.insert(path);
                    return None;
                }
            }
        }
        None
    }

    pub(super) fn file(&mut self, folder: &str, path: &str) -> Option<String> {
        let path = join(folder, path).filter(|path| !path.is_empty())?;
        self.found.files.insert(path.clone());
        self.text(&path)?;
        Some(path)
    }

    fn script(&mut self, folder: &str, script: &str, decides: bool) {
        let Some(path) = join(folder, script).filter(|path| decides || is_judge(path)) else { return };
        if let Some(text) = self.text(&path) {
            if Language::of(&path, &text) == Some(Language::Shell) || text.starts_with("#!/bin/sh") || no_language(&path, &text) {
                // A script runs where it is started.
                self.push(Line { text: text.clone(), folder: folder.to_owned(), script: Some(path.clone()) });
            }
            self.loads(&path, &text, 0);
        }
        self.found.files.insert(path);
    }

    fn interpreted(&mut self, name: &str, folder: &str, arguments: &[&str], decides: bool) {
        let Some((_, none)) = INTERPRETERS.iter().find(|(program, _)| *program == name) else { return };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if none.contains(word) {
                // A module of the project is the work, unless its name says that it judges.
                if let Some(module) = words.next().filter(|_| *word == "-m") {
                    self.script(folder, &format!("{}.py", module.replace('.', "/")), false);
                }
                return;
            }
            if VALUED.contains(word) {
                if let Some(loaded) = words.next().filter(|value| value.starts_with('.')) {
                    self.script(folder, loaded, decides);
                }
            } else if !word.starts_with('-') && !matches!(*word, "run" | "test") {
                return self.script(folder, word, decides);
            }
        }
    }

    /// Makefiles that a makefile reads, there or not.
    fn includes(&mut self, folder: &str, makefile: &str, text: &str) {
        let lines = text.lines().filter_map(|line| {
            let (word, rest) = line.trim_start().split_once(char::is_whitespace)?;
            matches!(word, "include" | "-include" | "sinclude").then_some(rest)
        });
        for name in lines.flat_map(str::split_whitespace).filter(|name| !name.contains(['$', '#'])) {
            self.rival(folder, name, makefile);
        }
    }

    /// Folders whose tests a loop or a search goes through.
    fn folders(&mut self, line: &Line) {
        for folder in listed_folders(&line.text).filter_map(|folder| join(&line.folder, folder)) {
            if is_test_path(&format!("{folder}/x")) {
                self.found.files.insert(folder);
            }
        }
    }

    fn package(&mut self, folder: &str, arguments: &[&str]) {
        let mut words = arguments.iter().copied().filter(|word| !word.starts_with('-'));
        let script = match (words.next(), words.next()) {
            (Some("run" | "run-script"), Some(script)) => script,
            (Some("test" | "t" | "tst"), _) => "test",
            (Some("install" | "ci" | "exec" | "x" | "add" | "i" | "dlx" | "run" | "run-script") | None, _) => return,
            (Some(word), _) => word,
        };
        let Some(path) = join(folder, "package.json") else { return };
        let text = self.text(&path);
        for name in [script.to_owned(), format!("pre{script}"), format!("post{script}")] {
            if let Some(command) = text.as_deref().and_then(|text| package_script(text, &name)) {
                self.push(Line { text: command, folder: folder.to_owned(), script: None });
            }
            self.found.scripts.entry(path.clone()).or_default().insert(name);
        }
        self.rival(folder, ".npmrc", &path);
    }

    /// `direct`: the check itself, and no script of it. `besides`: it is not all that is asked.
    fn make(&mut self, folder: &str, arguments: &[&str], direct: bool, besides: bool) {
        let Call { place, makefile: named, mut targets, .. } = Call::of(arguments);
        let Some(folder) = join(folder, place) else { return };
        let builds = |target: &String| BUILDS.contains(&target.as_str());
        targets.retain(|target| if direct { !(besides && builds(target)) } else { is_judge(target) });
        if targets.is_empty() {
            return;
        }
        let makefiles: Vec<&str> = named.map_or_else(|| MAKEFILES.to_vec(), |name| vec![name]);
        let paths: Vec<String> = makefiles.iter().filter_map(|name| join(&folder, name)).collect();
        for path in &paths {
            if let Some(text) = self.text(path) {
                self.includes(&folder, path, &text);
                for line in recipes(&text, &targets).lines() {
                    let text = line.trim_start_matches(['\t', '@', '-', '+', ' ']).replace("$$", "$");
                    self.push(Line { text, folder: folder.clone(), script: None });
                }
            }
            self.found.targets.entry(path.clone()).or_default().extend(targets.iter().cloned());
            let others = paths.iter().filter(|other| *other != path).cloned();
            self.found.rivals.entry(path.clone()).or_default().extend(others);
        }
    }
}

fn interprets(program: &str) -> bool {
    INTERPRETERS.iter().any(|(name, _)| *name == program)
}

/// A word, where all of it is known; or a path beside the script that says where it is itself: `"$(dirname "$0")/lib.sh"`.
fn path_word(word: &Word, line: &Line) -> Option<String> {
    if let Some(text) = word.literal() {
        return Some(text.to_owned());
    }
    let script = line.script.as_deref()?;
    match word.pieces.as_slice() {
        [Piece::Any(_), Piece::Text(rest)] if rest.starts_with('/') => {
            let beside = script.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = join(beside, rest.trim_start_matches('/'))?;
            // Back to where the line starts, as every other word is meant.
            path.strip_prefix(&format!("{}/", line.folder)).map(str::to_owned).or(line.folder.is_empty().then_some(path))
        }
        _ => None,
    }
}
