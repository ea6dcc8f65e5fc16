//! Stories whose commits are not in the history: removed, squashed, or on another branch.

use super::*;

#[test]
fn a_commit_that_a_journal_knows_and_the_history_does_not_is_missing() {
    let mut line = Line::with_stories(3).with_journal();
    line.reset_to(1);
    let found = audit(&line.history);
    assert!(!found.holds && found.stories.iter().all(Audited::holds));
    assert_eq!(line.missing(), ["US-2", "US-3"]);
    let said = &found.missing[0].problem;
    assert_eq!(said.kind, "commit_missing");
    assert!(said.text.starts_with("missing: it was committed as "), "{}", said.text);
    assert!(said.text.ends_with("in run r1; that commit is not in this history"), "{}", said.text);

    line.history.shallow = true;
    let found = audit(&line.history);
    assert_eq!((found.missing.len(), found.beyond, found.holds), (0, 2, true), "what is beyond the end may well be there");
}

#[test]
fn what_verdone_itself_took_back_is_not_missing() {
    let run = RunId::from("r1");
    let mut line = Line::with_stories(3).with_journal();
    line.reset_to(2);
    assert_eq!(line.missing(), ["US-3"]);
    line.history.journals.add_event(&run, undone("US-3", 2));
    assert_eq!(line.missing(), Vec::<String>::new());

    let mut line = Line::with_stories(2).with_journal();
    line.reset_to(1);
    line.history.journals.add_event(&run, regressed("US-2"));
    assert_eq!(line.missing(), Vec::<String>::new(), "nobody calls it done");

    let mut line = Line::with_stories(2).with_journal();
    line.reset_to(1);
    let again = Evidence { tree: tree(7), base: Some(id(1)), ..evidence("US-2", "Title") };
    let other_plan = RunId::from("r2");
    line.history.journals.add_event(&other_plan, started("OTHER.md"));
    line.history.journals.add_event(&other_plan, committed(&id(1), &again, None));
    assert_eq!(line.missing(), ["US-2"], "a story of another plan may have the same name");
    line.history.journals.add_event(&other_plan, started("PLAN.md"));
    line.history.journals.add_event(&other_plan, committed(&id(1), &again, None));
    assert_eq!(line.missing(), Vec::<String>::new(), "it was done again");
}

#[test]
fn a_story_of_another_branch_is_not_missing_here() {
    let mut line = Line::with_stories(3).with_journal();
    line.reset_to(1);
    line.history.apart.elsewhere = BTreeSet::from([id(2), id(3)]);
    line.history.branches = BTreeSet::from(["other".to_owned()]);
    let found = audit(&line.history);
    assert_eq!((found.missing.len(), found.elsewhere, found.holds), (0, 2, true));
    // Its own branch was reset, so a copy elsewhere does not count.
    line.history.branches = BTreeSet::from(["main".to_owned()]);
    assert_eq!(line.missing(), ["US-2", "US-3"]);
    assert!(audit(&line.history).missing[0].problem.text.ends_with("but on another branch or tag"));
}

/// Replaces all stories after the first `after` ones with one commit that has the files of the last.
fn squash(line: &mut Line, after: usize, trailers: bool) {
    let last = line.history.commits[0].clone();
    let trailers = if trailers { last.trailers } else { Trailers::default() };
    let squashed = CommitFacts { id: id(60), tree: last.tree, parents: vec![id(after)], subject: "feature".to_owned(), trailers };
    line.reset_to(after);
    line.history.commits.insert(0, squashed);
}

fn squashed(line: &Line) -> Vec<(String, Oid, bool)> {
    let found = audit(&line.history);
    found.squashed.iter().map(|one| (one.story.0.clone(), one.into.clone(), one.with_later)).collect()
}

#[test]
fn stories_that_were_squashed_are_recognised_by_the_tree_of_the_last_one() {
    for (journal, trailers) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut line = if journal { Line::with_stories(4).with_journal() } else { Line::with_stories(4) };
        squash(&mut line, 1, trailers);
        let into = |story: &str, with_later: bool| (story.to_owned(), id(60), with_later);
        let mut found = squashed(&line);
        found.sort();
        let expected = [into("US-2", true), into("US-3", true), into("US-4", false)];
        assert_eq!(found, expected, "journal {journal}, trailers {trailers}");
        assert_eq!((line.missing(), line.problems()), (Vec::new(), told(&[])), "journal {journal}, trailers {trailers}");
        let found = audit(&line.history);
        assert!(found.holds && found.stories.len() == 1, "{found:?}");
        line.history.range = Some(BTreeSet::from([id(1)]));
        assert_eq!((squashed(&line), line.missing()), (Vec::new(), Vec::new()), "the range ends before it");
    }
}

#[test]
fn stories_that_were_squashed_on_a_branch_that_is_still_there_are_not_elsewhere() {
    let mut line = Line::with_stories(2).with_journal();
    squash(&mut line, 0, false);
    line.history.apart.elsewhere = BTreeSet::from([id(1), id(2)]);
    line.history.branches = BTreeSet::from(["other".to_owned()]);
    let found = audit(&line.history);
    assert_eq!((found.squashed.len(), found.elsewhere, found.missing.len()), (2, 0, 0));
}

#[test]
fn other_files_are_no_squash() {
    let mut line = Line::with_stories(3).with_journal();
    squash(&mut line, 1, false);
    line.history.commits[0].tree = tree(99);
    assert_eq!((squashed(&line), line.missing()), (Vec::new(), vec!["US-2".to_owned(), "US-3".to_owned()]));
    // A story that restores an earlier state has the tree of an earlier commit, but that commit does not contain the work.
    let mut line = Line::with_stories(1);
    line.story(2, |evidence| evidence.tree = tree(0), false);
    let mut line = line.with_journal();
    line.reset_to(1);
    assert_eq!((squashed(&line), line.missing()), (Vec::new(), vec!["US-2".to_owned()]));
}

#[test]
fn a_range_misses_only_what_it_should_hold() {
    let mut line = Line::with_stories(4).with_journal();
    line.reset_to(2);
    let mut of = |start: usize, range: &[usize]| {
        line.history.start = Some(id(start));
        line.history.range = Some(range.iter().copied().map(id).collect());
        line.missing()
    };
    assert_eq!(of(2, &[]), ["US-3", "US-4"], "the one that it begins with is what they were made on");
    assert_eq!(of(1, &[2]), ["US-3", "US-4"]);
    assert_eq!(of(0, &[1]), Vec::<String>::new(), "they come after its end");
    line.history.branches.clear();
    line.history.range = Some(BTreeSet::from([id(1), id(2)]));
    assert_eq!(line.missing(), Vec::<String>::new(), "no branch ends where they were made");
    line.history.branches.insert("main".to_owned());
    line.history.apart.parents.clear();
    line.history.start = Some(id(1));
    line.history.range = Some(BTreeSet::from([id(2)]));
    assert_eq!(line.missing(), ["US-3", "US-4"], "the journal knows what they were made on");
}
