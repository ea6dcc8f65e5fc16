use std::time::Duration;

use verdone_runtime::git::CommitError;
use verdone_testkit::PATIENCE;

use crate::git_module::repo::Repo;

#[test]
fn a_commit_is_exactly_the_candidate_by_the_user() {
    let repo = Repo::new();
    repo.write("mine.txt", "untracked at the checkpoint");
    let since = repo.checkpoint();
    let base = repo.head();
    repo.write("a.txt", "changed\n");
    repo.write("new.txt", "new\n");
    let candidate = repo.candidate(&since);
    let commit = repo.commit(&candidate).unwrap();
    assert_eq!(commit.tree, candidate.tree);
    assert_eq!(commit.id, repo.head());
    let shown = repo.git(&["log", "-1", "--format=%P %an <%ae> %B"]);
    assert_eq!(shown, format!("{base} Ada <ada@example.org> feat(US-001): title\n\nVerdone-Run: x"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? mine.txt");
}

#[test]
fn the_first_commit_of_a_repository_is_a_root_commit() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let repo = Repo::unborn(options);
        repo.write("mine.txt", "untracked at the checkpoint");
        let since = repo.checkpoint();
        assert_eq!(since.head, None);
        assert_eq!(since.branch.as_deref(), Some("main"));
        repo.write("a.txt", "one\n");
        let candidate = repo.candidate(&since);
        let commit = repo.commit(&candidate).unwrap();
        assert_eq!(repo.files_of(&commit.tree), ["a.txt"]);
        assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
    }
}

#[test]
fn a_refusing_hook_leaves_no_commit_and_the_index_as_it_was() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    let (head, index) = (repo.head(), repo.index());
    let candidate = repo.candidate(&since);
    for hook in ["pre-commit", "commit-msg"] {
        repo.hook(hook, "echo 'subject may not be empty' >&2; exit 1");
        let Err(CommitError::Refused { message, timed_out: false }) = repo.commit(&candidate) else { panic!("not refused") };
        assert_eq!(message, "subject may not be empty");
        assert_eq!((repo.head(), repo.index()), (head.clone(), index.clone()));
        repo.hook(hook, "exit 0");
    }
    repo.commit(&candidate).unwrap();
}

#[test]
fn a_hook_that_rewrites_files_shows_in_the_committed_tree() {
    let repo = Repo::new();
    repo.hook("pre-commit", "echo formatted > a.txt; git add a.txt");
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    let candidate = repo.candidate(&since);
    let commit = repo.commit(&candidate).unwrap();
    assert_ne!(commit.tree, candidate.tree);
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "formatted");
}

#[test]
fn a_hook_that_hangs_is_ended_and_one_that_stays_behind_is_not_waited_for() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    let candidate = repo.candidate(&since);
    let index = repo.index();
    repo.hook("pre-commit", "echo waiting; exec sleep 600");
    let refused = repo.git.commit_unless(&candidate, "x", Duration::from_secs(2), &|| false);
    let Err(CommitError::Refused { message, timed_out: true }) = refused else { panic!("{refused:?}") };
    assert!(message.ends_with("waiting"), "{message}");
    assert_eq!(repo.index(), index);
    assert!(!repo.git.git_dir().join("index.lock").exists());

    repo.hook("pre-commit", "exit 0");
    repo.hook("post-commit", "sleep 600 & echo $! > .git/behind");
    let started = std::time::Instant::now();
    repo.commit(&candidate).unwrap();
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    let behind = std::fs::read_to_string(repo.git.git_dir().join("behind")).unwrap();
    std::process::Command::new("kill").arg(behind.trim()).status().unwrap();
}

#[test]
fn a_missing_identity_is_a_refusal() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let mut anonymous = crate::git_module::repo::environment(repo.home());
    anonymous.retain(|(name, _)| !name.to_string_lossy().contains("_EMAIL"));
    let git = verdone_runtime::git::Git::open_with(&repo.path(""), &anonymous).unwrap();
    let candidate = repo.candidate(&since);
    let refused = git.commit_unless(&candidate, "x", Duration::from_mins(1), &|| false);
    assert!(matches!(refused, Err(CommitError::Refused { timed_out: false, .. })), "{refused:?}");
}

#[test]
fn an_index_lock_of_somebody_else_is_an_error_and_stays() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    let candidate = repo.candidate(&since);
    let lock = repo.git.git_dir().join("index.lock");
    std::fs::write(&lock, "").unwrap();
    let error = repo.commit(&candidate).unwrap_err();
    assert!(error.to_string().contains("index.lock"), "{error}");
    assert!(lock.exists());
}

#[test]
fn linked_work_trees_commit_on_their_own_branch() {
    let repo = Repo::new().linked();
    let since = repo.checkpoint();
    assert_eq!(since.branch.as_deref(), Some("side"));
    repo.write("a.txt", "changed\n");
    let commit = repo.commit(&repo.candidate(&since)).unwrap();
    repo.git.note(&commit.id, "evidence").unwrap();
    assert_eq!(repo.git(&["rev-parse", "side"]), commit.id.0);
    assert_ne!(repo.git(&["rev-parse", "main"]), commit.id.0);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
