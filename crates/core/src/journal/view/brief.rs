//! A view of a long journal with the sums of everything and the details of the last attempt only.

use super::RunView;
use crate::journal::event::light::{Light, kind, light};
use crate::journal::event::{Event, Recorded};

/// Takes the lines of a journal one by one. It gives up where a line is odd: then only the whole fold can tell what is wrong.
#[derive(Debug, Default)]
pub struct Brief {
    view: RunView,
    /// The lines of the attempt that may be the last.
    attempt: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Brief {
    /// Adds a line, its line end included.
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
            // Without what was forgotten it cannot be said what an undo took back.
            if kind(line)? == b"undone" {
                return None;
            }
            self.view.apply(&serde_json::from_slice::<Recorded>(line).ok()?);
            start = end;
        }
        Some(self.view)
    }

    /// Another attempt began: of the lines before it only the sums matter.
    fn add_up(&mut self) -> Option<()> {
        let (mut story, mut start) = (None, 0);
        for end in self.ends.drain(..) {
            let seen = light(&self.attempt[start..end])?;
            start = end;
            let Light::Counted(recorded) = seen else { continue };
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
