//! A view of a long journal: totals of everything, but details of the last attempt only.

use super::RunView;
use crate::journal::event::partial::{PartialEvent, kind, parse_partial};
use crate::journal::event::{Event, Recorded};

/// Takes the lines of a journal one by one. Gives up if a line is unusual; then only the full fold can tell what is wrong.
#[derive(Debug, Default)]
pub struct Brief {
    view: RunView,
    /// The lines of what may be the last attempt.
    attempt: Vec<u8>,
    /// The end of each of those lines.
    ends: Vec<usize>,
}

impl Brief {
    /// Adds a line, including its line end.
    #[must_use]
    pub fn push(&mut self, line: &[u8]) -> Option<()> {
        if matches!(kind(line)?, b"story_selected" | b"run_started") {
            self.add_up()?;
        }
        self.attempt.extend_from_slice(line);
        self.ends.push(self.attempt.len());
        Some(())
    }

    pub fn finish(mut self) -> Option<RunView> {
        let mut start = 0;
        for end in self.ends {
            let line = &self.attempt[start..end];
            // What an undo removed cannot be determined without the details that were dropped.
            if kind(line)? == b"undone" {
                return None;
            }
            self.view.apply(&serde_json::from_slice::<Recorded>(line).ok()?);
            start = end;
        }
        Some(self.view)
    }

    /// Another attempt began, so only the totals of the previous lines matter.
    fn add_up(&mut self) -> Option<()> {
        let (mut story, mut start) = (None, 0);
        for end in self.ends.drain(..) {
            let seen = parse_partial(&self.attempt[start..end])?;
            start = end;
            let PartialEvent::Counted(recorded) = seen else { continue };
            self.view.apply(&recorded);
            if let Event::StorySelected { place, .. } = recorded.event {
                story = Some(place.story);
            }
        }
        if let Some(story) = story {
            self.view.forget_attempts(&story);
        }
        self.attempt.clear();
        Some(())
    }
}
