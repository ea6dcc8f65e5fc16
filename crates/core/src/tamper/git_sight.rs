//! How git sees the files of a work tree, beside the files themselves: settings, rules and hooks of the repository, files that are
//! hidden from git, repositories inside. What differs from an earlier look is an alarm, because a tree of git no longer shows what a
//! check can see.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Alarm, AlarmKind, Severity};
use crate::id::digest;

/// Settings of `core` that change nothing about files.
const SHOWS_NO_FILE: &[&str] = &[
    "abbrev",
    "askpass",
    "bigfilethreshold",
    "commentchar",
    "commentstring",
    "commitgraph",
    "compression",
    "editor",
    "gitproxy",
    "logallrefupdates",
    "loosecompression",
    "multipackindex",
    "notesref",
    "packedgitlimit",
    "packedgitwindowsize",
    "pager",
    "quotepath",
    "sharedrepository",
    "sshcommand",
    "warnambiguousrefs",
    "whitespace",
];
/// How many files one alarm names.
const NAMED: usize = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSight {
    /// Settings of the repository that have a say in it, with all their values.
    #[serde(default)]
    pub settings: BTreeMap<String, Vec<String>>,
    /// Attributes, ignore rules and hooks in the git directory, each as a digest.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files that git was told not to look at, each with a digest of what it holds.
    #[serde(default)]
    pub hidden: BTreeMap<String, String>,
    /// A digest of the names of those that are not there: in a sparse checkout there are many.
    #[serde(default)]
    pub absent: String,
    /// Submodules and other repositories inside, each with a digest of its state.
    #[serde(default)]
    pub inside: BTreeMap<String, String>,
}

impl GitSight {
    /// Keeps a setting, if it has a say in how files are seen. Branches, remotes and names come and go.
    pub fn add_setting(&mut self, key: &str, value: &str) {
        let mut parts = key.split('.');
        let section = parts.next().unwrap_or_default().to_ascii_lowercase();
        let name = key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let counts = match section.as_str() {
            "core" => !SHOWS_NO_FILE.contains(&name.as_str()),
            "filter" | "include" | "includeif" | "attr" | "extensions" | "index" => true,
            // Those of a driver.
            "diff" | "merge" => parts.count() > 1,
            "submodule" => name == "ignore",
            _ => false,
        };
        if counts {
            self.settings.entry(key.to_owned()).or_default().push(value.to_owned());
        }
    }

    pub fn digest(&self) -> String {
        digest(format!("{self:?}").as_bytes())
    }

    /// What was done to it since, the gravest first.
    pub fn alarms_since(&self, before: &Self) -> Vec<Alarm> {
        let hidden = differing(&before.hidden, &self.hidden);
        let mut alarms: Vec<Alarm> = differing(&before.settings, &self.settings)
            .into_iter()
            .map(|key| setting(key, before.settings.get(key), self.settings.contains_key(key)))
            .collect();
        alarms.extend(hidden_files(&hidden.into_iter().filter(|path| self.hidden.contains_key(*path)).collect::<Vec<_>>()));
        if self.absent != before.absent {
            // Files that came back, by another sparse checkout for instance, look the same.
            let text = "other files than before are missing, and git is told not to look (skip-worktree, assume-unchanged)";
            alarms.push(alarm(Severity::Medium, "", text.to_owned()));
        }
        let files = differing(&before.files, &self.files);
        alarms.extend(files.into_iter().map(|path| file(path, before.files.contains_key(path), self.files.contains_key(path))));
        let inside = differing(&before.inside, &self.inside);
        alarms.extend(inside.into_iter().map(|path| {
            let text = "a repository inside was changed, and no tree of git shows what is in it";
            alarm(Severity::Medium, path, text.to_owned())
        }));
        alarms.sort_by_key(|alarm| std::cmp::Reverse(alarm.severity));
        alarms
    }
}

fn differing<'a, V: PartialEq>(before: &'a BTreeMap<String, V>, now: &'a BTreeMap<String, V>) -> BTreeSet<&'a String> {
    before.keys().chain(now.keys()).filter(|key| before.get(*key) != now.get(*key)).collect()
}

fn setting(key: &str, before: Option<&Vec<String>>, is_set: bool) -> Alarm {
    let text = match (before, is_set) {
        (None, _) => format!("{key} was set; `git config --unset-all {key}` takes it back"),
        (Some(values), true) => format!("{key} was changed; it was {}", values.join(", ")),
        (Some(values), false) => format!("{key} was unset; it was {}", values.join(", ")),
    };
    // Where hooks are changes nothing about what a check sees, and tools set it when they are installed.
    let severity = if key.eq_ignore_ascii_case("core.hooksPath") { Severity::Low } else { Severity::High };
    alarm(severity, ".git/config", text)
}

