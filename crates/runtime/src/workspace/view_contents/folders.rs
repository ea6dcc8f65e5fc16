//! Ignored folders and files of the checkout. Builds need them, but writes to them do not reach the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::config::FolderMode;

use super::copy::is_larger;
use super::draft::{Draft, is_clear, is_real_folder, key};
use super::prepare::Step;
use super::{BuildFolders, Tree, ViewKind, submodules};
use crate::launcher::Mount;
use crate::project::HOME;

/// The largest folder to copy because it cannot be overlaid. A folder with the mode `copy` may be larger.
const MOST_COPIED: u64 = 2 * 1024 * 1024 * 1024;
/// A dependency folder in which tools also keep caches, and the names of these caches.
const WITH_CACHES: &str = "node_modules";
const CACHES_IN_IT: [&str; 3] = [".cache", ".vite", ".vitest"];
/// How many names to list in one note.
const NAMED: usize = 5;

/// Shows each folder in its mode.
pub(super) fn show(draft: &mut Draft<'_>) {
    let chosen = chosen(draft);
    let mut mounted: Vec<PathBuf> = Vec::new();
    for (path, mode) in chosen {
        let nested = mounted.iter().any(|folder| path.starts_with(folder));
        let place = draft.request.at.join(&path);
        let left_out = mode == FolderMode::Cache && matches!(draft.request.build_folders, BuildFolders::Absent);
        if left_out || mode == FolderMode::None {
            if nested {
                draft.mounts.push(Mount::Scratch { at: place });
            }
            continue;
        }
        if !can_be_shown(draft, &path) {
            continue;
        }
        let source = draft.request.checkout.join(&path);
        let script = draft.request.kind == ViewKind::Script;
        let mode = if script { FolderMode::ReadOnly } else { degraded(draft, &path, &source, mode) };
        if mode == FolderMode::Copy && !nested {
            copy_folder(draft, &path, source);
        } else if nested || (is_free(draft, &path) && draft.mount_point(&place)) {
            mount_folder(draft, &path, &place, mode);
            if mode != FolderMode::Copy {
                submodules::show_git_file(draft, &path);
            }
            if matches!(mode, FolderMode::Overlay | FolderMode::Cache) {
                let above = draft.request.root.strip_prefix(draft.request.checkout).unwrap_or(Path::new(""));
                draft.mount_points.push(path.strip_prefix(above).unwrap_or(&path).to_owned());
            }
        } else {
            continue;
        }
        mounted.push(path);
    }
    copy_files(draft);
}

fn mount_folder(draft: &mut Draft<'_>, path: &Path, place: &Path, mode: FolderMode) {
    let source = draft.request.checkout.join(path);
    match mode {
        FolderMode::Overlay => overlay_dependencies(draft, path, &source, place),
        FolderMode::Cache => overlay_build_folder(draft, path, source, place),
        FolderMode::ReadOnly => draft.bind(&source, place, false),
        FolderMode::Copy => {
            let copy = draft.request.scratch.join("copies").join(key(path));
            draft.steps.push(Step::CopyFolder { from: source, to: copy.clone(), except: Vec::new() });
            draft.bind(&copy, place, true);
            draft.written_apart.push((path.to_owned(), copy));
        }
        FolderMode::None => {}
    }
}

fn overlay_dependencies(draft: &mut Draft<'_>, path: &Path, source: &Path, place: &Path) {
    let upper = draft.overlay_over(vec![source.to_owned()], place);
    if matches!(draft.request.build_folders, BuildFolders::Absent) && source.ends_with(WITH_CACHES) {
        let there = CACHES_IN_IT.iter().filter(|name| is_real_folder(&source.join(name)));
        draft.steps.extend(there.map(|name| Step::Opaque { path: upper.join(name) }));
    }
    draft.written_apart.push((path.to_owned(), upper));
}

