mod before_work;

use super::*;

/// Every condition is met, for a complex task.
fn all_held() -> Facts {
    let green = |name: &str| GateFact::Green { checks: vec![name.to_owned()] };
    Facts {
        memory: LessonsConsulted::Queried { by: "guardrails.md was read".to_owned() },
        plan: plan(Approval::Approved, Some(8), &[]),
        git: git(2, &[], &[]),
        gates: [("correctness", "test"), ("quality", "lint"), ("adversarial", "review")]
            .into_iter()
            .map(|(stage, name)| (stage.to_owned(), green(name)))
            .collect(),
        own_checks: green("own"),
        claims: Vec::new(),
        lessons: Lessons::New,
        ci: CiFact::Green { commit: "c1".to_owned() },
        judge: JudgeFact::Holds,
        doubts: Vec::new(),
        tasks: Vec::new(),
        state_files: Vec::new(),
    }
}

fn plan(approval: Approval, complexity: Option<u8>, questions: &[&str]) -> PlanFact {
    let questions = questions.iter().map(ToString::to_string).collect();
    PlanFact::Found { name: "PLAN.md".to_owned(), approval, complexity, questions }
}

fn git(changed: u32, outside: &[&str], uncommitted: &[&str]) -> GitFact {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    GitFact::Seen { changed, outside: owned(outside), uncommitted: owned(uncommitted) }
}

fn claim(name: &str, note: &str, complexity: Option<u8>) -> Claim {
    Claim { at: "2026-11-15T08:00:00Z".to_owned(), name: name.to_owned(), note: note.to_owned(), complexity }
}

fn prospect(plan: PlanFact, stages: &[String]) -> KnownBeforeWork<'_> {
    KnownBeforeWork { plan, has_own_checks: true, stages }
}

fn orchestrator() -> DoneSettings {
    DoneSettings { profile: Profile::Orchestrator, ..DoneSettings::default() }
}

fn gate_of(stage: &str, fact: GateFact) -> impl Fn(&mut Facts) {
    let stage = stage.to_owned();
    move |facts| {
        if fact == GateFact::NotConfigured {
            facts.gates.remove(&stage);
        } else {
            facts.gates.insert(stage.clone(), fact.clone());
        }
    }
}

fn red() -> GateFact {
    GateFact::Red { failed: vec!["x: failed with exit code 1".to_owned()] }
}

fn no_idea() -> GateFact {
    GateFact::Unknown { why: "x was not found".to_owned() }
}

type Change = Box<dyn Fn(&mut Facts)>;

fn by<F: Fn(&mut Facts) + 'static>(change: F) -> Change {
    Box::new(change)
}

