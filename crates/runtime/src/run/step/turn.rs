//! One prompt to the agent, until it stops.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use verdone_core::agent::AgentKind;
use verdone_core::base::id::StoryId;
use verdone_core::base::span::Span;
use verdone_core::check::Check;
use verdone_core::config::{Agents, Limits};
use verdone_core::engine::prompt::{BuildPrompt, continuing};
use verdone_core::engine::run::{Input, State, TurnReport};
use verdone_core::evidence::claim_of;
use verdone_core::journal::event::Place;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_plan::Story;

use super::brief::brief;
use super::hand_over::hand_over;
use super::learn::{guardrails_for, note_use};
use super::{StepError, attempt_of, io_error, show_notes};
use crate::agent::{RunAgent, TurnRequest};
use crate::base::active_clock::Stopwatch;
use crate::guard::{TurnOf, turn_tests};
use crate::process::{HeldUp, Moment};
use crate::project::template::project_instructions;
use crate::run::context::RunContext;
use crate::run::tool_calls;
use crate::run::tool_socket::ToolSocket;
use crate::store::live_output::LiveOutput;

pub fn turn(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "turn")?;
    let workspace = context.spaces.agent()?;
    let prompt = prompt_of(context, state, &workspace.mount_points, reporter)?;
    brief(context, state, attempt)?;
    let place = &attempt.place;
    let plan = context.plan.path().to_owned();
    context.turns_run += 1;
    show_notes(context, reporter);
    let socket = ToolSocket::seen_from(&workspace.cwd, &context.setup.root, &context.setup.run_dir);
    let limits = within_the_run(&context.setup.config.limits, context.setup.clock);
    let (agents, run, run_dir) = (agents_for(context, place), context.setup.run.clone(), context.setup.run_dir.clone());
    announce_escalation(context, &agents, place, reporter);
    let (redactor, signals) = (context.setup.redactor.clone(), context.setup.signals.clone());
    let held_up = HeldUp::default();
    let mut spare = spare_time(&context.setup.config.limits, context.setup.clock);
    let request = TurnRequest {
        agent: &agents,
        limits: &limits,
        held_up: &held_up,
        prompt: &prompt,
        cwd: &workspace.cwd,
        inside: workspace.inside.as_ref(),
        env: &workspace.env,
        run_dir: &run_dir,
        number: context.turns_run,
        run: &run,
        place,
        iteration: state.iteration,
        plan: &plan,
        tools: context.tools.is_some().then_some(socket.as_path()),
        redactor: &redactor,
    };
    let clock = context.setup.clock;
    let mut live = LiveOutput::begin(&run_dir, state.iteration, place.turn, limits.output_bytes);
    let budget = context.setup.config.limits.cost_usd.limit().map(|limit| limit - state.cost_usd);
    // Answering a tool call needs the whole context, so the agent is not in it during the turn.
    let mut agent = std::mem::replace(&mut context.agent, RunAgent::PerTurn);
    agent.works_in(&workspace);
    let mut on = |moment: Moment<'_>| {
        show(reporter, &mut live, clock, &moment);
        if matches!(moment, Moment::Tick) {
            show_notes(context, reporter);
        }
        if matches!(moment, Moment::Tick)
            && let Some(time) = tool_calls::serve(context, state, reporter)
        {
            let time = time.min(spare);
            spare -= time;
            held_up.excuse(time);
        }
    };
    let kept = agent.turn(&request, budget, &signals, &mut on);
    context.agent = agent;
    context.spaces.save_login();
    let result = kept.map_err(io_error("saving the turn"))?;
    if let Some(text) = &result.notice {
        reporter.report(Update::Notice { text });
    }
    let this = TurnOf { iteration: state.iteration, turn: place.turn };
    let tests = turn_tests(&context.setup.run_dir, this, context.attempt.since, &context.setup.redactor);
    Ok(Input::TurnEnded(TurnReport {
        at: Timestamp::now(),
        outcome: result.outcome,
        duration_ms: result.duration.as_millis() as u64,
        usage: result.usage,
        exit_code: result.exit_code,
        prompt: result.prompt_file,
        output: result.output_file,
        leftovers: result.leftovers,
        tests,
        session: result.session,
        allowance: result.allowance,
        claim: claim_of(&result.claim),
    }))
}

/// The agents' settings for an attempt: the last one at a story may have another model.
pub(super) fn agents_for(context: &RunContext, place: &Place) -> Agents {
    let config = &context.setup.config;
    Agents { claude: config.agent.claude.for_attempt(place.attempt, config.limits.attempts), ..config.agent.clone() }
}

fn announce_escalation(context: &RunContext, agents: &Agents, place: &Place, reporter: &mut dyn Reporter) {
    let strength = agents.claude.strength();
    let is_other = agents.name == AgentKind::Claude && strength != context.setup.config.agent.claude.strength();
    if is_other && place.turn == 1 {
        let text = format!("the last attempt at {} uses {}", place.story, strength.describe());
        reporter.report(Update::Notice { text: &text });
    }
}

