//! What git ignores in the checkout. Builds need it, so workspaces show it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Git;
use super::command::Call;
use super::error::GitError;

/// A file that git ignores, or a folder in which it ignores everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IgnoredEntry {
    /// Relative to the top of the work tree.
    pub path: PathBuf,
    pub is_folder: bool,
}

impl Git {
    /// The folders that the ignore rules of a workspace ignore as a whole, by path. Only Verdone may have written these rules.
    pub(crate) fn ignored_folders(&self, workspace: &Path, folders: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>, GitError> {
        let names = folders.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"/\0"].concat()).collect();
        let call = Call::plumbing(workspace, "check-ignore", self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", self.git_dir.clone())
            .env("GIT_WORK_TREE", workspace);
        let answer = call.args(["--no-index", "-z", "--stdin"]).stdin(names).answer()?;
        // Exits with 1 if none is ignored.
        if !answer.status.success() && answer.status.code() != Some(1) {
            return Err(answer.failure("check-ignore"));
        }
        let ignored = answer.stdout.split(|byte| *byte == 0).filter_map(|name| name.strip_suffix(b"/"));
        Ok(ignored.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// All ignored entries in the checkout, by path. A folder that is ignored as a whole stands for its contents.
    pub fn ignored_entries(&self) -> Result<Vec<IgnoredEntry>, GitError> {
        let kinds = ["--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let listed = self.plumbing("ls-files").args(kinds).run()?;
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        // Git also lists folders whose current contents all happen to be ignored. A new file there could be real work, so
        // check-ignore filters these folders out. It exits with 1 if nothing is left.
        let answer = self.plumbing("check-ignore").args(["-z", "--stdin"]).stdin(listed).answer()?;
        if !answer.status.success() && answer.status.code() != Some(1) {
            return Err(answer.failure("check-ignore"));
        }
        let entry = |name: &[u8]| {
            let folder = name.strip_suffix(b"/");
            IgnoredEntry { path: PathBuf::from(OsStr::from_bytes(folder.unwrap_or(name))), is_folder: folder.is_some() }
        };
        let mut all: Vec<_> = answer.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(entry).collect();
        all.sort();
        // A folder whose own rules ignore everything is listed along with its entries. Sorted by path components, they follow it
        // directly.
        let mut outermost: Vec<IgnoredEntry> = Vec::with_capacity(all.len());
        for entry in all {
            if !outermost.last().is_some_and(|last| last.is_folder && entry.path.starts_with(&last.path)) {
                outermost.push(entry);
            }
        }
        Ok(outermost)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn ignored_folders_and_files_are_listed_by_their_names_of_any_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(Command::new("git").args(["init", "-q"]).current_dir(dir.path()).status().unwrap().success());
        for folder in ["node_modules/x", "web/node_modules", "src", "target/debug", ".venv/lib/x"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let odd = OsStr::from_bytes(b"od\xffd\n.log");
        for name in [
            "node_modules/x/a",
            "web/node_modules/b",
            "src/main.c",
            "src/main.o",
            "target/debug/t",
            ".env",
            "untracked",
            ".venv/lib/x/y",
        ] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(dir.path().join(odd), "").unwrap();
        // As tools for virtual environments write it.
        fs::write(at(".venv/.gitignore"), "*\n").unwrap();
        fs::write(at(".gitignore"), "node_modules/\ntarget\n*.o\n.env\n*.log\n").unwrap();
        let found = Git::open(dir.path()).unwrap().ignored_entries().unwrap();
        let expected = [
            (OsStr::new(".env"), false),
            (OsStr::new(".venv"), true),
            (OsStr::new("node_modules"), true),
            (odd, false),
            (OsStr::new("src/main.o"), false),
            (OsStr::new("target"), true),
            (OsStr::new("web/node_modules"), true),
        ];
        let mut expected = expected.map(|(path, is_folder)| IgnoredEntry { path: path.into(), is_folder });
        expected.sort();
        assert_eq!(found, expected);
    }
}
