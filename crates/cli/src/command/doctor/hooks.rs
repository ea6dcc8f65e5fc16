//! The hooks that `verdone install` added to settings files: whether they are complete, and whether they respond.

use std::path::Path;

use verdone_core::hook::settings::{Installed, installed};
use verdone_report::plural;
use verdone_runtime::base::finding::{Finding, Health};
use verdone_runtime::project::client_settings::{Scope, SettingsFile, probe};

use crate::command::Context;
use crate::command::install::{LIMIT, name, root};

/// One finding per file that contains our hooks or cannot be read. None of them is an error: a run needs no installed hooks.
pub(super) fn hooks(context: &Context) -> Vec<Finding> {
    let root = root(context);
    Scope::ALL.into_iter().filter_map(|scope| examine(scope, &root, context)).collect()
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
