//! The user's checkout before and after a run. A run works elsewhere, so every file, the index, branches, tags, the stash and git's
//! settings must be the same afterwards. [`Checkout::assert_untouched`] lists what may differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

/// Folders that belong to runs.
const OWN_FOLDERS: [&str; 4] = [".verdone/runs", ".verdone/cache", ".verdone/sessions", ".verdone/requests"];

/// Verdone's refs.
const OWN_REFS: [&str; 3] = ["refs/heads/verdone/", "refs/verdone/", "refs/notes/verdone"];

/// Names of files in which some loops log their progress.
const PROGRESS: [&str; 2] = ["progress.md", "progress.txt"];

/// The parts of a git folder that are not settings: objects, refs and index are compared through git, and files of Git LFS are named after
/// their content.
const NOT_SETTINGS: [&str; 9] = ["objects", "refs", "logs", "packed-refs", "reftable", "index", "worktrees", "modules", "lfs"];

/// The maximum size of a plan.
const LARGEST_PLAN: u64 = 1_000_000;

/// The state of a checkout at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    top: PathBuf,
    files: BTreeMap<PathBuf, Entry>,
    /// Files in the git folder that are settings or hooks.
    settings: BTreeMap<PathBuf, Entry>,
    /// The modes, ids, stages and flags of each path.
    index: BTreeMap<String, Vec<String>>,
    refs: BTreeMap<String, String>,
    stash: String,
    /// The branch's name; `None` if HEAD is detached.
    branch: Option<String>,
    /// The commit; `None` before the first.
    head: Option<String>,
    /// Tracked paths that differ from HEAD.
    uncommitted: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// The same inode number and time show that it was not replaced by a copy.
    File {
        digest: u64,
        bytes: u64,
        inode: u64,
        modified: (i64, i64),
        text: Option<String>,
    },
    Link(PathBuf),
    Folder,
    /// A pipe, a socket, a device: never opened.
    Special,
}

impl Checkout {
    /// Records the state of `work/`, which need not be a repository.
    pub fn snapshot(sandbox: &Sandbox) -> Self {
        Self::look_at(sandbox, &sandbox.work())
    }