/// Each condition with every outcome of its prover: the result in the orchestrator profile, and in the loop profile.
#[test]
fn every_condition_with_every_outcome_of_its_prover() {
    let unknown = || "nobody knows".to_owned();
    let table: Vec<(&str, Change, &str, &str)> = vec![
        ("memory_search", by(|_| {}), "held", "held"),
        ("memory_search", by(|f| f.memory = LessonsConsulted::NotQueried), "missing", "missing"),
        ("memory_search", by(|f| f.memory = LessonsConsulted::NothingThere), "not needed", "not needed"),
        ("memory_search", by(move |f| f.memory = LessonsConsulted::Unknown { why: unknown() }), "unknown", "unknown"),
        ("task_classified", by(|_| {}), "held", "held"),
        ("task_classified", by(|f| f.plan = plan(Approval::Approved, None, &[])), "missing", "missing"),
        ("task_classified", by(|f| f.plan = PlanFact::Absent), "missing", "missing"),
        (
            "task_classified",
            by(|f| {
                f.plan = PlanFact::Absent;
                f.claims.push(claim("task_classified", "many parts", Some(9)));
            }),
            "held",
            "held",
        ),
        (
            "task_classified",
            by(|f| {
                f.plan = PlanFact::Absent;
                f.claims.push(claim("task_classified", "no number", None));
            }),
            "missing",
            "missing",
        ),
        ("must_have_answered", by(|_| {}), "held", "held"),
        ("must_have_answered", by(|f| f.plan = plan(Approval::Approved, None, &["which port?"])), "missing", "missing"),
        ("must_have_answered", by(|f| f.plan = PlanFact::Absent), "not needed", "not needed"),
        ("must_have_answered", by(move |f| f.plan = PlanFact::Unreadable { why: unknown() }), "unknown", "unknown"),
        ("plan_approved", by(|_| {}), "held", "held"),
        ("plan_approved", by(|f| f.plan = plan(Approval::Changed, None, &[])), "missing", "missing"),
        ("plan_approved", by(|f| f.plan = plan(Approval::WrittenBy("x".to_owned()), None, &[])), "missing", "missing"),
        ("plan_approved", by(|f| f.plan = plan(Approval::NeverAsked, None, &[])), "missing", "missing"),
        ("plan_approved", by(|f| f.plan = PlanFact::Absent), "missing", "missing"),
        ("plan_approved", by(move |f| f.plan = PlanFact::Unreadable { why: unknown() }), "unknown", "unknown"),
        ("implementation_complete", by(|_| {}), "held", "held"),
        ("implementation_complete", by(|f| f.git = git(0, &[], &[])), "missing", "missing"),
        ("implementation_complete", by(|f| f.git = git(0, &["else.rs"], &[])), "missing", "missing"),
        ("implementation_complete", by(|f| f.git = git(1, &[], &["a.rs"])), "missing", "held"),
        ("implementation_complete", by(move |f| f.git = GitFact::Unknown { why: unknown() }), "unknown", "unknown"),
        ("correctness_passed", by(|_| {}), "held", "held"),
        ("correctness_passed", by(gate_of("correctness", red())), "missing", "missing"),
        ("correctness_passed", by(gate_of("correctness", no_idea())), "unknown", "unknown"),
        ("correctness_passed", by(|f| f.own_checks = red()), "missing", "missing"),
        ("correctness_passed", by(|f| f.own_checks = no_idea()), "unknown", "unknown"),
        ("correctness_passed", by(gate_of("correctness", GateFact::NotConfigured)), "held", "held"),
        (
            "correctness_passed",
            by(|f| {
                f.gates.remove("correctness");
                f.own_checks = GateFact::NotConfigured;
            }),
            "unknown",
            "not needed",
        ),
        (
            "correctness_passed",
            by(|f| {
                f.gates.clear();
                f.own_checks = GateFact::NotConfigured;
            }),
            "unknown",
            "unknown",
        ),
        ("quality_passed", by(|_| {}), "held", "held"),
        ("quality_passed", by(gate_of("quality", red())), "missing", "missing"),
        ("quality_passed", by(gate_of("quality", no_idea())), "unknown", "unknown"),
        ("quality_passed", by(gate_of("quality", GateFact::NotConfigured)), "unknown", "not needed"),
        ("quality_passed", by(gate_of("quality", GateFact::NotDue)), "not needed", "not needed"),
        ("adversarial_passed", by(|_| {}), "held", "held"),
        ("adversarial_passed", by(gate_of("adversarial", red())), "missing", "missing"),
        ("adversarial_passed", by(gate_of("adversarial", no_idea())), "unknown", "unknown"),
        ("adversarial_passed", by(gate_of("adversarial", GateFact::NotConfigured)), "held", "held"),
        ("adversarial_passed", by(|f| f.judge = JudgeFact::Refuted { findings: vec!["a".to_owned()] }), "missing", "missing"),
        ("adversarial_passed", by(|f| f.plan = plan(Approval::Approved, Some(6), &[])), "not needed", "not needed"),
        (
            "adversarial_passed",
            by(|f| {
                f.plan = plan(Approval::Approved, Some(3), &[]);
                f.judge = JudgeFact::Refuted { findings: Vec::new() };
            }),
            "missing",
            "missing",
        ),
        (
            "adversarial_passed",
            by(|f| {
                f.plan = plan(Approval::Approved, Some(3), &[]);
                f.gates.insert("adversarial".to_owned(), red());
            }),
            "missing",
            "missing",
        ),
        (
            "adversarial_passed",
            by(move |f| {
                f.gates.remove("adversarial");
                f.judge = JudgeFact::Unknown { why: unknown() };
            }),
            "unknown",
            "unknown",
        ),
        (
            "adversarial_passed",
            by(|f| {
                f.gates.remove("adversarial");
                f.judge = JudgeFact::Off;
            }),
            "unknown",
            "unknown",
        ),
        ("retrospective_done", by(|_| {}), "held", "held"),
        ("retrospective_done", by(|f| f.lessons = Lessons::Same), "missing", "missing"),
        ("retrospective_done", by(move |f| f.lessons = Lessons::Unknown { why: unknown() }), "unknown", "unknown"),
        (
            "retrospective_done",
            by(|f| {
                f.lessons = Lessons::Same;
                f.claims.push(claim("retrospective_done", "tests first", None));
            }),
            "held",
            "held",
        ),
        (
            "retrospective_done",
            by(|f| {
                f.lessons = Lessons::Same;
                f.claims.push(claim("retrospective_done", " ", None));
            }),
            "missing",
            "missing",
        ),
        ("no_review", by(move |f| f.doubts.push(unknown())), "unknown", "unknown"),
        ("tasks_closed", by(|_| {}), "not needed", "not needed"),
        ("tasks_closed", by(|f| f.tasks.push("do A".to_owned())), "missing", "missing"),
        ("state_files", by(|_| {}), "not needed", "not needed"),
        (
            "state_files",
            by(|f| f.state_files.push(StateFile::Closed { file: "loop.json".to_owned(), why: "not done".to_owned() })),
            "missing",
            "missing",
        ),
        (
            "state_files",
            by(|f| f.state_files.push(StateFile::Unreadable { file: "loop.json".to_owned(), why: "a pipe".to_owned() })),
            "unknown",
            "unknown",
        ),
    ];
    for (n, (name, change, strict, lax)) in table.iter().enumerate() {
        let mut facts = all_held();
        change(&mut facts);
        for (settings, expected) in [(orchestrator(), *strict), (DoneSettings::default(), *lax)] {
            let report = judge(&settings, &facts);
            let judged = report.get(name).unwrap();
            assert_eq!(judged.outcome.describe(), expected, "row {n}: {name} in {:?}: {:?}", settings.profile, judged.outcome);
            // Every required condition that is missing or unknown keeps the work from being done, and is reported.
            let closed = judged.required && matches!(expected, "missing" | "unknown");
            assert_eq!(report.open().iter().any(|line| line.starts_with(&format!("{name}: "))), closed, "row {n}");
            assert!(!closed || report.standing() > DoneState::Done, "row {n}");
        }
    }
}

