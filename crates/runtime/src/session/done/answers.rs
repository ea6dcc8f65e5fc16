//! Answers of the judge and CI about a session's work. They are sealed and bound to what was seen: files, story and commit. Different files
//! or a different story text make a new question. The first clear answer to a question stands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::{Oid, encode_component};
use verdone_core::done::{CiFact, GitFact, JudgeFact, JudgeRecord};
use verdone_plan::Story;

use super::{ConditionRequest, DoneError};
use crate::base::atomic::replace_for_readers;
use crate::base::plain_file::read_regular;
use crate::base::seal::Seal;
use crate::base::text::listed;
use crate::guard::make_sessions;
use crate::project::find_git_top;
use crate::session::{Tree, look_at_tree};
use crate::store::sessions::own_sessions;

const FILE: &str = "asked.json";
const LARGEST: u64 = 2 * 1024 * 1024;
/// Older answers are dropped.
const MOST: usize = 40;

/// The subject of a question to a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// The content of the files. Staging or committing them does not change what a judge sees.
    files: String,
    /// The story's requirements. Empty without a plan.
    story: String,
}

impl About {
    pub(super) fn new(tree: &Tree, story: Option<&Story>) -> Self {
        Self { files: tree.content.clone(), story: story.map(Story::fingerprint).unwrap_or_default() }
    }
}

/// All answers about one session, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Answers {
    judge: Vec<(About, JudgeRecord)>,
    /// The cost of all questions to a judge, including dropped ones.
    spent_usd: f64,
    /// The commit that CI was asked about.
    commit: String,
    ci: CiFact,
}

impl Answers {
    /// Returns nothing unless the seal proves that we wrote it: an agent can write to this file.
    pub(super) fn read(root: &Path, top: &Path, session: &str) -> Self {
        let Ok(bytes) = read_regular(&folder(root, session).join(FILE), LARGEST) else { return Self::default() };
        let ours = Seal::from_environment(root, top)
            .and_then(|seal| serde_json::from_slice(seal.checked(&purpose(session), &bytes)?).ok());
        ours.unwrap_or_default()
    }

    pub(super) fn write(&self, root: &Path, session: &str, seal: &Seal) -> Result<(), DoneError> {
        let text = serde_json::to_vec(self).map_err(|error| DoneError::Session(error.into()))?;
        replace_for_readers(&folder(root, session).join(FILE), &seal.put_on(&purpose(session), &text)).map_err(DoneError::Session)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.judge.is_empty() && self.ci == CiFact::Off
    }

    /// The answer about this subject.
    pub(super) fn about(&self, about: &About) -> Option<&JudgeRecord> {
        self.judge.iter().find(|(seen, _)| seen == about).map(|(_, record)| record)
    }

    /// The most recent answer of a judge, about any subject.
    pub(super) fn last(&self) -> Option<&JudgeRecord> {
        self.judge.last().map(|(_, record)| record)
    }

    /// What remains of a budget.
    pub(super) fn left_of(&self, limit_usd: f64) -> f64 {
        limit_usd - self.spent_usd
    }

    /// Stores an answer. It includes the usage of earlier questions about the same subject.
    pub(super) fn keep(&mut self, about: About, record: JudgeRecord) {
        self.spent_usd += record.usage.cost_usd.filter(|cost| cost.is_finite()).unwrap_or(0.0);
        let record = if let Some(earlier) = self.about(&about) { record.after(earlier) } else { record };
        self.judge.retain(|(seen, _)| *seen != about);
        self.judge.push((about, record));
        self.judge.drain(..self.judge.len().saturating_sub(MOST));
    }

    pub(super) fn keep_ci(&mut self, commit: &Oid, said: CiFact) {
        (self.commit, self.ci) = (commit.as_str().to_owned(), said);
    }

    /// The answer that still applies. Unknown if the current files could not be read.
    pub(super) fn judge(&self, now: Option<&About>) -> JudgeFact {
        let Some((last, _)) = self.judge.last() else { return JudgeFact::Off };
        if let Some(record) = now.and_then(|now| self.about(now)) {
            return record.said.clone();
        }
        let what = if now.is_some_and(|now| now.files == last.files) {
            "the judge was asked about another story, or another version of this one"
        } else {
            "the files have changed since the judge saw them"
        };
        JudgeFact::Unknown { why: format!("{what}: run `verdone done --ask`") }
    }

    pub(super) fn ci(&self, head: Option<&Oid>) -> CiFact {
        if self.ci == CiFact::Off || head.is_some_and(|head| head.as_str() == self.commit) {
            return self.ci.clone();
        }
        CiFact::Unknown { why: "CI was not asked about the current commit: run `verdone done --ask`".to_owned() }
    }
}

/// The answers of external provers, if they still apply.
#[derive(Debug, Default)]
pub(super) struct ProverAnswers {
    pub(super) judge: JudgeFact,
    /// The record behind the fact, or else the most recent one.
    pub(super) record: Option<JudgeRecord>,
    pub(super) ci: CiFact,
}

pub(super) fn heard(ask: &ConditionRequest<'_>, git: &GitFact, story: Option<&Story>, ours: &[PathBuf]) -> ProverAnswers {
    let Ok(top) = find_git_top(ask.root) else { return ProverAnswers::default() };
    let answers = Answers::read(ask.root, &top, ask.session);
    let tree = if answers.is_empty() { None } else { look_at_tree(ask.root, &top, ours).ok() };
    let about = tree.as_ref().map(|tree| About::new(tree, story));
    let record = about.as_ref().and_then(|about| answers.about(about)).or_else(|| answers.last());
    let mut ci = answers.ci(tree.as_ref().and_then(|tree| tree.head.as_ref()));
    let uncommitted = git.uncommitted();
    if !uncommitted.is_empty() && (ask.config.done.wants_ci() || ci != CiFact::Off) {
        let why = format!("CI only sees committed files; commit {} first, then run `verdone done --ask`", listed(uncommitted));
        ci = CiFact::Unknown { why };
    }
    ProverAnswers { judge: answers.judge(about.as_ref()), record: record.cloned(), ci }
}

/// The folder of a session, created if necessary.
pub(super) fn make_folder(root: &Path, session: &str) -> io::Result<PathBuf> {
    make_sessions(&own_sessions(root))?;
    let folder = folder(root, session);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn folder(root: &Path, session: &str) -> PathBuf {
    own_sessions(root).join(encode_component(session))
}

/// Binds answers to one session.
fn purpose(session: &str) -> String {
    format!("asked about {session}")
}
