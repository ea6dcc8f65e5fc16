//! `verdone loop`: loops in sessions of the user's own.

use serde_json::{Value, json};
use verdone_core::stop::{LoopAlarm, LoopState, incomplete_words};
use verdone_core::verdict::Red;
use verdone_core::verify::Proof;
use verdone_report::plural;
use verdone_runtime::config_file::Flags;
use verdone_runtime::plan_file;
use verdone_runtime::project::Project;
use verdone_runtime::stop::{ArmError, ArmRequest, Armed, Loops, SessionLoop, StopError, Whose, arm, end};

use super::users_own::refuse_agents;
use super::{Context, Outcome};
use crate::args::{LoopCommand, LoopStartArgs, LoopStatusArgs, LoopStopArgs};
use crate::error::CliError;
use crate::terminal::{print, print_json, printable_line, say};

/// The client's own word on which session a command runs in.
const SESSION: &str = "CLAUDE_CODE_SESSION_ID";
const INSIDE: &str = "CLAUDECODE";

pub(super) fn run(command: &LoopCommand, context: &Context) -> Outcome {
    match command {
        LoopCommand::Start(args) => start(args, context),
        LoopCommand::Status(args) => status(args, context),
        LoopCommand::Stop(args) => stop(args, context),
    }
}

fn start(args: &LoopStartArgs, context: &Context) -> Outcome {
    not_empty("--session", args.session.as_deref(), "leave it out to hold this session, or the next one that starts here")?;
    not_empty("TASK", args.task.as_deref(), "say in a few words what it is about, or name a plan with --plan")?;
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let named = args.plan.as_ref().map(|plan| plan.to_string_lossy().into_owned());
    let plan = match (&named, &args.task) {
        (None, Some(_)) => None,
        (Some(_), _) | (None, None) => Some(plan_file::find(&context.plan_request(&project, &settings, named.as_deref()))?),
    };
    let whose = match args.session.clone().or_else(|| own_session(context, &project)) {
        Some(session) => Whose::Session(session),
        None => Whose::Next,
    };
    let request = ArmRequest {
        root: &project.root,
        top: &project.git_top,
        config: &settings.resolved.config,
        task: args.task.as_deref().unwrap_or_default(),
        plan,
        max_iterations: args.max_iterations,
        whose: whose.clone(),
    };
    let armed = match arm(request) {
        Ok(armed) => armed,
        Err(error @ ArmError::Interrupted(signal)) => {
            say(&format!("error: {error}\n"));
            return Ok(signal.exit_code());
        }
        Err(error) => return Err(refused(error)),
    };
    if args.json {
        let session = if let Whose::Session(id) = &whose { Some(id.as_str()) } else { None };
        print_json(&shown(session, &armed.state))?;
    } else {
        print(&said(&armed, &whose))?;
    }
    Ok(0)
}

fn said(armed: &Armed, whose: &Whose) -> String {
    let mut text = match whose {
        Whose::Session(id) => format!("A loop holds the session {}.\n", printable_line(id)),
        Whose::Next => "A loop waits for the next session that starts in this project, and will hold it.\n".to_owned(),
    };
    let open = armed.state.open.len();
    match &armed.plan {
        Some(plan) => {
            text.push_str(&format!("Plan: {}, {} open.\n", printable_line(plan), plural(open, "story", "stories")));
            if armed.without_check > 0 {
                let many = plural(armed.without_check, "story has", "stories have");
                text.push_str(&format!("{many} no check of its own: the gates decide, and it counts as unproven.\n"));
            }
        }
        None => text.push_str("No plan: the gates decide.\n"),
    }
    if let Some(current) = &armed.state.current {
        let story = printable_line(current.story.as_str());
        match armed.red {
            Red::Red => text.push_str(&format!("The checks of {story} fail now: when they pass, it is verified.\n")),
            Red::Green => text.push_str(&format!("The checks of {story} pass already: it will be unproven at best.\n")),
            Red::Unknown => text.push_str(&format!("Whether the checks of {story} fail now could not be seen.\n")),
            Red::Absent => {}
        }
    }
    match armed.state.max_blocks {
        0 => text.push_str("There is no limit of iterations.\n"),
        most => text.push_str(&format!("It is let go after {}.\n", plural(most as usize, "iteration", "iterations"))),
    }
    text.push_str("The hooks of `verdone install` have to be in the client's settings. `verdone loop stop` ends it.\n");
    text
}

