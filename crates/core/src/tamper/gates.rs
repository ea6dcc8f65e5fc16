//! What checks run, compared before and after: scripts, targets, package scripts, and new files that are run in their place.

use std::sync::LazyLock;

use regex::Regex;

use super::changed_lines::changed_lines;
use super::deciders::is_runner;
use super::reach::{GateReach, Task, package_script, recipes};
use super::watched::{Look, is_test_path};
use super::{Alarm, AlarmKind, Context, File, Severity, make, switches};
use crate::source::Language;

impl Look<'_> {
    /// A new program or module of the name that a check runs may be run in its place.
    pub(super) fn shadows(&self, context: &Context<'_>) -> Option<Alarm> {
        let path = self.file.path;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        // What the story's own check runs may be what the story makes, unless it is a runner of tests, or where packages put programs.
        let runs_tests = |name: &str| switches::is_test_command(name) || is_runner(name);
        let own = |name: &str| context.own.programs.contains(name) && (runs_tests(name) || folder.ends_with("node_modules/.bin"));
        let is = |name: &str| context.gates.programs.contains(name) || own(name);
        let program = is(name) && matches!(folder.rsplit('/').next(), Some("bin" | ".bin" | "tools" | "scripts" | ""));
        let module = path.strip_suffix(".py").is_some_and(|stem| {
            let module = stem.strip_suffix("/__init__").or_else(|| stem.strip_suffix("/__main__")).unwrap_or(stem);
            let own = context.own.modules.contains(module) && runs_tests(module.rsplit('/').next().unwrap_or(module));
            (!module.contains('/') && is(module)) || context.gates.modules.contains(module) || own
        });
        let text = "of the name of a program that a check runs";
        (self.created() && (program || module)).then(|| self.alarm(AlarmKind::GateChanged, Severity::Medium, None, text))
    }

    /// What the story's own checks run. That may be the very thing that the story is about: only what cannot fail any more, where
    /// tests are started, needs more than a word.
    pub(super) fn own_check(&self, context: &Context<'_>, alarms: &mut Vec<Alarm>) {
        let path = self.file.path;
        let judges = context.own.scripts.contains_key(path) || context.own.targets.contains_key(path) || is_test_path(path);
        let mut found = Vec::new();
        self.gate(&context.own, &mut found);
        for mut alarm in found {
            if alarm.kind != AlarmKind::GateDefused || !judges {
                alarm.severity = Severity::Low;
            }
            if !alarms.iter().any(|known| known.path == alarm.path && known.text == alarm.text) {
                alarms.push(alarm);
            }
        }
    }

    /// What gates run.
    pub(super) fn gate(&self, gates: &GateReach, alarms: &mut Vec<Alarm>) {
        let path = self.file.path;
        let old = self.file.old.as_deref().unwrap_or_default();
        let new = self.file.new.as_deref().unwrap_or_default();
        for name in gates.scripts.get(path).into_iter().flatten() {
            let (before, after) = (package_script(old, name), package_script(new, name));
            let text = |after: &str| format!("script {name}: {after}");
            match (before, after) {
                (None, None) => {}
                (Some(_), None) => alarms.push(self.alarm(AlarmKind::GateDefused, Severity::High, None, &text("gone"))),
                (Some(before), Some(after)) if before == after => {}
                (None, Some(after)) if !(name.starts_with("pre") || name.starts_with("post") || switches::is_idle(&after)) => {
                    alarms.push(self.alarm(AlarmKind::GateChanged, Severity::Low, None, &text(&after)));
                }
                (before, Some(after)) => alarms.push(self.command(&before.unwrap_or_default(), &after, &text(&after))),
            }
        }
        if gates.targets.contains_key(path)
            && self.created()
            && let Some(other) = gates.makefiles.iter().find(|other| comes_before(path, other))
        {
            alarms.push(self.alarm(AlarmKind::GateChanged, Severity::Medium, None, &format!("make takes it before {other}")));
        }
        if let Some(targets) = gates.targets.get(path).filter(|_| !self.created()) {
            let targets: Vec<String> = targets.iter().cloned().collect();
            let (before, after) = (recipes(old, &targets), recipes(new, &targets));
            alarms.extend(self.script(&before, &after));
        }
        if gates.files.contains(path) && !self.created() && self.is_judging_script() {
            alarms.extend(self.script(old, new));
        }
    }

    /// Programs that a gate runs may be the very thing that is worked on; scripts of the house are not.
    fn is_judging_script(&self) -> bool {
        let shell = self.file.old_language == Some(Language::Shell) && !self.file.path.ends_with(".bats");
        let house = ["scripts", "script", "ci", ".ci", "tools", "hack", "bin", "build"];
        let in_house = self.file.path.split('/').rev().skip(1).any(|part| house.contains(&part));
        let tasks = self.file.old_language.is_none() || matches!(self.file.path, "noxfile.py" | "tasks.py");
        shell || in_house || tasks
    }

    /// One command that became another.
    fn command(&self, before: &str, after: &str, text: &str) -> Alarm {
        if switches::is_idle(after) {
            return self.alarm(AlarmKind::GateDefused, Severity::High, None, text);
        }
        match switches::defuses(after).filter(|_| switches::defuses(before).is_none()) {
            Some(severity) => self.alarm(AlarmKind::GateDefused, severity, None, text),
            // The same with more behind it does more.
            None if !before.is_empty() && after.starts_with(&format!("{before} && ")) => {
                self.alarm(AlarmKind::GateChanged, Severity::Low, None, text)
            }
            None => self.alarm(AlarmKind::GateChanged, Severity::Medium, None, text),
        }
    }

    fn script(&self, before: &str, after: &str) -> Option<Alarm> {
        let lines = changed_lines(before, after);
        if self.deleted() || (!before.trim().is_empty() && after.trim().is_empty()) {
            return Some(self.alarm(AlarmKind::GateDefused, Severity::High, None, "gone"));
        }
        let speaking = |line: &&str| Self::speaking(line);
        let whole = self.file.new.as_deref().unwrap_or_default();
        let place = |line: &str| whole.lines().position(|other| other == line).map(|at| at as u32 + 1);
        let added = || lines.added.iter().map(|(_, line)| *line).filter(speaking);
        let defused = added()
            .filter_map(|line| switches::defuses(line).map(|severity| (severity, line)))
            .max_by_key(|(severity, _)| *severity);
        if let Some((severity, line)) = defused {
            return Some(self.alarm(AlarmKind::GateDefused, severity, place(line), line));
        }
        let removed: Vec<&str> = lines.removed.iter().copied().filter(speaking).collect();
        if let Some(line) = removed.iter().find(|line| switches::stops_at_failure(line))
            && !added().any(switches::stops_at_failure)
        {
            return Some(self.alarm(AlarmKind::GateDefused, Severity::High, None, &format!("gone: {}", line.trim())));
        }
        let grown = |line: &&&str| added().any(|now| grows(line, now));
        if let Some(line) = removed.iter().find(|line| !grown(line)) {
            return Some(self.alarm(AlarmKind::GateChanged, Severity::Medium, None, &format!("was: {}", line.trim())));
        }
        added().next().map(|line| self.alarm(AlarmKind::GateChanged, Severity::Low, place(line), line))
    }
}