fn gate_outcomes() -> [GateFact; 5] {
    let green = GateFact::Green { checks: vec!["x".to_owned()] };
    [GateFact::NotConfigured, GateFact::NotDue, green, no_idea(), red()]
}

fn judge_outcomes() -> [JudgeFact; 4] {
    let unknown = JudgeFact::Unknown { why: "no answer".to_owned() };
    [JudgeFact::Off, JudgeFact::Holds, unknown, JudgeFact::Refuted { findings: vec!["a".to_owned()] }]
}

/// H held, N not needed, U unknown, M missing.
fn letter(outcome: &ConditionOutcome) -> char {
    match outcome {
        ConditionOutcome::Held { .. } => 'H',
        ConditionOutcome::NotNeeded { .. } => 'N',
        ConditionOutcome::Unknown { .. } => 'U',
        ConditionOutcome::Missing { .. } => 'M',
    }
}

#[test]
fn a_gate_and_a_judge_with_every_outcome_of_both() {
    // One group per outcome of the gate (none, not due, green, unknown, red), one letter per outcome of the judge (not asked, holds,
    // unknown, refuted).
    let complex = |enabled| if enabled { "UHUM UHUM UHUM UUUM MMMM" } else { "UHUM NHUM HHUM UUUM MMMM" };
    for (complexity, enabled, from, expected) in [
        (8, true, 7, complex(true)),
        (7, true, 7, complex(true)),
        (8, false, 7, complex(false)),
        // A judge that is only asked from a higher complexity on does not count here, unless it was asked anyway.
        (8, true, 9, complex(false)),
        (6, true, 7, "NNNM NNNM NNNM NNNM MMMM"),
        (6, false, 7, "NNNM NNNM NNNM NNNM MMMM"),
    ] {
        let judge_settings = JudgeSettings { enabled, min_complexity: from, ..JudgeSettings::default() };
        let settings = DoneSettings { judge: judge_settings, ..orchestrator() };
        let row = |fact: GateFact| -> String {
            let of = |answer: JudgeFact| {
                let mut facts = all_held();
                facts.plan = plan(Approval::Approved, Some(complexity), &[]);
                gate_of("adversarial", fact.clone())(&mut facts);
                facts.judge = answer;
                let report = judge(&settings, &facts);
                let outcome = report.get("adversarial_passed").unwrap().outcome.clone();
                assert_eq!(report.standing() == DoneState::Done, matches!(letter(&outcome), 'H' | 'N'), "{outcome:?}");
                letter(&outcome)
            };
            judge_outcomes().map(of).iter().collect()
        };
        assert_eq!(gate_outcomes().map(row).join(" "), expected, "complexity {complexity}, enabled {enabled}, from {from}");
    }
}

