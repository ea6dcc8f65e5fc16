//! `verdone loop`: loops in the user's own sessions.

use serde_json::{Value, json};
use verdone_core::agent::client_variables::{INSIDE_VARIABLE, SESSION_VARIABLE};
use verdone_core::base::id::StoryId;
use verdone_core::base::verdict::Red;
use verdone_core::engine::session::incomplete_words;
use verdone_core::verify::{Proof, StoryResult};
use verdone_report::plural;
use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::plan_file;
use verdone_runtime::session::{
    LoopOwner, Loops, SeenLoop, SessionLoop, StartLoopError, StartLoopRequest, StartedLoop, StopError, end_loop, start_loop,
};

use super::install::stop_hook_is_installed;
use super::users_own::refuse_agents;
use super::{Context, Outcome};
use crate::args::{LoopCommand, LoopStartArgs, LoopStatusArgs, LoopStopArgs};
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable_line, say};

pub(super) fn run(command: &LoopCommand, context: &Context) -> Outcome {
    match command {
        LoopCommand::Start(args) => start(args, context),
        LoopCommand::Status(args) => status(args, context),
        LoopCommand::Stop(args) => stop(args, context),
    }
}

fn start(args: &LoopStartArgs, context: &Context) -> Outcome {
    not_empty("--session", args.session.as_deref(), "leave it out to hold this session, or the next one that starts here")?;
    not_empty("TASK", args.task.as_deref(), "describe the task in a few words, or name a plan with --plan")?;
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let named = args.plan.as_ref().map(|plan| plan.to_string_lossy().into_owned());
    let plan = match (&named, &args.task) {
        (None, Some(_)) => None,
        (Some(_), _) | (None, None) => Some(plan_file::find(&context.plan_request(&project, &settings, named.as_deref()))?),
    };
    let whose = match args.session.clone().or_else(|| own_session(context, &project)) {
        Some(session) => LoopOwner::Session(session),
        None => LoopOwner::Next,
    };
    let request = StartLoopRequest {
        project: &project,
        config: &settings.resolved.config,
        task: args.task.as_deref().unwrap_or_default(),
        plan,
        max_iterations: args.max_iterations,
        whose: whose.clone(),
    };
    let armed = match start_loop(request) {
        Ok(armed) => armed,
        Err(error @ StartLoopError::Interrupted(signal)) => {
            say(&format!("error: {error}\n"));
            return Ok(signal.exit_code());
        }
        Err(error) => return Err(refused(error)),
    };
    let is_installed = stop_hook_is_installed(context);
    if args.json {
        let session = if let LoopOwner::Session(id) = &whose { Some(id.as_str()) } else { None };
        let (loops, session_name) = (Loops::new(&project.root), session.map(str::to_owned));
        let seen = match &session_name {
            Some(id) => loops.of_session(id),
            None => loops.next(),
        };
        print_json(&seen.map_err(broken)?.map_or(Value::Null, |seen| shown(session, &seen)))?;
    } else {
        print(&said(&armed, &whose, is_installed))?;
    }
    if is_installed {
        return Ok(0);
    }
    say(
        "error: Verdone's hooks are not in the client's settings, so nothing keeps the session from stopping\nhint: verdone install\n",
    );
    Ok(Kind::Human.exit_code())
}

/// Without our hooks in the client's settings, a loop cannot keep a session from stopping.
fn said(armed: &StartedLoop, whose: &LoopOwner, is_installed: bool) -> String {
    let mut text = match whose {
        LoopOwner::Session(id) if is_installed => format!("A loop holds the session {}.\n", printable_line(id)),
        LoopOwner::Session(id) => format!("A loop is ready for the session {}.\n", printable_line(id)),
        LoopOwner::Next if is_installed => {
            "A loop waits for the next session that starts in this project, and will hold it.\n".to_owned()
        }
        LoopOwner::Next => "A loop is ready for the next session that starts in this project.\n".to_owned(),
    };
    let open = armed.held.stories.len();
    match &armed.plan {
        Some(plan) => {
            text.push_str(&format!("Plan: {}, {} open.\n", printable_line(plan), plural(open, "story", "stories")));
            if armed.without_check > 0 {
                let many = plural(armed.without_check, "story has", "stories have");
                text.push_str(&format!("{many} no separate check: the gates decide.\n"));
            }
        }
        None => text.push_str("No plan: the gates decide.\n"),
    }
    if let Some((story, red)) = &armed.first {
        let story = printable_line(story.as_str());
        match red {
            Red::Red => text.push_str(&format!("The checks of {story} fail now: when they pass, it is verified.\n")),
            Red::Green => text.push_str(&format!("The checks of {story} already pass: alone they prove nothing.\n")),
            Red::Unknown => text.push_str(&format!("It is unknown whether the checks of {story} fail now.\n")),
            Red::Absent => {}
        }
    }
    match armed.held.max_blocks {
        0 => text.push_str("There is no iteration limit.\n"),
        most => text.push_str(&format!("The session may stop after {}.\n", plural(most as usize, "iteration", "iterations"))),
    }
    text.push_str("`verdone loop stop` ends the loop.\n");
    text
}

