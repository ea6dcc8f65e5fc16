//! Which of a run's commits may land: those before the first one that needs review or has a weaker proof than required.

use verdone_core::base::id::Oid;
use verdone_core::evidence::Evidence;
use verdone_core::evidence::audit::Trailers;
use verdone_core::verify::{Outcome, Proof};

use super::{LandError, LandRequest, Target, Waiting, choose, waiting};
use crate::git::Git;
use crate::run::review;
use crate::store::Store;

/// The first `count` commits of a run's branch may land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landable {
    pub count: usize,
    /// Why no more commits may land.
    pub held_back: Option<HeldBack>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    pub reason: String,
    pub hint: String,
}

impl Landable {
    /// Refuses a landing without any commit.
    pub(super) fn or_refuse(self) -> Result<Self, LandError> {
        match self {
            Self { count: 0, held_back: Some(HeldBack { reason, hint }) } => Err(LandError::Refused { reason, hint: Some(hint) }),
            landable => Ok(landable),
        }
    }
}

/// What `land` would bring over, by branch. With several branches, lists all of them. With one, returns the same errors as `land`.
pub fn preview(request: &LandRequest<'_>) -> Result<Vec<(Waiting, Landable)>, LandError> {
    let git = Git::open(&request.project.root)?;
    if request.branch.is_some() {
        choose(request)?;
    }
    let mut found = Vec::new();
    let is_asked_for = |waiting: &Waiting| request.branch.is_none_or(|branch| waiting.branch == branch);
    for waiting in waiting(request.project)?.into_iter().filter(is_asked_for) {
        let target = Target::find(&git, waiting.target.as_deref())?.ok_or(LandError::Nothing)?;
        let commits = git.commits_to_land(&waiting.tip, &target.tip)?;
        let landable = landable(&git, &Store::new(&request.project.root), &commits, request.proof)?;
        found.push((waiting, landable));
    }
    if let [(_, landable)] = &found[..] {
        landable.clone().or_refuse()?;
    }
    Ok(found)
}

pub(super) fn landable(git: &Git, store: &Store, commits: &[Oid], wanted: Option<Proof>) -> Result<Landable, LandError> {
    let reviews = review::pending(store)?;
    for (count, commit) in commits.iter().enumerate() {
        let waits = reviews.iter().find(|review| review.work == *commit);
        let stop = match (waits, wanted) {
            (Some(review), _) => Some((format!("{} needs a review first", review.place.story), "verdone review".to_owned())),
            (None, Some(wanted)) => {
                weaker(git, commit, wanted)?.map(|why| (why, "verdone land without --proof lands it anyway".to_owned()))
            }
            (None, None) => None,
        };
        if let Some((reason, hint)) = stop {
            return Ok(Landable { count, held_back: Some(HeldBack { reason, hint }) });
        }
    }
    Ok(Landable { count: commits.len(), held_back: None })
}

/// Why a story's commit is not proven well enough. Work accepted by a person always is. Without evidence nothing is proven: anyone can
/// write a proof into a commit message.
fn weaker(git: &Git, commit: &Oid, wanted: Proof) -> Result<Option<String>, LandError> {
    let note = git.read_note(commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
    let Some(evidence) = note else {
        let story = Trailers::read(&git.message(commit)?).story;
        return Ok(story.map(|story| format!("{story} has no readable evidence, but --proof asks for {wanted}")));
    };
    let weak = Some(evidence).filter(|evidence| evidence.outcome != Outcome::Accepted && evidence.proof < wanted);
    Ok(weak.map(|evidence| format!("{} is {}, but --proof asks for {wanted}", evidence.story, evidence.proof)))
}
