//! Git queries for an audit: commits with their trailers, and all evidence notes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use verdone_core::base::id::Oid;
use verdone_core::evidence::audit::{CommitFacts, GitNote, Trailers};
use verdone_core::evidence::note_digest;

use super::error::GitError;
use super::{Git, is_object_id};

/// Our notes have a few thousand bytes.
const LARGEST_NOTE: u64 = 1024 * 1024;

/// How far back to look for a branch's last evidence. A start must not read a whole long history.
const NEAREST: &str = "-n5000";

const NOTES: &str = "refs/notes/verdone";

/// How git begins the sentence about what a commit reverts.
const REVERTS: &str = "This reverts commit ";

impl Git {
    /// The commit that a user's text refers to. The text is never taken for an option.
    pub fn commit_named(&self, text: &str) -> Result<Option<Oid>, GitError> {
        if text.is_empty() || text.contains('\0') {
            return Ok(None);
        }
        Ok(self.resolve(&format!("{text}^{{commit}}"))?.filter(is_object_id))
    }

    /// All commits in the history of `tip`, children before their parents.
    pub fn commits_reachable_from(&self, tip: &Oid) -> Result<Vec<CommitFacts>, GitError> {
        // No field can contain the NUL that ends it.
        let format = "--format=%H%x00%T%x00%P%x00%(trailers:only,unfold)%x00%s";
        let options = ["-z", "--topo-order", "--no-show-signature", "--no-notes", "--encoding=UTF-8", format, tip.as_str(), "--"];
        let output = self.plumbing("log").args(options).run()?;
        let mut fields = output.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut commits = Vec::new();
        while let (Some(id), Some(tree), Some(parents), Some(trailers), Some(subject)) =
            (fields.next().filter(|id| !id.is_empty()), fields.next(), fields.next(), fields.next(), fields.next())
        {
            commits.push(CommitFacts {
                id: Oid::from(&*id),
                tree: Oid::from(&*tree),
                parents: parents.split_whitespace().map(Oid::from).collect(),
                subject: subject.into_owned(),
                trailers: Trailers::read(&trailers),
            });
        }
        Ok(commits)
    }

    /// Commits in the history of `tip` that a later commit reverts, by git's usual sentence. A revert that was reverted does not count.
    pub fn reverted_in(&self, tip: &Oid) -> Result<HashSet<Oid>, GitError> {
        let options = ["-z", "--topo-order", "--no-show-signature", "--no-notes", "--encoding=UTF-8"];
        let wanted = ["--fixed-strings", "--grep", REVERTS, "--format=%H%n%B", tip.as_str(), "--"];
        let output = self.plumbing("log").args(options).args(wanted).run()?;
        let mut reverted = HashSet::new();
        for text in output.split(|byte| *byte == 0).map(String::from_utf8_lossy) {
            let mut lines = text.lines();
            if lines.next().is_none_or(|id| reverted.contains(&Oid::from(id))) {
                continue;
            }
            let named = lines.filter_map(|line| line.strip_prefix(REVERTS)).map(|rest| Oid::from(rest.trim_end_matches('.')));
            reverted.extend(named.filter(is_object_id));
        }
        Ok(reverted)
    }

    /// The commits of `tip` that are not in `base`.
    pub fn commits_between(&self, base: &Oid, tip: &Oid) -> Result<BTreeSet<Oid>, GitError> {
        let output = self.plumbing("rev-list").args([tip.as_str(), &format!("^{base}"), "--"]).line()?;
        Ok(output.lines().map(Oid::from).collect())
    }

    pub fn has_evidence_notes(&self) -> Result<bool, GitError> {
        Ok(self.resolve(NOTES)?.is_some())
    }

