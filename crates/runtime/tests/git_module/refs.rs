use verdone_runtime::git::RefsMoved;

use crate::repo::Repo;

#[test]
fn what_happens_to_other_refs_and_the_stash_is_told_and_the_lost_is_kept() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = Repo::unborn(options);
        repo.write("a.txt", "one\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "start"]);
        let first = repo.head();
        for name in ["moved", "gone", "same", "50%off"] {
            repo.git(&["branch", name]);
        }
        repo.git(&["tag", "v1"]);
        for text in ["older", "newer"] {
            repo.write("a.txt", text);
            repo.git(&["stash", "-q"]);
        }
        let before = repo.git.refs().unwrap();
        repo.git(&["pack-refs", "--all"]);
        assert_eq!(before.moved(&repo.git.refs().unwrap(), Some("main")), RefsMoved::default());

        let dropped = repo.git(&["rev-parse", "stash@{1}"]);
        repo.git(&["stash", "drop", "-q", "stash@{1}"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
        repo.git(&["branch", "-f", "moved"]);
        repo.git(&["branch", "-D", "-q", "gone"]);
        repo.git(&["branch", "made"]);
        repo.git(&["tag", "-d", "v1"]);
        let second = repo.head();
        let moved = before.moved(&repo.git.refs().unwrap(), Some("main"));
        assert_eq!(
            moved.told,
            [
                format!("branch gone was deleted; it was at {first}"),
                format!("branch made was made at {}", second.short()),
                format!("branch moved was moved from {first} to {second}"),
                format!("tag v1 was deleted; it was at {first}"),
                format!("a stash entry is gone; to have it back: git stash store {dropped}"),
            ]
        );

        repo.git.keep_commits(&repo.run, &moved.lost, "lost").unwrap();
        repo.git(&["reflog", "expire", "--expire=now", "--all"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        repo.git(&["stash", "store", &dropped]);
        assert_eq!(repo.git(&["show", "stash@{0}:a.txt"]), "older");
        assert!(repo.git.chain(&repo.run).unwrap().is_empty(), "it is no checkpoint");
    }
}

#[test]
fn a_branch_moves_with_the_work_tree_that_is_on_it_and_that_is_not_told() {
    let repo = Repo::new();
    let other = repo.home().join("other");
    repo.git(&["worktree", "add", "-q", "-b", "side", other.to_str().unwrap()]);
    let before = repo.git.refs().unwrap();
    repo.git(&["-C", other.to_str().unwrap(), "commit", "-q", "--allow-empty", "-m", "there"]);
    assert_eq!(before.moved(&repo.git.refs().unwrap(), Some("main")), RefsMoved::default());
}
