use std::fs;
use std::os::unix::fs::symlink;

use verdone_core::journal::event::Checkpoint;
use verdone_runtime::git::{Candidate, CandidateRules, Change, History, Obstacle, PathSet};

use crate::git_module::repo::{Repo, odd_names};

fn changes(repo: &Repo, since: &Checkpoint, candidate: &Candidate) -> Vec<String> {
    let letter = |change| match change {
        Change::Added => 'A',
        Change::Modified => 'M',
        Change::Deleted => 'D',
        Change::TypeChanged => 'T',
        Change::None => '.',
    };
    let changed = repo.git.changed_paths(since.head.as_ref(), &candidate.tree).unwrap();
    changed.iter().map(|changed| format!("{} {}", letter(changed.change), changed.path)).collect()
}

#[test]
fn a_candidate_is_head_with_the_work_trees_changes_and_new_files() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.write("a.txt", "changed\n");
    fs::rename(repo.path("dir/b.txt"), repo.path("dir/c.txt")).unwrap();
    repo.chmod("run.sh", 0o644);
    repo.remove("link");
    repo.write("link", "a file now");
    repo.write("build.log", "ignored");
    repo.write("staged", "old");
    repo.git(&["add", "staged"]);
    repo.write("staged", "newer than staged");
    repo.write("gone", "staged, then deleted");
    repo.git(&["add", "gone"]);
    repo.remove("gone");
    repo.write("intended", "later");
    repo.git(&["add", "-N", "intended"]);
    let before = (repo.work_tree(), repo.index());
    let candidate = repo.candidate(&since);
    assert_eq!(before, (repo.work_tree(), repo.index()));
    assert_eq!(
        changes(&repo, &since, &candidate),
        ["M a.txt", "D dir/b.txt", "A dir/c.txt", "A intended", "T link", "M run.sh", "A staged"]
    );
    assert_eq!(repo.git(&["show", &format!("{}:staged", candidate.tree)]), "newer than staged");
    assert_eq!(candidate.history, History::Same);
    assert!(candidate.obstacles.is_empty());
}

#[test]
fn the_users_own_version_of_a_hidden_file_is_never_committed() {
    let formats: [&[&str]; 4] = [&[], &["--index-version", "4"], &["--split-index"], &["--untracked-cache"]];
    for (hide, format) in ["assume-unchanged", "skip-worktree"].into_iter().flat_map(|hide| formats.map(|format| (hide, format)))
    {
        let repo = Repo::new();
        repo.git(&[&["update-index"], format].concat());
        repo.git(&["update-index", &format!("--{hide}"), "a.txt"]);
        repo.write("a.txt", "only here\n");
        let since = repo.checkpoint();
        assert_eq!(repo.candidate(&since).obstacles, [], "{hide}");

        repo.git(&["update-index", &format!("--no-{hide}"), "a.txt"]);
        repo.write("work.txt", "the story");
        assert_eq!(changes(&repo, &since, &repo.candidate(&since)), ["A work.txt"], "{hide}");

        repo.write("a.txt", "overwritten\n");
        repo.git(&["update-index", &format!("--{hide}"), "a.txt", "dir/b.txt"]);
        let hidden = ["dir/b.txt", "a.txt"].map(|path| Obstacle::Hidden(path.into()));
        assert_eq!(repo.candidate(&since).obstacles, hidden, "{hide}");
    }
}

#[test]
fn what_was_untracked_or_ignored_at_the_checkpoint_never_enters() {
    let repo = Repo::new();
    repo.write("notes.txt", "mine");
    repo.write("secret.log", "mine too");
    repo.write("target/out", "built");
    let since = repo.checkpoint();
    repo.write("notes.txt", "edited by the agent");
    repo.write(".gitignore", "");
    repo.write("work.txt", "the story");
    repo.git(&["add", "-A"]);
    assert_eq!(changes(&repo, &since, &repo.candidate(&since)), ["M .gitignore", "A work.txt"]);
    repo.git(&["commit", "-qm", "agent's own"]);
    let candidate = repo.candidate(&since);
    let protected: Vec<_> = ["notes.txt", "secret.log", "target/out"].map(|path| Obstacle::Protected(path.into())).into();
    assert_eq!(candidate.obstacles, protected);
}

#[test]
fn excluded_paths_stay_as_head_has_them_even_when_staged() {
    let repo = Repo::new();
    repo.write(".verdone/config.toml", "gate");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "config"]);
    let since = repo.checkpoint();
    repo.write(".verdone/config.toml", "no gate");
    repo.write(".verdone/extra", "x");
    repo.git(&["add", "-A"]);
    repo.git(&["rm", "-q", "--cached", "a.txt"]);
    repo.write("dir/b.txt", "work");
    let rules = CandidateRules { excluded: [".verdone", "a.txt"].into_iter().collect(), ..CandidateRules::default() };
    let candidate = repo.git.candidate(&since, &rules).unwrap();
    assert_eq!(changes(&repo, &since, &candidate), ["M dir/b.txt"]);
    assert_eq!(repo.git(&["show", &format!("{}:.verdone/config.toml", candidate.tree)]), "gate");
}

