use std::os::unix::fs::symlink;

use verdone_core::journal::event::Checkpoint;
use verdone_runtime::git::{Git, GitError, PathSet};

use crate::git_module::repo::{Repo, odd_names};

/// Creates one change of every kind that a checkpoint must record.
fn make_dirty(repo: &Repo) {
    repo.write("a.txt", "changed\n");
    repo.write("dir/b.txt", "staged\n");
    repo.git(&["add", "dir/b.txt"]);
    repo.write("dir/b.txt", "and changed again\n");
    repo.remove("run.sh");
    repo.write("new.txt", "untracked\n");
    repo.write("empty", "");
    repo.write("binary", [0_u8, 255, 10, 13, 0]);
    repo.write("kept.log", "ignored");
    repo.write("staged-new", "x");
    repo.git(&["add", "staged-new"]);
    symlink("nowhere", repo.path("dangling")).unwrap();
    for name in odd_names() {
        repo.write(&name, "odd");
    }
}

#[test]
fn a_checkpoint_touches_neither_index_nor_work_tree_nor_refs() {
    let repo = Repo::new();
    make_dirty(&repo);
    repo.git(&["stash", "push", "-q", "--", "a.txt"]);
    let refs = || {
        let all = repo.git(&["for-each-ref"]);
        all.lines().filter(|line| !line.contains("refs/verdone/")).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = (repo.work_tree(), repo.index(), refs(), repo.head());
    let checkpoint = repo.checkpoint();
    assert_eq!(before, (repo.work_tree(), repo.index(), refs(), repo.head()));
    assert_eq!(checkpoint.head, Some(repo.head()));
    assert_eq!(checkpoint.branch.as_deref(), Some("main"));
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_checkpoint_records_what_is_not_clean_and_copies_nothing() {
    let repo = Repo::new();
    make_dirty(&repo);
    let checkpoint = repo.checkpoint();
    assert_eq!(repo.files_of(&checkpoint.id), ["manifest.json"]);
    let kept = repo.git(&["show", &format!("{}:manifest.json", checkpoint.id)]);
    for name in ["a.txt", "dir/b.txt", "run.sh", "new.txt", "dangling", "staged-new", "new%0Aline", "not-utf8-%FF%FE"] {
        assert!(kept.contains(&format!("\"path\":\"{name}\"")), "{name}: {kept}");
    }
    assert!(kept.contains("\"ignored\":[\"kept.log\"]"), "{kept}");
    assert!(kept.contains("\"staged\":[\"dir/b.txt\",\"staged-new\"]"), "{kept}");
    assert!(!kept.contains("\"path\":\"kept.log\""), "{kept}");
}

#[test]
fn a_checkpoint_is_read_by_another_process_and_keeps_its_head_from_being_collected() {
    let repo = Repo::new();
    repo.write("mine", "untracked\n");
    repo.git(&["commit", "-q", "--allow-empty", "-m", "rebased away later"]);
    let (checkpoint, head) = (repo.checkpoint(), repo.head());
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["cat-file", "-e", head.as_str()]);
    let other = Git::open(&repo.path("")).unwrap();
    let earlier = other.earlier_changes(&checkpoint, &PathSet::default()).unwrap();
    assert_eq!(earlier.untracked, ["mine".into()]);
}

#[test]
fn the_checkpoints_of_a_loop_are_one_ref_that_several_processes_can_continue() {
    let repo = Repo::new();
    let first = repo.checkpoint();
    let other = Git::open(&repo.path("")).unwrap();
    let second = repo.checkpoint_by(&other, "other\nhostile: line", 1_000_000);
    let third = repo.checkpoint();
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/verdone"]);
    assert_eq!(refs, "refs/verdone/20261115-020338-5f3a");
    assert_eq!(repo.git.runs_with_refs().unwrap(), ["20261115-020338-5f3a"]);
    let listed = repo.git(&["log", "--first-parent", "--format=%H %s", &refs]);
    let expected = format!(
        "{} checkpoint: before US-001\n{} checkpoint: other hostile: line\n{} checkpoint: before US-001\n",
        third.id, second.id, first.id
    );
    assert!(listed.starts_with(&expected), "{listed}");
    repo.git.forget_run(&repo.run).unwrap();
    assert_eq!(repo.git.runs_with_refs().unwrap(), [""; 0]);
}

#[test]
fn a_file_that_is_too_large_to_read_is_known_by_its_size_and_times() {
    let repo = Repo::new();
    repo.write("a.txt", vec![0; 2000]);
    repo.write("run.sh", vec![0; 900]);
    let since = repo.checkpoint_by(&repo.git, "x", 1000);
    let look = || repo.git.earlier_changes(&since, &PathSet::default()).unwrap();
    assert_eq!(look().same, ["a.txt".into(), "run.sh".into()]);
    repo.write("a.txt", vec![0; 2000]);
    repo.write("run.sh", vec![0; 900]);
    let earlier = look();
    assert_eq!((earlier.same, earlier.mixed), (vec!["run.sh".into()], vec!["a.txt".into()]));
}

#[test]
fn a_checkpoint_of_nothing_named_like_one_is_an_error() {
    let repo = Repo::new();
    let bad = [repo.head().0, "--output=x".to_owned(), "0".repeat(40), "a\nb".to_owned()];
    for id in bad {
        let since = Checkpoint { id: id.as_str().into(), head: None, branch: None };
        let error = repo.git.earlier_changes(&since, &PathSet::default()).unwrap_err();
        assert!(matches!(error, GitError::NotACheckpoint { .. }), "{id}: {error}");
    }
}
