//! Commits that only record a story's status.

use super::*;

#[test]
fn commits_that_say_they_are_verdones_are_believed_by_what_they_change() {
    let mut line = Line::with_stories(1);
    let chore = |number: usize| CommitFacts {
        id: id(number),
        tree: tree(number),
        parents: vec![id(1)],
        subject: "chore: record progress".to_owned(),
        trailers: Trailers::read("Verdone-Run: r1\n"),
    };
    line.history.commits.insert(0, chore(70));
    line.history.bookkeeping.insert(id(70), Bookkeeping::Ours { done: vec![StoryId::from("US-1")] });
    let found = audit(&line.history);
    assert_eq!((found.bookkeeping, found.others, found.holds), (1, 0, true));
    line.history.commits.insert(0, chore(71));
    line.history.bookkeeping.insert(id(71), Bookkeeping::Other { path: "src/main.rs".to_owned() });
    assert_eq!(line.problems(), told(&[("chore: record progress", "not_bookkeeping")]));
    assert!(audit(&line.history).stories[1].problems[0].text.ends_with("progress files: src/main.rs"));
}

#[test]
fn bookkeeping_that_calls_a_story_done_needs_a_commit_of_that_story() {
    let mut line = Line::with_stories(2);
    let chore = CommitFacts {
        id: id(70),
        tree: tree(70),
        parents: vec![id(2)],
        subject: "chore: record progress".to_owned(),
        trailers: Trailers::read("Verdone-Run: r1\n"),
    };
    line.history.commits.insert(0, chore);
    let done = |stories: &[&str]| Bookkeeping::Ours { done: stories.iter().map(|story| StoryId::from(*story)).collect() };
    line.history.bookkeeping.insert(id(70), done(&["US-1", "US-3", "US-4"]));
    assert_eq!(line.problems(), told(&[("chore: record progress", "marked_without_evidence")]));
    let found = audit(&line.history);
    assert_eq!((found.bookkeeping, found.others), (0, 0));
    assert!(found.stories[2].problems[0].text.contains("it marks US-3, US-4 as done"), "{}", found.stories[2].problems[0].text);
    line.history.shallow = true;
    assert_eq!(line.problems(), told(&[]), "its evidence may lie beyond the end");
    line.history.shallow = false;

    line.history.bookkeeping.insert(id(70), done(&["US-1", "US-2"]));
    line.history.range = Some(BTreeSet::from([id(70)]));
    assert!(audit(&line.history).holds, "evidence before the range counts");
    line.history.range = None;
    line.commit(2).trailers = Trailers::default();
    assert_eq!(line.problems(), told(&[("US-2", "names_none")]), "a rewritten message is reported at its commit");
}
