//! What is known before any work: conditions that cannot be met.

use super::*;

#[test]
fn a_judge_that_is_never_asked_is_known_before_a_run() {
    let with = |min_complexity| {
        let judge = JudgeSettings { enabled: true, min_complexity, ..JudgeSettings::default() };
        DoneSettings { require: vec!["adversarial_passed".to_owned()], judge, ..DoneSettings::default() }
    };
    let open = |settings: &DoneSettings| best_case(settings, prospect(plan(Approval::Approved, Some(8), &[]), &[])).open();
    assert_eq!(open(&with(7)), Vec::<String>::new());
    assert!(open(&with(9))[0].contains("asked from complexity 9, and this counts as 8: lower `min_complexity`"));
    assert_eq!((with(7).judges_from(), with(9).judges_from(), orchestrator().judges_from()), (Some(7), Some(9), None));
}

#[test]
fn what_no_agent_could_meet_is_known_before_a_run() {
    let names = |settings: &DoneSettings, plan: PlanFact, stages: &[&str]| -> Vec<String> {
        let stages: Vec<String> = stages.iter().map(ToString::to_string).collect();
        let open = best_case(settings, prospect(plan, &stages)).open();
        open.iter().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let strict = orchestrator();
    let all = ["correctness", "quality", "adversarial"];
    assert_eq!(names(&strict, plan(Approval::Approved, Some(8), &[]), &all), Vec::<String>::new());
    assert_eq!(
        names(&strict, plan(Approval::NeverAsked, None, &["which?"]), &[]),
        ["must_have_answered", "plan_approved", "quality_passed", "adversarial_passed"]
    );
    assert_eq!(
        names(&strict, plan(Approval::Approved, Some(3), &[]), &["quality"]),
        Vec::<String>::new(),
        "simple stories need no judge"
    );
    assert_eq!(names(&DoneSettings::default(), plan(Approval::NeverAsked, None, &[]), &[]), Vec::<String>::new());
}

#[test]
fn what_nobody_could_evaluate_is_known_before_any_work() {
    let own = |prover: &str| OwnCondition { name: "mine".to_owned(), prover: prover.to_owned(), min_complexity: 0, todo: None };
    let by = |prover: &str| DoneSettings { condition: vec![own(prover)], ..DoneSettings::default() };
    let judged = |enabled| DoneSettings { judge: JudgeSettings { enabled, ..JudgeSettings::default() }, ..by("judge") };
    let command = Some(crate::check::CommandSpec::Shell("ask".to_owned()));
    let with_ci = DoneSettings { ci: CiSettings { command, ..CiSettings::default() }, ..by("ci") };
    let asked = |name: &str| DoneSettings { require: vec![name.to_owned()], ..DoneSettings::default() };
    let simple = OwnCondition { min_complexity: 9, ..own("ci") };
    let quality = ["quality".to_owned()];
    for (settings, complexity, has_own_checks, expected) in [
        (by("ci"), 8, true, "mine: CI cannot be asked: set `command` in [done.ci]"),
        (with_ci, 8, true, ""),
        (DoneSettings { condition: vec![simple], ..DoneSettings::default() }, 8, true, ""),
        (judged(false), 8, true, "mine: the judge is disabled: set `enabled = true` in [done.judge]"),
        (judged(true), 8, true, ""),
        (judged(true), 3, true, "mine: the judge is asked from complexity 7, and this counts as 3"),
        (asked("adversarial_passed"), 8, true, "adversarial_passed: there is neither a gate"),
        (asked("adversarial_passed"), 3, true, ""),
        (by("gate:e2e"), 8, true, "mine: no gate of the stage \"e2e\" is configured"),
        (asked("correctness_passed"), 8, false, "correctness_passed: no gate of the stage \"correctness\" is configured"),
        (asked("correctness_passed"), 8, true, ""),
        // Conditions that a person or the agent can still meet are no reason to refuse.
        (asked("plan_approved"), 8, true, ""),
        (asked("must_have_answered"), 8, true, ""),
        (by("claim"), 8, true, ""),
        (by("plan"), 8, true, ""),
    ] {
        let plan = plan(Approval::NeverAsked, Some(complexity), &["which?"]);
        let unknown = best_case(&settings, KnownBeforeWork { plan, has_own_checks, stages: &quality }).unknown().join("; ");
        assert!(unknown.starts_with(expected) && unknown.is_empty() == expected.is_empty(), "{unknown:?}, not {expected:?}");
    }
}
