//! Commits that a git hook or a landing rewrote.

use super::*;

#[test]
fn a_tree_that_a_git_hook_rewrote_holds_with_the_reason() {
    let mut line = Line::with_stories(0);
    line.story(1, |_| {}, true);
    line.story(2, |_| {}, false);
    assert_eq!(line.problems(), told(&[]));
    assert_eq!(line.remarks(), ["amended"]);
    // The first evidence protects what a hook cannot have changed; the next note protects the rest.
    line.edit_note(1, |note| note.replacen("\"turns\": 1", "\"turns\": 7", 1));
    assert_eq!(line.problems(), told(&[("US-1", "note_edited"), ("US-2", "chain_lost")]));
    let mut line = Line::with_stories(0);
    line.story(1, |_| {}, true);
    line.story(2, |_| {}, false);
    let slower = |note: String| {
        let at = note.find("\"after\"").unwrap();
        format!("{}{}", &note[..at], note[at..].replacen("\"duration_ms\": 1", "\"duration_ms\": 2", 1))
    };
    line.edit_note(1, slower);
    assert_eq!(line.problems(), told(&[("US-2", "chain_lost")]));
}

/// Two stories on top of a commit that the user made in the meantime.
fn reapplied() -> Line {
    let mut line = Line::with_stories(2).with_journal();
    let run = RunId::from("r1");
    let old: Vec<CommitFacts> = line.history.commits.drain(..2).collect();
    let users = CommitFacts { id: id(40), parents: vec![id(0)], trailers: Trailers::default(), ..line.commit(0).clone() };
    line.history.commits.insert(0, users);
    let (mut base, mut previous) = (id(40), None);
    for (number, commit) in [(41, &old[1]), (42, &old[0])] {
        let first = line.history.notes.remove(&commit.id).unwrap().evidence().unwrap();
        let moved = Evidence { tree: tree(number), base: Some(base.clone()), previous, ..first.clone() }.in_place_of(&first);
        let event = Event::Reapplied {
            story: moved.story.clone(),
            was: commit.id.clone(),
            commit: id(number),
            tree: moved.tree.clone(),
            base: moved.base.clone(),
            evidence: moved.digest(),
        };
        line.history.journals.add_event(&run, event);
        line.history.notes.insert(id(number), GitNote::Bytes(moved.to_note().into_bytes()));
        let commit = CommitFacts { id: id(number), tree: tree(number), parents: vec![base], ..commit.clone() };
        line.history.commits.insert(0, commit);
        (base, previous) = (id(number), Some(moved.digest()));
    }
    line
}

#[test]
fn stories_that_were_re_applied_hold_and_their_evidence_is_a_chain_again() {
    let mut line = reapplied();
    assert_eq!(line.problems(), told(&[]));
    assert_eq!(line.remarks(), ["reapplied", "reapplied"]);
    assert_eq!(line.missing(), [""; 0]);
    line.edit_note(41, |note| note.replacen("\"turns\": 1", "\"turns\": 7", 1));
    let expected = [("US-1", "note_edited"), ("US-1", "journal_differs"), ("US-2", "chain_lost")];
    assert_eq!(line.problems(), told(&expected));
    // The journal knows this commit only by another id.
    let mut line = reapplied();
    line.history.journals.commits.remove(&id(42));
    assert_eq!(line.problems(), told(&[("US-2", "not_in_journal")]));
}

#[test]
fn an_ordinary_note_cannot_be_passed_off_as_amended() {
    let mut line = Line::with_stories(2);
    line.edit_note(1, |note| {
        let first = Evidence::from_note(note.as_bytes()).unwrap();
        let mut forged = first.clone();
        forged.after[0].duration_ms = 99;
        forged.in_place_of(&first).to_note()
    });
    assert_eq!(line.problems(), told(&[("US-2", "chain_lost")]), "the next note names the first one");
}
