//! Runs on disk: which is the latest, the state of each, what is proven.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::agent::{SessionUse, TurnOutcome, Usage};
use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::verdict::Red;
use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec};
use verdone_core::engine::run::{Phase, State, apply};
use verdone_core::evidence::Evidence;
use verdone_core::journal::event::{Event, Place, TurnTests, Verified};
use verdone_core::verify::{Outcome, Proof, StoryResult, Surface, Tree, TreeIds, VerifyReport};

use super::*;

fn place(story: &str) -> Place {
    Place { story: StoryId::from(story), attempt: 1, turn: 1 }
}

fn started(plan: &str) -> Event {
    let text = |text: &str| text.to_owned();
    Event::RunStarted {
        run: RunId::from("r"),
        version: text("0"),
        plan: text(plan),
        format: text("plan_md"),
        agent: text("agent"),
        mode: text("building"),
        stories: 9,
        open: 9,
        branch: None,
        head: None,
        target: None,
        seal: None,
        frozen: text(""),
        max_iterations: 0,
        unchecked: false,
        reviews: BTreeMap::new(),
        session: None,
        gates: Some("sha256:gates".to_owned()),
        evidence: Some("sha256:before".to_owned()),
    }
}

fn turn_ended(place: &Place) -> Event {
    let session = SessionUse {
        id: format!("session of {}", place.story),
        fresh: None,
        tokens: None,
        window: None,
        compactions: 0,
        cut_commands: 0,
    };
    Event::TurnEnded {
        place: place.clone(),
        outcome: TurnOutcome::Ended,
        duration_ms: 1,
        // Not every JSON parser reads this number back exactly.
        usage: Usage { cost_usd: Some(0.1 + 0.2 + 1.0 / 3.0), tokens: None, by_kind: None },
        prompt: None,
        output: None,
        leftovers: 0,
        tests: TurnTests::default(),
        session: Some(session),
        exit_code: None,
        allowance: None,
        claim: Some(format!("{} is done", place.story)),
    }
}

fn attempt(story: &str, proof: Proof) -> Vec<Event> {
    let (place, tree) = (place(story), Oid::from("tree"));
    let title = "Title".to_owned();
    let (commit, base, outcome) = (Oid::from("commit"), None, Outcome::Done);
    let report = VerifyReport {
        outcome,
        proof: Some(proof),
        runs: [(Tree::Base, vec![check(&format!("red {story}"))]), (Tree::Attempt, vec![check(story)])].into(),
        ..VerifyReport::empty(Surface::Run, Some(place.story.clone()), TreeIds::of_attempt(tree.clone()))
    };
    vec![
        Event::StorySelected { iteration: 1, place: place.clone(), title, number: 1, of: 9, open: 9 },
        Event::AttemptStarted { place: place.clone(), base: Some(Oid::from(story)), tree: None },
        Event::RedChecked { place: place.clone(), red: Red::Red, runs: vec![check(&format!("red {story}"))] },
        Event::TurnStarted { place: place.clone() },
        turn_ended(&place),
        Event::Verified(Box::new(Verified { place: place.clone(), changed: 1, restored: Vec::new(), report, judge: None })),
        Event::CommitStarted {
            place: place.clone(),
            tree: tree.clone(),
            proof,
            outcome,
            gates: Some("sha256:gates".to_owned()),
            previous: Some(format!("sha256:before {story}")),
            criteria: Vec::new(),
        },
        Event::Committed {
            place,
            commit,
            tree,
            proof,
            outcome,
            base,
            files: 1,
            evidence: None,
            criteria: Vec::new(),
            noted: true,
        },
    ]
}

fn check(digest: &str) -> CheckRun {
    CheckRun {
        name: "tests".to_owned(),
        origin: CheckOrigin::Story,
        command: CommandSpec::Shell("true".to_owned()),
        outcome: CheckOutcome::Passed,
        duration_ms: 1,
        output_digest: digest.to_owned(),
        output: None,
        first_error: String::new(),
        tail: String::new(),
        cached: false,
        flaky: false,
        advisory: false,
        tests: None,
        hidden: false,
    }
}

/// The evidence of the commit in progress.
fn evidence(state: &State) -> Option<Evidence> {
    let (Phase::Committing { proof, outcome, .. }, Some(attempt)) = (&state.phase, &state.attempt) else { return None };
    Some(Evidence::for_attempt(state, attempt, (*proof, *outcome), attempt.report.as_deref()?))
}

fn run_of(store: &Store, events: Vec<Event>) -> StoredRun {
    let (id, dir) = store.create(&store.runs, Timestamp::UNIX_EPOCH).unwrap();
    let when = When { at: Timestamp::UNIX_EPOCH, active_ms: Some(7) };
    let mut events = events;
    if let Some(Event::RunStarted { run, .. }) = events.first_mut() {
        *run = id.clone();
    }
    Journal::create(&dir).unwrap().append(events, when).unwrap();
    store.run(id)
}

