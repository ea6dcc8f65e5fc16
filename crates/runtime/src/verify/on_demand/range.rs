//! Resolves the commits of a range.

use verdone_core::base::id::Oid;
use verdone_core::verify::CommitRange;

use super::VerifyError;
use crate::git::Git;

/// The commits, with notes for the reader about how they were chosen.
pub(super) fn resolve(git: &Git, base: &str, head: Option<&str>) -> Result<(CommitRange, Vec<String>), VerifyError> {
    let head = named(git, head.unwrap_or("HEAD"))?;
    let settings = named(git, base)?;
    let (base_commit, note) = branched_off(git, base, &settings, &head)?;
    let range = CommitRange { asked: base.to_owned(), settings, base: base_commit, head };
    Ok((range, note.into_iter().collect()))
}

fn named(git: &Git, name: &str) -> Result<Oid, VerifyError> {
    if let Some(commit) = git.commit_named(name)? {
        return Ok(commit);
    }
    let remote = format!("origin/{name}");
    let remote = git.commit_named(&remote)?.map(|_| remote);
    Err(VerifyError::NoRef { name: name.to_owned(), remote, shallow: git.is_shallow()? })
}

/// The commit to compare with, and why it is not the named one.
fn branched_off(git: &Git, name: &str, commit: &Oid, head: &Oid) -> Result<(Oid, Option<String>), VerifyError> {
    if git.is_part_of(commit, head)? {
        return Ok((commit.clone(), None));
    }
    match git.merge_base(commit, head)? {
        Some(base) => {
            let note = format!(
                "the work does not have all commits of {name}, so it is compared with {}, where it branched off",
                base.short()
            );
            Ok((base, Some(note)))
        }
        // Both commits exist here, but the history between them is missing.
        None if git.is_shallow()? => {
            let note = format!(
                "this clone is shallow and does not show where the work branched off, so it is compared with {name} itself; \
                 to compare it with the commit where it branched off, run git fetch --unshallow first"
            );
            Ok((commit.clone(), Some(note)))
        }
        None => Err(VerifyError::Unrelated { name: name.to_owned() }),
    }
}
