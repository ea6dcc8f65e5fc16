//! Parses `git status`: HEAD, its branch and every change, from one process.

use verdone_core::base::id::Oid;

use super::Git;
use super::error::GitError;
use super::index::TempIndex;
use super::path::RepoPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The commit of HEAD; `None` before the first commit.
    pub head: Option<Oid>,
    /// Without `refs/heads/`; `None` if HEAD is detached.
    pub branch: Option<String>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: RepoPath,
    pub kind: Kind,
}

/// A path may have two entries: removed from the index, but still an untracked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Differs between HEAD, index and work tree. A rename is a deletion and an addition.
    Tracked {
        staged: Change,
        work: Change,
        /// Its entry in HEAD and in the index.
        head: Option<Blob>,
        index: Option<Blob>,
    },
    /// A submodule with another commit, or with changes inside.
    Submodule {
        staged: Change,
        head: Option<Blob>,
    },
    /// A conflict, with the ids of its stages.
    Unmerged {
        stages: Vec<Oid>,
    },
    Untracked,
    /// An untracked directory that is itself a repository.
    Nested,
    /// Ignored; a directory stands for everything in it. Only listed on request.
    Ignored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    Modified,
    Added,
    Deleted,
    TypeChanged,
}

/// A file of a tree or of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Six octal digits.
    pub mode: String,
    pub id: Oid,
}

impl Entry {
    /// A file or repository that git does not track.
    pub fn is_untracked(&self) -> bool {
        matches!(self.kind, Kind::Untracked | Kind::Nested)
    }
}

impl Git {
    pub fn status(&self) -> Result<Status, GitError> {
        self.status_with(&[])
    }

    /// Like [`Self::status`], with ignored paths.
    pub(super) fn status_and_ignored(&self) -> Result<Status, GitError> {
        self.status_with(&["--ignored=matching"])
    }

    /// Like [`Self::status`], but with another index and without untracked files.
    pub(super) fn status_by(&self, index: &TempIndex) -> Result<Status, GitError> {
        let fixed = ["--porcelain=v2", "-z", "--branch", "--untracked-files=no", "--no-renames", "--ignore-submodules=none"];
        parse(&self.plumbing("status").args(fixed).env("GIT_INDEX_FILE", index.path()).run()?)
    }

    fn status_with(&self, more: &[&str]) -> Result<Status, GitError> {
        let fixed = ["--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"];
        parse(&self.plumbing("status").args(fixed).args(more).run()?)
    }
}

fn parse(output: &[u8]) -> Result<Status, GitError> {
    let mut status = Status { head: None, branch: None, entries: Vec::new() };
    for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        read_record(record, &mut status)
            .ok_or_else(|| GitError::Unexpected { what: "status", detail: String::from_utf8_lossy(record).into_owned() })?;
    }
    Ok(status)
}

fn read_record(record: &[u8], status: &mut Status) -> Option<()> {
    let (mark, rest) = (record.first()?, record.get(2..)?);
    match mark {
        b'#' => read_header(rest, status),
        b'1' => {
            let ([xy, sub, head_mode, index_mode, _work_mode, head, index], path) = fields(rest)?;
            let (staged, work) = changes(xy)?;
            let head = blob(head_mode, head);
            let kind = if sub.starts_with('S') {
                Kind::Submodule { staged, head }
            } else {
                Kind::Tracked { staged, work, head, index: blob(index_mode, index) }
            };
            status.entries.push(Entry { path, kind });
        }
        b'u' => {
            let ([_xy, _sub, m1, m2, m3, _work_mode, h1, h2, h3], path) = fields(rest)?;
            let stages = [(m1, h1), (m2, h2), (m3, h3)].into_iter().filter_map(|(mode, id)| blob(mode, id)).map(|blob| blob.id);
            status.entries.push(Entry { path, kind: Kind::Unmerged { stages: stages.collect() } });
        }
        b'?' => {
            let kind = if rest.ends_with(b"/") { Kind::Nested } else { Kind::Untracked };
            status.entries.push(Entry { path: RepoPath::new(rest), kind });
        }
        b'!' => status.entries.push(Entry { path: RepoPath::new(rest), kind: Kind::Ignored }),
        _ => return None,
    }
    Some(())
}

/// Skips unknown headers, as git's documentation asks.
fn read_header(header: &[u8], status: &mut Status) {
    let text = String::from_utf8_lossy(header);
    if let Some(id) = text.strip_prefix("branch.oid ") {
        status.head = (id != "(initial)").then(|| Oid::from(id));
    } else if let Some(name) = text.strip_prefix("branch.head ") {
        status.branch = (name != "(detached)").then(|| name.to_owned());
    }
}

fn fields<const N: usize>(rest: &[u8]) -> Option<([&str; N], RepoPath)> {
    let mut parts = rest.splitn(N + 1, |byte| *byte == b' ');
    let mut out = [""; N];
    for slot in &mut out {
        *slot = std::str::from_utf8(parts.next()?).ok()?;
    }
    Some((out, RepoPath::new(parts.next()?)))
}

fn changes(xy: &str) -> Option<(Change, Change)> {
    let mut letters = xy.bytes().map(|letter| match letter {
        b'.' => Some(Change::None),
        b'M' => Some(Change::Modified),
        b'A' => Some(Change::Added),
        b'D' => Some(Change::Deleted),
        b'T' => Some(Change::TypeChanged),
        _ => None,
    });
    Some((letters.next()??, letters.next()??))
}

fn blob(mode: &str, id: &str) -> Option<Blob> {
    let there = mode != "000000" && id.bytes().any(|digit| digit != b'0');
    there.then(|| Blob { mode: mode.to_owned(), id: Oid::from(id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_kind_are_read() {
        let zero = "0".repeat(40);
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let text = format!(
            "# branch.oid {one}\0# branch.head feature/x\0# stash 3\0\
             1 MM N... 100644 100644 100755 {one} {two} a b\nc\0\
             1 .A N... 000000 000000 100644 {zero} {zero} later\0\
             1 .M SCMU 160000 160000 160000 {one} {one} lib\0\
             u UU N... 100644 100644 100644 100644 {one} {one} {two} both\0? -new\0? inner/\0! target/\0"
        );
        let status = parse(text.as_bytes()).unwrap();
        assert_eq!(status.head, Some(Oid(one.clone())));
        assert_eq!(status.branch.as_deref(), Some("feature/x"));
        let one_blob = Blob { mode: "100644".to_owned(), id: Oid(one.clone()) };
        let two_blob = Blob { mode: "100644".to_owned(), id: Oid(two.clone()) };
        let expected = [
            (
                "a b\nc",
                Kind::Tracked { staged: Change::Modified, work: Change::Modified, head: Some(one_blob), index: Some(two_blob) },
            ),
            ("later", Kind::Tracked { staged: Change::None, work: Change::Added, head: None, index: None }),
            (
                "lib",
                Kind::Submodule { staged: Change::None, head: Some(Blob { mode: "160000".to_owned(), id: Oid(one.clone()) }) },
            ),
            ("both", Kind::Unmerged { stages: vec![Oid(one.clone()), Oid(one), Oid(two)] }),
            ("-new", Kind::Untracked),
            ("inner", Kind::Nested),
            ("target", Kind::Ignored),
        ];
        let expected: Vec<_> = expected.into_iter().map(|(path, kind)| Entry { path: path.into(), kind }).collect();
        assert_eq!(status.entries, expected);
    }

    #[test]
    fn a_record_that_is_not_understood_is_an_error() {
        for bad in ["x what", "1 MM", "1 ZZ N... 1 1 1 1 1 p", "2 R. N..."] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
