//! Turns facts into a report. If there are several facts about a condition, the worst one counts.

use verdone_text::shell_word::shell_word;

use super::{
    ADVERSARIAL_FROM, Approval, CiFact, Claim, Condition, ConditionOutcome, DoneReport, DoneSettings, Facts, GateFact, GitFact,
    JudgeFact, JudgeSettings, JudgedCondition, Lessons, LessonsConsulted, OwnCondition, PlanFact, Profile, Prover, StateFile,
    TASKS_CLOSED, UNKNOWN_COMPLEXITY,
};
use crate::base::plural::plural;

/// How many names a sentence lists.
const NAMED: usize = 3;
/// How many findings of a judge to list: each of them is work to do.
const TOLD: usize = 8;

/// The complexity assumed for a task, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complexity {
    pub value: u8,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Plan,
    Config,
    /// The agent raised it, or it is the only source.
    Claim,
    /// It was not stated anywhere.
    Nobody,
}

/// From the plan or the config. An agent may only raise it.
pub fn complexity(settings: &DoneSettings, facts: &Facts) -> Complexity {
    let planned = match &facts.plan {
        PlanFact::Found { complexity, .. } => *complexity,
        PlanFact::Absent | PlanFact::Unreadable { .. } => None,
    };
    let Complexity { value, source } = stated_complexity(settings, planned);
    let claimed = claims(facts, Condition::TaskClassified.name()).filter_map(|claim| claim.complexity).max();
    match (claimed, source) {
        (Some(claimed), _) if claimed > value => Complexity { value: claimed, source: Source::Claim },
        (Some(_), Source::Nobody) => Complexity { value, source: Source::Claim },
        (Some(_) | None, _) => Complexity { value, source },
    }
}

/// What the user states: the plan's value for the story, else the config's value for all stories. Used by gates and conditions.
pub fn stated_complexity(settings: &DoneSettings, planned: Option<u8>) -> Complexity {
    let configured = settings.complexity.and_then(|value| u8::try_from(value).ok());
    match (planned, configured) {
        (Some(value), _) => Complexity { value, source: Source::Plan },
        (None, Some(value)) => Complexity { value, source: Source::Config },
        (None, None) => Complexity { value: UNKNOWN_COMPLEXITY, source: Source::Nobody },
    }
}

/// Judges every condition.
pub fn judge(settings: &DoneSettings, facts: &Facts) -> DoneReport {
    let complexity = complexity(settings, facts);
    let known = Condition::ALL.into_iter().map(|condition| {
        let (outcome, prover) = built_in(condition, settings, facts, complexity);
        JudgedCondition { name: condition.name().to_owned(), required: settings.requires(condition.name()), outcome, prover }
    });
    let own = settings.condition.iter().map(|own| JudgedCondition {
        name: own.name.clone(),
        required: settings.requires(&own.name),
        outcome: own_condition(own, settings, facts, complexity),
        prover: own.prover(),
    });
    let mut conditions: Vec<JudgedCondition> = known.chain(own).collect();
    // A configured gate always counts: no list of conditions can hide a red one.
    let covers = |judged: &JudgedCondition, stage: &str| judged.required && judged.prover == Prover::Gate(stage.to_owned());
    for (stage, fact) in &facts.gates {
        if !conditions.iter().any(|judged| covers(judged, stage)) {
            let prover = Prover::Gate(stage.clone());
            conditions.push(JudgedCondition {
                name: prover.to_string(),
                required: true,
                outcome: gate(stage, fact.clone(), false),
                prover,
            });
        }
    }
    // Checks that pass only because tests or settings were changed prove nothing yet.
    if !facts.doubts.is_empty() {
        let outcome = unknown(format!("a person must look at it: {}", facts.doubts.join("; ")));
        conditions.push(JudgedCondition { name: "no_review".to_owned(), required: true, outcome, prover: Prover::Git });
    }
    conditions.push(JudgedCondition {
        name: TASKS_CLOSED.to_owned(),
        required: true,
        outcome: tasks(facts),
        prover: Prover::Record,
    });
    conditions.push(JudgedCondition {
        name: "state_files".to_owned(),
        required: true,
        outcome: state(facts),
        prover: Prover::State,
    });
    DoneReport { conditions }
}