    /// Records the state of the worktree that a folder belongs to.
    pub fn look_at(sandbox: &Sandbox, folder: &Path) -> Self {
        let places =
            Ask { sandbox, folder }.text(&["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"]);
        let mut places = places.lines().map(PathBuf::from);
        let (top, git_dir) = (places.next().unwrap_or_else(|| folder.to_owned()), places.next());
        let ask = Ask { sandbox, folder: &top };
        let (mut files, mut settings) = (BTreeMap::new(), BTreeMap::new());
        collect(&top, Path::new(""), &|path| path == Path::new(".git") || is_own_folder(path), &mut files);
        if let Some(git_dir) = &git_dir {
            collect(git_dir, Path::new(""), &|path| !is_setting(path), &mut settings);
        }
        let mut index: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in ask.fields(&["ls-files", "-z", "-s", "-v"]) {
            let (facts, path) = entry.split_once('\t').unwrap_or(("", &entry));
            index.entry(path.to_owned()).or_default().push(facts.to_owned());
        }
        let refs = ask.text(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs = refs.lines().filter_map(|line| line.split_once(' '));
        let head = ask.line(&["rev-parse", "--verify", "-q", "HEAD"]);
        let against =
            if head.is_some() { &["diff", "-z", "--name-only", "--no-renames", "HEAD"][..] } else { &["ls-files", "-z"] };
        Self {
            files,
            settings,
            index,
            refs: refs.map(|(name, id)| (name.to_owned(), id.to_owned())).collect(),
            stash: ask.text(&["stash", "list", "--format=%H %gd"]),
            branch: ask.line(&["symbolic-ref", "-q", "HEAD"]),
            uncommitted: ask.fields(against).into_iter().collect(),
            head,
            top,
        }
    }

    /// Panics unless the checkout is unchanged. A run may write below `.verdone/runs`, `.verdone/cache`, `.verdone/sessions` and `.verdone/requests`; create its
    /// own refs; append lessons to `.verdone/guardrails.md`; mark stories in a plan that has uncommitted changes or is untracked; append to
    /// an existing progress file; and land, which
    /// moves the branch forward and gives exactly the files that differ between the two commits the content of the new one.
    #[track_caller]
    pub fn assert_untouched(&self, sandbox: &Sandbox) {
        self.assert_untouched_except(sandbox, &[]);
    }

    /// The same, except for these paths and everything below them, which the test itself changes.
    #[track_caller]
    pub fn assert_untouched_except(&self, sandbox: &Sandbox, paths: &[&str]) {
        let faults = self.faults_except(sandbox, paths);
        assert!(faults.is_empty(), "the run changed the user's checkout:\n  {}", faults.join("\n  "));
    }

    /// The problems that [`Self::assert_untouched`] reports.
    pub fn faults(&self, sandbox: &Sandbox) -> Vec<String> {
        self.faults_except(sandbox, &[])
    }

    fn faults_except(&self, sandbox: &Sandbox, paths: &[&str]) -> Vec<String> {
        self.compare(&Self::look_at(sandbox, &self.top), sandbox, paths)
    }

    /// Adopts changes that something other than the run made between two states.
    pub fn follow(&mut self, before: &Self, after: &Self) {
        take_over(&mut self.files, &before.files, &after.files);
        take_over(&mut self.settings, &before.settings, &after.settings);
        take_over(&mut self.index, &before.index, &after.index);
        take_over(&mut self.refs, &before.refs, &after.refs);
        for path in before.uncommitted.symmetric_difference(&after.uncommitted) {
            let _ = if after.uncommitted.contains(path) {
                self.uncommitted.insert(path.clone())
            } else {
                self.uncommitted.remove(path)
            };
        }
        if before.stash != after.stash {
            self.stash.clone_from(&after.stash);
        }
        if (&before.branch, &before.head) != (&after.branch, &after.head) {
            (self.branch, self.head) = (after.branch.clone(), after.head.clone());
        }
    }

    fn compare(&self, now: &Self, sandbox: &Sandbox, except: &[&str]) -> Vec<String> {
        let mut faults = Vec::new();
        let ask = Ask { sandbox, folder: &self.top };
        let landed = self.landed(now, &ask, &mut faults);
        let is_excepted = |path: &Path| except.iter().any(|except| path.starts_with(except));
        let is_landed = |path: &Path| landed.contains(path) || landed.iter().any(|landed| landed.starts_with(path));
        for path in differences(&self.files, &now.files) {
            let (was, is) = (self.files.get(path), now.files.get(path));
            let is_folder = |entry: Option<&Entry>| entry.is_none_or(|entry| entry.kind == Kind::Folder);
            let landed = if is_folder(was) && is_folder(is) { is_landed(path) } else { landed.contains(path.as_path()) };
            // The parent of the run's folders; everything else in it is compared separately.
            let is_home = was.is_none() && path.ends_with(".verdone") && is_folder(is);
            if !landed && !is_home && !is_excepted(path) && !self.may_be_marked(path, was, is) {
                faults.push(format!("{}: {}", path.display(), told(was, is)));
            }
        }
        for path in &landed {
            let name = path.to_string_lossy();
            if now.uncommitted.contains(&*name) && !self.uncommitted.contains(&*name) && !is_excepted(path) {
                faults.push(format!("{name}: landed, and not as the new commit has it"));
            }
        }
        for path in
            differences(&self.index, &now.index).filter(|path| !landed.contains(Path::new(path)) && !is_excepted(Path::new(path)))
        {
            faults.push(format!("index entry of {path}: {:?}, was {:?}", now.index.get(path), self.index.get(path)));
        }
        for path in differences(&self.settings, &now.settings) {
            faults.push(format!(".git/{}: {}", path.display(), told(self.settings.get(path), now.settings.get(path))));
        }
        let is_own = |name: &str| OWN_REFS.iter().any(|own| name.starts_with(own)) || Some(name) == self.branch.as_deref();
        for name in differences(&self.refs, &now.refs).filter(|name| !is_own(name)) {
            faults.push(format!("{name}: {:?}, was {:?}", now.refs.get(name), self.refs.get(name)));
        }
        if self.stash != now.stash {
            faults.push(format!("stash: {:?}, was {:?}", now.stash, self.stash));
        }
        if self.branch != now.branch {
            faults.push(format!("HEAD: {:?}, was {:?}", now.branch, self.branch));
        }
        faults
    }

    /// The paths that differ between the old commit and the new one.
    fn landed(&self, now: &Self, ask: &Ask<'_>, faults: &mut Vec<String>) -> BTreeSet<PathBuf> {
        if self.head == now.head {
            return BTreeSet::new();
        }
        let Some(new) = &now.head else {
            faults.push("HEAD names no commit any more".to_owned());
            return BTreeSet::new();
        };
        let Some(old) = &self.head else {
            return ask.fields(&["ls-tree", "-r", "-z", "--name-only", new]).into_iter().map(PathBuf::from).collect();
        };
        if ask.output(&["merge-base", "--is-ancestor", old, new]).code != 0 {
            faults.push(format!("HEAD: {new} does not come after {old}"));
        }
        let options = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new];
        ask.fields(&options).into_iter().map(PathBuf::from).collect()
    }

