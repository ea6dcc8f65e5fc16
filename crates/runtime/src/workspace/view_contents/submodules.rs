//! Submodules of the checkout. Their files are shown like ignored folders, and git in them uses private repositories at
//! `.git/modules/NAME` of the tree.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::draft::{Draft, is_real_folder, key};
use super::prepare::Step;
use crate::base::plain_file::read_regular;
use crate::git::{BOUND_OBJECTS, Module};

/// A `.git` file is one line.
const LARGEST: u64 = 64 * 1024;

/// Shows the real objects, read-only, at the paths where the private repositories expect them.
pub(super) fn show_objects(draft: &mut Draft<'_>) {
    let request = draft.request;
    for module in request.modules.iter().filter(|module| is_real_folder(&module.objects())) {
        let place = request.at.join(".git").join(&module.below);
        // Skip it if it could not be copied, or if an agent removed it.
        let is_private = is_real_folder(&request.tree.files().join(".git").join(&module.below));
        if is_private && draft.mount_point(&place.join(BOUND_OBJECTS)) {
            draft.bind(&module.objects(), &place.join(BOUND_OBJECTS), false);
        }
    }
}

/// Makes the `.git` file of a mounted folder point to the private repository. Most do already, because their path is relative to
/// the folder; in a linked work tree they do not.
pub(super) fn show_git_file(draft: &mut Draft<'_>, path: &Path) {
    let request = draft.request;
    let Some(named) = named_in(&request.checkout.join(path).join(".git")) else { return };
    let Some(module) = module_at(request.modules, &request.checkout.join(path).join(&named)) else { return };
    let up: PathBuf = path.components().map(|_| "..").collect();
    let private = up.join(".git").join(&module.below);
    let private_repository = request.at.join(".git").join(&module.below);
    if named == private || named == private_repository {
        return;
    }
    let file = request.scratch.join("git-files").join(key(path));
    let text = [b"gitdir: ", private.as_os_str().as_bytes(), b"\n"].concat();
    draft.steps.push(Step::OwnFile { path: file.clone(), text });
    draft.bind(&file, &request.at.join(path).join(".git"), false);
}

/// The path in a `.git` file; `None` if `.git` is a folder.
fn named_in(file: &Path) -> Option<PathBuf> {
    let text = read_regular(file, LARGEST).ok()?;
    let name = text.strip_prefix(b"gitdir: ")?;
    let end = name.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Some(PathBuf::from(OsString::from_vec(name[..end].to_vec())))
}

fn module_at<'m>(modules: &'m [Module], git_dir: &Path) -> Option<&'m Module> {
    let git_dir = fs::canonicalize(git_dir).ok()?;
    modules.iter().find(|module| module.git_dir == git_dir)
}