/// What is known about a story before the work starts.
#[derive(Debug, Clone)]
pub struct KnownBeforeWork<'s> {
    /// Includes the story's complexity and questions.
    pub plan: PlanFact,
    pub has_own_checks: bool,
    /// The stages that have a gate.
    pub stages: &'s [String],
}

/// The report in the best case: the agent did everything it can, every check passed, and CI and the judge found nothing. If work
/// would not be done even then, there is no point in starting it.
pub fn best_case(settings: &DoneSettings, prospect: KnownBeforeWork<'_>) -> DoneReport {
    let KnownBeforeWork { plan, has_own_checks, stages } = prospect;
    let green = || GateFact::Green { checks: vec!["all".to_owned()] };
    let claim = |name: &str| Claim { at: String::new(), name: name.to_owned(), note: "said".to_owned(), complexity: Some(1) };
    let mut facts = Facts {
        memory: LessonsConsulted::Queried { by: String::new() },
        plan,
        git: GitFact::Seen { changed: 1, outside: Vec::new(), uncommitted: Vec::new() },
        gates: stages.iter().map(|stage| (stage.clone(), green())).collect(),
        own_checks: if has_own_checks { green() } else { GateFact::NotConfigured },
        claims: settings.names().into_iter().map(claim).collect(),
        lessons: Lessons::New,
        ci: if settings.ci.command.is_some() { CiFact::Green { commit: String::new() } } else { CiFact::Off },
        judge: JudgeFact::Off,
        doubts: Vec::new(),
        tasks: Vec::new(),
        state_files: Vec::new(),
    };
    if settings.wants_judge(complexity(settings, &facts).value) {
        facts.judge = JudgeFact::Holds;
    }
    judge(settings, &facts)
}

fn built_in(condition: Condition, settings: &DoneSettings, facts: &Facts, complexity: Complexity) -> (ConditionOutcome, Prover) {
    let asked = settings.asks_for(condition.name());
    let usual = condition.prover();
    match condition {
        Condition::MemorySearch => (memory(&facts.memory), usual),
        Condition::TaskClassified => classified(complexity),
        Condition::MustHaveAnswered => (questions(&facts.plan), usual),
        Condition::PlanApproved => (approved(&facts.plan), usual),
        Condition::ImplementationComplete => (implemented(&facts.git, settings.profile), usual),
        Condition::CorrectnessPassed => (correctness(facts, asked), usual),
        Condition::QualityPassed => (gate("quality", stage(facts, "quality"), asked), usual),
        Condition::AdversarialPassed => adversarial(settings, facts, complexity.value),
        Condition::RetrospectiveDone => retrospective(facts),
    }
}

fn own_condition(own: &OwnCondition, settings: &DoneSettings, facts: &Facts, complexity: Complexity) -> ConditionOutcome {
    if u32::from(complexity.value) < own.min_complexity {
        return not_needed(format!("the complexity is {}, below {}", complexity.value, own.min_complexity));
    }
    let outcome = match own.prover() {
        Prover::Gate(stage_name) if stage_name == "correctness" => correctness(facts, true),
        Prover::Gate(stage_name) => gate(&stage_name, stage(facts, &stage_name), true),
        Prover::Git => implemented(&facts.git, settings.profile),
        Prover::Plan => approved(&facts.plan),
        Prover::Claim => claimed(&own.name, facts),
        Prover::Ci => ci(settings, &facts.ci),
        Prover::Judge => judged(settings, &facts.judge, complexity.value),
        Prover::Record | Prover::Lessons | Prover::State => unknown("a config cannot name this prover"),
    };
    match (outcome, &own.todo) {
        (ConditionOutcome::Missing { why, .. }, Some(todo)) => missing(why, todo.trim_end_matches('.')),
        (other, _) => other,
    }
}

