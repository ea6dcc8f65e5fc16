//! Collects the facts by which a session's conditions are judged (for runs, see `step/conditions.rs`). Reads only and runs nothing but git.
//! [`ask`] queries external provers and stores their answers for the tree that they saw.

mod answers;
mod ask_provers;
mod changes;
mod earlier_results;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::lessons::user_text;
use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun};
use verdone_core::config::Config;
use verdone_core::done::{
    ConditionOutcome, DoneReport, Facts, GateFact, JudgeRecord, Lessons, LessonsConsulted, PlanFact, Prover, RalphState, judge,
    open_questions,
};
use verdone_core::hook::SessionFold;
use verdone_core::verify::VerifyReport;
use verdone_plan::{Plan, Progress, Selection, Story, select};
use verdone_text::shell_word::{shell_argument, shell_word};

use crate::process::program_exists;
use crate::project::ProjectError;
use crate::project::approval::{ApprovalError, Approvals};
use crate::project::lessons::guardrails_text;
use crate::project::plan_file::{self, FindError, PlanFile, PlanLocation, PlanRequest, resolve_checks};
use crate::project::ralph_state::{self, LoopFile, Projection};
use crate::project::shown;
use crate::session::claims;
use crate::session::{self, SeenLoop};
use crate::store::Store;
use crate::store::sessions::{own_sessions, session_fold};
use crate::verify::checks::{gates, own_checks};

pub use ask_provers::{Judging, ask};
use changes::{ChangeRequest, Changes};
use earlier_results::EarlierVerification;

/// No verification ran on exactly the current tree.
const NOT_RUN: &str = "its checks have not run on the current files";
/// How many stories a hint lists.
const MOST_NAMED: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum DoneError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error("cannot read the session's records: {0}")]
    Session(io::Error),
    #[error("{plan} has no story {:?}", story.as_str())]
    NoStory { story: StoryId, plan: String, known: Vec<String> },
    #[error("{0}")]
    NoPlan(String),
    #[error("there is no place for the secret that seals answers")]
    NoSecret,
}

/// Which session is asked about, and what is already known.
#[derive(Debug)]
pub struct ConditionRequest<'a> {
    pub root: &'a Path,
    pub session: &'a str,
    pub config: &'a Config,
    /// Check results for the current tree. If `None`, earlier results for exactly this tree count.
    pub checked: Option<Checked<'a>>,
    /// The plan and the current story. If `None`, the project's plan and its next story.
    pub about: Option<(&'a Path, &'a StoryId)>,
    /// Selects a story of the plan other than the current one.
    pub story: Option<&'a StoryId>,
    /// Where other loops keep their state. `None` without a home directory.
    pub state_home: Option<PathBuf>,
}

/// A verification of the current tree.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    pub runs: &'a [CheckRun],
    /// Whether all required checks passed.
    pub passed: bool,
    /// The story's own checks did not run.
    pub gates_only: bool,
}

/// The facts by which a session's conditions are judged.
#[derive(Debug)]
pub struct SessionFacts {
    pub facts: Facts,
    /// The current story, if there is a plan.
    pub story: Option<Story>,
    /// Files that differ from the start of the session.
    pub changed: Vec<String>,
    /// The commit at which the session started.
    pub base: Option<String>,
    /// The judge's answer about the current work, or else its most recent answer.
    pub judge: Option<JudgeRecord>,
    /// Files that Verdone writes itself.
    ours: Vec<PathBuf>,
}

/// Writes the session's standing for other loops to where they keep their state. Returns
/// the files that belong to those loops and were left unchanged.
pub fn project(ask: &ConditionRequest<'_>, task: &str, report: &DoneReport) -> io::Result<Vec<String>> {
    let Some(home) = &ask.state_home else { return Ok(Vec::new()) };
    let held = session::loop_of(ask.root, ask.session).map(|seen| seen.held);
    let task = if task.is_empty() { held.as_ref().map_or("", |held| &held.task) } else { task };
    let (setting, about) = (ask.config.done.ralph_state, Projection { session: ask.session, task, now: Timestamp::now() });
    let (iteration, most) = held.as_ref().map_or((0, 0), |held| (held.gate.blocks, held.max_blocks));
    let mut theirs = ralph_state::write_report(home, setting, &about, report, iteration)?;
    // A loop that has ended is no longer there for other tools.
    if let Some(held) = &held
        && held.is_active()
        && !ralph_state::write_loop(home, setting, &about, &LoopFile::from_report(report, iteration, most))?
    {
        theirs.push("loop.json".to_owned());
    }
    Ok(theirs)
}

