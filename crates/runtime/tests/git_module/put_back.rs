//! The user's changes leave the work tree and come back: the same files, the same index, byte for byte, or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use verdone_runtime::git::{CheckpointRequest, GitError, KeptChanges, PathSet, RestoreRules, Return, SnapshotLimits};

use crate::repo::{Repo, WorkTree, odd_names};
use crate::steps::{step, take};

fn keep(repo: &Repo) -> Result<Option<KeptChanges>, GitError> {
    let (skip, ours) = (PathSet::default(), PathSet::from_iter(["PLAN.md"]));
    let limits = SnapshotLimits::default();
    let request = CheckpointRequest { chain: &repo.run, label: "set aside", extra: &[], skip: &skip, limits };
    repo.git.keep_changes(&request, &ours)
}

fn rules(repo: &Repo) -> RestoreRules {
    RestoreRules { skip: PathSet::default(), aside: repo.home().join("aside") }
}

fn clear(repo: &Repo, kept: &KeptChanges) {
    repo.git.clear_changes(&kept.checkpoint, &kept.clean, &rules(repo)).unwrap();
}

fn put_back(repo: &Repo, kept: &KeptChanges) -> Return {
    let now = repo.checkpoint();
    repo.git.put_back(&repo.run, &kept.checkpoint, &kept.paths, &now, &rules(repo)).unwrap()
}

/// What git says about the tree, what the index holds, and every file.
fn seen(repo: &Repo) -> (String, String, WorkTree) {
    let status = repo.git(&["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]);
    (status, repo.git(&["ls-files", "-s", "-z"]), repo.work_tree())
}

/// Takes the changes out, sees that the tree is HEAD's, commits something else, and brings them back.
fn comes_back(repo: &Repo) {
    let before = seen(repo);
    let kept = keep(repo).unwrap().unwrap();
    assert_eq!(seen(repo), before, "keeping touches nothing");
    clear(repo, &kept);
    assert_eq!(repo.git(&["status", "--porcelain", "--untracked-files=no"]), "", "the tree is as HEAD has it");
    assert_eq!(put_back(repo, &kept), Return::Done { files: kept.paths.len() as u32 });
    assert_eq!(seen(repo), before, "back on the same HEAD");
    assert_eq!(put_back(repo, &kept), Return::Done { files: kept.paths.len() as u32 });
    assert_eq!(seen(repo), before, "a second time changes nothing");

    let kept = keep(repo).unwrap().unwrap();
    clear(repo, &kept);
    repo.write("story/file", "from the story\n");
    repo.git(&["add", "story/file"]);
    repo.git(&["commit", "-qm", "story"]);
    assert_eq!(put_back(repo, &kept), Return::Done { files: kept.paths.len() as u32 });
    let (status, index, mut files) = seen(repo);
    files.remove(std::ffi::OsStr::new("story/file"));
    let without = |text: &str| text.split('\0').filter(|line| !line.ends_with("story/file")).collect::<Vec<_>>().join("\0");
    assert_eq!((status, without(&index), files), before, "back on a HEAD that has moved on");
}

#[test]
fn nothing_to_keep_where_nothing_is_changed() {
    let repo = Repo::new();
    repo.write("mine", "untracked");
    repo.write("PLAN.md", "the plan is ours");
    repo.git(&["add", "PLAN.md"]);
    assert_eq!(keep(&repo).unwrap(), None);
}

#[test]
fn every_kind_of_change_comes_back() {
    let repo = Repo::new();
    for name in odd_names() {
        repo.write(&name, "old");
    }
    for name in ["staged", "gone", "moved", "half", "mode", "out", "was-file"] {
        repo.write(name, format!("{name}\n1\n2\n3\n"));
    }
    repo.write("was-dir/x", "x");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "more"]);

    for name in odd_names() {
        repo.write(&name, b"new\r\n\xff");
    }
    repo.write("staged", "staged only");
    repo.git(&["add", "staged"]);
    repo.write("half", "staged half");
    repo.git(&["add", "half"]);
    repo.write("half", "and a half that is not");
    repo.chmod("mode", 0o755);
    repo.chmod("a.txt", 0o600);
    repo.write("a.txt", "private edit");
    repo.git(&["rm", "-q", "--cached", "out"]);
    repo.write("out", "out of the index, changed");
    repo.git(&["rm", "-q", "gone"]);
    repo.git(&["mv", "moved", "dir/moved here"]);
    repo.remove("link");
    symlink("elsewhere", repo.path("link")).unwrap();
    repo.write("new", "staged new");
    repo.git(&["add", "new"]);
    repo.write("new and gone", "x");
    repo.git(&["add", "new and gone"]);
    repo.remove("new and gone");
    repo.write("intended", "later");
    repo.git(&["add", "-N", "intended"]);
    repo.write("forced.log", "ignored, and added all the same");
    repo.git(&["add", "-f", "forced.log"]);
    repo.remove("was-file");
    repo.write("was-file/inside", "a folder now");
    repo.git(&["add", "-A", "was-file"]);
    fs::remove_dir_all(repo.path("was-dir")).unwrap();
    repo.write("was-dir", "a file now, and nobody added it");
    repo.write("mine", "untracked");
    repo.write("out.log", "ignored");
    comes_back(&repo);
}