/// The session that this command runs in: from the client's variable, or else as seen by a hook.
fn own_session(context: &Context, project: &Project) -> Option<String> {
    let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty());
    let inside = variable(INSIDE_VARIABLE).is_some();
    variable(SESSION_VARIABLE).cloned().or_else(|| Loops::new(&project.root).session_starting_loop().filter(|_| inside))
}

fn refused(error: StartLoopError) -> CliError {
    let hint = match error {
        StartLoopError::Already { .. } => "see `verdone loop status`; `verdone loop stop` in a terminal ends it",
        StartLoopError::NothingOpen { .. } => "name another plan, or give a TASK, for which the gates decide",
        StartLoopError::NothingToVerify { .. } => "add a [[gate]] to .verdone/config.toml; `verdone init` proposes some",
        StartLoopError::NothingRunnable { .. } => "see `verdone plan lint`, and check what its stories depend on",
        StartLoopError::NotApproved { .. } => "read it, then: verdone plan approve",
        StartLoopError::Refused(finding) => return finding.into(),
        StartLoopError::Stop(StopError::Plan(error)) => return error.into(),
        StartLoopError::Stop(_) | StartLoopError::Git(_) | StartLoopError::Approval(_) | StartLoopError::Interrupted(_) => {
            return CliError::error(error.to_string());
        }
    };
    CliError::usage(error.to_string()).hint(hint)
}

fn status(args: &LoopStatusArgs, context: &Context) -> Outcome {
    let project = context.project_of_loops()?;
    let loops = Loops::new(&project.root);
    let (all, next, left) = (loops.all().map_err(broken)?, loops.next().map_err(broken)?, loops.incomplete());
    if args.json {
        let one = |SessionLoop { session, seen }: &SessionLoop| match seen {
            Ok(seen) => shown(Some(session), seen),
            Err(error) => json!({ "session": session, "status": "unreadable", "error": error.to_string() }),
        };
        let listed: Vec<Value> = all.iter().map(one).collect();
        let next = next.as_ref().map(|seen| shown(None, seen));
        let paused = is_paused(&project);
        print_json(&json!({ "loops": listed, "next": next, "incomplete": left, "paused": paused }))?;
        return Ok(0);
    }
    let mut text = String::new();
    if let Some(seen) = &next {
        text.push_str(&format!("waits for the next session that starts here\n{}", lines(seen)));
    }
    for SessionLoop { session, seen } in &all {
        let (status, lines) = match seen {
            Ok(seen) => (seen.held.status.describe().to_owned(), lines(seen)),
            Err(error) => (printable_line(&error.to_string()), String::new()),
        };
        text.push_str(&format!("session {}: {status}\n{lines}", printable_line(session)));
    }
    if let Some(left) = &left {
        text.push_str(&format!("{}\n", printable_line(&incomplete_words(left))));
    }
    if is_paused(&project) {
        text.push_str("Paused: remove .verdone/pause to continue.\n");
    }
    if text.is_empty() {
        text.push_str("There is no loop. `verdone loop start` starts one.\n");
    }
    print(&text)?;
    Ok(0)
}

