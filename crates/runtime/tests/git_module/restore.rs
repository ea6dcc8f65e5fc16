use std::fs;
use std::os::unix::fs::symlink;

use verdone_runtime::git::{GitError, PathSet, RestoreRules};

use crate::repo::{Repo, odd_names};

/// Takes a checkpoint, lets `attempt` loose, restores, and compares everything that must be the same.
fn comes_back(repo: &Repo, attempt: impl FnOnce(&Repo)) {
    let others = || {
        let all = repo.git(&["for-each-ref", "refs/stash", "refs/tags", "refs/heads/main", "refs/remotes"]);
        (all, repo.git(&["symbolic-ref", "HEAD"]))
    };
    let before = (repo.work_tree(), repo.index(), others());
    let checkpoint = repo.checkpoint();
    attempt(repo);
    let attempted = (repo.work_tree(), repo.index());
    let undo = repo.checkpoint();
    let restored = repo.restore(&checkpoint);
    assert!(restored.aside.is_empty(), "{restored:?}");
    assert_eq!((repo.work_tree(), repo.index(), others()), before);
    assert_eq!(repo.git.operation_in_progress(), None);
    assert!(repo.restore(&undo).aside.is_empty());
    assert_eq!((repo.work_tree(), repo.index()), attempted, "the rollback undone");
}

#[test]
fn edits_new_files_deletions_modes_and_links_come_back() {
    comes_back(&Repo::new(), |repo| {
        repo.write("a.txt", "changed");
        repo.remove("dir/b.txt");
        repo.chmod("run.sh", 0o644);
        repo.remove("link");
        symlink("elsewhere", repo.path("link")).unwrap();
        repo.write("deep/er/new", "x");
        for name in odd_names() {
            repo.write(&name, "odd");
        }
    });
}

#[test]
fn a_dirty_start_comes_back_byte_for_byte() {
    let repo = Repo::new();
    repo.write("a.txt", "my edit\r\nmixed\n");
    repo.write("dir/b.txt", "staged");
    repo.git(&["add", "dir/b.txt"]);
    repo.write("dir/b.txt", "and more");
    repo.remove("run.sh");
    repo.write("mine", "untracked");
    repo.chmod("mine", 0o600);
    symlink("mine", repo.path("mylink")).unwrap();
    repo.write("intended", "later");
    repo.git(&["add", "-N", "intended"]);
    repo.git(&["rm", "-q", "--cached", "link"]);
    for name in odd_names() {
        repo.write(&name, "odd");
    }
    comes_back(&repo, |repo| {
        repo.write("a.txt", "agent");
        repo.write("run.sh", "#!/bin/sh\n");
        repo.chmod("run.sh", 0o755);
        repo.remove("mine");
        repo.remove("mylink");
        repo.write("mylink", "a file");
        repo.git(&["add", "-A"]);
        for name in odd_names() {
            fs::remove_file(repo.path(&name)).unwrap();
        }
    });
}

#[test]
fn files_and_directories_that_swap_places_come_back() {
    let repo = Repo::new();
    repo.write("loose/one", "untracked");
    repo.write("plain", "untracked");
    comes_back(&repo, |repo| {
        fs::remove_dir_all(repo.path("dir")).unwrap();
        repo.write("dir", "a file now");
        repo.remove("a.txt");
        repo.write("a.txt/x/y", "a directory now");
        fs::remove_dir_all(repo.path("loose")).unwrap();
        repo.write("loose", "a file now");
        repo.remove("plain");
        repo.write("plain/x", "a directory now");
    });
}

#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    let repo = Repo::new();
    repo.write("loose/one", "untracked");
    let outside = repo.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("b.txt"), "not ours").unwrap();
    fs::write(outside.join("one"), "not ours").unwrap();
    comes_back(&repo, |repo| {
        for dir in ["dir", "loose"] {
            fs::remove_dir_all(repo.path(dir)).unwrap();
            symlink(&outside, repo.path(dir)).unwrap();
        }
    });
    assert_eq!(fs::read_to_string(outside.join("b.txt")).unwrap(), "not ours");
    assert_eq!(fs::read_to_string(outside.join("one")).unwrap(), "not ours");
}