fn memory(memory: &LessonsConsulted) -> ConditionOutcome {
    match memory {
        LessonsConsulted::Queried { by } => held(by),
        LessonsConsulted::NothingThere => not_needed("there are no lessons and no runs yet"),
        LessonsConsulted::NotQueried => missing(
            "this session has read neither the project's lessons nor past runs",
            "Read .verdone/guardrails.md, or run `verdone log`",
        ),
        LessonsConsulted::Unknown { why } => unknown(why),
    }
}

fn classified(complexity: Complexity) -> (ConditionOutcome, Prover) {
    let value = complexity.value;
    match complexity.source {
        Source::Plan => (held(format!("the plan says {value}")), Prover::Plan),
        Source::Config => (held(format!("the config says {value}")), Prover::Plan),
        Source::Claim => (held(format!("the agent says so (a claim, not proof); it counts as {value}")), Prover::Claim),
        Source::Nobody => (
            missing(
                format!("the task states no complexity, so it counts as {value}"),
                "Add `Complexity: 1` to `10` to the story, or run `verdone claim task_classified --complexity N --note WHY`",
            ),
            Prover::Plan,
        ),
    }
}

fn questions(plan: &PlanFact) -> ConditionOutcome {
    match plan {
        PlanFact::Absent => not_needed("there is no plan, so there are no questions"),
        PlanFact::Unreadable { why } => unknown(why),
        PlanFact::Found { questions, .. } if questions.is_empty() => held("the plan has no open question"),
        PlanFact::Found { questions, name, .. } => missing(
            format!("{} open: {}", plural(questions.len(), "question is", "questions are"), listed(questions)),
            format!("Ask the user; the answer goes below the question in {name}, as `Answer: …`"),
        ),
    }
}

fn approved(plan: &PlanFact) -> ConditionOutcome {
    const TODO: &str = "The user runs `verdone plan approve`; an agent cannot";
    match plan {
        PlanFact::Absent => missing("there is no plan", "Make one (`verdone plan new`), and the user approves it"),
        PlanFact::Unreadable { why } => unknown(why),
        PlanFact::Found { approval, name, .. } => match approval {
            Approval::Approved => held(format!("the user approved the current {name}")),
            Approval::Changed => missing(format!("{name} has changed since it was approved"), TODO),
            Approval::WrittenBy(agent) => missing(format!("{name} was written by an agent ({agent}) and not approved"), TODO),
            Approval::NeverAsked => missing(format!("{name} has not been approved"), TODO),
        },
    }
}

fn implemented(git: &GitFact, profile: Profile) -> ConditionOutcome {
    let (changed, outside, uncommitted) = match git {
        GitFact::Unknown { why } => return unknown(why),
        GitFact::Seen { changed, outside, uncommitted } => (*changed, outside, uncommitted),
    };
    if changed == 0 {
        let why = match outside.len() {
            0 => "nothing was changed".to_owned(),
            _ => format!("nothing was changed inside the story's scope, only {}", listed(outside)),
        };
        return missing(why, "Make the change that the task asks for");
    }
    let files = plural(changed as usize, "file was changed", "files were changed");
    match (uncommitted.is_empty(), profile) {
        (true, _) => held(files),
        (false, Profile::Loop) => held(format!("{files}; not committed yet: {}", listed(uncommitted))),
        (false, Profile::Orchestrator) => {
            missing(format!("some changes are not committed: {}", listed(uncommitted)), "Commit or revert them")
        }
    }
}

/// Includes the story's own checks.
fn correctness(facts: &Facts, asked: bool) -> ConditionOutcome {
    let (own, gates) = (facts.own_checks.clone(), stage(facts, "correctness"));
    let fact = match (own, gates) {
        (GateFact::Green { checks: own }, GateFact::Green { checks }) => {
            GateFact::Green { checks: own.into_iter().chain(checks).collect() }
        }
        (GateFact::Red { failed: own }, GateFact::Red { failed }) => {
            GateFact::Red { failed: own.into_iter().chain(failed).collect() }
        }
        (own, gates) => own.max(gates),
    };
    let any = facts.gates.values().any(|fact| *fact != GateFact::NotConfigured);
    match fact {
        GateFact::NotConfigured if !any => {
            unknown("no check is configured, so nothing can be proven: add a [[gate]] to .verdone/config.toml")
        }
        fact => gate("correctness", fact, asked),
    }
}

