//! After green checks: the conditions of `[done]`. What is missing fails the verification with what to do about it.

use jiff::Timestamp;
use verdone_core::done::{CiFact, Facts, GitFact, JudgeFact, Lessons, Memory, complexity, judge};
use verdone_core::event::VerifyOutcome;
use verdone_core::machine::{Attempt, State, Verification};
use verdone_core::plan::Story;
use verdone_core::prompt::{self, Refute};
use verdone_core::update::{Reporter, Update};

use super::brief::scope_of;
use super::verify::put_back;
use super::{StepError, io_error};
use crate::approval::Approvals;
use crate::claims;
use crate::done::{Checked, checks_fact, gate_facts, plan_found};
use crate::judge::{Court, ask_judge};
use crate::process::{EnvPlan, Moment, RUN_VARIABLE};
use crate::ralph_state::{self, Projection};
use crate::sessions::run_sessions;
use crate::site::Site;
use crate::template::read_template;

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
    if asks && passed && settings.wants_judge(complexity(&settings, &facts).value) {
        reporter.report(Update::Notice { text: "a second agent is asked to refute the work" });
        facts.judge = refute(site, attempt, &story, verification, reporter)?;
    }
    let report = judge(&settings, &facts);
    let open = report.open();
    if asks && passed && !open.is_empty() {
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
    let approvals = Approvals::of_text(&site.protected.text("approvals.json").unwrap_or_default());
    let scope = scope_of(site, story);
    let (outside, inside): (Vec<String>, Vec<String>) =
        changed(site).into_iter().partition(|path| scope.as_ref().is_some_and(|scope| scope.leaves_out(path, false)));
    let claims = claims::read(&run_sessions(&site.run_dir), site.claims_from);
    Facts {
        memory: Memory::Queried { by: "the prompt has the lessons of this project".to_owned() },
        plan: plan_found(&site.plan, Some(story), &site.plan_name(), &approvals),
        git: GitFact::Seen {
            changed: u32::try_from(inside.len()).unwrap_or(u32::MAX),
            outside,
            uncommitted: verification.left_out.clone(),
        },
        gates: gate_facts(&site.gates, checked),
        own_checks: checks_fact(site.own_checks(&attempt.place.story), checked),
        // A link or a folder in their place is the agent's doing, and says nothing.
        claims: claims.unwrap_or_default(),
        // What an agent writes into `.verdone/` in a run is put back: a claim says what was learned.
        lessons: Lessons::Same,
        ci: CiFact::NotYet,
        judge: JudgeFact::Off,
        tasks: Vec::new(),
        state_files: Vec::new(),
    }
}

/// The files of the candidate, without the plan's tick.
fn changed(site: &Site) -> Vec<String> {
    let ours = site.plan_paths();
    let changes = site.candidate.iter().flat_map(|candidate| &candidate.changes);
    changes.filter(|change| !ours.contains(&change.path)).map(|change| change.path.to_string()).collect()
}

/// The judge may look: what it changed is kept, put back, and makes its word worthless.
fn refute(
    site: &mut Site,
    attempt: &Attempt,
    story: &Story,
    verification: &Verification,
    reporter: &mut dyn Reporter,
) -> Result<JudgeFact, StepError> {
    let files = changed(site);
    let Some(candidate) = site.candidate.take() else { return Ok(JudgeFact::Off) };
    let before = site.checkpoint("before the judge")?;
    let answer = asked(site, attempt, story, verification, &files, reporter);
    site.mend_home().map_err(io_error("putting .verdone/ back"))?;
    let restored = put_back(site, attempt, "judge")?;
    let drift = site.git.unchanged_since(&candidate)?;
    let touched =
        !restored.is_empty() || !drift.is_none() || drift.new_untracked.iter().any(|path| !site.debris.contains_key(path));
    if touched {
        site.keep().checkpoint_before_restore("what the judge changed", &[])?;
        site.keep().restore(&before)?;
    }
    site.candidate = Some(candidate);
    match answer? {
        _ if touched => Ok(JudgeFact::Unknown { why: "the judge changed files, so its word counts for nothing".to_owned() }),
        answer => Ok(answer),
    }
}

fn asked(
    site: &Site,
    attempt: &Attempt,
    story: &Story,
    verification: &Verification,
    files: &[String],
    reporter: &mut dyn Reporter,
) -> Result<JudgeFact, StepError> {
    let (name, template) = read_template(&site.root, "refute", prompt::REFUTE).map_err(io_error("reading the template"))?;
    let checks: Vec<String> = verification.runs.iter().map(|run| run.command.display()).collect();
    let base = attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.head.as_ref()).map(|head| head.0.clone());
    let prompt = Refute {
        title: &story.title,
        body: &story.body,
        criteria: story.criteria.iter().map(|criterion| criterion.text.as_str()).collect(),
        base: base.as_deref().unwrap_or_default(),
        changed: files,
        checks: &checks,
    }
    .render(&name, &template)?;
    let dir = site.run_dir.join("judge").join(format!("{}", site.checks_run));
    let env = EnvPlan::default().with(RUN_VARIABLE, site.run.as_str());
    let grace = site.config.limits.grace.duration();
    let court = Court { root: &site.root, dir: &dir, env, redactor: &site.redactor, grace };
    let clock = site.clock;
    let mut on = |moment: Moment<'_>| match moment {
        Moment::Tick => reporter.report(clock.tick()),
        Moment::Line { .. } => {}
    };
    ask_judge(&site.config, &prompt, &court, &site.signals, &mut on).map_err(io_error("keeping what the judge said"))
}
