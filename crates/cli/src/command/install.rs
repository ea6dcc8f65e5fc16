//! `verdone install` and `verdone uninstall`: show the change to a settings file, ask, and write it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use verdone_core::hook::settings::{After, install, installed, is_recognisable, uninstall};
use verdone_report::diff;
use verdone_runtime::hook::ARGUMENT as HOOK;
use verdone_runtime::project::HOME;
use verdone_runtime::project::client_plugin;
use verdone_runtime::project::client_settings::{FileState, Scope, SettingsFile, prove};

use super::{Context, Outcome};
use crate::args::{EditArgs, InstallArgs, UninstallArgs};
use crate::error::CliError;
use crate::question::confirm;
use crate::terminal::{print, print_json, printable_line, say};

/// Longer than a hook takes even on a very busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn put_in(args: &InstallArgs, context: &Context) -> Outcome {
    let program = this_program()?;
    refuse_without_project(args, context)?;
    let words = Words {
        nothing: "already has the hooks, and they are up to date",
        done: match args.edit.scope() {
            Scope::User => {
                "Installed, for every project with a .verdone/ folder. In a test, a push was denied. Running sessions pick up the hooks immediately."
            }
            Scope::Local | Scope::Project => {
                "Installed and working: in a test, a push was denied. Running sessions pick up the hooks immediately."
            }
        },
    };
    let change = |found: &FileState| Ok(After::Text(install(found.as_before(), &program)?));
    edit(&args.edit, context, &words, change, |after| trouble(after, &program))
}

/// The hooks are silent in a project without `.verdone/`. For all projects of a user, each one decides.
fn refuse_without_project(args: &InstallArgs, context: &Context) -> Result<(), CliError> {
    let root = root(context);
    if args.edit.scope() == Scope::User || root.join(HOME).is_dir() {
        return Ok(());
    }
    let message = format!("{} has no {HOME}/ folder, so the hooks would guard nothing here", root.display());
    Err(CliError::usage(message).hint("verdone init, then verdone install"))
}

/// Whether the client has a Stop hook of ours, in a settings file or by the plugin.
pub(super) fn stop_hook_is_installed(context: &Context) -> bool {
    let root = root(context);
    let in_settings = Scope::ALL.into_iter().any(|scope| {
        let file = SettingsFile::new(scope, &root, &context.environment).ok().and_then(|file| file.read().ok());
        let found = file.and_then(|state| installed(state.text()).ok().flatten());
        found.is_some_and(|found| !found.disabled && !found.missing.contains(&"Stop"))
    });
    in_settings || client_plugin::find(&root, &context.environment).is_some_and(|plugin| plugin.off_in.is_none())
}

pub(super) fn take_out(args: &UninstallArgs, context: &Context) -> Outcome {
    let words = Words { nothing: "has no Verdone hooks", done: "Uninstalled." };
    let change = |found: &FileState| match found {
        FileState::NoFolder => Ok(After::NoFolder),
        FileState::NoFile => Ok(After::NoFile),
        FileState::Text(text) => uninstall(text),
    };
    edit(&args.edit, context, &words, change, |_| None)
}

/// The project root as the hooks see it; outside of a repository, the starting directory.
pub(super) fn root(context: &Context) -> PathBuf {
    let start = || context.start.canonicalize().unwrap_or_else(|_| context.start.clone());
    context.project().map_or_else(|_| start(), |project| project.root)
}

struct Words {
    nothing: &'static str,
    done: &'static str,
}