/// Judges the session and writes its standing, as [`project`] does. Does nothing if no such state is kept.
pub fn renew_state(ask: &ConditionRequest<'_>) -> io::Result<Vec<String>> {
    let setting = ask.config.done.ralph_state;
    if !ask.state_home.as_deref().is_some_and(|home| ralph_state::is_written(home, setting)) {
        return Ok(Vec::new());
    }
    let seen = collect_facts(ask).map_err(io::Error::other)?;
    let task = seen.story.as_ref().map_or("", |story| &story.title);
    project(ask, task, &judge(&ask.config.done, &seen.facts))
}

pub fn facts(ask: &ConditionRequest<'_>) -> Result<Facts, DoneError> {
    collect_facts(ask).map(|seen| seen.facts)
}

/// Collects the facts, along with other findings.
pub fn collect_facts(ask: &ConditionRequest<'_>) -> Result<SessionFacts, DoneError> {
    let records = session_fold(&own_sessions(ask.root), ask.session).map_err(DoneError::Session)?;
    let held_by = session::loop_of(ask.root, ask.session);
    let about = ask.about.map(|(plan, story)| (plan.to_owned(), story.clone())).or_else(|| at_work(held_by.as_ref()?));
    let plan = open_plan(ask, about.as_ref().map(|(plan, _)| plan.as_path()));
    let story = plan.as_ref().ok().and_then(|plan| match (ask.story, &about) {
        (Some(story), _) | (None, Some((_, story))) => plan.plan().story_meant(story),
        (None, None) => current(plan.plan()),
    });
    let story = story.cloned();
    match (ask.story, &story, &plan) {
        (Some(asked), None, Ok(plan)) => {
            let known = plan.plan().stories.iter().map(|story| story.id.as_str().to_owned()).take(MOST_NAMED).collect();
            return Err(DoneError::NoStory { story: asked.clone(), plan: shown(plan.path(), ask.root), known });
        }
        (Some(_), _, Err(why)) => {
            return Err(DoneError::NoPlan(why.clone().unwrap_or_else(|| "there is no plan here".to_owned())));
        }
        (Some(_), Some(_), Ok(_)) | (None, _, _) => {}
    }
    let (held_by, in_plan) = (held_by.as_ref(), plan.as_ref().ok());
    let Changes { fact: git, changed, base } = changes::collect_changes(ChangeRequest {
        root: ask.root,
        records: &records,
        held_by,
        plan: in_plan,
        story: story.as_ref(),
    });
    let all = gates(ask.config);
    let path = std::env::var_os("PATH");
    let exists = |program: &str| program_exists(program, path.as_deref(), ask.root);
    let own = story.as_ref().map(|story| own_checks(resolve_checks(story, exists), ask.config)).unwrap_or_default();
    let known = match ask.checked {
        Some(_) => None,
        None => earlier_results::find(ask, in_plan, story.as_ref(), &own, &all),
    };
    let checked = ask.checked.or_else(|| known.as_ref().map(EarlierVerification::checked));
    let command = verify_command(story.as_ref().filter(|_| !own.is_empty()));
    let other = match (ask.config.done.ralph_state, &ask.state_home) {
        (RalphState::Never, _) | (_, None) => ralph_state::OtherToolState::default(),
        (RalphState::Auto | RalphState::Always, Some(home)) => ralph_state::read(home, ask.session),
    };
    let text = guardrails_text(ask.root).unwrap_or_default();
    let ours = in_plan.map(PlanFile::protected_paths).unwrap_or_default();
    let mut in_work = plan_fact(ask.root, plan.as_ref(), story.as_ref())?;
    if let Some(frozen) = held_by.filter(|seen| seen.held.is_active()).and_then(|seen| seen.held.stories.get(&story.as_ref()?.id))
    {
        in_work.at_least(&ask.config.done, frozen.complexity);
    }
    let said = answers::heard(ask, &git, story.as_ref(), &ours);
    let facts = Facts {
        memory: memory(ask.root, &records, &text),
        plan: in_work,
        git,
        gates: gate_facts(&all, checked).into_iter().map(|(stage, fact)| (stage, to_run(fact, &command))).collect(),
        own_checks: to_run(checks_fact(&own, checked.filter(|checked| !checked.gates_only)), &command),
        claims: claims::of_session(ask.root, ask.session).map_err(DoneError::Session)?,
        lessons: Lessons::since(records.lessons.as_ref(), &Lessons::stamp(&user_text(&text))),
        ci: said.ci,
        judge: said.judge,
        doubts: doubts(ask, held_by, story.as_ref()),
        tasks: records.open_tasks().into_iter().chain(other.tasks).collect(),
        state_files: other.files,
    };
    Ok(SessionFacts { facts, story, changed, base, judge: said.record, ours })
}

