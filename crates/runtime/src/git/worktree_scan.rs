//! Everything that a check running in place can see of a work tree, except ignored files: the raw bytes of every file, before
//! git's filters; HEAD, branch and index; and folders without files. Only reads.
//!
//! A git tree contains less: files that differ only in line endings can be equal in it.

mod folders;
mod tree_scan;

use super::Git;
use super::error::GitError;
use super::index::IndexFile;
use super::index_entries::entries;
use super::path::{PathSet, RepoPath};
use super::status::{Kind, Status};
use crate::base::digest_cache::KnownFiles;
use tree_scan::TreeScan;

/// The state of a work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkTreeState {
    /// Digest of all files, tracked or not. A commit does not change it.
    pub(crate) content: String,
    /// Digest of the rest: HEAD, branch, index, empty folders, nested repositories.
    pub(crate) around: String,
    /// Whether everything could be read.
    pub(crate) whole: bool,
}

impl Git {
    /// Runs one `git status` and meanwhile reads every tracked file. Leaves out `but` and untracked files that are not `wanted`.
    pub(crate) fn scan_work_tree(
        &self,
        known: &mut KnownFiles,
        but: &PathSet,
        wanted: &dyn Fn(&RepoPath) -> bool,
    ) -> Result<(Status, WorkTreeState), GitError> {
        let learning = &mut *known;
        let (status, tree_scan) = std::thread::scope(|scope| {
            let files = scope.spawn(move || -> Result<TreeScan<'_>, GitError> {
                learning.load();
                let tracked = self.tracked(but)?;
                let mut tree_scan = TreeScan::new(&self.top, learning, tracked.listing);
                tree_scan.tracked(tracked.paths);
                tree_scan.content();
                Ok(tree_scan)
            });
            (self.status(), files.join())
        });
        let (status, mut tree_scan) = (status?, tree_scan.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        for entry in status.entries.iter().filter(|entry| !but.contains(&entry.path)) {
            match &entry.kind {
                Kind::Untracked if wanted(&entry.path) => tree_scan.untracked(&entry.path),
                Kind::Submodule { .. } | Kind::Nested => tree_scan.others.push(format!("{} {:?}", entry.path, entry.kind)),
                Kind::Untracked | Kind::Tracked { .. } | Kind::Unmerged { .. } | Kind::Ignored => {}
            }
        }
        tree_scan.empty_folders(but);
        let looked = tree_scan.looked(&status);
        known.keep();
        Ok((status, looked))
    }

    fn tracked(&self, but: &PathSet) -> Result<Tracked, GitError> {
        let Some(index) = IndexFile::read(&self.index_path())? else { return Ok(Tracked::default()) };
        let mut tracked = Tracked::default();
        let kept = |path: &[u8]| !but.covers(path);
        if let Some(entries) = entries(&index.bytes) {
            for entry in entries.iter().filter(|entry| kept(entry.path)) {
                tracked.add(entry.path);
                for part in [&entry.mode.to_be_bytes()[..], &entry.marks.to_be_bytes(), &entry.extended.to_be_bytes(), entry.id] {
                    tracked.listing.extend_from_slice(part);
                }
            }
            return Ok(tracked);
        }
        let listed = self.plumbing("ls-files").args(["--stage", "-v", "-z"]).run()?;
        for record in listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
            if kept(&record[tab + 1..]) {
                tracked.add(&record[tab + 1..]);
                tracked.listing.extend_from_slice(&record[..tab]);
            }
        }
        Ok(tracked)
    }
}

/// The contents of the index.
#[derive(Default)]
struct Tracked {
    paths: Vec<RepoPath>,
    listing: Vec<u8>,
}