#[test]
fn commits_amends_resets_and_switches_of_the_agent_are_taken_back() {
    let moves: [&[&[&str]]; 6] = [
        &[&["add", "-A"], &["commit", "-qm", "agent"]],
        &[&["commit", "-qa", "--amend", "-m", "amended"]],
        &[&["reset", "-q", "--hard", "HEAD~1"]],
        &[&["checkout", "-q", "-b", "elsewhere"], &["commit", "-qam", "there"]],
        &[&["checkout", "-q", "--detach"], &["commit", "-qam", "nowhere"]],
        &[&["checkout", "-q", "-b", "elsewhere"], &["branch", "-q", "-D", "main"]],
    ];
    for steps in moves {
        let repo = Repo::new();
        repo.git(&["tag", "mark"]);
        repo.write("a.txt", "to stash");
        repo.git(&["stash", "-q"]);
        repo.write("a.txt", "second");
        repo.git(&["commit", "-qam", "second"]);
        comes_back(&repo, |repo| {
            repo.write("a.txt", "agent");
            repo.write("agent.txt", "agent");
            for step in steps {
                repo.git(step);
            }
        });
    }
}

#[test]
fn an_unborn_branch_comes_back_unborn() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let repo = Repo::unborn(options);
        repo.write("mine", "untracked");
        comes_back(&repo, |repo| {
            repo.write("a.txt", "x");
            repo.git(&["add", "a.txt"]);
            repo.git(&["commit", "-qm", "root"]);
            repo.write("a.txt", "y");
        });
    }
}

#[test]
fn a_half_done_merge_is_forgotten() {
    let repo = Repo::new();
    let checkpoint = repo.checkpoint();
    let before = (repo.work_tree(), repo.index());
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("a.txt", "theirs");
    repo.git(&["commit", "-qam", "theirs"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a.txt", "ours");
    repo.git(&["commit", "-qam", "ours"]);
    for start in ["merge", "cherry-pick", "rebase"] {
        let head = repo.head();
        let conflict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| repo.git(&[start, "other"])));
        assert!(conflict.is_err(), "{start}");
        assert_eq!(repo.git.operation_in_progress(), Some(start));
        repo.restore(&checkpoint);
        assert_eq!((repo.work_tree(), repo.index()), before, "{start}");
        assert_eq!(repo.git.operation_in_progress(), None);
        repo.git(&["reset", "-q", "--hard", head.as_str()]);
    }
}

#[test]
fn ignored_files_are_left_alone_whatever_the_agent_does_to_the_ignore_rules() {
    let repo = Repo::new();
    repo.write("old.log", "ignored at the checkpoint");
    repo.write("target/out", "ignored directory");
    repo.write("mine", "untracked");
    let before = repo.work_tree();
    let checkpoint = repo.checkpoint();
    repo.write(".gitignore", "hidden/\nmine\n");
    repo.write("hidden/by-agent", "x");
    repo.write("mine", "changed although ignored now");
    repo.write("old.log", "changed");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "agent"]);
    let mut aside = repo.restore(&checkpoint).aside;
    aside.sort();
    // Hidden from every checkpoint by the agent's own rules, so neither kept in place nor deleted.
    assert_eq!(aside, [repo.home().join("aside/hidden/by-agent"), repo.home().join("aside/mine")]);
    assert_eq!(fs::read_to_string(&aside[1]).unwrap(), "changed although ignored now");
    let mut after = repo.work_tree();
    assert_eq!(after["old.log".as_ref() as &std::ffi::OsStr].1, b"changed");
    after.insert("old.log".into(), before["old.log".as_ref() as &std::ffi::OsStr].clone());
    assert_eq!(after, before);
}

#[test]
fn a_repository_made_by_the_attempt_is_moved_aside_and_an_old_one_is_not_touched() {
    let repo = Repo::new();
    repo.git(&["init", "-q", "old"]);
    repo.write("old/file", "x");
    let checkpoint = repo.checkpoint();
    repo.git(&["init", "-q", "made/inner"]);
    repo.write("made/inner/file", "y");
    repo.write("old/file", "changed");
    let restored = repo.restore(&checkpoint);
    assert!(!repo.exists("made"));
    assert_eq!(restored.aside, [repo.home().join("aside/made/inner")]);
    assert_eq!(fs::read_to_string(restored.aside[0].join("file")).unwrap(), "y");
    assert_eq!(repo.read("old/file"), "changed");
}

