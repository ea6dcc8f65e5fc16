use std::fs;
use std::time::{Duration, Instant};

use verdone_core::base::id::Oid;
use verdone_runtime::git::{HookRun, Hooked};
use verdone_runtime::process::EnvPlan;
use verdone_testkit::PATIENCE;

use crate::git_module::repo::Repo;
use crate::git_module::workspace::Workspace;

/// A check workspace with the files of this tree, HEAD at the base and the index at the tree.
fn check_workspace(repo: &Repo, tree: &Oid) -> Workspace {
    Workspace::at(&repo.git, repo.home(), Some(&repo.head()), tree)
}

fn changed(repo: &Repo, name: &str, text: &str) -> Oid {
    let workspace = Workspace::new(repo);
    workspace.write(name, text);
    workspace.imported(repo)
}

fn run(repo: &Repo, workspace: &Workspace, deadline: Duration, called_off: &dyn Fn() -> bool) -> Hooked {
    let (seen_at, git_dir, base) = (workspace.tree(), workspace.path(".git"), repo.head());
    let job = HookRun {
        seen_at: &seen_at,
        git_dir: &git_dir,
        git_dir_here: &git_dir,
        base: Some(&base),
        message: "feat: title\n",
        inside: None,
        env: &EnvPlan::default(),
        deadline,
    };
    repo.git.run_commit_hooks(&job, called_off).unwrap()
}

fn hooked(repo: &Repo, tree: &Oid) -> Hooked {
    run(repo, &check_workspace(repo, tree), Duration::from_mins(1), &|| false)
}

fn refusal(hooked: Hooked) -> String {
    match hooked {
        Hooked::Refused { output, timed_out: false, interrupted: false } => output,
        other => panic!("{other:?}"),
    }
}

#[test]
fn hooks_are_found_where_git_looks_for_them() {
    let repo = Repo::new();
    assert!(!repo.git.has_commit_hooks().unwrap(), "samples are none");
    repo.hook("post-checkout", "exit 0");
    assert!(!repo.git.has_commit_hooks().unwrap());
    repo.hook("commit-msg", "exit 0");
    assert!(repo.git.has_commit_hooks().unwrap());
    repo.git(&["config", "core.hooksPath", ".husky"]);
    assert!(!repo.git.has_commit_hooks().unwrap());
    repo.write(".husky/pre-commit", "#!/bin/sh\n");
    assert!(!repo.git.has_commit_hooks().unwrap(), "not executable");
    repo.chmod(".husky/pre-commit", 0o755);
    assert!(repo.git.has_commit_hooks().unwrap());
}

#[test]
fn a_hook_that_refuses_says_why_and_the_real_repository_stays_as_it_is() {
    let repo = Repo::new();
    repo.hook("pre-commit", "grep -q forbidden a.txt && { echo no such word; exit 1; }; exit 0");
    let before = (repo.git(&["for-each-ref"]), repo.index());
    let tree = changed(&repo, "a.txt", "forbidden");
    assert_eq!(refusal(hooked(&repo, &tree)), "no such word");
    let fine = changed(&repo, "a.txt", "fine");
    let Hooked::Accepted { tree, message, .. } = hooked(&repo, &fine) else { panic!() };
    assert_eq!((tree, message.as_str()), (fine, "feat: title\n"));
    assert_eq!((repo.git(&["for-each-ref"]), repo.index()), before);
}

#[test]
fn hooks_may_rewrite_files_and_message() {
    let repo = Repo::new();
    repo.hook("pre-commit", "echo formatted > a.txt; git add a.txt");
    repo.hook("commit-msg", "echo 'Ticket: 7' >> \"$1\"");
    let tree = changed(&repo, "a.txt", "unformatted");
    let workspace = check_workspace(&repo, &tree);
    let Hooked::Accepted { tree: made, message, .. } = run(&repo, &workspace, Duration::from_mins(1), &|| false) else {
        panic!()
    };
    assert_eq!(message, "feat: title\nTicket: 7\n");
    repo.git.import_objects(&workspace.path(".git/objects"), &made, Some(&repo.head())).unwrap();
    assert_eq!(repo.git(&["show", &format!("{made}:a.txt")]), "formatted");
}

#[test]
fn hooks_of_the_work_tree_run_in_the_version_of_the_base() {
    let repo = Repo::new();
    // As in husky: untracked wrappers call the tracked hook next to their folder.
    repo.write(".husky/pre-commit", "echo base hook; exit 1\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "husky"]);
    repo.write(".husky/_/.gitignore", "*\n");
    repo.write(".husky/_/pre-commit", "#!/bin/sh\nsh \"$(dirname \"$(dirname \"$0\")\")/pre-commit\"\n");
    repo.chmod(".husky/_/pre-commit", 0o755);
    repo.git(&["config", "core.hooksPath", ".husky/_"]);
    let tree = changed(&repo, ".husky/pre-commit", "exit 0\n");
    assert_eq!(refusal(hooked(&repo, &tree)), "base hook");
}

#[test]
fn hooks_elsewhere_in_the_git_folder_run_too() {
    let repo = Repo::new();
    repo.hook("pre-commit", "echo mine; exit 1");
    fs::rename(repo.git.common_dir().join("hooks"), repo.git.common_dir().join("my-hooks")).unwrap();
    repo.git(&["config", "core.hooksPath", ".git/my-hooks"]);
    let tree = changed(&repo, "a.txt", "x");
    assert_eq!(refusal(hooked(&repo, &tree)), "mine");
}

#[test]
fn hooks_that_hang_end_at_the_deadline_or_when_they_are_called_off() {
    let repo = Repo::new();
    repo.hook("pre-commit", "sleep 600");
    let tree = changed(&repo, "a.txt", "x");
    let started = Instant::now();
    let late = run(&repo, &check_workspace(&repo, &tree), Duration::from_millis(300), &|| false);
    assert!(matches!(late, Hooked::Refused { timed_out: true, .. }), "{late:?}");
    let called_off = run(&repo, &check_workspace(&repo, &tree), Duration::from_mins(1), &|| true);
    assert!(matches!(called_off, Hooked::Refused { interrupted: true, .. }), "{called_off:?}");
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_hook_that_moves_head_elsewhere_is_a_refusal() {
    let repo = Repo::new();
    repo.hook("post-commit", "test -e .git/again && exit 0; touch .git/again; git commit -q --allow-empty -m more");
    let tree = changed(&repo, "a.txt", "x");
    assert!(matches!(hooked(&repo, &tree), Hooked::Refused { .. }));
}
