//! Checks that are other checks by now: where a file that decides a check differs between two trees, the tree of now with that file as
//! it was, in which the check is the same again.

use std::collections::BTreeMap;

use verdone_core::check::Check;
use verdone_core::id::Oid;
use verdone_core::tamper::{Deciders, Held, HeldFiles, How, PutBack, Touched, deciders};

use crate::git::{Change, ChangedPath, Git, GitError, RepoPath, TreeFile};
use crate::tamper::line;

/// How deep files that name files are followed.
const ROUNDS: usize = 5;
/// A decider that is larger is not read, only put back.
const LARGEST_FILE: usize = 1_000_000;

/// Checks whose files were changed, and the tree in which they are the same checks again.
pub(crate) struct SameChecks {
    pub(crate) checks: Vec<Check>,
    /// The changed files.
    pub(crate) files: Vec<String>,
    pub(crate) tree: Oid,
}

/// Whether files of the tree have a say in a check, as far as its command tells. `folder` is where the project lies below the top.
pub(crate) fn has_deciders(folder: &str, check: &Check) -> bool {
    !deciders(&[line(&check.command)], folder, &HeldFiles::new()).is_empty()
}

/// Which of these checks are decided by files that differ between the two trees; `expected` says which are meant to.
pub(crate) fn same_checks(
    (git, folder): (&Git, &str),
    (base, tree): (&Oid, &Oid),
    changes: &[ChangedPath],
    checks: &[Check],
    expected: &dyn Fn(&str) -> bool,
) -> Result<Option<SameChecks>, GitError> {
    if changes.is_empty() {
        return Ok(None);
    }
    let mut held = HeldFiles::new();
    let (mut decided, mut all): (Vec<Check>, BTreeMap<String, PutBack>) = (Vec::new(), BTreeMap::new());
    for check in checks {
        let found = follow(git, base, &line(&check.command), folder, &mut held)?;
        let back = put_back(git, (base, tree), changes, &found, &held, expected)?;
        if !back.is_empty() {
            decided.push(check.clone());
            all.extend(back.into_iter().map(|back| (back.path.clone(), back)));
        }
    }
    if decided.is_empty() {
        return Ok(None);
    }
    let files: Vec<String> = all.keys().cloned().collect();
    let overlay = overlay(git, base, tree, all.into_values())?;
    let tree = git.overlaid(Some(tree), &overlay)?;
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
