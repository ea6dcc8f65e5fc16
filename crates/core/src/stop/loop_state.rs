//! What a loop remembers from one Stop to the next: `loop.json` of its session. Kept out of the agent's reach by policy; what it
//! says about stories was seen by Verdone alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::check::CommandSpec;
use crate::done::TamperFact;
use crate::event::Checkpoint;
use crate::evidence::NotedCheck;
use crate::id::{Oid, StoryId};
use crate::tamper::{Alarm, GitSight, Response, TamperSettings};
use crate::verdict::Red;
use crate::verify::Proof;

use super::FrozenSettings;

/// A file of a later version is not ours to write.
pub const LOOP_VERSION: u32 = 1;
/// More alarms of one loop are not kept: the log has them all.
const MOST_ALARMS: usize = 50;

/// One loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    pub version: u32,
    pub status: LoopStatusName,
    pub task: String,
    /// The plan, absolute; nothing where the gates alone decide.
    #[serde(default)]
    pub plan: Option<String>,
    pub started_at: String,
    pub max_blocks: u32,
    #[serde(default)]
    pub blocks: u32,
    /// The tree when the loop began.
    pub base: Base,
    /// What judges, as it was when the loop began; nothing in loops of an earlier version.
    #[serde(default)]
    pub settings: Option<FrozenSettings>,
    /// The work tree, as a tree of git, when the loop began or a story was last verified: what changed since is compared with it.
    #[serde(default)]
    pub tree: Option<Oid>,
    /// The same when the loop began: what a story's own check runs is compared with that, too. Nothing in loops of an earlier version.
    #[serde(default)]
    pub start: Option<Oid>,
    /// How git saw the files when the loop began. Nothing in loops of an earlier version.
    #[serde(default)]
    pub git: Option<GitSight>,
    /// The work tree when the loop began, where stories are committed.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
    /// Stories that were open when the loop began, or came later, with what was frozen of each.
    #[serde(default)]
    pub open: BTreeMap<StoryId, Frozen>,
    /// Stories that were marked as done when the loop began: claimed, and left alone. Nothing in loops of an earlier version.
    #[serde(default)]
    pub done_before: Option<BTreeSet<StoryId>>,
    /// Stories that Verdone verified since.
    #[serde(default)]
    pub marked: Vec<Marked>,
    /// Stories whose mark was taken back because later work broke them: once each.
    #[serde(default)]
    pub reopened: Vec<StoryId>,
    /// What they were worth before: a story that was opened again is worth no more than that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_most: BTreeMap<StoryId, Proof>,
    /// What looked like tampering, in whatever story.
    #[serde(default)]
    pub alarms: Vec<LoopAlarm>,
    #[serde(default)]
    pub current: Option<Current>,
    /// Gates that were seen to fail since the loop began.
    #[serde(default)]
    pub gates_were_red: bool,
    #[serde(default)]
    pub same: Same,
    /// Stops that waited for a verification in vain, in a row.
    #[serde(default)]
    pub waits: u32,
    /// Why the session was let go last.
    #[serde(default)]
    pub let_go: Option<String>,
    #[serde(default)]
    pub incomplete: Option<Incomplete>,
    /// Own checks of stories that were seen to fail, for their evidence.
    #[serde(default)]
    pub red: BTreeMap<StoryId, Vec<NotedCheck>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatusName {
    Active,
    Complete,
    ReachedLimit,
    /// `verdone run` goes on with the plan.
    HandedOver,
    /// By the user.
    Stopped,
}

/// A story as it was when the loop began, or when the user accepted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub title: String,
    #[serde(default)]
    pub checks: Vec<CommandSpec>,
    /// The paths that it may change, as the plan says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// How complex the plan says it is: an agent may raise that, never lower it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// Its words, where they say something about tests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// What its markers said, where that is not just open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// It was not open when the loop began, and the user has not accepted it: nothing that it says runs or excuses anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unaccepted: bool,
}

/// An alarm, and the story that it was seen with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopAlarm {
    pub story: Option<StoryId>,
    pub alarm: Alarm,
}

