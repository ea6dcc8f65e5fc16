//! A view of a long journal with the sums of everything and the details of the last attempt only.

use super::RunView;
use crate::event::light::{Light, kind, light};
use crate::event::{Event, Recorded};

/// Takes the lines of a journal one by one. It gives up where a line is odd: then only the whole fold can tell what is wrong.
#[derive(Debug, Default)]
pub struct Brief {
    view: RunView,
    /// The lines of the attempt that may be the last.
    attempt: Vec<u8>,
}

impl Brief {
    /// Adds a line, its line end included.
    #[must_use]
    pub fn push(&mut self, line: &[u8]) -> Option<()> {
        if matches!(kind(line)?, b"story_selected" | b"run_started") {
            self.add_up()?;
        }
        self.attempt.extend_from_slice(line);
        Some(())
    }

    pub fn finish(mut self) -> Option<RunView> {
        for line in self.attempt.split_inclusive(|byte| *byte == b'\n') {
            // Without what was forgotten it cannot be said what an undo took back.
            if kind(line)? == b"undone" {
                return None;
            }
            self.view.apply(&serde_json::from_slice::<Recorded>(line).ok()?);
        }
        Some(self.view)
    }

    /// Another attempt began: of the lines before it only the sums matter.
    fn add_up(&mut self) -> Option<()> {
        let mut story = None;
        for line in self.attempt.split_inclusive(|byte| *byte == b'\n') {
            let Light::Counted(recorded) = light(line)? else { continue };
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
