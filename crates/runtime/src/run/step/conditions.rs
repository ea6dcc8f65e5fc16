//! Requirements beyond the checks: the `[done]` conditions, and a second agent that tries to refute the work.

use jiff::Timestamp;
use verdone_core::agent::Usage;
use verdone_core::base::id::Oid;
use verdone_core::check::CheckRun;
use verdone_core::done::{
    CiFact, Facts, GitFact, JudgeChoice, JudgeFact, JudgeRecord, JudgedCondition, Lessons, LessonsConsulted, Prover, complexity,
    judge,
};
use verdone_core::engine::prompt::{self, RefutePrompt};
use verdone_core::engine::run::{Attempt, State};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::{SeenCondition, Tree, VerifyReport};
use verdone_plan::Story;

use super::brief::scope_of;
use super::turn::within_the_run;
use super::{StepError, ci, io_error};
use crate::agent::judge::{ClientContext, ProverContext, ask_judge, limits_of};
use crate::git::{ChangedPath, RepoPath};
use crate::process::{Moment, RUN_VARIABLE};
use crate::project::approval::Approvals;
use crate::project::ralph_state::{self, LoopFile, Projection};
use crate::project::template::read_template;
use crate::run::context::{Candidate, RunContext};
use crate::session::claims;
use crate::session::done::{Checked, checks_fact, gate_facts, plan_found};
use crate::store::sessions::run_sessions;
use crate::verify::checks::seen_conditions;
use crate::workspace::CheckPlace;

/// What the settings require for this attempt.
#[derive(Debug, Default)]
pub(super) struct Requirements {
    /// Names of the conditions, without the judge's.
    pub(super) conditions: Vec<String>,
    pub(super) judge: bool,
    /// All facts known before the checks ran.
    facts: Facts,
}

pub(super) fn asked(context: &RunContext, attempt: &Attempt, changed: &[ChangedPath]) -> Result<Requirements, StepError> {
    let story = context.plan.plan().story(&attempt.place.story).ok_or(StepError::NoAttempt("verification"))?;
    let settings = &context.setup.config.done;
    let facts = facts(context, story, changed);
    if !settings.asks_more_than_a_run() {
        return Ok(Requirements { facts, ..Requirements::default() });
    }
    let wanted = settings.wants_judge(complexity(settings, &facts).value);
    // If a judge is asked, its answer is a separate step of the verification. If not, its condition stays open.
    let is_asked_here = |one: &JudgedCondition| one.required && !(wanted && one.prover == Prover::Judge);
    let conditions = judge(settings, &facts).conditions.into_iter().filter(is_asked_here).map(|one| one.name).collect();
    Ok(Requirements { conditions, judge: wanted, facts })
}

impl Requirements {
    /// Keeps only CI, whose answer is valid for one tree only. The other conditions were asked about the work as the agent left it.
    pub(super) fn of_ci(mut self, context: &RunContext) -> Self {
        let settings = &context.setup.config.done;
        self.conditions.retain(|name| settings.prover_of(name) == Some(Prover::Ci));
        Self { judge: false, ..self }
    }

    /// Whether CI has to agree.
    pub(super) fn asks_ci(&self, context: &RunContext) -> bool {
        self.conditions.iter().any(|name| context.setup.config.done.prover_of(name) == Some(Prover::Ci))
    }

    /// Whether CI was asked but gave no clear answer.
    pub(super) fn ci_is_unknown(&self) -> bool {
        matches!(self.facts.ci, CiFact::Unknown { .. })
    }
}

/// Evaluates the conditions after the checks passed. CI is asked last, because that can take long.
pub(super) fn evaluate(
    context: &mut RunContext,
    attempt: &Attempt,
    asked: &mut Requirements,
    report: &VerifyReport,
    reporter: &mut dyn Reporter,
) -> Result<Vec<SeenCondition>, StepError> {
    let judge_fact = if asked.judge { JudgeFact::Holds } else { JudgeFact::Off };
    let mut facts = Facts { judge: judge_fact, ..with_checks(context, attempt, asked, report) };
    let mut judged = judge(&context.setup.config.done, &facts);
    let is_open = |one: &&JudgedCondition| asked.conditions.contains(&one.name) && one.outcome.as_flag() != Some(true);
    let provers: Vec<&Prover> = judged.conditions.iter().filter(is_open).map(|one| &one.prover).collect();
    if provers.contains(&&Prover::Ci) {
        let is_last = provers.iter().all(|prover| **prover == Prover::Ci);
        let story = context.plan.plan().story(&attempt.place.story).cloned().ok_or(StepError::NoAttempt("verification"))?;
        asked.facts.ci = if is_last {
            ci::ask(context, &story, &report.trees.attempt, reporter)?
        } else {
            CiFact::Unknown { why: "CI is asked once the other conditions are met".to_owned() }
        };
        facts.ci = asked.facts.ci.clone();
        judged = judge(&context.setup.config.done, &facts);
    }
    Ok(seen_conditions(judged))
}

