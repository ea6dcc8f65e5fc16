//! The hooks that `verdone install` added to settings files, and those of the plugin: whether they are complete, whether they respond, and
//! whether they are installed twice.

use std::ffi::OsStr;
use std::path::Path;

use verdone_core::hook::settings::plugin::{BLOCK_CAP, PROGRAM};
use verdone_core::hook::settings::{Installed, installed};
use verdone_report::plural;
use verdone_runtime::base::finding::{Finding, Health};
use verdone_runtime::hook::ARGUMENT as HOOK;
use verdone_runtime::process::find_program;
use verdone_runtime::project::client_plugin::{self, ActivePlugin};
use verdone_runtime::project::client_settings::{Scope, SettingsFile, probe};
use verdone_text::shell_word::shell_word;

use crate::command::Context;
use crate::command::install::{LIMIT, name, root};

/// One finding per file that contains our hooks or cannot be read, and one for the plugin. None of them is an error: a run needs no
/// installed hooks.
pub(super) fn hooks(context: &Context) -> Vec<Finding> {
    let root = root(context);
    let mut findings: Vec<Finding> = Scope::ALL.into_iter().filter_map(|scope| examine(scope, &root, context)).collect();
    if let Some(plugin) = client_plugin::find(&root, &context.environment) {
        findings.push(examine_plugin(&plugin, &root, context));
        findings.extend(installed_twice(&plugin, &root, context));
    }
    findings
}

fn examine_plugin(plugin: &ActivePlugin, root: &Path, context: &Context) -> Finding {
    let warning = |message: String, hint: String| {
        let message = format!("plugin {}: {message}", plugin.id);
        Finding { hints: vec![hint], ..Finding::warning("hooks", message) }
    };
    if let Some(scope) = plugin.off_in {
        let file = SettingsFile::new(scope, root, &context.environment).map(|file| name(&file.path, root));
        let file = file.unwrap_or_else(|_| format!("the {} settings", scope.name()));
        return warning(format!("all hooks are switched off in {file}"), "remove \"disableAllHooks\" there".to_owned());
    }
    let path = context.environment.get("PATH").map(OsStr::new);
    let Some(program) = find_program(PROGRAM, path, root) else {
        return warning(format!("{PROGRAM} is not in PATH, so its hooks fail"), format!("put {PROGRAM} into a folder of PATH"));
    };
    if is_inside(&program, root) {
        let message = format!("{} was not started: it is not a program outside this project", program.display());
        return warning(message, "remove the project from PATH".to_owned());
    }
    let command = [program.display().to_string(), HOOK.to_owned()];
    if let Err(error) = probe(&command, LIMIT) {
        return warning(format!("{} does not work as a hook: {error}", command.join(" ")), format!("replace {}", command[0]));
    }
    if plugin.has_cap {
        return Finding::good("hooks", format!("plugin {}: working", plugin.id));
    }
    let message = format!("plugin {}: working, but Claude Code lets a turn end after 8 blocks in a row", plugin.id);
    let hint = format!("for longer loops, add \"env\": {{ \"{BLOCK_CAP}\": \"100\" }} to a settings file of Claude Code");
    Finding { what: "hooks", health: Health::Neutral, message, hints: vec![hint] }
}

/// Each event would be answered twice, and each block counted twice.
fn installed_twice(plugin: &ActivePlugin, root: &Path, context: &Context) -> Vec<Finding> {
    let twice = |scope: Scope| {
        let file = SettingsFile::new(scope, root, &context.environment).ok()?;
        installed(file.read().ok()?.text()).ok()??;
        let message = format!("installed twice: by the plugin {} and in {}", plugin.id, name(&file.path, root));
        let hints = vec![
            format!("verdone uninstall --{} keeps the plugin, which also has skills and tools", scope.name()),
            format!("or claude plugin disable {} keeps the hooks in the file", shell_word(&plugin.id)),
        ];
        Some(Finding { hints, ..Finding::warning("hooks", message) })
    };
    Scope::ALL.into_iter().filter_map(twice).collect()
}

fn examine(scope: Scope, root: &Path, context: &Context) -> Option<Finding> {
    let file = SettingsFile::new(scope, root, &context.environment).ok()?;
    let name = name(&file.path, root);
    let found = match file.read() {
        Ok(found) => found,
        Err(error) => return Some(Finding::warning("hooks", error.to_string())),
    };
    let installed = match installed(found.text()) {
        Ok(installed) => installed?,
        Err(problem) => {
            let message = format!("{name}:{}:{}: {}", problem.line, problem.column, problem.message);
            return Some(Finding { hints: problem.hint.into_iter().collect(), ..Finding::warning("hooks", message) });
        }
    };
    let again = format!("verdone install --{}", scope.name());
    Some(match trouble(&installed, scope, root) {
        None => {
            let events = plural(installed.events, "event", "events");
            Finding::good("hooks", format!("{name}: {events}, working"))
        }
        Some((trouble, hint)) => Finding {
            what: "hooks",
            health: Health::Warning,
            message: format!("{name}: {trouble}"),
            hints: vec![hint.unwrap_or(again)],
        },
    })
}

/// What is wrong, and what to do about it if installing the hooks again does not help.
fn trouble(installed: &Installed, scope: Scope, root: &Path) -> Option<(String, Option<String>)> {
    if installed.disabled {
        return Some(("all hooks are switched off".to_owned(), Some("remove \"disableAllHooks\" there".to_owned())));
    }
    for command in &installed.commands {
        let program = Path::new(command.first()?);
        // A repository can bring its own settings: examining it must not start a program that came with it.
        if !program.is_absolute() || (scope != Scope::User && is_inside(program, root)) {
            let message = format!("{} was not started: it is not a program outside this project", program.display());
            return Some((message, None));
        }
        if let Err(error) = probe(command, LIMIT) {
            return Some((format!("{} does not work as a hook: {error}", command.join(" ")), None));
        }
    }
    (!installed.missing.is_empty()).then(|| (format!("no hook for {}", installed.missing.join(", ")), None))
}

fn is_inside(program: &Path, root: &Path) -> bool {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    program.starts_with(root) || real.starts_with(root)
}
