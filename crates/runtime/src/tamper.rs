//! Reads what an attempt changed, and what its gates run, for the tamper alarms of the core.

use std::collections::BTreeMap;
use std::path::Path;

use verdone_core::check::{Check, CommandSpec};
use verdone_core::id::Oid;
use verdone_core::plan::Story;
use verdone_core::scope::below;
use verdone_core::tamper::{Alarm, Change, Context, GateReach, gate_reach, report, said};

use crate::git::{Git, GitError, PathSet};

/// How deep scripts that run scripts are followed.
const ROUNDS: usize = 4;

/// Two trees, and by what their differences are judged.
pub(crate) struct Between<'a> {
    pub(crate) git: &'a Git,
    pub(crate) root: &'a Path,
    pub(crate) base: &'a Oid,
    pub(crate) tree: &'a Oid,
    pub(crate) gates: &'a [Check],
    pub(crate) own: &'a [Check],
    /// Files that Verdone writes itself.
    pub(crate) ours: &'a PathSet,
    /// The story's scope and words.
    pub(crate) scope: &'a [String],
    pub(crate) words: &'a str,
}

/// All that a story says.
pub(crate) fn words_of(story: &Story) -> String {
    let criteria: Vec<&str> = story.criteria.iter().map(|criterion| criterion.text.as_str()).collect();
    format!("{}\n{}\n{}", story.title, story.body, criteria.join("\n"))
}

pub(crate) fn between(asked: &Between<'_>) -> Result<Vec<Alarm>, GitError> {
    let Between { git, base, tree, ours, .. } = *asked;
    let folder = folder_of(asked.git, asked.root);
    // Both wait for git most of the time.
    let (comparison, gates, own) = std::thread::scope(|scope| {
        let comparison = scope.spawn(|| git.compare(base, tree));
        let gates = reach(git, base, asked.gates, &folder);
        let own = reach(git, base, asked.own, &folder);
        (comparison.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), gates, own)
    });
    let (comparison, gates, own) = (comparison?, gates?, own?);
    let named = |path: &crate::git::RepoPath| (!ours.contains(path)).then(|| path.to_string());
    let paths: Vec<Option<String>> = comparison.files.iter().map(|file| named(&file.path)).collect();
    let changes: Vec<Change<'_>> = comparison
        .files
        .iter()
        .zip(&paths)
        .filter_map(|(file, path)| {
            let path = path.as_deref()?;
            Some(Change { path, old: file.old.as_deref(), new: file.new.as_deref(), old_path: None })
        })
        .collect();
    let unread: Vec<String> = comparison.unread.iter().filter_map(named).collect();
    let scope = below(asked.scope, &folder);
    let context = Context { scope: &scope, said: said(asked.words), gates, own, plan: &[], unread: &unread };
    Ok(report(&changes, &context))
}

/// Where the project lies below the top.
pub(crate) fn folder_of(git: &Git, root: &Path) -> String {
    root.strip_prefix(git.top()).map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned())
}

/// What these checks run, by the files as they were before the attempt.
fn reach(git: &Git, base: &Oid, checks: &[Check], folder: &str) -> Result<GateReach, GitError> {
    let commands: Vec<String> = checks.iter().map(|check| line(&check.command)).collect();
    let mut files = BTreeMap::new();
    let mut reach = gate_reach(&commands, folder, &files);
    for _ in 0..ROUNDS {
        if reach.wanted.is_empty() {
            break;
        }
        let wanted: Vec<String> = reach.wanted.iter().cloned().collect();
        let found = git.files_at(base, &wanted)?;
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        files.extend(wanted.into_iter().zip(found.into_iter().map(text)));
        reach = gate_reach(&commands, folder, &files);
    }
    Ok(reach)
}

/// As a shell would be given it: for reading, never to be run.
pub(crate) fn line(command: &CommandSpec) -> String {
    match command {
        CommandSpec::Shell(text) => text.clone(),
        CommandSpec::Argv(words) => {
            words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ")
        }
    }
}
