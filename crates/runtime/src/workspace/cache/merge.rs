//! Merges two layers of an overlay into one by renaming.

use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::path::Path;

use super::super::remove::remove_tree;
use super::collect::is_whiteout;

/// Builds do not nest folders deeper.
const MOST_DEPTH: usize = 64;
/// The attribute of a folder that hides everything below it.
const OPAQUE: &str = "user.overlay.opaque";

/// Moves the entries of the layer `above` into the layer `below`, so that `below` shows what both showed together. `under` is the
/// folder that both were written over, if any. After an error, both layers are unusable.
pub(super) fn merge(above: &Path, below: &Path, under: Option<&Path>) -> io::Result<()> {
    merge_at(above, below, under, 0)
}

fn merge_at(above: &Path, below: &Path, under: Option<&Path>, depth: usize) -> io::Result<()> {
    let merged = fs::symlink_metadata(above)?;
    // Remove a whiteout that hides nothing: an overlay would list it.
    if is_whiteout(&merged) && under.is_none_or(|under| fs::symlink_metadata(under).is_err()) {
        fs::remove_file(above)?;
        return remove_tree(below);
    }
    match fs::symlink_metadata(below) {
        Ok(found) if merged.is_dir() && found.is_dir() && !is_opaque(above)? => {
            if depth > MOST_DEPTH {
                return Err(io::Error::other("folders are nested too deeply"));
            }
            let under = if is_opaque(below)? { None } else { under };
            for entry in fs::read_dir(above)? {
                let name = entry?.file_name();
                let under = under.map(|under| under.join(&name));
                merge_at(&above.join(&name), &below.join(&name), under.as_deref(), depth + 1)?;
            }
            look_like(below, &merged)
        }
        Ok(_) => remove_tree(below).and_then(|()| fs::rename(above, below)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(above, below),
        Err(error) => Err(error),
    }
}

fn is_opaque(folder: &Path) -> io::Result<bool> {
    let mut value = [0; 8];
    match rustix::fs::lgetxattr(folder, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value.starts_with(b"y") && length == 1),
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A folder in both layers gets the permissions and time of the upper one.
fn look_like(folder: &Path, like: &Metadata) -> io::Result<()> {
    fs::set_permissions(folder, like.permissions())?;
    File::open(folder)?.set_times(FileTimes::new().set_modified(like.modified()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

    fn whiteout(path: &Path) {
        mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    fn listed(folder: &Path) -> Vec<String> {
        let mut all = Vec::new();
        let mut left = vec![folder.to_owned()];
        while let Some(path) = left.pop() {
            let (meta, name) = (fs::symlink_metadata(&path).unwrap(), path.strip_prefix(folder).unwrap().display().to_string());
            if meta.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if is_whiteout(&meta) {
                all.push(format!("{name} gone"));
            } else if meta.is_symlink() {
                all.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else {
                all.push(format!("{name}: {}", fs::read_to_string(&path).unwrap()));
            }
        }
        all.sort();
        all
    }

    #[test]
    fn the_upper_layer_wins_and_what_it_hides_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [
            ("below/kept", "b"),
            ("below/changed", "b"),
            ("below/removed", "b"),
            ("below/both/kept", "b"),
            ("below/both/changed", "b"),
            ("below/made-anew/old", "b"),
            ("below/folder-to-link/x", "b"),
            ("below/file-to-folder", "b"),
            ("below/own/removed", "b"),
            ("under/removed", "u"),
            ("under/of-the-lowest", "u"),
            ("above/changed", "a"),
            ("above/both/changed", "a"),
            ("above/both/new", "a"),
            ("above/made-anew/new", "a"),
            ("above/file-to-folder/x", "a"),
            ("above/new/deep/x", "a"),
            ("above/own/x", "a"),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        symlink("kept", at("above/folder-to-link")).unwrap();
        whiteout(&at("above/removed"));
        whiteout(&at("above/of-the-lowest"));
        whiteout(&at("above/own/removed"));
        if setxattr(at("above/made-anew"), OPAQUE, b"y", XattrFlags::empty()).is_err() {
            // A file system without extended attributes does not support overlays either.
            fs::remove_file(at("below/made-anew/old")).unwrap();
        }
        fs::set_permissions(at("above/both"), fs::Permissions::from_mode(0o751)).unwrap();
        merge(&at("above"), &at("below"), Some(&at("under"))).unwrap();
        let expected = [
            "both/changed: a",
            "both/kept: b",
            "both/new: a",
            "changed: a",
            "file-to-folder/x: a",
            "folder-to-link -> kept",
            "kept: b",
            "made-anew/new: a",
            "new/deep/x: a",
            "of-the-lowest gone",
            "own/x: a",
            "removed gone",
        ];
        assert_eq!(listed(&at("below")), expected);
        assert_eq!(fs::metadata(at("below/both")).unwrap().permissions().mode() & 0o777, 0o751);
    }

    #[test]
    fn a_layer_that_is_missing_is_moved_and_one_that_is_too_deep_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let deep: std::path::PathBuf = std::iter::repeat_n("d", MOST_DEPTH + 2).collect();
        for layer in ["one", "two"] {
            fs::create_dir_all(at(layer).join(&deep)).unwrap();
        }
        merge(&at("one"), &at("three"), None).unwrap();
        assert!(!at("one").exists() && at("three").join(&deep).exists());
        assert!(merge(&at("two"), &at("three"), None).is_err());
    }
}