fn hidden_files(paths: &[&String]) -> Option<Alarm> {
    let first = paths.first()?;
    let names: Vec<&str> = paths.iter().take(NAMED).map(|path| path.as_str()).collect();
    let more = paths.len().saturating_sub(NAMED);
    let names = if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") };
    let undo = format!("git update-index --no-assume-unchanged --no-skip-worktree {first}");
    Some(alarm(Severity::High, first, format!("{names} changed out of git's sight; `{undo}` and the like take it back")))
}

fn file(path: &str, was_there: bool, is_there: bool) -> Alarm {
    let text = match (was_there, is_there) {
        (false, _) => "was added; delete it",
        (true, true) => "was changed; put it back as it was",
        (true, false) => "was deleted; put it back",
    };
    // Hooks run when somebody commits, and a rule to ignore shows no file as another.
    let severity = if path.ends_with("/attributes") || path.ends_with("/grafts") { Severity::High } else { Severity::Medium };
    alarm(severity, path, text.to_owned())
}

fn alarm(severity: Severity, path: &str, text: String) -> Alarm {
    Alarm { kind: AlarmKind::GitTouched, severity, path: path.to_owned(), line: None, text, expected: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(settings: &[(&str, &str)]) -> GitSight {
        let mut sight = GitSight::default();
        for (key, value) in settings {
            sight.add_setting(key, value);
        }
        sight
    }

    #[test]
    fn only_settings_that_change_what_is_seen_or_run_count() {
        let before = sight(&[("core.bare", "false"), ("core.autocrlf", "input"), ("filter.lfs.clean", "git-lfs clean")]);
        let mut now = before.clone();
        for key in [
            "branch.main.merge",
            "remote.origin.url",
            "user.name",
            "diff.algorithm",
            "merge.conflictstyle",
            "submodule.st.url",
            "lfs.x",
            "core.sshCommand",
            "core.pager",
        ] {
            now.add_setting(key, "x");
        }
        assert_eq!(now.alarms_since(&before), []);
        for (key, severity) in [
            ("core.worktree", Severity::High),
            ("filter.f.clean", Severity::High),
            ("include.path", Severity::High),
            ("includeIf.gitdir:/x.y/.path", Severity::High),
            ("diff.d.textconv", Severity::High),
            ("merge.m.driver", Severity::High),
            ("submodule.a.b.ignore", Severity::High),
            ("core.hooksPath", Severity::Low),
        ] {
            let mut now = before.clone();
            now.add_setting(key, "x");
            let alarms = now.alarms_since(&before);
            assert_eq!(alarms.iter().map(|alarm| alarm.severity).collect::<Vec<_>>(), [severity], "{key}");
            let undo = format!("{key} was set; `git config --unset-all {key}` takes it back (.git/config)");
            assert!(alarms[0].sentence().ends_with(&undo), "{}", alarms[0].sentence());
        }
        let changed = sight(&[("core.bare", "false"), ("core.autocrlf", "true")]).alarms_since(&before);
        let texts: Vec<&str> = changed.iter().map(|alarm| alarm.text.as_str()).collect();
        assert_eq!(texts, ["core.autocrlf was changed; it was input", "filter.lfs.clean was unset; it was git-lfs clean"]);
    }

    #[test]
    fn what_comes_out_of_gits_sight_is_named_and_what_comes_back_is_none() {
        let of = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned())).collect()
        };
        let before = GitSight { hidden: of(&[("a", "1"), ("b", "1")]), ..GitSight::default() };
        let back = GitSight { hidden: of(&[("a", "1")]), ..GitSight::default() };
        assert_eq!(back.alarms_since(&before), []);
        let now = GitSight { hidden: of(&[("a", "1"), ("b", "2"), ("c", "1"), ("d", "1"), ("e", "1")]), ..before.clone() };
        let alarms = now.alarms_since(&before);
        assert_eq!(alarms.len(), 1);
        assert!(alarms[0].text.starts_with("b, c, d and 1 more changed out of git's sight"), "{}", alarms[0].text);
        let files = of(&[(".git/hooks/pre-commit", "1"), (".git/info/attributes", "1")]);
        let now = GitSight { absent: "x".to_owned(), inside: of(&[("sub", "1")]), files, ..before.clone() };
        let found: Vec<(Severity, String)> =
            now.alarms_since(&before).into_iter().map(|alarm| (alarm.severity, alarm.path)).collect();
        let expected = [
            (Severity::High, ".git/info/attributes"),
            (Severity::Medium, ""),
            (Severity::Medium, ".git/hooks/pre-commit"),
            (Severity::Medium, "sub"),
        ];
        assert_eq!(found, expected.map(|(severity, path)| (severity, path.to_owned())));
    }
}
