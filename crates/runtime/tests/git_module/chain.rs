use verdone_runtime::git::ChainKind;

use crate::repo::Repo;

#[test]
fn a_kept_attempt_is_an_ordinary_commit_on_the_checkpoints_head() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    let base = repo.head();
    repo.write("a.txt", "committed by the agent\n");
    repo.git(&["commit", "-qam", "agent"]);
    let agents = repo.head();
    repo.write("new.txt", "not committed\n");
    let candidate = repo.candidate(&since);
    let kept = repo.git.keep_attempt(&repo.run, &candidate, "US-001 attempt 1\nhostile: line").unwrap();
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P %T %s", kept.as_str()]),
        format!("{base} {} US-001 attempt 1 hostile: line", candidate.tree)
    );
    let chain = repo.git.chain(&repo.run).unwrap();
    assert_eq!(chain[0].kind, ChainKind::Attempt { commit: kept.clone() });
    assert_eq!(chain.len(), 2);

    let before = repo.checkpoint();
    repo.restore(&since);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["cat-file", "-e", agents.as_str()]);
    repo.git(&["cherry-pick", kept.as_str()]);
    assert_eq!(repo.read("a.txt"), "committed by the agent\n");
    assert_eq!(repo.read("new.txt"), "not committed\n");
    repo.restore(&before);
    assert_eq!(repo.head(), agents);
}

#[test]
fn an_attempt_before_the_first_commit_is_kept_as_a_root_commit() {
    let repo = Repo::unborn(&[]);
    let since = repo.checkpoint();
    repo.write("a.txt", "x");
    let kept = repo.git.keep_attempt(&repo.run, &repo.candidate(&since), "try").unwrap();
    assert_eq!(repo.git(&["log", "--format=%P%s", kept.as_str()]), "try");
    assert_eq!(repo.files_of(&kept), ["a.txt"]);
}

#[test]
fn an_attempt_without_files_is_kept_too() {
    let repo = Repo::new();
    let since = repo.checkpoint();
    repo.git(&["rm", "-rq", "."]);
    let candidate = repo.candidate(&since);
    let kept = repo.git.keep_attempt(&repo.run, &candidate, "all gone").unwrap();
    assert!(repo.files_of(&kept).is_empty());
}
