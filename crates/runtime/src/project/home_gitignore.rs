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

/// The text for `verdone init`: keeps the user's lines and adds ours. A user who has the first of our lines and not the others has deleted
/// them, unless the file is just what earlier versions wrote.
pub(super) fn with_own_lines(path: &Path) -> io::Result<String> {
    let old = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        result => result?,
    };
    let has = |line: &str| old.lines().any(|known| known.trim().trim_matches(['!', '/']) == line.trim_matches('/'));
    if has(LINES[0]) && old != format!("{}\n", LINES[0]) {
        return Ok(old);
    }
    let missing: String = LINES.iter().filter(|line| !has(line)).flat_map(|line| [*line, "\n"]).collect();
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{old}{gap}{missing}"))
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
        for (old, new) in [
            ("runs/\n", "runs/\nguardrails.md\nproposed-stories.md\n"),
            ("mine", "mine\nruns/\nguardrails.md\nproposed-stories.md\n"),
            ("!guardrails.md\n", "!guardrails.md\nruns/\nproposed-stories.md\n"),
            ("/runs\nmine\n", "/runs\nmine\n"),
        ] {
            fs::write(&own, old).unwrap();
            hide_new_files(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&own).unwrap(), old);
            assert_eq!(with_own_lines(&own).unwrap(), new);
        }
        fs::write(&own, b"\xff").unwrap();
        assert!(with_own_lines(&own).is_err(), "what cannot be read is not replaced");
    }
}