fn edit(
    args: &EditArgs,
    context: &Context,
    words: &Words,
    change: impl FnOnce(&FileState) -> Result<After, verdone_text::position::Problem>,
    trouble: impl FnOnce(&After) -> Option<String>,
) -> Outcome {
    let root = root(context);
    let file = SettingsFile::new(args.scope(), &root, &context.environment)?;
    let name = name(&file.path, &root);
    let before = file.read()?;
    let after = change(&before).map_err(|problem| CliError::in_file(&file.path, &name, problem))?;
    let changes = match (&before, &after) {
        (FileState::Text(old), After::Text(new)) => old != new,
        (FileState::NoFile | FileState::NoFolder, After::NoFile | After::NoFolder) => false,
        (FileState::NoFile | FileState::NoFolder, After::Text(_)) | (FileState::Text(_), After::NoFile | After::NoFolder) => true,
    };
    let shown = diff(&name, old(&before), new(&after));
    let writes = changes && !args.dry_run;
    if !args.json {
        if !changes {
            print(&format!("{} {}.\n", printable_line(&name), words.nothing))?;
            return Ok(0);
        }
        print(&shown)?;
    }
    if writes && !args.yes && !confirmed(args, context, &name)? {
        say("Nothing was changed.\n");
        return Ok(4);
    }
    let mut trouble_after = None;
    if writes {
        file.replace(&before, &after)?;
        trouble_after = trouble(&after);
    }
    if args.json {
        print_json(&json!({
            "file": file.path,
            "scope": args.scope().name(),
            "changes": changes,
            "written": writes,
            "trouble": trouble_after,
            "diff": shown,
        }))?;
    } else if trouble_after.is_none() {
        print(&format!("{}\n", if writes { words.done } else { "Nothing was written (--dry-run)." }))?;
    }
    match trouble_after {
        None => Ok(0),
        Some(trouble) => Err(CliError::error(format!("the hooks are in {name}, but they do not work: {trouble}"))
            .hint(format!("verdone uninstall --{} removes them again", args.scope().name()))
            .hint("verdone doctor checks them again")),
    }
}

/// Why the hooks just written do not work. They stay installed: the cause may be in the client, and get fixed there.
fn trouble(after: &After, program: &str) -> Option<String> {
    let After::Text(text) = after else { return None };
    if installed(text).ok().flatten().is_some_and(|found| found.disabled) {
        return Some("all hooks are switched off there by \"disableAllHooks\"".to_owned());
    }
    prove(&[program.to_owned(), HOOK.to_owned()], LIMIT).err().map(|error| error.to_string())
}

fn old(before: &FileState) -> Option<&str> {
    match before {
        FileState::NoFolder | FileState::NoFile => None,
        FileState::Text(text) => Some(text),
    }
}

fn new(after: &After) -> Option<&str> {
    match after {
        After::NoFolder | After::NoFile => None,
        After::Text(text) => Some(text),
    }
}

fn confirmed(args: &EditArgs, context: &Context, name: &str) -> Result<bool, CliError> {
    if args.json || !context.terminal.can_ask {
        let why = if args.json { "--json does not ask" } else { "there is no terminal to ask for confirmation" };
        return Err(CliError::usage(format!("{why}: nothing was written"))
            .hint("add --yes to write it")
            .hint("or --dry-run to only show it"));
    }
    Ok(confirm(&format!("Write {}?", printable_line(name)))?)
}

/// The path as the user would write it: relative to the project if inside it, otherwise absolute.
pub(super) fn name(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The hooks use the program's absolute path, because a client may have a different PATH.
fn this_program() -> Result<String, CliError> {
    let path =
        std::env::current_exe().map_err(|error| CliError::error(format!("cannot find the path of this program: {error}")))?;
    if !path.is_file() {
        let message = format!("{} no longer exists", path.display());
        return Err(CliError::error(message).hint("the program was replaced while it was running: try again"));
    }
    let text = path
        .to_str()
        .ok_or_else(|| CliError::usage("the path of this program is not UTF-8, so it cannot be written to settings"))?;
    if !is_recognisable(text) {
        return Err(CliError::usage(format!("{text} would not be recognised as Verdone's later"))
            .hint("give the program a name that begins with verdone"));
    }
    Ok(text.to_owned())
}
