//! The differential proof for a check's own files: where the work changed a file that decides a check, the check is asked once more in
//! a clean tree of the work with that file as it was.

use std::collections::BTreeMap;

use verdone_core::check::{Check, CheckRun};
use verdone_core::id::{Oid, StoryId};
use verdone_core::machine::{Attempt, State};
use verdone_core::proof::AsBefore;
use verdone_core::scope::below;
use verdone_core::tamper::{Deciders, Held, HeldFiles, How, PutBack, Touched, deciders, expects_change};
use verdone_core::update::Reporter;
use verdone_core::verdict::Red;

use super::StepError;
use super::agent_test::run_in_clean_tree;
use super::changers::{Changers, all_expect};
use crate::git::{Change, ChangedPath, Git, GitError, RepoPath, TreeFile};
use crate::site::Site;
use crate::tamper::line;

/// How deep files that name files are followed.
const ROUNDS: usize = 5;
/// A decider that is larger is not read, only put back.
const LARGEST_FILE: usize = 1_000_000;

/// None where the checks are the same as before, or prove nothing anyhow.
pub(super) fn as_before(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    tree: &Oid,
    changes: &[ChangedPath],
    reporter: &mut dyn Reporter,
) -> Result<Option<AsBefore>, StepError> {
    let base = site.before_turn.as_ref().or_else(|| attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.head.as_ref()));
    let (Some(base), Some(Red::Red)) = (base.cloned(), attempt.red) else { return Ok(None) };
    let story = &attempt.place.story;
    let checks: Vec<Check> = site.own_checks(story).iter().filter(|check| has_deciders(site, check)).cloned().collect();
    if checks.is_empty() {
        return Ok(None);
    }
    let scope = scope_of(site, story);
    let same = same_checks(site, &base, tree, changes, &checks, &|path| expects_change(&scope, path))?;
    let seen = same.map(|same| same.run(site, reporter)).transpose()?;
    if seen.as_ref().is_some_and(|seen| !seen.holds()) {
        return Ok(seen);
    }
    Ok(as_at_the_start(site, state, tree, &checks, reporter)?.or(seen))
}

/// The same with what earlier stories of the run did to the checks: a check that is weaker than the one that the plan was written for
/// proves less, whoever made it so.
fn as_at_the_start(
    site: &mut Site,
    state: &State,
    tree: &Oid,
    checks: &[Check],
    reporter: &mut dyn Reporter,
) -> Result<Option<AsBefore>, StepError> {
    let Some(base) = state.committed.first().and_then(|first| first.base.clone()) else { return Ok(None) };
    let since = site.git.changed_paths(Some(&base), tree)?;
    if same_checks(site, &base, tree, &since, checks, &|_| false)?.is_none() {
        return Ok(None);
    }
    let mut changers = Changers::of(&state.committed);
    changers.read(site, 0)?;
    // What only this attempt changed was looked at already.
    let earlier: Vec<ChangedPath> =
        since.into_iter().filter(|change| !changers.by(0, &change.path.to_string()).is_empty()).collect();
    let expected = |path: &str| all_expect(site, &changers.by(0, path), path);
    let Some(same) = same_checks(site, &base, tree, &earlier, checks, &expected)? else { return Ok(None) };
    let by = changers.by_any(0, &same.files);
    Ok(Some(AsBefore { by, ..same.run(site, reporter)? }))
}

/// Checks whose files were changed, and the tree in which they are the same checks again.
pub(super) struct SameChecks {
    pub(super) checks: Vec<Check>,
    /// The changed files.
    pub(super) files: Vec<String>,
    pub(super) tree: Oid,
}

