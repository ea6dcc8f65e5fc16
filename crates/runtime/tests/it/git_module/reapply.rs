use verdone_core::base::id::Oid;
use verdone_runtime::git::Merged;

use crate::git_module::repo::Repo;

fn commit(repo: &Repo, name: &str, text: &str) -> Oid {
    repo.write(name, text);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", name]);
    repo.head()
}

fn clean(merged: Merged) -> Oid {
    match merged {
        Merged::Clean { tree } => tree,
        Merged::Conflict { paths } => panic!("{paths:?}"),
    }
}

#[test]
fn a_change_is_applied_on_top_of_another_commit_as_cherry_pick_does() {
    let repo = Repo::new();
    commit(&repo, "long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    repo.git(&["switch", "-qc", "story"]);
    commit(&repo, "earlier", "not part of it");
    let story = commit(&repo, "long", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    repo.git(&["switch", "-q", "main"]);
    let onto = commit(&repo, "long", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let refs = repo.git(&["for-each-ref"]);
    let tree = clean(repo.git.merge_onto(&story, &onto).unwrap());
    assert_eq!(repo.git(&["for-each-ref"]), refs);
    repo.git(&["cherry-pick", story.as_str()]);
    assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), tree.0);
}

#[test]
fn a_change_is_taken_back_as_revert_does() {
    let repo = Repo::new();
    let story = commit(&repo, "a.txt", "story\n");
    let onto = commit(&repo, "later", "stays");
    let tree = clean(repo.git.revert_except(&[], &story, &onto).unwrap());
    repo.git(&["revert", "--no-edit", story.as_str()]);
    assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), tree.0);
}

#[test]
fn a_conflict_names_its_paths() {
    let repo = Repo::new();
    repo.git(&["switch", "-qc", "story"]);
    repo.write("fine", "x");
    let story = commit(&repo, "a.txt", "story\n");
    repo.git(&["switch", "-q", "main"]);
    let onto = commit(&repo, "a.txt", "user\n");
    let conflict = Merged::Conflict { paths: vec!["a.txt".into()] };
    assert_eq!(repo.git.merge_onto(&story, &onto).unwrap(), conflict);
    let later = commit(&repo, "a.txt", "again\n");
    assert_eq!(repo.git.revert_except(&[], &onto, &later).unwrap(), conflict);
}

#[test]
fn the_first_commit_can_be_applied_and_taken_back() {
    let repo = Repo::new();
    let first = repo.head();
    repo.git(&["switch", "-q", "--orphan", "other"]);
    let onto = commit(&repo, "only", "x");
    let tree = clean(repo.git.merge_onto(&first, &onto).unwrap());
    assert_eq!(repo.files_of(&tree).len(), 6);
    repo.git(&["switch", "-q", "main"]);
    let later = commit(&repo, "later", "x");
    assert_eq!(repo.files_of(&clean(repo.git.revert_except(&[], &first, &later).unwrap())), ["later"]);
}
