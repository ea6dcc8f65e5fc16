//! `request_merge`: what a reviewer needs, prepared locally: a branch at the story's commit and a report. Verdone itself pushes nothing; the
//! user's command may publish it, outside of the seal.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{Oid, StoryId, encode_component};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::CommandSpec;
use verdone_core::engine::run::State;
use verdone_core::evidence::Evidence;
use verdone_core::journal::agent_tools::{Answer, MergeAnswer, RequestMerge};
use verdone_core::journal::control::Request;
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::Outcome;

use super::tool_calls::{clean, own_story, record};
use crate::base::atomic::write_atomically;
use crate::process::{self, EnvPlan, Exit, Moment, RUN_VARIABLE, Spawn, Stdin};
use crate::run::context::RunContext;
use crate::run::step::{self, MidTurnReport, StepError};
use crate::run::ticked::commit_of;
use crate::session::tools::knowledge;

/// A prepared review.
struct Prepared {
    branch: String,
    report: PathBuf,
    /// What the user's command did. `None` if there is no command.
    published: Option<String>,
}

pub(super) fn answer(
    context: &mut RunContext,
    state: &State,
    request: &RequestMerge,
    reporter: &mut dyn Reporter,
) -> Result<Answer, StepError> {
    let Some(planned) = context.plan.plan().story_meant(&StoryId::from(request.story.as_str())) else {
        return Ok(knowledge::no_story(context.plan.plan(), &request.story));
    };
    let (story, summary) = (planned.id.clone(), clean(context, &request.summary));
    if let Some((commit, _)) = commit_of(&context.git, planned, &context.tip)? {
        record(context, &Request::Merge { story: story.clone(), summary: summary.clone() }, reporter)?;
        let Prepared { branch, report, published } = prepare(context, &story, &summary, &commit, reporter)?;
        let published = published.unwrap_or_else(|| "Nothing was pushed.".to_owned());
        let what_was_done = format!("{branch} points to commit {}, and the report is written. {published}", commit.short());
        return Ok(Answer::new(&MergeAnswer { story, branch, report: report.display().to_string(), what_was_done }));
    }
    if own_story(context, state, &request.story).is_err() {
        return Ok(not_done(&story, "request it when the story is done"));
    }
    let MidTurnReport { report, left } = step::verify_during_turn(context, state, reporter)?;
    if report.outcome != Outcome::Done || left.is_some() {
        let todo = "call complete_story, fix what fails, and request it again; leave the work in the tree meanwhile";
        return Ok(not_done(&story, todo));
    }
    record(context, &Request::Merge { story: story.clone(), summary }, reporter)?;
    let published = if context.setup.config.merge.command.is_some() { "runs the user's merge command" } else { "pushes nothing" };
    let what_was_done = format!(
        "recorded: the story passes now. End your turn; if it still passes then, Verdone commits it, points this branch to the commit, \
         writes the report and {published}."
    );
    let (branch, report) = (branch_of(&story), report_of(context, &story).display().to_string());
    Ok(Answer::new(&MergeAnswer { story, branch, report, what_was_done }))
}

fn not_done(story: &StoryId, todo: &str) -> Answer {
    Answer::error(&format!("{story} is not done, so there is nothing to review"), todo)
}

/// After a story's commit: prepares the review that the agent asked for. Failures cannot undo the commit.
pub(super) fn prepare_requested(context: &RunContext, state: &State, story: &StoryId, commit: &Oid, reporter: &mut dyn Reporter) {
    let Some(summary) = state.merges.get(story) else { return };
    let text = match prepare(context, story, summary, commit, reporter) {
        Ok(Prepared { branch, report, published }) => {
            let published = published.map(|text| format!("; {text}")).unwrap_or_default();
            format!("{story} is ready for review: branch {branch}, report {}{published}", report.display())
        }
        Err(error) => format!("{story} could not be prepared for review: {error}"),
    };
    reporter.report(Update::Notice { text: &text });
}

fn branch_of(story: &StoryId) -> String {
    format!("verdone/review/{}", encode_component(story.as_str()))
}

fn report_of(context: &RunContext, story: &StoryId) -> PathBuf {
    context.setup.run_dir.join("merge").join(format!("{}.md", encode_component(story.as_str())))
}

