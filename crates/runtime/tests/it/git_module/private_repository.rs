use std::fs;

use verdone_core::base::id::{Oid, StoryId};
use verdone_runtime::git::{Alternates, Git, PrivateRepository};

use crate::git_module::repo::{Repo, environment, run_git};
use crate::git_module::workspace::{BRANCH, Workspace};

fn has_reftable() -> bool {
    let version = run_git(std::path::Path::new("/"), std::path::Path::new("/"), &["version"]);
    let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
    minor >= 45
}

fn with_refs(repo: &Repo) {
    repo.git(&["tag", "-am", "light", "v1"]);
    repo.git(&["branch", "packed"]);
    repo.git(&["pack-refs", "--all"]);
    repo.git(&["branch", "loose/deep"]);
    repo.git(&["tag", "-am", "loose", "v2"]);
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    repo.git.note(&repo.head(), "evidence").unwrap();
    let tree = Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
    repo.git.keep_attempt_commit(&repo.run, &StoryId::from("US-1"), 1, &tree, Some(&repo.head()), "kept").unwrap();
}

const EXPECTED: &str = "refs/heads/loose/deep\nrefs/heads/main\nrefs/heads/packed\nrefs/heads/verdone/run-1\n\
                        refs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/tags/v1\nrefs/tags/v2";

