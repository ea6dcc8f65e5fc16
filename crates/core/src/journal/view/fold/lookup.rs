//! Finds the story, the attempt and the turn of an event, and creates them if they are new.

use jiff::Timestamp;

use super::super::{AttemptView, RunView, StoryView, TurnView};
use crate::agent::Usage;
use crate::base::id::StoryId;
use crate::journal::event::Place;

impl RunView {
    pub(super) fn story_at(&mut self, id: &StoryId) -> &mut StoryView {
        let known = self.index.get(id).copied();
        let at = known.unwrap_or(self.touched.len());
        if known.is_none() {
            self.index.insert(id.clone(), at);
            self.touched.push(StoryView {
                id: id.clone(),
                title: String::new(),
                number: 0,
                result: None,
                attempts: Vec::new(),
                reason: None,
                review: None,
                undone: false,
                regressions: 0,
                cost_usd: None,
                tokens: None,
                tokens_by_kind: None,
            });
        }
        &mut self.touched[at]
    }

    pub(super) fn attempt(&mut self, place: &Place, at: Timestamp) -> &mut AttemptView {
        let started_ms = self.active.ms();
        let attempts = &mut self.story_at(&place.story).attempts;
        let found = attempts.iter().rposition(|attempt| attempt.attempt == place.attempt && attempt.ended.is_none());
        let index = found.unwrap_or_else(|| {
            attempts.push(AttemptView {
                attempt: place.attempt,
                iteration: 0,
                started: at,
                ended: None,
                started_ms,
                ended_ms: None,
                red: None,
                red_runs: Vec::new(),
                turns: Vec::new(),
                verifications: Vec::new(),
                refused: None,
                rejection: None,
                reason: None,
                kept: None,
                commit: None,
                result: None,
                base: None,
                files: 0,
                evidence: None,
                previous: None,
                gates: None,
                noted: false,
                criteria: Vec::new(),
                guard: None,
            });
            attempts.len() - 1
        });
        &mut attempts[index]
    }

    pub(super) fn turn(&mut self, place: &Place, at: Timestamp) -> &mut TurnView {
        if let Some(current) = self.current.as_mut().filter(|current| current.story == place.story) {
            current.turn = place.turn;
        }
        let turns = &mut self.attempt(place, at).turns;
        let found = turns.iter().rposition(|turn| turn.turn == place.turn);
        let index = found.unwrap_or_else(|| {
            turns.push(TurnView {
                turn: place.turn,
                started: at,
                outcome: None,
                duration_ms: 0,
                usage: Usage::default(),
                prompt: None,
                output: None,
                leftovers: 0,
                session: None,
                claim: None,
            });
            turns.len() - 1
        });
        &mut turns[index]
    }
}
