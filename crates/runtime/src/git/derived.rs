//! Checkpoints of states that no work tree was in yet: an index and a few files, for [`Git::restore`] to go there. A restore of
//! one touches those files and no other, whatever happens to the others meanwhile.

use std::collections::{BTreeSet, HashMap};

use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

use super::Git;
use super::chain::one_line;
use super::error::GitError;
use super::index::IndexFile;
use super::path::RepoPath;
use super::snapshot::{Kept, Manifest, Snapshot, State, VERSION, nanoseconds};

/// What is kept of one path, and the blob of its content.
pub(super) type Part = (Kept, Option<Oid>);

impl Git {
    /// What a checkpoint keeps of these paths.
    pub(super) fn parts<'a>(&self, snapshot: &Snapshot, kept: impl IntoIterator<Item = &'a Kept>) -> Result<Vec<Part>, GitError> {
        let id = &snapshot.checkpoint.id;
        let listed = self.plumbing("ls-tree").args(["-r", "-z", "--full-tree", id.as_str()]).run()?;
        let blobs: HashMap<&[u8], Oid> = listed.split(|byte| *byte == 0).filter_map(read_record).collect();
        let part = |kept: &Kept| {
            let number = match &kept.state {
                State::File { file, .. } | State::Symlink { file } => *file,
                State::Absent => return Ok((kept.clone(), None)),
            };
            let blob = blobs.get(format!("files/{number}").as_bytes());
            let blob = blob.ok_or_else(|| GitError::NotACheckpoint { id: id.0.clone() })?;
            Ok((kept.clone(), Some(blob.clone())))
        };
        kept.into_iter().map(part).collect()
    }

    /// A checkpoint with the HEAD and the rules of another, for these `paths` alone. Those without a part are as the index has them.
    pub(super) fn derive(
        &self,
        chain: &RunId,
        label: &str,
        like: &Snapshot,
        index: Option<&IndexFile>,
        paths: impl IntoIterator<Item = RepoPath>,
        parts: Vec<Part>,
    ) -> Result<Checkpoint, GitError> {
        let mut tree = Vec::new();
        let entries: Vec<Kept> = parts.into_iter().map(|part| renumber(part, &mut tree)).collect();
        let subject = format!("checkpoint: {}", one_line(label));
        let (like, only) = (&like.manifest, Some(paths.into_iter().collect::<BTreeSet<_>>()));
        let (id, manifest) = self.append(chain, |stream, previous| {
            let mut tree = tree.clone();
            if let Some(index) = index {
                tree.push((stream.blob(&index.bytes)?, "index".to_owned()));
            }
            let manifest = Manifest {
                version: VERSION,
                label: label.to_owned(),
                head: like.head.clone(),
                branch: like.branch.clone(),
                taken_ns: like.taken_ns,
                index_ns: index.map(|index| nanoseconds(index.modified)),
                entries: entries.clone(),
                extra: Vec::new(),
                nested: like.nested.clone(),
                submodules: like.submodules.clone(),
                ignored: like.ignored.clone(),
                hidden: like.hidden.clone(),
                limits: like.limits,
                nested_states: like.nested_states.clone(),
                user_rules: like.user_rules.clone(),
                only: only.clone(),
                taken_in: like.taken_in.clone(),
            };
            let json = serde_json::to_vec(&manifest).expect("a manifest has only string keys");
            tree.push((stream.blob(&json)?, "manifest.json".to_owned()));
            let head: Vec<&str> = manifest.head.iter().map(Oid::as_str).collect();
            let commit = stream.commit(&subject, Some(previous), &head, &tree)?;
            stream.ask(&commit)?;
            Ok(manifest)
        })?;
        Ok(self.remember(Snapshot::new(id, manifest)).checkpoint.clone())
    }
}

fn renumber((mut kept, blob): Part, tree: &mut Vec<(String, String)>) -> Kept {
    let number = tree.len();
    match &mut kept.state {
        State::File { file, .. } | State::Symlink { file } => *file = number,
        State::Absent => {}
    }
    tree.extend(blob.map(|blob| (blob.0, format!("files/{number}"))));
    kept
}

/// `<mode> blob <id>\t<path>`.
fn read_record(record: &[u8]) -> Option<(&[u8], Oid)> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let id = std::str::from_utf8(&record[..tab]).ok()?.rsplit(' ').next()?;
    Some((&record[tab + 1..], Oid::from(id)))
}