#[test]
fn the_storys_own_checks_and_gates_with_every_outcome_of_both() {
    // One group per outcome of the story's own checks, one letter per outcome of the gate (none, not due, green, unknown, red).
    for (settings, expected) in
        [(orchestrator(), "UNHUM NNHUM HHHUM UUUUM MMMMM"), (DoneSettings::default(), "NNHUM NNHUM HHHUM UUUUM MMMMM")]
    {
        let row = |own: GateFact| -> String {
            let of = |fact: GateFact| {
                let mut facts = all_held();
                facts.own_checks = own.clone();
                gate_of("correctness", fact)(&mut facts);
                letter(&judge(&settings, &facts).get("correctness_passed").unwrap().outcome)
            };
            gate_outcomes().map(of).iter().collect()
        };
        assert_eq!(gate_outcomes().map(row).join(" "), expected, "{:?}", settings.profile);
    }
}

#[test]
fn a_users_own_condition_with_every_prover_and_outcome() {
    let own = |prover: &str| OwnCondition { name: "mine".to_owned(), prover: prover.to_owned(), min_complexity: 0, todo: None };
    let unknown = || "nobody knows".to_owned();
    let table: Vec<(&str, Change, &str)> = vec![
        ("gate:quality", by(|_| {}), "held"),
        ("gate:quality", by(gate_of("quality", red())), "missing"),
        ("gate:quality", by(gate_of("quality", no_idea())), "unknown"),
        ("gate:quality", by(gate_of("quality", GateFact::NotDue)), "not needed"),
        ("gate:e2e", by(|_| {}), "unknown"),
        ("gate:correctness", by(|_| {}), "held"),
        ("gate:correctness", by(|f| f.own_checks = red()), "missing"),
        ("git", by(|_| {}), "held"),
        ("git", by(|f| f.git = git(0, &[], &[])), "missing"),
        ("git", by(move |f| f.git = GitFact::Unknown { why: unknown() }), "unknown"),
        ("plan", by(|_| {}), "held"),
        ("git", by(|f| f.git = git(0, &["else.rs"], &[])), "missing"),
        ("git", by(|f| f.git = git(1, &[], &["a.rs"])), "held"),
        ("plan", by(|f| f.plan = plan(Approval::Changed, None, &[])), "missing"),
        ("plan", by(|f| f.plan = plan(Approval::NeverAsked, None, &[])), "missing"),
        ("plan", by(|f| f.plan = plan(Approval::WrittenBy("x".to_owned()), None, &[])), "missing"),
        ("plan", by(|f| f.plan = PlanFact::Absent), "missing"),
        ("plan", by(move |f| f.plan = PlanFact::Unreadable { why: unknown() }), "unknown"),
        ("claim", by(|_| {}), "missing"),
        ("claim", by(|f| f.claims.push(claim("mine", "I looked", None))), "held"),
        ("claim", by(|f| f.claims.push(claim("mine", "", None))), "missing"),
        ("claim", by(|f| f.claims.push(claim("others", "I looked", None))), "missing"),
        ("ci", by(|_| {}), "held"),
        ("ci", by(|f| f.ci = CiFact::Off), "unknown"),
        ("ci", by(move |f| f.ci = CiFact::Unknown { why: unknown() }), "unknown"),
        ("ci", by(|f| f.ci = CiFact::Red { commit: "c1".to_owned(), said: String::new() }), "missing"),
        ("judge", by(|_| {}), "held"),
        ("judge", by(|f| f.judge = JudgeFact::Off), "unknown"),
        ("judge", by(move |f| f.judge = JudgeFact::Unknown { why: unknown() }), "unknown"),
        ("judge", by(|f| f.judge = JudgeFact::Refuted { findings: Vec::new() }), "missing"),
    ];
    for (prover, change, expected) in table {
        let mut facts = all_held();
        change(&mut facts);
        let settings = DoneSettings { condition: vec![own(prover)], ..DoneSettings::default() };
        let report = judge(&settings, &facts);
        let judged = report.get("mine").unwrap();
        assert!(judged.required && judged.prover.to_string() == prover, "{judged:?}");
        assert_eq!(judged.outcome.describe(), expected, "{prover}: {:?}", judged.outcome);
    }
    let simple = OwnCondition { min_complexity: 9, ..own("claim") };
    let settings = DoneSettings { condition: vec![simple], ..DoneSettings::default() };
    assert_eq!(judge(&settings, &all_held()).get("mine").unwrap().outcome.describe(), "not needed");
    let told = OwnCondition { todo: Some("Open the page.".to_owned()), ..own("claim") };
    let settings = DoneSettings { condition: vec![told], ..DoneSettings::default() };
    assert_eq!(judge(&settings, &all_held()).open(), ["mine: it has not been claimed. Open the page."]);
}

