//! What a report says beside proof and outcome.

use super::*;

#[test]
fn a_review_never_spends_an_attempt() {
    for (world, spends) in [
        (pristine_red(), false),
        (pristine_red().left(), false),
        (refuted(), false),
        (World::new(), false),
        (World::new().says(Tree::Attempt, TEST, CheckOutcome::Interrupted), false),
        (World::new().says(Tree::Attempt, TEST, failed()), true),
    ] {
        assert_eq!(world.report().spends_attempt(), spends, "{:?}", world.report().reasons);
    }
}

#[test]
fn feedback_names_the_files_and_the_failing_check() {
    let told = pristine_red().left().report().feedback.unwrap();
    assert_eq!(told.advice, ["Restore tests/old.rs, or change the code so that the check passes with the old files."]);
    assert_eq!((told.checks[0].name.as_str(), told.checks[0].tree), (TEST, Tree::Pristine));
}

#[test]
fn of_a_hidden_check_the_agent_learns_the_name_and_that_it_failed() {
    let mut world = World::new().says(Tree::Attempt, TEST, CheckOutcome::Failed { code: 77 }).left();
    world.said.get_mut(&(Tree::Attempt, TEST.to_owned())).unwrap().run.tail = "secret".to_owned();
    world.job.gates[0].hidden = true;
    let report = world.report();
    let told = serde_json::to_string(&report.feedback).unwrap();
    assert!(told.contains("the hidden check `test` did not pass") && !told.contains("secret") && !told.contains("77"), "{told}");
    assert_eq!(report.hidden, [TEST]);
    // All other places from which a prompt takes its text.
    let mut open = Open::default();
    open.add_verify_report(&report);
    let short = report.falls_short_of(Verified, Done);
    let told = format!("{:?} {:?} {short:?}", Feedback::from_report(&report), (&open.failed, &open.missing));
    assert!(told.contains("did not pass") && !told.contains("secret") && !told.contains("77"), "{told}");
}

#[test]
fn a_hidden_check_that_raises_a_doubt_stays_hidden() {
    let mut world = pristine_red().left();
    world.job.gates[0].hidden = true;
    let mut open = Open::default();
    open.add_verify_report(&world.report());
    let told = format!("{:?} {:?}", open.failed, open.missing);
    assert!(told.contains("the hidden check `test` did not pass") && !told.contains("exit code"), "{told}");
}

#[test]
fn criteria_are_proven_by_checks_that_they_name() {
    let with = |criteria: &[&str], world: World| {
        let criteria = criteria.iter().map(|text| (*text).to_owned()).collect();
        let report = world.with(|job| job.story.as_mut().unwrap().criteria = criteria).report();
        report.criteria.into_iter().map(|each| each.prover.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(with(&["fast", "`make test` passes", "./own"], World::new()), ["", "gate: test", "own check: ./own"]);
    assert_eq!(with(&["fast"], World::new()), ["own check: ./own"]);
    assert_eq!(with(&["fast"], brings_test()), ["the attempt's tests: tests/new.rs"]);
    assert_eq!(with(&["fast"], World::without_own()), [""]);
    let red = World::new().says(Tree::Attempt, TEST, failed());
    assert_eq!(with(&["`make test`", "`make lint`"], red.with(|job| job.gates.push(gate("lint")))), ["", "gate: lint"]);
}

#[test]
fn words_are_those_of_the_design_and_old_ones_are_read() {
    let read = |word: &str| (word.parse::<Proof>().unwrap(), serde_json::from_str::<Proof>(&format!("{word:?}")).unwrap());
    for proof in Proof::ALL {
        assert_eq!(read(&proof.to_string()), (proof, proof));
        assert_eq!(serde_json::to_string(&proof).unwrap(), format!("{:?}", proof.name()));
    }
    assert_eq!((read("unproven").0, read("unverified").1), (Untested, Unchecked));
    assert!("proven".parse::<Proof>().is_err());
    assert!(Verified > AgentTested && AgentTested > Untested && Untested > Unchecked);
    assert!(Done > NeedsReview && NeedsReview > Failed);
}

#[test]
fn a_report_is_stable_json() {
    let report = pristine_red().report();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((json["outcome"].as_str(), json["proof"].as_str()), (Some("needs-review"), Some("untested")));
    assert_eq!(json["reasons"][0]["reason"], "pristine-failed");
    assert_eq!(
        json["protected"][0],
        serde_json::json!({"path": "tests/old.rs", "kind": "test", "change": "modified", "released": false})
    );
    assert_eq!(json["runs"]["pristine"][0]["outcome"], "passed");
    assert_eq!(serde_json::from_value::<VerifyReport>(json).unwrap(), report);
}
