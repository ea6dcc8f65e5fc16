//! Folders that no setting shows: those of hidden checks, which are read-only for the check that they are for, and those of runs in
//! other checkouts.

use super::draft::Draft;
use super::{Hidden, ViewKind};
use crate::workspace::plan::Mount;

/// After everything else: no setting shows them.
pub(super) fn hide(draft: &mut Draft<'_>) {
    if draft.request.kind == ViewKind::Script {
        return;
    }
    let Hidden { all, shown } = draft.request.hidden;
    let is_around = |folder: &&std::path::PathBuf| shown.is_some_and(|shown| shown.starts_with(folder) && shown != *folder);
    for folder in all.iter().filter(is_around) {
        // What is shown needs a place in it.
        draft.mounts.push(Mount::Scratch { at: folder.clone() });
    }
    if let Some(shown) = shown {
        draft.bind(shown, shown, false);
    }
    let others = all.iter().filter(|folder| !is_around(folder) && shown != Some(folder.as_path()));
    draft.mounts.extend(others.map(|folder| Mount::Mask { at: folder.clone() }));
}
