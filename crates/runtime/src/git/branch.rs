//! Branches: which names git takes, switching to one, and moving one forward. The user's git hooks have their say, and nothing of
//! the user's is overwritten, ignored files included.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use verdone_core::id::Oid;

use super::command::{Outcome, tail_of};
use super::error::GitError;
use super::{Git, RepoPath, is_object_id};

/// As much of what git or a hook said as a message may hold.
const MOST_OUTPUT: u64 = 4 * 1024;
/// A ref is a file with this many bytes at most, less `.lock`.
const LONGEST_PART: usize = 240;

/// Whether git did what it was asked to, and what it or the user's git hooks said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub done: bool,
    pub said: String,
}

impl Answered {
    /// Why git said no, in a line: the files in the way, which it lists behind tabs in every language, else its words.
    pub fn why(&self) -> String {
        let names: Vec<&str> = self.said.lines().filter_map(|line| line.strip_prefix('\t')).collect();
        if !names.is_empty() {
            return format!("in the way are {}", names.join(", "));
        }
        let plain = |line: &str| line.trim_start_matches("error: ").trim_start_matches("fatal: ").trim().to_owned();
        self.said.lines().map(plain).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

impl Git {
    /// By git's own rule. Names that stand for another one (`@{-1}`) are none.
    pub fn is_branch_name(&self, name: &str) -> Result<bool, GitError> {
        // A NUL cannot be an argument, `@` means HEAD to all other commands, and a whole ref would be a branch below `refs/heads/refs/`.
        if name == "@"
            || name.starts_with("refs/")
            || name.contains('\0')
            || name.split('/').any(|part| part.len() > LONGEST_PART)
        {
            return Ok(false);
        }
        let answer = self.plumbing("check-ref-format").args(["--branch", name]).answer()?;
        Ok(answer.status.success() && answer.stdout.strip_suffix(b"\n") == Some(name.as_bytes()))
    }

    /// The commit of a branch, if there is such a branch.
    pub fn branch_tip(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.resolve(&format!("refs/heads/{name}"))
    }

    /// Whether a branch is the one that others build on: by its usual names, the user's settings, or the remote's word.
    pub fn is_default_branch(&self, name: &str) -> Result<bool, GitError> {
        if matches!(name, "main" | "master" | "trunk") {
            return Ok(true);
        }
        // Two processes that do not wait for each other.
        let (configured, remote) = std::thread::scope(|scope| {
            let remote = scope.spawn(|| self.plumbing("symbolic-ref").args(["-q", "refs/remotes/origin/HEAD"]).answer());
            let configured = self.plumbing("config").args(["--get", "init.defaultBranch"]).answer();
            (configured, remote.join().unwrap_or(Err(GitError::Missing)))
        });
        let says = |stdout: &[u8], prefix: &str| {
            String::from_utf8_lossy(stdout).trim_end().strip_prefix(prefix).is_some_and(|said| said == name)
        };
        Ok(says(&configured?.stdout, "") || says(&remote?.stdout, "refs/remotes/origin/"))
    }

    /// Switches the work tree to a branch; `create` makes it at HEAD. The name has to be one that [`Self::is_branch_name`] takes.
    pub fn switch_branch(&self, name: &str, create: bool) -> Result<Answered, GitError> {
        let how: &[&str] = if create { &["--no-track", "--create"] } else { &["--no-guess"] };
        let fixed = ["--quiet", "--no-overwrite-ignore"];
        let (_, said) = self.with_hooks("switch", fixed.iter().chain(how).copied().chain([name]))?;
        // HEAD decides: a hook that runs after the switch may fail.
        let head = self.plumbing("symbolic-ref").args(["-q", "HEAD"]).answer()?;
        let done = head.stdout.strip_suffix(b"\n") == Some(format!("refs/heads/{name}").as_bytes());
        Ok(Answered { done, said })
    }

    /// Moves the current branch and its files forward to a commit that descends from it. Uncommitted changes stay; where they
    /// are in the way, nothing happens.
    pub fn fast_forward(&self, to: &Oid) -> Result<Answered, GitError> {
        if !is_object_id(to) {
            return Err(GitError::Unexpected { what: "merge", detail: format!("{to} is not an object id") });
        }
        let (_, said) =
            self.with_hooks("merge", ["--quiet", "--ff-only", "--no-autostash", "--no-overwrite-ignore", to.as_str()])?;
        let done = self.head_commit()?.is_some_and(|(head, _)| head == *to);
        Ok(Answered { done, said })
    }

    /// How many commits each of two has that the other has not.
    pub fn apart(&self, ours: &Oid, theirs: &Oid) -> Result<(u32, u32), GitError> {
        let range = format!("{ours}...{theirs}");
        let line = self.plumbing("rev-list").args(["--left-right", "--count", "--end-of-options", &range, "--"]).line()?;
        let unexpected = || GitError::Unexpected { what: "rev-list", detail: line.clone() };
        let (left, right) = line.split_once('\t').ok_or_else(unexpected)?;
        Ok((left.parse().map_err(|_| unexpected())?, right.parse().map_err(|_| unexpected())?))
    }

    /// Whether what `ours` last said about a path is known to `theirs`: the commit that said it, or the same content.
    pub fn knows_last_change(&self, ours: &Oid, theirs: &Oid, path: &RepoPath) -> Result<bool, GitError> {
        let call = self.plumbing("rev-list").env("GIT_LITERAL_PATHSPECS", "1");
        let last = call.args(["-1", ours.as_str(), "--"]).args([path.as_path()]).line()?;
        if last.is_empty() {
            return Ok(true);
        }
        let is_known = self.plumbing("merge-base").args(["--is-ancestor", &last, theirs.as_str()]).answer()?;
        if is_known.status.success() {
            return Ok(true);
        }
        let content = |commit: &Oid| {
            let mut name = OsString::from(format!("{commit}:"));
            name.push(path.as_path());
            let answer = self.plumbing("rev-parse").args(["-q", "--verify", "--end-of-options"]).args([name]).answer()?;
            Ok::<_, GitError>(answer.status.success().then_some(answer.stdout))
        };
        Ok(content(ours)? == content(theirs)?)
    }

    /// A command that the user's git hooks belong to: its output goes through a file, because a hook may leave a process behind.
    pub(super) fn with_hooks<I, S>(&self, subcommand: &'static str, args: I) -> Result<(bool, String), GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let io = |source| GitError::Io { path: Path::new("git output").to_owned(), source };
        let mut output = tempfile::tempfile().map_err(io)?;
        let outcome = self.of_the_user(subcommand, self.deadline).args(args).answer_through(&output, &|| false)?;
        let said = tail_of(&mut output, MOST_OUTPUT).map_err(io)?;
        match outcome {
            Outcome::Ended(status) => Ok((status.success(), said)),
            Outcome::TimedOut | Outcome::CalledOff => {
                Err(GitError::TimedOut { what: subcommand.to_owned(), seconds: self.deadline.as_secs() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_by_the_files_or_by_gits_words() {
        for (said, expected) in [
            ("error: Your local changes ...:\n\tPLAN.md\n\tb c\nPlease commit.\nAborting", "in the way are PLAN.md, b c"),
            ("fatal: invalid reference: x", "invalid reference: x"),
            ("error: one\n\nerror: two\n", "one; two"),
            ("", ""),
        ] {
            assert_eq!(Answered { done: false, said: said.to_owned() }.why(), expected);
        }
    }
}
