//! Folders that no setting can show: those of hidden checks, each visible read-only to its own check, and those of runs in other
//! checkouts.

use super::draft::Draft;
use super::{Hidden, ViewKind};
use crate::launcher::Mount;

/// Runs after everything else, so that no setting can show them.
pub(super) fn hide(draft: &mut Draft<'_>) {
    if draft.request.kind == ViewKind::Script {
        return;
    }
    let Hidden { all, shown } = draft.request.hidden;
    let is_around = |folder: &&std::path::PathBuf| shown.is_some_and(|shown| shown.starts_with(folder) && shown != *folder);
    for folder in all.iter().filter(is_around) {
        // The visible folder needs a mount point inside.
        draft.mounts.push(Mount::Scratch { at: folder.clone() });
    }
    if let Some(shown) = shown {
        draft.bind(shown, shown, false);
    }
    let others = all.iter().filter(|folder| !is_around(folder) && shown != Some(folder.as_path()));
    draft.mounts.extend(others.map(|folder| Mount::Mask { at: folder.clone() }));
}