#[test]
fn ignored_files_in_the_way_are_moved_aside() {
    let repo = Repo::new();
    let checkpoint = repo.checkpoint();
    repo.remove("a.txt");
    repo.write("a.txt/precious.log", "ignored");
    let restored = repo.restore(&checkpoint);
    assert_eq!(repo.read("a.txt"), "one\n");
    assert_eq!(fs::read_to_string(restored.aside[0].join("precious.log")).unwrap(), "ignored");
}

#[test]
fn filters_apply_to_clean_files_and_not_to_kept_ones() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.remove("a.txt");
    repo.git(&["checkout", "-q", "a.txt"]);
    assert_eq!(repo.read("a.txt"), "one\r\n");
    repo.write("dir/b.txt", "mixed\r\nends\n");
    comes_back(&repo, |repo| {
        repo.write("a.txt", "other\n");
        repo.write("dir/b.txt", "other\n");
    });
}

#[test]
fn only_files_that_differ_are_written() {
    let repo = Repo::new();
    for number in 0..20 {
        repo.write(format!("untracked-{number}"), "x");
    }
    let checkpoint = repo.checkpoint();
    let inode = |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(repo.path(name)).unwrap());
    let before = (inode("untracked-1"), inode("a.txt"));
    repo.write("untracked-0", "y");
    repo.write("dir/b.txt", "y");
    repo.write("new", "y");
    assert_eq!(repo.restore(&checkpoint).files, 3);
    assert_eq!((inode("untracked-1"), inode("a.txt")), before);
    assert_eq!(repo.restore(&checkpoint).files, 0);
}

