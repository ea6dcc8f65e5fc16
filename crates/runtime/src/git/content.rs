//! What the work tree holds, whatever is committed of it: the same before and after a commit. Reads alone, nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use verdone_core::id::digest;

use super::Git;
use super::error::GitError;
use super::path::{PathSet, RepoPath};
use super::status::{Kind, Status};

impl Git {
    /// A digest of all tracked and untracked files but these.
    pub(crate) fn content(&self, status: &Status, but: &PathSet) -> Result<String, GitError> {
        let mut files: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        if let Some(head) = &status.head {
            let output = self.plumbing("ls-tree").args(["-r", "-z", "--full-tree", head.as_str()]).run()?;
            for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
                let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
                let (entry, path) = (String::from_utf8_lossy(&record[..tab]).into_owned(), &record[tab + 1..]);
                if !but.contains(&RepoPath::new(path)) {
                    // Mode and id; the type is told by the mode.
                    let words: Vec<&str> = entry.split(' ').collect();
                    files.insert(path.to_vec(), format!("{} {}", words.first().unwrap_or(&""), words.last().unwrap_or(&"")));
                }
            }
        }
        let changed: Vec<&RepoPath> = status
            .entries
            .iter()
            .filter(|entry| entry.kind != Kind::Ignored)
            .map(|entry| &entry.path)
            .filter(|path| !but.contains(path))
            .collect();
        let mut asked: Vec<&RepoPath> = Vec::new();
        for path in changed {
            match fs::symlink_metadata(self.top().join(path.as_path())) {
                Err(_) => {
                    files.remove(path.as_bytes());
                }
                Ok(meta) if meta.is_file() && !path.as_bytes().contains(&b'\n') => {
                    let mode = if meta.permissions().mode() & 0o111 == 0 { "100644" } else { "100755" };
                    files.insert(path.as_bytes().to_vec(), mode.to_owned());
                    asked.push(path);
                }
                Ok(meta) => {
                    files.insert(path.as_bytes().to_vec(), format!("{:o} {}", meta.permissions().mode(), meta.len()));
                }
            }
        }
        for (path, id) in asked.iter().zip(self.blob_ids(&asked)?) {
            if let Some(entry) = files.get_mut(path.as_bytes()) {
                entry.push_str(&format!(" {id}"));
            }
        }
        let mut text = Vec::new();
        for (path, entry) in &files {
            text.extend_from_slice(path);
            text.extend_from_slice(format!("\0{entry}\n").as_bytes());
        }
        Ok(digest(&text))
    }

    /// The ids that these files would have in a commit.
    fn blob_ids(&self, paths: &[&RepoPath]) -> Result<Vec<String>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let list: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\n"].concat()).collect();
        let output = self.plumbing("hash-object").args(["--stdin-paths"]).stdin(list).run()?;
        Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
    }
}
