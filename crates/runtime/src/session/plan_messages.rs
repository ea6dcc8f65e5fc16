//! Messages of a worker about the plan of its loop.

use std::path::Path;

use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;

use crate::project::shown;

pub(super) fn gone(story: &StoryId) -> String {
    format!(
        "Story {} was in the plan when the loop was started, and is not any more. Put it back: only the user takes stories out, with a \
         new `verdone loop start`.",
        sanitise_line(story.as_str())
    )
}

pub(super) fn taken_back(stories: &[StoryId]) -> Option<String> {
    let names = stories.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", ");
    match stories.len() {
        0 => None,
        1 => Some(format!("story {names} was marked as done without a verification; Verdone took the mark back.")),
        _ => Some(format!("these stories were marked as done without a verification, and Verdone took the marks back: {names}.")),
    }
}

pub(super) fn not_run(story: &StoryId, plan: Option<&str>, root: &Path) -> String {
    format!(
        "story {story} was not open when the loop began, so its own commands are not run before the user accepts them with `{}`. \
         Until then the gates alone decide about it.",
        approve(plan, root)
    )
}

pub(super) fn unverifiable(story: &StoryId, plan: Option<&str>, root: &Path) -> String {
    format!(
        "Nothing verifies story {}: it was not open when the loop began, there is no gate, and its own commands are not run before the \
         user accepts them. Ask the user to read the plan and to run `{}`.",
        sanitise_line(story.as_str()),
        approve(plan, root)
    )
}

fn approve(plan: Option<&str>, root: &Path) -> String {
    let plan = plan.map(|plan| shown(Path::new(plan), root)).unwrap_or_default();
    format!("verdone plan approve {}", sanitise_line(&plan))
}
