//! `.verdone/cache/`.

use std::io;
use std::path::{Path, PathBuf};

use super::atomic::replace_for_readers;
use super::plain_file::{read_regular, real_folder};

pub(crate) const CACHE: &str = ".verdone/cache";

/// `.verdone/cache/`, created if missing, with a `.gitignore` that hides it from the user's git status. A pull request could commit a link
/// in its place that points to any folder of the user, so a link is an error.
pub(crate) fn cache_folder(root: &Path) -> io::Result<PathBuf> {
    let cache = real_folder(root, Path::new(CACHE))?;
    let ignore = cache.join(".gitignore");
    if read_regular(&ignore, 2).is_ok_and(|bytes| bytes == b"*\n") {
        return Ok(cache);
    }
    replace_for_readers(&ignore, b"*\n")?;
    Ok(cache)
}