#[test]
fn a_claim_proves_nothing_that_gates_git_plan_or_ci_have_to_prove() {
    let own = OwnCondition { name: "green".to_owned(), prover: "ci".to_owned(), min_complexity: 0, todo: None };
    let settings = DoneSettings { condition: vec![own], ..orchestrator() };
    let mut facts = Facts::default();
    let nothing = judge(&settings, &facts);
    for name in settings.names() {
        facts.claims.push(claim(name, "it is so", Some(1)));
    }
    let claimed = judge(&settings, &facts);
    for judged in &claimed.conditions {
        let before = nothing.get(&judged.name).unwrap();
        if settings.can_be_claimed(&judged.name) == Some(true) {
            assert_eq!((judged.outcome.describe(), &judged.prover), ("held", &Prover::Claim), "{}", judged.name);
            let ConditionOutcome::Held { by } = &judged.outcome else { unreachable!("held") };
            assert!(by.contains("a claim, not proof"), "{by}");
        } else {
            assert_eq!(judged, before);
        }
    }
    assert!(claimed.standing() > DoneState::Done);
}

#[test]
fn a_complexity_comes_from_plan_or_config_and_an_agent_only_raises_it() {
    let config = |value| DoneSettings { complexity: value, ..DoneSettings::default() };
    let facts = |planned, claimed: &[u8]| Facts {
        plan: plan(Approval::Approved, planned, &[]),
        claims: claimed.iter().map(|value| claim("task_classified", "because", Some(*value))).collect(),
        ..Facts::default()
    };
    for (configured, planned, claimed, value, source) in [
        (None, None, &[][..], 7, Source::Nobody),
        (None, None, &[3], 7, Source::Claim),
        (None, None, &[9], 9, Source::Claim),
        (Some(2), None, &[], 2, Source::Config),
        (Some(2), Some(5), &[], 5, Source::Plan),
        (Some(9), Some(5), &[], 5, Source::Plan),
        (None, Some(8), &[1], 8, Source::Plan),
        (None, Some(3), &[2, 8, 4], 8, Source::Claim),
    ] {
        let stated = stated_complexity(&config(configured), planned);
        assert_eq!(stated.value, planned.or(configured.and_then(|value| u8::try_from(value).ok())).unwrap_or(7));
        let found = complexity(&config(configured), &facts(planned, claimed));
        assert_eq!((found.value, found.source), (value, source), "{configured:?} {planned:?} {claimed:?}");
        let report = judge(&config(configured), &facts(planned, claimed));
        let expected = if source == Source::Nobody { "missing" } else { "held" };
        assert_eq!(report.get("task_classified").unwrap().outcome.describe(), expected, "{source:?}");
    }
}