    /// Marks in a plan with uncommitted changes, entries in an existing progress file, and new lessons after what the user wrote.
    fn may_be_marked(&self, path: &Path, was: Option<&Entry>, is: Option<&Entry>) -> bool {
        if path.ends_with(".verdone/guardrails.md") {
            let before = was.map_or(Some(""), Entry::text);
            return before.zip(is.and_then(Entry::text)).is_some_and(|(before, now)| only_lessons_follow(before, now));
        }
        if path.ends_with(".verdone/.gitignore") {
            // Verdone creates it together with the first lesson, and hides both.
            return was.is_none() && is.and_then(Entry::text).is_some_and(|text| text.ends_with("\n.gitignore\n"));
        }
        let (Some(was), Some(is)) = (was, is) else { return false };
        if was.mode != is.mode {
            return false;
        }
        if path.file_name().is_some_and(|name| PROGRESS.iter().any(|progress| name == *progress)) {
            return true;
        }
        let name = path.to_string_lossy();
        let is_committed = self.index.contains_key(&*name) && !self.uncommitted.contains(&*name);
        let (Some(was), Some(is)) = (was.text(), is.text()) else { return false };
        !is_committed && was != is && unmarked(was) == unmarked(is)
    }
}

/// Whether a text is the old one with lines that Verdone adds.
fn only_lessons_follow(before: &str, now: &str) -> bool {
    now.strip_prefix(before).is_some_and(|added| added.lines().all(|line| line.is_empty() || line.starts_with("- ")))
}

/// A folder outside of a repository, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    top: PathBuf,
    skipped: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Entry>,
}

impl Folder {
    /// Records everything except these paths and what is below them.
    pub fn snapshot(top: &Path, skipped: &[&str]) -> Self {
        let skipped: Vec<PathBuf> = skipped.iter().map(PathBuf::from).collect();
        let mut files = BTreeMap::new();
        collect(top, Path::new(""), &|path| skipped.iter().any(|skip| path == skip), &mut files);
        Self { top: top.to_owned(), skipped, files }
    }

    /// Panics unless every file is unchanged.
    #[track_caller]
    pub fn assert_unchanged(&self) {
        let skipped: Vec<&str> = self.skipped.iter().filter_map(|path| path.to_str()).collect();
        let now = Self::snapshot(&self.top, &skipped);
        let told = |path: &PathBuf| format!("{}: {}", path.display(), told(self.files.get(path), now.files.get(path)));
        let faults: Vec<String> = differences(&self.files, &now.files).map(told).collect();
        assert!(faults.is_empty(), "{} is not as it was:\n  {}", self.top.display(), faults.join("\n  "));
    }
}

