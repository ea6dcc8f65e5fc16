//! Checks of other stories: an attempt that changes tests or settings must not weaken the proof of earlier or later stories.

use std::collections::BTreeSet;

use verdone_core::base::id::StoryId;
use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_core::verify::{ChangeKind, OtherCheck, ProtectedChange, command_names};

use crate::verify::checks::seen_from;

/// Whether checks that proved earlier stories could be weaker now. A new test weakens nothing.
pub fn may_weaken_checks(protected: &[ProtectedChange]) -> bool {
    let is_new_test = |change: &ProtectedChange| change.change == ChangeKind::Added && change.kind.is_test();
    protected.iter().any(|change| !change.released && !is_new_test(change))
}

/// The checks of done stories, each command once and without the story's own. They must also pass with the files from before this attempt.
pub fn earlier_checks<'a>(own: &[Check], done: impl Iterator<Item = (&'a StoryId, Vec<Check>)>) -> Vec<Check> {
    let mut commands: BTreeSet<String> = own.iter().map(|check| check.command.display()).collect();
    let mut checks = Vec::new();
    for (story, of_story) in done {
        for check in of_story {
            if commands.insert(check.command.display()) {
                let name = format!("{story}: {}", check.name);
                checks.push(Check { name, origin: CheckOrigin::Gate(Stage::Correctness), ..check });
            }
        }
    }
    checks
}

/// Changed files that are named by checks of other open stories. `folder` is the project's path below the top of the repository.
pub fn other_checks<'a>(
    protected: &[ProtectedChange],
    folder: &str,
    open: impl Iterator<Item = (&'a StoryId, Vec<Check>)>,
) -> Vec<OtherCheck> {
    let open: Vec<(&StoryId, Vec<Check>)> = open.collect();
    let mut found = Vec::new();
    for change in protected.iter().filter(|change| !change.released && change.change != ChangeKind::Added) {
        let path = seen_from(folder, &change.path);
        let names = |checks: &[Check]| checks.iter().any(|check| command_names(&check.command, &path));
        let named_by = open.iter().filter(|(_, checks)| names(checks));
        found.extend(named_by.map(|(story, _)| OtherCheck { path: change.path.clone(), story: (*story).clone() }));
    }
    found
}