#[test]
fn a_list_of_conditions_replaces_that_of_the_profile_and_makes_no_red_gate_green() {
    let settings = DoneSettings { require: vec!["memory_search".to_owned()], ..orchestrator() };
    let mut facts = Facts { memory: LessonsConsulted::Queried { by: "x".to_owned() }, ..Facts::default() };
    let report = judge(&settings, &facts);
    assert_eq!((report.standing(), report.open().len()), (DoneState::Done, 0), "{:?}", report.open());
    facts.gates.insert("security".to_owned(), red());
    facts.gates.insert("quality".to_owned(), red());
    let report = judge(&settings, &facts);
    let names: Vec<&str> =
        report.conditions.iter().filter(|judged| judged.name.starts_with("gate:")).map(|judged| judged.name.as_str()).collect();
    assert_eq!(names, ["gate:quality", "gate:security"]);
    assert_eq!(report.standing(), DoneState::Open);
}

#[test]
fn nothing_known_is_never_done_and_all_held_is() {
    for settings in [DoneSettings::default(), orchestrator()] {
        assert!(judge(&settings, &Facts::default()).standing() > DoneState::Done);
        let report = judge(&settings, &all_held());
        assert_eq!((report.standing(), report.open()), (DoneState::Done, Vec::new()));
    }
    assert_eq!(DoneReport::default().standing(), DoneState::Unknown, "no condition at all proves nothing");
    let json = serde_json::to_value(judge(&orchestrator(), &all_held())).unwrap();
    assert_eq!(json["conditions"][5]["prover"], "gate:correctness");
    assert_eq!(json["conditions"][5]["outcome"], "held");
}

#[test]
fn the_phase_is_that_of_the_first_required_condition_that_is_not_met() {
    let settings = orchestrator();
    let phase = |change: &dyn Fn(&mut Facts)| {
        let mut facts = all_held();
        change(&mut facts);
        judge(&settings, &facts).phase().name()
    };
    assert_eq!(phase(&|_| {}), "complete");
    assert_eq!(phase(&|facts| facts.lessons = Lessons::Same), "learning");
    assert_eq!(phase(&|facts| gate_of("quality", red())(facts)), "quality");
    assert_eq!(phase(&|facts| facts.git = git(0, &[], &[])), "implementation");
    assert_eq!(phase(&|facts| facts.tasks = vec!["write it".to_owned()]), "implementation", "no phase of the nine is open");
    assert_eq!(phase(&|facts| facts.plan = plan(Approval::NeverAsked, Some(8), &[])), "planning");
    assert_eq!(phase(&|facts| facts.memory = LessonsConsulted::NotQueried), "memory");
    let early = |facts: &mut Facts| {
        facts.memory = LessonsConsulted::NotQueried;
        facts.git = git(0, &[], &[]);
    };
    assert_eq!(phase(&early), "memory");
    let mut facts = all_held();
    early(&mut facts);
    assert_eq!(judge(&DoneSettings::default(), &facts).phase().name(), "implementation", "the profile requires no memory");
}
