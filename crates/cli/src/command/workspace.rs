//! `verdone workspace`: the private folders of runs, and a shell in one.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use verdone_report::plural;
use verdone_runtime::base::finding::FIRST_COMMIT;
use verdone_runtime::git::Git;
use verdone_runtime::process::run_attached;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::workspace::{CheckNeeds, Start, StateError, StateFolder, Stored, WorkspaceRequest, Workspaces};

use super::{Context, Outcome};
use crate::args::{WorkspaceCommand, WorkspaceListArgs, WorkspaceRemoveArgs, WorkspaceShellArgs};
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable, printable_line, say};

pub(super) fn run(command: &WorkspaceCommand, context: &Context) -> Outcome {
    match command {
        WorkspaceCommand::List(args) => list(args, context),
        WorkspaceCommand::Shell(args) => shell(args, context),
        WorkspaceCommand::Remove(args) => remove(args, context),
    }
}

fn state(context: &Context) -> Result<StateFolder, CliError> {
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let configured = settings.resolved.config.workspace.state;
    StateFolder::from_environment(configured.as_deref(), &project.git_top).map_err(|error| CliError::error(error.to_string()))
}

fn list(args: &WorkspaceListArgs, context: &Context) -> Outcome {
    let all = state(context)?.list().map_err(|error| CliError::error(error.to_string()))?;
    if args.json {
        let list: Vec<_> = all
            .iter()
            .map(|stored| {
                serde_json::json!({
                    "name": stored.name,
                    "in_use": stored.in_use,
                    "bytes": stored.size,
                    "project": stored.owner.project,
                    "run": stored.owner.run,
                    "pid": stored.in_use.then_some(stored.owner.pid),
                })
            })
            .collect();
        print_json(&serde_json::json!(list))?;
        return Ok(0);
    }
    if all.is_empty() {
        print("No workspaces.\n")?;
        return Ok(0);
    }
    print(&all.iter().map(|stored| printable_line(&row(stored)) + "\n").collect::<String>())?;
    Ok(0)
}

fn row(stored: &Stored) -> String {
    let state = if stored.in_use { format!("in use by process {}", stored.owner.pid) } else { "left behind".to_owned() };
    let mb = stored.size.div_ceil(1024 * 1024);
    format!("{}  {state}, {mb} MB, {}", stored.name, stored.owner.project.display())
}

fn remove(args: &WorkspaceRemoveArgs, context: &Context) -> Outcome {
    let state = state(context)?;
    let failed = |error: StateError| match error {
        StateError::InUse { .. } => {
            CliError::new(Kind::Human, error.to_string()).hint("end that run or shell first: verdone stop")
        }
        _ => CliError::error(error.to_string()),
    };
    let known = state.list().map_err(failed)?;
    let names: Vec<String> = match &args.name {
        Some(name) => vec![name.clone()],
        None => known.iter().filter(|stored| !stored.in_use).map(|stored| stored.name.clone()).collect(),
    };
    for name in &names {
        if !known.iter().any(|stored| stored.name == *name) {
            return Err(CliError::usage(format!("there is no workspace {name:?}")).hint("verdone workspace list"));
        }
        let deletion = state.remove(name).map_err(failed)?;
        deletion.wait().map_err(|error| CliError::error(format!("{name} could not be deleted: {error}")))?;
    }
    print(&printable(&format!("Removed {}.\n", plural(names.len(), "workspace", "workspaces"))))?;
    Ok(0)
}

/// Starts a shell in a workspace at HEAD, which is removed when the shell ends.
fn shell(args: &WorkspaceShellArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let git = Git::open(&project.root)?;
    let Some(head) = git.status()?.head else {
        return Err(CliError::usage("the repository has no commit yet").hint(FIRST_COMMIT));
    };
    let name = format!("shell-{}", std::process::id());
    // Nothing is kept, so there is no folder among the runs.
    let run_dir = std::env::temp_dir().join(&name);
    let mut spaces = Workspaces::new(&WorkspaceRequest {
        project: &project,
        config: &settings.resolved.config,
        run: &name,
        run_dir: &run_dir,
        objects: git.object_folders()?,
    });
    spaces.open(&git)?;
    for text in spaces.seal().missing {
        say(&printable(&format!("note: {text}\n")));
    }
    let command: Vec<OsString> = if args.command.is_empty() {
        vec![std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())]
    } else {
        args.command.clone()
    };
    let code = if args.checks {
        let needs = CheckNeeds { start: if args.cold { Start::Cold } else { Start::Warm }, hidden: None };
        let place = spaces.checks_on(&git, &git.tree_of(&head)?, &head, needs)?;
        exit_code(run_attached(&command, &place.cwd, place.inside.as_ref(), &place.env))
    } else {
        spaces.reset_agent(&git, &head, "verdone/shell", &[])?;
        let place = spaces.agent()?;
        exit_code(run_attached(&command, &place.cwd, place.inside.as_ref(), &place.env))
    };
    for text in spaces.take_notes() {
        say(&printable(&format!("note: {text}\n")));
    }
    code
}

fn exit_code(ended: io::Result<ExitStatus>) -> Outcome {
    let status = ended.map_err(|error| CliError::error(format!("the shell could not be started: {error}")))?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}