impl Entry {
    fn read_entry(path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        let kind = if meta.is_symlink() {
            Kind::Link(fs::read_link(path).unwrap_or_default())
        } else if meta.is_dir() {
            Kind::Folder
        } else if meta.is_file() {
            let text = (meta.len() < LARGEST_PLAN).then(|| fs::read_to_string(path).ok()).flatten();
            let modified = (meta.mtime(), meta.mtime_nsec());
            Kind::File { digest: digest(path), bytes: meta.len(), inode: meta.ino(), modified, text }
        } else {
            Kind::Special
        };
        Some(Self { mode: meta.mode(), kind })
    }

    fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::File { text, .. } => text.as_deref(),
            Kind::Link(_) | Kind::Folder | Kind::Special => None,
        }
    }
}

fn digest(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Ok(mut file) = fs::File::open(path) else { return 0 };
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        buffer[..read].hash(&mut hasher);
    }
    hasher.finish()
}

/// Everything below a folder except skipped paths, by relative path.
fn collect(top: &Path, below: &Path, is_skipped: &dyn Fn(&Path) -> bool, found: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(top.join(below)).into_iter().flatten().flatten() {
        let path = below.join(entry.file_name());
        if is_skipped(&path) {
            continue;
        }
        let Some(seen) = Entry::read_entry(&top.join(&path)) else { continue };
        let is_folder = seen.kind == Kind::Folder;
        found.insert(path.clone(), seen);
        if is_folder {
            collect(top, &path, is_skipped, found);
        }
    }
}

/// The project may be a subfolder of the repository.
fn is_own_folder(path: &Path) -> bool {
    OWN_FOLDERS.iter().any(|own| path.ends_with(own))
}

fn is_setting(path: &Path) -> bool {
    let name = path.components().next().map(|first| first.as_os_str().as_bytes()).unwrap_or_default();
    let is_head = name.ends_with(b"HEAD") || name == b"COMMIT_EDITMSG";
    !is_head && !name.starts_with(b"verdone") && !NOT_SETTINGS.iter().any(|other| other.as_bytes() == name)
}

/// A plan's text without its marks.
fn unmarked(text: &str) -> String {
    let text = text.replace("[x]", "[ ]").replace("[X]", "[ ]");
    text.replace("\"passes\": true", "\"passes\": false").replace("\"passes\":true", "\"passes\":false")
}

fn differences<'m, K: Ord, V: PartialEq>(was: &'m BTreeMap<K, V>, is: &'m BTreeMap<K, V>) -> impl Iterator<Item = &'m K> {
    let gone_or_changed = was.iter().filter(|(key, value)| is.get(key) != Some(value)).map(|(key, _)| key);
    gone_or_changed.chain(is.keys().filter(|key| !was.contains_key(key)))
}

fn take_over<K: Ord + Clone, V: PartialEq + Clone>(held: &mut BTreeMap<K, V>, before: &BTreeMap<K, V>, after: &BTreeMap<K, V>) {
    for key in differences(before, after) {
        match after.get(key) {
            Some(value) => drop(held.insert(key.clone(), value.clone())),
            None => drop(held.remove(key)),
        }
    }
}

fn told(was: Option<&Entry>, is: Option<&Entry>) -> String {
    match (was, is) {
        (None, _) => "is new".to_owned(),
        (_, None) => "is gone".to_owned(),
        (Some(was), Some(is)) => format!("was {was:?}, is {is:?}"),
    }
}

/// Asks git about one folder. If git cannot answer, only files are compared.
struct Ask<'s> {
    sandbox: &'s Sandbox,
    folder: &'s Path,
}