/// The session that this very command runs in: as the client says, else as a hook saw it.
fn own_session(context: &Context, project: &Project) -> Option<String> {
    let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty());
    let inside = variable(INSIDE).is_some();
    variable(SESSION).cloned().or_else(|| Loops::of(&project.root).asking().filter(|_| inside))
}

fn refused(error: ArmError) -> CliError {
    let hint = match error {
        ArmError::Already { .. } => "see `verdone loop status`; `verdone loop stop` in a terminal ends it",
        ArmError::NothingOpen { .. } => "name another plan, or a TASK that the gates decide about",
        ArmError::NothingToVerify { .. } => "add a [[gate]] to .verdone/config.toml; `verdone init` proposes some",
        ArmError::NotApproved { .. } => "read it, then: verdone plan approve",
        ArmError::Stop(StopError::Plan(error)) => return error.into(),
        ArmError::Stop(_) | ArmError::Git(_) | ArmError::Approval(_) | ArmError::Interrupted(_) => {
            return CliError::error(error.to_string());
        }
    };
    CliError::usage(error.to_string()).hint(hint)
}

fn status(args: &LoopStatusArgs, context: &Context) -> Outcome {
    let project = context.project_of_loops()?;
    let loops = Loops::of(&project.root);
    let (all, next, left) = (loops.all().map_err(broken)?, loops.next().map_err(broken)?, loops.incomplete());
    if args.json {
        let one = |SessionLoop { session, state }: &SessionLoop| match state {
            Ok(state) => shown(Some(session), state),
            Err(error) => json!({ "session": session, "status": "unreadable", "error": error.to_string() }),
        };
        let listed: Vec<Value> = all.iter().map(one).collect();
        let next = next.as_ref().map(|state| shown(None, state));
        let paused = is_paused(&project);
        print_json(&json!({ "loops": listed, "next": next, "incomplete": left, "paused": paused }))?;
        return Ok(0);
    }
    let mut text = String::new();
    if let Some(state) = &next {
        text.push_str(&format!("waits for the next session that starts here\n{}", lines(state)));
    }
    for SessionLoop { session, state } in &all {
        let (status, lines) = match state {
            Ok(state) => (state.status.words().to_owned(), lines(state)),
            Err(error) => (printable_line(&error.to_string()), String::new()),
        };
        text.push_str(&format!("session {}: {status}\n{lines}", printable_line(session)));
    }
    if let Some(left) = &left {
        text.push_str(&format!("{}\n", printable_line(&incomplete_words(left))));
    }
    if is_paused(&project) {
        text.push_str("Paused: remove .verdone/pause to go on.\n");
    }
    if text.is_empty() {
        text.push_str("There is no loop. `verdone loop start` starts one.\n");
    }
    print(&text)?;
    Ok(0)
}

