//! The number of git processes per iteration. Time is measured by the bench; a count does not depend on the machine.

use std::fs;

use verdone_core::base::id::Oid;
use verdone_runtime::git::{CandidateRules, Git};

use crate::git_module::repo::{Repo, environment};
use crate::git_module::workspace::Workspace;

#[test]
fn a_story_of_a_session_loop_starts_about_ten_git_processes() {
    let repo = Repo::new();
    let trace = repo.home().join("trace");
    let mut traced = environment(repo.home());
    traced.push(("GIT_TRACE2_EVENT".into(), trace.clone().into()));
    let git = Git::open_with(&repo.path(""), &traced).unwrap();
    let mut counts = Vec::new();
    for number in 0..3 {
        fs::write(&trace, "").unwrap();
        let since = repo.checkpoint_by(&git, "x", 1_000_000);
        repo.write("a.txt", number.to_string());
        repo.write(format!("new-{number}"), "x");
        let candidate = git.candidate(&since, &CandidateRules::default()).unwrap();
        let commit = git.commit_unless(&candidate, "story", std::time::Duration::from_mins(1), &|| false).unwrap();
        git.note(&commit.id, "evidence").unwrap();
        let events = fs::read_to_string(&trace).unwrap();
        counts.push(events.lines().filter(|line| line.contains("\"event\":\"start\"")).count());
    }
    assert!(counts.iter().skip(1).all(|count| *count <= 10), "{counts:?}");
}

#[test]
fn an_attempt_in_a_workspace_starts_eleven_git_processes_from_its_files_to_its_commit() {
    let repo = Repo::new();
    let trace = repo.home().join("trace");
    let mut traced = environment(repo.home());
    traced.push(("GIT_TRACE2_EVENT".into(), trace.clone().into()));
    let (head, tree) = (repo.head(), Oid(repo.git(&["rev-parse", "HEAD^{tree}"])));
    let git = Git::open_with(&repo.path(""), &traced).unwrap();
    fs::write(&trace, "").unwrap();
    let workspace = Workspace::at(&git, repo.home(), Some(&head), &tree);
    workspace.write("new", "n");
    let read = workspace.read(&git);
    let commit = git.commit_tree(&read.tree, Some(&head), "story", std::time::Duration::from_mins(1)).unwrap();
    git.set_branch("verdone/run-1", &commit, None).unwrap();
    let events = fs::read_to_string(&trace).unwrap();
    let count = events.lines().filter(|line| line.contains("\"event\":\"start\"")).count();
    // One of them asks which worktrees are on the branch.
    assert_eq!(count, 11, "{events}");
}
