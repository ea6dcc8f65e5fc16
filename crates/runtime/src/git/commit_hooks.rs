//! Runs the user's commit hooks sealed: `git commit` in a view with a private repository. Returns the tree and message as the
//! hooks left them. The commit itself is discarded with the view.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::base::id::Oid;

use super::Git;
use super::command::{Call, Outcome, tail_of};
use super::error::GitError;
use super::path::RepoPath;
use super::private_repository::{copy_files, write};
use crate::launcher::Inside;
use crate::process::EnvPlan;

const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
/// Where hooks from other folders are copied, in the private git folder.
const EXTRACTED: &str = "verdone-hooks";
/// The most output of a hook to quote in a message.
const MOST_OUTPUT: u64 = 8 * 1024;
/// The largest commit, including its message, that hooks may produce.
const LARGEST_COMMIT: u64 = 64 * 1024;

/// A commit that is made only to run its hooks.
#[derive(Debug, Clone, Copy)]
pub struct HookRun<'a> {
    /// The project's folder as processes inside see it. It contains the files of the tree.
    pub seen_at: &'a Path,
    /// The private git folder as processes inside see it. HEAD is the base, and the index has the tree.
    pub git_dir: &'a Path,
    /// The same folder as this process sees it.
    pub git_dir_here: &'a Path,
    pub base: Option<&'a Oid>,
    pub message: &'a str,
    pub inside: Option<&'a Inside>,
    /// The environment inside.
    pub env: &'a EnvPlan,
    pub deadline: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hooked {
    /// Hooks may have rewritten the tree and the message. The tree's objects are in the private repository's object folder.
    Accepted { tree: Oid, message: String, output: String },
    Refused {
        /// The end of the output of git and its hooks.
        output: String,
        /// The hooks did not finish before the deadline.
        timed_out: bool,
        /// The caller interrupted them.
        interrupted: bool,
    },
}