#[test]
fn filters_are_not_asked_about_the_bytes() {
    let repo = Repo::new();
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write(".gitattributes", "*.txt text\n");
    repo.write("lines.txt", "one\r\ntwo\r\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "lines"]);
    repo.write("lines.txt", "one\ntwo\r\nmixed\n");
    repo.write("a.txt", "lf only\n");
    repo.git(&["add", "a.txt"]);
    repo.write(".gitattributes", "*.txt -text\n");
    comes_back(&repo);
}

#[test]
fn what_the_users_own_ignore_rules_hide_stays_where_it_is() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.log\ntarget/\nprivate/\n");
    repo.write("private/key", "not for anybody");
    comes_back(&repo);
    assert_eq!(repo.read("private/key"), "not for anybody");
}

#[test]
fn marks_that_hide_files_and_other_indexes_come_back() {
    let repo = Repo::new();
    repo.git(&["update-index", "--assume-unchanged", "run.sh"]);
    repo.write("run.sh", "a private version");
    repo.write("a.txt", "changed");
    comes_back(&repo);
    assert!(repo.git(&["ls-files", "-v"]).contains("h run.sh"));
    for setup in [["update-index", "--index-version", "4"], ["config", "core.splitIndex", "true"]] {
        let repo = Repo::new();
        repo.git(&setup);
        repo.write("a.txt", "staged");
        repo.git(&["add", "a.txt"]);
        repo.write("a.txt", "and changed");
        comes_back(&repo);
    }
}

#[test]
fn before_the_first_commit_everything_staged_comes_back() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let repo = Repo::unborn(options);
        repo.write("a.txt", "staged");
        repo.write("b.txt", "staged");
        repo.git(&["add", "-A"]);
        repo.write("b.txt", "and changed");
        repo.write("later", "intended");
        repo.git(&["add", "-N", "later"]);
        repo.write("mine", "untracked");
        comes_back(&repo);
    }
}

#[test]
fn in_a_linked_work_tree_it_is_the_same() {
    let repo = Repo::new().linked();
    repo.write("a.txt", "edit");
    repo.git(&["add", "a.txt"]);
    repo.write("dir/b.txt", "edit");
    comes_back(&repo);
}

#[test]
fn plain_git_can_apply_what_was_set_aside() {
    for unborn in [false, true] {
        let repo = if unborn { Repo::unborn(&[]) } else { Repo::new() };
        repo.write("a.txt", "staged\n");
        repo.write("new", "staged new\n");
        repo.git(&["add", "a.txt", "new"]);
        repo.write("a.txt", "staged\nand changed\n");
        if !unborn {
            repo.git(&["rm", "-q", "dir/b.txt"]);
            repo.write("dir", "a file that nobody added, where HEAD has a folder");
            repo.chmod("run.sh", 0o644);
        }
        let before = seen(&repo);
        let kept = keep(&repo).unwrap().unwrap();
        clear(&repo, &kept);
        if unborn {
            repo.git(&["commit", "-q", "--allow-empty", "-m", "root"]);
        }
        repo.git(&["stash", "apply", "-q", "--index", kept.stash.as_str()]);
        let after = seen(&repo);
        assert_eq!((after.1, after.2), (before.1, before.2), "unborn: {unborn}");
        assert_eq!(repo.git(&["for-each-ref", "refs/stash"]), "");
        assert_eq!(repo.git(&["merge-base", "--is-ancestor", kept.stash.as_str(), &format!("refs/verdone/{}", repo.run)]), "");
    }
}

