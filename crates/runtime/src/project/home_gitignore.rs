//! `.verdone/.gitignore`: files that Verdone creates there do not appear in the user's git status.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::HOME;
use crate::base::atomic::write_atomically;

const FILE: &str = ".gitignore";
/// Users who want to share lessons or proposals delete their line.
const LINES: [&str; 3] = ["runs/", "guardrails.md", "proposed-stories.md"];

/// The file in the project's `.verdone` folder.
pub(super) fn path(root: &Path) -> PathBuf {
    root.join(HOME).join(FILE)
}

/// The text for `verdone init`: keeps the user's lines and adds ours if they are missing.
pub(super) fn with_own_lines(path: &Path) -> String {
    let old = fs::read_to_string(path).unwrap_or_default();
    let is_missing = |line: &&&str| !old.lines().any(|known| known.trim().trim_matches('/') == line.trim_matches('/'));
    let missing: String = LINES.iter().filter(is_missing).flat_map(|line| [*line, "\n"]).collect();
    let gap = if old.is_empty() || old.ends_with('\n') || missing.is_empty() { "" } else { "\n" };
    format!("{old}{gap}{missing}")
}

/// Called before Verdone creates a file in `.verdone`, which must be a real folder. Does nothing if there is a `.gitignore`: it has our lines
/// from `verdone init`, unless the user wants it otherwise.
pub(crate) fn hide_new_files(root: &Path) -> io::Result<()> {
    let path = path(root);
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    // Synced: after a power cut, an empty file would hide nothing.
    write_atomically(&path, format!("{}\n{FILE}\n", LINES.join("\n")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_hides_itself_and_an_existing_one_is_the_users() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(HOME)).unwrap();
        hide_new_files(folder.path()).unwrap();
        let own = path(folder.path());
        assert_eq!(fs::read_to_string(&own).unwrap(), "runs/\nguardrails.md\nproposed-stories.md\n.gitignore\n");
        fs::write(&own, "/runs\nmine").unwrap();
        hide_new_files(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "/runs\nmine");
        assert_eq!(with_own_lines(&own), "/runs\nmine\nguardrails.md\nproposed-stories.md\n");
    }
}
