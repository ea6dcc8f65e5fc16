//! Reads what an attempt changed, and what its gates run, for the tamper alarms of the core.

use std::collections::BTreeMap;

use verdone_core::check::{Check, CommandSpec};
use verdone_core::event::VerifyOutcome;
use verdone_core::id::Oid;
use verdone_core::machine::{Attempt, Verification};
use verdone_core::scope::below;
use verdone_core::tamper::{Alarm, AlarmKind, Change, Context, GateReach, gate_reach, report, said};

use crate::git::{Git, GitError};
use crate::site::Site;

/// How deep scripts that run scripts are followed.
const ROUNDS: usize = 4;

/// Adds the alarms to a verification that got as far as its checks, and takes its pass away where the settings want that.
pub fn look(site: &Site, attempt: &Attempt, verification: &mut Verification) -> Result<(), GitError> {
    verification.alarms = undone(site, &verification.restored);
    let base = site.before_turn.as_ref().or_else(|| attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.head.as_ref()));
    let checked = matches!(verification.outcome, VerifyOutcome::Passed | VerifyOutcome::Failed) && verification.changed > 0;
    if let (Some(base), Some(tree), true) = (base, &verification.tree, checked) {
        verification.alarms.extend(compare(site, attempt, base, tree)?);
    }
    if verification.outcome == VerifyOutcome::Passed
        && let Some(reason) = site.config.tamper.refusal(&verification.alarms)
    {
        verification.outcome = VerifyOutcome::Refused;
        verification.reason = Some(reason);
    }
    Ok(())
}

/// What was put back is no danger any more, and belongs to the evidence all the same.
fn undone(site: &Site, restored: &[String]) -> Vec<Alarm> {
    let plan: Vec<String> = site.plan.protected_paths().iter().map(|path| crate::site::shown(path, &site.root)).collect();
    let kind = |path: &String| {
        if plan.contains(path) {
            AlarmKind::PlanEdited
        } else if path.split('/').any(|part| part == ".verdone") {
            AlarmKind::JudgeTouched
        } else {
            AlarmKind::GitTouched
        }
    };
    restored.iter().map(|path| Alarm::undone(kind(path), path)).collect()
}

fn compare(site: &Site, attempt: &Attempt, base: &Oid, tree: &Oid) -> Result<Vec<Alarm>, GitError> {
    let folder =
        site.root.strip_prefix(site.git.top()).map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned());
    let git = &site.git;
    // Both wait for git most of the time.
    let (comparison, gates, own) = std::thread::scope(|scope| {
        let comparison = scope.spawn(|| git.compare(base, tree));
        let gates = reach(git, base, &site.gates, &folder);
        let own = reach(git, base, site.own_checks(&attempt.place.story), &folder);
        (comparison.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), gates, own)
    });
    let (comparison, gates, own) = (comparison?, gates?, own?);
    let ours = site.plan_paths();
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
    let story = site.plan.plan().story(&attempt.place.story);
    let scope = story.map_or_else(Vec::new, |story| below(&story.scope, &folder));
    let words = story.map_or_else(String::new, |story| {
        let criteria: Vec<&str> = story.criteria.iter().map(|criterion| criterion.text.as_str()).collect();
        format!("{}\n{}\n{}", story.title, story.body, criteria.join("\n"))
    });
    let context = Context { scope: &scope, said: said(&words), gates, own, plan: &[], unread: &unread };
    Ok(report(&changes, &context))
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