impl Git {
    /// Whether any hook would run for a commit.
    pub fn has_commit_hooks(&self) -> Result<bool, GitError> {
        let folder = self.hooks_folder()?;
        let runs = |name: &str| {
            fs::metadata(folder.join(name)).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        Ok(HOOKS.iter().any(|name| runs(name)))
    }

    /// Runs the hooks of a commit. `called_off` interrupts them.
    pub fn run_commit_hooks(&self, job: &HookRun<'_>, called_off: &dyn Fn() -> bool) -> Result<Hooked, GitError> {
        let io = |source| GitError::Io { path: Path::new("git commit").to_owned(), source };
        let hooks = self.place_hooks(job)?;
        let hooks_path = hooks.map(|path| format!("core.hooksPath={}", path.display()));
        let mut settings = vec![
            "-c",
            "commit.gpgSign=false",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "safe.directory=*",
            "-c",
            "i18n.commitEncoding=UTF-8",
        ];
        settings.extend(hooks_path.iter().flat_map(|path| ["-c", path.as_str()]));
        let identity = self.identity()?;
        let (name, mail) = identity.split_once(" <").unwrap_or((&identity, ""));
        let mut call = Call::of_the_user_with(job.seen_at, &settings, "commit", job.deadline)
            .envs(&self.environment)
            .args(["-q", "-F", "-", "--cleanup=verbatim", "--allow-empty"])
            .env("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1")
            .stdin(job.message.as_bytes().to_vec());
        // The config file with the user's name may be hidden inside.
        for who in ["AUTHOR", "COMMITTER"] {
            call = call.env(&format!("GIT_{who}_NAME"), name).env(&format!("GIT_{who}_EMAIL"), mail.trim_end_matches('>'));
        }
        let mut output = tempfile::tempfile().map_err(io)?;
        let outcome = entered(call, job)?.answer_through(&output, called_off)?;
        let said = tail_of(&mut output, MOST_OUTPUT).map_err(io)?;
        let refused = |output: String, timed_out, interrupted| Ok(Hooked::Refused { output, timed_out, interrupted });
        match outcome {
            Outcome::CalledOff => refused(said, false, true),
            Outcome::TimedOut => {
                refused(format!("no answer within {} s\n{said}", job.deadline.as_secs()).trim().to_owned(), true, false)
            }
            Outcome::Ended(status) => match self.commit_inside(job)? {
                Some((tree, message)) => Ok(Hooked::Accepted { tree, message, output: said }),
                None if status.success() => {
                    refused(format!("the hooks left no commit, or one larger than {LARGEST_COMMIT} bytes\n{said}"), false, false)
                }
                None if said.is_empty() => refused(format!("git commit ended with {status}"), false, false),
                None => refused(said, false, false),
            },
        }
    }

    /// Tree and message of the commit that was made on the base; `None` if HEAD is anything else. Runs inside, because hooks may
    /// have written settings that execute commands.
    fn commit_inside(&self, job: &HookRun<'_>) -> Result<Option<(Oid, String)>, GitError> {
        let settings = ["-c", "safe.directory=*"];
        let ask = |args: [&str; 2]| {
            let call = Call::plumbing_with(job.seen_at, &settings, "cat-file", self.deadline).envs(&self.environment);
            entered(call.args(args).env("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"), job)?.answer()
        };
        let size = String::from_utf8_lossy(&ask(["-s", "HEAD"])?.stdout).trim().parse::<u64>().ok();
        if size.is_none_or(|size| size > LARGEST_COMMIT) {
            return Ok(None);
        }
        let answer = ask(["commit", "HEAD"])?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let Some((head, message)) = text.split_once("\n\n").filter(|_| answer.status.success()) else { return Ok(None) };
        let tree = head.lines().find_map(|line| line.strip_prefix("tree ")).map(Oid::from);
        let parents: Vec<Oid> = head.lines().filter_map(|line| line.strip_prefix("parent ")).map(Oid::from).collect();
        let is_ours = parents.iter().eq(job.base);
        Ok(tree.filter(|_| is_ours).map(|tree| (tree, message.to_owned())))
    }

    /// Where git looks for hooks: `core.hooksPath`, else the repository's own folder.
    fn hooks_folder(&self) -> Result<PathBuf, GitError> {
        use std::os::unix::ffi::OsStringExt as _;
        let call = self.of_the_user("rev-parse", self.deadline).args(["--path-format=absolute", "--git-path", "hooks"]);
        let mut answer = call.run()?;
        answer.pop_if(|byte| *byte == b'\n');
        Ok(PathBuf::from(std::ffi::OsString::from_vec(answer)))
    }

    /// Copies hooks to a place visible in the view. Returns `None` if the private repository's own folder already has them.
    fn place_hooks(&self, job: &HookRun<'_>) -> Result<Option<PathBuf>, GitError> {
        let folder = self.hooks_folder()?;
        if folder == self.common_dir.join("hooks") {
            return Ok(None);
        }
        let (here, inside) = (job.git_dir_here.join(EXTRACTED), job.git_dir.join(EXTRACTED));
        if [&self.git_dir, &self.common_dir].iter().any(|git_dir| folder.starts_with(git_dir)) {
            copy_files(&folder, &here, |_| true)?;
            return Ok(Some(inside));
        }
        let Ok(below) = folder.strip_prefix(&self.top) else { return Ok(Some(folder)) };
        self.extract_hooks(job.base, below, &here)?;
        Ok(Some(inside.join(below)))
    }

    /// Extracts hooks that are part of the work tree, in the base's version, not the attempt's. Includes the files beside their
    /// folder, because some hooks (husky's) look there, and the user's untracked files in it.
    fn extract_hooks(&self, base: Option<&Oid>, below: &Path, to: &Path) -> Result<(), GitError> {
        let scope = below.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(below);
        copy_files(&self.top.join(below), &to.join(below), |_| true)?;
        let Some(base) = base else { return Ok(()) };
        let is_wanted = |path: &RepoPath| path.is_safe() && path.as_path().starts_with(scope);
        let files: Vec<_> = self.files_of(base)?.into_iter().filter(|file| !file.submodule && is_wanted(&file.path)).collect();
        let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
        let contents = self.contents_of(&ids)?;
        for file in &files {
            let Some(bytes) = contents.get(file.id.as_str()) else { continue };
            let place = to.join(file.path.as_path());
            fs::create_dir_all(place.parent().unwrap_or(to)).map_err(GitError::io(&place))?;
            let _ = fs::remove_file(&place);
            if file.is_link() {
                let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes.as_slice());
                std::os::unix::fs::symlink(target, &place).map_err(GitError::io(&place))?;
                continue;
            }
            write(&place, bytes)?;
            let mode = if file.mode == "100755" { 0o755 } else { 0o644 };
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).map_err(GitError::io(&place))?;
        }
        Ok(())
    }
}

fn entered(call: Call, job: &HookRun<'_>) -> Result<Call, GitError> {
    let call = call.with_plan(job.env);
    match job.inside {
        Some(inside) => call.inside(inside),
        None => Ok(call),
    }
}
