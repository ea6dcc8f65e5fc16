//! After green checks: the conditions of `[done]`. What is missing fails the verification with what to do about it.

use jiff::Timestamp;
use verdone_core::agent::Usage;
use verdone_core::done::{CiFact, Facts, GitFact, Judge, JudgeFact, JudgeRecord, Lessons, Memory, TamperFact, complexity, judge};
use verdone_core::event::VerifyOutcome;
use verdone_core::id::Oid;
use verdone_core::machine::{Attempt, State, Verification};
use verdone_core::plan::Story;
use verdone_core::prompt::{self, Refute};
use verdone_core::tamper::Alarm;
use verdone_core::update::{Reporter, Update};

use super::brief::scope_of;
use super::turn::within_the_run;
use super::{StepError, io_error};
use crate::approval::Approvals;
use crate::claims;
use crate::done::{Checked, checks_fact, gate_facts, plan_found};
use crate::git::RepoPath;
use crate::judge::{Court, Seat, ask_judge, limits_of};
use crate::process::{Moment, RUN_VARIABLE};
use crate::ralph_state::{self, Projection};
use crate::sessions::run_sessions;
use crate::site::{Candidate, Site};
use crate::template::read_template;
use crate::workspace::CheckPlace;

/// A verification that passed stays one only if every condition holds that is asked for beyond what checks say.
pub(super) fn hold_to_conditions(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    verification: &mut Verification,
    reporter: &mut dyn Reporter,
) -> Result<(), StepError> {
    let asks = site.config.done.asks_more_than_a_run();
    let home = ralph_state::home();
    if !asks && !home.as_ref().is_some_and(|home| home.is_dir()) {
        return Ok(());
    }
    let story = site.plan.plan().story(&attempt.place.story).cloned().ok_or(StepError::NoAttempt("verification"))?;
    let passed = verification.outcome == VerifyOutcome::Passed;
    let mut facts = facts(site, attempt, &story, verification);
    let settings = site.config.done.clone();
    let mut report = judge(&settings, &facts);
    let mut open = report.open();
    if asks && passed && settings.wants_judge(complexity(&settings, &facts).value) {
        // Who costs money is asked last: what else is missing is missing whatever it says.
        facts.judge = JudgeFact::Holds;
        open = judge(&settings, &facts).open();
        if open.is_empty() {
            let record = refute(site, state, attempt, &story, verification, reporter)?;
            // Nobody waits for an answer any more, and that is no fault of the judge's.
            if record.proved_nothing() && site.signals.requested().is_some() {
                verification.outcome = VerifyOutcome::Interrupted;
            }
            facts.judge = record.said.clone();
            verification.judge = Some(Box::new(record));
            report = judge(&settings, &facts);
            open = report.open();
        }
    }
    if asks && verification.outcome == VerifyOutcome::Passed && !open.is_empty() {
        verification.outcome = VerifyOutcome::Refused;
        verification.reason = Some(format!("not done yet. {}", open.join(" ")));
    }
    if let Some(home) = home {
        let projection = Projection {
            session: site.run.as_str(),
            task: &story.title,
            report: &report,
            iteration: state.iteration,
            max_iterations: site.config.limits.max_iterations,
            now: Timestamp::now(),
        };
        if let Err(error) = ralph_state::write(&home, settings.ralph_state, &projection) {
            reporter.report(Update::Notice { text: &format!("the state of this run is not in {}: {error}", home.display()) });
        }
    }
    Ok(())
}

fn facts(site: &Site, attempt: &Attempt, story: &Story, verification: &Verification) -> Facts {
    let checked = Some(Checked { runs: &verification.runs, verdict: &verification.outcome, gates_only: false });
    let approvals = Approvals::read(&site.root).unwrap_or_default();
    let scope = scope_of(site, story);
    let is_outside = scope.as_ref().map(|scope| scope.outside(false));
    let (outside, inside): (Vec<String>, Vec<String>) = changed(site)
        .iter()
        .map(ToString::to_string)
        .partition(|path| is_outside.as_ref().is_some_and(|is_outside| is_outside(path)));
    let claims = claims::read(&run_sessions(&site.run_dir), site.claims_from);
    Facts {
        memory: Memory::Queried { by: "the prompt has the lessons of this project".to_owned() },
        plan: plan_found(&site.plan, Some(story), &site.plan_name(), &approvals),
        git: GitFact::Seen { changed: u32::try_from(inside.len()).unwrap_or(u32::MAX), outside, uncommitted: Vec::new() },
        gates: gate_facts(&site.gates, checked),
        own_checks: checks_fact(site.own_checks(&attempt.place.story), checked),
        // A link or a folder in their place is the agent's doing, and says nothing.
        claims: claims.unwrap_or_default(),
        // What an agent writes into `.verdone/` in a run is put back: a claim says what was learned.
        lessons: Lessons::Same,
        ci: CiFact::NotYet,
        judge: JudgeFact::Off,
        // The verification has its own word for it.
        tamper: TamperFact::Nothing,
        tasks: Vec::new(),
        state_files: Vec::new(),
    }
}

