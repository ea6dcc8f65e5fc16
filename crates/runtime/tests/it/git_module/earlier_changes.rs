use std::fs;
use std::os::unix::fs::symlink;

use verdone_runtime::git::{Earlier, PathSet, RepoPath};

use crate::git_module::repo::Repo;

fn names(paths: &[RepoPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

#[test]
fn changes_from_before_a_checkpoint_are_told_from_what_came_after() {
    let repo = Repo::new();
    repo.write("a.txt", "the user's\n");
    repo.remove("dir/b.txt");
    repo.chmod("run.sh", 0o644);
    repo.remove("link");
    symlink("elsewhere", repo.path("link")).unwrap();
    repo.write("notes", "untracked\n");
    repo.write("scratch", "untracked\n");
    let since = repo.checkpoint();
    let look = || repo.git.earlier_changes(&since, &PathSet::default()).unwrap();
    let all = ["a.txt", "dir/b.txt", "link", "run.sh"];
    let mut same = names(&look().same);
    same.sort();
    assert_eq!(
        (same, names(&look().untracked)),
        (all.map(str::to_owned).to_vec(), vec!["notes".to_owned(), "scratch".to_owned()])
    );
    // Rewriting a file with the same bytes is not a change.
    repo.write("a.txt", "the user's\n");
    assert!(look().mixed.is_empty());
    repo.write("dir/b.txt", "back\n");
    repo.remove("link");
    symlink("somewhere", repo.path("link")).unwrap();
    repo.write("scratch", "more\n");
    repo.write("new", "the agent's\n");
    let mut mixed = names(&look().mixed);
    mixed.sort();
    assert_eq!((mixed, names(&look().untracked)), (vec!["dir/b.txt".to_owned(), "link".to_owned()], vec!["notes".to_owned()]));
    assert!(look().staged.is_empty());
    // A file that is committed now, or equals HEAD again, is no longer an open change.
    repo.git(&["commit", "-qm", "mine", "a.txt"]);
    repo.chmod("run.sh", 0o755);
    assert_eq!(names(&look().same), Vec::<String>::new());
}

#[test]
fn what_was_staged_at_a_checkpoint_is_known_later_and_ones_own_files_do_not_count() {
    for born in [true, false] {
        let repo = if born { Repo::new() } else { Repo::unborn(&[]) };
        repo.write("mine", "1\n");
        repo.write("plan.md", "- [ ] x\n");
        repo.git(&["add", "mine", "plan.md"]);
        let since = repo.checkpoint();
        repo.write("later", "2\n");
        repo.git(&["add", "later"]);
        let ours: PathSet = [RepoPath::new(b"plan.md")].into_iter().collect();
        let Earlier { staged, .. } = repo.git.earlier_changes(&since, &ours).unwrap();
        assert_eq!(names(&staged), ["mine"]);
    }
    let repo = Repo::new();
    fs::remove_file(repo.path("a.txt")).unwrap();
    let since = repo.checkpoint();
    assert_eq!(repo.git.earlier_changes(&since, &PathSet::default()).unwrap().staged, []);
}