fn lines(state: &LoopState) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            text.push_str(&format!("  {name:<10} {}\n", printable_line(value)));
        }
    };
    line("task", &state.task);
    line("plan", state.plan.as_deref().unwrap_or("none: the gates decide"));
    let of = if state.max_blocks > 0 { format!(" of {}", state.max_blocks) } else { String::new() };
    line("blocks", &format!("{}{of}", state.blocks));
    if !state.open.is_empty() {
        let (marked, unproven) = state.counted();
        let unproven = if unproven > 0 { format!(" ({unproven} unproven)") } else { String::new() };
        line("stories", &format!("{marked} of {} passed{unproven}", state.open.len()));
    }
    let doubted = state.marked.iter().filter(|marked| marked.verdict < Proof::Verified);
    line("unproven", &doubted.map(|marked| marked.story.as_str()).collect::<Vec<_>>().join(", "));
    let unaccepted: Vec<&str> = state.unaccepted().map(verdone_core::id::StoryId::as_str).collect();
    line("unaccepted", &unaccepted.join(", "));
    let story = state.current.as_ref().filter(|_| state.is_active()).map(|current| current.story.to_string());
    line("at work", &story.unwrap_or_default());
    for marked in state.marked.iter().filter(|marked| marked.told.is_some()) {
        line("commit", &format!("story {}: {}", marked.story, marked.told.as_deref().unwrap_or_default()));
    }
    for LoopAlarm { story, alarm } in &state.alarms {
        let story = story.as_ref().map(|story| format!(" [{story}]")).unwrap_or_default();
        line("alarm", &format!("{}{story}", alarm.sentence()));
    }
    let reopened: Vec<&str> = state.reopened.iter().map(verdone_core::id::StoryId::as_str).collect();
    line("re-opened", &reopened.join(", "));
    line("let go", state.let_go.as_deref().unwrap_or_default());
    line("started", &state.started_at);
    text
}

fn shown(session: Option<&str>, state: &LoopState) -> Value {
    let (marked, unproven) = state.counted();
    let remaining: Vec<&str> =
        state.open.keys().filter(|id| !state.has_marked(id)).map(verdone_core::id::StoryId::as_str).collect();
    json!({
        "session": session,
        "status": state.status.name(),
        "task": state.task,
        "plan": state.plan,
        "blocks": state.blocks,
        "max_blocks": state.max_blocks,
        "story": state.current.as_ref().map(|current| current.story.as_str()),
        "marked": state.marked,
        "verified": marked - unproven,
        "unproven": unproven,
        "remaining": remaining,
        "reopened": state.reopened,
        "alarms": state.alarms,
        "let_go": state.let_go,
        "incomplete": state.incomplete,
        "started_at": state.started_at,
    })
}

fn is_paused(project: &Project) -> bool {
    project.root.join(".verdone").join(verdone_runtime::stop::PAUSE).exists()
}

fn stop(args: &LoopStopArgs, context: &Context) -> Outcome {
    not_empty("--session", args.session.as_deref(), "see `verdone loop status` for the sessions that are held")?;
    refuse_agents("end a loop", "verdone loop stop", context)?;
    let project = context.project_of_loops()?;
    let loops = Loops::of(&project.root);
    let whose = args.session.clone().map_or_else(|| only(&loops), |session| Ok(Whose::Session(session)))?;
    if end(&project.root, &whose).map_err(broken)? {
        print("The loop is stopped.\n")?;
        return Ok(0);
    }
    let who = match &whose {
        Whose::Session(id) => format!("no loop holds the session {}", printable_line(id)),
        Whose::Next => "there is no loop".to_owned(),
    };
    Err(CliError::usage(who).hint("see `verdone loop status`"))
}

fn not_empty(name: &str, value: Option<&str>, hint: &str) -> Result<(), CliError> {
    match value {
        Some(value) if value.trim().is_empty() => Err(CliError::usage(format!("{name} is empty")).hint(hint)),
        Some(_) | None => Ok(()),
    }
}

/// The only loop that is there.
fn only(loops: &Loops) -> Result<Whose, CliError> {
    let all = loops.all().map_err(broken)?.into_iter();
    let active: Vec<String> = all.filter(SessionLoop::holds).map(|found| found.session).collect();
    let next = loops.next().map_or(true, |next| next.is_some());
    match (&active[..], next) {
        ([], _) => Ok(Whose::Next),
        ([one], false) => Ok(Whose::Session(one.clone())),
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