/// Completes the commands in a report's hints: the command that shows that a check is
/// fixed, and the session for a claim if the command could not find it by itself.
pub fn name_commands(report: &mut DoneReport, seen: &SessionFacts, session: Option<&str>) {
    let command = verify_command(seen.story.as_ref().filter(|_| seen.facts.own_checks != GateFact::NotConfigured));
    let claim = session.map(|session| format!("`verdone claim --session {} ", shell_word(&sanitise_line(session))));
    for judged in &mut report.conditions {
        let words = match &mut judged.outcome {
            ConditionOutcome::Missing { todo, .. } => {
                match judged.prover {
                    Prover::Gate(_) => todo.push_str(&format!(", then run `{command}`")),
                    // The user's text says what to do, but not how to claim it.
                    Prover::Claim if !todo.contains("verdone claim") => {
                        todo.push_str(&format!(
                            ", then run `verdone claim {} --note WHY`",
                            shell_word(&sanitise_line(&judged.name))
                        ));
                    }
                    Prover::Claim
                    | Prover::Git
                    | Prover::Plan
                    | Prover::Ci
                    | Prover::Judge
                    | Prover::Record
                    | Prover::Lessons
                    | Prover::State => {}
                }
                todo
            }
            ConditionOutcome::Unknown { why } => why,
            ConditionOutcome::Held { .. } | ConditionOutcome::NotNeeded { .. } => continue,
        };
        if let Some(claim) = &claim {
            *words = words.replace("`verdone claim ", claim);
        }
    }
}

/// The command that runs the gates, plus the story's checks if it has some.
fn verify_command(story: Option<&Story>) -> String {
    let argument = story.map(|story| shell_argument(&sanitise_line(story.id.as_str())));
    argument.map_or_else(|| "verdone verify".to_owned(), |argument| format!("verdone verify {argument}"))
}

/// Adds the command to run to a check that has not run.
fn to_run(fact: GateFact, command: &str) -> GateFact {
    match fact {
        GateFact::Unknown { why } if why == NOT_RUN => GateFact::Unknown { why: format!("{why}: run `{command}`") },
        other => other,
    }
}

/// Gate results by stage.
pub fn gate_facts(gates: &[Check], checked: Option<Checked<'_>>) -> BTreeMap<String, GateFact> {
    let mut stages: BTreeMap<String, Vec<Check>> = BTreeMap::new();
    for gate in gates.iter().filter(|gate| !gate.terms.advisory) {
        if let CheckOrigin::Gate(stage) = &gate.origin {
            stages.entry(stage.name().to_owned()).or_default().push(gate.clone());
        }
    }
    stages.into_iter().map(|(stage, gates)| (stage, checks_fact(&gates, checked))).collect()
}

