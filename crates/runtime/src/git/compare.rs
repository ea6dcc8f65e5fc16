//! The contents of what differs between two trees: two processes, however many files.

use verdone_core::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath, is_object_id};

/// Larger files, and all beyond so many bytes in all, are not read.
const LARGEST_FILE: u64 = 1_000_000;
const MOST_BYTES: u64 = 200_000_000;

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub path: RepoPath,
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub files: Vec<Compared>,
    /// Too large, or no text.
    pub unread: Vec<RepoPath>,
}

/// One line of `diff-tree --raw`.
struct Raw {
    path: RepoPath,
    old: Option<String>,
    new: Option<String>,
}

impl Git {
    /// What differs between two trees or commits, with contents. A rename is a file that is gone and one that came.
    pub fn compare(&self, base: &Oid, tip: &Oid) -> Result<Comparison, GitError> {
        let options = ["-r", "-z", "--no-renames", "--raw", "--no-abbrev", base.as_str(), tip.as_str()];
        let output = self.plumbing("diff-tree").args(options).run()?;
        let raws = read_raws(&output);
        let ids: Vec<&str> = raws.iter().flat_map(|raw| [&raw.old, &raw.new]).flatten().map(String::as_str).collect();
        let sizes = self.sizes(&ids)?;
        let mut left = MOST_BYTES;
        let mut comparison = Comparison::default();
        let (mut wanted, mut read) = (Vec::new(), Vec::new());
        let mut sizes = sizes.into_iter();
        for raw in raws {
            let size: u64 = [&raw.old, &raw.new].into_iter().flatten().filter_map(|_| sizes.next()).fold(0, u64::max);
            if size > LARGEST_FILE || size > left {
                comparison.unread.push(raw.path);
                continue;
            }
            left -= size;
            wanted.extend([&raw.old, &raw.new].into_iter().flatten().cloned());
            read.push(raw);
        }
        let mut contents = self.contents(&wanted)?.into_iter();
        for raw in read {
            let mut next = |id: &Option<String>| id.as_ref().and_then(|_| contents.next().flatten());
            let (old, new) = (next(&raw.old), next(&raw.new));
            if [&old, &new].into_iter().flatten().any(|bytes| bytes.contains(&0)) {
                comparison.unread.push(raw.path);
            } else {
                comparison.files.push(Compared { path: raw.path, old, new });
            }
        }
        Ok(comparison)
    }

    /// Contents of files in a tree or commit, in the order asked for; none for what is not there.
    pub fn files_at(&self, tree: &Oid, paths: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if !is_object_id(tree) {
            return Err(GitError::Unexpected { what: "cat-file", detail: format!("{tree} is not an object id") });
        }
        // A line's end would be the end of the question.
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
        // An object that is missing says so in words: nothing can be read of it.
        Ok(String::from_utf8_lossy(&output).lines().map(|line| line.parse().unwrap_or(u64::MAX)).collect())
    }

    /// The contents of objects, named as git takes them, in the order asked for.
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

/// `:100644 100644 <id> <id> M`, NUL, the path, NUL.
fn read_raws(output: &[u8]) -> Vec<Raw> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut raws = Vec::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _] = words[..] else { continue };
        // Other repositories inside this one have no contents here.
        let id = |mode: &str, id: &str| {
            let is_file = mode.starts_with("100") || mode.starts_with("120");
            (is_file && is_object_id(&Oid::from(id))).then(|| id.to_owned())
        };
        raws.push(Raw { path: RepoPath::new(path), old: id(old_mode, old), new: id(new_mode, new) });
    }
    raws
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
