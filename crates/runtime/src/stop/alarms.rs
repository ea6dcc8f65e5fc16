//! Tamper alarms of a loop: what was green is compared with the tree that the story began with. Done by the worker: it writes a tree
//! of git, and an answer from a known verdict must not pay for it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::check::{Check, CheckOrigin};
use verdone_core::done::TamperFact;
use verdone_core::id::{Oid, StoryId};
use verdone_core::scope::below;
use verdone_core::stop::{BlockCause, LoopState, Open};
use verdone_core::tamper::{Alarm, AlarmKind, GitSight, Response, Severity, TamperSettings, expects_change};

use crate::git::{Git, GitError};
use crate::known_files::KnownFiles;
use crate::signal::Signals;
use crate::tamper::{Between, between};

use super::look::Looker;
use super::tree::not_work;
use super::verify::Ask;
use super::{Gate, StopError, tree};

/// What a story's work is compared with, and what the story says about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AlarmAsk {
    pub(super) base: Oid,
    pub(super) scope: Vec<String>,
    pub(super) words: String,
    /// Checks that proved earlier stories: what they run is not for this one to change.
    pub(super) earlier: Vec<Check>,
    pub(super) settings: TamperSettings,
    /// How git saw the files when the loop began.
    #[serde(default)]
    pub(super) git: Option<GitSight>,
}

impl AlarmAsk {
    /// What was done to how git sees the files since the loop began.
    pub(super) fn git_alarms(&self, ask: &Ask, now: &GitSight) -> Vec<Alarm> {
        let folder =
            ask.root.strip_prefix(&ask.top).map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned());
        let scope = below(&self.scope, &folder);
        let mut alarms = self.git.as_ref().map(|before| now.alarms_since(before)).unwrap_or_default();
        for alarm in alarms.iter_mut().filter(|alarm| now.inside.contains_key(&alarm.path) && expects_change(&scope, &alarm.path))
        {
            (alarm.severity, alarm.expected) = (Severity::Low, true);
        }
        alarms
    }

    pub(super) fn look(&self, ask: &Ask, git: &Git, now: &Oid) -> Result<Vec<Alarm>, GitError> {
        if *now == self.base {
            return Ok(Vec::new());
        }
        let (own, mut gates): (Vec<Check>, Vec<Check>) = ask
            .checks
            .iter()
            .filter(|check| !self.earlier.contains(check))
            .cloned()
            .partition(|check| check.origin == CheckOrigin::Story);
        gates.extend(self.earlier.iter().cloned());
        between(&Between {
            git,
            root: &ask.root,
            base: &self.base,
            tree: now,
            gates: &gates,
            own: &own,
            ours: &not_work(git, &ask.root, &ask.top, &ask.ours),
            scope: &self.scope,
            words: &self.words,
        })
    }
}

/// What the gate of an active loop would say now about the work since it last verified something. What cannot be looked at is in doubt.
pub(crate) fn tampering(gate: &Gate<'_>, state: &LoopState, ours: Vec<PathBuf>, story: Option<&StoryId>) -> TamperFact {
    let config = state.settings.as_ref().map_or(gate.config, |frozen| &frozen.config);
    let gate = Gate::of(gate.root, gate.top, config, None, gate.session);
    let (state, signals) = (&mut state.clone(), &Signals::none());
    let (other, notes, alarms) = (Vec::new(), Vec::new(), Vec::new());
    let looker = Looker { gate: &gate, state, other, notes, alarms, renew: false, signals };
    let Some(asked) = looker.alarm_ask(story) else { return TamperFact::Nothing };
    let checks = looker.with_gates(story.map(|story| looker.own_checks(story)).unwrap_or_default());
    let look = || -> Result<Vec<Alarm>, StopError> {
        let (tree, git) = (tree::look(gate.root, gate.top, &ours)?, tree::git(gate.top)?);
        let ask = looker.ask(&tree, &checks, ours);
        let now = git.tree_now(ask.largest_file, &mut KnownFiles::of(&ask.root, &ask.top))?.tree;
        let mut alarms = asked.git_alarms(&ask, &sight_of(&ask)?);
        alarms.extend(asked.look(&ask, &git, &now)?);
        Ok(alarms)
    };
    match look() {
        Ok(alarms) => TamperFact::of(config.tamper, &alarms),
        Err(error) => TamperFact::Doubted { why: format!("what changed since the loop began cannot be compared: {error}") },
    }
}

impl Looker<'_> {
    /// What changed is compared with the tree that was verified last, or that the loop began with.
    pub(super) fn alarm_ask(&self, story: Option<&StoryId>) -> Option<AlarmAsk> {
        let base = self.state.tree.clone()?;
        let frozen = story.and_then(|story| self.state.open.get(story)).cloned().unwrap_or_default();
        let own = story.map(|story| self.own_checks(story)).unwrap_or_default();
        let earlier = self.checks_of_marked().into_iter().filter(|check| !own.contains(check)).collect();
        Some(AlarmAsk {
            base,
            scope: frozen.scope,
            words: frozen.words,
            earlier,
            settings: self.gate.config.tamper,
            git: self.state.git.clone(),
        })
    }

    pub(super) fn response(&self, alarms: &[Alarm]) -> Response {
        self.gate.config.tamper.gravest(alarms).0
    }

    /// Keeps the alarms and tells them: what looks like tampering holds the session, what a human should look at proves nothing.
    pub(super) fn heed(&mut self, open: &mut Open, story: Option<&StoryId>, alarms: &[Alarm]) -> Response {
        self.state.add_alarms(story, alarms);
        self.alarms.extend(alarms.iter().map(Alarm::sentence));
        let response = self.response(alarms);
        let why = self.gate.config.tamper.refusal(alarms).unwrap_or_default();
        match response {
            Response::Report => {}
            Response::Ask => self.notes.push(format!("{why}. Until then the work counts as unproven at best.")),
            Response::Refuse => {
                let user = "If it is meant, the user names it in the plan and starts the loop anew";
                open.missing.insert(0, (BlockCause::Tamper, format!("The checks pass, but {why}. {user}.")));
            }
        }
        response
    }
}

/// How git sees the files now.
pub(super) fn sight(root: &Path, top: &Path, ours: &[PathBuf]) -> Result<GitSight, StopError> {
    let git = tree::git(top)?;
    Ok(git.sight(&not_work(&git, root, top, ours))?)
}

pub(super) fn sight_of(ask: &Ask) -> Result<GitSight, StopError> {
    sight(&ask.root, &ask.top, &ask.ours)
}

/// What cannot be looked at is an alarm, too.
pub(super) fn unread(why: &str) -> Alarm {
    Alarm {
        kind: AlarmKind::Unread,
        severity: Severity::Medium,
        path: String::new(),
        line: None,
        text: format!("what changed since the story began: {why}"),
        expected: false,
    }
}
