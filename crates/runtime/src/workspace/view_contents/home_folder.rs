//! The home folder: copy-on-write or read-only.

use std::fs;
use std::path::Path;

use verdone_core::config::HomeMode;

use super::ViewKind;
use super::draft::Draft;
use super::prepare::Step;
use crate::workspace::paths::expand;

pub(super) fn show(draft: &mut Draft<'_>) {
    let request = draft.request;
    let Some(home) = draft.system.home.clone().filter(|home| home.is_dir() && home.parent().is_some()) else {
        draft.note("There is no home folder to show.".to_owned());
        return;
    };
    if home.starts_with(request.at) {
        draft.note(format!("The home folder {} is inside the project, so only its committed files are seen.", home.display()));
        return;
    }
    let private = request.workspace.home == HomeMode::CopyOnWrite && request.kind != ViewKind::Read;
    if private && !request.abilities.overlay {
        draft.note("The home folder is read-only in the workspace: copy-on-write is not possible here.".to_owned());
    }
    if !private || !request.abilities.overlay {
        // Anything that no mount covers is already read-only.
        if draft.is_covered(&home) {
            draft.bind(&home, &home, false);
        }
    } else if draft.has_mount_below(&home) {
        one_by_one(draft, &home);
    } else {
        draft.overlay(&home, &home);
    }
}

/// Handles mounts below HOME, which rule out a single overlay: an empty folder replaces HOME, and each entry gets its own overlay
/// or copy in it.
fn one_by_one(draft: &mut Draft<'_>, home: &Path) {
    let base = draft.request.scratch.join("home");
    draft.steps.push(Step::FolderLike { path: base.clone(), like: home.to_owned() });
    draft.bind(&base, home, true);
    let mut entries: Vec<_> = fs::read_dir(home).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            // If we cannot read it, no process inside can.
            if fs::read_dir(&path).is_err() {
                continue;
            }
            if draft.has_mount_below(&path) {
                draft.note(format!("{} is read-only in the workspace: something is mounted below it.", path.display()));
                draft.bind(&path, &path, false);
            } else {
                draft.overlay(&path, &path);
            }
        } else if meta.is_symlink() || (meta.is_file() && meta.len() <= draft.request.workspace.copy_file_bytes) {
            draft.steps.push(Step::CopyFile { from: path, to: base.clone(), path: name.into() });
        } else if meta.is_file() {
            draft.bind(&path, &path, false);
        }
    }
}

/// `workspace.writable`: writes there are meant to persist.
pub(super) fn write_through(draft: &mut Draft<'_>) {
    let request = draft.request;
    if request.kind == ViewKind::Read {
        return;
    }
    for text in &request.workspace.writable {
        let Some(path) = expand(text, draft.system.home.as_deref(), request.root) else { continue };
        let Ok(path) = fs::canonicalize(&path) else {
            draft.note(format!("{text} in `workspace.writable` does not exist."));
            continue;
        };
        let home = draft.system.home.as_deref();
        let around =
            [Some(request.checkout), Some(request.state), home].into_iter().flatten().any(|place| place.starts_with(&path));
        if around || path.starts_with(request.state) || path.starts_with(request.checkout) {
            draft.note(format!(
                "{text} in `workspace.writable` is ignored: it contains the home folder or overlaps the project or workspaces."
            ));
            continue;
        }
        draft.bind(&path, &path, true);
    }
}
