//! What an iteration costs in git processes. Time is the bench's business; a count does not depend on the machine.

use std::fs;

use verdone_runtime::git::{CandidateRules, CheckpointRequest, Git, PathSet, SnapshotLimits};

use crate::repo::{Repo, environment};

#[test]
fn an_iteration_starts_about_a_dozen_git_processes() {
    let repo = Repo::new();
    let trace = repo.home().join("trace");
    let mut traced = environment(repo.home());
    traced.push(("GIT_TRACE2_EVENT".into(), trace.clone().into()));
    let git = Git::open_with(&repo.path(""), &traced).unwrap();
    let skip = PathSet::default();
    let limits = SnapshotLimits::default();
    let mut counts = Vec::new();
    for number in 0..3 {
        fs::write(&trace, "").unwrap();
        let since = git.checkpoint(&CheckpointRequest { chain: &repo.run, label: "x", extra: &[], skip: &skip, limits }).unwrap();
        repo.write("a.txt", number.to_string());
        repo.write(format!("new-{number}"), "x");
        let candidate = git.candidate(&since, &CandidateRules::default()).unwrap();
        assert!(git.unchanged_since(&candidate).unwrap().is_none());
        let commit = git.commit(&candidate, "story", std::time::Duration::from_mins(1)).unwrap();
        git.note(&commit.id, "evidence").unwrap();
        let events = fs::read_to_string(&trace).unwrap();
        counts.push(events.lines().filter(|line| line.contains("\"event\":\"start\"")).count());
    }
    assert!(counts.iter().skip(1).all(|count| *count <= 12), "{counts:?}");
}