/// Of a new file, or a folder that came with it, that has the name of a task make takes the task for made.
pub(super) fn taken_for_made(files: &[File<'_>], context: &Context<'_>) -> Vec<Alarm> {
    let there = files.iter().filter(|file| file.new.is_some()).map(|file| file.path);
    let paths: Vec<&str> = there.chain(context.unread.iter().map(String::as_str)).collect();
    let is_there = |place: &str| {
        paths.iter().any(|path| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    // The work may have mended the makefile.
    let is_mended = |task: &Task| {
        let now = files.iter().find(|file| file.path == task.makefile).and_then(|file| file.new.as_deref());
        now.is_some_and(|now| !make::tasks(now, std::slice::from_ref(&task.target)).contains(&task.target))
    };
    let tasks = context.gates.tasks.iter().chain(&context.own.tasks);
    let taken = tasks.filter(|(place, task)| is_there(place) && !is_mended(task)).map(|(place, task)| Alarm {
        kind: AlarmKind::GateDefused,
        severity: Severity::High,
        path: place.clone(),
        line: None,
        text: format!("make takes it for its target {}, which is not .PHONY, and runs nothing", task.target),
        expected: false,
    });
    taken.collect()
}

/// Whether make takes this makefile, where both are in a folder.
fn comes_before(path: &str, other: &str) -> bool {
    const ORDER: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
    let parts = |path: &'_ str| -> (String, Option<usize>) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        (folder.to_owned(), ORDER.iter().position(|known| *known == name))
    };
    let ((folder, place), (of, other)) = (parts(path), parts(other));
    folder == of && place.zip(other).is_some_and(|(place, other)| place < other)
}

/// Whether a line of a script is the same with more in its list: steps, packages, files. What a runner of tests is given besides may
/// be a filter, and then it does less.
fn grows(before: &str, after: &str) -> bool {
    static LIST: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\s*(?:local\s+|readonly\s+)?\w+\+?=\(").expect("a fixed pattern compiles"));
    static PLAIN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(?:\w|\$\w)[\w.:/@=+-]*$").expect("a fixed pattern compiles"));
    // What decides, or hands on what was decided, is no list.
    static DECIDES: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"[|&;<>]|^\s*(?:if|elif|while|until|case|test|return|exit|grep|diff|cmp|!|\[)(?:\s|\[)";
        Regex::new(pattern).expect("a fixed pattern compiles")
    });
    let words = |line: &'_ str| -> Vec<String> {
        line.split([' ', '\t', '"', '\'', '(', ')']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (old, new) = (words(before), words(after));
    let list = LIST.is_match(before) && LIST.is_match(after);
    if DECIDES.is_match(before)
        || switches::is_test_command(before)
        || !(list || old.len() >= 3 && new.iter().take(2).eq(old.iter().take(2)))
    {
        return false;
    }
    let mut left = old.iter().peekable();
    let mut more = new.iter().filter(|word| left.next_if_eq(word).is_none());
    more.all(|word| PLAIN.is_match(word)) && left.peek().is_none()
}