#[test]
fn odd_names_and_directories_that_become_files_are_right() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    for name in odd_names() {
        repo.write(&name, "odd");
    }
    fs::remove_dir_all(repo.path("dir")).unwrap();
    symlink(repo.home(), repo.path("dir")).unwrap();
    fs::write(repo.home().join("b.txt"), "outside").unwrap();
    repo.remove("a.txt");
    repo.write("a.txt/inner", "a directory now");
    let candidate = repo.candidate(&since);
    let changed = changes(&repo, &since, &candidate);
    for expected in ["A dir", "D dir/b.txt", "D a.txt", "A a.txt/inner", "A -rf", "A new%0Aline", "A not-utf8-%FF%FE"] {
        assert!(changed.iter().any(|change| change == expected), "{expected}: {changed:?}");
    }
    assert_eq!(changed.len(), 4 + odd_names().len());
}

#[test]
fn the_users_filters_apply_to_a_candidate() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    let since = repo.checkpoint();
    repo.write("crlf.txt", "one\r\ntwo\r\n");
    let candidate = repo.candidate(&since);
    assert_eq!(repo.git(&["cat-file", "-s", &format!("{}:crlf.txt", candidate.tree)]), "8");
}

#[test]
fn commits_on_top_are_history_advanced_and_everything_else_is_history_moved() {
    let repo = Repo::new();
    repo.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let since = repo.checkpoint();
    let base = repo.head();
    repo.write("a.txt", "committed");
    repo.git(&["commit", "-qam", "agent"]);
    repo.write("b", "not committed");
    let candidate = repo.candidate(&since);
    assert_eq!(candidate.history, History::Advanced);
    assert_eq!(changes(&repo, &since, &candidate), ["M a.txt", "A b"]);
    let moves: [&[&[&str]]; 5] = [
        &[&["reset", "-q", "--hard", base.as_str()], &["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]],
        &[&["checkout", "-q", "-b", "elsewhere"]],
        &[&["checkout", "-q", "--detach"]],
        &[&["reset", "-q", "--hard", "HEAD~1"]],
        &[&["update-ref", "-d", "HEAD"]],
    ];
    for steps in moves {
        repo.git(&["checkout", "-q", "-f", "-B", "main", base.as_str()]);
        for step in steps {
            repo.git(step);
        }
        let history = repo.candidate(&since).history;
        assert!(matches!(history, History::Moved { .. }), "{steps:?}: {history:?}");
    }
}

#[test]
fn obstacles_are_named() {
    let repo = Repo::new();
    repo.git(&["init", "-q", "old-nested"]);
    let since = repo.checkpoint();
    repo.git(&["init", "-q", "nested"]);
    repo.write("nested/x", "x");
    repo.write("big", vec![0; 2000]);
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("a.txt", "theirs");
    repo.git(&["commit", "-qam", "theirs"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a.txt", "ours");
    repo.git(&["commit", "-qam", "ours"]);
    let merge = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| repo.git(&["merge", "-q", "other"])));
    assert!(merge.is_err(), "the merge conflicts");
    let rules = CandidateRules { excluded: PathSet::default(), largest_file: 1000 };
    let candidate = repo.git.candidate(&since, &rules).unwrap();
    let expected = [
        Obstacle::Unmerged("a.txt".into()),
        Obstacle::TooLarge { path: "big".into(), bytes: 2000 },
        Obstacle::Nested("nested".into()),
        Obstacle::Operation("merge"),
    ];
    assert_eq!(candidate.obstacles, expected);
}

#[test]
fn a_changed_submodule_is_an_obstacle_and_stays_out() {
    let repo = Repo::new();
    let inner = repo.home().join("inner");
    repo.git(&["clone", "-q", repo.path("").to_str().unwrap(), inner.to_str().unwrap()]);
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    repo.git(&["commit", "-qm", "submodule"]);
    let since = repo.checkpoint();
    repo.write("sub/a.txt", "dirty");
    repo.git(&["-C", "sub", "commit", "-qam", "inner"]);
    repo.git(&["add", "sub"]);
    let candidate = repo.candidate(&since);
    assert_eq!(candidate.obstacles, [Obstacle::Submodule("sub".into())]);
    assert_eq!(changes(&repo, &since, &candidate), [""; 0]);
}

#[test]
fn a_sparse_checkout_keeps_what_is_not_checked_out() {
    let repo = Repo::new();
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/dir/"]);
    assert!(!repo.exists("dir/b.txt"));
    let since = repo.checkpoint();
    repo.write("a.txt", "changed");
    let candidate = repo.candidate(&since);
    assert_eq!(changes(&repo, &since, &candidate), ["M a.txt"]);
    repo.commit(&candidate).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(!repo.exists("dir/b.txt"));
}

#[test]
fn tracked_files_in_an_ignored_directory_are_tracked() {
    let repo = Repo::new();
    repo.write("target/kept", "x");
    repo.write("target/built", "x");
    repo.git(&["add", "-f", "target/kept"]);
    repo.git(&["commit", "-qm", "forced"]);
    let since = repo.checkpoint();
    repo.write("target/kept", "changed");
    repo.write("target/more", "built");
    let candidate = repo.candidate(&since);
    assert_eq!(changes(&repo, &since, &candidate), ["M target/kept"]);
    assert!(candidate.obstacles.is_empty(), "{:?}", candidate.obstacles);
}