fn overlay_build_folder(draft: &mut Draft<'_>, path: &Path, source: PathBuf, place: &Path) {
    let kept = match draft.request.build_folders {
        BuildFolders::Kept(layers) => layers.get(path).cloned(),
        BuildFolders::Checkout | BuildFolders::Absent => None,
    };
    let upper = draft.overlay_over(kept.into_iter().chain([source]).collect(), place);
    draft.build_folders.push((path.to_owned(), upper.clone()));
    draft.written_apart.push((path.to_owned(), upper));
}

/// Copies into the tree itself, so that it is an ordinary folder. A mount point could not be removed or renamed.
fn copy_folder(draft: &mut Draft<'_>, path: &Path, source: PathBuf) {
    let (Some(to), files) = (written(&draft.request.tree), draft.request.tree.files()) else { return };
    // Existing content is committed, or was copied for an earlier session.
    if is_filled(&files.join(path)) {
        return;
    }
    if !is_clear(files, path) || !is_clear(&to, path) {
        draft.note(format!("{} is not shown: something else is in its place in the workspace.", path.display()));
        return;
    }
    draft.steps.push(Step::MountPoint { tree: to.clone(), path: path.parent().unwrap_or(Path::new("")).to_owned() });
    draft.steps.push(Step::CopyFolder { from: source, to: to.join(path), except: Vec::new() });
}

/// The folder outside that receives the writes to the tree.
fn written(tree: &Tree) -> Option<PathBuf> {
    match tree {
        Tree::Writable(folder) => Some(folder.clone()),
        Tree::Overlay { upper, .. } => Some(upper.clone()),
        Tree::ReadOnly(_) => None,
    }
}

/// The best possible mode, with a note if it is not the requested one.
fn degraded(draft: &mut Draft<'_>, path: &Path, source: &Path, mode: FolderMode) -> FolderMode {
    let name = path.display();
    if !matches!(mode, FolderMode::Overlay | FolderMode::Cache) {
        return mode;
    }
    if draft.request.abilities.overlay {
        if draft.has_mount_below(source) {
            draft.note(format!("{name} is read-only in the workspace: something is mounted below it."));
            return FolderMode::ReadOnly;
        }
        return mode;
    }
    if is_larger(source, MOST_COPIED) {
        draft.note(format!(
            "{name} is read-only in the workspace: copy-on-write is not possible here, and it is too large to copy by default \
             (to copy it anyway, set it to \"copy\" in `workspace.folders`)."
        ));
        return FolderMode::ReadOnly;
    }
    draft.note(format!("{name} is copied: copy-on-write is not possible here."));
    FolderMode::Copy
}

/// Without mounts: copies into the tree, whatever the mode.
pub(super) fn copy_in(draft: &mut Draft<'_>) {
    let mut copied: Vec<PathBuf> = Vec::new();
    for (path, mode) in chosen(draft) {
        let nested = copied.iter().any(|folder| path.starts_with(folder));
        let left_out = mode == FolderMode::Cache && matches!(draft.request.build_folders, BuildFolders::Absent);
        if left_out || mode == FolderMode::None || nested || !can_be_shown(draft, &path) {
            continue;
        }
        let source = draft.request.checkout.join(&path);
        if mode != FolderMode::Copy && is_larger(&source, MOST_COPIED) {
            draft.note(format!("{} is missing in the workspace: it is too large to be copied.", path.display()));
            continue;
        }
        copy_folder(draft, &path, source);
        copied.push(path);
    }
    copy_files(draft);
}

/// Ignored folders and those named in the settings, by path. A folder comes before its subfolders.
fn chosen(draft: &mut Draft<'_>) -> BTreeMap<PathBuf, FolderMode> {
    let request = draft.request;
    let above = request.root.strip_prefix(request.checkout).unwrap_or(Path::new(""));
    let mode = |path: &Path| {
        let named = path.strip_prefix(above).map(|below| request.workspace.mode_of(below));
        named.unwrap_or_else(|_| FolderMode::suggested_by(path))
    };
    let ignored = request.ignored.iter().filter(|entry| entry.is_folder && !is_ours(&entry.path));
    let mut all: BTreeMap<PathBuf, FolderMode> = ignored.map(|entry| (entry.path.clone(), mode(&entry.path))).collect();
    for (name, mode) in &request.workspace.folders {
        let path: PathBuf = above.join(name).components().filter(|part| *part != std::path::Component::CurDir).collect();
        if request.checkout.join(&path).is_dir() {
            all.insert(path, *mode);
        } else if *mode != FolderMode::None && !all.keys().any(|known| known.starts_with(&path)) {
            draft.note(format!("{name} in `workspace.folders` is not a folder in your checkout."));
        }
    }
    all
}