/// The combined result of all checks of one origin: the worst counts. Advisory checks are ignored.
pub fn checks_fact(checks: &[Check], checked: Option<Checked<'_>>) -> GateFact {
    let checks: Vec<&Check> = checks.iter().filter(|check| !check.terms.advisory).collect();
    let Some(first) = checks.first() else { return GateFact::NotConfigured };
    let Some(Checked { runs, passed, gates_only: _ }) = checked else {
        return GateFact::Unknown { why: NOT_RUN.to_owned() };
    };
    // Not by name: names in the results may have redacted secrets.
    let of_origin: Vec<&CheckRun> = runs.iter().filter(|run| run.origin == first.origin && !run.advisory).collect();
    let words = |run: &&CheckRun| format!("{}: {}", run.name, run.outcome.describe());
    let (mut red, mut unknown) = (Vec::new(), Vec::new());
    for run in &of_origin {
        match run.outcome {
            CheckOutcome::Passed => {}
            CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } | CheckOutcome::TimedOut { .. } => red.push(words(run)),
            CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted => unknown.push(words(run)),
        }
    }
    // A passed verification ran all required checks.
    if of_origin.len() < checks.len() && !passed {
        unknown.push("not every check ran: an earlier one stopped the verification".to_owned());
    }
    match (red.is_empty(), unknown.is_empty(), of_origin.is_empty()) {
        (false, _, _) => GateFact::Red { failed: red },
        (true, false, _) => GateFact::Unknown { why: unknown.join("; ") },
        (true, true, true) => GateFact::NotDue,
        (true, true, false) => GateFact::Green { checks: of_origin.iter().map(|run| run.name.clone()).collect() },
    }
}

/// Whether lessons and past runs were read. The hook for a session start passes the lessons to the session, if there are any.
fn memory(root: &Path, records: &SessionFold, lessons: &str) -> LessonsConsulted {
    let runs = Store::new(root).ids().is_ok_and(|runs| !runs.is_empty());
    match (&records.recalled, records.first) {
        (Some(by), _) => LessonsConsulted::Queried { by: by.clone() },
        (None, _) if lessons.trim().is_empty() && !runs => LessonsConsulted::NothingThere,
        (None, Some(_)) => LessonsConsulted::NotQueried,
        (None, None) => {
            LessonsConsulted::Unknown { why: "no hook recorded this session: `verdone install` adds hooks".to_owned() }
        }
    }
}

/// The plan of a loop and its current story, or the last finished story if all are done.
fn at_work(seen: &SeenLoop) -> Option<(PathBuf, StoryId)> {
    let current = seen.state.attempt.as_ref().map(|attempt| &attempt.place.story);
    let story = current.or_else(|| seen.state.last_iteration.as_ref().map(|last| &last.story))?;
    Some((PathBuf::from(seen.held.plan.as_ref()?), story.clone()))
}

/// Why a story needs review, as last recorded by its loop.
fn doubts(ask: &ConditionRequest<'_>, held_by: Option<&SeenLoop>, story: Option<&Story>) -> Vec<String> {
    let (Some(seen), Some(story)) = (held_by.filter(|_| ask.checked.is_none()), story) else { return Vec::new() };
    if seen.state.progress.review.contains_key(&story.id) {
        return vec!["it needs a review (`verdone review`)".to_owned()];
    }
    let report = seen.state.attempt.as_ref().filter(|attempt| attempt.place.story == story.id);
    let report = report.and_then(|attempt| attempt.report.as_deref());
    report.filter(|report| report.is_doubted()).map(VerifyReport::problems).unwrap_or_default()
}

fn open_plan(ask: &ConditionRequest<'_>, about: Option<&Path>) -> Result<PlanFile, Option<String>> {
    if let Some(plan) = about {
        return PlanFile::open(PlanLocation::new(plan.to_owned())).map_err(|error| Some(error.to_string()));
    }
    let root = ask.root;
    let configured = ask.config.plan.as_ref().map(PathBuf::from);
    let request = PlanRequest { root: root.to_owned(), cwd: root.to_owned(), configured, ..PlanRequest::default() };
    let location = plan_file::find(&request).map_err(|error| match error {
        FindError::Nothing { .. } | FindError::EmptyFolder { .. } => None,
        FindError::Missing { .. } | FindError::Several { .. } => Some(error.to_string()),
    })?;
    PlanFile::open(location).map_err(|error| Some(error.to_string()))
}

/// The next story to work on, or the last one if all are done.
fn current(plan: &Plan) -> Option<&Story> {
    match select(plan, &Progress::default(), None) {
        Selection::Story { index } => plan.stories.get(index),
        Selection::AllDone => plan.stories.last(),
        Selection::NothingRunnable { .. } => plan.open().next(),
    }
}