/// The files of the candidate, without the plan's tick.
fn changed(site: &Site) -> Vec<RepoPath> {
    let changes = site.candidate.iter().flat_map(|candidate| site.changed_by_agent(candidate));
    changes.map(|change| change.path).collect()
}

/// The first clear answer about a tree stands. Without one the judge is asked once more, and then a human is.
fn refute(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    story: &Story,
    verification: &Verification,
    reporter: &mut dyn Reporter,
) -> Result<JudgeRecord, StepError> {
    let judge = Judge::of(&site.config.done.judge, &site.config.agent).name();
    let files = changed(site);
    let Some(candidate) = site.candidate.take() else { return Ok(JudgeRecord::of(judge)) };
    if let Some((.., record)) = site.judged.iter().find(|(about, tree, _)| *about == story.id && *tree == candidate.tree) {
        let record = JudgeRecord { usage: Usage::default(), duration_ms: 0, ..record.clone() };
        site.candidate = Some(candidate);
        return Ok(record);
    }
    reporter.report(Update::Notice { text: &format!("a second agent ({judge}) is asked to refute the work") });
    let prompt = prompt_of(site, attempt, story, verification, &candidate, &files)?;
    let asking = Asking { state, attempt, prompt: &prompt, candidate: &candidate };
    let mut record = asking.ask(site, None, reporter)?;
    if record.proved_nothing() && site.signals.requested().is_none() {
        reporter.report(Update::Notice { text: &format!("the judge {}; it is asked once more", record.words()) });
        record = asking.ask(site, Some(&record), reporter)?.after(&record);
    }
    if !record.proved_nothing() {
        site.judged.push((story.id.clone(), candidate.tree.clone(), record.clone()));
    }
    site.candidate = Some(candidate);
    Ok(record)
}

/// One question, with what it is about.
struct Asking<'a> {
    state: &'a State,
    attempt: &'a Attempt,
    prompt: &'a str,
    candidate: &'a Candidate,
}

impl Asking<'_> {
    /// The judge works in a workspace of its own: what it writes is dropped.
    fn ask(&self, site: &mut Site, earlier: Option<&JudgeRecord>, reporter: &mut dyn Reporter) -> Result<JudgeRecord, StepError> {
        let place = site.spaces.question_on(&site.git, &self.candidate.tree, &site.tip)?;
        self.answer(site, &place, earlier, reporter)
    }

    fn answer(
        &self,
        site: &Site,
        place: &CheckPlace,
        earlier: Option<&JudgeRecord>,
        reporter: &mut dyn Reporter,
    ) -> Result<JudgeRecord, StepError> {
        let again = if earlier.is_some() { "-again" } else { "" };
        let dir = site.run_dir.join("judge").join(format!("{}{again}", site.checks_run));
        let spent = self.state.cost_usd + earlier.and_then(|earlier| earlier.usage.cost_usd).unwrap_or(0.0);
        let limits = within_the_run(&limits_of(&site.config), site.clock);
        let seat = Seat {
            run: &site.run,
            run_dir: &site.run_dir,
            top: site.git.top(),
            plan: site.plan.path(),
            place: &self.attempt.place,
            left_usd: site.config.limits.cost_usd.limit().map(|limit| limit - spent),
        };
        let env = place.env.clone().with(RUN_VARIABLE, site.run.as_str());
        let inside = place.inside.as_ref();
        let court =
            Court { root: &place.cwd, inside, dir: &dir, env, redactor: &site.redactor, limits: &limits, seat: Some(seat) };
        let clock = site.clock;
        let mut on = |moment: Moment<'_>| match moment {
            Moment::Tick => reporter.report(clock.tick()),
            Moment::Line { .. } => {}
        };
        ask_judge(&site.config, self.prompt, &court, &site.signals, &mut on).map_err(io_error("keeping what the judge said"))
    }
}

fn prompt_of(
    site: &Site,
    attempt: &Attempt,
    story: &Story,
    verification: &Verification,
    candidate: &Candidate,
    files: &[RepoPath],
) -> Result<String, StepError> {
    let (name, template) = read_template(&site.root, "refute", prompt::REFUTE).map_err(io_error("reading the template"))?;
    let checks: Vec<String> =
        verification.runs.iter().map(|run| format!("`{}`: {}", run.command.display(), run.outcome.words())).collect();
    let alarms: Vec<String> = verification.alarms.iter().map(Alarm::sentence).collect();
    let base = attempt.base.as_ref();
    let diff = site.git.diff_text(base, &candidate.tree, files)?;
    let changed: Vec<String> = files.iter().map(ToString::to_string).collect();
    let refute = Refute {
        title: &story.title,
        body: &story.body,
        criteria: story.criteria.iter().map(|criterion| criterion.text.as_str()).collect(),
        base: base.map(Oid::as_str).unwrap_or_default(),
        checks: &checks,
        changed: &changed,
        alarms: &alarms,
        diff: &diff,
    };
    Ok(refute.render(&name, &template)?)
}