#[test]
fn an_overlap_leaves_everything_as_it_is() {
    // What the user changed, and what the commit changes: the same, above it, below it, and the same but for its case.
    for (mine, theirs) in [("a.txt", "a.txt"), ("both", "both"), ("new", "new/below"), ("new/below", "new"), ("Readme", "README")]
    {
        let repo = Repo::new();
        repo.write(mine, "mine");
        repo.git(&["add", mine]);
        let kept = keep(&repo).unwrap().unwrap();
        clear(&repo, &kept);
        repo.write(theirs, "theirs");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "story"]);
        let before = (seen(&repo), repo.index());
        assert_eq!(put_back(&repo, &kept), Return::Overlap(vec![mine.into()]), "{mine} {theirs}");
        assert_eq!((seen(&repo), repo.index()), before, "{mine} {theirs}");
    }
}

#[test]
fn a_deletion_against_a_change_is_an_overlap_too() {
    let repo = Repo::new();
    repo.git(&["rm", "-q", "a.txt"]);
    let kept = keep(&repo).unwrap().unwrap();
    clear(&repo, &kept);
    repo.write("a.txt", "theirs");
    repo.git(&["commit", "-qam", "story"]);
    assert_eq!(put_back(&repo, &kept), Return::Overlap(vec!["a.txt".into()]));
    assert_eq!(repo.read("a.txt"), "theirs");
}

#[test]
fn somebody_elses_file_in_the_place_is_not_replaced() {
    let obstacles: [(&str, &str); 6] = [
        ("new", "new"),
        ("new", "new/below"),
        ("deep/new", "deep"),
        ("forced.log", "forced.log"),
        ("a.txt", "a.txt"),
        ("new", "new/ignored.log"),
    ];
    for (mine, theirs) in obstacles {
        let repo = Repo::new();
        repo.write(mine, "mine");
        repo.git(&["add", "-f", mine]);
        let kept = keep(&repo).unwrap().unwrap();
        clear(&repo, &kept);
        repo.write(theirs, "left by a check");
        let before = (seen(&repo), repo.index());
        assert!(matches!(put_back(&repo, &kept), Return::InTheWay(_)), "{mine} {theirs}");
        assert_eq!((seen(&repo), repo.index()), before, "{mine} {theirs}");
    }
}

#[test]
fn what_cannot_be_set_aside_is_refused_before_anything_is_touched() {
    let repo = Repo::new();
    repo.git(&["rm", "-q", "a.txt"]);
    repo.write("a.txt/ignored.log", "in the place of a file, and not kept by any checkpoint");
    let before = (seen(&repo), repo.index());
    let error = keep(&repo).unwrap_err();
    assert!(error.to_string().contains("a.txt/ignored.log"), "{error}");
    assert_eq!((seen(&repo), repo.index()), before);
}

#[test]
fn what_somebody_goes_on_changing_is_left_to_them() {
    let ways: [fn(&Repo); 4] = [
        |repo| repo.write("dir/b.txt", "mine, and more"),
        |repo| repo.remove("a.txt"),
        |repo| repo.write("run.sh", "there again"),
        |repo| {
            repo.remove("link");
            symlink("somewhere else", repo.path("link")).unwrap();
        },
    ];
    for (number, change) in ways.iter().enumerate() {
        let repo = Repo::new();
        repo.write("a.txt", "mine");
        repo.write("dir/b.txt", "mine");
        repo.remove("run.sh");
        repo.remove("link");
        symlink("elsewhere", repo.path("link")).unwrap();
        let kept = keep(&repo).unwrap().unwrap();
        change(&repo);
        let before = (seen(&repo), repo.index());
        let error = repo.git.clear_changes(&kept.checkpoint, &kept.clean, &rules(&repo)).unwrap_err();
        assert!(error.to_string().ends_with("changed meanwhile"), "{number}: {error}");
        assert_eq!((seen(&repo), repo.index()), before, "{number}");
    }
}

