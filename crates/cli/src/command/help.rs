//! `verdone help`: pages of the manual, and the help of commands.

use clap::Command;
use verdone_report::markdown_to_terminal;
use verdone_text::suggest::nearest;

use super::{Context, Outcome};
use crate::args::HelpArgs;
use crate::error::CliError;
use crate::help::topics::{self, TOPICS, Topic};
use crate::help::{command, list_topics};
use crate::terminal::print;

/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 100;

pub(super) fn run(args: &HelpArgs, context: &Context) -> Outcome {
    let width = context.terminal.width.min(WIDEST);
    let names: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let page = match names[..] {
        [] => command(width).render_long_help().to_string(),
        ["topics"] => list_topics(width),
        [name] if let Some(topic) = topics::find(name) => read(topic, name, width, context),
        [_, ..] => help_of_command(&names, width).ok_or_else(|| unknown(&names))?,
    };
    print(&page)?;
    Ok(0)
}

/// The page of a topic. If a command has the same name, its end says how to get the command's help.
fn read(topic: &Topic, name: &str, width: usize, context: &Context) -> String {
    let style = verdone_report::Style { width, ..context.terminal.report_style() };
    let mut page = markdown_to_terminal(topic.text, &style, &topics::name_link);
    if command(width).find_subcommand(name).is_some() {
        page.push_str(&format!("\nThe command of this name: verdone {name} --help\n"));
    }
    page
}

fn help_of_command(names: &[&str], width: usize) -> Option<String> {
    let mut root = command(width);
    root.build();
    let mut found: &Command = &root;
    for name in names {
        found = found.find_subcommand(name)?;
    }
    Some(found.clone().render_long_help().to_string())
}

fn unknown(names: &[&str]) -> CliError {
    let typed = names.join(" ");
    let root = command(WIDEST);
    let topics: Vec<&str> = TOPICS.iter().map(|topic| topic.names[0]).collect();
    let known = root.get_subcommands().filter(|found| !found.is_hide_set()).map(Command::get_name);
    let all = TOPICS.iter().flat_map(|topic| topic.names.iter().copied()).chain(known);
    let error = CliError::usage(format!("there is no topic or command {typed:?}"));
    let error = match nearest(&typed, all) {
        Some(close) => error.hint(format!("verdone help {close}")),
        None => error,
    };
    error.hint(format!("the topics are: {}", topics.join(", ")))
}