/// Writes our state for other loops that keep theirs in files.
pub(super) fn tell_other_loops(
    context: &RunContext,
    state: &State,
    attempt: &Attempt,
    asked: &Requirements,
    report: &VerifyReport,
    reporter: &mut dyn Reporter,
) {
    let Some(home) = ralph_state::home() else { return };
    let setting = context.setup.config.done.ralph_state;
    if !ralph_state::is_written(&home, setting) {
        return;
    }
    let mut facts = with_checks(context, attempt, asked, report);
    facts.judge = report.judge.clone().unwrap_or_default();
    let task = context.plan.plan().story(&attempt.place.story).map_or("", |story| story.title.as_str());
    let judged = judge(&context.setup.config.done, &facts);
    let about = Projection { session: context.setup.run.as_str(), task, now: Timestamp::now() };
    let progress = LoopFile::from_report(&judged, state.iteration, context.setup.config.limits.max_iterations);
    let written = ralph_state::write_report(&home, setting, &about, &judged, state.iteration)
        .and_then(|_| ralph_state::write_loop(&home, setting, &about, &progress));
    if let Err(error) = written {
        reporter
            .report(Update::Notice { text: &format!("could not write the state of this run to {}: {error}", home.display()) });
    }
}

fn with_checks(context: &RunContext, attempt: &Attempt, asked: &Requirements, report: &VerifyReport) -> Facts {
    let passed = !report.reasons.iter().any(|reason| reason.failing_check().is_some());
    let checked = Some(Checked { runs: report.runs_on(Tree::Attempt), passed, gates_only: false });
    let gates = gate_facts(&context.setup.gates, checked);
    let own_checks = checks_fact(context.own_checks(&attempt.place.story), checked);
    Facts { gates, own_checks, ..asked.facts.clone() }
}

fn facts(context: &RunContext, story: &Story, changed: &[ChangedPath]) -> Facts {
    let approvals = Approvals::read(&context.setup.root).unwrap_or_default();
    let scope = scope_of(context, story);
    let is_outside = scope.as_ref().map(|scope| scope.outside(false));
    let (outside, inside): (Vec<String>, Vec<String>) = changed
        .iter()
        .map(|change| change.path.to_string())
        .partition(|path| is_outside.as_ref().is_some_and(|is_outside| is_outside(path)));
    let claims = claims::read(&run_sessions(&context.setup.run_dir), context.attempt.claims_from);
    Facts {
        memory: LessonsConsulted::Queried { by: "the prompt includes the project's lessons".to_owned() },
        plan: plan_found(&context.plan, Some(story), &context.plan_name(), &approvals),
        git: GitFact::Seen { changed: u32::try_from(inside.len()).unwrap_or(u32::MAX), outside, uncommitted: Vec::new() },
        // A link or folder in place of the claims file was put there by the agent and counts as no claims.
        claims: claims.unwrap_or_default(),
        // In a run, an agent's changes to `.verdone/` are reverted, so lessons come as claims.
        lessons: Lessons::Same,
        ci: CiFact::Off,
        judge: JudgeFact::Off,
        ..Facts::default()
    }
}

/// The changed files of the candidate, without the plan.
fn changed(context: &RunContext) -> Vec<RepoPath> {
    let changes = context.attempt.candidate.iter().flat_map(|candidate| context.changed_by_agent(candidate));
    changes.map(|change| change.path).collect()
}

