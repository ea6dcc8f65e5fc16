//! Contents and sizes of objects, read by one process however many there are.

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::{Git, is_object_id};

impl Git {
    /// Contents of files in a tree or commit, in the requested order; `None` for missing files.
    pub fn files_at(&self, tree: &Oid, paths: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if !is_object_id(tree) {
            return Err(GitError::Unexpected { what: "cat-file", detail: format!("{tree} is not an object id") });
        }
        // A newline would end the request.
        let plain = paths.iter().filter(|path| !path.contains(['\n', '\0']));
        let names: Vec<String> = plain.map(|path| format!("{tree}:{path}")).collect();
        let mut found = self.contents(&names)?.into_iter();
        Ok(paths.iter().map(|path| if path.contains(['\n', '\0']) { None } else { found.next().flatten() }).collect())
    }

    pub(crate) fn sizes(&self, ids: &[&str]) -> Result<Vec<u64>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let request = ids.join("\n") + "\n";
        let output = self.plumbing("cat-file").args(["--batch-check=%(objectsize)"]).stdin(request.into_bytes()).run()?;
        // For a missing object git prints words instead of a size; treat it as too large to read.
        Ok(String::from_utf8_lossy(&output).lines().map(|line| line.parse().unwrap_or(u64::MAX)).collect())
    }

    /// Contents of objects, given by any name that git accepts, in the requested order.
    pub(crate) fn contents(&self, ids: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let request = ids.join("\n") + "\n";
        let output = self.plumbing("cat-file").args(["--batch"]).stdin(request.into_bytes()).run()?;
        let mut rest = output.as_slice();
        let missing = || GitError::Unexpected { what: "cat-file", detail: "fewer answers than questions".to_owned() };
        ids.iter().map(|_| take_blob(&mut rest).ok_or_else(missing)).collect()
    }
}

/// One record of `cat-file --batch`: `<id> blob <size>`, the bytes, a newline; or `<name> missing`.
#[expect(clippy::option_option, reason = "a file that is not there is an answer; no answer is a broken stream")]
fn take_blob(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let header = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 1..];
    if header.ends_with(" missing") {
        return Some(None);
    }
    let size: usize = header.rsplit(' ').next()?.parse().ok()?;
    let bytes = rest.get(..size)?.to_vec();
    *rest = rest.get(size + 1..)?;
    Some(Some(bytes))
}