fn stage(facts: &Facts, name: &str) -> GateFact {
    facts.gates.get(name).cloned().unwrap_or_default()
}

fn gate(stage: &str, fact: GateFact, asked: bool) -> ConditionOutcome {
    match fact {
        GateFact::Green { checks } => {
            held(format!("{} green: {}", plural(checks.len(), "check is", "checks are"), listed(&checks)))
        }
        GateFact::Red { failed } => {
            missing(format!("{} red: {}", plural(failed.len(), "check is", "checks are"), listed(&failed)), "Fix what fails")
        }
        GateFact::Unknown { why } => unknown(why),
        GateFact::NotDue => not_needed(format!("this change does not need a gate of the stage {stage:?}")),
        GateFact::NotConfigured if asked => {
            unknown(format!("no gate of the stage {stage:?} is configured: add a [[gate]] to .verdone/config.toml"))
        }
        GateFact::NotConfigured => not_needed(format!("no gate of the stage {stage:?} is configured")),
    }
}

/// Judged by a gate, a judge, or both if there are both.
fn adversarial(settings: &DoneSettings, facts: &Facts, complexity: u8) -> (ConditionOutcome, Prover) {
    let by_gate = stage(facts, "adversarial");
    let gate_prover = Prover::Gate("adversarial".to_owned());
    // A negative result counts, however simple the task is.
    if let GateFact::Red { .. } = by_gate {
        return (gate("adversarial", by_gate, true), gate_prover);
    }
    if let JudgeFact::Refuted { .. } = facts.judge {
        return (judged(settings, &facts.judge, complexity), Prover::Judge);
    }
    if complexity < ADVERSARIAL_FROM {
        return (not_needed(format!("the complexity is {complexity}, below {ADVERSARIAL_FROM}")), gate_prover);
    }
    let enabled = settings.judge.enabled;
    let judges = facts.judge != JudgeFact::Off || (enabled && u32::from(complexity) >= settings.judge.min_complexity);
    match (by_gate, judges) {
        (GateFact::NotConfigured, false) if !enabled => {
            let why = "there is neither a gate of the stage \"adversarial\" nor a judge: add one to .verdone/config.toml";
            (unknown(why), gate_prover)
        }
        (GateFact::NotConfigured, _) | (GateFact::NotDue, true) => (judged(settings, &facts.judge, complexity), Prover::Judge),
        (by_gate, false) => (gate("adversarial", by_gate, true), gate_prover),
        (by_gate, true) => {
            let (gate, judge) = (gate("adversarial", by_gate, true), judged(settings, &facts.judge, complexity));
            if judge.standing() > gate.standing() { (judge, Prover::Judge) } else { (gate, gate_prover) }
        }
    }
}

fn judged(settings: &DoneSettings, judge: &JudgeFact, complexity: u8) -> ConditionOutcome {
    let JudgeSettings { enabled, min_complexity, .. } = &settings.judge;
    match judge {
        JudgeFact::Off if !enabled => unknown("the judge is disabled: set `enabled = true` in [done.judge]"),
        JudgeFact::Off if u32::from(complexity) < *min_complexity => unknown(format!(
            "the judge is asked from complexity {min_complexity}, and this counts as {complexity}: lower `min_complexity` in [done.judge]"
        )),
        JudgeFact::Off => unknown("the judge was not asked: run `verdone done --ask`"),
        JudgeFact::Holds => held("a second agent found nothing against it"),
        JudgeFact::Unknown { why } => unknown(why),
        JudgeFact::Refuted { findings } if findings.is_empty() => {
            missing("a second agent refuted it without saying why", "Review the work again with a critical eye")
        }
        JudgeFact::Refuted { findings } => missing(
            format!("a second agent refuted it: {}", first_of(findings, TOLD)),
            "Fix what it found, or show in the work why it is wrong",
        ),
    }
}