impl Tracked {
    fn add(&mut self, path: &[u8]) {
        self.listing.push(0);
        self.listing.extend_from_slice(path);
        self.listing.push(0);
        // A conflict has several entries.
        if self.paths.last().is_none_or(|last| last.as_bytes() != path) {
            self.paths.push(RepoPath::new(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let world = Self { dir: tempfile::tempdir().unwrap() };
            world.git(&["init", "--quiet"]);
            for (name, text) in [
                (".gitattributes", "*.txt text=auto\n"),
                (".gitignore", "*.log\n"),
                ("src/a.txt", "one\n"),
                ("src/b", "b"),
                ("src/deep/c", "c"),
            ] {
                world.write(name, text);
            }
            symlink("a.txt", world.at("src/link")).unwrap();
            world.git(&["add", "--all"]);
            world.commit();
            world
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
            fs::write(self.at(name), text).unwrap();
        }

        fn git(&self, arguments: &[&str]) {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(self.dir.path());
            assert!(command.status().unwrap().success(), "{arguments:?}");
        }

        fn commit(&self) {
            self.git(&["commit", "--quiet", "--allow-empty", "--message", "c"]);
        }

        fn state(&self) -> WorkTreeState {
            let git = Git::open(self.dir.path()).unwrap();
            git.scan_work_tree(&mut KnownFiles::default(), &["own"].into_iter().collect(), &|path| path.as_bytes() != b"unwanted")
                .unwrap()
                .1
        }
    }

    #[test]
    fn everything_that_can_be_seen_counts_and_nothing_else() {
        let world = World::new();
        let mut last = world.state();
        assert!(last.whole);
        let mut step = |what: &str, content: bool, around: bool, change: &dyn Fn()| {
            change();
            let now = world.state();
            assert_eq!((now.content != last.content, now.around != last.around), (content, around), "{what}");
            assert!(now.whole, "{what}");
            last = now;
        };
        step("nothing", false, false, &|| ());
        step("line ends that git makes equal", true, false, &|| world.write("src/a.txt", "one\r\n"));
        step("a mode", true, false, &|| fs::set_permissions(world.at("src/b"), fs::Permissions::from_mode(0o755)).unwrap());
        step("where a link leads", true, false, &|| {
            fs::remove_file(world.at("src/link")).unwrap();
            symlink("b", world.at("src/link")).unwrap();
        });
        step("an empty folder", false, true, &|| fs::create_dir_all(world.at("empty/inner")).unwrap());
        step("a folder in it", false, true, &|| fs::create_dir(world.at("empty/other")).unwrap());
        step("one in a tracked folder", false, true, &|| fs::create_dir(world.at("src/empty")).unwrap());
        step("its name", false, true, &|| fs::rename(world.at("src/empty"), world.at("src/other")).unwrap());
        step("it is gone", false, true, &|| fs::remove_dir(world.at("src/other")).unwrap());
        step("one instead of a tracked folder", true, true, &|| {
            fs::remove_dir_all(world.at("src/deep")).unwrap();
            fs::create_dir(world.at("src/empty")).unwrap();
        });
        step("its name there", false, true, &|| fs::rename(world.at("src/empty"), world.at("src/other")).unwrap());
        step("a new file", true, false, &|| world.write("new/file", "x"));
        step("an empty folder beside it", false, true, &|| fs::create_dir(world.at("new/empty")).unwrap());
        step("an ignored file in a folder of its own", false, false, &|| world.write("logs/a.log", "x"));
        step("what is ours or not wanted", false, false, &|| {
            world.write("own/file", "x");
            world.write("unwanted", "x");
        });
        step("the index", false, true, &|| world.git(&["add", "new/file"]));
        step("HEAD", false, true, &|| world.commit());
        step("the branch", false, true, &|| world.git(&["checkout", "--quiet", "-b", "other"]));
        step("a mark that hides a file from git", false, true, &|| world.git(&["update-index", "--assume-unchanged", "src/b"]));
        step("a hidden file", true, false, &|| world.write("src/b", "hidden"));
        step("an index of another format", false, true, &|| world.git(&["update-index", "--index-version", "4"]));
        step("a file of it", true, false, &|| world.write("src/a.txt", "two"));
        step("a folder that is a link", true, true, &|| {
            fs::rename(world.at("new"), world.at("logs/new")).unwrap();
            symlink("logs/new", world.at("new")).unwrap();
        });
    }
}