impl Ask<'_> {
    fn output(&self, arguments: &[&str]) -> crate::Output {
        let folder = self.folder.to_string_lossy();
        self.sandbox.run("git", [&["--no-optional-locks", "-C", &*folder, "-c", "core.fsmonitor=false"], arguments].concat())
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        if output.code == 0 { output.stdout } else { String::new() }
    }

    fn line(&self, arguments: &[&str]) -> Option<String> {
        let text = self.text(arguments);
        Some(text.trim_end_matches('\n').to_owned()).filter(|line| !line.is_empty())
    }

    fn fields(&self, arguments: &[&str]) -> Vec<String> {
        self.text(arguments).split('\0').filter(|field| !field.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write(".gitignore", "cache/\n");
        sandbox.write("PLAN.md", "- [ ] one\n- [ ] two\n");
        sandbox.write("dir/kept", "kept\n");
        sandbox.write("dir/file", "");
        sandbox.write("other/file", "");
        sandbox.write(".verdone/config.toml", "");
        sandbox.repo();
        sandbox.git(["branch", "side"]);
        sandbox.write("loose.md", "- [ ] loose\n");
        sandbox.write("progress.md", "# Log\n");
        sandbox.write("cache/x", "x");
        sandbox.write("dir/kept", "edited\n");
        sandbox
    }

    /// Whether this script counts as touching the checkout.
    fn is_seen(script: &str) -> bool {
        let sandbox = world();
        let before = Checkout::snapshot(&sandbox);
        sandbox.run("sh", ["-ec", script]).assert_code(0);
        !before.faults(&sandbox).is_empty()
    }

    #[test]
    fn what_a_run_may_do_is_no_fault() {
        for script in [
            "true",
            "mkdir -p .verdone/runs/1 dir/.verdone/cache other/.verdone/runs; : > .verdone/runs/1/journal.jsonl",
            "git branch verdone/1; git update-ref refs/verdone/attempts/1/x HEAD; git notes --ref=verdone add -m x HEAD",
            "sed -i 's/\\[ \\]/[x]/' loose.md",
            "echo more >> progress.md",
            "echo new > landed; sed -i 's/\\[ \\]/[x]/' PLAN.md; git add landed PLAN.md; git commit -qm landed -- landed PLAN.md",
            "git rm -q README.md; git commit -qm gone -- README.md",
        ] {
            assert!(!is_seen(script), "{script}");
        }
    }

    #[test]
    fn every_other_change_is_a_fault() {
        for script in [
            "echo x >> README.md",
            "touch README.md",
            "cp README.md copy; mv copy README.md",
            "chmod +x README.md",
            "rm loose.md",
            "echo new > stray",
            "mkdir stray",
            "mkdir -p dir/.verdone; : > dir/.verdone/config.toml",
            "ln -s nowhere stray",
            "mkfifo stray",
            "rm cache/x",
            "echo y > cache/x",
            "git add loose.md",
            "git stash -q",
            "git tag mine",
            "git branch mine",
            "git branch -D -q side",
            "git checkout -q -b other",
            "git checkout -q --detach",
            "git config user.name Eve",
            "echo x > .git/hooks/pre-commit",
            "echo x > .git/info/attributes",
            "sed -i 's/\\[ \\]/[x]/' PLAN.md",
            "sed -i 's/loose/tight/' loose.md",
            "rm progress.md",
            "git checkout -q dir/kept",
            "git reset -q --soft side; git commit -q --allow-empty --amend -m other",
            "echo new > landed; git add landed; git commit -qm landed -- landed; echo other > landed",
            "echo new > landed; git add landed; git commit -qm landed -- landed; rm loose.md",
            "rm -rf .git",
        ] {
            assert!(is_seen(script), "{script}");
        }
    }

    #[test]
    fn what_the_user_does_in_between_counts_as_it_is_then() {
        let sandbox = world();
        let mut held = Checkout::snapshot(&sandbox);
        let before = Checkout::snapshot(&sandbox);
        sandbox.write("mine", "mine");
        sandbox.git(["add", "mine"]);
        held.follow(&before, &Checkout::snapshot(&sandbox));
        held.assert_untouched(&sandbox);
        sandbox.write("mine", "theirs");
        assert!(!held.faults(&sandbox).is_empty());
        held.assert_untouched_except(&sandbox, &["mine"]);
    }
}