fn retrospective(facts: &Facts) -> (ConditionOutcome, Prover) {
    let name = Condition::RetrospectiveDone.name();
    match (&facts.lessons, claims(facts, name).last()) {
        (Lessons::New, _) => (held("a lesson was added to .verdone/guardrails.md"), Prover::Lessons),
        (Lessons::Same | Lessons::Unknown { .. }, Some(claim)) => (held(said(claim)), Prover::Claim),
        (Lessons::Same, None) => (
            missing(
                "no lesson was recorded",
                "Add a lesson to .verdone/guardrails.md, or run `verdone claim retrospective_done --note WHAT`",
            ),
            Prover::Lessons,
        ),
        (Lessons::Unknown { why }, None) => {
            (unknown(format!("{why}; `verdone claim retrospective_done --note WHAT` says what was learned")), Prover::Lessons)
        }
    }
}

fn claimed(name: &str, facts: &Facts) -> ConditionOutcome {
    match claims(facts, name).last() {
        Some(claim) => held(said(claim)),
        None => {
            missing("it has not been claimed", format!("When it is true, run `verdone claim {} --note WHY`", shell_word(name)))
        }
    }
}

fn ci(settings: &DoneSettings, ci: &CiFact) -> ConditionOutcome {
    match ci {
        CiFact::Off if settings.ci.command.is_none() => unknown("CI cannot be asked: set `command` in [done.ci]"),
        CiFact::Off => unknown("CI was not asked: run `verdone done --ask`"),
        CiFact::Green { commit } => held(format!("CI is green for {commit}")),
        CiFact::Unknown { why } => unknown(why),
        CiFact::Red { commit, said } => {
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            missing(format!("CI is red for {commit}{said}"), "Fix what fails there")
        }
    }
}

fn tasks(facts: &Facts) -> ConditionOutcome {
    match facts.tasks.len() {
        0 => not_needed("no task is open"),
        count => missing(
            format!("{} not finished: {}", plural(count, "task is", "tasks are"), listed(&facts.tasks)),
            "Finish them, or delete those that are no longer wanted",
        ),
    }
}

/// Such a file can never open the gate, so only the reasons to close it count.
fn state(facts: &Facts) -> ConditionOutcome {
    let words = |file: &StateFile| match file {
        StateFile::Closed { file, why } | StateFile::Unreadable { file, why } => format!("{file}: {why}"),
    };
    let closed: Vec<String> =
        facts.state_files.iter().filter(|file| matches!(file, StateFile::Closed { .. })).map(words).collect();
    let unread: Vec<String> =
        facts.state_files.iter().filter(|file| matches!(file, StateFile::Unreadable { .. })).map(words).collect();
    match (closed.is_empty(), unread.is_empty()) {
        (true, true) => not_needed("no other tool reports remaining work"),
        (true, false) => unknown(listed(&unread)),
        (false, _) => missing(listed(&closed), "Finish what that tool is waiting for; it updates the file itself"),
    }
}

fn claims<'a>(facts: &'a Facts, name: &str) -> impl Iterator<Item = &'a Claim> {
    let name = name.to_owned();
    facts.claims.iter().filter(move |claim| claim.name == name && !claim.note.trim().is_empty())
}

fn said(claim: &Claim) -> String {
    format!("the agent says so (a claim, not proof): {}", claim.note.trim())
}

fn held(by: impl Into<String>) -> ConditionOutcome {
    ConditionOutcome::Held { by: by.into() }
}

fn not_needed(why: impl Into<String>) -> ConditionOutcome {
    ConditionOutcome::NotNeeded { why: why.into() }
}

fn unknown(why: impl Into<String>) -> ConditionOutcome {
    ConditionOutcome::Unknown { why: why.into() }
}

fn missing(why: impl Into<String>, todo: impl Into<String>) -> ConditionOutcome {
    ConditionOutcome::Missing { why: why.into(), todo: todo.into() }
}

fn listed(names: &[String]) -> String {
    first_of(names, NAMED)
}

fn first_of(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join("; ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
