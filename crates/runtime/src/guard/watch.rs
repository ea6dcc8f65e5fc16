//! Observations after a command: git's state (read from its files) and which files differ from HEAD (one `git status`).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use verdone_core::base::id::Oid;
use verdone_core::config::Config;
use verdone_core::hook::{ChangedFiles, GitState, Head, HookEvent, HookInput, Operation, Watch, looks_after};
use verdone_core::policy::{OnGitState, OnScope, ToolKind, kind_of};

use crate::base::plain_file::{read_linked, read_regular};
use crate::git::Git;
use crate::project::GitDirs;

use super::run_dirs::HookProject;
use super::session_log::SessionLog;
use super::story::StoryFile;

const LARGEST_HEAD: u64 = 4 * 1024;
/// Enough for some hundred thousand refs. Beyond that, commit dates are used instead.
const LARGEST_PACKED: u64 = 32 * 1024 * 1024;
const LARGEST_TODO: u64 = 64 * 1024;
/// Less than the deadline of the hook itself.
const GIT_DEADLINE: Duration = Duration::from_secs(4);

/// What to watch after this event, or `None`.
pub(super) fn observe(
    home: &HookProject,
    config: &Config,
    input: &HookInput<'_>,
    session: &SessionLog,
    story: &StoryFile,
) -> Option<Watch> {
    let looks = looks_after(&input.event);
    let wrote = wrote_a_file(&input.event);
    if !looks && !wrote {
        return None;
    }
    let policy = &config.policy;
    let on_scope = policy.on_scope();
    let story = if on_scope == OnScope::Off && policy.git_state == OnGitState::Off { None } else { story.get() };
    let scope = story.filter(|_| on_scope != OnScope::Off).and_then(|story| story.scope(on_scope == OnScope::Enforced));
    // In a workspace, the agent's repository is discarded later and its files are not at
    // this path, so only files named by the tool call count.
    let dirs = if looks && home.tree.is_none() { GitDirs::new(&home.top) } else { None };
    let git = dirs.as_ref().filter(|_| policy.git_state != OnGitState::Off).map(|dirs| git_state(&dirs.own));
    let changed = dirs.filter(|_| scope.is_some()).and_then(|dirs| changed(&home.top, dirs));
    if git.is_none() && scope.is_none() {
        return None;
    }
    let branch = story.and_then(|story| story.branch.clone());
    Some(Watch { on_git_state: policy.git_state, on_scope, scope, branch, seen: session.seen(), git, changed })
}

fn wrote_a_file(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PostToolUse { call, .. } if kind_of(&call.tool) == ToolKind::Write)
}

/// Reads HEAD and any operation in progress, without starting a process.
fn git_state(dir: &Path) -> GitState {
    const SIGNS: [(&str, Operation); 8] = [
        ("rebase-merge", Operation::Rebase),
        ("rebase-apply/applying", Operation::Am),
        ("rebase-apply", Operation::Rebase),
        ("MERGE_HEAD", Operation::Merge),
        ("CHERRY_PICK_HEAD", Operation::CherryPick),
        ("REVERT_HEAD", Operation::Revert),
        ("sequencer", Operation::CherryPick),
        ("BISECT_LOG", Operation::Bisect),
    ];
    let head = read_linked(&dir.join("HEAD"), LARGEST_HEAD);
    let head = head.map_or(Head::Unknown, |bytes| GitState::head_of(&String::from_utf8_lossy(&bytes)));
    let found = SIGNS.iter().find(|(sign, _)| fs::symlink_metadata(dir.join(sign)).is_ok());
    // Between two commits of a revert, only the todo list shows that it is one.
    let todo = || read_regular(&dir.join("sequencer/todo"), LARGEST_TODO).unwrap_or_default();
    let operation = found.map(
        |(sign, operation)| {
            if *sign == "sequencer" && todo().starts_with(b"revert") { Operation::Revert } else { *operation }
        },
    );
    GitState { head, operation }
}

/// The commit of HEAD, read from git's files. `None` if there is no commit or the files have another format.
pub(super) fn head_commit(top: &Path) -> Option<Oid> {
    let dirs = GitDirs::new(top)?;
    let text = |path: &Path, most| read_linked(path, most).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let head = text(&dirs.own.join("HEAD"), LARGEST_HEAD)?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else { return oid(&head) };
    let loose = || text(&dirs.common.join(name), LARGEST_HEAD).and_then(|text| oid(&text));
    let packed = || {
        let list = text(&dirs.common.join("packed-refs"), LARGEST_PACKED)?;
        list.lines().find_map(|line| line.split_once(' ').filter(|(_, of)| *of == name).and_then(|(id, _)| oid(id)))
    };
    // The name comes from git, but it must not lead outside its directory.
    if name.split('/').any(|part| part == "..") { None } else { loose().or_else(packed) }
}

fn oid(text: &str) -> Option<Oid> {
    let text = text.trim_end();
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Oid::from(text))
}

/// `None` if git does not answer: an observer then reports nothing.
fn changed(top: &Path, dirs: GitDirs) -> Option<ChangedFiles> {
    let status = Git::found(top, dirs, GIT_DEADLINE).status().ok()?;
    let stamp = |path: &Path| match fs::symlink_metadata(path) {
        Ok(meta) => format!("{}-{}.{}", meta.len(), meta.mtime(), meta.mtime_nsec()),
        Err(_) => "gone".to_owned(),
    };
    Some(status.entries.iter().map(|entry| (entry.path.to_string(), stamp(&top.join(entry.path.as_path())))).collect())
}
