use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use verdone_core::base::id::{Oid, StoryId};
use verdone_runtime::git::{CommitError, GitError};

use crate::git_module::repo::Repo;
use crate::git_module::workspace::Workspace;

const MESSAGE: &str = "feat(US-001): title\n\n# kept\n\nVerdone-Run: x\n";
const BRANCH: &str = "verdone/20261115-020338-5f3a";

fn attempt(repo: &Repo) -> Oid {
    let workspace = Workspace::new(repo);
    workspace.write("new", "n");
    workspace.imported(repo)
}

#[test]
fn a_story_is_committed_by_the_user_on_the_runs_branch_and_nowhere_else() {
    let repo = Repo::new();
    let (tree, base) = (attempt(&repo), repo.head());
    let before = (repo.index(), repo.work_tree());
    repo.git.set_branch(BRANCH, &base, None).unwrap();
    let commit = repo.git.commit_tree(&tree, Some(&base), MESSAGE, Duration::from_mins(1)).unwrap();
    repo.git.set_branch(BRANCH, &commit, Some(&base)).unwrap();
    assert_eq!(repo.git(&["log", "-1", "--format=%an %cn %T %P", BRANCH]), format!("Ada Ada {tree} {base}"));
    assert_eq!(repo.git_raw(&["log", "-1", "--format=%B", BRANCH]), format!("{MESSAGE}\n").as_bytes());
    assert_eq!((repo.head(), repo.index(), repo.work_tree()), (base, before.0, before.1));
}

#[test]
fn a_branch_that_is_elsewhere_is_not_moved() {
    let repo = Repo::new();
    let (tree, base) = (attempt(&repo), repo.head());
    let commit = repo.git.commit_tree(&tree, Some(&base), MESSAGE, Duration::from_mins(1)).unwrap();
    repo.git.set_branch(BRANCH, &commit, None).unwrap();
    for expected in [None, Some(&base)] {
        let error = repo.git.set_branch(BRANCH, &base, expected).unwrap_err();
        assert!(matches!(&error, GitError::BranchMoved { found: Some(found), .. } if *found == commit), "{error}");
    }
    assert_eq!(repo.git.branch_tip(BRANCH).unwrap(), Some(commit));
}

fn signing_with(script: &str) -> Repo {
    let repo = Repo::new();
    let program = repo.home().join("gpg");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(&["config", "gpg.program", program.to_str().unwrap()]);
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo
}

#[test]
fn commits_are_signed_where_the_user_signs() {
    let repo = signing_with("cat >/dev/null; echo '[GNUPG:] SIG_CREATED ' >&2; echo signature");
    let tree = Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
    let commit = repo.git.commit_tree(&tree, None, MESSAGE, Duration::from_mins(1)).unwrap();
    let text = repo.git(&["cat-file", "commit", commit.as_str()]);
    assert!(text.contains("\ngpgsig") && text.contains("signature"), "{text}");
}

#[test]
fn a_signing_program_that_fails_or_hangs_is_a_refusal() {
    for (script, late) in [("echo no key >&2; exit 1", false), ("exec sleep 600", true)] {
        let repo = signing_with(script);
        let tree = Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
        let deadline = if late { Duration::from_millis(300) } else { Duration::from_mins(1) };
        match repo.git.commit_tree(&tree, None, MESSAGE, deadline).unwrap_err() {
            CommitError::Refused { timed_out, .. } => assert_eq!(timed_out, late),
            CommitError::Git(error) => panic!("{error}"),
        }
    }
}

#[test]
fn attempts_are_kept_as_commits_and_listed_without_a_journal() {
    let repo = Repo::new();
    let (tree, base) = (attempt(&repo), repo.head());
    let stories = ["US-001", "a/b c-2", "", "é"].map(StoryId::from);
    for story in &stories {
        for number in [1, 2] {
            repo.git.keep_attempt_commit(&repo.run, story, number, &tree, Some(&base), "attempt: why\n\nmore").unwrap();
        }
    }
    let again = repo.git.keep_attempt_commit(&repo.run, &stories[0], 1, &tree, None, "replaced").unwrap();
    let kept = repo.git.kept_attempts(Some(&repo.run)).unwrap();
    assert_eq!(kept, repo.git.kept_attempts(None).unwrap());
    assert_eq!(kept.len(), 8);
    for story in &stories {
        let of_story: Vec<_> = kept.iter().filter(|kept| kept.story == *story).collect();
        assert_eq!(of_story.iter().map(|kept| kept.attempt).collect::<Vec<_>>(), [1, 2], "{story}");
        assert!(of_story.iter().all(|kept| kept.tree == tree && kept.run == repo.run));
        assert_eq!((of_story[1].base.as_ref(), of_story[1].subject.as_str()), (Some(&base), "attempt: why"));
    }
    let first = kept.iter().find(|kept| kept.story == stories[0]).unwrap();
    assert_eq!((&first.commit, &first.base), (&again, &None));
    assert_eq!(repo.git.runs_with_refs().unwrap(), [""; 0]);
    assert_eq!(repo.git.kept_attempts(Some(&"other".into())).unwrap(), []);
    repo.git.forget_attempts(&repo.run).unwrap();
    assert_eq!(repo.git.kept_attempts(None).unwrap(), []);
}
