use jiff::Timestamp;
use verdone_core::base::finish::Finish;
use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::journal::event::Event;
use verdone_runtime::run::prune::prune;
use verdone_runtime::store::{Journal, Store};

use crate::git_module::repo::Repo;

/// A finished run with a branch at this commit and one kept attempt.
fn run(repo: &Repo, tip: &str, branch: Option<&str>) -> (RunId, String) {
    let store = Store::new(&repo.path(""));
    let (id, dir) = store.create(repo.git.common_dir(), Timestamp::now()).unwrap();
    let branch = branch.map_or_else(|| format!("verdone/{id}"), str::to_owned);
    repo.git(&["update-ref", &format!("refs/heads/{branch}"), tip]);
    let tree = Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
    repo.git.keep_attempt_commit(&id, &StoryId::from("US-001"), 1, &tree, None, "kept").unwrap();
    let text = |text: &str| text.to_owned();
    let started = Event::RunStarted {
        run: id.clone(),
        version: text("0"),
        plan: text("plan.md"),
        format: text("plan_md"),
        agent: text("agent"),
        mode: text("building"),
        stories: 1,
        open: 1,
        branch: Some(branch.clone()),
        head: None,
        target: Some(text("main")),
        seal: None,
        frozen: String::new(),
        max_iterations: 0,
        unchecked: false,
        reviews: std::collections::BTreeMap::new(),
        session: None,
        gates: None,
        evidence: None,
    };
    let finish = Finish::Complete;
    let ended = Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms: 1 };
    Journal::create(&dir).unwrap().append(vec![started, ended], Timestamp::now()).unwrap();
    (id, branch)
}

#[test]
fn old_runs_lose_their_kept_attempts_and_the_branches_that_are_landed() {
    let repo = Repo::new();
    repo.git(&["commit", "-q", "--allow-empty", "-m", "landed"]);
    repo.git(&["branch", "ahead"]);
    repo.git(&["switch", "-q", "ahead"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "not landed"]);
    repo.git(&["switch", "-q", "main"]);
    let (landed, _) = run(&repo, "HEAD~1", None);
    let (waiting, _) = run(&repo, "ahead", None);
    run(&repo, "HEAD", Some("mine"));
    let (_, shared) = run(&repo, "HEAD", None);
    let (newest, _) = run(&repo, "HEAD", Some(&shared));
    let look = || {
        let names = repo.git(&["for-each-ref", "--format=%(refname:lstrip=1)", "refs/heads", "refs/verdone/attempts"]);
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = look();
    let would = prune(&repo.git, &repo.path(""), 1, true).unwrap();
    assert_eq!(look(), before, "a dry run deletes nothing");
    let pruned = prune(&repo.git, &repo.path(""), 1, false).unwrap();
    for found in [would, pruned] {
        assert_eq!((found.runs.len(), found.attempts, found.branches), (4, 4, vec![format!("verdone/{landed}")]));
    }
    let mut left =
        vec!["heads/ahead".to_owned(), "heads/main".to_owned(), "heads/mine".to_owned(), format!("heads/verdone/{waiting}")];
    left.extend([format!("heads/{shared}"), format!("verdone/attempts/{newest}/US-001-1")]);
    assert_eq!(look(), left, "branches of newer runs, of the user and with commits of their own stay");
    assert!(prune(&repo.git, &repo.path(""), 1, false).unwrap().runs.is_empty());
}