/// A story that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    pub story: StoryId,
    pub verdict: Proof,
    pub tree: String,
    /// The work tree, as a tree of git, that proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Oid>,
    pub at: String,
    #[serde(default)]
    pub commit: Option<Oid>,
    /// Why there is no commit, or what is to be said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

/// The story at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    pub story: StoryId,
    /// The tree when it became the one at work.
    pub base: Base,
    /// Its own checks were seen to fail since.
    #[serde(default)]
    pub was_red: bool,
}

/// A tree that later ones are compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub key: String,
    /// The commit that HEAD was then: lines added since are the session's.
    pub head: Option<Oid>,
    /// The same before and after a commit.
    pub content: String,
}

/// The last tree and reasons, and how often in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Same {
    pub key: String,
    pub times: u32,
}

/// A session that ended with work open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    pub session: String,
    pub story: Option<String>,
    pub task: String,
    pub reason: String,
    pub at: String,
    /// A later session was told.
    #[serde(default)]
    pub told: bool,
}

impl LoopStatusName {
    pub fn words(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::ReachedLimit => "reached its limit",
            Self::HandedOver => "handed over to a run",
            Self::Stopped => "stopped",
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::ReachedLimit => "reached_limit",
            Self::HandedOver => "handed_over",
            Self::Stopped => "stopped",
        }
    }
}

impl LoopState {
    pub fn is_active(&self) -> bool {
        self.status == LoopStatusName::Active
    }

    /// Whether Verdone itself verified a story in this loop.
    pub fn has_marked(&self, story: &StoryId) -> bool {
        self.marked.iter().any(|marked| marked.story == *story)
    }

    /// Stories whose commands the user has not accepted.
    pub fn unaccepted(&self) -> impl Iterator<Item = &StoryId> {
        self.open.iter().filter(|(_, story)| story.unaccepted).map(|(id, _)| id)
    }

    /// What a story can be worth at most: never more than before, whoever opened it again.
    pub fn at_most(&self, story: &StoryId) -> Proof {
        let marked = self.marked.iter().find(|marked| marked.story == *story).map(|marked| marked.verdict);
        [self.at_most.get(story).copied(), marked].into_iter().flatten().min().unwrap_or(Proof::Verified)
    }

    /// Its checks before anybody worked on it: what passed then proves nothing later, although it may fail in between.
    pub fn saw_before(&mut self, story: &StoryId, red: Red) {
        if red == Red::Green {
            self.at_most.insert(story.clone(), Proof::Untested);
        }
    }

    /// Keeps alarms, each once.
    pub fn add_alarms(&mut self, story: Option<&StoryId>, alarms: &[Alarm]) {
        for alarm in alarms {
            let found = LoopAlarm { story: story.cloned(), alarm: alarm.clone() };
            if self.alarms.len() < MOST_ALARMS && !self.alarms.contains(&found) {
                self.alarms.push(found);
            }
        }
    }

    /// What a loop that has ended left to look at about a story.
    pub fn left_to_a_human(&self, settings: TamperSettings, story: Option<&StoryId>) -> TamperFact {
        let is_unproven = |marked: &Marked| Some(&marked.story) == story && marked.verdict == Proof::Untested;
        if !self.marked.iter().any(is_unproven) {
            return TamperFact::Nothing;
        }
        // What was refused was taken back, or the loop would not have ended so.
        let asks = |alarm: &Alarm| settings.gravest(std::slice::from_ref(alarm)).0 == Response::Ask;
        let alarms = self.alarms.iter().filter(|found| found.story.as_ref() == story).map(|found| found.alarm.clone());
        TamperFact::of(settings, &alarms.filter(asks).collect::<Vec<_>>())
    }

    /// Counts the tree and the reasons of this Stop; says how often in a row they were these.
    pub fn count_same(&mut self, tree: &str, reasons: &str) -> u32 {
        let key = format!("{tree} {reasons}");
        if self.same.key == key {
            self.same.times = self.same.times.saturating_add(1);
        } else {
            self.same = Same { key, times: 1 };
        }
        self.same.times
    }

    /// Verified stories, and those of them that nothing of their own proved.
    pub fn counted(&self) -> (usize, usize) {
        let unproven = self.marked.iter().filter(|marked| marked.verdict < Proof::Verified).count();
        (self.marked.len(), unproven)
    }
}