#[test]
fn other_files_are_not_touched_even_if_they_change_meanwhile() {
    let repo = Repo::new();
    repo.write("a.txt", "mine");
    repo.write("notes", "untracked");
    let kept = keep(&repo).unwrap().unwrap();
    repo.write("notes", "edited since");
    repo.write("dir/b.txt", "edited since");
    repo.write("more", "new since");
    clear(&repo, &kept);
    let now = repo.checkpoint();
    repo.write("notes", "edited again");
    repo.write("even more", "new again");
    let back = repo.git.put_back(&repo.run, &kept.checkpoint, &kept.paths, &now, &rules(&repo)).unwrap();
    assert_eq!(back, Return::Done { files: 1 });
    assert_eq!(repo.git(&["status", "--porcelain"]), " M a.txt\n M dir/b.txt\n?? \"even more\"\n?? more\n?? notes");
    assert_eq!(repo.read("notes"), "edited again");
}

#[test]
fn work_of_others_beside_the_changes_stays() {
    let repo = Repo::new();
    repo.write("a.txt", "mine");
    repo.git(&["add", "a.txt"]);
    let kept = keep(&repo).unwrap().unwrap();
    clear(&repo, &kept);
    repo.write("dir/b.txt", "edited by a script, uncommitted");
    repo.write("also", "staged meanwhile");
    repo.git(&["add", "also"]);
    repo.write("debris", "x");
    assert_eq!(put_back(&repo, &kept), Return::Done { files: 1 });
    assert_eq!(repo.git(&["status", "--porcelain"]), "M  a.txt\nA  also\n M dir/b.txt\n?? debris");
}

/// The contents of a mixed state: each path either as it is at one side or at the other, as a crash can leave it.
fn mix(repo: &Repo, from: &WorkTree, to: &WorkTree, choice: u64) {
    let names: BTreeSet<_> = from.keys().chain(to.keys()).collect();
    for (at, name) in names.into_iter().enumerate() {
        let wanted = if choice >> (at % 64) & 1 == 0 { from.get(name) } else { to.get(name) };
        let place = repo.path(name);
        if fs::symlink_metadata(&place).is_ok_and(|meta| !meta.is_dir()) {
            fs::remove_file(&place).unwrap();
        }
        // Where files and folders change places, one of both has to be left out.
        let Some((mode, bytes)) = wanted else { continue };
        if place.is_dir() || fs::create_dir_all(place.parent().unwrap()).is_err() {
            continue;
        }
        if *mode == 0o120_000 {
            use std::os::unix::ffi::OsStrExt as _;
            symlink(std::ffi::OsStr::from_bytes(bytes), &place).unwrap();
        } else {
            fs::write(&place, bytes).unwrap();
            repo.chmod(name.to_str().unwrap(), *mode);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dirty_state_comes_back_from_wherever_a_crash_left_it(
        user in proptest::collection::vec(step(), 1..10), files in any::<u64>(), index_first in any::<bool>(),
    ) {
        let repo = Repo::new();
        for step in &user {
            take(&repo, step);
        }
        let before = (seen(&repo), repo.git(&["rev-parse", "HEAD"]));
        // A state that cannot be set aside is left alone.
        let kept = match keep(&repo) {
            Ok(Some(kept)) => kept,
            Ok(None) | Err(GitError::CannotSetAside { .. }) => {
                prop_assert_eq!((seen(&repo), repo.git(&["rev-parse", "HEAD"])), before);
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        prop_assert_eq!(&seen(&repo), &before.0);
        let dirty_index = repo.index();
        clear(&repo, &kept);
        prop_assert_eq!(repo.git(&["status", "--porcelain", "--untracked-files=no"]), "");
        let clean = repo.work_tree();
        mix(&repo, &clean, &before.0.2, files);
        if let (true, Some(index)) = (index_first, dirty_index) {
            fs::write(repo.git.git_dir().join("index"), index).unwrap();
        }
        let outcome = put_back(&repo, &kept);
        prop_assert_eq!(outcome, Return::Done { files: kept.paths.len() as u32 });
        prop_assert_eq!((seen(&repo), repo.git(&["rev-parse", "HEAD"])), before);
    }
}