impl SameChecks {
    pub(super) fn run(self, site: &mut Site, reporter: &mut dyn Reporter) -> Result<AsBefore, StepError> {
        let (runs, unproven): (Vec<CheckRun>, Option<String>) = match run_in_clean_tree(site, &self.tree, &self.checks, reporter)?
        {
            Ok(seen) => (seen.into_iter().map(|seen| seen.run).collect(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Ok(AsBefore { files: self.files, by: Vec::new(), runs, unproven })
    }
}

/// A story's scope as seen from the top of the tree.
pub(super) fn scope_of(site: &Site, story: &StoryId) -> Vec<String> {
    site.plan.plan().story(story).map_or_else(Vec::new, |story| below(&story.scope, &folder(site)))
}

/// Where the project lies below the top.
fn folder(site: &Site) -> String {
    site.root.strip_prefix(site.git.top()).map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned())
}

/// Whether files of the tree have a say in a check, as far as its command tells.
pub(super) fn has_deciders(site: &Site, check: &Check) -> bool {
    !deciders(&[line(&check.command)], &folder(site), &HeldFiles::new()).is_empty()
}

/// Which of these checks are decided by files that differ between the two trees; `expected` says which are meant to.
pub(super) fn same_checks(
    site: &Site,
    base: &Oid,
    tree: &Oid,
    changes: &[ChangedPath],
    checks: &[Check],
    expected: &dyn Fn(&str) -> bool,
) -> Result<Option<SameChecks>, GitError> {
    if changes.is_empty() {
        return Ok(None);
    }
    let folder = folder(site);
    let mut held = HeldFiles::new();
    let (mut decided, mut all): (Vec<Check>, BTreeMap<String, PutBack>) = (Vec::new(), BTreeMap::new());
    for check in checks {
        let found = follow(&site.git, base, &line(&check.command), &folder, &mut held)?;
        let back = put_back(&site.git, (base, tree), changes, &found, &held, expected)?;
        if !back.is_empty() {
            decided.push(check.clone());
            all.extend(back.into_iter().map(|back| (back.path.clone(), back)));
        }
    }
    if decided.is_empty() {
        return Ok(None);
    }
    let files: Vec<String> = all.keys().cloned().collect();
    let overlay = overlay(&site.git, base, tree, all.into_values())?;
    let tree = site.git.overlaid(Some(tree), &overlay)?;
    Ok(Some(SameChecks { checks: decided, files, tree }))
}

fn follow(git: &Git, base: &Oid, command: &str, folder: &str, held: &mut HeldFiles) -> Result<Deciders, GitError> {
    let commands = [command.to_owned()];
    let mut found = deciders(&commands, folder, held);
    for _ in 0..ROUNDS {
        if found.wanted.is_empty() {
            break;
        }
        let wanted: Vec<String> = found.wanted.iter().cloned().collect();
        let entries: Vec<TreeFile> = git.entries_at(base, &wanted)?.into_iter().filter(|file| !file.submodule).collect();
        let ids: Vec<String> = entries.iter().map(|file| file.id.to_string()).collect();
        held.extend(wanted.into_iter().map(|path| (path, None)));
        for (file, bytes) in entries.iter().zip(git.contents(&ids)?) {
            let bytes = bytes.filter(|bytes| bytes.len() <= LARGEST_FILE).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            held.insert(file.path.to_string(), Some(if file.is_link() { Held::Link(text) } else { Held::Text(text) }));
        }
        found = deciders(&commands, folder, held);
    }
    Ok(found)
}

fn put_back(
    git: &Git,
    (base, tree): (&Oid, &Oid),
    changes: &[ChangedPath],
    found: &Deciders,
    held: &HeldFiles,
    expected: &dyn Fn(&str) -> bool,
) -> Result<Vec<PutBack>, GitError> {
    let paths: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    let read: Vec<String> = paths.iter().filter(|path| found.reads(path)).cloned().collect();
    let texts = |tree: &Oid| -> Result<BTreeMap<String, String>, GitError> {
        let contents = if read.is_empty() { Vec::new() } else { git.files_at(tree, &read)? };
        let text =
            |(path, bytes): (&String, Option<Vec<u8>>)| Some((path.clone(), String::from_utf8_lossy(&bytes?).into_owned()));
        Ok(read.iter().zip(contents).filter_map(text).collect())
    };
    let (old, new) = (texts(base)?, texts(tree)?);
    let touched: Vec<Touched<'_>> = changes
        .iter()
        .zip(&paths)
        .map(|(change, path)| Touched {
            path,
            existed: change.change != Change::Added,
            old: old.get(path).map(String::as_str),
            new: new.get(path).map(String::as_str),
        })
        .collect();
    Ok(found.put_back(&touched, held, expected))
}

fn overlay(git: &Git, base: &Oid, tree: &Oid, back: impl Iterator<Item = PutBack>) -> Result<Vec<TreeFile>, GitError> {
    let back: Vec<PutBack> = back.collect();
    let paths: Vec<String> = back.iter().map(|back| back.path.clone()).collect();
    let were: BTreeMap<String, TreeFile> =
        git.entries_at(base, &paths)?.into_iter().map(|file| (file.path.to_string(), file)).collect();
    let mut overlay = Vec::new();
    for PutBack { path, how } in back {
        match (how, were.get(&path)) {
            (How::AsItWas, Some(file)) => overlay.push(file.clone()),
            (How::Text(text), Some(file)) => overlay.push(TreeFile { id: git.keep_bytes(text.as_bytes())?, ..file.clone() }),
            (How::Away | How::AsItWas | How::Text(_), _) => overlay.push(TreeFile::gone(RepoPath::from(path.as_str()), tree)),
        }
    }
    Ok(overlay)
}