/// Folders of Verdone, in this project or another one of the repository, and of git.
fn is_ours(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == HOME) || path.starts_with(".git")
}

fn can_be_shown(draft: &mut Draft<'_>, path: &Path) -> bool {
    let source = draft.request.checkout.join(path);
    if fs::symlink_metadata(&source).is_ok_and(|meta| meta.is_symlink()) {
        draft.note(format!("{} is a link in your checkout, so it is not shown as a folder.", path.display()));
        return false;
    }
    match fs::read_dir(&source) {
        Ok(_) => true,
        Err(error) => {
            draft.note(format!("{} is missing in the workspace: it cannot be read ({error}).", path.display()));
            false
        }
    }
}

/// A folder is not covered if the run's commits have files in it, because the agent's changes there count.
fn is_free(draft: &mut Draft<'_>, path: &Path) -> bool {
    let filled = is_filled(&draft.request.tree.files().join(path));
    if filled {
        draft.note(format!(
            "{} has committed files in this run, so ignored files of the checkout are not shown there.",
            path.display()
        ));
    }
    !filled
}

fn is_filled(folder: &Path) -> bool {
    is_real_folder(folder) && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Copies single ignored files, such as `.env`, if they are small. Links are copied as links.
fn copy_files(draft: &mut Draft<'_>) {
    let request = draft.request;
    let Some(to) = written(&request.tree) else { return };
    let (mut left, mut skipped) = (request.workspace.copy_total_bytes, Vec::new());
    for entry in request.ignored.iter().filter(|entry| !entry.is_folder && !is_ours(&entry.path)) {
        let source = request.checkout.join(&entry.path);
        let Ok(meta) = fs::symlink_metadata(&source) else { continue };
        // Committed in this run, or copied for an earlier session.
        if fs::symlink_metadata(request.tree.files().join(&entry.path)).is_ok() {
            continue;
        }
        let size = if meta.is_symlink() { 0 } else { meta.len() };
        if !(meta.is_file() || meta.is_symlink()) {
            continue;
        }
        if size > request.workspace.copy_file_bytes || size > left {
            skipped.push(entry.path.display().to_string());
            continue;
        }
        if meta.is_symlink() && source.is_dir() {
            draft.note(format!("{} is a link in your checkout; its target cannot be written.", entry.path.display()));
        }
        left -= size;
        draft.steps.push(Step::CopyFile { from: source, to: to.clone(), path: entry.path.clone() });
    }
    if !skipped.is_empty() {
        let more = skipped.len().saturating_sub(NAMED);
        let named = skipped.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        draft.note(format!(
            "Too large to be copied into the workspace: {named}{more} (`workspace.copy_file_bytes` and `copy_total_bytes`)."
        ));
    }
}

/// If the tree has its own path, the user's checkout stays readable at its path. It is read-only, because writes there would be
/// lost.
pub(super) fn keep_checkout_out_of_reach(draft: &mut Draft<'_>) {
    let request = draft.request;
    draft.bind(request.checkout, request.checkout, false);
    let of_others = request.ignored.iter().filter(|entry| is_ours(&entry.path)).map(|entry| request.checkout.join(&entry.path));
    let hidden: BTreeSet<PathBuf> = run_folders(request.root).into_iter().chain(of_others).collect();
    draft.mounts.extend(hidden.into_iter().filter(|path| is_real_folder(path)).map(|at| Mount::Mask { at }));
}

/// What runs and sessions left in a project, including the output of checks.
pub(in crate::workspace) fn run_folders(root: &Path) -> [PathBuf; 3] {
    ["runs", "cache", "sessions"].map(|name| root.join(HOME).join(name))
}