#[test]
fn branches_and_tags_are_copied_and_verdones_own_refs_and_stashes_are_not() {
    let formats: &[&[&str]] = if has_reftable() { &[&[], &["--ref-format=reftable"]] } else { &[&[]] };
    for options in formats {
        let repo = Repo::unborn(options);
        repo.write("a.txt", "one\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "start"]);
        with_refs(&repo);
        let workspace = Workspace::new(&repo);
        assert_eq!(workspace.git(&["for-each-ref", "--format=%(refname)"]), EXPECTED, "{options:?}");
        assert_eq!(workspace.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
        for tag in ["v1^{}", "v2^{}"] {
            assert_eq!(workspace.git(&["rev-parse", tag]), repo.head().0);
        }
        assert!(workspace.git(&["describe"]).starts_with('v'));
        assert_eq!(workspace.git(&["stash", "list"]), "");
        assert_eq!(workspace.git(&["status", "--porcelain"]), "");
        workspace.git(&["fsck", "--strict"]);
    }
}

#[test]
fn repositories_of_submodules_are_copied_without_their_secrets() {
    let repo = Repo::new();
    let other = repo.home().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    repo.git(&["-C", other, "init", "-q"]);
    repo.git(&["-C", other, "commit", "-qm", "inner", "--allow-empty"]);
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "group/sub", other, "sub"]);
    repo.git(&["commit", "-qm", "with submodule"]);
    repo.git(&["-C", "sub", "checkout", "-q", "--detach"]);
    repo.git(&["-C", "sub", "remote", "set-url", "origin", "https://me:secret@example.org/x.git"]);
    fs::create_dir_all(repo.git.git_dir().join("modules/broken/objects")).unwrap();
    fs::write(repo.git.git_dir().join("modules/broken/HEAD"), "").unwrap();
    let workspace = Workspace::new(&repo);
    let inside = |args: &[&str]| workspace.git(&[&["--git-dir=.git/modules/group/sub", "--work-tree=sub"], args].concat());
    assert_eq!(inside(&["rev-parse", "HEAD"]), repo.git(&["rev-parse", "HEAD:sub"]));
    assert_eq!(inside(&["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");
    assert_eq!(inside(&["config", "remote.origin.url"]), "https://example.org/x.git");
    assert_eq!(inside(&["log", "-1", "--format=%s"]), "inner");
    assert!(!workspace.path(".git/modules/broken").exists());
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

#[test]
fn whatever_happens_inside_the_real_repository_stays_as_it_is() {
    let repo = Repo::new();
    with_refs(&repo);
    let before = (repo.git(&["for-each-ref"]), repo.index(), repo.work_tree());
    let workspace = Workspace::new(&repo);
    workspace.write("a.txt", "agent\n");
    workspace.git(&["commit", "-qam", "agent"]);
    workspace.git(&["branch", "-D", "packed", "loose/deep"]);
    workspace.git(&["tag", "-d", "v1"]);
    workspace.git(&["gc", "-q", "--prune=now"]);
    workspace.git(&["stash", "list"]);
    fs::remove_dir_all(workspace.path(".git")).unwrap();
    assert_eq!((repo.git(&["for-each-ref"]), repo.index(), repo.work_tree()), before);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn objects_that_the_repository_borrows_itself_are_reached() {
    let origin = Repo::new();
    let borrowing = origin.home().join("borrowing");
    origin.git(&["clone", "-q", "--shared", ".", borrowing.to_str().unwrap()]);
    let alternates = borrowing.join(".git/objects/info/alternates");
    fs::write(&alternates, "../../../work/.git/objects\n").unwrap();
    let git = Git::open_with(&borrowing, &environment(origin.home())).unwrap();
    let folders = git.object_folders().unwrap();
    assert_eq!(folders.len(), 2, "{folders:?}");
    let tree = Oid(origin.git(&["rev-parse", "HEAD^{tree}"]));
    let workspace = Workspace::at(&git, origin.home(), Some(&origin.head()), &tree);
    assert_eq!(workspace.git(&["log", "--format=%s"]), "start");
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

#[test]
fn bound_objects_are_an_alternate_beside_the_objects() {
    let repo = Repo::new();
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("git");
    let new = PrivateRepository { at: &at, branch: BRANCH, head: Some(&repo.head()), objects: Alternates::Bound, index: None };
    repo.git.make_private_repository(&new).unwrap();
    fs::remove_dir(at.join("base-objects")).unwrap();
    std::os::unix::fs::symlink(repo.git.common_dir().join("objects"), at.join("base-objects")).unwrap();
    assert_eq!(run_git(repo.home(), &at, &["--git-dir=.", "log", "--format=%s"]), "start");
}

#[test]
fn settings_keep_what_git_needs_and_lose_secrets_and_the_place_of_the_work_tree() {
    let repo = Repo::new();
    fs::write(repo.home().join("more"), "[alias]\n\tst = status\n").unwrap();
    repo.git(&["config", "include.path", "../../more"]);
    repo.git(&["config", "core.worktree", repo.path("").to_str().unwrap()]);
    repo.git(&["config", "core.fsmonitor", "true"]);
    repo.git(&["config", "remote.origin.url", "https://me:secret@example.org/x.git"]);
    repo.git(&["config", "http.https://example.org/.extraHeader", "Authorization: secret"]);
    repo.git(&["config", "filter.x.clean", "sed \"s/a/b\\\\c/\" # no comment"]);
    let workspace = Workspace::new(&repo);
    let text = fs::read_to_string(workspace.path(".git/config")).unwrap();
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(workspace.git(&["config", "alias.st"]), "status");
    assert_eq!(workspace.git(&["config", "remote.origin.url"]), "https://example.org/x.git");
    assert_eq!(workspace.git(&["config", "filter.x.clean"]), repo.git(&["config", "filter.x.clean"]));
    assert_eq!(workspace.git(&["config", "core.fsmonitor"]), "false");
    assert_eq!(workspace.git(&["rev-parse", "--show-toplevel"]), fs::canonicalize(workspace.tree()).unwrap().to_str().unwrap());
}

#[test]
fn a_bare_repository_with_work_trees_gives_one_that_is_not_bare() {
    let repo = Repo::new().linked();
    repo.git(&["config", "core.bare", "true"]);
    let workspace = Workspace::new(&repo);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    workspace.write("new", "n");
    assert!(repo.files_of(&workspace.imported(&repo)).contains(&"new".to_owned()));
}

#[test]
fn ignore_rules_and_hooks_are_copied_without_samples() {
    let repo = Repo::new();
    fs::write(repo.git.common_dir().join("info/exclude"), "secret\n").unwrap();
    repo.hook("pre-commit", "exit 1");
    let workspace = Workspace::new(&repo);
    workspace.write("secret", "x");
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    let hooks: Vec<_> = fs::read_dir(workspace.path(".git/hooks")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(hooks, ["pre-commit"]);
}

#[test]
fn before_the_first_commit_head_is_an_unborn_branch() {
    let repo = Repo::unborn(&[]);
    let empty = Oid(repo.git(&["hash-object", "-t", "tree", "/dev/null"]));
    let workspace = Workspace::at(&repo.git, repo.home(), None, &empty);
    workspace.write("first", "1");
    let read = workspace.read(&repo.git);
    assert_eq!(repo.files_of(&read.tree), ["first"]);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "?? first");
}