#[test]
fn where_a_run_stands_is_known_from_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let stories: Vec<String> = (0..200).map(|n| format!("US-{n}")).collect();
    let mut events = vec![started("plan.md")];
    for story in &stories {
        events.extend(attempt(story, Proof::Verified));
    }
    let mut committing = 0;
    for cut in (0..=9).chain([900]).chain(events.len() - 9..=events.len()) {
        let run = run_of(&store, events[..cut].to_vec());
        let mut whole = State::default();
        read_journal(&run.journal()).unwrap().0.iter().for_each(|recorded| apply(&mut whole, recorded));
        let found = run.last_state().unwrap();
        assert_eq!((&found.phase, &found.attempt), (&whole.phase, &whole.attempt), "{cut}");
        assert_eq!(evidence(&found), evidence(&whole), "{cut}: a commit names the digest of this");
        committing += usize::from(evidence(&whole).is_some_and(|found| !found.before.is_empty() && !found.after.is_empty()));
        let (brief, damage) = run.brief_view().unwrap();
        let whole = run.view().unwrap().0;
        assert_eq!((brief.phase, brief.counts, brief.current, damage), (whole.phase, whole.counts, whole.current, None));
    }
    assert!(committing >= 2, "a first and a last commit was being made");
}

#[test]
fn what_is_proven_is_the_best_that_a_run_of_the_plan_committed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let run = |plan: &str, attempts: Vec<Vec<Event>>| {
        run_of(&store, std::iter::once(started(plan)).chain(attempts.into_iter().flatten()).collect())
    };
    run("plan.md", vec![attempt("A", Proof::Verified), attempt("B", Proof::Untested)]);
    run("plan.md", vec![attempt("A", Proof::Unchecked), attempt("B", Proof::Verified)]);
    run("other.md", vec![attempt("C", Proof::Verified)]);
    let odd = run("plan.md", vec![attempt("D", Proof::Untested)]).journal();
    let spaced = fs::read_to_string(&odd).unwrap().replace("{\"v\":1,", "{ \"v\" : 1, ");
    fs::write(&odd, spaced).unwrap();
    let expected = [("A", Proof::Verified), ("B", Proof::Verified), ("D", Proof::Untested)]
        .map(|(id, proof)| (StoryId::from(id), StoryResult::done(proof)));
    assert_eq!(proven(&store, "plan.md").unwrap(), BTreeMap::from(expected));
    assert!(proven(&store, "none.md").unwrap().is_empty());
}

#[test]
fn a_new_run_is_always_the_latest() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let before: Timestamp = "2026-01-01T11:00:00Z".parse().unwrap();
    for now in [noon, noon, before, noon, noon] {
        let (id, run_dir) = store.create(dir.path(), now).unwrap();
        Journal::create(&run_dir).unwrap();
        assert_eq!(store.all().unwrap().next().unwrap().id, id);
    }
}

#[test]
fn a_loop_of_a_session_is_the_latest_and_no_run_that_could_have_died() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let run = run_of(&store, vec![started("plan.md")]);
    let mut begun = started("plan.md");
    if let Event::RunStarted { session, .. } = &mut begun {
        *session = Some("s1".to_owned());
    }
    let (place, tree) = (place("A"), Oid::from("tree"));
    let marked = Event::Marked { place, tree, proof: Proof::Untested, files: 1, criteria: Vec::new(), reason: None };
    let held = run_of(&store, vec![begun, marked]);
    assert_eq!(
        (store.all().unwrap().next().unwrap().id, store.latest_run().unwrap().unwrap().id),
        (held.id.clone(), run.id.clone())
    );
    assert!(held.is_loop() && !run.is_loop());
    assert_eq!(crate::run::recover::unfinished(dir.path()).unwrap(), Some(run.id));
    assert_eq!(proven(&store, "plan.md").unwrap(), BTreeMap::from([(StoryId::from("A"), StoryResult::done(Proof::Untested))]));
}

#[test]
fn work_trees_of_one_repository_never_give_the_same_id() {
    let repository = tempfile::tempdir().unwrap();
    let trees = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let before: Timestamp = "2026-01-01T11:00:00Z".parse().unwrap();
    let mut seen = BTreeSet::new();
    for now in [noon, noon, before, noon, before] {
        let ids = std::thread::scope(|scope| {
            let starts = trees.each_ref().map(|tree| scope.spawn(|| Store::new(tree.path()).create(repository.path(), now)));
            starts.map(|start| start.join().unwrap().unwrap().0)
        });
        for id in ids {
            assert!(seen.insert(id.clone()), "{id} was given twice");
        }
    }
}

#[test]
fn what_others_wrote_where_the_last_id_is_kept_does_no_harm() {
    let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    for text in ["", "garbage", "../../x", "99999999-999999-7fff", "20260101-120000", "\u{1b}[2J"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("verdone-last-run"), text).unwrap();
        let (id, _) = Store::new(dir.path()).create(dir.path(), noon).unwrap();
        assert!(id.as_str().starts_with("20260101-120000-"), "{text:?} gave {id}");
    }
}

#[test]
fn a_runs_folder_that_is_a_link_gets_no_file_that_hides_it() {
    for linked in [".verdone", ".verdone/runs"] {
        let dir = tempfile::tempdir().unwrap();
        let (root, own) = (dir.path().join("project"), dir.path().join("own"));
        for folder in [&own, &own.join("runs")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(".gitignore"), "mine\n").unwrap();
        }
        let link = root.join(linked);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        Store::new(&root).hide().unwrap();
        for folder in [&own, &own.join("runs")] {
            assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "mine\n", "{linked}");
        }
    }
}
