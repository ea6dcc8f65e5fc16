//! Messages of a worker about the plan of its loop.

use std::path::Path;

use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_text::shell_word::shell_argument;

use crate::project::shown;

pub(super) fn gone(story: &StoryId) -> String {
    format!(
        "Story {} was in the plan when the loop started, but is missing now. Restore it: only the user can remove stories, with a \
         new `verdone loop start`.",
        sanitise_line(story.as_str())
    )
}

pub(super) fn taken_back(stories: &[StoryId]) -> Option<String> {
    let names = stories.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", ");
    match stories.len() {
        0 => None,
        1 => Some(format!("story {names} was marked as done without verification; Verdone removed the mark.")),
        _ => Some(format!("these stories were marked as done without verification, and Verdone removed the marks: {names}.")),
    }
}

pub(super) fn not_run(story: &StoryId, plan: Option<&str>, root: &Path) -> String {
    format!(
        "story {story} was not open when the loop started, so its own commands run only after the user approves them with `{}`. \
         Until then only the gates verify it.",
        approve(plan, root)
    )
}

pub(super) fn unverifiable(story: &StoryId, plan: Option<&str>, root: &Path) -> String {
    format!(
        "Story {} cannot be verified: it was not open when the loop started, there is no gate, and its own commands run only after \
         the user approves them. Ask the user to read the plan and run `{}`.",
        sanitise_line(story.as_str()),
        approve(plan, root)
    )
}

fn approve(plan: Option<&str>, root: &Path) -> String {
    let plan = plan.map(|plan| shown(Path::new(plan), root)).unwrap_or_default();
    format!("verdone plan approve {}", shell_argument(&sanitise_line(&plan)))
}
