//! Checks that proved earlier stories: a later attempt that changes tests or settings must not make them weaker.

use std::collections::BTreeSet;

use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_core::id::StoryId;
use verdone_core::verify::{ChangeKind, ProtectedChange, ProtectedKind};

/// Whether what proved earlier stories could be weaker now. A new test takes nothing away.
pub fn may_weaken_checks(protected: &[ProtectedChange]) -> bool {
    let is_new_test = |change: &ProtectedChange| change.change == ChangeKind::Added && change.kind == ProtectedKind::Test;
    protected.iter().any(|change| !change.released && !is_new_test(change))
}

/// The checks of stories that are done, each command once and without those of the story itself: they have to pass with the files from
/// before this attempt, too.
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
