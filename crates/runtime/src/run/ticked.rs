//! Boxes that are ticked when a run starts: which of them have evidence, in a journal here or in a note on a commit.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::evidence::audit::GitNote;
use verdone_core::evidence::{Evidence, FETCH_NOTES};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::StoryResult;
use verdone_plan::{Plan, Status, Story};
use verdone_text::shell_word::shell_argument;

use super::RunError;
use crate::base::finding::Finding;
use crate::git::{Git, GitError};
use crate::store::{Store, proven};

/// The results of all ticked stories that have evidence. Journals know more; notes also travel to other clones.
pub fn proven_stories(
    git: &Git,
    store: &Store,
    (name, plan): (&str, &Plan),
    tip: &Oid,
) -> Result<BTreeMap<StoryId, StoryResult>, RunError> {
    let mut known = proven(store, name)?;
    let without: Vec<&Story> = ticked(plan).filter(|story| !has_evidence(&known, &story.id)).collect();
    if !without.is_empty() {
        known.extend(noted(git, &without, tip)?);
    }
    Ok(known)
}

/// Reports ticked boxes without evidence, which are only claims. Returns the stories that were checked.
pub(super) fn announce(
    known: &BTreeMap<StoryId, StoryResult>,
    plan: &Plan,
    git: &Git,
    reporter: &mut dyn Reporter,
) -> Result<BTreeSet<StoryId>, GitError> {
    let claimed: Vec<&str> =
        ticked(plan).map(|story| &story.id).filter(|id| !has_evidence(known, id)).map(StoryId::as_str).collect();
    if let Some(first) = claimed.first() {
        let more = if claimed.len() > 1 { format!(" and {} more", claimed.len() - 1) } else { String::new() };
        let fetch = if git.has_evidence_notes()? {
            String::new()
        } else {
            format!("; if they were verified in another clone, get its evidence: {FETCH_NOTES}")
        };
        let text = format!("ticked without evidence (claimed, not verified): {first}{more}{fetch}");
        reporter.report(Update::Notice { text: &text });
    }
    let is_checked = |id: &&StoryId| known.get(*id).is_some_and(|result| result.is_checked());
    Ok(ticked(plan).map(|story| &story.id).filter(is_checked).cloned().collect())
}

fn ticked(plan: &Plan) -> impl Iterator<Item = &Story> {
    plan.stories.iter().filter(|story| story.status == Status::Done)
}

fn has_evidence(known: &BTreeMap<StoryId, StoryResult>, id: &StoryId) -> bool {
    known.get(id).is_some_and(|result| result.is_taken())
}

/// The results in notes on commits in the history of `tip`.
fn noted(git: &Git, stories: &[&Story], tip: &Oid) -> Result<BTreeMap<StoryId, StoryResult>, GitError> {
    let all = evidence_in_history(git, tip)?;
    let result = |story: &&Story| {
        let (_, evidence) = all.iter().find(|(_, evidence)| is_about(evidence, story))?;
        Some((story.id.clone(), evidence.result()))
    };
    Ok(stories.iter().filter_map(result).collect())
}

/// The newest commit in the history of `tip` that has this story, with its evidence.
pub(super) fn commit_of(git: &Git, story: &Story, tip: &Oid) -> Result<Option<(Oid, Evidence)>, GitError> {
    Ok(evidence_in_history(git, tip)?.into_iter().find(|(_, evidence)| is_about(evidence, story)))
}

/// A note does not name its plan, so the title has to be the same, too.
fn is_about(evidence: &Evidence, story: &Story) -> bool {
    story.id == evidence.story && story.title == evidence.title
}

/// The valid evidence of stories that count as done, newest first, without reverted commits.
fn evidence_in_history(git: &Git, tip: &Oid) -> Result<Vec<(Oid, Evidence)>, GitError> {
    let mut notes = git.evidence_notes()?;
    if notes.is_empty() {
        return Ok(Vec::new());
    }
    let reverted = git.reverted_in(tip)?;
    let mut found = Vec::new();
    for commit in git.commits_reachable_from(tip)? {
        let Some(GitNote::Bytes(bytes)) = notes.remove(&commit.id) else { continue };
        let Ok(evidence) = Evidence::from_note(&bytes) else { continue };
        let is_valid = evidence.result().is_taken() && evidence.overclaim().is_none() && evidence.tree == commit.tree;
        if is_valid && !reverted.contains(&commit.id) {
            found.push((commit.id, evidence));
        }
    }
    Ok(found)
}

/// The story that was asked for is ticked in the plan.
pub(super) fn already_done(story: &StoryId, plan: &str) -> Finding {
    let undo = format!("or untick it in {plan}");
    let again = format!("to run it again: verdone undo {}", shell_argument(&sanitise_line(story.as_str())));
    Finding::bad("story", format!("{story} is already done in {plan}"), [&again, &undo])
}
