//! `verdone notify test`: tries every channel of the config.

use verdone_core::journal::notify::Notification;
use verdone_runtime::base::finding::Health;
use verdone_runtime::process::notify::{Channels, Delivered, deliver, examine, project_name};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::config_file::Flags;

use super::terminal_notifier::notify_terminal;
use super::{Context, Outcome};
use crate::args::{NotifyCommand, NotifyTestArgs};
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable, say};

pub(super) fn run(command: &NotifyCommand, context: &Context) -> Outcome {
    match command {
        NotifyCommand::Test(args) => test(args, context),
    }
}

fn test(args: &NotifyTestArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let config = context.settings(&project, &Flags::default())?.resolved.config;
    if !config.notify.has_channel() {
        let error = CliError::usage("no notifications are configured");
        return Err(error.hint("set desktop, command or webhook in [notify]: verdone help notifications"));
    }
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let findings = examine(&config, &project.root);
    let problems: Vec<&str> =
        findings.iter().filter(|finding| finding.health > Health::Neutral).map(|finding| finding.message.as_str()).collect();
    let channels = Channels::new(&config.notify);
    let notification = Notification::test(&project_name(&project.root)).cleaned(&channels.redactor());
    let mut delivered = Vec::new();
    if channels.terminal {
        let shown = notify_terminal(&notification.title, &notification.text, &context.environment);
        let failure = (!shown).then(|| "there is no terminal".to_owned());
        delivered.push(Delivered { channel: "terminal".to_owned(), failure });
    }
    delivered.extend(deliver(&channels, &notification, &project.root, &signals));
    let has_failed = !problems.is_empty() || delivered.iter().any(|one| one.failure.is_some());
    if args.json {
        print_json(&serde_json::json!({ "channels": delivered, "problems": problems }))?;
    } else {
        for problem in &problems {
            say(&printable(&format!("note: {problem}\n")));
        }
        print(&printable(&delivered.iter().map(line).collect::<String>()))?;
    }
    Ok(if has_failed { Kind::Error.exit_code() } else { 0 })
}

fn line(delivered: &Delivered) -> String {
    match &delivered.failure {
        None => format!("sent    {}\n", delivered.channel),
        Some(failure) => format!("failed  {}: {failure}\n", delivered.channel),
    }
}
