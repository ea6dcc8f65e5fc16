use std::fs;
use std::path::PathBuf;

use verdone_core::base::id::Oid;
use verdone_runtime::git::{Git, Landing, LandingRefusal};

use crate::git_module::repo::{Repo, environment};

/// A commit on top of `main` that changes `a.txt`, deletes `dir/b.txt`, and adds `new/c.txt` and `data.log`, which is ignored.
fn ahead(repo: &Repo) -> Oid {
    let folder = repo.home().join("elsewhere");
    repo.git(&["worktree", "add", "-q", "--detach", folder.to_str().unwrap()]);
    fs::write(folder.join("a.txt"), "landed\n").unwrap();
    fs::remove_file(folder.join("dir/b.txt")).unwrap();
    fs::create_dir(folder.join("new")).unwrap();
    fs::write(folder.join("new/c.txt"), "three\n").unwrap();
    fs::write(folder.join("data.log"), "log\n").unwrap();
    let at = folder.to_str().unwrap();
    repo.git(&["-C", at, "add", "-Af", "."]);
    repo.git(&["-C", at, "commit", "-qm", "story"]);
    let commit = Oid(repo.git(&["-C", at, "rev-parse", "HEAD"]));
    repo.git(&["worktree", "remove", "--force", at]);
    commit
}

fn land(repo: &Repo, new: &Oid) -> Landing {
    repo.git.land_files(Some("main"), new).unwrap()
}

fn assert_landed(repo: &Repo, new: &Oid) {
    let before = repo.head();
    assert_eq!(land(repo, new), Landing::Landed { from: Some(before) });
    assert_eq!(repo.head(), *new);
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!((repo.read("a.txt"), repo.read("new/c.txt")), ("landed\n".to_owned(), "three\n".to_owned()));
    assert!(!repo.exists("dir/b.txt"));
}

/// Asserts that landing is refused and nothing changed.
fn assert_refused(repo: &Repo, new: &Oid) -> LandingRefusal {
    let before = (repo.git(&["for-each-ref"]), repo.git(&["ls-files", "-s"]), repo.work_tree());
    let Landing::Refused(refusal) = land(repo, new) else { panic!("it landed") };
    assert_eq!((repo.git(&["for-each-ref"]), repo.git(&["ls-files", "-s"]), repo.work_tree()), before);
    refusal
}

/// Our locks and files in the git folder.
pub(crate) fn leftovers(repo: &Repo) -> Vec<String> {
    let names = fs::read_dir(repo.git.git_dir()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("verdone-") || name.ends_with(".lock")).collect()
}

fn in_the_way(changed: &[&str], untracked: &[&str]) -> LandingRefusal {
    let paths = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    LandingRefusal::InTheWay { changed: paths(changed), untracked: paths(untracked) }
}

#[test]
fn a_landing_in_which_git_fails_halfway_is_finished_by_the_next_one() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let well = repo.home().join("well");
    // Git writes a.txt before it reaches the file whose filter fails.
    fs::write(repo.git.git_dir().join("info/attributes"), "new/c.txt filter=broken\n").unwrap();
    repo.git(&["config", "filter.broken.required", "true"]);
    repo.git(&["config", "filter.broken.clean", "cat"]);
    repo.git(&["config", "filter.broken.smudge", &format!("test -e '{}' && cat", well.display())]);
    let before = repo.head();
    let error = repo.git.land_files(Some("main"), &new).unwrap_err();
    assert!(error.to_string().starts_with("git stopped in the middle of landing: "), "{error}");
    assert_eq!((repo.head(), repo.read("a.txt")), (before, "landed\n".to_owned()));
    fs::write(well, "").unwrap();
    assert_landed(&repo, &new);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(leftovers(&repo), [""; 0]);
}

#[test]
fn a_clean_checkout_moves_forward_without_hooks_and_the_reflog_names_verdone() {
    let repo = Repo::new();
    let new = ahead(&repo);
    for hook in ["post-merge", "post-checkout", "reference-transaction", "pre-merge-commit", "post-index-change"] {
        repo.hook(hook, "touch ../hook-ran; exit 1");
    }
    let landing = land(&repo, &new);
    assert!(!repo.home().join("hook-ran").exists());
    fs::remove_dir_all(repo.git.common_dir().join("hooks")).unwrap();
    assert!(matches!(landing, Landing::Landed { .. }), "{landing:?}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    for name in ["HEAD", "main"] {
        assert_eq!(repo.git(&["log", "-g", "-1", "--format=%gs", name]), "verdone: land");
    }
    assert_eq!(land(&repo, &new), Landing::Landed { from: Some(new.clone()) }, "a second time there is nothing to do");
}