#[test]
fn linked_work_trees_are_restored_without_touching_the_main_one() {
    let repo = Repo::new();
    let main_tree = repo.work_tree();
    let main_top = repo.path("");
    let repo = repo.linked();
    let checkpoint = repo.checkpoint();
    repo.write("a.txt", "agent");
    repo.git(&["commit", "-qam", "agent"]);
    repo.restore(&checkpoint);
    assert_eq!(repo.work_tree().len(), main_tree.len());
    assert_eq!(repo.git(&["rev-parse", "side"]), repo.git(&["rev-parse", "main"]));
    assert_eq!(fs::read_to_string(main_top.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn an_edit_in_the_same_instant_as_the_index_is_not_hidden_by_a_copy_of_it() {
    let repo = Repo::new();
    let instant = std::time::UNIX_EPOCH + std::time::Duration::from_hours(24);
    let stamp = |path: std::path::PathBuf| fs::File::options().write(true).open(path).unwrap().set_modified(instant).unwrap();
    repo.git(&["config", "core.trustctime", "false"]);
    repo.write("a.txt", "two\n");
    stamp(repo.path("a.txt"));
    repo.git(&["add", "a.txt"]);
    stamp(repo.git.git_dir().join("index"));
    repo.write("a.txt", "six\n");
    stamp(repo.path("a.txt"));
    let checkpoint = repo.checkpoint();
    let candidate = repo.candidate(&checkpoint);
    assert_eq!(repo.git(&["show", &format!("{}:a.txt", candidate.tree)]), "six");
    repo.write("dir/b.txt", "agent");
    repo.git(&["add", "dir/b.txt"]);
    repo.restore(&checkpoint);
    assert_eq!(repo.git(&["status", "--porcelain"]), "MM a.txt");
}

#[test]
fn staged_content_outlives_the_index_that_named_it() {
    let repo = Repo::new();
    repo.write("a.txt", "staged");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "and changed again");
    let checkpoint = repo.checkpoint();
    repo.git(&["add", "a.txt"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.restore(&checkpoint);
    assert_eq!(repo.git(&["show", ":a.txt"]), "staged");
    assert_eq!(repo.read("a.txt"), "and changed again");
}

#[test]
fn many_files_come_back() {
    let repo = Repo::new();
    let name = |kind: &str, number: usize| format!("some/long/directory/name/{kind}-{}-{number}", "x".repeat(60));
    for number in 0..400 {
        repo.write(name("tracked", number), "x");
        repo.write(name("edited", number), "x");
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "many"]);
    for number in 0..400 {
        repo.write(name("edited", number), number.to_string());
        repo.write(name("untracked", number), number.to_string());
    }
    comes_back(&repo, |repo| {
        for number in 0..400 {
            repo.write(name("tracked", number), "agent");
            repo.remove(&name("edited", number));
            repo.write(name("untracked", number), "agent");
            repo.write(name("new", number), "agent");
        }
        let candidate = repo.candidate(&repo.checkpoint());
        assert_eq!(candidate.changes.len(), 800);
    });
}

#[test]
fn a_split_index_comes_back() {
    let repo = Repo::new();
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.git(&["update-index", "--split-index"]);
    repo.write("a.txt", "staged");
    repo.git(&["add", "a.txt"]);
    comes_back(&repo, |repo| {
        repo.write("dir/b.txt", "agent");
        let since = repo.checkpoint();
        repo.write("new", "agent");
        repo.commit(&repo.candidate(&since)).unwrap();
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
    });
}

#[test]
fn a_file_that_git_always_calls_modified_does_not_keep_a_restore_from_ending() {
    let repo = Repo::new();
    repo.write("crlf.txt", "one\r\n");
    // Old enough that git trusts the times in its index and does not look inside.
    let file = fs::File::options().write(true).open(repo.path("crlf.txt")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_hours(24)).unwrap();
    repo.git(&["add", "crlf.txt"]);
    repo.write(".gitattributes", "*.txt text\n");
    repo.git(&["add", ".gitattributes"]);
    repo.git(&["commit", "-qm", "line ends against the attributes"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let checkpoint = repo.checkpoint();
    let before = repo.work_tree();
    repo.write("crlf.txt", "agent");
    repo.write(".gitattributes", "*.txt -text\n");
    repo.restore(&checkpoint);
    assert_eq!(repo.work_tree(), before);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M crlf.txt");
}

#[test]
fn a_submodule_made_by_the_attempt_is_moved_aside() {
    let repo = Repo::new();
    let inner = repo.home().join("inner");
    repo.git(&["clone", "-q", repo.path("").to_str().unwrap(), inner.to_str().unwrap()]);
    let checkpoint = repo.checkpoint();
    let before = (repo.work_tree(), repo.index());
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    repo.git(&["commit", "-qm", "agent"]);
    let restored = repo.restore(&checkpoint);
    assert_eq!((repo.work_tree(), repo.index()), before);
    assert_eq!(restored.aside, [repo.home().join("aside/sub")]);
}

#[test]
fn what_ignore_rules_of_the_attempt_hide_is_not_overwritten_by_a_file_that_was_clean() {
    let repo = Repo::new();
    let checkpoint = repo.checkpoint();
    repo.git(&["rm", "-q", "--cached", "a.txt"]);
    repo.git(&["commit", "-qm", "agent"]);
    repo.write(".gitignore", "a.txt\n");
    repo.write("a.txt", "no checkpoint has this");
    let restored = repo.restore(&checkpoint);
    assert_eq!(repo.read("a.txt"), "one\n");
    assert_eq!(restored.aside, [repo.home().join("aside/a.txt")]);
    assert_eq!(fs::read_to_string(&restored.aside[0]).unwrap(), "no checkpoint has this");
}

#[test]
fn what_a_killed_restore_left_in_the_git_directory_is_removed_and_nothing_else() {
    let repo = Repo::new();
    let checkpoint = repo.checkpoint();
    repo.write("a.txt", "agent");
    repo.git(&["add", "a.txt"]);
    repo.checkpoint();
    let git_dir = repo.git.git_dir();
    let (draft, lock) = (git_dir.join("verdone-index"), git_dir.join("index.lock"));
    fs::write(&draft, "half").unwrap();
    fs::hard_link(&draft, &lock).unwrap();
    fs::create_dir(git_dir.join("verdone-copy-x7Kd")).unwrap();
    fs::write(git_dir.join("verdone-copy-x7Kd/index"), "").unwrap();
    fs::write(git_dir.join("verdone.lock"), "").unwrap();
    repo.git.remove_leftovers().unwrap();
    assert!(!draft.exists() && !lock.exists() && !git_dir.join("verdone-copy-x7Kd").exists());
    assert!(git_dir.join("verdone.lock").exists());
    let rules = || RestoreRules { skip: PathSet::default(), aside: repo.home().join("aside") };
    repo.git.restore(&checkpoint, &rules()).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");

    repo.write("a.txt", "agent");
    repo.git(&["add", "a.txt"]);
    fs::write(&lock, "").unwrap();
    repo.git.remove_leftovers().unwrap();
    let error = repo.git.restore(&checkpoint, &rules()).unwrap_err();
    assert!(matches!(error, GitError::Locked { .. }), "{error}");
    assert!(lock.exists(), "the lock of somebody else stays");
    fs::remove_file(lock).unwrap();
}
