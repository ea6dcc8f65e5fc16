//! Attempts that were not accepted. Each is an ordinary commit on its base under its own ref, so `git show` and `git cherry-pick`
//! work on it, and no journal is needed to find it.

use std::time::SystemTime;

use jiff::Timestamp;
use verdone_core::base::id::{Oid, RunId, StoryId, encode_component};

use super::chain::{IDENTITY_MAIL, IDENTITY_NAME};
use super::ci_commit::ci_ref;
use super::error::GitError;
use super::path::decode;
use super::{Git, is_object_id};

pub(super) const ATTEMPTS: &str = "refs/verdone/attempts";
const COMMITS: &str = "refs/verdone/commits";

/// A kept attempt, read from its ref and commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAttempt {
    pub run: RunId,
    /// A very long id is shortened and ends with a digest.
    pub story: StoryId,
    pub attempt: u32,
    pub commit: Oid,
    pub tree: Oid,
    pub base: Option<Oid>,
    pub at: Timestamp,
    pub subject: String,
}

impl Git {
    /// Keeps the files of an attempt. Keeping an attempt again replaces it.
    pub fn keep_attempt_commit(
        &self,
        run: &RunId,
        story: &StoryId,
        attempt: u32,
        tree: &Oid,
        base: Option<&Oid>,
        message: &str,
    ) -> Result<Oid, GitError> {
        if let Some(id) = [Some(tree), base].into_iter().flatten().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "commit-tree", detail: format!("{id} is not an object id") });
        }
        let since = SystemTime::now();
        let parent: Vec<&str> = base.iter().flat_map(|base| ["-p", base.as_str()]).collect();
        let commit = self
            .durable("commit-tree")
            .args(parent)
            .args(["-F", "-", tree.as_str()])
            .env("GIT_AUTHOR_NAME", IDENTITY_NAME)
            .env("GIT_AUTHOR_EMAIL", IDENTITY_MAIL)
            .env("GIT_COMMITTER_NAME", IDENTITY_NAME)
            .env("GIT_COMMITTER_EMAIL", IDENTITY_MAIL)
            .stdin(message.as_bytes().to_vec())
            .line()
            .map(Oid)?;
        self.sync_object_folders(since)?;
        let name = ref_name(run, story, attempt);
        let before = self.resolve(&name)?;
        if before.as_ref() != Some(&commit) {
            self.set_ref(&name, &commit, before.as_ref())?;
        }
        Ok(commit)
    }

    /// Keeps a story's commit that cannot go to the run's branch. Returns the ref.
    pub fn keep_story_commit(&self, run: &RunId, commit: &Oid) -> Result<String, GitError> {
        let name = format!("{COMMITS}/{}", encode_component(run.as_str()));
        let before = self.resolve(&name)?;
        self.set_ref(&name, commit, before.as_ref())?;
        Ok(name)
    }

    /// Kept attempts of one run or of all runs, in the order of their refs.
    pub fn kept_attempts(&self, run: Option<&RunId>) -> Result<Vec<KeptAttempt>, GitError> {
        let below = below(run);
        let format = "--format=%(refname) %(objectname) %(tree) %(committerdate:unix) %(parent)%09%(subject)";
        let listed = self.plumbing("for-each-ref").args([format, &below]).line()?;
        Ok(listed.lines().filter_map(read_line).collect())
    }

    /// Deletes the refs of a run's kept attempts and commits. Git collects the objects later.
    pub fn forget_attempts(&self, run: &RunId) -> Result<(), GitError> {
        let (below, commit) = (below(Some(run)), format!("{COMMITS}/{}", encode_component(run.as_str())));
        let listed = self
            .plumbing("for-each-ref")
            .args(["--format=delete %(refname) %(objectname)", &below, &commit, &ci_ref(run)])
            .line()?;
        if !listed.is_empty() {
            self.durable("update-ref").args(["--stdin"]).stdin(format!("{listed}\n").into_bytes()).run()?;
        }
        Ok(())
    }
}

/// The folder of refs of one run, or of all.
fn below(run: Option<&RunId>) -> String {
    run.map_or_else(|| ATTEMPTS.to_owned(), |run| format!("{ATTEMPTS}/{}", encode_component(run.as_str())))
}

fn ref_name(run: &RunId, story: &StoryId, attempt: u32) -> String {
    format!("{ATTEMPTS}/{}/{}-{attempt}", encode_component(run.as_str()), encode_component(story.as_str()))
}

fn read_line(line: &str) -> Option<KeptAttempt> {
    let (facts, subject) = line.split_once('\t')?;
    let mut facts = facts.split(' ');
    let name = facts.next()?.strip_prefix(ATTEMPTS)?.strip_prefix('/')?;
    let (commit, tree, at) = (facts.next()?, facts.next()?, facts.next()?.parse().ok()?);
    let (run, name) = name.split_once('/')?;
    let (story, attempt) = name.rsplit_once('-')?;
    Some(KeptAttempt {
        run: RunId(decoded(run)),
        story: StoryId(decoded(story)),
        attempt: attempt.parse().ok()?,
        commit: commit.into(),
        tree: tree.into(),
        base: facts.next().filter(|base| !base.is_empty()).map(Oid::from),
        at: Timestamp::from_second(at).ok()?,
        subject: subject.to_owned(),
    })
}

/// Decodes a name. A shortened name stays as it is in the ref.
fn decoded(name: &str) -> String {
    if name == "%" {
        return String::new();
    }
    decode(name).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| name.to_owned())
}