/// The first clear answer about a tree is final. Without one, the judge is asked once more, and then a person must review.
pub(super) fn refute(
    context: &mut RunContext,
    state: &State,
    attempt: &Attempt,
    report: &VerifyReport,
    reporter: &mut dyn Reporter,
) -> Result<JudgeRecord, StepError> {
    let story = context.plan.plan().story(&attempt.place.story).cloned().ok_or(StepError::NoAttempt("verification"))?;
    let judge = JudgeChoice::from_settings(&context.setup.config.done.judge, &context.setup.config.agent).name();
    let files = changed(context);
    let Some(candidate) = context.attempt.candidate.take() else { return Ok(JudgeRecord::new(judge)) };
    if let Some((.., record)) = context.judged.iter().find(|(about, tree, _)| *about == story.id && *tree == candidate.tree) {
        let record = JudgeRecord { usage: Usage::default(), duration_ms: 0, ..record.clone() };
        context.attempt.candidate = Some(candidate);
        return Ok(record);
    }
    reporter.report(Update::Notice { text: &format!("asking the judge ({judge}) to refute the work") });
    let prompt = prompt_of(context, attempt, &story, report, &candidate, &files)?;
    let asking = Asking { state, attempt, prompt: &prompt, candidate: &candidate };
    let mut record = asking.ask(context, None, reporter)?;
    if record.proved_nothing() && context.setup.signals.requested().is_none() {
        reporter.report(Update::Notice { text: &format!("the judge {}; asking it once more", record.describe()) });
        record = asking.ask(context, Some(&record), reporter)?.after(&record);
    }
    if !record.proved_nothing() {
        context.judged.push((story.id.clone(), candidate.tree.clone(), record.clone()));
    }
    context.attempt.candidate = Some(candidate);
    Ok(record)
}

/// One question and its subject.
struct Asking<'a> {
    state: &'a State,
    attempt: &'a Attempt,
    prompt: &'a str,
    candidate: &'a Candidate,
}

impl Asking<'_> {
    /// The judge runs in a separate workspace, and its writes are discarded.
    fn ask(
        &self,
        context: &mut RunContext,
        earlier: Option<&JudgeRecord>,
        reporter: &mut dyn Reporter,
    ) -> Result<JudgeRecord, StepError> {
        let place = context.spaces.question_on(&context.git, &self.candidate.tree, &context.tip)?;
        self.answer(context, &place, earlier, reporter)
    }

    fn answer(
        &self,
        context: &RunContext,
        place: &CheckPlace,
        earlier: Option<&JudgeRecord>,
        reporter: &mut dyn Reporter,
    ) -> Result<JudgeRecord, StepError> {
        let again = if earlier.is_some() { "-again" } else { "" };
        let dir = context.setup.run_dir.join("judge").join(format!("{}{again}", context.checks_run));
        let spent = self.state.cost_usd + earlier.and_then(|earlier| earlier.usage.cost_usd).unwrap_or(0.0);
        let limits = within_the_run(&limits_of(&context.setup.config), context.setup.clock);
        let seat = ClientContext {
            run: &context.setup.run,
            run_dir: &context.setup.run_dir,
            top: context.git.top(),
            plan: context.plan.path(),
            place: &self.attempt.place,
            left_usd: context.setup.config.limits.cost_usd.limit().map(|limit| limit - spent),
        };
        let env = place.env.clone().with(RUN_VARIABLE, context.setup.run.as_str());
        let inside = place.inside.as_ref();
        let court = ProverContext {
            root: &place.cwd,
            inside,
            dir: &dir,
            env,
            redactor: &context.setup.redactor,
            limits: &limits,
            seat: Some(seat),
        };
        let clock = context.setup.clock;
        let mut on = |moment: Moment<'_>| match moment {
            Moment::Tick => reporter.report(clock.tick()),
            Moment::Line { .. } => {}
        };
        ask_judge(&context.setup.config, self.prompt, &court, &context.setup.signals, &mut on)
            .map_err(io_error("saving the judge's answer"))
    }
}

fn prompt_of(
    context: &RunContext,
    attempt: &Attempt,
    story: &Story,
    report: &VerifyReport,
    candidate: &Candidate,
    files: &[RepoPath],
) -> Result<String, StepError> {
    let (name, template) =
        read_template(&context.setup.root, "refute", prompt::REFUTE).map_err(io_error("reading the template"))?;
    let checks: Vec<String> = report
        .runs_on(Tree::Attempt)
        .iter()
        .map(CheckRun::for_agent)
        .map(|run| format!("`{}`: {}", run.command.display(), run.outcome.describe()))
        .collect();
    let protected: Vec<String> = report.protected.iter().map(|change| change.path.clone()).collect();
    let base = attempt.base.as_ref();
    let diff = context.git.diff_text(base, &candidate.tree, files)?;
    let changed: Vec<String> = files.iter().map(ToString::to_string).collect();
    let refute = RefutePrompt {
        title: &story.title,
        body: &story.body,
        criteria: story.criteria.iter().map(|criterion| criterion.text.as_str()).collect(),
        base: base.map(Oid::as_str).unwrap_or_default(),
        checks: &checks,
        changed: &changed,
        protected: &protected,
        diff: &diff,
    };
    Ok(refute.render(&name, &template)?)
}