#[test]
fn unrelated_changes_of_the_user_stay() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.write("run.sh", "mine");
    repo.write("untracked", "mine");
    repo.write("staged", "mine");
    repo.git(&["add", "staged"]);
    assert_landed(&repo, &new);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M run.sh\nA  staged\n?? untracked");
}

#[test]
fn changes_that_would_be_overwritten_refuse_and_are_named() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.write("a.txt", "mine\n");
    repo.write("dir/b.txt", "mine\n");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&["a.txt", "dir/b.txt"], &[]));
    repo.git(&["checkout", "-q", "."]);
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "landed\n");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&["a.txt"], &[]), "what is staged is in no commit");
}

#[test]
fn untracked_and_ignored_files_are_not_overwritten() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.write("data.log", "my ignored log");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&[], &["data.log"]));
    repo.remove("data.log");
    repo.write("new/c.txt/inside", "a folder where a file has to be");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&[], &["new/c.txt/inside"]));
    fs::remove_dir_all(repo.path("new")).unwrap();
    repo.write("new", "a file where a folder has to be");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&[], &["new"]));
    repo.remove("new");
    assert_landed(&repo, &new);
}

#[test]
fn a_landing_that_was_killed_continues_from_any_point() {
    let steps: [fn(&Repo); 4] = [
        |repo| repo.write("a.txt", "landed\n"),
        |repo| repo.remove("dir/b.txt"),
        |repo| repo.write("new/c.txt", "three\n"),
        |repo| repo.write("data.log", "log\n"),
    ];
    for mask in 0..16_u32 {
        let repo = Repo::new();
        let new = ahead(&repo);
        steps.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).for_each(|(_, step)| step(&repo));
        assert_landed(&repo, &new);
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{mask}");
    }
}

#[test]
fn a_landing_that_was_killed_before_the_branch_moved_continues() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.git(&["read-tree", "-m", "-u", "HEAD", new.as_str()]);
    assert_landed(&repo, &new);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn files_already_landed_do_not_excuse_others_that_are_in_the_way() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.write("a.txt", "landed\n");
    repo.write("dir/b.txt", "mine\n");
    assert_eq!(assert_refused(&repo, &new), in_the_way(&["dir/b.txt"], &[]));
}

#[test]
fn other_states_refuse_with_a_reason() {
    let repo = Repo::new();
    let new = ahead(&repo);
    assert_eq!(repo.git.land_files(None, &new).unwrap(), Landing::Refused(LandingRefusal::Detached));
    fs::write(repo.git.git_dir().join("MERGE_HEAD"), format!("{new}\n")).unwrap();
    assert_eq!(assert_refused(&repo, &new), LandingRefusal::Operation("merge"));
    fs::remove_file(repo.git.git_dir().join("MERGE_HEAD")).unwrap();
    repo.git(&["commit", "-qm", "mine", "--allow-empty"]);
    assert_eq!(assert_refused(&repo, &new), LandingRefusal::Diverged { tip: repo.head() });
}

#[test]
fn a_branch_that_is_checked_out_nowhere_moves_alone() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let base = repo.head();
    repo.git(&["switch", "-qc", "other"]);
    let files = repo.work_tree();
    assert_eq!(land(&repo, &new), Landing::Landed { from: Some(base.clone()) });
    assert_eq!(repo.git.branch_tip("main").unwrap(), Some(new));
    assert_eq!((repo.head(), repo.work_tree()), (base, files));
}

#[test]
fn a_branch_that_another_work_tree_is_on_is_not_moved() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let main = repo.path("");
    let linked = repo.linked();
    let refusal = assert_refused(&linked, &new);
    let LandingRefusal::OtherWorkTree(path) = refusal else { panic!("{refusal:?}") };
    assert_eq!(fs::canonicalize(path).unwrap(), fs::canonicalize(&main).unwrap());
    let there = Git::open_with(&main, &environment(linked.home())).unwrap();
    assert!(matches!(there.land_files(Some("main"), &new).unwrap(), Landing::Landed { .. }));
}