    /// All of our notes, whatever they are attached to.
    pub fn evidence_notes(&self) -> Result<BTreeMap<Oid, GitNote>, GitError> {
        if !self.has_evidence_notes()? {
            return Ok(BTreeMap::new());
        }
        let list = self.plumbing("notes").args(["--ref=verdone", "list"]).line()?;
        let pairs: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once(' ')).collect();
        let blobs: BTreeSet<&str> = pairs.iter().map(|(blob, _)| *blob).collect();
        let sizes = self.sizes_of(&blobs)?;
        let small = blobs.iter().copied().filter(|blob| sizes.get(*blob).is_some_and(|size| *size <= LARGEST_NOTE));
        let contents = self.contents_of(&small.collect::<Vec<_>>())?;
        let note = |blob: &str| match (contents.get(blob), sizes.get(blob)) {
            (Some(bytes), _) => Some(GitNote::Bytes(bytes.clone())),
            (None, Some(size)) => Some(GitNote::TooLarge(*size)),
            (None, None) => None,
        };
        Ok(pairs.iter().filter_map(|(blob, of)| Some((Oid::from(*of), note(blob)?))).collect())
    }

    /// The digest of the nearest evidence in the history of HEAD.
    pub fn last_evidence_of_head(&self) -> Result<Option<String>, GitError> {
        self.head_commit()?.map_or(Ok(None), |(head, _)| self.last_evidence(&head))
    }

    /// The digest of the nearest evidence in the history of a commit. It comes from the note, or if the note is missing, from the
    /// commit's trailer.
    pub fn last_evidence(&self, tip: &Oid) -> Result<Option<String>, GitError> {
        let format = "--format=%H%x00%(trailers:key=Verdone-Evidence,valueonly,separator=%x2C)";
        let answer = self
            .plumbing("log")
            .args(["-z", NEAREST, "--no-show-signature", "--no-notes", format, tip.as_str(), "--"])
            .answer()?;
        // There is none before the first commit.
        if !answer.status.success() {
            return Ok(None);
        }
        let fields: Vec<_> = answer.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let nearest = fields.chunks_exact(2).find(|pair| is_digest(&pair[1]));
        let Some([commit, named]) = nearest else { return Ok(None) };
        let note = self.plumbing("notes").args(["--ref=verdone", "show", commit]).answer()?;
        Ok(Some(if note.status.success() { note_digest(&note.stdout) } else { named.to_string() }))
    }

    /// HEAD's commit, if its message names this evidence.
    pub(crate) fn head_that_names(&self, evidence: &str) -> Result<Option<Oid>, GitError> {
        let format = "--format=%H%x00%(trailers:key=Verdone-Evidence,valueonly,separator=%x2C)";
        let answer = self.plumbing("log").args(["-n1", "--no-show-signature", "--no-notes", format, "HEAD", "--"]).answer()?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let found = text.trim_end().split_once('\0').filter(|(_, named)| answer.status.success() && *named == evidence);
        Ok(found.map(|(commit, _)| Oid::from(commit)))
    }

    /// Whether the history is truncated.
    pub fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(self.plumbing("rev-parse").args(["--is-shallow-repository"]).line()? == "true")
    }

    pub(super) fn sizes_of(&self, blobs: &BTreeSet<&str>) -> Result<BTreeMap<String, u64>, GitError> {
        let asked: String = blobs.iter().flat_map(|blob| [*blob, "\n"]).collect();
        let check = "--batch-check=%(objectname) %(objectsize)";
        let output = self.plumbing("cat-file").args([check]).stdin(asked.into_bytes()).line()?;
        let size = |line: &str| line.split_once(' ').and_then(|(blob, size)| Some((blob.to_owned(), size.parse().ok()?)));
        Ok(output.lines().filter_map(size).collect())
    }

    pub(super) fn contents_of(&self, blobs: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, GitError> {
        let asked: String = blobs.iter().flat_map(|blob| [*blob, "\n"]).collect();
        let output = self.plumbing("cat-file").args(["--batch"]).stdin(asked.into_bytes()).run()?;
        let unexpected = || GitError::Unexpected { what: "cat-file", detail: "a truncated object".to_owned() };
        let mut contents = BTreeMap::new();
        let mut rest = &output[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]);
            rest = &rest[end + 1..];
            // An object that has since disappeared has no content.
            let mut words = head.split(' ');
            let (Some(blob), Some(size)) = (words.next(), words.nth(1).and_then(|size| size.parse::<usize>().ok())) else {
                continue;
            };
            contents.insert(blob.to_owned(), rest.get(..size).ok_or_else(unexpected)?.to_vec());
            rest = rest.get(size + 1..).ok_or_else(unexpected)?;
        }
        Ok(contents)
    }
}

/// Anybody can write a trailer; only digests may reach journals and notes.
fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