fn plan_fact(root: &Path, plan: Result<&PlanFile, &Option<String>>, story: Option<&Story>) -> Result<PlanFact, DoneError> {
    match plan {
        Ok(plan) => Ok(plan_found(plan, story, &shown(plan.path(), root), &Approvals::read(root)?.made_here())),
        Err(None) => Ok(PlanFact::Absent),
        Err(Some(why)) => Ok(PlanFact::Unreadable { why: why.clone() }),
    }
}

/// What the plan says about the current story, and whether the user approved the plan.
pub(crate) fn plan_found(plan: &PlanFile, story: Option<&Story>, name: &str, approvals: &Approvals) -> PlanFact {
    let approval = approvals.state(name, || plan.document().fingerprint());
    let mut questions = story.map(|story| open_questions(&story.body)).unwrap_or_default();
    questions.extend(open_questions(&plan.plan().context));
    PlanFact::Found { name: name.to_owned(), approval, complexity: story.and_then(|story| story.complexity), questions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::span::Span;
    use verdone_core::check::{CheckOptions, CommandSpec, Stage};

    fn check(name: &str, stage: Stage) -> Check {
        let command = CommandSpec::Shell(name.to_owned());
        Check {
            name: name.to_owned(),
            origin: CheckOrigin::Gate(stage),
            command,
            timeout: Span::from_secs(1),
            terms: CheckOptions::default(),
        }
    }

    fn ran(check: &Check, outcome: CheckOutcome) -> CheckRun {
        CheckRun { outcome, ..CheckRun::pending(check) }
    }

    #[test]
    fn a_stage_is_green_only_when_everything_that_had_to_run_did() {
        let gates = [check("a", Stage::Quality), check("b", Stage::Quality), check("s", Stage::Security)];
        let of = |outcomes: &[(usize, CheckOutcome)], passed: bool| {
            let runs: Vec<CheckRun> = outcomes.iter().map(|(n, outcome)| ran(&gates[*n], outcome.clone())).collect();
            gate_facts(&gates, Some(Checked { runs: &runs, passed, gates_only: false }))["quality"].clone()
        };
        let (passed, failed) = (CheckOutcome::Passed, CheckOutcome::Failed { code: 1 });
        let missing = CheckOutcome::Unknown { reason: "not found".to_owned() };
        assert!(matches!(of(&[(0, passed.clone()), (1, passed.clone())], true), GateFact::Green { checks } if checks.len() == 2));
        assert!(matches!(of(&[(0, passed.clone()), (1, failed)], false), GateFact::Red { .. }));
        assert!(matches!(of(&[(0, passed.clone()), (1, missing)], false), GateFact::Unknown { .. }));
        assert!(matches!(of(&[(0, passed)], false), GateFact::Unknown { .. }), "the second did not run");
        assert!(matches!(of(&[], false), GateFact::Unknown { .. }));
        assert_eq!(of(&[], true), GateFact::NotDue);
        assert!(matches!(&gate_facts(&gates, None)["security"], GateFact::Unknown { .. }));
        assert_eq!(checks_fact(&[], None), GateFact::NotConfigured);
    }

    #[test]
    fn a_gate_that_only_advises_decides_nothing() {
        let advisory = |name: &str| {
            let gate = check(name, Stage::Quality);
            Check { terms: CheckOptions { advisory: true, ..CheckOptions::default() }, ..gate }
        };
        let (lint, style) = (check("lint", Stage::Quality), advisory("style"));
        let failed = |check: &Check| CheckRun { advisory: true, ..ran(check, CheckOutcome::Failed { code: 1 }) };
        let of = |gates: &[Check], runs: &[CheckRun]| {
            let checked = Checked { runs, passed: true, gates_only: false };
            gate_facts(gates, Some(checked)).get("quality").cloned().unwrap_or_default()
        };
        let runs = [ran(&lint, CheckOutcome::Passed), failed(&style)];
        assert_eq!(of(&[lint.clone(), style.clone()], &runs), GateFact::Green { checks: vec!["lint".to_owned()] });
        assert_eq!(of(std::slice::from_ref(&style), &runs[1..]), GateFact::NotConfigured);
        let green = CheckRun { outcome: CheckOutcome::Passed, ..failed(&style) };
        assert_eq!(of(&[style], &[green]), GateFact::NotConfigured, "and it proves nothing");
    }
}