#[test]
fn a_branch_without_a_commit_gets_its_first() {
    let repo = Repo::unborn(&[]);
    repo.write("a.txt", "landed\n");
    repo.write("new/c.txt", "three\n");
    repo.git(&["add", "-A"]);
    let tree = repo.git(&["write-tree"]);
    let new = Oid(repo.git(&["commit-tree", "-m", "first", &tree]));
    repo.git(&["rm", "-rqf", "."]);
    assert_eq!(land(&repo, &new), Landing::Landed { from: None });
    assert_eq!((repo.head(), repo.read("a.txt")), (new, "landed\n".to_owned()));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_touched_file_is_not_a_changed_one() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
    fs::File::open(repo.path("a.txt")).unwrap().set_modified(later).unwrap();
    assert_landed(&repo, &new);
}

#[test]
fn an_index_that_another_git_has_locked_refuses_and_the_lock_stays() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let lock = repo.git.git_dir().join("index.lock");
    fs::write(&lock, "").unwrap();
    let refusal = assert_refused(&repo, &new);
    assert!(matches!(&refusal, LandingRefusal::Git(said) if said.contains("index.lock")), "{refusal:?}");
    assert!(lock.exists());
    repo.git.remove_leftovers().unwrap();
    assert!(lock.exists(), "it is not ours");
}

#[test]
fn what_a_killed_landing_left_in_the_git_folder_is_removed_and_the_next_one_lands() {
    let repo = Repo::new();
    let new = ahead(&repo);
    let at = |name: &str| repo.git.git_dir().join(name);
    fs::write(at("verdone-index"), "").unwrap();
    fs::hard_link(at("verdone-index"), at("index.lock")).unwrap();
    fs::create_dir(at("verdone-copy-x")).unwrap();
    fs::write(at("verdone-copy-x/index.lock"), "").unwrap();
    repo.git.remove_leftovers().unwrap();
    assert_landed(&repo, &new);
    assert_eq!(leftovers(&repo), [""; 0]);
}

#[test]
fn the_lock_of_a_git_that_was_killed_while_it_wrote_files_is_removed_and_the_landing_continues() {
    let repo = Repo::new();
    repo.write(".gitattributes", "new/c.txt filter=deadly\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "attributes"]);
    let new = ahead(&repo);
    repo.git(&["config", "filter.deadly.smudge", "kill -9 $PPID"]);
    let begin = std::time::SystemTime::now();
    let error = repo.git.land_files(Some("main"), &new).unwrap_err();
    assert!(error.to_string().contains("read-tree"), "{error}");
    assert_ne!(repo.head(), new);
    let lock = repo.git.git_dir().join("index.lock");
    let remove = |since| repo.git.remove_stale_locks(since, &repo.run, Some("main")).unwrap();
    assert_eq!(remove(begin + std::time::Duration::from_mins(1)), [""; 0].map(PathBuf::from), "one of before is not ours");
    assert_eq!(remove(begin), [lock]);
    repo.git(&["config", "--unset", "filter.deadly.smudge"]);
    assert_landed(&repo, &new);
    assert_eq!(leftovers(&repo), [""; 0]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_lock_of_the_users_own_git_is_never_removed_unless_a_landing_was_cut_off() {
    let repo = Repo::new();
    let new = ahead(&repo);
    repo.git(&["branch", "other"]);
    let begin = std::time::SystemTime::now();
    let at = |name: &str| repo.git.git_dir().join(name);
    let locks = ["HEAD.lock", "index.lock", "refs/heads/main.lock", "refs/heads/other.lock"].map(at);
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    let remove = || repo.git.remove_stale_locks(begin, &repo.run, Some("verdone/run")).unwrap();
    assert_eq!(remove(), Vec::<PathBuf>::new(), "no landing began");
    // A landing on another branch locks only that branch. Git itself reports the lock, so this landing has ended.
    let error = repo.git.land_files(Some("other"), &new).unwrap_err();
    assert!(error.to_string().contains("other.lock"), "{error}");
    assert_eq!(remove(), Vec::<PathBuf>::new());
    let begin_landing = |branch: &str| fs::write(at("verdone-landing"), format!("{new} {branch}\n")).unwrap();
    begin_landing("other");
    assert_eq!(remove(), Vec::<PathBuf>::new(), "locks from before the landing");
    for lock in &locks {
        fs::write(lock, "x").unwrap();
    }
    assert_eq!(remove(), [at("refs/heads/other.lock")]);
    begin_landing("main");
    for lock in &locks[..3] {
        fs::write(lock, "xx").unwrap();
    }
    assert_eq!(remove(), locks[..3]);
}