fn prepare(
    context: &RunContext,
    story: &StoryId,
    summary: &str,
    commit: &Oid,
    reporter: &mut dyn Reporter,
) -> Result<Prepared, StepError> {
    let (branch, report) = (branch_of(story), report_of(context, story));
    let at = context.git.branch_tip(&branch)?;
    if at.as_ref() == Some(commit) && report.is_file() {
        return Ok(Prepared { branch, report, published: Some("This was done before, so nothing was run again.".to_owned()) });
    }
    if let Some(at) = &at
        && !may_be_moved(context, story, at, commit)?
    {
        return Err(StepError::ReviewBranch { branch });
    }
    context.git.set_branch(&branch, commit, at.as_ref())?;
    let evidence = context.git.read_note(commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
    let text = report_text(context, story, summary, commit, evidence.as_ref())?;
    let folder = context.setup.run_dir.join("merge");
    fs::create_dir_all(&folder).map_err(step::io_error("creating the folder for reports"))?;
    write_atomically(&report, text.as_bytes()).map_err(step::io_error("writing the report"))?;
    let published = context.setup.config.merge.command.as_ref();
    let published = published.map(|command| publish(context, command, story, commit, (&branch, &report), reporter));
    Ok(Prepared { branch, report, published })
}

/// Whether a review branch has nothing but Verdone's own commits. Reviewers may have added theirs.
fn may_be_moved(context: &RunContext, story: &StoryId, at: &Oid, commit: &Oid) -> Result<bool, StepError> {
    let note = context.git.read_note(at)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
    Ok(note.is_some_and(|evidence| evidence.story == *story) || context.git.is_part_of(at, commit)?)
}

/// Runs the user's command. Its failure changes nothing about the story.
fn publish(
    context: &RunContext,
    command: &CommandSpec,
    story: &StoryId,
    commit: &Oid,
    (branch, report): (&str, &Path),
    reporter: &mut dyn Reporter,
) -> String {
    let env = EnvPlan::default()
        .with(RUN_VARIABLE, context.setup.run.as_str())
        .with("VERDONE_STORY", story.as_str().replace('\0', "\u{fffd}"))
        .with("VERDONE_COMMIT", commit.as_str())
        .with("VERDONE_REVIEW_BRANCH", branch)
        .with("VERDONE_REPORT", report);
    let limits = &context.setup.config.limits;
    let spawn = Spawn {
        inside: None,
        argv: process::argv(command),
        cwd: context.setup.root.clone(),
        env,
        stdin: Stdin::Null,
        wall: context.setup.config.merge.timeout.limit(),
        idle: None,
        grace: limits.grace.duration(),
        cap: limits.output_bytes,
        keep: Some(report.with_extension("log")),
        redactor: &context.setup.redactor,
    };
    let clock = context.setup.clock;
    let mut on = |moment: Moment<'_>| match moment {
        Moment::Tick => reporter.report(clock.tick()),
        Moment::Line { .. } => {}
    };
    match process::run(&spawn, &context.setup.signals, &mut on) {
        Ok(ended) if ended.exit == Exit::Code(0) => "The user's merge command succeeded.".to_owned(),
        Ok(ended) => {
            let mut lines = ended.output.text.lines().rev().map(|line| sanitise_line(line.trim()).into_owned());
            let last = lines.find(|line| !line.is_empty()).unwrap_or_default();
            format!("The user's merge command failed: {last}")
        }
        Err(error) => format!("The user's merge command could not be started: {error}"),
    }
}

fn report_text(
    context: &RunContext,
    story: &StoryId,
    summary: &str,
    commit: &Oid,
    evidence: Option<&Evidence>,
) -> Result<String, StepError> {
    let title = evidence.map_or("", |evidence| evidence.title.as_str());
    let mut text = format!("# {story}: {title}\n\n{summary}\n\n- Commit: {commit}\n");
    if let Some(evidence) = evidence {
        text.push_str(&format!("- Proof: {}, {}\n\n## Checks\n\n", evidence.proof, evidence.outcome));
        for check in &evidence.after {
            text.push_str(&format!("- {}: {}\n", check.name, if check.outcome.passed() { "passed" } else { "did not pass" }));
        }
    }
    let base = evidence.and_then(|evidence| evidence.base.as_ref());
    text.push_str("\n## Changed files\n\n");
    for change in context.git.changed_paths(base, &context.git.tree_of(commit)?)? {
        text.push_str(&format!("- {}\n", change.path));
    }
    Ok(text)
}
