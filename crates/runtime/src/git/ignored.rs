//! Files that a new rule keeps out of every tree of git, while a check can see them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use verdone_core::id::Oid;

use super::Git;
use super::error::GitError;
use super::path::RepoPath;

/// More files of one folder are not looked at.
const MOST_FILES: usize = 1_000;

/// A file that git ignores; a folder that is ignored as a whole stands for what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ignored {
    path: RepoPath,
    /// The file with the rule, as git names it.
    source: String,
    rule: String,
}

impl Git {
    /// What is ignored by rules of the work tree itself.
    pub(crate) fn ignored_by_rules(&self) -> Result<Vec<Ignored>, GitError> {
        let kinds = ["--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let listed = self.plumbing("ls-files").args(kinds).run()?;
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        // A folder whose own rules ignore all that is in it matches none, and then the exit code is 1.
        let answer = self.plumbing("check-ignore").args(["--verbose", "-z", "--stdin"]).stdin(listed).answer()?;
        let fields: Vec<&[u8]> = answer.stdout.split(|byte| *byte == 0).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (records, _) = fields.as_chunks::<4>();
        let all = records.iter().map(|[source, _, rule, path]| Ignored {
            path: RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)),
            source: text(source),
            rule: text(rule),
        });
        Ok(all.filter(|ignored| ignored.source.rsplit('/').next() == Some(".gitignore")).collect())
    }

    /// Those of them whose rule is not in this tree.
    pub(crate) fn ignored_since(&self, tree: &Oid, all: &[Ignored]) -> Result<Vec<RepoPath>, GitError> {
        let sources: Vec<String> = all.iter().map(|it| it.source.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        let mut known = BTreeSet::new();
        for (source, bytes) in sources.iter().zip(if sources.is_empty() { Vec::new() } else { self.files_at(tree, &sources)? }) {
            let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
            known.extend(text.lines().map(|line| (source.clone(), line.trim_end().to_owned())));
        }
        let is_new = |it: &&Ignored| !known.contains(&(it.source.clone(), it.rule.trim_end().to_owned()));
        Ok(all.iter().filter(is_new).flat_map(|it| self.with_its_files(&it.path)).collect())
    }

    /// A folder that is ignored as a whole with files in it, as far as a module or a makefile lies in a folder.
    fn with_its_files(&self, path: &RepoPath) -> Vec<RepoPath> {
        let mut all = vec![path.clone()];
        let entries = fs::read_dir(self.top.join(path.as_path())).into_iter().flatten().flatten();
        all.extend(
            entries.take(MOST_FILES).map(|entry| RepoPath::new(&[path.as_bytes(), b"/", entry.file_name().as_bytes()].concat())),
        );
        all
    }
}
