use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use verdone_runtime::git::{ChainKind, GitError, SnapshotLimits};

use crate::repo::{Repo, odd_names};

/// Something of every kind that a checkpoint has to keep.
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
fn a_checkpoint_keeps_what_is_not_ignored_and_can_be_read_back() {
    let repo = Repo::new();
    make_dirty(&repo);
    let checkpoint = repo.checkpoint();
    assert_eq!(repo.git.read_checkpoint(&checkpoint.id).unwrap(), checkpoint);
    let kept = repo.git(&["show", &format!("{}:manifest.json", checkpoint.id)]);
    for name in ["a.txt", "dir/b.txt", "run.sh", "new.txt", "dangling", "staged-new", "new%0Aline", "not-utf8-%FF%FE"] {
        assert!(kept.contains(&format!("\"path\":\"{name}\"")), "{name}: {kept}");
    }
    assert!(kept.contains("\"ignored\":[\"kept.log\"]"), "{kept}");
    assert!(!kept.contains("\"path\":\"kept.log\""), "{kept}");
}

#[test]
fn checkpoints_of_a_run_are_one_ref_and_list_newest_first() {
    let repo = Repo::new();
    let first = repo.checkpoint();
    repo.write("a.txt", "changed");
    let second = repo.checkpoint();
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/verdone"]);
    assert_eq!(refs, "refs/verdone/20261115-020338-5f3a");
    assert_eq!(repo.git.runs_with_refs().unwrap(), ["20261115-020338-5f3a"]);
    let chain = repo.git.chain(&repo.run).unwrap();
    let ids: Vec<_> = chain.iter().map(|entry| &entry.id).collect();
    assert_eq!(ids, [&second.id, &first.id]);
    assert!(chain.iter().all(|entry| entry.label == "before US-001"));
    assert_eq!(chain[0].kind, ChainKind::Checkpoint { head: Some(repo.head()) });
    assert!(repo.git.chain(&"other".into()).unwrap().is_empty());
}

#[test]
fn a_chain_that_another_process_continued_is_continued_again() {
    let repo = Repo::new();
    repo.checkpoint();
    let other = verdone_runtime::git::Git::open(&repo.path("")).unwrap();
    let skip = verdone_runtime::git::PathSet::default();
    let request = verdone_runtime::git::CheckpointRequest {
        chain: &repo.run,
        label: "other",
        extra: &[],
        skip: &skip,
        limits: SnapshotLimits::default(),
    };
    other.checkpoint(&request).unwrap();
    repo.checkpoint();
    let labels: Vec<_> = repo.git.chain(&repo.run).unwrap().into_iter().map(|entry| entry.label).collect();
    assert_eq!(labels, ["before US-001", "other", "before US-001"]);
}

#[test]
fn files_over_the_limit_are_refused_with_the_list() {
    let repo = Repo::new();
    repo.write("big.bin", vec![0; 2000]);
    repo.write("small.bin", vec![0; 900]);
    repo.write("huge.log", vec![0; 9000]);
    let refused = |file, total| match repo.try_checkpoint(&[], SnapshotLimits { file, total }) {
        Err(GitError::TooLarge { files }) => files.iter().map(|(path, size)| format!("{path} {size}")).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(1000, 10_000), ["big.bin 2000"]);
    assert_eq!(refused(2000, 2000), ["big.bin 2000", "small.bin 900"]);
    assert!(repo.git.chain(&repo.run).unwrap().is_empty());
}

#[test]
fn the_plan_is_kept_even_when_ignored_or_outside_the_repository() {
    let repo = Repo::new();
    let outside = repo.home().join("PLAN.md");
    fs::write(&outside, "- [ ] one\n").unwrap();
    repo.write("plan.log", "- [ ] two\n");
    let extra = [outside.clone(), PathBuf::from("plan.log"), PathBuf::from("later.log")];
    let checkpoint = repo.try_checkpoint(&extra, SnapshotLimits::default()).unwrap();
    fs::write(&outside, "- [x] one\n").unwrap();
    repo.remove("plan.log");
    repo.write("later.log", "came later");
    let restored = repo.restore(&checkpoint);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "- [ ] one\n");
    assert_eq!(repo.read("plan.log"), "- [ ] two\n");
    assert!(!repo.exists("later.log"));
    assert_eq!(restored.files, 3);
}

#[test]
fn a_checkpoint_of_nothing_named_like_one_is_an_error() {
    let repo = Repo::new();
    let bad = [repo.head().0, "--output=x".to_owned(), "0".repeat(40), "a\nb".to_owned()];
    for id in bad {
        let error = repo.git.read_checkpoint(&id.as_str().into()).unwrap_err();
        assert!(matches!(error, GitError::NotACheckpoint { .. }), "{id}: {error}");
    }
}
