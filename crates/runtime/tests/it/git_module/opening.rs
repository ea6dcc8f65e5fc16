use std::fs;

use verdone_runtime::git::{Git, GitError};

use crate::git_module::repo::{Repo, environment, run_git};

#[test]
fn a_subdirectory_leads_to_the_top_level() {
    let repo = Repo::new();
    let git = Git::open(&repo.path("dir")).unwrap();
    assert_eq!(git.top().canonicalize().unwrap(), repo.path("").canonicalize().unwrap());
    assert_eq!(git.git_dir(), git.common_dir());
}

#[test]
fn a_linked_work_tree_has_its_own_git_directory() {
    let repo = Repo::new().linked();
    assert!(repo.git.git_dir().ends_with(".git/worktrees/linked"));
    assert!(repo.git.common_dir().ends_with("work/.git"));
}

#[test]
fn places_without_a_work_tree_are_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let open = |dir: &str| Git::open_with(&home.path().join(dir), &environment(home.path()));
    for dir in ["none", "bare", "work"] {
        fs::create_dir(home.path().join(dir)).unwrap();
    }
    run_git(home.path(), &home.path().join("bare"), &["init", "-q", "--bare"]);
    run_git(home.path(), &home.path().join("work"), &["init", "-q"]);
    assert!(matches!(open("none"), Err(GitError::NotARepository { .. })));
    assert!(matches!(open("bare"), Err(GitError::Bare { .. })));
    assert!(matches!(open("work/.git"), Err(GitError::NotAWorkTree { .. })));
    assert!(matches!(open("missing"), Err(GitError::Io { .. })));
    assert!(open("none").unwrap_err().hint().unwrap().contains("git init"));
}

#[test]
fn git_that_is_not_installed_is_said_so() {
    let repo = Repo::new();
    let nowhere = [("PATH".into(), repo.home().join("empty").into_os_string())];
    assert!(matches!(Git::open_with(&repo.path(""), &nowhere), Err(GitError::Missing)));
}

#[test]
fn an_operation_in_progress_is_named() {
    let repo = Repo::new();
    assert_eq!(repo.git.operation_in_progress(), None);
    for (sign, operation) in
        [("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert"), ("BISECT_LOG", "bisect")]
    {
        let path = repo.git.git_dir().join(sign);
        fs::write(&path, "").unwrap();
        assert_eq!(repo.git.operation_in_progress(), Some(operation));
        fs::remove_file(path).unwrap();
    }
    fs::create_dir(repo.git.git_dir().join("rebase-merge")).unwrap();
    assert_eq!(repo.git.operation_in_progress(), Some("rebase"));
}

#[test]
fn an_identity_is_reported_and_a_missing_one_is_an_error_with_a_hint() {
    let repo = Repo::new();
    assert_eq!(repo.git.identity().unwrap(), "Ada <ada@example.org>");
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let mut anonymous = environment(repo.home());
    anonymous.retain(|(name, _)| !name.to_string_lossy().contains("_NAME") && !name.to_string_lossy().contains("_EMAIL"));
    let git = Git::open_with(&repo.path(""), &anonymous).unwrap();
    let error = git.identity().unwrap_err();
    assert!(matches!(error, GitError::NoIdentity { .. }), "{error}");
    assert!(error.hint().unwrap().contains("user.email"));
}

#[test]
fn notes_are_written_replaced_and_survive_concurrent_writers() {
    let repo = Repo::new();
    let head = repo.head();
    repo.git.note(&head, "first").unwrap();
    repo.git.note(&head, "evidence: green\n").unwrap();
    assert_eq!(repo.git.read_note(&head).unwrap().as_deref(), Some("evidence: green\n"));
    let commits: Vec<_> = (0..6)
        .map(|number| {
            repo.git(&["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
            repo.head()
        })
        .collect();
    std::thread::scope(|scope| {
        for commit in &commits {
            scope.spawn(|| repo.git.note(commit, commit.as_str()).unwrap());
        }
    });
    for commit in &commits {
        assert_eq!(repo.git.read_note(commit).unwrap().unwrap().trim(), commit.as_str());
    }
}
