use std::fs::{self, FileTimes};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, SystemTime};

use verdone_core::base::id::Oid;
use verdone_runtime::git::{BuiltFrom, DatedBy, EarlierBuild, Filters, file_clock_after, latest_file_time};

use crate::git_module::repo::{Repo, odd_names};
use crate::git_module::workspace::Workspace;

fn tree_of(repo: &Repo) -> Oid {
    Oid(repo.git(&["rev-parse", "HEAD^{tree}"]))
}

fn age(repo: &Repo, name: &str) {
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    let file = fs::File::open(repo.path(name)).unwrap();
    file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
}

#[test]
fn a_tree_is_laid_out_as_git_would_check_it_out() {
    let repo = Repo::new();
    for name in odd_names() {
        repo.write(name, "x");
    }
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write("windows.txt", "a\r\nb\r\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "odd"]);
    let workspace = Workspace::new(&repo);
    assert_eq!(fs::read(workspace.path("windows.txt")).unwrap(), b"a\r\nb\r\n");
    assert_eq!(fs::read_link(workspace.path("link")).unwrap().to_str(), Some("a.txt"));
    assert_eq!(fs::metadata(workspace.path("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    for name in odd_names() {
        assert_eq!(fs::read(workspace.path(name)).unwrap(), b"x");
    }
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert_eq!(workspace.imported(&repo), tree_of(&repo));
}

#[test]
fn files_are_updated_to_another_tree() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    repo.git(&["rm", "-q", "dir/b.txt"]);
    repo.write("a.txt", "changed\n");
    repo.write("new/deep.txt", "new\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "second"]);
    repo.git.update_files(&tree_of(&repo), &workspace.tree(), &workspace.index(), &Filters::None).unwrap();
    assert_eq!(fs::read(workspace.path("a.txt")).unwrap(), b"changed\n");
    assert!(!workspace.path("dir").exists() && workspace.path("new/deep.txt").exists());
    assert_eq!(workspace.imported(&repo), tree_of(&repo));
}

#[test]
fn the_checkout_of_the_user_is_not_touched() {
    let repo = Repo::new();
    repo.write("a.txt", "mine\n");
    repo.write("untracked", "mine\n");
    let (index, files) = (repo.index(), repo.work_tree());
    let workspace = Workspace::new(&repo);
    assert_eq!(fs::read(workspace.path("a.txt")).unwrap(), b"one\n");
    assert!(!workspace.path("untracked").exists());
    assert_eq!((repo.index(), repo.work_tree()), (index, files));
}

#[test]
fn a_sparse_checkout_stays_sparse_and_the_rest_stays_in_the_tree() {
    let repo = Repo::new();
    repo.write("other/c.txt", "three\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "other"]);
    repo.git(&["sparse-checkout", "set", "dir"]);
    let workspace = Workspace::new(&repo);
    assert!(workspace.path("dir/b.txt").exists() && !workspace.path("other").exists());
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    workspace.write("dir/b.txt", "changed");
    let tree = workspace.imported(&repo);
    assert!(repo.files_of(&tree).contains(&"other/c.txt".to_owned()));
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", tree.as_str()]), "dir/b.txt");
}

#[test]
fn sha256_and_linked_work_trees_work_alike() {
    let sha256 = Repo::unborn(&["--object-format=sha256"]);
    sha256.write("a", "1");
    sha256.git(&["add", "-A"]);
    sha256.git(&["commit", "-qm", "start"]);
    for repo in [sha256, Repo::new().linked()] {
        let workspace = Workspace::new(&repo);
        assert_eq!(workspace.git(&["status", "--porcelain"]), "");
        assert_eq!(workspace.git(&["log", "--format=%s"]), "start");
        workspace.write("new", "n");
        assert!(repo.files_of(&workspace.imported(&repo)).contains(&"new".to_owned()));
    }
}

#[test]
fn identical_files_get_the_times_of_the_checkout_and_changed_ones_do_not() {
    for settings in [&[][..], &["index.version=4"]] {
        let repo = Repo::new();
        for setting in settings {
            let (name, value) = setting.split_once('=').unwrap();
            repo.git(&["config", name, value]);
        }
        age(&repo, "a.txt");
        age(&repo, "run.sh");
        age(&repo, "dir/b.txt");
        repo.git(&["status"]);
        repo.git(&["update-index", "--force-write-index"]);
        repo.write("dir/b.txt", "mine");
        age(&repo, "dir/b.txt");
        let workspace = Workspace::new(&repo);
        let modified = |path| fs::metadata(path).map(|meta| (meta.mtime(), meta.mtime_nsec())).unwrap();
        for name in ["a.txt", "run.sh"] {
            assert_eq!(modified(workspace.path(name)), modified(repo.path(name)), "{name}");
        }
        assert_ne!(modified(workspace.path("dir/b.txt")), modified(repo.path("dir/b.txt")));
        assert_eq!(workspace.git(&["diff-files", "--name-only"]), "", "the index knows the times");
        assert_eq!(workspace.git(&["status", "--porcelain"]), "");
        workspace.git(&["fsck"]);
    }
}

#[test]
fn files_that_a_cache_was_built_from_keep_their_times_and_all_others_are_of_a_later_second() {
    let repo = Repo::new();
    for name in ["a.txt", "run.sh", "dir/b.txt"] {
        age(&repo, name);
    }
    repo.git(&["update-index", "--refresh"]);
    let first = Workspace::new(&repo);
    let begun = file_clock_after(latest_file_time());
    let dated = repo.git.date_files(&first.tree(), &first.index(), BuiltFrom::Checkout, begun).unwrap();
    // The three files and git's ignore rule.
    assert_eq!(dated, [DatedBy::User; 4]);
    let modified = |workspace: &Workspace, name: &str| fs::metadata(workspace.path(name)).unwrap().modified().unwrap();
    let ended = SystemTime::now();
    let build = EarlierBuild { index: &first.index(), dated: &dated, begun, ended };
    // One file differs, one was touched by the user since but keeps its old time, and one is the same.
    let time = fs::metadata(repo.path("run.sh")).unwrap().modified().unwrap();
    fs::File::open(repo.path("run.sh")).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    let other = repo.git.replace_in_tree(&tree_of(&repo), &[("a.txt".into(), Some(("100644", b"two\n".to_vec())))]).unwrap();
    let next = Workspace::at(&repo.git, repo.home(), Some(&repo.head()), &other);
    let dated = repo.git.date_files(&next.tree(), &next.index(), BuiltFrom::Workspace(&build), SystemTime::now()).unwrap();
    assert_eq!(dated, [DatedBy::User, DatedBy::Workspace, DatedBy::User, DatedBy::Workspace]);
    assert_eq!(modified(&next, "dir/b.txt"), modified(&first, "dir/b.txt"));
    let second = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for name in ["a.txt", "run.sh"] {
        assert!(second(modified(&next, name)) > second(ended), "{name}");
    }
}

#[test]
fn a_change_with_the_time_set_back_within_the_second_is_noticed() {
    let repo = Repo::new();
    age(&repo, "a.txt");
    repo.git(&["status"]);
    let workspace = Workspace::new(&repo);
    let path = workspace.path("a.txt");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two\n").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(before)).unwrap();
    let tree = workspace.imported(&repo);
    assert_eq!(repo.git(&["show", &format!("{tree}:a.txt")]), "two");
}