fn lines(SeenLoop { held, state, unaccepted }: &SeenLoop) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            text.push_str(&format!("  {name:<10} {}\n", printable_line(value)));
        }
    };
    let ids = |wanted: &dyn Fn(&StoryResult) -> bool| {
        let found = state.results.iter().filter(|(_, result)| wanted(result)).map(|(id, _)| id.as_str());
        found.collect::<Vec<_>>().join(", ")
    };
    line("run", held.run.as_str());
    line("task", &held.task);
    line("plan", held.plan.as_deref().unwrap_or("none: the gates decide"));
    let of = if held.max_blocks > 0 { format!(" of {}", held.max_blocks) } else { String::new() };
    line("blocks", &format!("{}{of}", held.gate.blocks));
    if held.plan.is_some() {
        let done = state.results.values().filter(|result| result.is_taken()).count();
        line("stories", &format!("{done} of {} done", held.stories.len()));
    }
    let is = |proof: Proof| move |result: &StoryResult| result.is_taken() && result.proof == Some(proof);
    for proof in [Proof::Verified, Proof::AgentTested, Proof::Untested, Proof::Unchecked] {
        line(proof.name(), &ids(&is(proof)));
    }
    let waiting: Vec<&str> = state.progress.review.keys().map(StoryId::as_str).collect();
    line("review", &waiting.join(", "));
    line("unaccepted", &unaccepted.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", "));
    let story = state.attempt.as_ref().filter(|_| held.is_active() && held.plan.is_some());
    line("current", story.map_or("", |attempt| attempt.place.story.as_str()));
    let reopened: Vec<&str> = state.reopened.iter().map(StoryId::as_str).collect();
    line("re-opened", &reopened.join(", "));
    line("let go", held.gate.let_go.as_deref().unwrap_or_default());
    line("started", &held.started_at);
    text
}

fn shown(session: Option<&str>, SeenLoop { held, state, unaccepted }: &SeenLoop) -> Value {
    let is_taken = |id: &StoryId| state.results.get(id).is_some_and(|result| result.is_taken());
    let remaining: Vec<&str> = held.stories.keys().filter(|id| !is_taken(id)).map(StoryId::as_str).collect();
    let story = state.attempt.as_ref().filter(|_| held.plan.is_some()).map(|attempt| attempt.place.story.as_str());
    json!({
        "session": session,
        "run": held.run,
        "status": held.status.name(),
        "task": held.task,
        "plan": held.plan,
        "blocks": held.gate.blocks,
        "max_blocks": held.max_blocks,
        "story": story,
        "results": state.results,
        "review": state.progress.review.keys().collect::<Vec<_>>(),
        "remaining": remaining,
        "unaccepted": unaccepted,
        "reopened": state.reopened,
        "let_go": held.gate.let_go,
        "incomplete": held.gate.incomplete,
        "started_at": held.started_at,
    })
}

fn is_paused(project: &Project) -> bool {
    project.root.join(".verdone").join(verdone_runtime::session::PAUSE).exists()
}

fn stop(args: &LoopStopArgs, context: &Context) -> Outcome {
    not_empty("--session", args.session.as_deref(), "see `verdone loop status` for the sessions that are held")?;
    refuse_agents("end a loop", "verdone loop stop", context)?;
    let project = context.project_of_loops()?;
    let loops = Loops::new(&project.root);
    let whose = args.session.clone().map_or_else(|| only(&loops), |session| Ok(LoopOwner::Session(session)))?;
    if end_loop(&project.root, &whose).map_err(broken)? {
        print("The loop is stopped.\n")?;
        return Ok(0);
    }
    let who = match &whose {
        LoopOwner::Session(id) => format!("no loop holds the session {}", printable_line(id)),
        LoopOwner::Next => "there is no loop".to_owned(),
    };
    Err(CliError::usage(who).hint("see `verdone loop status`"))
}

fn not_empty(name: &str, value: Option<&str>, hint: &str) -> Result<(), CliError> {
    match value {
        Some(value) if value.trim().is_empty() => Err(CliError::usage(format!("{name} is empty")).hint(hint)),
        Some(_) | None => Ok(()),
    }
}

/// The only loop; an error if there are several.
fn only(loops: &Loops) -> Result<LoopOwner, CliError> {
    let all = loops.all().map_err(broken)?.into_iter();
    let active: Vec<String> = all.filter(SessionLoop::holds).map(|found| found.session).collect();
    let next = loops.next().map_or(true, |next| next.is_some());
    match (&active[..], next) {
        ([], _) => Ok(LoopOwner::Next),
        ([one], false) => Ok(LoopOwner::Session(one.clone())),
        (several, _) => {
            let count = several.len() + usize::from(next);
            let error = CliError::usage(format!("there are {count} loops: {}", printable_line(&several.join(", "))));
            Err(error.hint("name one with --session ID"))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn broken(error: StopError) -> CliError {
    CliError::error(error.to_string())
}