/// Limits a turn to the run's remaining time.
pub(super) fn within_the_run(limits: &Limits, clock: Stopwatch) -> Limits {
    let mut limits = limits.clone();
    if let Some(total) = limits.total_time.limit() {
        let left = total.saturating_sub(clock.elapsed()).max(Duration::from_millis(1));
        if limits.turn_time.limit().is_none_or(|turn| left < turn) {
            limits.turn_time = Span::from_millis(left.as_millis() as u64 + 1);
        }
    }
    limits
}

/// How much longer than `limits.turn_time` a turn may take for verifications that its agent asked for: `limits.total_time` has no
/// exceptions.
fn spare_time(limits: &Limits, clock: Stopwatch) -> Duration {
    let Some(total) = limits.total_time.limit() else { return Duration::MAX };
    let left = total.saturating_sub(clock.elapsed());
    limits.turn_time.limit().map_or(Duration::ZERO, |turn| left.saturating_sub(turn))
}

fn show(reporter: &mut dyn Reporter, live: &mut LiveOutput, clock: Stopwatch, moment: &Moment<'_>) {
    match moment {
        Moment::Line { stream, text } => {
            live.line(*stream, text);
            reporter.report(Update::Output { speaker: Speaker::Agent, stream: *stream, line: text });
        }
        Moment::Tick => reporter.report(clock.tick()),
    }
}

fn prompt_of(
    context: &mut RunContext,
    state: &State,
    mount_points: &[PathBuf],
    reporter: &mut dyn Reporter,
) -> Result<String, StepError> {
    let attempt = attempt_of(state, "turn")?;
    let story = context.plan.plan().story(&attempt.place.story).ok_or(StepError::NoAttempt("turn"))?;
    if let Some(told) = attempt.repeats
        && context.agent.keeps_session(&context.setup.config.agent, attempt.place.turn == 1)
    {
        return Ok(continuing(story.id.as_str(), attempt.notes.get(told..).unwrap_or_default()));
    }
    let guardrails = guardrails_for(context, story);
    let prompt = prompt_with(context, story, &guardrails.text, Some(state), mount_points)?;
    note_use(context, &guardrails, reporter);
    Ok(match hand_over(context, state, attempt)? {
        Some(told) => format!("{told}\n{prompt}"),
        None => prompt,
    })
}

/// The prompt of a story's first turn.
pub fn first_prompt(context: &RunContext, story: &Story) -> Result<String, StepError> {
    prompt_with(context, story, &guardrails_for(context, story).text, None, &[])
}

/// The question about a story and the user's answer.
fn answered<'a>(state: &'a State, story: &StoryId) -> Option<(&'a str, &'a str)> {
    let question = state.questions.get(story)?;
    Some((&question.question, question.answer.as_deref()?))
}

/// The prompt for a story. Without an attempt, the prompt of its first turn. `mount_points` are folders of the workspace.
fn prompt_with(
    context: &RunContext,
    story: &Story,
    guardrails: &str,
    state: Option<&State>,
    mount_points: &[PathBuf],
) -> Result<String, StepError> {
    let attempt = state.and_then(|state| state.attempt.as_ref());
    let commands = |checks: &[Check]| checks.iter().map(Check::shown_to_agent).collect();
    let instructions = project_instructions(&context.setup.root, "building").map_err(io_error("reading the instructions"))?;
    let around = [context.plan.plan().context.as_str(), context.plan.context().unwrap_or_default(), &instructions].join("\n\n");
    let plan = context.plan_name();
    let building = BuildPrompt {
        plan: &plan,
        story,
        checks: commands(context.own_checks(&story.id)),
        gates: commands(&context.setup.gates.iter().filter(|gate| !gate.terms.advisory).cloned().collect::<Vec<_>>()),
        own_tests: context.own_checks(&story.id).is_empty(),
        failure: attempt.and_then(|attempt| attempt.feedback.as_ref()),
        baseline: state.and_then(|state| state.baseline.as_ref()),
        guardrails,
        notes: attempt.map_or(&[], |attempt| &attempt.notes),
        answered: state.and_then(|state| answered(state, &story.id)),
        tools: context.tools.is_some() && context.setup.config.agent.name == AgentKind::Claude,
        context: &around,
        mount_points: mount_points.iter().map(|path| path.display().to_string()).collect(),
        attempt: attempt.map_or(1, |attempt| attempt.place.attempt),
        turn: attempt.map_or(1, |attempt| attempt.place.turn),
        failure_bytes: context.setup.config.prompt.failure_bytes as usize,
    };
    Ok(building.render(&context.setup.template.0, &context.setup.template.1)?)
}
