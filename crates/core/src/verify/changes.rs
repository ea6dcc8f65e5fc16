//! Converts the changed protected files of a tree plan to those of a job.

use super::job::{AutorunChange, ChangeKind, ProtectedChange, ProtectedKind};
use crate::protect::{self, Group, ProtectionReason, TreePlan};

/// The changed protected files, and the changed files that later run outside the workspace.
pub fn changes_of(plan: &TreePlan) -> (Vec<ProtectedChange>, Vec<AutorunChange>) {
    let protected = plan.protected_changes.iter().flat_map(one).collect();
    let autorun = plan.protected_changes.iter().filter(|change| change.autorun);
    let autorun = autorun.map(|change| AutorunChange { path: change.path.clone(), released: change.released.is_some() });
    (protected, autorun.collect())
}

/// A rename becomes a deletion and an addition.
fn one(change: &protect::ProtectedChange) -> Vec<ProtectedChange> {
    let Some(kind) = ProtectedKind::from_reason(&change.why) else { return Vec::new() };
    let is = |path: &str, how: ChangeKind| ProtectedChange {
        path: path.to_owned(),
        kind,
        change: how,
        released: change.released.is_some(),
    };
    match (change.kind, &change.renamed_from) {
        (protect::ChangeKind::Renamed, Some(old)) => vec![is(old, ChangeKind::Deleted), is(&change.path, ChangeKind::Added)],
        (protect::ChangeKind::Added, _) => vec![is(&change.path, ChangeKind::Added)],
        (protect::ChangeKind::Deleted, _) => vec![is(&change.path, ChangeKind::Deleted)],
        (protect::ChangeKind::Changed | protect::ChangeKind::Mode | protect::ChangeKind::Renamed, _) => {
            vec![is(&change.path, ChangeKind::Modified)]
        }
    }
}

impl ProtectedKind {
    /// `None` for work, which is only listed because it runs automatically later.
    pub fn from_reason(why: &ProtectionReason) -> Option<Self> {
        match why {
            ProtectionReason::Convention { group: Group::Tests, .. } | ProtectionReason::NewInTestFolder { .. } => {
                Some(ProtectedKind::Test)
            }
            ProtectionReason::InlineTests => Some(ProtectedKind::InlineTest),
            // The user's own patterns name the files that make up the checks.
            ProtectionReason::Setting { list, .. } if list == "files" => Some(ProtectedKind::Test),
            ProtectionReason::CheckScript => Some(ProtectedKind::CheckScript),
            ProtectionReason::Convention { group: Group::Ci, .. } => Some(ProtectedKind::Ci),
            ProtectionReason::Convention { group: Group::Configuration, .. }
            | ProtectionReason::Autorun { .. }
            | ProtectionReason::Manifest
            | ProtectionReason::Keys { .. }
            | ProtectionReason::NamedIn { .. }
            | ProtectionReason::Shadows { .. }
            | ProtectionReason::NewAtRoot
            | ProtectionReason::Unreadable { .. }
            | ProtectionReason::InTheWay { .. } => Some(ProtectedKind::Config),
            ProtectionReason::Setting { .. }
            | ProtectionReason::WorkConvention { .. }
            | ProtectionReason::Subject
            | ProtectionReason::Unlisted => None,
        }
    }
}
