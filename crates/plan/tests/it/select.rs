//! Which story is next.

use verdone_plan::{Document, Plan, Progress, ReviewState, Selection, StoryId, select};

use crate::DIALECT;

fn plan(text: &str) -> Plan {
    Document::parse("IMPLEMENTATION_PLAN.md", text.as_bytes(), &DIALECT).unwrap_or_else(|error| panic!("{error}")).plan().clone()
}

fn progress(attempts: &[(&str, u32)], failed: &[&str]) -> Progress {
    Progress {
        attempts: attempts.iter().map(|(id, count)| (StoryId::from(*id), *count)).collect(),
        failed: failed.iter().map(|id| (StoryId::from(*id), "no attempts left".to_owned())).collect(),
        ..Progress::default()
    }
}

fn waiting(stories: &[(&str, ReviewState)], failed: &[&str]) -> Progress {
    Progress { review: stories.iter().map(|(id, how)| (StoryId::from(*id), *how)).collect(), ..progress(&[], failed) }
}

fn asked(stories: &[&str], failed: &[&str]) -> Progress {
    Progress { asked: stories.iter().map(|id| StoryId::from(*id)).collect(), ..progress(&[], failed) }
}

/// A plan, the progress so far, the only wanted story, and the answer.
type Row<'a> = (&'a str, Progress, Option<&'a str>, Result<&'a str, &'a str>);

#[test]
fn the_next_story_is_in_progress_then_by_priority_then_first_and_untouched() {
    let two = "## Priority 2\n- [ ] A1: a\n- [ ] A2: b\n## Priority 1\n- [ ] A3: c\n- [ ] A4: d\n## Other\n- [ ] A5: e\n";
    let begun = two.replace("- [ ] A5", "- [~] A5");
    let chain = "- [ ] A1: a\n  - Depends on: A2\n- [ ] A2: b\n- [ ] A3: c\n  - Depends on: A1\n";
    let half = chain.replace("- [ ] A2", "- [x] A2");
    let done = "- [x] A1: a\n- [x] A2: b\n";
    #[rustfmt::skip]
    let table: &[Row<'_>] = &[
        (two, progress(&[], &[]), None, Ok("A3")),
        (&begun, progress(&[], &[]), None, Ok("A5")),
        (two, progress(&[("A3", 1)], &[]), None, Ok("A4")),
        (two, progress(&[("A3", 1), ("A4", 1)], &[]), None, Ok("A1")),
        (&begun, progress(&[("A5", 1)], &[]), None, Ok("A3")),
        (two, progress(&[("A1", 1), ("A2", 1), ("A3", 2), ("A4", 1), ("A5", 1)], &[]), None, Ok("A4")),
        (two, progress(&[], &["A3", "A4"]), None, Ok("A1")),
        (two, progress(&[], &["A1", "A2", "A3", "A4", "A5"]), None, Err("5 failed")),
        (chain, progress(&[], &[]), None, Ok("A2")),
        (&half, progress(&[], &[]), None, Ok("A1")),
        (chain, progress(&[], &["A2"]), None, Err("1 failed, 2 waiting for a story that is not done")),
        (chain, progress(&[], &[]), Some("A1"), Err("1 waiting for a story that is not done")),
        (two, progress(&[("A5", 2)], &[]), Some("A5"), Ok("A5")),
        (two, waiting(&[("A3", ReviewState::Aside)], &[]), None, Ok("A4")),
        (two, waiting(&[("A3", ReviewState::Stacked)], &[]), None, Ok("A4")),
        (two, waiting(&[("A3", ReviewState::Aside)], &[]), Some("A3"), Err("1 for you to review")),
        (chain, waiting(&[("A2", ReviewState::Stacked)], &[]), None, Ok("A1")),
        (chain, waiting(&[("A2", ReviewState::Aside)], &[]), None, Err("1 for you to review, 2 waiting for a story that is not done")),
        (two, waiting(&[("A1", ReviewState::Aside), ("A2", ReviewState::Aside)], &["A3", "A4", "A5"]), None, Err("3 failed, 2 for you to review")),
        (two, asked(&["A3"], &[]), None, Ok("A4")),
        (two, asked(&["A1", "A2"], &["A2", "A3", "A4", "A5"]), None, Err("4 failed, 1 waiting for your answer")),
        (done, progress(&[], &[]), None, Err("all done")),
        (&half, progress(&[], &[]), Some("A2"), Err("all done")),
        (two, progress(&[], &[]), Some("A9"), Err("all done")),
    ];
    for (text, progress, only, expected) in table {
        let plan = plan(text);
        let only = only.map(StoryId::from);
        let found = select(&plan, progress, only.as_ref());
        let found = match &found {
            Selection::Story { index } => Ok(plan.stories[*index].id.as_str()),
            Selection::AllDone => Err("all done"),
            Selection::NothingRunnable { reason } => Err(reason.as_str()),
        };
        assert_eq!(found, *expected, "{text} {progress:?} {only:?}");
    }
}

#[test]
fn a_plan_without_an_index_of_ids_is_selected_from_all_the_same() {
    let mut plan = plan("- [x] A1: a\n- [ ] A2: b\n  - Depends on: A1\n");
    plan.by_id.clear();
    assert_eq!(select(&plan, &Progress::default(), None), Selection::Story { index: 1 });
}
